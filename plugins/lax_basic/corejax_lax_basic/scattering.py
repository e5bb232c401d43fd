"""Writing many windows of an array at once, at places given by an array of indices.

XLA's law is that a scatter skips windows that aren't within the operand. If windows overlap, each one counts: sums,
products and extremes don't depend on the order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, Linear, ShapedArray, aval_of, stage, to_dim
from corejax.plugin import Sample, define, hookimpl, itself, not_linear, partials, refused, roles, shaping
from corejax_lax_basic._axes import Shape, dtype_kind, same_dtype, shape_of
from corejax_lax_basic._lowering import axis_numbers
from corejax_lax_basic._placing import (
    GatherDimensionNumbers,
    Numbers,
    ScatterDimensionNumbers,
    canonical_mode,
    canonical_numbers,
    check_numbers,
    check_places,
    places_of,
    rows_of,
    uppers,
    wide,
    window_sizes,
)
from corejax_lax_basic._windows import WRITTEN
from corejax_lax_basic.creation import as_dtype, full
from corejax_lax_basic.shapes import move_axis, reshape

__all__ = ["ScatterDimensionNumbers", "scatter", "scatter_add", "scatter_max", "scatter_min", "scatter_mul",
           "scatter_sub"]


class _Scatter:
    """The common base of scatters; each adds its name, its operation and its derivatives."""

    name = ""
    _operation = ""
    _ufunc: Any = None
    _takes_booleans = True
    _exempt_of_overlaps: Mapping[str, str] = {}  # checks that don't hold where windows overlap, and why

    def function(self, bind: Callable[..., Array]) -> Any:
        def scatter(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike,
                    dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                    unique_indices: bool = False, mode: str | None = None) -> Array:
            numbers = canonical_numbers(dimension_numbers)
            mode = canonical_mode(self.name, mode)
            return bind(operand, wide(scatter_indices), updates, dimension_numbers=numbers,
                        unique_indices=shaping.as_flag(self.name, "unique_indices", unique_indices),
                        indices_are_sorted=shaping.as_flag(self.name, "indices_are_sorted", indices_are_sorted),
                        mode="drop" if mode == "fill" else mode)
        scatter.__name__ = scatter.__qualname__ = self.name
        return scatter

    @hookimpl
    def impl(self, args: Any, *, dimension_numbers: Numbers, mode: str) -> Any:
        x, indices, updates = args
        indices = np.ascontiguousarray(indices)  # NumPy follows memory, so that of two updates another one would win
        window_dims, inserted, index_map, x_batch, index_batch = dimension_numbers
        sizes = window_sizes(x.shape, updates.shape, dimension_numbers)
        clamp = mode == "clip"
        out = np.array(x)
        rows = None if x_batch else rows_of(x.shape, indices, index_map, inserted, sizes, clamp=clamp)
        if rows is not None:
            self._change_rows(out, updates, window_dims, sizes, *rows)
            return out
        places, valid = places_of(x.shape, indices, index_map, x_batch, index_batch, sizes, clamp=clamp,
                                  check=not clamp)
        windows = [d for d in range(updates.ndim) if d not in window_dims]
        new = updates.transpose((*windows, *window_dims)).reshape((*indices.shape[:-1], *sizes))
        if not valid.all():
            places, new = [np.broadcast_to(p, (*valid.shape, *p.shape[valid.ndim:]))[valid] for p in places], new[valid]
        if self._ufunc is None:
            out[tuple(places)] = new
        else:
            self._ufunc.at(out, tuple(places), new)
        return out

    def _change_rows(self, out: Any, updates: Any, window_dims: Shape, sizes: Shape, axes: Shape, where: Any) -> None:
        """Change windows that NumPy's indexing can express."""
        part = out.transpose(axes)
        windows = [d for d in range(updates.ndim) if d not in window_dims]
        new = updates.transpose((*windows, *window_dims))
        if not windows:
            new = new.reshape(sizes)
        if self._ufunc is None:
            part[where] = new
        elif windows:
            self._ufunc.at(part, where, new)
        else:  # a single window, in which no place repeats
            part[where] = self._ufunc(part[where], new)

    @hookimpl
    def abstract_eval(self, avals: Any, *, dimension_numbers: Numbers, indices_are_sorted: bool, unique_indices: bool,
                      mode: str) -> ShapedArray:
        x, indices, updates = avals
        same_dtype(self.name, (x, updates))
        if not self._takes_booleans and dtype_kind(x.dtype) == "b":
            raise refused(self.name, "booleans have no difference", got=str(x), wanted="numbers",
                          todo="convert the booleans to numbers first")
        check_scatter(self.name, x, indices, updates, dimension_numbers)
        return ShapedArray(x.shape, x.dtype, x.weak_type and updates.weak_type)

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, dimension_numbers: Numbers, indices_are_sorted: bool,
             unique_indices: bool, mode: str) -> Any:
        (x, indices, updates), (dim, index_dim, updates_dim) = args, dims
        x, updates = to_dim(x, dim, 0, axis.size), to_dim(updates, updates_dim, 0, axis.size)
        window_dims, inserted, index_map, x_batch, index_batch = [shaping.shifted(d, 0) for d in dimension_numbers]
        if index_dim is None:  # the batch axis becomes another axis within each window
            window_dims, index_batch = (0, *window_dims), dimension_numbers[4]
        else:
            indices = move_axis(indices, index_dim, 0)
            x_batch, index_batch = (0, *x_batch), (0, *index_batch)
        numbers = (window_dims, inserted, index_map, x_batch, index_batch)
        primitive = _SCATTERS[self.name].primitive
        return primitive.bind(x, indices, updates, dimension_numbers=numbers, unique_indices=unique_indices, mode=mode,
                              indices_are_sorted=indices_are_sorted and index_dim is None), 0

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, dimension_numbers: Numbers, indices_are_sorted: bool,
                        unique_indices: bool, mode: str) -> Any:
        if mode == "clip":
            inside = {"dimension_numbers": dimension_numbers, "mode": "promise_in_bounds",
                      "unique_indices": unique_indices, "indices_are_sorted": indices_are_sorted}
            clipped = stage(lambda x, i, y: [_SCATTERS[self.name].primitive.bind(
                x, _clamped(i, shape_of(x), shape_of(y), dimension_numbers), y, **inside)], ctx.avals_in)
            return ctx.call(clipped, args, self.name)[0]
        window_dims, inserted, index_map, x_batch, index_batch = dimension_numbers
        numbers = axis_numbers(ctx, "scatter", {
            "update_window_dims": window_dims, "inserted_window_dims": inserted, "input_batching_dims": x_batch,
            "scatter_indices_batching_dims": index_batch, "scatter_dims_to_operand_dims": index_map,
            "index_vector_dim": len(ctx.avals_in[1].shape) - 1})
        out = ctx.op("stablehlo.scatter", args, {
            "scatter_dimension_numbers": numbers, "indices_are_sorted": ctx.ir.BoolAttr.get(indices_are_sorted),
            "unique_indices": ctx.ir.BoolAttr.get(unique_indices)}, regions=1)
        scalar = ctx.type_of(ShapedArray((), ctx.avals_in[0].dtype))
        body = ctx.regions[0].blocks.append(scalar, scalar)
        with ctx.ir.InsertionPoint(body):
            kept = ctx.op(self._operation, [*body.arguments], None, [scalar]) if self._operation else body.arguments[1]
            ctx.op("stablehlo.return", [kept], None, [])
        return out

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for sizes, indices, new, numbers, mode in WRITTEN:
            in_order = np.array_equal(indices, [[0], [2]])
            yield Sample([rng.standard_normal(sizes), np.array(indices, np.int32), rng.standard_normal(new)], {
                "dimension_numbers": numbers, "mode": mode, "unique_indices": mode == "fill",
                "indices_are_sorted": in_order}, domain=((-2.0, 2.0), None, (-2.0, 2.0)) if in_order else None,
                exempt=self._exempt_of_overlaps if mode == "clip" else None)
        yield Sample([np.ones((3, 0)), np.zeros((3, 2), np.int32), np.ones((3, 2))], {
            "dimension_numbers": ((1, 2), (), (0, 1), (), ()), "mode": "drop", "unique_indices": False,
            "indices_are_sorted": False}, error=TypeError)


class Scatter(_Scatter):
    """`scatter(operand, scatter_indices, updates, dimension_numbers, ...)`: the operand with windows replaced.

    `mode` says what happens to windows out of bounds: "fill" or "drop" skips them, "clip" moves them inside,
    "promise_in_bounds" says that there are none. Where windows overlap, one of them wins.

    >>> numbers = ScatterDimensionNumbers((), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    >>> scatter(np.zeros(4), np.array([[3], [1]]), np.ones(2), numbers).tolist()
    [0.0, 1.0, 0.0, 1.0]
    """

    name = "scatter"
    structural = True
    linear = (0, 2)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, dimension_numbers: Numbers, indices_are_sorted: bool,
                  unique_indices: bool, mode: str) -> Any:
        x, indices, updates = args
        ct, sizes = cotangents, shape_of(updates)
        fixed = {"dimension_numbers": dimension_numbers, "indices_are_sorted": indices_are_sorted,
                 "unique_indices": unique_indices, "mode": mode}
        x_bar = updates_bar = None
        if type(x) is Linear:
            x_bar = scatter.primitive.bind(ct, indices, full(sizes, 0, aval_of(ct).dtype), **fixed)
        if type(updates) is Linear:
            updates_bar = read_back(ct, indices, sizes, dimension_numbers, mode)
            if not unique_indices:  # only the winning window has a derivative: mark each element and see which arrived
                marks = reshape(lax.iota(np.int32, updates.aval.size), sizes)
                arrived = scatter.primitive.bind(full(shape_of(ct), -1, np.int32), indices, marks, **fixed)
                won = lax.eq(read_back(arrived, indices, sizes, dimension_numbers, mode), marks)
                updates_bar = lax.select_n(won, full(sizes, 0, aval_of(ct).dtype), updates_bar)
        return [x_bar, None, updates_bar]


class ScatterAdd(_Scatter):
    """`scatter_add(operand, scatter_indices, updates, dimension_numbers, ...)`: adds windows; repeated ones all count.

    `mode` is as in `scatter`.

    >>> numbers = ScatterDimensionNumbers((), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    >>> scatter_add(np.zeros(3), np.array([[2], [2]]), np.ones(2), numbers).tolist()
    [0.0, 0.0, 2.0]
    """

    name = "scatter_add"
    linear = (0, 2)
    _operation = "stablehlo.add"
    _ufunc = np.add

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, dimension_numbers: Numbers, mode: str) -> Any:
        x, indices, updates = args
        updates_bar = None
        if type(updates) is Linear:
            updates_bar = read_back(cotangents, indices, shape_of(updates), dimension_numbers, mode)
        return [cotangents if type(x) is Linear else None, None, updates_bar]


class ScatterSub(_Scatter):
    """`scatter_sub(operand, scatter_indices, updates, dimension_numbers, ...)`: subtracts windows; repeated ones count.

    `mode` is as in `scatter`.

    >>> numbers = ScatterDimensionNumbers((), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    >>> scatter_sub(np.array([5, 5, 5]), np.array([[2], [2]]), np.array([1, 2]), numbers).tolist()
    [5, 5, 2]
    """

    name = "scatter_sub"
    linear = (0, 2)
    _operation = "stablehlo.subtract"
    _ufunc = np.subtract
    _takes_booleans = False

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, dimension_numbers: Numbers, mode: str) -> Any:
        x, indices, updates = args
        updates_bar = None
        if type(updates) is Linear:
            updates_bar = lax.neg(read_back(cotangents, indices, shape_of(updates), dimension_numbers, mode))
        return [cotangents if type(x) is Linear else None, None, updates_bar]


class ScatterMul(_Scatter):
    """`scatter_mul(operand, scatter_indices, updates, dimension_numbers, ...)`: multiplies windows by others.

    Its derivative with respect to updates that may overlap (not `unique_indices`) is a `lax.scan` over windows.

    >>> numbers = ScatterDimensionNumbers((), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    >>> scatter_mul(np.ones(3), np.array([[2], [2]]), np.full(2, 3.0), numbers).tolist()
    [1.0, 1.0, 9.0]
    """

    name = "scatter_mul"
    _operation = "stablehlo.multiply"
    _ufunc = np.multiply
    _exempt_of_overlaps = {"extreme numbers agree": "whether a product under- or overflows depends on its order"}
    jvp = partials(itself, None,
                   lambda t, out, x, indices, y, **params: _product_tangent(t, x, indices, y, params))

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, dimension_numbers: Numbers, indices_are_sorted: bool,
                  unique_indices: bool, mode: str) -> Any:
        _, indices, updates = args
        return [scatter_mul.primitive.bind(cotangents, indices, updates, dimension_numbers=dimension_numbers, mode=mode,
                                           indices_are_sorted=indices_are_sorted, unique_indices=unique_indices),
                None, None]


def _product_tangent(t: Any, x: Any, indices: Any, y: Any, params: dict[str, Any]) -> Any:
    """The contribution of the updates' tangent to the tangent of the product."""
    numbers, mode = params["dimension_numbers"], params["mode"]
    zeros = full(shape_of(x), 0, aval_of(t).dtype)
    if params["unique_indices"]:
        before = read_back(x, indices, shape_of(y), numbers, mode)
        return scatter_add.primitive.bind(zeros, indices, lax.mul(t, before), **params)
    windows, one = one_by_one(indices, (y, t), numbers)
    alone = {**params, "dimension_numbers": one, "unique_indices": True}

    def step(carry: Any, window: Any) -> Any:
        (product, tangent), (i, factor, factor_t) = carry, window
        before = read_back(product, i, shape_of(factor), one, mode)
        tangent = scatter_mul.primitive.bind(tangent, i, factor, **alone)
        return (scatter_mul.primitive.bind(product, i, factor, **alone),
                scatter_add.primitive.bind(tangent, i, lax.mul(factor_t, before), **alone)), None

    return roles.scan(step, (x, zeros), windows)[0][1]


def one_by_one(indices: Any, updates: Any, numbers: Numbers) -> tuple[Any, Numbers]:
    """Indices and updates with a single axis of windows in front (besides batches), and the numbers for one window."""
    window_dims, inserted, index_map, x_batch, index_batch = numbers
    rank, sizes = len(shape_of(indices)) - 1, shape_of(indices)
    batches = sorted(index_batch)
    order = [d for d in range(rank) if d not in batches] + batches
    kept = tuple([sizes[d] for d in batches])
    count = int(np.prod([sizes[d] for d in order[:rank - len(batches)]], dtype=int))
    indices = reshape(lax.transpose(indices, (*order, rank)), (count, *kept, sizes[-1]))
    scattered = [d for d in range(len(shape_of(updates[0]))) if d not in window_dims]
    within = tuple([shape_of(updates[0])[d] for d in window_dims])
    parts = [reshape(lax.transpose(y, (*[scattered[d] for d in order], *window_dims)), (count, *kept, *within))
             for y in updates]
    one = (tuple(range(len(batches), len(batches) + len(window_dims))), inserted, index_map, x_batch,
           tuple([batches.index(d) for d in index_batch]))
    return (indices, *parts), one


class _ScatterExtreme(_Scatter):
    """The tangent is that of the element that is the extreme; tied elements share it equally."""

    jvp = partials(lambda t, out, x, indices, y, **params: _of_operand(t, out, x, indices, y, params), None,
                   lambda t, out, x, indices, y, **params: _of_updates(t, out, x, indices, y, params))
    transpose = not_linear("extremes are not linear")


def _of_operand(t: Any, out: Any, x: Any, indices: Any, y: Any, params: dict[str, Any]) -> Any:
    return _shared(_where(lax.eq(x, out), t), out, x, indices, y, params)


def _of_updates(t: Any, out: Any, x: Any, indices: Any, y: Any, params: dict[str, Any]) -> Any:
    zeros, won = full(shape_of(x), 0, aval_of(t).dtype), _where(_winners(out, indices, y, params), t)
    return _shared(scatter_add.primitive.bind(zeros, indices, won, **params), out, x, indices, y, params)


def _where(condition: Any, x: Any) -> Any:
    """x, or 0 where the condition doesn't hold."""
    return lax.select_n(condition, full(shape_of(x), 0, aval_of(x).dtype), x)


def _winners(out: Any, indices: Any, y: Any, params: dict[str, Any]) -> Any:
    """Which updates equal the extreme at their place."""
    return lax.eq(read_back(out, indices, shape_of(y), params["dimension_numbers"], params["mode"]), y)


def _shared(t: Any, out: Any, x: Any, indices: Any, y: Any, params: dict[str, Any]) -> Any:
    """A tangent divided by the number of tied elements."""
    ones = lax.convert_element_type(_winners(out, indices, y, params), np.int32)
    ties = scatter_add.primitive.bind(lax.convert_element_type(lax.eq(x, out), np.int32), indices, ones, **params)
    return lax.div(t, lax.convert_element_type(lax.max(ties, np.int32(1)), aval_of(t).dtype))


class ScatterMin(_ScatterExtreme):
    """`scatter_min(operand, scatter_indices, updates, dimension_numbers, ...)`: the lesser of old and new.

    >>> numbers = ScatterDimensionNumbers((), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    >>> scatter_min(np.zeros(3), np.array([[1], [2]]), np.array([4.0, -4.0]), numbers).tolist()
    [0.0, 0.0, -4.0]
    """

    name = "scatter_min"
    _operation = "stablehlo.minimum"
    _ufunc = np.minimum


class ScatterMax(_ScatterExtreme):
    """`scatter_max(operand, scatter_indices, updates, dimension_numbers, ...)`: the greater of old and new.

    >>> numbers = ScatterDimensionNumbers((), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    >>> scatter_max(np.zeros(3), np.array([[1], [2]]), np.array([4.0, -4.0]), numbers).tolist()
    [0.0, 4.0, 0.0]
    """

    name = "scatter_max"
    _operation = "stablehlo.maximum"
    _ufunc = np.maximum


scatter: Any = define(Scatter())
scatter_add: Any = define(ScatterAdd())
scatter_sub: Any = define(ScatterSub())
scatter_mul: Any = define(ScatterMul())
scatter_min: Any = define(ScatterMin())
scatter_max: Any = define(ScatterMax())

_SCATTERS = {f.primitive.name: f for f in (scatter, scatter_add, scatter_sub, scatter_mul, scatter_min, scatter_max)}


def check_scatter(name: str, x: ShapedArray, indices: ShapedArray, updates: ShapedArray, numbers: Numbers) -> None:
    """Raise unless updates of this shape can be written at these indices."""
    window_dims, inserted, index_map, x_batch, index_batch = numbers
    check_numbers(name, x, indices, index_map, inserted, x_batch, index_batch)
    check_places(name, window_dims, updates, "update_window_dims")
    windows = tuple([n for d, n in enumerate(updates.shape) if d not in window_dims])
    fits = windows == indices.shape[:-1] and len(window_dims) + len(inserted) + len(x_batch) == x.ndim
    if not fits or any([s > n for s, n in zip(window_sizes(x.shape, updates.shape, numbers), x.shape,
                                              strict=True)]):
        raise refused(name, "the updates don't fit the operand and the indices",
                      got=f"{updates} into {x} at {indices} with {ScatterDimensionNumbers(*numbers)}",
                      wanted="the indices' axes but the last, and a window axis for each operand axis not inserted",
                      todo="for x[i] along axis 0: inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)")


def read_back(ct: Any, indices: Any, updates_shape: Shape, numbers: Numbers, mode: str) -> Any:
    """The contents of the windows that a scatter wrote; 0 for those that it skipped."""
    sizes = window_sizes(shape_of(ct), updates_shape, numbers)
    return lax.gather(ct, indices, GatherDimensionNumbers(*numbers), sizes, mode="fill" if mode == "drop" else mode,
                      fill_value=0)


def _clamped(indices: Any, shape: Shape, updates: Shape, numbers: Numbers) -> Any:
    """The indices of a scatter, clamped so that each window is within the operand."""
    zero, sizes = as_dtype(0, aval_of(indices).dtype), window_sizes(shape, updates, numbers)
    upper = [n - s for n, s in zip(shape, sizes, strict=True)]
    return lax.max(lax.min(indices, uppers(indices, upper, numbers[2])), zero)
