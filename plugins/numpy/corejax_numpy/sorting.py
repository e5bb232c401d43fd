"""Order: sorted elements and their places, and places among sorted ones."""

# mypy: no-warn-return-any
# What roles return has no type that a checker knows.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax import lax
from corejax.core import Array, ArrayLike, DTypeLike, aval_of, dtypes
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import directly, operators, refused, shaping
from corejax_lax_basic import of_one_dtype
from corejax_numpy._arrays import array
from corejax_numpy._choices import plain_axis
from corejax_numpy._in_memory import order as in_memory_order
from corejax_numpy._picking import operand
from corejax_numpy._searching import places_among

__all__ = ["argpartition", "argsort", "lexsort", "partition", "searchsorted", "sort", "sort_complex"]


@directly(in_memory_order.sort)
def sort(a: ArrayLike, axis: int | None = -1, kind: str | None = None, order: None = None, *,
         stable: bool | None = True,
         descending: bool = False) -> Array:
    """The elements in rising order along an axis, or of the flattened array if it is None; NaN comes last.

    Falling ones if `descending`: NaN comes first. Every sort is stable.

    >>> jnp.sort(jnp.array([3.0, 1.0, 2.0]))
    Array([1., 2., 3.], dtype=float64)
    """
    falling = _falling("sort", descending)
    found = operators.sort(array(a), axis, kind, order, stable=stable)
    return lax.rev(found, (_axis_of(found, axis),)) if falling else found


@directly(in_memory_order.argsort)
def argsort(a: ArrayLike, axis: int | None = -1, kind: str | None = None, order: None = None, *,
            stable: bool | None = True, descending: bool = False, dtype: DTypeLike | None = None) -> Array:
    """The places to take the elements from to have them in order, as by `sort`; those of equal elements rise.

    >>> jnp.argsort(jnp.array([3.0, 1.0, 2.0]))
    Array([1, 2, 0], dtype=int64)
    """
    falling = _falling("argsort", descending)
    x, at = plain_axis("argsort", array(a), None if not aval_of(array(a)).ndim and axis in (0, -1) else axis)
    found = operators.argsort(lax.rev(x, (at,)) if falling else x, at, kind, order, stable=stable)
    if falling:
        found = lax.rev(aval_of(x).shape[at] - 1 - found, (at,))
    return found if dtype is None else operators.astype(found, dtype)


def _falling(name: str, descending: Any) -> bool:
    return shaping.as_flag(name, "descending", descending)


def _axis_of(x: Any, axis: int | None) -> int:
    return shaping.canonical_axis("sort", 0 if axis is None else axis, aval_of(x).ndim)


@directly(in_memory_order.lexsort, sequences=1)
def lexsort(keys: ArrayLike | Sequence[ArrayLike], axis: int = -1) -> Array:
    """The places in the order of the last key; of those that it leaves equal, in the order of the one before it.

    >>> jnp.lexsort((jnp.array([1, 2, 0]), jnp.array([5, 4, 5])))
    Array([1, 2, 0], dtype=int64)
    """
    parts = [array(key) for key in (keys if isinstance(keys, (list, tuple)) else list(array(keys)))]
    if not parts:
        raise refused("lexsort", "there is no key", got="an empty sequence", wanted="at least one key",
                      todo="pass a sequence of arrays; the last is the primary key")
    if any([aval_of(part).shape != aval_of(parts[0]).shape for part in parts]):
        raise refused("lexsort", "the keys differ in shape", got=[str(aval_of(part)) for part in parts],
                      wanted="keys of one shape", todo="broadcast them first", kind=CorejaxValueError)
    aval = aval_of(parts[0])
    if not aval.ndim:
        return lax.full((), 0, dtypes.default_dtype("i"))
    at = shaping.canonical_axis("lexsort", axis, aval.ndim)
    places = lax.broadcasted_iota(dtypes.default_dtype("i"), aval.shape, at)
    return lax.sort((*reversed(parts), places), at, num_keys=len(parts))[-1]


@directly(in_memory_order.partition)
def partition(a: ArrayLike, kth: int | Sequence[int], axis: int | None = -1, kind: str = "introselect",
              order: None = None) -> Array:
    """The elements with no larger one before the k-th of the sorted ones, and no smaller one after it; NaN comes last.

    They are sorted, in fact.

    >>> jnp.partition(jnp.array([3.0, 1.0, 2.0]), 1)
    Array([1., 2., 3.], dtype=float64)
    """
    x, at = plain_axis("partition", array(a), axis)
    _check_kth("partition", kth, x, at, kind, order)
    return operators.sort(x, at)


@directly(in_memory_order.argpartition)
def argpartition(a: ArrayLike, kth: int | Sequence[int], axis: int | None = -1, kind: str = "introselect",
                 order: None = None) -> Array:
    """The places to take the elements from to have them partitioned by the k-th of the sorted ones.

    >>> jnp.argpartition(jnp.array([3.0, 1.0, 2.0]), 1)
    Array([1, 2, 0], dtype=int64)
    """
    x, at = plain_axis("argpartition", array(a), axis)
    _check_kth("argpartition", kth, x, at, kind, order)
    return operators.argsort(x, at)


def _check_kth(name: str, kth: Any, x: Any, at: int, kind: Any, order: Any) -> None:
    size = aval_of(x).shape[at]
    for k in shaping.as_ints(name, "kth", kth):
        if not -size <= k < size:
            raise refused(name, f"there is no element {k} among {size}", got=f"kth={k}", kind=CorejaxValueError,
                          wanted=f"a place from {-size} to {size - 1}", todo="pass a place that the axis has")
    if kind != "introselect" or order is not None:
        raise refused(name, "there is no such way to partition", got=f"kind={kind!r}, order={order!r}",
                      wanted="kind='introselect', order=None", todo="leave them out", kind=CorejaxValueError)


@directly(in_memory_order.sort_complex)
def sort_complex(a: ArrayLike) -> Array:
    """The elements as complex numbers, sorted by their real parts, then by their imaginary parts.

    >>> jnp.sort_complex(jnp.array([2.0, 1.0]))
    Array([1.+0.j, 2.+0.j], dtype=complex128)
    """
    x = array(a)
    dtype = dtypes.inexact(aval_of(x).dtype, aval_of(x).weak_type)
    if not dtypes.is_complex(dtype):
        dtype = dtypes.complex128 if dtype == dtypes.float64 else dtypes.complex64
    if not aval_of(x).ndim:
        raise refused("sort_complex", "a scalar has no axis to sort along", got=str(aval_of(x)),
                      wanted="at least one axis", todo="pass an array", kind=CorejaxValueError)
    return operators.sort(operators.astype(x, dtype))


@directly(in_memory_order.searchsorted, arrays=2)
def searchsorted(a: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *,
                 method: str = "scan") -> Array:
    """Where elements of `v` would be inserted into the sorted vector `a`: before equal ones, or after if "right".

    `sorter` has the places that sort `a`. Compiled, `method` is "scan", a loop of bisections; "scan_unrolled"; "sort",
    of both together; or "compare_all".

    >>> jnp.searchsorted(jnp.array([1.0, 2.0, 2.0, 3.0]), jnp.array([2.0, 5.0]))
    Array([1, 4], dtype=int64)
    """
    a, v = [array(x) for x in of_one_dtype([array(a), operand(v)])]
    if aval_of(a).ndim != 1:
        raise refused("searchsorted", "what is searched must be a vector", got=str(aval_of(a)), wanted="one axis",
                      todo="map over the other axes with cj.vmap", kind=CorejaxValueError)
    if side not in ("left", "right"):
        raise refused("searchsorted", "there are two sides", got=f"side={side!r}", wanted="'left' or 'right'",
                      todo="'left' is before equal elements", kind=CorejaxValueError)
    if sorter is not None:
        order = array(sorter)
        if aval_of(order).shape != aval_of(a).shape or not dtypes.is_integer(aval_of(order).dtype):
            raise refused("searchsorted", "the sorter must have a place for each element", got=str(aval_of(order)),
                          wanted=f"integers of shape {aval_of(a).shape}", todo="pass jnp.argsort(a)",
                          kind=CorejaxTypeError)
        a = operators.getitem(a, order)
    found = places_among(a, v, side == "left", method, "searchsorted")
    return operators.astype(found, dtypes.default_dtype("i"))
