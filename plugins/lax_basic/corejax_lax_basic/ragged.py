"""Products of groups: each group of consecutive rows is multiplied by a matrix of its own.

How many rows each group has is data, not a shape. Groups follow one another from the first row on; rows that are in no
group give zeros, and what exceeds the number of rows doesn't count, nor do negative sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, DTypeLike, Linear, ShapedArray, aval_of, dtypes, to_dim
from corejax.errors import CorejaxNotImplementedError
from corejax.plugin import Sample, define, hookimpl, itself, partials, public, refused, shaping
from corejax_lax_basic._axes import Shape, all_weak, canonical_dtype, inverse, shape_of
from corejax_lax_basic._ragged_layout import ends_of, in_loop, layout_of, of_all_groups, prefix_axes
from corejax_lax_basic.linear_algebra import (
    DotDimensionNumbers,
    DotNumbers,
    canonical_dot_numbers,
    check_dot_numbers,
    dot_general,
    free_axes,
    product_dtype,
    to_multiply,
)
from corejax_lax_basic.precision import Canonical, PrecisionLike, canonical_precision
from corejax_lax_basic.shapes import move_axis, transpose

__all__ = ["RaggedDotDimensionNumbers", "ragged_dot", "ragged_dot_general"]

#: Dimension numbers in programs: those of the product, the ragged axes of lhs, the group axes of rhs
Numbers: TypeAlias = tuple[DotNumbers, Shape, Shape]

_NAME = "ragged_dot_general"
_ULPS = 1000.0  # sums that cancel, in another order


@dataclass(frozen=True, init=False)
class RaggedDotDimensionNumbers:
    """Which axes `ragged_dot_general` contracts, and which of them are divided into groups.

    `dot_dimension_numbers` is as in `dot_general`. `lhs_ragged_dimensions` has the one axis of lhs that groups divide.
    `rhs_group_dimensions` has the axis of rhs that enumerates groups, if the ragged axis is neither contracted nor a
    batch axis; else it is empty.

    >>> RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0]).lhs_ragged_dimensions
    (0,)
    """

    dot_dimension_numbers: DotDimensionNumbers
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]

    @public
    def __init__(self, dot_dimension_numbers: DotDimensionNumbers, lhs_ragged_dimensions: Sequence[int],
                 rhs_group_dimensions: Sequence[int]) -> None:
        ragged = shaping.as_ints("RaggedDotDimensionNumbers", "lhs_ragged_dimensions", lhs_ragged_dimensions)
        group = shaping.as_ints("RaggedDotDimensionNumbers", "rhs_group_dimensions", rhs_group_dimensions)
        object.__setattr__(self, "dot_dimension_numbers", canonical_dot_numbers(dot_dimension_numbers))
        object.__setattr__(self, "lhs_ragged_dimensions", ragged)
        object.__setattr__(self, "rhs_group_dimensions", group)


_PLAIN: Numbers = ((((1,), (1,)), ((), ())), (0,), (0,))


class RaggedDotGeneral:
    """`ragged_dot_general(lhs, rhs, group_sizes, ragged_dot_dimension_numbers, ...)`: products of groups of rows.

    The ragged axis of lhs is divided into groups of consecutive elements; `group_sizes` says how many each has. Its
    last axis enumerates groups. It may have more axes before: those of lhs that are batch axes, and those before the
    ragged one among the contracted or the other axes, whichever it is one of. Each of their elements is then divided in
    its own way.

    - If the ragged axis isn't contracted, rhs has an axis that enumerates groups: each group is multiplied by its part.
    - If it is contracted, the result has a new first axis, with the contraction within each group.
    - If it is a batch axis, this is `dot_general`.

    Elements in no group give zeros. `precision` and `preferred_element_type` are as in `dot_general`.

    >>> numbers = RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), [0], [])
    >>> ragged_dot_general(np.ones((5, 1)), np.ones((5, 1)), np.array([2, 3]), numbers).tolist()
    [[[2.0]], [[3.0]]]
    """

    name = _NAME

    def function(self, bind: Callable[..., Array]) -> Any:
        def ragged_dot_general(lhs: ArrayLike, rhs: ArrayLike, group_sizes: ArrayLike,
                               ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
                               precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None,
                               group_offset: ArrayLike | None = None) -> Array:
            numbers = _canonical(ragged_dot_dimension_numbers)
            return _product(lhs, rhs, group_sizes, numbers, precision, preferred_element_type, group_offset)
        return ragged_dot_general

    @hookimpl
    def impl(self, args: Any, *, ragged_dot_dimension_numbers: Numbers, precision: Canonical,
             preferred_element_type: np.dtype | None) -> Any:
        lhs, rhs, group_sizes = args
        dtype = preferred_element_type or lhs.dtype
        how = layout_of(ragged_dot_dimension_numbers, lhs.shape, rhs.shape, group_sizes.shape)
        lhs, rhs, sums = to_multiply(self.name, lhs, rhs, dtype, precision)
        left, right = how.arranged(lhs, rhs)
        ends = ends_of(how, group_sizes)
        out = np.zeros(how.flat_result, left.dtype)
        start = 0
        for k, end in enumerate(ends.tolist()):  # rows after the last group of each prefix count as another group
            prefix, group = divmod(k, how.groups + 1)
            if group < how.groups and end > start:
                if how.contracted:
                    out[group, prefix // how.outer] += left[start:end].T @ right[start:end]
                else:
                    out[start:end] = left[start:end] @ right[prefix // how.outer * how.groups + group]
            start = end
        return out.astype(sums, copy=False).astype(dtype, copy=False).reshape(how.result)

    @hookimpl
    def abstract_eval(self, avals: Any, *, ragged_dot_dimension_numbers: Numbers, precision: Canonical,
                      preferred_element_type: np.dtype | None) -> ShapedArray:
        lhs, rhs, group_sizes = avals
        dtype = product_dtype(self.name, (lhs, rhs), precision, preferred_element_type)
        _check(lhs, rhs, group_sizes, ragged_dot_dimension_numbers)
        how = layout_of(ragged_dot_dimension_numbers, lhs.shape, rhs.shape, group_sizes.shape)
        return ShapedArray(how.result, dtype, all_weak((lhs, rhs)))

    jvp = partials(itself, itself, None)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, ragged_dot_dimension_numbers: Numbers,
                  precision: Canonical) -> Any:
        lhs, rhs, sizes = args
        ((lc, rc), (lb, rb)), (ragged,), group = ragged_dot_dimension_numbers
        lf = free_axes(len(shape_of(lhs)), lc, lb)
        rf = free_axes(len(shape_of(rhs)), (*rc, *group), rb)
        of_lhs = type(lhs) is Linear
        wanted, other = (lhs.aval, rhs) if of_lhs else (rhs.aval, lhs)
        ct, dtype = cotangents, aval_of(cotangents).dtype
        if aval_of(other).dtype != dtype:
            other = lax.convert_element_type(other, dtype)
        batch, n = tuple(range(len(lb))), len(lb)
        ct_lf, ct_rf = tuple(range(n, n + len(lf))), tuple(range(n + len(lf), n + len(lf) + len(rf)))
        if ragged not in lc and of_lhs:
            kept = [lc[rc.index(d)] for d in sorted(rc)]
            pair, numbers = (ct, other), (((ct_rf, rf), (batch, rb)), (n + lf.index(ragged),), group)
            axes = (*lb, *lf, *kept)
        elif ragged not in lc:
            kept = [rc[lc.index(d)] for d in sorted(lc)]
            pair, numbers = (other, ct), (((lf, ct_lf), (lb, batch)), (ragged,), ())
            axes = (*group, *rb, *kept, *rf)
        else:  # the contracted axes become axes of rows, in their order here
            order, beside, mine = ((*rb, *rc, *rf), ct_rf, (*lb, *lc, *lf)) if of_lhs else (
                (*lb, *lc, *lf), ct_lf, (*rb, *rc, *rf))
            contract = tuple(range(n + len(lc), n + len(lc) + len(beside)))
            later = shaping.shifted(beside, 0), shaping.shifted(batch, 0)
            pair = transpose(other, order), ct
            numbers = (((contract, later[0]), (batch, later[1])), (n + lc.index(ragged),), (0,))
            axes = mine
        out = ragged_dot_general.primitive.bind(*pair, sizes, ragged_dot_dimension_numbers=numbers,
                                                precision=precision, preferred_element_type=None)
        out = transpose(out, inverse(axes))
        out = lax.convert_element_type(out, wanted.dtype) if dtype != wanted.dtype else out
        return [out, None, None] if of_lhs else [None, out, None]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, ragged_dot_dimension_numbers: Numbers, precision: Canonical,
             preferred_element_type: np.dtype | None) -> Any:
        (lhs, rhs, sizes), (l_dim, r_dim, s_dim) = args, dims
        ((lc, rc), (lb, rb)), (ragged,), group = ragged_dot_dimension_numbers
        contracted, n = ragged in lc, len(lb)
        lf = free_axes(len(shape_of(lhs)) - (l_dim is not None), lc, lb)
        if s_dim is None and r_dim is None:  # the last of the free axes of lhs
            lhs = move_axis(lhs, l_dim, len(shape_of(lhs)) - 1)
            numbers, out_dim = ragged_dot_dimension_numbers, contracted + n + len(lf)
        elif s_dim is None and l_dim is None:  # the first of the free axes of rhs
            rhs = move_axis(rhs, r_dim, 0)
            numbers = ((lc, shaping.shifted(rc, 0)), (lb, shaping.shifted(rb, 0))), (ragged,), shaping.shifted(group, 0)
            out_dim = contracted + n + len(lf)
        else:
            lhs, shared = to_dim(lhs, l_dim, 0, axis.size), r_dim is None and not contracted
            rhs = rhs if shared else to_dim(rhs, r_dim, 0, axis.size)
            if s_dim is not None or len(shape_of(sizes)) > 1:
                place = n if shared else 0
                sizes = self._with_prefix(axis.size, sizes, s_dim, lhs, ragged_dot_dimension_numbers, place)
            lc, lb, ragged = shaping.shifted(lc, 0), shaping.shifted(lb, 0), ragged + 1
            if not shared:
                rc, rb, group = shaping.shifted(rc, 0), shaping.shifted(rb, 0), shaping.shifted(group, 0)
                lb, rb = (0, *lb), (0, *rb)
            numbers, out_dim = (((lc, rc), (lb, rb)), (ragged,), group), n if shared else int(contracted)
        return ragged_dot_general.primitive.bind(
            lhs, rhs, sizes, ragged_dot_dimension_numbers=numbers, precision=precision,
            preferred_element_type=preferred_element_type), out_dim

    @staticmethod
    def _with_prefix(size: int, sizes: Any, s_dim: int | None, lhs: Any, numbers: Numbers, place: int) -> Any:
        """The sizes of groups with the batch axis at this place among the axes before their last."""
        if s_dim is not None and len(shape_of(sizes)) == 2:  # each element of the other axes is divided in the same way
            shape, prefix = shape_of(lhs)[1:], prefix_axes(numbers, len(shape_of(lhs)) - 1)
            sizes = lax.broadcast_in_dim(move_axis(sizes, s_dim, 0), (size, *[shape[d] for d in prefix],
                                                                      shape_of(sizes)[1 - s_dim]), (0, len(prefix) + 1))
            s_dim = 0
        return to_dim(sizes, s_dim, place, size)

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, ragged_dot_dimension_numbers: Numbers, precision: Canonical,
                        preferred_element_type: np.dtype | None) -> Any:
        lhs, rhs, sizes = [aval.shape for aval in ctx.avals_in]
        how = layout_of(ragged_dot_dimension_numbers, lhs, rhs, sizes)
        (out,) = ctx.avals_out
        by_groups = in_loop if ctx.platform == "cpu" and how.loops else of_all_groups
        return ctx.lower(lambda x, y, s: by_groups(how, x, y, s, precision, out.stored.dtype), *args)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        plain = {"precision": None, "preferred_element_type": None}
        inexact = {"extreme numbers agree": "large products cancel to what rounding left of them"}
        for left, right, sizes, numbers in SAMPLES:
            yield Sample([rng.standard_normal(left), rng.standard_normal(right), np.array(sizes, int)],
                         {"ragged_dot_dimension_numbers": numbers, **plain}, ulps=_ULPS, exempt=inexact)
        basic = {"ragged_dot_dimension_numbers": _PLAIN, **plain}
        yield Sample([rng.integers(-9, 9, (4, 2), np.int8), rng.integers(-9, 9, (2, 2, 3), np.int8), np.array([1, 2])],
                     basic)
        yield Sample([rng.standard_normal((4, 2)).astype("float32"), rng.standard_normal((2, 2, 3)).astype("float32"),
                      np.array([3, 1], np.uint8)],
                     {**basic, "preferred_element_type": np.dtype(np.float64), "precision": ("HIGH", "DEFAULT")},
                     ulps=_ULPS)
        yield Sample([np.ones((4, 2)), np.ones((2, 2, 3)), np.ones(2)], basic, error=TypeError)
        yield Sample([np.ones((4, 2)), np.ones((2, 2, 3)), np.ones(3, int)], basic, error=TypeError)


#: Shapes of lhs and of rhs, sizes of groups, and dimension numbers.
SAMPLES: list[tuple[Any, ...]] = [
    ((5, 2), (3, 2, 4), [2, 0, 2], _PLAIN), ((4, 3), (2, 3, 2), [3, 7], _PLAIN), ((3, 2), (0, 2, 2), [], _PLAIN),
    ((2, 0), (2, 0, 3), [1, 1], _PLAIN), ((5, 1), (1, 1, 1), [3], _PLAIN),
    ((2, 4, 3), (3, 2, 2, 2), [[1, 3], [0, 2]], ((((2,), (0,)), ((0,), (2,))), (1,), (1,))),
    ((3, 2, 4), (2, 4, 3), [[1, 1], [2, 0], [0, 0]], ((((2,), (1,)), ((), ())), (1,), (0,))),
    ((4, 3), (4, 2), [1, 2], ((((0,), (0,)), ((), ())), (0,), ())),
    ((2, 3, 4), (4, 5, 2), [1, 0, 2], ((((2, 0), (0, 2)), ((), ())), (0,), ())),
    ((2, 3, 4), (3, 4, 2), [[2, 1], [4, 4]], ((((2,), (1,)), ((0,), (2,))), (2,), ()))]

ragged_dot_general: Any = define(RaggedDotGeneral())


@public
def ragged_dot(lhs: ArrayLike, rhs: ArrayLike, group_sizes: ArrayLike, precision: PrecisionLike = None,
               preferred_element_type: DTypeLike | None = None, group_offset: ArrayLike | None = None) -> Array:
    """Each group of consecutive rows of lhs, `(m, k)`, times its matrix in rhs, `(groups, k, n)`: a matrix `(m, n)`.

    `group_sizes` has the number of rows of each group. Rows after the last group give zeros.

    >>> ragged_dot(np.ones((4, 1)), np.array([[[2.0]], [[3.0]]]), np.array([1, 2])).tolist()
    [[2.0], [3.0], [3.0], [0.0]]
    """
    return _product(lhs, rhs, group_sizes, _PLAIN, precision, preferred_element_type, group_offset)


def _product(lhs: Any, rhs: Any, group_sizes: Any, numbers: Numbers, precision: PrecisionLike, preferred: Any,
             group_offset: Any) -> Array:
    if group_offset is not None:
        raise refused(_NAME, "it can't start at a later group yet", got=f"group_offset={group_offset!r:.60}",
                      wanted="None", todo="take a part of rhs and of group_sizes, and of lhs without earlier groups",
                      kind=CorejaxNotImplementedError)
    level, preferred = canonical_precision(_NAME, precision), None if preferred is None else canonical_dtype(preferred)
    ((lc, _), (lb, _)), ragged, _ = numbers
    if ragged and ragged[0] in lb and ragged[0] not in lc:
        _check(aval_of(lhs), aval_of(rhs), aval_of(group_sizes), numbers, batch=True)
        out: Array = dot_general.primitive.bind(lhs, rhs, dimension_numbers=numbers[0], precision=level,
                                                preferred_element_type=preferred)
        return out
    out = ragged_dot_general.primitive.bind(lhs, rhs, group_sizes, ragged_dot_dimension_numbers=numbers,
                                            precision=level, preferred_element_type=preferred)
    return out


def _canonical(numbers: Any) -> Numbers:
    if not isinstance(numbers, RaggedDotDimensionNumbers):
        raise refused(_NAME, "ragged_dot_dimension_numbers has the wrong form", got=f"{numbers!r:.80}",
                      wanted="lax.RaggedDotDimensionNumbers(...)",
                      todo="for rows of matrices, call lax.ragged_dot, which needs none")
    dot: Any = numbers.dot_dimension_numbers
    return dot, tuple(numbers.lhs_ragged_dimensions), tuple(numbers.rhs_group_dimensions)


def _check(lhs: ShapedArray, rhs: ShapedArray, sizes: ShapedArray, numbers: Numbers, batch: bool = False) -> None:
    """Raise unless the axes exist and fit together."""
    dot, ragged, group = numbers
    (lc, rc), (lb, rb) = dot
    check_dot_numbers(_NAME, lhs, rhs, dot)

    def wrong(problem: str, wanted: str, todo: str) -> Exception:
        return refused(_NAME, problem, got=f"{lhs}, {rhs}, group_sizes {sizes}, contracting {lc} with {rc}, batch axes "
                                           f"{lb} and {rb}, ragged {ragged}, groups {group}", wanted=wanted, todo=todo)

    if len(ragged) != 1 or not 0 <= ragged[0] < lhs.ndim or (ragged[0] in lb) != batch:
        raise wrong("there must be one ragged axis", f"one axis of lhs, from 0 to {lhs.ndim - 1}",
                    "for several, make them one by lax.reshape")
    if not dtypes.is_integer(sizes.dtype) or not sizes.ndim:
        raise wrong("group_sizes must be an array of integers", "integers, with groups along the last axis",
                    "convert it with x.astype(int)")
    if not batch and sizes.ndim > 1:
        prefix = tuple([lhs.shape[d] for d in prefix_axes(numbers, lhs.ndim)])
        if sizes.shape[:-1] != prefix:
            raise wrong("group_sizes has other axes than those before the ragged one", f"the shape (groups,), or "
                        f"{prefix} and then groups", "leave these axes out if the groups are the same for all")
    if batch or ragged[0] in lc:
        if group:
            raise wrong("rhs can have no axis for groups if the ragged axis is contracted or a batch axis",
                        "no rhs_group_dimensions", "leave it empty")
        return
    if len(group) != 1 or not 0 <= group[0] < rhs.ndim or group[0] in rc or group[0] in rb:
        raise wrong("rhs must have an axis for groups", "one axis, neither contracted nor a batch axis",
                    "for the same matrix in each group, call lax.dot_general")
    if rhs.shape[group[0]] != sizes.shape[-1]:
        raise wrong(f"rhs is for {rhs.shape[group[0]]} groups, and group_sizes for {sizes.shape[-1]}", "equal numbers",
                    "give each group a size, which may be 0")
