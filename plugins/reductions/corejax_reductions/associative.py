"""`associative_scan`: running results of any associative function, in as many steps as the axis has doublings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np  # noqa: F401  (for the examples)

from corejax import lax
from corejax.core import aval_of, call_user, flatten, namer, paths_of, values
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import calls_users, public, refused, shaping, structures

__all__ = ["associative_scan"]

Elements = TypeVar("Elements")

_NAME = "associative_scan"


@public
@calls_users
def associative_scan(fn: Callable[[Any, Any], Any], elems: Elements, reverse: bool = False, axis: int = 0) -> Elements:
    """Element i is elements 0 to i along an axis, combined by `fn`; from i to the end if `reverse`.

    `fn(a, b)` combines slices of `elems`, a pytree of arrays of the same size along `axis`: for each position along
    that axis, the result is that of the two elements. It must be associative, but needn't be commutative: `a` comes
    first along the way. It returns what it gets, in structure, shapes and dtypes, and is called twice for each
    doubling of the size. If `reverse`, the way starts at the end.

    >>> lax.associative_scan(lax.add, np.array([1.0, 2.0, 3.0])).tolist()
    [1.0, 3.0, 6.0]
    >>> lax.associative_scan(lax.add, np.array([1.0, 2.0, 3.0]), reverse=True).tolist()
    [6.0, 5.0, 3.0]
    """
    if not callable(fn):
        raise refused(_NAME, "the first argument must be a function", got=repr(fn)[:80], wanted="a callable",
                      todo="pass the function first: lax.associative_scan(fn, elems)", kind=CorejaxTypeError)
    leaves, tree = flatten(elems)
    xs = values(leaves, _NAME, namer("elems", elems))
    at, backward = _common_axis(elems, xs, axis), shaping.as_flag(_NAME, "reverse", reverse)
    if backward:
        xs = [lax.rev(x, (at,)) for x in xs]

    def combine(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        found, found_tree = flatten(call_user(fn, (tree.unflatten(a), tree.unflatten(b)), f"{_NAME}: the function"))
        outs = values(found, f"{_NAME}: the function", lambda i: f"result {i}")
        structures.check_carry(f"{_NAME}: the function", tree, [aval_of(x) for x in a], found_tree,
                               [aval_of(x) for x in outs], "elems")
        return outs

    xs = _scanned(combine, xs, at)
    return tree.unflatten([lax.rev(x, (at,)) for x in xs] if backward else xs)  # type: ignore[no-any-return]


def _scanned(combine: Callable[[Sequence[Any], Sequence[Any]], list[Any]], xs: list[Any], axis: int) -> list[Any]:
    """Combine neighbors, scan the pairs, and from these results make those between them."""
    levels = []
    while (size := aval_of(xs[0]).shape[axis]) > 1:
        levels.append(xs)
        xs = combine([lax.slice_in_dim(x, 0, size - 1, 2, axis) for x in xs],
                     [lax.slice_in_dim(x, 1, size, 2, axis) for x in xs])
    for whole in reversed(levels):
        size = aval_of(whole[0]).shape[axis]
        firsts = [lax.slice_in_dim(x, 0, 1, axis=axis) for x in whole]
        if size > 2:
            between = combine([lax.slice_in_dim(x, 0, (size - 1) // 2, axis=axis) for x in xs] if size % 2 == 0 else xs,
                              [lax.slice_in_dim(x, 2, size, 2, axis) for x in whole])
            firsts = [lax.concatenate([x, y], axis) for x, y in zip(firsts, between, strict=True)]
        xs = [_interleaved(x, y, axis) for x, y in zip(firsts, xs, strict=True)]
    return xs


def _interleaved(x: Any, y: Any, axis: int) -> Any:
    """Elements of `x` and `y` by turns along an axis, along which `x` is as long or longer by one."""
    shape, pairs = aval_of(x).shape, aval_of(y).shape[axis]
    longer = shape[axis] > pairs
    firsts = lax.slice_in_dim(x, 0, pairs, axis=axis) if longer else x
    by_pairs = lax.concatenate([lax.expand_dims(one, (axis + 1,)) for one in (firsts, y)], axis + 1)
    both = lax.reshape(by_pairs, (*shape[:axis], 2 * pairs, *shape[axis + 1:]))
    return lax.concatenate([both, lax.slice_in_dim(x, pairs, pairs + 1, axis=axis)], axis) if longer else both


def _common_axis(elems: Any, xs: Sequence[Any], axis: int) -> int:
    """The axis, from 0 on, along which all leaves have the same size."""
    if not xs:
        raise refused(_NAME, "there are no arrays in elems", got=repr(elems)[:80], wanted="at least one array",
                      todo="pass the arrays to scan", kind=CorejaxValueError)
    at = shaping.canonical_axis(_NAME, axis, aval_of(xs[0]).ndim)
    for x in xs:
        shaping.canonical_axis(_NAME, at, aval_of(x).ndim)
    if len({aval_of(x).shape[at] for x in xs}) > 1:
        paths = paths_of(elems)
        raise refused(_NAME, f"the arrays differ in size along axis {at}",
                      got="; ".join([f"{aval_of(x)} for elems{path}" for x, path in zip(xs, paths, strict=True)]),
                      wanted="one size for all of them", todo="slice or pad them to one length", kind=CorejaxValueError)
    return at
