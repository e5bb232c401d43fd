"""The check of params out of range: they are refused, or they work."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any

import numpy as np

from corejax import jit
from corejax.errors import CorejaxError
from corejax.ir import subjaxprs
from corejax.plugin import Sample
from corejax_testing.case import Case
from corejax_testing.check import check
from corejax_testing.probing import is_native, is_one_of, lowered
from corejax_testing.report import Mismatch, NotApplicable, clipped
from corejax_testing.values import check_types, compare

#: How many params are tried, and how many of those that are accepted are compiled, in the quick mode.
_MOST, _COMPILED = 40, 4

#: Results with more elements aren't computed.
_LARGEST = 100_000

_TODO = "refuse such params in abstract_eval by a CorejaxError that says what they may be; or let them work"


@check("abstract_eval")
def params_out_of_range_are_refused_or_work(case: Case) -> None:
    """With an axis too many, one twice, a negative size or another word, it is an error, or computes what it announces.

    Modules are verified first, and nothing native is called: what doesn't check its params could end the process.
    """
    if not case.params:
        raise NotApplicable("it has no params")
    if any(True for _ in subjaxprs(case.params)) or not all(map(_is_plain, case.params.values())):
        raise NotApplicable("a program or an object among its params says what the others may be")
    if not is_one_of(case, 4):
        raise NotApplicable("another sample represents this one")
    accepted = [variant for variant in _variants(case) if _is_accepted(variant)]
    if not accepted or is_native(_lowered(case, accepted)) or case.primitive.impl is None and not case.full:
        return  # there is nothing to compare, or it isn't safe
    evaluated = [_evaluated(variant) for variant in accepted]
    chosen = list(zip(accepted, evaluated, strict=True))
    if not case.full:
        chosen = [chosen[k] for k in case.rng.permutation(len(chosen))[:_COMPILED if is_one_of(case, 1) else 0]]
    for (variant, outs), computed in zip(chosen, _compiled(case, [variant for variant, _ in chosen]), strict=True):
        compare(variant, outs, computed)


def _is_plain(value: Any) -> bool:
    """Whether it is a number, a word, a dtype, None, or made of these."""
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return all([_is_plain(getattr(value, field.name)) for field in dataclasses.fields(value)])
    return value is None or isinstance(value, (bool, int, float, complex, str, np.dtype, np.generic, Enum))


def _variants(case: Case) -> Iterator[Case]:
    """The case with one param out of range, or next to what it is."""
    ndim = max([aval.ndim for aval in case.avals], default=0)
    every = [(name, new) for name, value in case.params.items() for new in _neighbors(value, ndim)]
    order = range(len(every)) if case.full else sorted(case.rng.permutation(len(every))[:_MOST])
    for name, value in [every[k] for k in order]:
        sample = Sample(case.args, {**case.params, name: value}, ulps=case.sample.ulps, atol=case.sample.atol)
        yield Case(case.primitive, sample, case.number, case.check, case.full, case.samples)


def _neighbors(value: Any, ndim: int) -> Iterator[Any]:
    """Values of the same kind that a param may not have, or hardly ever has."""
    if isinstance(value, bool):
        yield not value
    elif type(value) is int:
        yield from dict.fromkeys(x for x in (-1, 0, value - 1, value + 1, ndim, -1 - ndim, -value) if x != value)
    elif type(value) is float:
        yield from (x for x in (-1.0 - value, 0.0) if x != value)
    elif type(value) is str:
        yield value + "_"
    elif type(value) is tuple:
        yield from _sequences(value, ndim)
    elif isinstance(value, tuple) and (fields := getattr(value, "_fields", ())):
        yield from (type(value)(*[new if name == field else getattr(value, name) for name in fields])
                    for field in fields for new in _neighbors(getattr(value, field), ndim))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from (dataclasses.replace(value, **{field.name: new}) for field in dataclasses.fields(value) if field.init
                    for new in _neighbors(getattr(value, field.name), ndim))


def _sequences(value: tuple[Any, ...], ndim: int) -> Iterator[tuple[Any, ...]]:
    if value:
        yield value[:-1]
        yield (*value, value[-1])
        yield (value[0],) * len(value) if len(value) > 1 and len(set(map(repr, value))) > 1 else (*value, *value)
    else:
        yield from ((-1 - ndim,), (ndim,))
    for k, element in enumerate(value):
        yield from ((*value[:k], new, *value[k + 1:]) for new in _neighbors(element, ndim))


def _is_accepted(case: Case) -> bool:
    """Whether it isn't refused, and its results aren't large; fails if it stumbles instead of refusing."""
    try:
        outs = case.out_avals
    except (CorejaxError, TypeError, ValueError):
        return False
    except Exception as error:
        raise _broken(case, "abstract_eval", "it stumbles over params instead of refusing them", error) from error
    return sum([aval.size for aval in outs]) <= _LARGEST


def _lowered(case: Case, variants: Sequence[Case]) -> Any:
    """One module of all variants."""
    try:
        return lowered(lambda *args: [out for variant in variants for out in variant.apply(*args)], case.avals,
                       case.primitive.name)
    except Exception:  # one by one they show whose fault it is
        for variant in variants:
            try:
                module = lowered(variant.apply, variant.avals, case.primitive.name)
            except Exception as error:
                raise _broken(variant, "abstract_eval", "it accepts params that can't be lowered", error) from error
        return module


def _evaluated(case: Case) -> list[Any]:
    try:
        outs = case.apply(*case.args)
    except Exception as error:
        raise _broken(case, "abstract_eval", "it accepts params that can't be evaluated", error) from error
    check_types(case, "impl" if case.primitive.impl else "xla_translation", outs)
    return outs


def _compiled(case: Case, variants: Sequence[Case]) -> list[list[Any]]:
    """What the variants compute, by one program in the quick mode."""
    if case.full or not variants:
        return [jit(variant.apply)(*variant.args) for variant in variants]

    @jit
    def program(*args: Any) -> list[list[Any]]:
        return [variant.apply(*args) for variant in variants]

    found: list[list[Any]] = program(*case.args)
    return found


def _broken(case: Case, hook: str, problem: str, error: Exception) -> Mismatch:
    cause = error.__cause__ or error
    got = error.message if isinstance(error, CorejaxError) else f"{type(cause).__name__}: {cause}"
    params = ", ".join([f"{name}={clipped(value)}" for name, value in case.params.items()])
    return case.fail(hook, problem, got=f"with {params}: {got}", todo=_TODO,
                     wanted="an error that says what the param may be, or the announced result")
