"""How products of groups are computed: operands brought to one of two forms, and the ways to lower these.

With G groups, and the ragged axis not contracted, `(rows, k)` times `(batch * G, k, n)` is `(rows, n)`. With it
contracted, `(rows, m)` times `(rows, n)` is `(G, batch, m, n)`. In both, the axes of rows are batch, outer, ragged
and inner. Each element of batch and outer, a prefix, has groups of its own, and after them, as one more group, the rows
that are in none.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from corejax import lax
from corejax.core import aval_of, dtypes
from corejax.plugin import roles
from corejax_lax_basic._axes import Shape, dtype_kind
from corejax_lax_basic.creation import as_dtype, full
from corejax_lax_basic.linear_algebra import dot_general, free_axes
from corejax_lax_basic.precision import Canonical
from corejax_lax_basic.shapes import broadcast_in_dim, reshape, transpose

#: Up to this many multiplications, of all rows with all groups, are faster than a loop.
DENSE = 2 ** 19

_LARGEST_TILE = 128
_FEW = 32  # groups, whose ends are sums over all pairs of groups


class Layout(NamedTuple):
    """The form of the operands, and of the result."""

    contracted: bool
    lhs_order: Shape
    rhs_order: Shape
    flat_lhs: Shape
    flat_rhs: Shape
    flat_result: Shape
    result: Shape
    batch: int
    outer: int
    ragged: int
    inner: int
    groups: int

    def arranged(self, lhs: Any, rhs: Any) -> tuple[Any, Any]:
        """The operands in this form."""
        return (lhs.transpose(self.lhs_order).reshape(self.flat_lhs),
                rhs.transpose(self.rhs_order).reshape(self.flat_rhs))

    @property
    def work(self) -> int:
        """The number of multiplications for all rows with all groups."""
        return self.groups * self.flat_lhs[0] * self.flat_lhs[1] * self.flat_rhs[-1]

    @property
    def loops(self) -> bool:
        """Whether a loop has less to do, on a device that starts its steps at once."""
        steps = self.flat_lhs[0] // self.tile + min(self.groups, self.flat_lhs[0])
        copying = 24 if self.contracted else 4  # a step copies a matrix, or adds to one, in as long as these rows take
        return self.groups > 1 and self.work > max(
            DENSE, steps * (self.tile + copying) * self.flat_lhs[1] * self.flat_rhs[-1])

    @property
    def tile(self) -> int:
        """How many rows to multiply at a time: not many more than a group has on average."""
        average = self.flat_lhs[0] // max(self.batch * self.outer * self.groups, 1)
        return min(1 << max(average, 1).bit_length() - 1, _LARGEST_TILE)


def prefix_axes(numbers: Any, lhs_ndim: int) -> Shape:
    """The axes of lhs for each element of which the groups may differ."""
    ((lc, _), (lb, _)), (ragged,), _ = numbers
    axes = lc if ragged in lc else free_axes(lhs_ndim, lc, lb)
    return (*lb, *axes[:axes.index(ragged)])


@lru_cache(maxsize=4096)
def layout_of(numbers: Any, lhs: Shape, rhs: Shape, sizes: Shape) -> Layout:
    """The layout for operands of these shapes."""
    ((lc, rc), (lb, rb)), (ragged,), group = numbers
    lf, rf = free_axes(len(lhs), lc, lb), free_axes(len(rhs), (*rc, *group), rb)
    contracted = ragged in lc
    axes, others = (lc, lf) if contracted else (lf, lc)
    k = axes.index(ragged)
    batch, outer, inner = [prod([lhs[d] for d in some]) for some in (lb, axes[:k], axes[k + 1:])]
    rows, left, right = batch * outer * lhs[ragged] * inner, prod([lhs[d] for d in others]), prod([rhs[d] for d in rf])
    groups = sizes[-1]
    free = (*[lhs[d] for d in (*lb, *lf)], *[rhs[d] for d in rf])
    return Layout(contracted, (*lb, *axes, *others), (*rb, *group, *rc, *rf), (rows, left),
                  (rows, right) if contracted else (batch * groups, left, right),
                  (groups, batch, left, right) if contracted else (rows, right),
                  (groups, *free) if contracted else free, batch, outer, lhs[ragged], inner, groups)


# Where groups end

def ends_of(how: Layout, sizes: Any) -> Any:
    """In NumPy: the row after each group, and after the rows of each prefix."""
    prefixes = how.batch * how.outer
    counts = np.clip(sizes.astype(np.int64), 0, how.ragged)
    ends = np.minimum(np.broadcast_to(counts.reshape(-1, how.groups) if counts.size else np.zeros((1, how.groups), int),
                                      (prefixes, how.groups)).cumsum(-1), how.ragged)
    ends = np.concatenate([ends, np.full((prefixes, 1), how.ragged)], 1) * how.inner
    return (ends + np.arange(prefixes)[:, None] * (how.ragged * how.inner)).reshape(-1)


def _traced_bounds(how: Layout, sizes: Any) -> tuple[Any, Any]:
    """The first row of each group and that after it, by prefix and group, counted in the prefix; of a traced value."""
    shape, width = (how.batch * how.outer, how.groups), dtypes.integer_limits(aval_of(sizes).dtype)
    if width.bits < 32 or width == np.iinfo(np.uint32):
        sizes = lax.convert_element_type(sizes, np.int64)
    zero, largest = [as_dtype(bound, aval_of(sizes).dtype) for bound in (0, how.ragged)]
    counts = lax.convert_element_type(lax.clamp(zero, sizes, largest), np.int32)
    counts = broadcast_in_dim(counts, shape, (1,)) if counts.ndim == 1 else reshape(counts, shape)
    if how.groups > _FEW:
        ends = roles.running_sum(counts, 1)
    else:  # all in one operation
        pairs = (*shape, how.groups)
        before = lax.le(lax.broadcasted_iota(np.int32, pairs, 1), lax.broadcasted_iota(np.int32, pairs, 2))
        those = lax.select(before, broadcast_in_dim(counts, pairs, (0, 1)), full(pairs, 0, np.int32))
        ends = roles.sum_axes(those, (1,))
    starts, ends = [lax.min(bound, np.int32(how.ragged)) for bound in (ends - counts, ends)]
    return (starts * np.int32(how.inner), ends * np.int32(how.inner)) if how.inner > 1 else (starts, ends)


# For all groups at once

def of_all_groups(how: Layout, lhs: Any, rhs: Any, sizes: Any, precision: Canonical, dtype: np.dtype) -> Any:
    """Multiply all rows with all groups, and keep what is wanted: few operations, for small arrays."""
    if not how.work:
        return full(how.result, 0, dtype)
    left, right = how.arranged(lhs, rhs)
    of_lhs = _of_all_contracted if how.contracted else _of_all_rows
    return reshape(of_lhs(how, left, right, _traced_bounds(how, sizes), precision, dtype), how.result)


def _of_all_rows(how: Layout, left: Any, right: Any, bounds: Any, precision: Canonical, dtype: np.dtype) -> Any:
    batch, groups, (count, k), n = how.batch, how.groups, how.flat_lhs, how.flat_rhs[-1]
    per_batch, rows = count // batch, how.ragged * how.inner
    left = broadcast_in_dim(reshape(left, (batch, per_batch, k)), (batch, groups, per_batch, k), (0, 2, 3))
    products = dot_general.primitive.bind(
        left, reshape(right, (batch, groups, k, n)), dimension_numbers=(((3,), (2,)), ((0, 1), (0, 1))),
        precision=precision, preferred_element_type=dtype)
    shape = (batch * how.outer, rows, groups)
    past = lax.ge(lax.broadcasted_iota(np.int32, shape, 1), broadcast_in_dim(bounds[1], shape, (0, 2)))
    group = reshape(roles.sum_axes(lax.convert_element_type(past, np.int32), (2,)), (batch, per_batch))
    inside = broadcast_in_dim(reshape(group, (count,)) < np.int32(groups), (count, n), (0,))
    products = reshape(products, (batch * groups * per_batch, n))
    if groups > 1:
        first = lax.broadcasted_iota(np.int32, (batch, per_batch), 0) * np.int32(groups)
        place = (first + lax.min(group, np.int32(groups - 1))) * np.int32(per_batch)
        place = place + lax.broadcasted_iota(np.int32, (batch, per_batch), 1)
        numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
        products = lax.gather(products, reshape(place, (count, 1)), numbers, (1, n), mode="promise_in_bounds")
    return lax.select(inside, products, full((count, n), 0, dtype))


def _of_all_contracted(how: Layout, left: Any, right: Any, bounds: Any, precision: Canonical,
                       dtype: np.dtype) -> Any:
    shape = (how.batch * how.outer, how.groups, how.ragged * how.inner)
    row, (start, end) = lax.broadcasted_iota(np.int32, shape, 2), [broadcast_in_dim(x, shape, (0, 1)) for x in bounds]
    inside = lax.bitwise_and(row < end, lax.ge(row, start))
    first = tuple([n for n in (how.batch, how.outer) if n > 1])  # axes of one element would slow the product down

    def masked(x: Any) -> Any:
        wide = (*first, *shape[1:], x.shape[1])
        kept = tuple([d for d in range(len(wide)) if d != len(first)])
        x = broadcast_in_dim(reshape(x, tuple([wide[d] for d in kept])), wide, kept)
        mask = broadcast_in_dim(reshape(inside, wide[:-1]), wide, tuple(range(len(wide) - 1)))
        return lax.select(mask, x, full(wide, 0, aval_of(x).dtype))

    group = len(first)
    outer = (group - 1,) if how.outer > 1 else ()
    batch, summed = (*([0] if how.batch > 1 else []), group), (*outer, group + 1)
    out = dot_general.primitive.bind(masked(left), masked(right), precision=precision, preferred_element_type=dtype,
                                     dimension_numbers=((summed, summed), (batch, batch)))
    return transpose(reshape(out, (how.batch, how.groups, *how.flat_result[2:])), (1, 0, 2, 3))


# In a loop

def in_loop(how: Layout, lhs: Any, rhs: Any, sizes: Any, precision: Canonical, dtype: np.dtype) -> Any:
    """Multiply some rows of one group at a time: no more work than there is, and no arrays larger than the operands."""
    left, right = how.arranged(lhs, rhs)
    prefixes, per_prefix, none = how.batch * how.outer, how.ragged * how.inner, np.int32(0)
    tile, rows, by_prefix = how.tile, how.flat_lhs[0], _traced_bounds(how, sizes)[1]
    ends = lax.concatenate([by_prefix, full((prefixes, 1), per_prefix, np.int32)], 1)
    ends = ends + lax.broadcasted_iota(np.int32, (prefixes, how.groups + 1), 0) * np.int32(per_prefix)
    ends = lax.collapse(ends, 0)

    def padded(x: Any) -> Any:  # so that the last rows can be read as the first of a tile
        return lax.pad(x, as_dtype(0, aval_of(x).dtype), [(0, tile, 0), (0, 0, 0)])

    def at(row: Any) -> tuple[Any, Any, Any, Any]:
        """The end of the group that a row is in, its batch, its group, and whether it is in any."""
        past = lax.le(ends, broadcast_in_dim(row, ends.shape, ()))
        k = roles.sum_axes(lax.convert_element_type(past, np.int32), (0,))
        end = lax.dynamic_index_in_dim(ends, k, keepdims=False)
        prefix, group = lax.div(k, np.int32(how.groups + 1)), lax.rem(k, np.int32(how.groups + 1))
        last = np.int32(how.groups - 1)
        return end, lax.div(prefix, np.int32(how.outer)), lax.min(group, last), lax.le(group, last)

    def products(row: Any, out: Any) -> tuple[Any, Any]:
        end, batch, group, inside = at(row)
        part = lax.dynamic_slice(left, (row, none), (tile, how.flat_lhs[1]))
        matrix = lax.dynamic_slice(right, (batch * np.int32(how.groups) + group, none, none), (1, *how.flat_rhs[1:]))
        product = dot_general.primitive.bind(
            part, reshape(matrix, how.flat_rhs[1:]), dimension_numbers=(((1,), (0,)), ((), ())), precision=precision,
            preferred_element_type=dtype)
        out = lax.dynamic_update_slice(out, product, (row, none))  # rows after the group's end are written again
        return lax.select(inside, lax.min(row + np.int32(tile), end), end), out

    def sums(row: Any, out: Any) -> tuple[Any, Any]:
        end, batch, group, inside = at(row)
        counts = lax.bitwise_and(broadcast_in_dim(inside, (tile,), ()), row + lax.iota(np.int32, tile) < end)

        def part(x: Any) -> Any:
            some = lax.dynamic_slice(x, (row, none), (tile, x.shape[1]))
            return lax.select(broadcast_in_dim(counts, some.shape, (0,)), some, full(some.shape, 0, aval_of(x).dtype))

        product = dot_general.primitive.bind(
            part(left), part(right), dimension_numbers=(((0,), (0,)), ((), ())), precision=precision,
            preferred_element_type=wide)
        place, shape = (group, batch, none, none), (1, 1, *product.shape)
        total = lax.dynamic_slice(out, place, shape) + reshape(product, shape)
        return lax.select(inside, lax.min(row + np.int32(tile), end), end), lax.dynamic_update_slice(out, total, place)

    left = padded(left)
    wide = np.dtype(np.float32) if dtype.itemsize < 4 and dtype_kind(dtype) == "f" else dtype
    if how.contracted:
        right, step, shape = padded(right), sums, how.flat_result
    else:
        step, shape = products, (rows + tile, how.flat_rhs[-1])
    start = full(shape, 0, wide if how.contracted else dtype)
    _, out = roles.while_loop(lambda c: c[0] < np.int32(rows), lambda c: step(*c), (none, start))
    if how.contracted:
        return reshape(lax.convert_element_type(out, dtype), how.result)
    shape = (prefixes, per_prefix)
    inside = lax.broadcasted_iota(np.int32, shape, 1) < broadcast_in_dim(by_prefix[:, how.groups - 1], shape, (0,))
    inside = broadcast_in_dim(reshape(inside, (rows,)), how.flat_result, (0,))
    return reshape(lax.select(inside, out[:rows], full(how.flat_result, 0, dtype)), how.result)
