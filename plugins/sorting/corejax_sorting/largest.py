"""The largest elements along an axis, and where they are.

They are found in the total order of floats: -NaN < -inf < ... < -0.0 < 0.0 < ... < inf < NaN. Of equal elements, those
at lower places come first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from corejax.core import Array, ArrayLike, Zero, aval_of, dtypes
from corejax.errors import CorejaxValueError
from corejax.plugin import Sample, define, hookimpl, not_linear, refused, shaping
from corejax_sorting import _host, _lowering
from corejax_sorting._elements import taken

__all__ = ["top_k"]


class TopK:
    """`top_k(operand, k, *, axis=-1)`: the k largest elements along an axis, falling, and their places as int32.

    Of equal elements, those at lower places come first. Floats are in their total order: NaN is above infinity, 0.0
    above -0.0, and a NaN with a minus sign is below everything.

    >>> values, places = top_k(np.array([9.0, 3.0, 6.0, 10.0]), 2)
    >>> values.tolist(), places.tolist()
    ([10.0, 9.0], [3, 0])
    """

    name = "top_k"
    operands = ("operand",)
    multiple_results = True
    transpose = not_linear("which elements are the largest is no linear function of them; the derivative is a gather")

    def function(self, bind: Callable[..., Any]) -> Any:
        def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> tuple[Array, Array]:
            at = shaping.canonical_axis("top_k", axis, aval_of(operand).ndim)
            values, places = bind(operand, k=shaping.as_int("top_k", "k", k), dimension=at)
            return values, places
        return top_k

    @hookimpl
    def impl(self, args: Any, *, k: int, dimension: int) -> Any:
        return _host.largest(args[0], k, dimension)

    @hookimpl
    def abstract_eval(self, avals: Any, *, k: int, dimension: int) -> Any:
        (x,) = avals
        shaping.check_axes(self.name, "dimension", (dimension,), x.ndim)
        if dtypes.kind(x.dtype) not in "biuf":
            raise refused(self.name, f"elements of type {dtypes.short_name(x.dtype)} have no largest ones", got=str(x),
                          wanted="real numbers or booleans", kind=CorejaxValueError,
                          todo="take the largest moduli or real parts; lax.sort orders complex numbers")
        size = x.shape[dimension]
        if not 0 <= k <= size:
            raise refused(self.name, f"there are no {k} largest of {size} elements", got=f"k={k} for {x}",
                          wanted=f"k from 0 to {size}, the size of axis {dimension}", kind=CorejaxValueError,
                          todo=f"pass min(k, {size})" if k > 0 else "pass how many elements are wanted")
        if size - 1 > np.iinfo(np.int32).max:
            raise refused(self.name, "places are int32, and there are more than that counts", got=str(x),
                          wanted="at most 2147483648 elements along the axis", kind=CorejaxValueError,
                          todo="split the axis, and take the largest of the largest")
        shape = (*x.shape[:dimension], k, *x.shape[dimension + 1:])
        return x.update(shape=shape), x.update(shape=shape, dtype=dtypes.int32)

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, k: int, dimension: int) -> Any:
        values, places = top_k.primitive.bind(*primals, k=k, dimension=dimension)
        return [values, places], [taken(tangents[0], places, dimension, unique=True), Zero(aval_of(places).tangent)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, k: int, dimension: int) -> Any:
        (at,) = shaping.shifted((dimension,), dims[0])
        return top_k.primitive.bind(args[0], k=k, dimension=at), [dims[0]] * 2

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, k: int, dimension: int) -> Any:
        return _lowering.largest(ctx, args[0], k, dimension)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def apart(*shape: int) -> Any:  # far from each other, so that differences don't see ties
            return (rng.permutation(int(np.prod(shape))).reshape(shape) - 2.3) * 0.5

        for shape, k, dimension in [((5,), 2, 0), ((2, 3), 3, 1), ((3, 2, 2), 1, 0), ((2, 20, 3), 3, 1), ((1,), 1, 0),
                                    ((0, 2), 0, 0), ((3,), 0, 0), ((2, 0), 1, 0)]:
            yield Sample([apart(*shape)], {"k": k, "dimension": dimension})
        # ties have no derivative: differences are of doubles only
        special = np.array([1.0, np.nan, -0.0, 0.0, np.inf, -np.inf, 0.0, 2.0], np.float32)
        yield Sample([special], {"k": 6, "dimension": 0}, results=[special[[1, 4, 7, 0, 3, 6]],
                                                                   np.array([1, 4, 7, 0, 3, 6], np.int32)])
        ties = rng.integers(0, 3, 40)
        yield Sample([ties], {"k": 4, "dimension": 0})
        for dtype in (np.bool_, np.int8, np.int32, np.uint32, np.uint64, np.float16):
            yield Sample([(ties % 3).reshape(2, 20).astype(dtype)], {"k": 3, "dimension": 1})
        yield Sample([rng.integers(-2 ** 31, 2 ** 31, 9).astype(np.int32)], {"k": 5, "dimension": 0})
        yield Sample([np.ones(3)], {"k": 4, "dimension": 0}, error=ValueError)
        yield Sample([np.ones(3)], {"k": -1, "dimension": 0}, error=ValueError)
        yield Sample([np.ones(3)], {"k": 1, "dimension": 1}, error=IndexError)
        yield Sample([np.ones(3, complex)], {"k": 1, "dimension": 0}, error=ValueError)


top_k: Any = define(TopK())
