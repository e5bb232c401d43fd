"""Arrays joined along axes they have, or along new ones."""

# mypy: no-warn-return-any

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, DTypeLike, dtypes
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import directly, operators, public, refused, shaping
from corejax_lax_basic import of_one_dtype
from corejax_numpy._arrays import array, no_out
from corejax_numpy._picking import operand
from corejax_numpy._values import constant
from corejax_numpy.shaping import atleast_1d, atleast_2d, atleast_3d

__all__ = ["append", "block", "column_stack", "concat", "concatenate", "dstack", "hstack", "stack", "unstack", "vstack"]


def _operands(name: str, arrays: Any, dtype: DTypeLike | None = None, casting: str = "same_kind",
              prepare: Callable[[Any], Any] = array) -> list[Any]:
    """The arrays of a sequence in one dtype: in the one asked for, or else in their common one."""
    if isinstance(arrays, (np.ndarray, Array)) and arrays.ndim:
        arrays = array(arrays)
        arrays = lax.unstack(arrays) if arrays.shape[0] else []
    if not isinstance(arrays, (list, tuple)) and not isinstance(arrays, Sequence):
        raise refused(name, "a sequence of arrays is needed", got=type(arrays).__name__,
                      wanted="a list or tuple of arrays", todo="put them in a list", kind=CorejaxTypeError)
    operands = [operand(x) for x in arrays]
    if not operands:
        raise refused(name, "there is nothing to join", got="no arrays", wanted="at least one array",
                      todo="pass a non-empty sequence", kind=CorejaxValueError)
    # Each is converted to the dtype asked for from its own: their common one may be wider than both.
    operands = of_one_dtype(operands) if dtype is None else [_cast(name, x, dtype, casting) for x in operands]
    return [prepare(x) for x in operands]


def _cast(name: str, x: Any, dtype: DTypeLike, casting: str) -> Any:
    if type(x) is int:
        return constant(name, x, dtypes.canonical(dtype))
    x = array(x)
    if casting != "unsafe":
        from corejax_numpy.types import can_cast

        if not can_cast(x.dtype, dtype, casting):
            raise refused(name, f"{x.aval} isn't cast to another kind of numbers", got=f"casting={casting!r}",
                          wanted=f"{casting} casts", todo="pass casting='unsafe', or convert the arrays first")
    return operators.astype(x, dtype)


# Along an axis

_joined = directly(lambda arrays, axis=0: np.concatenate(arrays, axis), sequences=1)


@_joined
def _concatenated(arrays: Any, axis: Any = 0) -> Any:
    return _along(_operands("concatenate", arrays), axis)


def _along(operands: list[Any], axis: int | None) -> Any:
    if axis is None:
        operands, axis = [operators.ravel(x) for x in operands], 0
    if not operands[0].ndim:
        raise refused("concatenate", "arrays without axes can't be joined along one",
                      got=[x.aval for x in operands][:6],
                      wanted="at least one axis", todo="use jnp.stack or jnp.hstack", kind=CorejaxValueError)
    return lax.concatenate(operands, shaping.canonical_axis("concatenate", axis, operands[0].ndim))


@public
def concatenate(arrays: Any, axis: int | None = 0, dtype: DTypeLike | None = None, *, out: None = None,
                casting: str = "same_kind") -> Array:
    """Arrays one after the other along an axis they have; without one, all their elements.

    >>> concatenate([jnp.zeros(2), jnp.ones(1)])
    Array([0., 0., 1.], dtype=float64)
    """
    no_out("concatenate", out)
    if dtype is None:
        return _concatenated(arrays, axis)
    return _along(_operands("concatenate", arrays, dtype, casting), axis)


@public
def concat(arrays: Any, /, *, axis: int | None = 0, out: None = None, dtype: DTypeLike | None = None,
           casting: str = "same_kind") -> Array:
    """Arrays one after the other along an axis they have; without one, all their elements.

    >>> concat([jnp.zeros((1, 2)), jnp.ones((1, 2))], axis=1)
    Array([[0., 0., 1., 1.]], dtype=float64)
    """
    return concatenate(arrays, axis, dtype, out=out, casting=casting)


@directly(lambda arr, values, axis=None: np.append(arr, values, axis), arrays=2)
def append(arr: Any, values: Any, axis: int | None = None) -> Array:
    """One array after the other along an axis; without one, all their elements.

    >>> append(jnp.array([1, 2]), 3)
    Array([1, 2, 3], dtype=int64)
    """
    return _along(_operands("append", [arr, values]), axis)


# By what they look like

@directly(lambda tup: np.vstack(tup), sequences=1)
def _vstacked(tup: Any) -> Any:
    return _along(_operands("vstack", tup, prepare=atleast_2d), 0)


@public
def vstack(tup: Any, dtype: DTypeLike | None = None, *, casting: str = "same_kind") -> Array:
    """Arrays one below the other; vectors are rows.

    >>> vstack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[1, 2],
           [3, 4]], dtype=int64)
    """
    return _vstacked(tup) if dtype is None else _along(_operands("vstack", tup, dtype, casting, atleast_2d), 0)


@directly(lambda tup: np.hstack(tup), sequences=1)
def _hstacked(tup: Any) -> Any:
    operands = _operands("hstack", tup, prepare=atleast_1d)
    return _along(operands, 0 if operands[0].ndim == 1 else 1)


@public
def hstack(tup: Any, dtype: DTypeLike | None = None, *, casting: str = "same_kind") -> Array:
    """Arrays side by side: vectors one after the other, others along their second axis.

    >>> hstack([jnp.array([1, 2]), 3])
    Array([1, 2, 3], dtype=int64)
    """
    if dtype is None:
        return _hstacked(tup)
    operands = _operands("hstack", tup, dtype, casting, atleast_1d)
    return _along(operands, 0 if operands[0].ndim == 1 else 1)


@directly(lambda tup: np.dstack(tup), sequences=1)
def dstack(tup: Any, dtype: DTypeLike | None = None) -> Array:
    """Arrays one behind the other, along the third axis.

    >>> dstack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[[1, 3],
            [2, 4]]], dtype=int64)
    """
    return _along(_operands("dstack", tup, dtype, prepare=atleast_3d), 2)


@directly(lambda tup: np.column_stack(tup), sequences=1)
def column_stack(tup: Any) -> Array:
    """Arrays side by side; vectors are columns.

    >>> column_stack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[1, 3],
           [2, 4]], dtype=int64)
    """
    return _along(_operands("column_stack", tup, prepare=_column), 1)


def _column(x: Any) -> Any:
    x = array(x)
    return x if x.ndim > 1 else lax.reshape(x, (x.size, 1))


# Along a new axis

@directly(lambda arrays, axis=0: np.stack(arrays, axis), sequences=1)
def _stacked(arrays: Any, axis: int = 0) -> Any:
    return _along_new(_operands("stack", arrays), axis)


def _along_new(operands: list[Any], axis: int) -> Any:
    return lax.stack(operands, shaping.canonical_axis("stack", axis, operands[0].ndim + 1))


@public
def stack(arrays: Any, axis: int = 0, out: None = None, dtype: DTypeLike | None = None, *, casting: str = "same_kind"
          ) -> Array:
    """Arrays of one shape along a new axis.

    >>> stack([jnp.zeros(2), jnp.ones(2)], axis=1)
    Array([[0., 1.],
           [0., 1.]], dtype=float64)
    """
    no_out("stack", out)
    return _stacked(arrays, axis) if dtype is None else _along_new(_operands("stack", arrays, dtype, casting), axis)


@directly(lambda x, axis=0: np.unstack(x, axis=axis))
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The parts of an array along an axis, which they don't have.

    >>> unstack(jnp.array([[1, 2], [3, 4]]))
    (Array([1, 2], dtype=int64), Array([3, 4], dtype=int64))
    """
    x = array(x)
    at = shaping.canonical_axis("unstack", axis, x.ndim)
    return lax.unstack(x, at) if x.shape[at] else ()


# From blocks

@directly(lambda arrays: np.block(arrays), sequences=32)
def block(arrays: Any) -> Array:
    """Blocks joined as nested lists say: the innermost along the last axis, those around along the one before it.

    >>> block([[jnp.eye(2), jnp.zeros((2, 1))], [jnp.ones((1, 3))]])
    Array([[1., 0., 0.],
           [0., 1., 0.],
           [1., 1., 1.]], dtype=float64)
    """
    depth = _depth(arrays)
    leaves: list[Any] = []
    _take(arrays, leaves)
    ndim = max([depth, *[x.ndim for x in leaves]])
    leaves = [x if isinstance(x, Array) else array(x) for x in of_one_dtype(leaves)]
    parts = iter([lax.reshape(x, (*[1] * (ndim - x.ndim), *x.shape)) for x in leaves])
    joined = _joined_blocks(arrays, parts, ndim - depth)
    return operators.copy(joined) if depth == 0 else joined


def _depth(blocks: Any) -> int:
    if isinstance(blocks, tuple):
        raise refused("block", "blocks are nested in lists", got="a tuple", wanted="lists, whose items are arrays",
                      todo="write [...] for (...)")
    if not isinstance(blocks, list):
        return 0
    depths = {_depth(part) for part in blocks}
    if len(depths) != 1:
        raise refused("block", "the lists aren't nested to one depth" if depths else "a list is empty",
                      got=repr(blocks)[:80],
                      wanted="arrays at one depth, and at least one in each list", todo="add brackets where some miss",
                      kind=CorejaxValueError)
    return 1 + depths.pop()


def _take(blocks: Any, leaves: list[Any]) -> None:
    if isinstance(blocks, list):
        for part in blocks:
            _take(part, leaves)
    else:
        leaves.append(array(blocks))


def _joined_blocks(blocks: Any, parts: Any, axis: int) -> Any:
    """The blocks of a list at one depth joined along an axis, those inside along the next one."""
    if not isinstance(blocks, list):
        return next(parts)
    return lax.concatenate([_joined_blocks(part, parts, axis + 1) for part in blocks], axis)
