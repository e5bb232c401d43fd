"""Inverses of primitives that move elements about, and of loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from corejax import lax
from corejax.core import Jaxpr, aval_of, dtypes
from corejax.errors import CorejaxNotImplementedError
from corejax.plugin import carrying, transforming
from corejax_inverse._rules import Unknown, undo
from corejax_inverse._solving import solve

__all__ = ["BASIC", "CONTROL_FLOW", "REDUCTIONS"]


def _reshaped(out: Any, x: Unknown) -> Any:
    return lax.reshape(out, x.aval.shape)


def _transposed(out: Any, x: Unknown, *, permutation: Sequence[int]) -> Any:
    return lax.transpose(out, [int(i) for i in np.argsort(permutation)])


def _narrowed(out: Any, x: Unknown) -> Any:
    """The operand of a conversion that loses nothing."""
    wide, narrow = aval_of(out).dtype, x.aval.dtype
    if dtypes.kind(narrow) != "f" or dtypes.kind(wide) != "f" or not _holds_all(wide, narrow):
        raise CorejaxNotImplementedError(f"inverse: a conversion of {narrow} to {wide} may lose something",
                                         got=f"{narrow} to {wide}", wanted="floats, converted to wider ones",
                                         todo="convert before, or after the function")
    return lax.convert_element_type(out, narrow)


def _holds_all(wide: np.dtype, narrow: np.dtype) -> bool:
    """Whether a floating dtype has all numbers of another."""
    a, b = [ml_dtypes.finfo(dtype) for dtype in (wide, narrow)]  # type: ignore[no-untyped-call]
    return bool(a.nmant >= b.nmant and a.maxexp >= b.maxexp and a.minexp <= b.minexp)


def _pieces(out: Any, args: Sequence[Any], *, dimension: int) -> list[Any]:
    """The unknown ones among concatenated operands."""
    sizes = [(x.aval if type(x) is Unknown else aval_of(x)).shape[dimension] for x in args]
    ends = np.cumsum(sizes)
    return [lax.slice_in_dim(out, int(end) - size, int(end), axis=dimension)
            for x, size, end in zip(args, sizes, ends, strict=True) if type(x) is Unknown]


def _joined(out: Sequence[Any], args: Sequence[Any], *, dimension: int) -> list[Any]:
    return [lax.concatenate(list(out), dimension)]


def _complex_parts(out: Any, args: Sequence[Any]) -> list[Any]:
    if not all([x.aval.size == out.size for x in args if type(x) is Unknown]):
        raise CorejaxNotImplementedError("inverse: a number that is spread over an array has no inverse",
                                         got="an unknown scalar beside an array", wanted="operands of one shape",
                                         todo="broadcast what isn't known outside of the function")
    return [part(out) for part, x in zip((lax.real, lax.imag), args, strict=True) if type(x) is Unknown]


def _differences(out: Any, x: Unknown, *, axis: int, reverse: bool) -> Any:
    n = out.shape[axis]
    if not n:
        return out
    before = lax.slice_in_dim(out, 1, n, axis=axis) if reverse else lax.slice_in_dim(out, 0, n - 1, axis=axis)
    ends = [(0, 0, 0)] * out.ndim
    ends[axis] = (0, 1, 0) if reverse else (1, 0, 0)
    return out - lax.pad(before, lax.full_like(out, 0, shape=()), ends)


def scan(out: Sequence[Any], args: Sequence[Any], *, jaxpr: Jaxpr, num_consts: int, num_carry: int, reverse: bool,
         length: int, unroll: int) -> list[Any]:
    """A loop backward: each step gives the carry before it, and the slices that aren't known."""
    from corejax_inverse._transformation import INVERSE
    unknown = [type(x) is Unknown for x in args]
    if True in unknown[:num_consts]:
        raise CorejaxNotImplementedError("inverse: a loop whose constants are unknown has no inverse", hook="inverse",
                                         got="an unknown value that each step reads", wanted="one that is carried",
                                         todo="carry it, or pass a slice of it to each step")
    first = num_consts + num_carry
    of_xs = unknown[first:]
    consts = list(args[:num_consts])

    def step(carry: Any, slices: Any) -> tuple[list[Any], list[Any]]:
        ys, xs = slices
        given = iter(xs)
        inputs = [*consts, *[Unknown(aval) for aval in jaxpr.in_avals[num_consts:first]],
                  *[Unknown(aval) if flag else next(given)
                    for aval, flag in zip(jaxpr.in_avals[first:], of_xs, strict=True)]]
        found = solve(INVERSE, jaxpr, inputs, [*carry, *ys])
        return found[:num_carry], found[num_carry:]

    known_xs = carrying.marked(args[first:], [not flag for flag in of_xs])
    carry, xs = lax.scan(step, list(out[:num_carry]), (list(out[num_carry:]), known_xs), length=length,
                         reverse=not reverse, unroll=unroll)
    return [*carrying.marked(carry, unknown[num_consts:first]), *xs]


_ANY = "biufc"

BASIC = {
    "copy": undo(lambda out, x: out, kinds=_ANY, elementwise=False),
    "reshape": undo(_reshaped, kinds=_ANY, elementwise=False),
    "squeeze": undo(_reshaped, kinds=_ANY, elementwise=False),
    "transpose": undo(_transposed, kinds=_ANY, elementwise=False),
    "rev": undo(lambda out, x, *, dimensions: lax.rev(out, dimensions), kinds=_ANY, elementwise=False),
    "convert_element_type": undo(_narrowed, kinds=_ANY, elementwise=False),
    "concatenate": _pieces,
    "split": _joined,
    "complex": _complex_parts,
}
REDUCTIONS = {"cumsum": undo(_differences, kinds="iufc")}
CONTROL_FLOW = {
    "scan": scan,
    "while_loop": transforming.absent("how many steps it took isn't known from its result"),
}
