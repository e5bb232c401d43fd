"""Checks of values at the edges: NaN, infinities, signed zeros, subnormal and extreme numbers, extreme integers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from corejax import device_put, jit
from corejax.core import ShapedArray, dtypes
from corejax.ir import subjaxprs
from corejax_testing.case import Case
from corejax_testing.check import check
from corejax_testing.comparing import host, numbers, worst
from corejax_testing.report import NotApplicable
from corejax_testing.tolerances import distances, ulps_of

Pool = Callable[[ShapedArray], Sequence[Any] | None]

#: Of what compiling and evaluating give and the distances between them, the distances that count.
Apart = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]

#: How many calls have special values in every place, in the quick and in the full mode.
_DENSE = {False: 40, True: 400}

_TODO = "make impl agree with the compiled program, which is the reference; or exempt the sample, with the reason"


@check("impl")
def nans_and_infinities_agree(case: Case) -> None:
    """For NaN, infinities and ordinary numbers in all combinations, evaluating, compiling and decomposing agree."""
    def pool(aval: ShapedArray) -> Sequence[Any] | None:
        if dtypes.is_complex(aval.dtype):
            return [complex(np.nan, 0), complex(np.inf, 0), complex(0, -np.inf), 0.0, 1.0, 1 + 2j]
        return [np.nan, np.inf, -np.inf, 0.0, 1.0, -1.0, 2.5, 0.5] if dtypes.is_float(aval.dtype) else None

    _sweep(case, pool, _apart)
    _sweep_decomposition(case, pool)


@check("impl")
def zeros_keep_their_signs(case: Case) -> None:
    """For zeros of one sign or the other, resulting zeros have the same sign when evaluated and compiled.

    With zeros of both signs at once, either may count as the larger one.
    """
    def pool_with(zero: float) -> Pool:
        return lambda aval: [zero, 1.0, -1.0] if dtypes.is_float(aval.dtype) else None

    for zero in (0.0, -0.0):
        _sweep(case, pool_with(zero), _apart_or_opposite)


def _apart_or_opposite(wanted: np.ndarray, got: np.ndarray, distance: np.ndarray) -> np.ndarray:
    if not dtypes.is_float(wanted.dtype):
        return distance
    return np.where((wanted == 0) & (got == 0) & (np.signbit(wanted) != np.signbit(got)), np.inf, distance)


@check("impl")
def extreme_numbers_agree(case: Case) -> None:
    """For the largest floats, and the smallest that are far from subnormal, evaluating and compiling agree.

    Results that overflow may be infinite or NaN.
    """
    def pool(aval: ShapedArray) -> Sequence[Any] | None:
        if not dtypes.is_float(aval.dtype):
            return None
        info: Any = ml_dtypes.finfo(aval.dtype)  # type: ignore[no-untyped-call]
        large, tiny = info.max / 8, info.smallest_normal * 16  # so that reciprocals aren't subnormal
        return [large, -large, tiny, -tiny, info.eps, 1.0, -3.0]

    def apart(wanted: np.ndarray, got: np.ndarray, distance: np.ndarray) -> np.ndarray:
        both = ~np.isfinite(wanted) & ~np.isfinite(got) if dtypes.is_inexact(wanted.dtype) else False
        return np.where(both, 0.0, distance)

    _sweep(case, pool, apart)


@check("impl")
def subnormal_numbers_agree_or_count_as_zero(case: Case) -> None:
    """The compiled program may treat subnormal floats as zeros, or as numbers up to the smallest normal one."""
    def pool(aval: ShapedArray) -> Sequence[Any] | None:
        if not dtypes.is_float(aval.dtype):
            return None
        info: Any = ml_dtypes.finfo(aval.dtype)  # type: ignore[no-untyped-call]
        return [info.smallest_subnormal, -info.smallest_subnormal, info.smallest_normal / 2, 1.0, -1.0]

    _sweep(case, pool, _apart, rounded=(0, 1))


@check("impl")
def extreme_integers_agree(case: Case) -> None:
    """For the smallest and the largest integers, and both booleans, evaluating and compiling agree."""
    def pool(aval: ShapedArray) -> Sequence[Any] | None:
        if aval.dtype == dtypes.bool_:
            return [False, True]
        if not dtypes.is_integer(aval.dtype):
            return None
        info = np.iinfo(aval.dtype)
        return list(dict.fromkeys([info.min, info.max, 0, 1, 2, 3, max(info.min, -1), info.max - 1,
                                   8 * aval.dtype.itemsize]))

    _sweep(case, pool, _apart)


def _sweep(case: Case, pool: Pool, apart: Apart, rounded: tuple[int, ...] = ()) -> None:
    """Compare evaluation with the compiled program on operands filled from pools of values.

    With `rounded`, results may also lie between those for subnormal operands rounded to these multiples of the smallest
    normal number.
    """
    _check_applicable(case, pool)
    for variant in case.variants():
        compiled = jit(variant.apply)
        tried = list(_operands(variant, pool))
        wanted = _stacked([compiled(*args) for args in tried])
        got = _stacked([variant.apply(*args) for args in tried])
        bounds = [_stacked([variant.apply(*[_rounded(x, units) for x in args]) for args in tried]) for units in rounded]
        for i, (reference, mine) in enumerate(zip(wanted, got, strict=True)):
            distance = apart(reference, mine, distances(variant, reference, mine, tried))
            if bounds:
                distance = np.where(_between(reference, [results[i] for results in bounds]), 0.0, distance)
            limit = ulps_of(case)
            if distance.size and float(distance.max()) > limit:
                number = int(np.unravel_index(int(np.argmax(distance)), distance.shape)[0])
                shown = variant.with_args(tried[number])
                raise case.fail("impl", f"result {i} differs from the compiled program's for special values",
                                got=f"{worst(reference[number], mine[number], distance[number])} for "
                                    f"{_in_short(shown)}", wanted=f"at most {limit:g} ulps apart", todo=_TODO)


def _sweep_decomposition(case: Case, pool: Pool) -> None:
    """Check that `decompose`, which rules are derived from, agrees with evaluation, if that doesn't use it."""
    rules = case.primitive
    if rules.decompose is None or (rules.impl is None and rules.providers["xla_translation"] == "derived"):
        return
    limit = ulps_of(case)
    for args in itertools.islice(_operands(case, pool), _DENSE[case.full]):
        found = rules.decompose([device_put(x) if isinstance(x, np.ndarray) else x for x in args], **case.params)
        for i, (x, y) in enumerate(zip(case.apply(*args), found if rules.multiple_results else [found], strict=True)):
            distance = _apart(numbers(x), numbers(y), distances(case.with_args(args), x, y))
            if distance.size and float(distance.max()) > limit:
                raise case.fail("decompose", f"result {i} of decompose is different for special values",
                                got=f"{worst(x, y, distance)} for {_in_short(case.with_args(args))}",
                                wanted=f"at most {limit:g} ulps from what evaluation gives",
                                todo="fix decompose: maps and derivatives that are derived compute with it; "
                                     "or exempt the sample, with the reason")


def _check_applicable(case: Case, pool: Pool) -> None:
    if not any([pool(aval) and not case.keeps(i) for i, aval in enumerate(case.avals)]):
        raise NotApplicable("no operand takes such values")
    if any(True for _ in subjaxprs(case.params)):
        raise NotApplicable("it carries a program, which may loop forever with such values")
    if not case.representative or not any([aval.size for aval in case.out_avals]):
        raise NotApplicable("another sample represents this one")


def _operands(case: Case, pool: Pool) -> Iterator[list[Any]]:
    """Operands full of special values, in all combinations if there are few; then with a single special value each."""
    pools = [None if case.keeps(i) else pool(aval) for i, aval in enumerate(case.avals)]
    used = [i for i, values in enumerate(pools) if values]
    combinations = np.array(list(itertools.islice(itertools.product(*[range(len(pools[i] or ())) for i in used]),
                                                  100_000)))
    size = max([case.avals[i].size for i in used])
    rounds = min(-(-len(combinations) // max(size, 1)), _DENSE[case.full])
    order = case.rng.permutation(len(combinations))
    for k in range(rounds):
        chosen = combinations[order[np.arange(k * size, (k + 1) * size) % len(order)]]
        args = list(case.args)
        for column, i in enumerate(used):
            aval = case.avals[i]
            args[i] = _array(np.asarray(pools[i])[chosen[: aval.size, column]].reshape(aval.shape), aval)
        yield args
    for i in used:
        for value in pools[i] or ():
            yield _with_one(case, i, value)


def _with_one(case: Case, i: int, value: object) -> list[Any]:
    args = case.drawn()
    aval = case.avals[i]
    changed = np.array(host(args[i]), aval.dtype)
    if aval.size:
        changed.reshape(-1)[int(case.rng.integers(aval.size))] = value
    args[i] = changed
    return args


def _array(values: np.ndarray, aval: ShapedArray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(aval.dtype)


def _rounded(x: object, units: int) -> np.ndarray:
    """An array with subnormal numbers replaced by `units` times the smallest normal number, with their signs."""
    x = host(x)
    if not dtypes.is_float(x.dtype):
        return x
    info: Any = ml_dtypes.finfo(x.dtype)  # type: ignore[no-untyped-call]
    unit = x.dtype.type(info.smallest_normal * units)
    return np.where((np.abs(x) < info.smallest_normal) & (x != 0), np.copysign(unit, x), x).astype(x.dtype)


def _between(x: np.ndarray, bounds: Sequence[np.ndarray]) -> np.ndarray:
    """Which elements are between bounds, or equal to one."""
    if dtypes.is_complex(x.dtype):
        reals, imags = [bound.real for bound in bounds], [bound.imag for bound in bounds]
        return np.asarray(_between(x.real, reals) & _between(x.imag, imags))
    low, high = bounds
    one = (x == low) | (x == high) | (x != x) & ((low != low) | (high != high))  # with NaN
    return np.asarray(one | (np.minimum(low, high) <= x) & (x <= np.maximum(low, high)))


def _stacked(results: Sequence[Sequence[object]]) -> list[np.ndarray]:
    return [np.stack([numbers(outs[i]) for outs in results]) for i in range(len(results[0]))]


def _apart(wanted: np.ndarray, got: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Distances in ulps; complex numbers that aren't finite count as equal, whatever their parts."""
    if not dtypes.is_complex(wanted.dtype):
        return distance
    return np.where(~np.isfinite(wanted) & ~np.isfinite(got), 0.0, distance)


def _in_short(case: Case) -> str:
    return repr(case).partition(": ")[2]
