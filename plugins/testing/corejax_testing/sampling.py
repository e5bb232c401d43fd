"""Checks of what the samples leave open: values that nothing else gives, and params that never change."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

import numpy as np

from corejax.core import Primitive, default_platform, dtypes
from corejax.ir import param_key
from corejax_testing.case import Case
from corejax_testing.check import check
from corejax_testing.report import NotApplicable, clipped

#: Whose values can be told apart. What else is a param, such as a function or a program, has no second value to try.
_PLAIN = (bool, int, float, complex, str, bytes, np.dtype, np.generic, Enum, type(None))


@check("samples")
def values_are_given_in_two_ways(case: Case) -> None:
    """Values are given in two ways: by `impl`, `decompose`, `evaluate` or a lowering, or by `results` of a sample."""
    _stand_for_all(case)
    if not any([aval.size and aval.dtype != dtypes.float0 for aval in case.out_avals]):
        raise NotApplicable("it has no values")
    ways = list(_ways(case.primitive))
    if len(ways) > 1 or any([sample.results is not None for sample in case.samples]):
        return
    more = "or write a lowering or decompose" if ways == ["impl"] else "or write impl"
    raise case.fail("samples", f"nothing says which values are right: {' and '.join(ways)} alone gives them",
                    got="no sample with results=", wanted="a value that is known from elsewhere",
                    todo=f"give results= in a sample, from mathematics or NumPy; {more}")


def _ways(primitive: Primitive) -> Iterator[str]:
    """The hooks that give values here and aren't derived from each other."""
    given = {hook for hook, who in primitive.providers.items() if who != "derived"}
    yield from [hook for hook in ("impl", "decompose", "evaluate") if hook in given]
    if given & {"xla_translation", f"xla_translation@{default_platform()}"}:
        yield "xla_translation"


@check("samples")
def each_param_has_two_values(case: Case) -> None:
    """Each param has at least two values over the samples: a rule that never reads it would pass with one."""
    _stand_for_all(case)
    if not case.primitive.params:
        raise NotApplicable("it has no params")
    taken = [sample.params for sample in case.samples if sample.error is None]
    alone = [name for name in sorted(case.primitive.params)
             if _is_plain(taken[0][name]) and len({_key(params[name]) for params in taken}) == 1]
    if alone:
        raise case.fail("samples", f"the param {alone[0]!r} has the same value in all samples",
                        got=", ".join([f"{name}={clipped(taken[0][name])}" for name in alone]),
                        wanted="samples with another value, or both of a bool",
                        todo="change it in a sample; if no other value is right, exempt a sample, with the reason")


def _is_plain(value: object) -> bool:
    if isinstance(value, (tuple, frozenset)):
        return all([_is_plain(item) for item in value])
    return isinstance(value, _PLAIN)


def _key(value: object) -> Any:
    return param_key({"": value})


def _stand_for_all(case: Case) -> None:
    """Go on for one sample only: an exempt one, as it speaks for all, or else the first."""
    taken = [sample for sample in case.samples if sample.error is None]
    exempt = [sample for sample in taken if case.check in sample.exempt]
    if case.sample is not (exempt or taken)[0]:
        raise NotApplicable("another sample stands for all")
