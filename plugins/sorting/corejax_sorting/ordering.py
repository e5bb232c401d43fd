"""Sorting along an axis, by one key or by several.

Numbers rise; NaN comes last, whatever its sign, and 0.0 and -0.0 are equal. Complex numbers are ordered by their real
parts, then by their imaginary parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, ShapedArray, Zero, aval_of, dtypes, to_dim
from corejax.errors import CorejaxAxisError, CorejaxValueError
from corejax.plugin import Sample, define, hookimpl, not_linear, public, refused, shaping
from corejax_sorting import _host, _lowering
from corejax_sorting._elements import place_dtype, taken

__all__ = ["sort", "sort_key_val"]


class Sort:
    """`sort(operand, dimension=-1, is_stable=True, num_keys=1)`: the elements in rising order along an axis.

    NaN comes last, and 0.0 and -0.0 are equal. Complex numbers are ordered by real, then by imaginary parts. Of a
    sequence of arrays, the first `num_keys` are sorted lexicographically, and the others are rearranged with them: the
    result is a tuple. With `is_stable`, what is equal stays in order.

    >>> lax.sort(np.array([3.0, np.nan, 1.0])).tolist()
    [1.0, 3.0, nan]
    >>> keys, names = lax.sort((np.array([2, 1, 2]), np.array([7, 8, 6])), num_keys=2)
    >>> keys.tolist(), names.tolist()
    ([1, 2, 2], [8, 6, 7])
    """

    name = "sort"
    operands = ("operand", "*others")
    multiple_results = True
    symbolic_zeros = True
    transpose = not_linear("the order of the elements is no linear function of them; its derivative, a gather, is")

    def function(self, bind: Callable[..., Any]) -> Any:
        @overload
        def sort(operand: Array | np.ndarray, dimension: int = -1, is_stable: bool = True,
                 num_keys: int = 1) -> Array: ...

        @overload
        def sort(operand: Sequence[ArrayLike], dimension: int = -1, is_stable: bool = True,
                 num_keys: int = 1) -> tuple[Array, ...]: ...

        def sort(operand: Array | np.ndarray | Sequence[ArrayLike], dimension: int = -1, is_stable: bool = True,
                 num_keys: int = 1) -> Array | tuple[Array, ...]:
            together = isinstance(operand, (tuple, list))
            operands = operand if together else (operand,)
            if not operands:
                raise _nothing_to_sort()
            if together and not aval_of(operands[0]).ndim:
                raise refused("sort", "a sequence of arrays is sorted along an axis, and these have none",
                              got=f"a {type(operand).__name__} of {len(operands)}, of which the first is "
                              f"{aval_of(operands[0])}", wanted="arrays with at least one axis", kind=CorejaxAxisError,
                              todo="to sort numbers, make one array of them: sort(np.array([...]))")
            keys = shaping.as_int("sort", "num_keys", num_keys)
            stable = shaping.as_flag("sort", "is_stable", is_stable)
            at = shaping.canonical_axis("sort", dimension, aval_of(operands[0]).ndim)
            outs = bind(*operands, dimension=at, is_stable=stable, num_keys=keys)
            return tuple(outs) if together else outs[0]
        return sort

    @hookimpl
    def impl(self, args: Any, *, dimension: int, num_keys: int) -> Any:
        if len(args) == 1:
            return [_host.sorted_along(args[0], dimension)]
        return _host.sorted_together(args, dimension, num_keys)

    @hookimpl
    def abstract_eval(self, avals: Any, *, dimension: int = -1, is_stable: bool = True,
                      num_keys: int = 1) -> Sequence[ShapedArray]:
        if not avals:
            raise _nothing_to_sort()
        first = avals[0]
        shaping.check_axes(self.name, "dimension", (dimension,), first.ndim)
        if not 1 <= num_keys <= len(avals):
            several = f"from 1 to {len(avals)}, the number of arrays" if len(avals) > 1 else "1, for a single array"
            raise refused(self.name, "there must be a key, and no more keys than arrays", got=f"num_keys={num_keys}",
                          wanted=f"num_keys {several}", kind=CorejaxValueError,
                          todo="pass the keys first in a tuple of arrays: sort((key, other), num_keys=1)")
        if any([aval.shape != first.shape for aval in avals]):
            raise refused(self.name, "arrays that are sorted together must have the same shape", got=list(avals),
                          wanted=f"the shape {first.shape} for each", todo="broadcast them to one shape first")
        for aval in avals:
            if dtypes.kind(aval.dtype) not in "biufc":
                raise refused(self.name, f"elements of type {dtypes.short_name(aval.dtype)} have no order",
                              got=str(aval), wanted="numbers or booleans", todo="sort a key of numbers, and take the "
                              "elements at the places that it gives")
        return list(avals)

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, dimension: int, is_stable: bool, num_keys: int) -> Any:
        aval = aval_of(primals[0])
        places = lax.broadcasted_iota(place_dtype(aval.shape[dimension]), aval.shape, dimension)
        *outs, order = sort.primitive.bind(*primals, places, dimension=dimension, is_stable=is_stable,
                                           num_keys=num_keys)
        return outs, [Zero(aval_of(out).tangent) if type(t) is Zero else taken(t, order, dimension, unique=True)
                      for out, t in zip(outs, tangents, strict=True)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, dimension: int, is_stable: bool, num_keys: int) -> Any:
        dim = next(d for d in dims if d is not None)
        moved = [to_dim(x, d, dim, axis.size) for x, d in zip(args, dims, strict=True)]
        (at,) = shaping.shifted((dimension,), dim)
        outs = sort.primitive.bind(*moved, dimension=at, is_stable=is_stable, num_keys=num_keys)
        return outs, [dim] * len(outs)

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, dimension: int, is_stable: bool, num_keys: int) -> Any:
        return _lowering.sort(ctx, args, dimension, is_stable, num_keys)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def params(dimension: int = 0, is_stable: bool = True, num_keys: int = 1) -> dict[str, Any]:
            return {"dimension": dimension, "is_stable": is_stable, "num_keys": num_keys}

        def apart(*shape: int) -> Any:  # far from each other, so that differences don't see ties
            return (rng.permutation(int(np.prod(shape))).reshape(shape) - 2.3) * 0.5

        # ties have no derivative: differences are of doubles only
        zeros = np.array([0.0, -0.0, np.nan, -1.0, -0.0, np.inf, 0.0, -np.nan], np.float32)
        for shape, dimension in [((5,), 0), ((2, 3), 1), ((3, 2, 2), 0), ((2, 4, 3), 1), ((1,), 0), ((0, 2), 0)]:
            yield Sample([apart(*shape)], params(dimension, dimension == 0))
        yield Sample([apart(6), apart(6)], params())
        yield Sample([apart(3, 2), rng.standard_normal((3, 2)), np.arange(6).reshape(3, 2)], params(1))
        yield Sample([rng.integers(0, 2, 6), apart(6), rng.standard_normal(6)], params(num_keys=2))
        yield Sample([rng.integers(0, 2, (4, 3)) > 0, rng.integers(-3, 3, (4, 3)).astype(np.int8),
                      rng.integers(0, 9, (4, 3)).astype(np.uint16), rng.standard_normal((4, 3))], params(num_keys=3))
        yield Sample([zeros], params())
        yield Sample([zeros, np.arange(8)], params(), results=[zeros[[3, 0, 1, 4, 6, 5, 2, 7]],
                                                               np.array([3, 0, 1, 4, 6, 5, 2, 7])])
        yield Sample([np.array([1 + 2j, 1 - 1j, 0.5j, complex(1, np.nan), complex(np.nan, -1)], np.complex64)],
                     params())
        yield Sample([np.array([1j, -1j, 1 + 0j, -1j], np.complex64), np.arange(4)], params())
        yield Sample([apart(2, 3) + 1j * apart(2, 3)], params(1))
        yield Sample([rng.standard_normal((2, 3)).astype(np.float16)], params(1))
        yield Sample([rng.integers(-9, 9, 7), apart(7)], params(is_stable=False))
        yield Sample([np.ones(3)], params(1), error=IndexError)
        yield Sample([np.ones(3)], params(num_keys=2), error=ValueError)
        yield Sample([np.ones(3), np.ones(2)], params(), error=TypeError)


def _nothing_to_sort() -> Exception:
    return refused("sort", "there is nothing to sort", got="no array", wanted="an array, or a sequence of arrays",
                   todo="pass at least one array")


sort: Any = define(Sort())


@public
def sort_key_val(keys: ArrayLike, values: ArrayLike, dimension: int = -1,
                 is_stable: bool = True) -> tuple[Array, Array]:
    """`sort_key_val(keys, values, dimension=-1, is_stable=True)`: both arrays, rearranged so that the keys rise.

    >>> keys, values = sort_key_val(np.array([3, 1, 2]), np.array([0.3, 0.1, 0.2]))
    >>> values.tolist()
    [0.1, 0.2, 0.3]
    """
    found, carried = sort((keys, values), dimension, is_stable)
    return found, carried
