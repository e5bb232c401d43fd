"""`select_and_scatter`: numbers combined where a function selects an element of each window."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import (
    Array,
    ArrayLike,
    Jaxpr,
    ShapedArray,
    aval_of,
    dtypes,
    flatten,
    stage_function,
    to_dim,
    values,
)
from corejax.errors import CorejaxTypeError
from corejax.plugin import Sample, carrying, families, hookimpl, not_differentiable, not_linear, refused, roles
from corejax_windows._windowing import Ints, Pads, canonical, check_windows, handle_of, plain, same_types, shape_of

__all__ = ["select_and_scatter"]

_NAME = "select_and_scatter"


class SelectAndScatter:
    """`select_and_scatter(operand, select, window_dimensions, window_strides, padding, source, init_value, scatter)`.

    `select(x, y)` says whether x stays selected beside y, of two elements of a window. There is one element of `source`
    for each window; `scatter(x, y)` combines those whose windows select the same element, beginning with `init_value`,
    which is also what all other elements get. Neither function may close over traced values.

    >>> x, pull = np.array([1.0, 5.0, 2.0, 3.0]), np.array([10.0, 20.0, 30.0])
    >>> lax.select_and_scatter(x, lax.ge, (2,), (1,), "VALID", pull, 0.0, lax.add).tolist()
    [0.0, 30.0, 0.0, 30.0]
    """

    name = _NAME
    operands = ("operand", "source", "init_value")
    jvp = not_differentiable("its functions may be any; select_and_scatter_add, which adds, has derivatives")
    transpose = not_linear("its functions may be any; select_and_scatter_add, which adds, is linear")

    def function(self, bind: Callable[..., Array]) -> Any:
        def select_and_scatter(operand: ArrayLike, select: Callable[..., Any], window_dimensions: Sequence[int],
                               window_strides: Sequence[int] | None, padding: str | Sequence[tuple[int, int]],
                               source: ArrayLike, init_value: ArrayLike, scatter: Callable[..., Any]) -> Array:
            given = [operand, source, families.match_scalars((operand, init_value))[1]]
            xs = values(given, _NAME, ("operand", "source", "init_value").__getitem__)
            window = canonical(_NAME, shape_of(operand), window_dimensions, window_strides, padding)
            dtype = aval_of(operand).dtype
            return bind(*xs, select_jaxpr=_program(select, dtype, "the selection"),
                        scatter_jaxpr=_program(scatter, dtype, "the scatter"), padding=window.padding,
                        window_dimensions=window.window_dimensions, window_strides=window.window_strides)
        return select_and_scatter

    @hookimpl
    def abstract_eval(self, avals: Any, *, select_jaxpr: Jaxpr, scatter_jaxpr: Jaxpr, window_dimensions: Ints,
                      window_strides: Ints, padding: Pads) -> ShapedArray:
        operand, source, init = avals
        same_types(_NAME, avals, "operand, source and init_value")
        scalar = ShapedArray((), operand.dtype)
        for what, jaxpr, wanted in (("selection", select_jaxpr, ShapedArray((), dtypes.bool_)),
                                    ("scatter", scatter_jaxpr, scalar)):
            carrying.check_operands(_NAME, jaxpr, [scalar, scalar])
            if len(jaxpr.out_avals) != 1 or not jaxpr.out_avals[0].matches(wanted) or jaxpr.effects:
                raise refused(_NAME, f"the {what} must return one scalar, and have no effects",
                              got=list(jaxpr.out_avals), wanted=str(wanted), kind=CorejaxTypeError,
                              todo="write a function of two scalars")
        counts = check_windows(_NAME, plain(window_dimensions, window_strides, padding), operand.shape)
        if source.shape != counts or init.shape:
            raise refused(_NAME, "there must be one element of source for each window, and one initial value",
                          got=f"{source} and {init}", wanted=f"shapes {counts} and ()", kind=CorejaxTypeError,
                          todo="compute the number of windows with lax.reduce_window_shape_tuple")
        return ShapedArray(operand.shape, operand.dtype, operand.weak_type)

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, window_dimensions: Ints, window_strides: Ints, padding: Pads,
             **programs: Any) -> Any:
        operand, source = [to_dim(x, dim, 0, axis.size) for x, dim in zip(args[:2], dims[:2], strict=True)]
        given: dict[str, Any] = {"window_dimensions": window_dimensions, "window_strides": window_strides,
                                 "padding": padding}
        if dims[2] is None:
            window = plain(**given).with_axis(0)
            return self._bind(operand, source, args[2], window_dimensions=window.window_dimensions,
                              window_strides=window.window_strides, padding=window.padding, **programs), 0
        inits = to_dim(args[2], dims[2], 0, axis.size)  # there is one initial value for all that an operation makes
        return roles.sequential_map(lambda xs: self._bind(*xs, **given, **programs), [operand, source, inits]), 0

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, select_jaxpr: Jaxpr, scatter_jaxpr: Jaxpr,
                        window_dimensions: Ints, window_strides: Ints, padding: Pads) -> Any:
        if 0 in ctx.avals_in[1].shape or 0 in ctx.avals_in[0].shape:
            return ctx.lower(lambda init: lax.broadcast_in_dim(init, ctx.avals_out[0].shape, ()), args[2])
        if not window_dimensions:  # over scalars, XLA aborts the process
            return ctx.lower(lambda source, init: carrying.run(scatter_jaxpr, [init, source])[0], *args[1:])
        array = ctx.ir.DenseI64ArrayAttr.get
        pads = np.asarray(padding, np.int64).reshape(len(padding), 2)
        out = ctx.op("stablehlo.select_and_scatter", args, {
            "window_dimensions": array(list(window_dimensions)), "window_strides": array(list(window_strides)),
            "padding": ctx.ir.DenseIntElementsAttr.get(pads)}, None, 2)
        scalar = ctx.type_of(ShapedArray((), ctx.avals_in[0].dtype))
        for region, jaxpr in zip(ctx.regions, (select_jaxpr, scatter_jaxpr), strict=True):
            ctx.fill(region, [scalar, scalar], lambda *pair, jaxpr=jaxpr: [
                ctx.lower(lambda *xs: carrying.run(jaxpr, xs), *pair)[0]])
        return out

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        f64 = np.dtype(np.float64)
        ge, add, mul, less = [_program(f, f64, "sample") for f in (lax.ge, lax.add, lax.mul, lax.le)]
        for shape, sizes, strides, padding, select, scatter, init in [
                ((6,), (3,), (2,), ((0, 0),), ge, add, 0.0), ((3, 4), (2, 2), (1, 2), ((0, 0), (0, 0)), less, mul, 1.0),
                ((2, 0), (1, 1), (1, 1), ((0, 0), (0, 0)), ge, add, 2.0), ((), (), (), (), ge, add, 0.0)]:
            params = {"select_jaxpr": select, "scatter_jaxpr": scatter, "window_dimensions": sizes,
                      "window_strides": strides, "padding": padding}
            counts = plain(sizes, strides, padding).out_shape(shape)
            yield Sample([(rng.permutation(prod(shape)).reshape(shape) - 2.3) * 0.5, rng.standard_normal(counts),
                          np.asarray(init)], params)
        yield Sample([np.array([1.0, 3.0, 2.0, 5.0]), np.array([7.0, 4.0]), np.zeros(())],
                     {**params, "window_dimensions": (3,), "window_strides": (1,), "padding": ((0, 0),)},
                     results=np.array([0.0, 7.0, 0.0, 4.0]))
        yield Sample([np.ones(3), np.ones(3), np.zeros(())], params, error=TypeError)

    _bind: Callable[..., Any]


def _program(function: Callable[..., Any], dtype: np.dtype, what: str) -> Jaxpr:
    """The program of a function of two scalars."""
    scalar = ShapedArray((), dtype)
    staged = stage_function(function, [scalar, scalar], flatten((0, 0))[1], f"{_NAME}: {what}")
    if staged.consts:
        raise refused(_NAME, f"{what} closes over traced values", got=[aval_of(x) for x in staged.consts],
                      wanted="a function of its two arguments alone", kind=CorejaxTypeError,
                      todo="use numbers that aren't traced, or select_and_scatter_add")
    return staged.jaxpr


select_and_scatter: Any = handle_of(SelectAndScatter())
