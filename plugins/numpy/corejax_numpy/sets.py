"""Sets of elements: distinct ones, members, unions and the like. With `size`, their number is static."""

# mypy: no-warn-return-any
# What roles return has no type that a checker knows.

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, aval_of, context, dtypes
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import directly, operators, refused, shaping
from corejax_lax_basic import of_one_dtype
from corejax_numpy._arrays import array
from corejax_numpy._choices import flat, fresh, known, size_of
from corejax_numpy._distinct import Distinct, distinct, repeats
from corejax_numpy._finding import count_of, first_places
from corejax_numpy._in_memory import order as in_memory_order, sets as in_memory_sets
from corejax_numpy._picking import operand
from corejax_numpy._searching import places_among
from corejax_numpy._values import constant, spread_to

__all__ = ["intersect1d", "isin", "setdiff1d", "setxor1d", "union1d", "unique", "unique_all", "unique_counts",
           "unique_inverse", "unique_values"]


class UniqueAll(NamedTuple):
    """What `unique_all` returns."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """What `unique_counts` returns."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """What `unique_inverse` returns."""

    values: Array
    inverse_indices: Array


@directly(in_memory_sets.unique, sizes_vary=True)
def unique(ar: ArrayLike, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
           axis: int | None = None, *, equal_nan: bool = True, size: int | None = None,
           fill_value: ArrayLike | None = None, sorted: bool = True) -> Array | tuple[Array, ...]:
    """The distinct elements in rising order, or the distinct parts along an axis.

    Flags ask for more: the first place of each, for each element the place among the distinct ones, and how often each
    is there. With `size`, that many are returned, filled up with `fill_value` (by default the least element): then the
    array may be traced.

    >>> jnp.unique(jnp.array([3, 1, 3]), return_counts=True)
    (Array([1, 3], dtype=int64), Array([1, 2], dtype=int64))
    >>> jnp.unique(jnp.array([3, 1, 3]), size=3, fill_value=0)
    Array([1, 3, 0], dtype=int64)
    """
    wants = [shaping.as_flag("unique", name, flag) for name, flag in (
        ("return_index", return_index), ("return_inverse", return_inverse), ("return_counts", return_counts))]
    x = array(ar)
    if size is None and axis is None and _is_plain(x) and equal_nan is True:
        return _plainly(np.unique(np.asarray(x), *wants))  # type: ignore[call-overload]
    found = _unique("unique", x, axis, shaping.as_flag("unique", "equal_nan", equal_nan), size, fill_value)
    more = [part for part, wanted in zip(found[1:], wants, strict=True) if wanted]
    return (found.values, *more) if more else found.values


def _is_plain(*arrays: Any) -> bool:
    """Whether NumPy can compute what isn't traced, and whose elements it can sort."""
    return context.trace.knows_values and all([type(x) is Array and x.aval.dtype.isbuiltin == 1 for x in arrays])


def _plainly(found: Any) -> Any:
    """New ndarrays as arrays; places in the default integer dtype."""
    if type(found) is not tuple:
        return fresh(found)
    default = dtypes.default_dtype("i")
    return (fresh(found[0]), *[fresh(part.astype(default, copy=False)) for part in found[1:]])


def _unique(name: str, x: Any, axis: Any, equal_nan: bool, size: Any, fill_value: Any) -> Distinct:
    if size is not None:
        return distinct(name, x, axis, equal_nan, size_of(name, size), fill_value)
    values = known(name, x)
    if values.dtype.isbuiltin != 1 or axis is not None:
        at = None if axis is None else shaping.canonical_axis(name, axis, values.ndim)
        probe = distinct(name, array(values), at, equal_nan, values.size if at is None else values.shape[at], 0)
        number = int(np.count_nonzero(np.asarray(probe.counts)))
        return distinct(name, x, axis, equal_nan, number, 0)
    plain, index, inverse, counts = np.unique(values, True, True, True, equal_nan=equal_nan)
    default = dtypes.default_dtype("i")
    exact = fresh(plain) if type(x) is Array else operators.getitem(flat(x), index)
    return Distinct(exact, *[fresh(part.astype(default, copy=False))
                             for part in (index, inverse.reshape(values.shape), counts)])


@directly(in_memory_sets.unique_all, sizes_vary=True)
def unique_all(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> UniqueAll:
    """The distinct elements, their first places, each element's place among them, and counts; NaN is never equal.

    >>> jnp.unique_all(jnp.array([3, 1, 3])).counts
    Array([1, 2], dtype=int64)
    """
    return UniqueAll(*_unique("unique_all", array(x), None, False, size, fill_value))


@directly(in_memory_sets.unique_counts, sizes_vary=True)
def unique_counts(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> UniqueCounts:
    """The distinct elements, and how often each is there; NaN is never equal.

    >>> jnp.unique_counts(jnp.array([3, 1, 3])).values
    Array([1, 3], dtype=int64)
    """
    found = _unique("unique_counts", array(x), None, False, size, fill_value)
    return UniqueCounts(found.values, found.counts)


@directly(in_memory_sets.unique_inverse, sizes_vary=True)
def unique_inverse(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> UniqueInverse:
    """The distinct elements, and the place among them of each element; NaN is never equal.

    >>> jnp.unique_inverse(jnp.array([3, 1, 3])).inverse_indices
    Array([1, 0, 1], dtype=int64)
    """
    found = _unique("unique_inverse", array(x), None, False, size, fill_value)
    return UniqueInverse(found.values, found.inverse)


@directly(in_memory_sets.unique_values, sizes_vary=True)
def unique_values(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The distinct elements; NaN is never equal.

    >>> jnp.unique_values(jnp.array([3, 1, 3]))
    Array([1, 3], dtype=int64)
    """
    return _unique("unique_values", array(x), None, False, size, fill_value).values


# Members

@directly(in_memory_order.isin, arrays=2)
def isin(element: ArrayLike, test_elements: ArrayLike, assume_unique: bool = False, invert: bool = False, *,
         kind: str | None = None, method: str = "auto") -> Array:
    """Whether each element is among the test elements; `invert` asks for the opposite.

    Compiled, `method` is "compare_all", "binary_search" or "sort"; "auto" chooses by their numbers.

    >>> jnp.isin(jnp.array([1, 2, 3]), jnp.array([3, 1]))
    Array([ True, False,  True], dtype=bool)
    """
    if method not in ("auto", "compare_all", "binary_search", "sort") or kind not in (None, "sort", "table"):
        raise refused("isin", "there is no such method", got=f"method={method!r}, kind={kind!r}",
                      wanted="method 'auto', 'compare_all', 'binary_search' or 'sort'", todo="leave it out",
                      kind=CorejaxValueError)
    x, tests = _of_one_kind(element, test_elements)
    found = _is_among(x, flat(tests), method)
    return ~found if shaping.as_flag("isin", "invert", invert) else found


def _of_one_kind(*arrays: Any) -> list[Any]:
    return [array(x) for x in of_one_dtype([operand(x) for x in arrays])]


def _is_among(x: Any, tests: Any, method: str = "auto") -> Any:
    shape, size = aval_of(x).shape, aval_of(tests).size
    if not size or not aval_of(x).size:
        return lax.full(shape, False)
    if method == "compare_all" or method == "auto" and size <= 16:
        both = (*shape, size)
        same = lax.eq(lax.broadcast_in_dim(x, both, tuple(range(len(shape)))),
                      lax.broadcast_in_dim(tests, both, (len(shape),)))
        return lax.reduce_or(same, (len(shape),))
    rising = lax.sort(tests)
    places = places_among(rising, x, True, "sort" if method == "sort" else "scan")
    near = operators.getitem(rising, operators.clip(places, 0, size - 1))
    return lax.eq(near, x)


# Of two sets

@directly(in_memory_sets.of_two(np.intersect1d), arrays=2, sizes_vary=True)
def intersect1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, return_indices: bool = False, *,
                size: int | None = None, fill_value: ArrayLike | None = None) -> Array | tuple[Array, ...]:
    """The distinct elements that both arrays have, in rising order; `return_indices` gives their places in both.

    With `size`, that many are returned, filled up with `fill_value` (by default the least common element).

    >>> jnp.intersect1d(jnp.array([1, 2, 3]), jnp.array([3, 1]))
    Array([1, 3], dtype=int64)
    """
    x, y = [flat(part) for part in _of_one_kind(ar1, ar2)]
    with_places = shaping.as_flag("intersect1d", "return_indices", return_indices)
    if size is None and not with_places and _is_plain(x, y):
        return fresh(np.intersect1d(np.asarray(x), np.asarray(y)))
    if size is None:
        a, b = known("intersect1d", x), known("intersect1d", y)
        count = np.intersect1d(_plain(a), _plain(b)).size
    else:
        count = size_of("intersect1d", size)
    if not aval_of(x).size or not aval_of(y).size:
        found = lax.full((count,), 0 if fill_value is None else fill_value, aval_of(x).dtype)
        none = lax.full((count,), 0, dtypes.default_dtype("i"))
        return (found, none, none) if with_places else found
    default = dtypes.default_dtype("i")
    rising, order = lax.sort((x, lax.iota(default, aval_of(x).size)), 0, num_keys=1)
    others, places = lax.sort((y, lax.iota(default, aval_of(y).size)), 0, num_keys=1)
    at = operators.clip(places_among(others, rising, True), 0, aval_of(y).size - 1)
    common = lax.eq(operators.getitem(others, at), rising) & ~repeats(rising, False)
    values, chosen, beyond = _first(rising, common, count, fill_value)
    if not with_places:
        return values
    in_x, in_y = operators.getitem(order, chosen), operators.getitem(operators.getitem(places, at), chosen)
    return (values, lax.select(beyond, lax.full_like(in_x, aval_of(x).size), in_x),
            lax.select(beyond, lax.full_like(in_y, aval_of(y).size), in_y))


def _plain(x: np.ndarray) -> np.ndarray:
    """The same numbers in a dtype that NumPy sorts."""
    return x if x.dtype.isbuiltin == 1 else x.astype(np.float32)


def _first(x: Any, mask: Any, count: int, fill_value: Any) -> tuple[Any, Any, Any]:
    """The first elements of a vector for which the mask holds, their places, and which of them are filled in."""
    size = aval_of(x).size
    places = first_places(mask, count, size)
    beyond = lax.ge(places, size)
    chosen = operators.clip(places, 0, max(size - 1, 0))
    found = operators.getitem(x, chosen)
    none = lax.eq(count_of(mask), 0)
    if fill_value is None and count:
        first = operators.getitem(found, 0)
        fill = lax.select(none, lax.full_like(first, 0), first)
    else:
        fill = constant("a fill value", 0 if fill_value is None else fill_value, aval_of(x).dtype)
    if aval_of(fill).ndim:
        raise refused("sets", "the fill value must be a number", got=str(aval_of(fill)), wanted="a scalar",
                      todo="pass a number", kind=CorejaxTypeError)
    return lax.select(beyond, spread_to(fill, (count,)), found), chosen, beyond


@directly(in_memory_sets.of_two(np.setdiff1d), arrays=2, sizes_vary=True)
def setdiff1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *, size: int | None = None,
              fill_value: ArrayLike | None = None) -> Array:
    """The distinct elements of the first array that the second one hasn't, in rising order.

    With `assume_unique`, all of them in the order of the array. With `size`, that many, filled up with
    `fill_value` (0).

    >>> jnp.setdiff1d(jnp.array([3, 1, 2]), jnp.array([2]))
    Array([1, 3], dtype=int64)
    """
    own = flat(array(ar1))
    x, y = [flat(part) for part in _of_one_kind(ar1, ar2)]
    unique_ = shaping.as_flag("setdiff1d", "assume_unique", assume_unique)
    if size is None and _is_plain(x, y, own):
        return fresh(np.setdiff1d(np.asarray(x), np.asarray(y), unique_).astype(aval_of(own).dtype, copy=False))
    if unique_:
        rising, mask = x, ~_is_among(x, y)
    else:
        rising = lax.sort(x)
        mask = ~_is_among(rising, y) & ~repeats(rising, True)
    found = _chosen("setdiff1d", rising, mask, size, 0 if fill_value is None else fill_value)
    return found if aval_of(own).dtype == aval_of(found).dtype else operators.astype(found, aval_of(own).dtype)


@directly(in_memory_sets.of_two(np.setxor1d), arrays=2, sizes_vary=True)
def setxor1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *, size: int | None = None,
             fill_value: ArrayLike | None = None) -> Array:
    """The distinct elements that only one of both arrays has, in rising order.

    With `size`, that many are returned, filled up with `fill_value` (by default the least of them).

    >>> jnp.setxor1d(jnp.array([3, 1, 2]), jnp.array([2, 4]))
    Array([1, 3, 4], dtype=int64)
    """
    x, y = [flat(part) for part in _of_one_kind(ar1, ar2)]
    if size is None and assume_unique is False and _is_plain(x, y):
        return fresh(np.setxor1d(np.asarray(x), np.asarray(y)))
    if not aval_of(x).size and not aval_of(y).size:
        return lax.full((0 if size is None else size_of("setxor1d", size),), fill_value or 0, aval_of(x).dtype)
    owner = lax.concatenate([lax.full((aval_of(x).size,), 0, np.int8), lax.full((aval_of(y).size,), 1, np.int8)], 0)
    rising, owner = lax.sort((lax.concatenate([x, y], 0), owner), 0, num_keys=1)
    first = ~repeats(rising, False)
    among = _is_among(rising, x) & _is_among(rising, y)
    return _chosen("setxor1d", rising, first & ~among, size, fill_value)


def _chosen(name: str, x: Any, mask: Any, size: Any, fill_value: Any) -> Any:
    """The elements of a vector for which the mask holds; as many as `size` says, or as there are."""
    count = int(np.count_nonzero(known(name, mask))) if size is None else size_of(name, size)
    if not aval_of(x).size:
        return lax.full((count,), fill_value or 0, aval_of(x).dtype)
    return _first(x, mask, count, fill_value)[0]


@directly(in_memory_sets.of_two(np.union1d), arrays=2, sizes_vary=True)
def union1d(ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The distinct elements of both arrays, in rising order; `size` and `fill_value` as in `unique`.

    >>> jnp.union1d(jnp.array([3, 1]), jnp.array([2, 1]))
    Array([1, 2, 3], dtype=int64)
    """
    x, y = [flat(part) for part in _of_one_kind(ar1, ar2)]
    if size is None and _is_plain(x, y):
        return fresh(np.union1d(np.asarray(x), np.asarray(y)))
    return _unique("union1d", lax.concatenate([x, y], 0), None, True, size, fill_value).values
