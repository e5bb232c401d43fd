"""Checks of narrow types: values, derivatives and maps of float32, bfloat16 and complex64 are those of doubles.

Both are computed at operands that the narrow type has exactly, so that they differ by rounding alone. How much that may
be is found by experiment: as much as the doubles' result moves if operands and tangents move by the narrow precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from corejax import jvp, vjp
from corejax.core import as_value, aval_of, dtypes
from corejax.errors import CorejaxNotImplementedError
from corejax_testing.batches import another, random_dims, stacked
from corejax_testing.batching import mapped_function
from corejax_testing.case import Case, of_some
from corejax_testing.check import check
from corejax_testing.comparing import eps_of, host
from corejax_testing.elementwise import LARGEST, is_elementwise
from corejax_testing.report import NotApplicable
from corejax_testing.tangents import beyond, chosen, finite, operands, points, regular, smooth, subsets, tangible
from corejax_testing.tolerances import ULPS

#: One list of numbers for each call: the operands, and what else goes in.
Rows = Sequence[Sequence[Any]]
Compute = Callable[[Case, Rows], list[Any]]

#: How many times the movement of the doubles' result is allowed.
_LOOSE = 16.0

#: By how many units operands move: all in one direction, which shows jumps, and at random, which shows cancellation.
_MOVES = (4.0, -4.0, 0.0, 0.0, 0.0)


@check("impl", costly=True)
def values_in_narrow_types_are_those_of_doubles(case: Case) -> None:
    """In float32, bfloat16 and complex64, values are those of doubles at the same operands, up to rounding."""
    def values(each: Case, rows: Rows) -> list[Any]:
        return each.apply(*rows[0])

    hook = "impl" if case.primitive.impl else "xla_translation" if case.primitive.decompose is None else "decompose"
    for narrow in _narrow(case):
        for args in _operands(case, narrow):
            _agree(case, narrow, values, [args], case.blamed(hook), "the value")


@check("jvp", costly=True)
def tangents_in_narrow_types_are_those_of_doubles(case: Case) -> None:
    """In float32, bfloat16 and complex64, jvp gives the tangents that it gives for doubles, up to rounding."""
    positions = tangible(case)
    for narrow in _narrow(case):
        for args in _operands(regular(case, positions), narrow):
            # Of a single operand, since a bfloat16 of the sum for several has hardly a digit of the smallest one.
            for part in subsets(positions)[:None if case.full else len(positions)]:
                def tangents(each: Case, rows: Rows, part: Sequence[int] = part) -> list[Any]:
                    given, vs = rows[0][:len(case.args)], rows[0][len(case.args):]
                    return list(jvp(smooth(each, part, given), chosen(given, part), vs)[1])

                vs = [narrow.direction(args[i]) for i in part]
                _agree(case, narrow, tangents, [[*args, *vs]], "jvp", f"the tangent along {operands(part)}")


@check("transpose", costly=True)
def cotangents_in_narrow_types_are_those_of_doubles(case: Case) -> None:
    """In float32, bfloat16 and complex64, pullbacks give the cotangents that they give for doubles, up to rounding."""
    positions = tangible(case)

    def cotangents(each: Case, rows: Rows) -> list[Any]:
        args, cts = rows[0][:len(case.args)], rows[0][len(case.args):]
        outs, pull = vjp(smooth(each, positions, args), *chosen(args, positions))
        return list(pull([_as(ct, out.dtype) for out, ct in zip(outs, cts, strict=True)]))

    for narrow in _narrow(case):
        for args in _operands(regular(case, positions, backward=True), narrow):
            outs = smooth(narrow, positions, args)(*chosen(args, positions))
            cts = [narrow.direction(out) for out in outs]
            _agree(case, narrow, cotangents, [[*args, *cts]], "transpose", f"the pullback to {operands(positions)}")


@check("vmap", costly=True)
def maps_in_narrow_types_are_those_of_doubles(case: Case) -> None:
    """In float32, bfloat16 and complex64, maps and their tangents are loops over the doubles, up to rounding."""
    if not case.args:
        raise NotApplicable("it has no operands")
    narrower = list(_narrow(case))
    positions, n = _differentiated(case), len(case.args)
    for narrow in narrower:
        for mapped in _subsets(case):
            dims = random_dims(case, mapped)
            first, *others = [list(_finite(narrow)), another(narrow), another(narrow)]
            rows = [first, *[[x if flag else y for x, y, flag in zip(row, first, mapped, strict=True)]
                             for row in others]]

            def values(each: Case, rows: Rows, narrow: Case = narrow, dims: Any = dims) -> list[Any]:
                if each is not narrow:
                    return _stacked([each.apply(*row) for row in rows])
                return mapped_function(each, dims)(*_batched(narrow, rows, dims))

            _agree(case, narrow, values, rows, "vmap", f"vmap with in_axes={dims}")
            if not positions or not all(mapped):
                continue

            def tangents(each: Case, rows: Rows, narrow: Case = narrow, dims: Any = dims) -> list[Any]:
                if each is not narrow:
                    return _stacked([jvp(smooth(each, positions, row[:n]), chosen(row, positions), row[n:])[1]
                                     for row in rows])
                function, args = mapped_function(each, dims), _batched(narrow, [row[:n] for row in rows], dims)
                vs = [stacked([row[n + k] for row in rows], aval_of(rows[0][n + k]), dims[i] or 0)
                      for k, i in enumerate(positions)]
                dots = jvp(of_some(function, positions, args), chosen(args, positions), vs)[1]
                return [dot for dot, aval in zip(dots, each.out_avals, strict=True) if dtypes.is_inexact(aval.dtype)]

            both = [[*row, *[narrow.direction(row[i]) for i in positions]] for row in rows]
            _agree(case, narrow, tangents, both, "vmap", f"the tangent of vmap with in_axes={dims}")


def _batched(case: Case, rows: Rows, dims: Sequence[int | None]) -> list[Any]:
    return [rows[0][i] if dim is None else stacked([row[i] for row in rows], aval, dim)
            for i, (aval, dim) in enumerate(zip(case.avals, dims, strict=True))]


def _stacked(results: Sequence[Sequence[object]]) -> list[np.ndarray]:
    return [np.stack([host(outs[i]) for outs in results]) for i in range(len(results[0]))]


def _subsets(case: Case) -> list[tuple[bool, ...]]:
    """Which operands to map: all of them, and then every other one."""
    n = len(case.args)
    return list(dict.fromkeys([(True,) * n, tuple([i % 2 == 0 for i in range(n)])]))


def _differentiated(case: Case) -> list[int]:
    """The operands to differentiate a map by; none if it has no derivative."""
    try:
        positions = tangible(case)
        regular(case, positions)
    except (NotApplicable, CorejaxNotImplementedError):
        return []
    return positions


# Operands

def _narrow(case: Case) -> Iterator[Case]:
    """The case in narrower types. The quick mode does with the largest of the samples alike."""
    if not case.largest and not case.full:
        raise NotApplicable("another sample represents this one")
    found = list(case.variants())[1:]
    if not found:
        raise NotApplicable("it takes no narrower type")
    # a function of bits instead of numbers gives results of another shape where there are fewer of them
    alike = [each for each in found if _shapes(each) == _shapes(case)]
    if not alike:
        raise NotApplicable("the shape of its result depends on the dtype of its operands")
    yield from alike


def _shapes(case: Case) -> list[tuple[int, ...]]:
    return [aval.shape for aval in case.out_avals]


def _operands(case: Case, narrow: Case) -> Iterator[list[Any]]:
    """Finite operands of the narrow types: the sample's, and some from its domain."""
    for k, each in enumerate(points(case)):
        if k < (4 if case.full else 2):
            yield [_as(x, aval.dtype) for x, aval in zip(each.args, narrow.avals, strict=True)]


def _finite(case: Case) -> Sequence[Any]:
    if not finite(case.args):
        raise NotApplicable("not all operands are finite")
    return case.args


def _as(x: Any, dtype: np.dtype) -> Any:
    return x if type(x) in dtypes.PYTHON_SCALARS or aval_of(x).dtype == dtype else as_value(host(x).astype(dtype))


_WIDE = {np.dtype(np.complex64): dtypes.complex128}


def _widened(x: Any, narrow: frozenset[np.dtype]) -> Any:
    """A number of one of the narrow types as a double; anything else unchanged."""
    dtype = aval_of(x).dtype
    return _as(x, _WIDE.get(dtype, dtypes.float64)) if dtype in narrow else x


# Comparing

def _agree(wide: Case, narrow: Case, compute: Compute, rows: Rows, hook: str, what: str) -> None:
    """Check that what is computed in the narrow types is, but for rounding, what it is in wide ones."""
    types = frozenset([b.dtype for a, b in zip(wide.avals, narrow.avals, strict=True) if a.dtype != b.dtype])
    got = compute(narrow, rows)
    doubles = [[_widened(x, types) for x in row] for row in rows]
    wanted = compute(wide, doubles)
    eps = max([eps_of(dtype) for dtype in types])
    moved = [compute(wide, [[_moved(wide, x, eps, units) for x in row] for row in doubles]) for units in _MOVES]
    elementwise = is_elementwise(wide)
    for k, (x, y) in enumerate(zip(wanted, got, strict=True)):
        atol = wide.atol + ULPS * eps * _size(doubles, host(x).shape if elementwise else None)
        found = _apart(host(x), host(y), [host(each[k]) for each in moved], eps, atol)
        if found:
            names = ", ".join([dtypes.long_name(dtype) for dtype in types])
            raise narrow.fail(hook, f"{what} in {names} is not the one of doubles", got=found,
                              wanted="the same, to the precision of the type",
                              todo="let no rule depend on dtypes but for conversions; Sample(atol=...) allows more")


def _apart(wanted: np.ndarray, got: np.ndarray, moved: Sequence[np.ndarray], eps: float, atol: np.ndarray
           ) -> str | None:
    """None if a result in narrow types is as near to that in wide ones as can be expected; else what differs."""
    if wanted.shape != got.shape:
        return f"the shape {got.shape} instead of {wanted.shape}"
    if wanted.dtype == dtypes.float0 or not wanted.size:
        return None
    if not dtypes.is_inexact(wanted.dtype):
        steady = np.all([wanted == each for each in moved], axis=0)
        ours, theirs = [np.where(steady, x, 0).ravel().astype(np.float64) for x in (wanted, got)]
        return beyond([wanted], ours, theirs, np.zeros(wanted.size))
    kind = np.complex128 if dtypes.is_complex(wanted.dtype) else np.float64
    info: Any = ml_dtypes.finfo(np.dtype(got.real.dtype))  # type: ignore[no-untyped-call]
    eps = max(eps, float(info.eps))
    w, g, *others = [np.asarray(x).astype(kind) for x in (wanted, got, *moved)]
    with np.errstate(all="ignore"):
        sizes = np.abs(w)
        spread = np.max([np.abs(x - w) / max(abs(units), 1.0) for x, units in zip(others, _MOVES, strict=True)], axis=0)
        comparable = np.isfinite(w) & np.isfinite(spread) & (sizes < float(info.max) / 16)
        largest = float(sizes[comparable].max(initial=0.0))
        tolerance = ULPS * eps * (sizes + largest) + _LOOSE * spread + atol
    return beyond([wanted], *[np.where(comparable, x, 0).ravel() for x in (w, g, tolerance)])


def _moved(case: Case, x: Any, eps: float, units: float) -> Any:
    """A floating operand with each element some rounding errors off, 0 for one at random; anything else unchanged."""
    if type(x) in dtypes.PYTHON_SCALARS or not dtypes.is_inexact(aval_of(x).dtype):
        return x
    x = host(x)
    signs = units or case.rng.choice([-1.0, 1.0], x.shape)
    return np.asarray(x * (1 + eps * signs)).astype(x.dtype)


def _size(rows: Rows, shape: tuple[int, ...] | None) -> np.ndarray:
    """The size of what goes in: at the same place for an elementwise function's results of a shape, else altogether."""
    sizes = [[np.abs(host(x)).astype(np.float64) for x in row if dtypes.is_inexact(aval_of(x).dtype)] for row in rows]
    if shape is not None:
        inner = shape if len(rows) == 1 else shape[1:]
        alike = [[np.broadcast_to(x, inner) for x in row if x.shape in ((), inner)] for row in sizes]
        if all(alike):
            return np.asarray(np.minimum([np.max(row, axis=0) for row in alike], LARGEST)).reshape(shape)
    return np.asarray(min(max([float(np.sqrt(sum([np.square(x).sum() for x in row]))) for row in sizes]), LARGEST))
