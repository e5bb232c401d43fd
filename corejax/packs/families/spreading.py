"""How rules deal with operands that spread (scalars beside arrays), in each transformation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.base.avals import Linear, ShapedArray, aval_of
from corejax.base.errors import CorejaxError, CorejaxTypeError
from corejax.installed.roles import roles
from corejax.packs import shaping

if TYPE_CHECKING:
    from corejax.xla.lowering.programs import Lowering


def spread(x: object, out: Any) -> Any:
    """`x`, broadcast to the shape of `out` if it has rank 0 and `out` doesn't."""
    shape = out.aval.shape
    return x if not shape or aval_of(x).shape == shape else roles.broadcast(x, shape, ())


def stretched(error: BaseException, operands: Sequence[Any]) -> list[Any] | None:
    """Refused operands of one rank, with axes of size 1 repeated to fit; None if that isn't what was wrong.

    Called when a primitive has refused them, so that operands of equal shapes, the usual ones, cost nothing.
    """
    if not isinstance(error, CorejaxTypeError):
        return None
    try:
        shapes = [aval_of(x).shape for x in operands]
    except CorejaxTypeError:  # one isn't an array, and that is what was wrong
        return None
    ranked = [shape for shape in shapes if shape]
    if len({*map(len, ranked)}) != 1 or len({*ranked}) == 1:
        return None
    sizes = [{*axis} - {1} or {1} for axis in zip(*ranked, strict=True)]
    if any([len(axis) > 1 for axis in sizes]):
        return None
    common = tuple([size for axis in sizes for size in axis])
    return [roles.broadcast(x, common, tuple(range(len(common)))) if shape and shape != common else x
            for x, shape in zip(operands, shapes, strict=True)]


def unspread(ct: Any, operand: Linear) -> Any:
    """The cotangent of an operand that may have been spread: summed over the axes along which it was."""
    if operand.aval.shape or not ct.aval.shape:
        return ct
    return roles.sum_axes(ct, tuple(range(len(ct.aval.shape))))


def align(size: int, args: Sequence[object], dims: Sequence[int | None]) -> tuple[list[Any], int]:
    """The operands of a vmap rule in a form that the primitive takes, and where their batch axis is.

    They all have the batch axis at the same place, or rank 0. A batched scalar beside arrays becomes an array.
    """
    shapes = [aval_of(x).shape for x in args]
    rank = max([len(s) - (d is not None) for s, d in zip(shapes, dims, strict=True)])
    dim, full = 0, None
    for s, d in zip(shapes, dims, strict=True):
        if len(s) - (d is not None) == rank:
            if d is not None:
                dim, full = d, s
                break
            full = full or (size, *s)
    out: list[Any] = []
    for x, s, d in zip(args, shapes, dims, strict=True):
        if d is None:
            out.append(roles.expand(x, size, dim) if s else x)
        elif len(s) == rank + 1:
            out.append(x if d == dim else roles.move_axis(x, d, dim))
        else:
            out.append(roles.broadcast(x, full, (dim,)))
    return out, dim


def spread_operands(ctx: Any, args: Sequence[Any]) -> Sequence[Any]:
    """In a lowering: the values, with those of rank 0 broadcast to the result's shape."""
    eqn = ctx.eqn
    shape = eqn.outvars[0].aval.shape
    if not shape:
        return args
    out = list(args)
    for i, atom in enumerate(eqn.invars):
        if not atom.aval.shape:
            out[i] = _repeat(ctx, args[i], ShapedArray(shape, atom.aval.dtype))
    return out


def constant_like(ctx: Any, value: Any, aval: ShapedArray | None = None) -> Any:
    """In a lowering: a constant array filled with this number, of the first operand's type or another."""
    aval = aval or ctx.eqn.invars[0].aval
    scalar = ctx.constant(np.asarray(value).astype(aval.dtype))
    return _repeat(ctx, scalar, aval) if aval.shape else scalar


def _repeat(ctx: Lowering, scalar: object, aval: ShapedArray) -> Any:
    return ctx.op("stablehlo.broadcast_in_dim", [scalar],
                  {"broadcast_dimensions": ctx.ir.DenseI64ArrayAttr.get([])}, [ctx.type_of(aval)])


def common_shape(name: str, avals: Sequence[ShapedArray]) -> tuple[int, ...]:
    """The common shape of the operands that don't spread."""
    shape: tuple[int, ...] = ()
    for aval in avals:
        if aval.shape != shape and aval.shape:
            if shape:
                raise refused(name, "operands differ in shape", avals, "equal shapes, or scalars beside them",
                              "broadcast with lax.broadcast_in_dim; Python's operators broadcast by themselves")
            shape = aval.shape
    return shape


def refused(name: str, problem: str, avals: Sequence[ShapedArray], wanted: str, todo: str) -> CorejaxError:
    """The error for operands that the primitive `name` doesn't take."""
    return shaping.refused(name, problem, got=[*avals], wanted=wanted, todo=todo)
