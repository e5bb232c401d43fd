"""What a ufunc's methods compute: by a shorter way if the function has one, else by applying it step by step."""

# mypy: no-warn-return-any
# Roles return Any.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax import lax
from corejax.core import aval_of, dtypes
from corejax.errors import CorejaxIndexError, CorejaxValueError
from corejax.plugin import operators, refused, shaping
from corejax_numpy._arrays import array
from corejax_numpy._picking import pick
from corejax_numpy._values import constant, spread_to

__all__ = ["accumulate", "at", "outer", "reduce", "reduceat"]

Function = Callable[..., Any]


def reduce(f: Any, short: Function | None, a: Any, axis: Any, dtype: Any, keepdims: Any, initial: Any,
           where: Any) -> Any:
    """`ufunc.reduce`."""
    name, a = f"{f.__name__}.reduce", array(a)
    keepdims = shaping.as_flag(name, "keepdims", keepdims)
    axes = (*range(a.aval.ndim),) if axis is None else shaping.canonical_axes(name, axis, a.aval.ndim)
    if where is not None and initial is None and f.identity is None:
        raise refused(name, "it has no identity for elements that are left out", got="where=..., initial=None",
                      wanted="an initial value", todo="pass initial=...", kind=CorejaxValueError)
    if short is not None:
        return short(a, axes, dtype, keepdims, initial, where)
    moved, shape = _flattened(a, axes), a.aval.shape
    mask = None if where is None else _flattened(spread_to(operators.ne(array(where), 0), shape), axes)
    out = _combined(f, name, moved, dtype, initial, mask)
    return operators.reshape(out, tuple([1 if d in axes else n for d, n in enumerate(shape)])) if keepdims else out


def _flattened(a: Any, axes: tuple[int, ...]) -> Any:
    """The array with one axis for all of these, as the first."""
    rest = shaping.without(range(a.aval.ndim), axes)
    moved = operators.transpose(a, (*axes, *rest)) if a.aval.ndim else a
    count = 1
    for d in axes:
        count *= a.aval.shape[d]
    return operators.reshape(moved, (count, *shaping.without(a.aval.shape, axes)))


def _combined(f: Any, name: str, a: Any, dtype: Any, initial: Any, mask: Any) -> Any:
    """The elements along the first axis, combined from the first to the last."""
    size, rest = a.aval.shape[0], a.aval.shape[1:]
    a = _of_result_type(f, a, dtype)
    start = initial if initial is not None else f.identity
    if start is None and not size:
        raise refused(name, "it has no identity, so there is no result for no elements", got=str(a.aval),
                      wanted="at least one element", todo="pass initial=...", kind=CorejaxValueError)
    if start is None:
        carry, a = a[0], a[1:]
    else:
        carry = spread_to(constant(name, start, a.aval.dtype), rest)

    def step(found: Any, item: Any) -> tuple[Any, None]:
        x, kept = item if mask is not None else (item, None)
        new = operators.astype(f(found, x), found.aval.dtype)
        return (new if kept is None else pick(kept, new, found)), None
    if not a.aval.shape[0]:
        return carry
    return lax.scan(step, carry, a if mask is None else (a, mask))[0]


def _of_result_type(f: Any, a: Any, dtype: Any) -> Any:
    """The array in the dtype that the function's results have, and not weak, so that they can be its operands."""
    if dtype is None:
        one = operators.reshape(a, (a.aval.size,))[:1]
        dtype = aval_of(f(one, one)).dtype
    return operators.astype(a, dtypes.canonical(dtype))


def accumulate(f: Any, short: Function | None, a: Any, axis: Any, dtype: Any) -> Any:
    """`ufunc.accumulate`."""
    name, a = f"{f.__name__}.accumulate", array(a)
    axis = shaping.canonical_axis(name, axis, a.aval.ndim)
    if short is not None:
        return short(a, axis, dtype)
    a = _of_result_type(f, a, dtype)
    if not a.aval.size:
        return a
    moved = operators.swapaxes(a, 0, axis)

    def step(found: Any, x: Any) -> tuple[Any, Any]:
        new = operators.astype(f(found, x), found.aval.dtype)
        return new, new
    _, later = lax.scan(step, moved[0], moved[1:])
    return operators.swapaxes(lax.concatenate([moved[:1], later], 0), 0, axis)


def reduceat(f: Any, short: Function | None, a: Any, indices: Any, axis: Any, dtype: Any) -> Any:
    """`ufunc.reduceat`."""
    name, a, indices = f"{f.__name__}.reduceat", array(a), array(indices)
    if indices.aval.ndim != 1 or not dtypes.is_integer(indices.aval.dtype):
        raise refused(name, "indices must be a vector of integers", got=str(indices.aval), wanted="one axis",
                      todo="pass a list of integers")
    axis = shaping.canonical_axis(name, axis, a.aval.ndim)
    if short is not None:
        return short(a, indices, axis, dtype)
    moved = operators.swapaxes(_of_result_type(f, a, dtype), 0, axis)
    size, rest = moved.aval.shape[0], moved.aval.shape[1:]
    if not size or not indices.aval.size:
        if indices.aval.size:
            raise refused(name, "there are no elements", got=str(a.aval), wanted="elements at the indices",
                          todo="pass no indices", kind=CorejaxIndexError)
        return operators.swapaxes(moved[:0], 0, axis)
    starts = pick(indices < 0, indices + size, indices)
    ends = lax.concatenate([starts[1:], lax.full((1,), size, starts.aval.dtype)], 0)
    columns = (indices.aval.size, *[1] * len(rest))

    def step(found: Any, item: Any) -> tuple[Any, None]:
        k, x = item
        inside = operators.reshape((k > starts) & (k < ends), columns)
        whole = lax.broadcast_in_dim(x, found.aval.shape, tuple(range(1, found.aval.ndim)))
        return pick(inside, operators.astype(f(found, whole), found.aval.dtype), found), None
    places = lax.iota(starts.aval.dtype, size)
    found, _ = lax.scan(step, moved[starts], (places, moved))
    return operators.swapaxes(found, 0, axis)


def at(f: Any, short: Function | None, a: Any, indices: Any, b: Any) -> Any:
    """`ufunc.at`, as a new array."""
    a = array(a)
    if short is not None:
        return short(a, indices, array(b))
    shape, dtype = a.aval.shape, a.aval.dtype
    places = operators.reshape(lax.iota(dtypes.default_dtype("i"), a.aval.size), shape)[indices]
    flat, count = operators.reshape(a, (a.aval.size,)), places.aval.size
    places, shape_there = operators.reshape(places, (count,)), places.aval.shape
    if not count:
        return a

    def changed(found: Any, k: Any, *other: Any) -> Any:
        new = operators.astype(array(f(found[k], *other)), dtype)
        return operators.at(found)[k].set(new), None
    if b is None:
        flat, _ = lax.scan(changed, flat, places)
    else:
        values = operators.reshape(spread_to(array(b), shape_there), (count,))
        flat, _ = lax.scan(lambda found, item: changed(found, *item), flat, (places, values))
    return operators.reshape(flat, shape)


def outer(f: Any, A: Any, B: Any) -> Any:
    """`ufunc.outer`."""
    A, B = array(A), array(B)
    return f(operators.reshape(A, (*A.aval.shape, *[1] * B.aval.ndim)), B)
