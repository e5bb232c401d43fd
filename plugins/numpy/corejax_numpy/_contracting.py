"""Sums of products of two arrays whose axes have names: what all products come down to."""

# mypy: no-warn-return-any

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from functools import lru_cache
from typing import Any

from corejax import lax
from corejax.core import DTypeLike, aval_of, dtypes
from corejax.errors import CorejaxNotImplementedError
from corejax.plugin import refused
from corejax_lax_basic import PrecisionLike, of_one_dtype

__all__ = ["Names", "contracted", "no_sharding", "ordered", "total"]

#: What the axes of an array are called, one after the other.
Names = tuple[Hashable, ...]


def contracted(x: Any, x_names: Names, y: Any, y_names: Names, out: Names, precision: PrecisionLike = None,
               preferred: DTypeLike | None = None) -> Any:
    """The products of two arrays, summed over the names that aren't in `out`; its axes are in the order of `out`.

    Each name is at most once in each of them. An axis of size 1 fits a longer one of the same name.
    """
    x, y = of_one_dtype((x, y))
    (x, x_names), (y, y_names) = _fitting(x, x_names, y, y_names), _fitting(y, y_names, x, x_names)
    x, x_names = total(x, x_names, {*out, *y_names}, preferred)
    y, y_names = total(y, y_names, {*out, *x_names}, preferred)
    numbers, names, swapped = _product_of_names(x_names, y_names, out)
    if not numbers[0][0] and preferred is None:
        return _elementwise(x, x_names, y, y_names, out)
    if swapped:
        x, y = y, x
        precision = precision[::-1] if type(precision) is tuple and len(precision) == 2 else precision
    return ordered(lax.dot_general(x, y, numbers, precision, preferred), names, out)


@lru_cache(maxsize=1024)
def _product_of_names(x_names: Names, y_names: Names, out: Names) -> tuple[Any, Names, bool]:
    """By what axes to contract, the names that the product's axes then have, and whether y is to come first.

    It is if then nothing is to be transposed.
    """
    shared = {*x_names} & {*y_names}
    batch, contract = [n for n in out if n in shared], [n for n in x_names if n in shared and n not in out]
    x_free, y_free = [[n for n in names if n not in shared] for names in (x_names, y_names)]
    swapped = (*batch, *y_free, *x_free) == out
    if swapped:
        x_names, y_names, x_free, y_free = y_names, x_names, y_free, x_free
    contract.sort(key=y_names.index)
    numbers = tuple([tuple([tuple([names.index(n) for n in group]) for names in (x_names, y_names)])
                     for group in (contract, batch)])
    return numbers, (*batch, *x_free, *y_free), swapped


def ordered(x: Any, names: Names, out: Names) -> Any:
    """The array with its axes in another order."""
    return x if names == out else lax.transpose(x, tuple([names.index(n) for n in out]))


def total(x: Any, names: Names, kept: Collection[Hashable], dtype: DTypeLike | None = None) -> tuple[Any, Names]:
    """The sum over the axes with other names than these."""
    axes = tuple([i for i, n in enumerate(names) if n not in kept])
    if not axes:
        return x, names
    x = x if dtype is None else lax.convert_element_type(x, dtype)
    add = lax.reduce_or if aval_of(x).dtype == dtypes.bool_ else lax.reduce_sum
    return add(x, axes), tuple([n for n in names if n in kept])


def _fitting(x: Any, x_names: Names, y: Any, y_names: Names) -> tuple[Any, Names]:
    """x without axes of size 1 that are longer in y."""
    own = aval_of(x).shape
    if 1 not in own:
        return x, x_names
    other = dict(zip(y_names, aval_of(y).shape, strict=True))
    short = tuple([i for i, (n, size) in enumerate(zip(x_names, own, strict=True)) if size == 1 != other.get(n, 1)])
    if not short:
        return x, x_names
    return lax.squeeze(x, short), tuple([n for i, n in enumerate(x_names) if i not in short])


def _elementwise(x: Any, x_names: Names, y: Any, y_names: Names, out: Names) -> Any:
    sizes = dict(zip((*x_names, *y_names), (*aval_of(x).shape, *aval_of(y).shape), strict=True))
    shape = tuple([sizes[n] for n in out])
    spread = [_spread(part, names, out, shape) for part, names in ((x, x_names), (y, y_names))]
    return (lax.bitwise_and if aval_of(x).dtype == dtypes.bool_ else lax.mul)(*spread)


def _spread(x: Any, names: Names, out: Names, shape: Sequence[int]) -> Any:
    here = tuple([n for n in out if n in names])
    x = ordered(x, names, here)
    return x if here == out or not here else lax.broadcast_in_dim(x, shape, tuple([out.index(n) for n in here]))


def no_sharding(name: str, out_sharding: Any) -> None:
    """Refuse a sharding of a result."""
    if out_sharding is not None:
        raise refused(name, "the sharding of a product can't be chosen", got="out_sharding=...",
                      wanted="out_sharding=None", todo="leave it out", kind=CorejaxNotImplementedError)
