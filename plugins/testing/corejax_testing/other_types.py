"""The check of dtypes that no sample has: what abstract_eval accepts must work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from corejax import jit, jvp, vmap
from corejax.core import ShapedArray, aval_of, dtypes
from corejax.errors import CorejaxError, CorejaxNotImplementedError, RuleError
from corejax.ir import subjaxprs
from corejax_testing.case import Case
from corejax_testing.check import check
from corejax_testing.comparing import host
from corejax_testing.probing import is_native, is_one_of, lowered
from corejax_testing.report import Mismatch, NotApplicable
from corejax_testing.values import check_types, compare

#: The dtypes that are tried: of the many 8-bit floats, only the two most common; of integers, those that promote.
_TRIED = [dtype for dtype in dtypes.ALL if dtype is not dtypes.float0 and dtypes.kind(dtype) != "E"
          and (not dtypes.is_float(dtype) or dtype.itemsize > 1) and dtypes.bits_of(dtype) >= 8] + [
    dtypes.canonical(ml_dtypes.float8_e4m3fn), dtypes.canonical(ml_dtypes.float8_e5m2)]

#: A hook, and a function of arrays of some types, in which it takes part.
Program: TypeAlias = tuple[str, Sequence[ShapedArray], Callable[..., Any]]

_DONE = {"xla_translation": "lowered", "vmap": "mapped", "jvp": "differentiated", "impl": "evaluated"}

_TODO = "refuse the dtype in abstract_eval, or let the rule take it"


@check("impl")
def every_dtype_that_is_accepted_works(case: Case) -> None:
    """If `abstract_eval` accepts other dtypes, they are computed with, mapped and differentiated.

    The quick mode lowers all and compiles for one of each kind, such as integers, that no sample has.
    """
    if not case.largest or not is_one_of(case, 1):
        raise NotApplicable("another sample represents this one")
    if any(True for _ in subjaxprs(case.params)):
        raise NotApplicable("the program in its params says what it takes")
    variants = list(_accepted(case))
    if not variants:
        raise NotApplicable("it takes no others")
    native = is_native(_lower(case, variants))
    if case.primitive.impl is not None:
        for variant, dtype in variants:
            check_types(variant, "impl", _evaluated(variant, dtype))
    known = {dtypes.kind(aval_of(x).dtype) for sample in case.samples if sample.error is None for x in sample.args}
    new = {dtypes.kind(dtype): variant for variant, dtype in reversed(variants) if dtypes.kind(dtype) not in known}
    if case.full:
        _compile(case, [variant for variant, dtype in variants if not native or dtypes.kind(dtype) in known])
    elif not native:
        _compile(case, list(new.values()))


def _accepted(case: Case) -> Iterator[tuple[Case, np.dtype]]:
    """The case with all operands of a dtype in another one, where abstract_eval accepts that."""
    given = dict.fromkeys([aval.dtype for x, aval in zip(case.args, case.avals, strict=True)
                           if type(x) not in dtypes.PYTHON_SCALARS and dtypes.kind(aval.dtype) != "E"])
    for old in given:
        for new in _TRIED:
            if new == old:
                continue
            variant = case.with_args([_converted(x, old, new) for x in case.args])
            if variant.is_accepted():
                yield variant, new


def _converted(x: Any, old: np.dtype, new: np.dtype) -> Any:
    """An operand of a dtype in another one; floats as whole numbers if that has no others."""
    if type(x) in dtypes.PYTHON_SCALARS or aval_of(x).dtype != old:
        return x
    values = host(x)
    if dtypes.is_complex(old) and not dtypes.is_complex(new):
        values = values.real
    if dtypes.is_inexact(old) and not dtypes.is_inexact(new):
        values = np.nan_to_num(np.rint(3.0 * values.astype(np.float64)))
    if new == np.bool_:
        return values > 0
    return (np.abs(values) if dtypes.kind(new) == "u" else values).astype(new)


def _lower(case: Case, variants: Sequence[tuple[Case, np.dtype]]) -> Any:
    """One module of all variants with their maps and derivatives; fails if one can't be staged or lowered."""
    programs = [(variant, dtype, each) for variant, dtype in variants for each in _programs(variant)]

    def whole(*args: Any) -> list[Any]:
        given, outs = iter(args), list[Any]()
        for _, _, (_, avals, function) in programs:
            outs += function(*[next(given) for _ in avals])
        return outs

    try:
        return lowered(whole, [aval for _, _, (_, avals, _) in programs for aval in avals], case.primitive.name)
    except Exception:  # one by one they show whose fault it is
        module: Any = ""
        for variant, dtype, (hook, avals, function) in programs:
            try:
                module = lowered(function, avals, case.primitive.name)
            except Exception as error:
                if hook == "xla_translation" or not _is_refusal(error):
                    raise _broken(variant, getattr(error, "hook", None) or hook, _DONE[hook], dtype, error) from error
        return module


def _programs(case: Case) -> list[Program]:
    """The primitive; where the dtype matters to other rules as well, its map and its derivative."""
    found: list[Program] = [("xla_translation", case.avals, case.apply)]
    if case.full or any([aval.dtype == np.float16 for aval in case.avals]):
        if case.avals:
            batched = [aval.update(shape=(2, *aval.shape), weak_type=False) for aval in case.avals]
            found.append(("vmap", batched, vmap(case.apply)))
        if case.inexact and any([dtypes.is_inexact(aval.dtype) for aval in case.out_avals]):
            found.append(("jvp", [*case.avals, *[case.avals[i] for i in case.inexact]], _derivative(case)))
    return found


def _derivative(case: Case) -> Any:
    def derivative(*args: Any) -> list[Any]:
        xs, n = args[:len(case.args)], len(case.args)
        return [dot for dot, aval in zip(
            jvp(case.function_of(case.inexact, xs), [xs[i] for i in case.inexact], args[n:])[1], case.out_avals,
            strict=True) if dtypes.is_inexact(aval.dtype)]
    return derivative


def _is_refusal(error: Exception) -> bool:
    """Whether it says what can't be had, as other checks ask for, rather than stumbling."""
    if isinstance(error, CorejaxNotImplementedError):
        return True
    return isinstance(error, CorejaxError) and not isinstance(error, RuleError) and error.todo is not None


def _evaluated(case: Case, dtype: np.dtype) -> list[Any]:
    try:
        return case.apply(*case.args)
    except Exception as error:
        raise _broken(case, "impl", "evaluated", dtype, error) from error


def _compile(case: Case, variants: Sequence[Case]) -> None:
    """Compare evaluating and compiling: in the quick mode with one program for all."""
    for group in [[variant] for variant in variants] if case.full else [variants] * bool(variants):
        def program(operands: Sequence[Sequence[Any]], group: Sequence[Case] = group) -> list[list[Any]]:
            return [variant.apply(*args) for variant, args in zip(group, operands, strict=True)]

        results = jit(program)([list(variant.args) for variant in group])
        for variant, outs in zip(group, results, strict=True):
            if case.primitive.impl is not None:
                compare(variant, variant.apply(*variant.args), outs)
            else:
                check_types(variant, "xla_translation", outs)


def _broken(case: Case, hook: str, done: str, dtype: np.dtype, error: Exception) -> Mismatch:
    cause = error.__cause__ or error
    got = error.message if isinstance(error, CorejaxError) else f"{type(cause).__name__}: {cause}"
    return case.fail(hook, f"it accepts {dtypes.long_name(dtype)}, which can't be {done}",
                     got=got, wanted=f"{', '.join(map(str, case.avals))} to work, or to be refused", todo=_TODO)
