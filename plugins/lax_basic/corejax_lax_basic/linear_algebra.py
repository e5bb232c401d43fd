"""`dot_general`, the only contraction, and the products built on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, DTypeLike, Linear, ShapedArray, aval_of, dtypes
from corejax.plugin import Sample, define, hookimpl, itself, partials, public, refused, shaping
from corejax_lax_basic._axes import (
    Shape,
    all_weak,
    broadcast_shape,
    canonical_dtype,
    dtype_kind,
    inverse,
    same_dtype,
    shape_of,
)
from corejax_lax_basic._lowering import axis_numbers
from corejax_lax_basic.precision import (
    Canonical,
    PrecisionLike,
    canonical_precision,
    check_algorithm,
    computed_in,
    exchanged,
    is_algorithm,
    lower_product,
    refuse_on_cpu,
)
from corejax_lax_basic.shapes import transpose

__all__ = ["DotDimensionNumbers", "batch_matmul", "dot", "dot_general"]

#: ((contracting axes of lhs, of rhs), (batch axes of lhs, of rhs))
DotNumbers = tuple[tuple[Shape, Shape], tuple[Shape, Shape]]

#: The axes that a product contracts, and those along which there are several products; each for lhs and for rhs
DotDimensionNumbers: TypeAlias = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]

# For sums that cancel, computed in a different order than in the compiled program.
_SUM_ULPS = 1000.0


class Plan(NamedTuple):
    """How to contract two arrays with a single matrix product: reorder axes, flatten, multiply."""

    lhs_order: Shape | None
    rhs_order: Shape | None
    n_batch: int
    n_contract: int


@lru_cache(maxsize=4096)
def _plan(dimension_numbers: DotNumbers, lhs_ndim: int, rhs_ndim: int) -> Plan:
    (lc, rc), (lb, rb) = dimension_numbers
    lhs = (*lb, *free_axes(lhs_ndim, lc, lb), *lc)
    rhs = (*rb, *rc, *free_axes(rhs_ndim, rc, rb))
    return Plan(None if lhs == tuple(range(lhs_ndim)) else lhs, None if rhs == tuple(range(rhs_ndim)) else rhs,
                len(lb), len(lc))


def free_axes(ndim: int, contracting: Shape, batch: Shape) -> Shape:
    """The axes that are neither contracted nor batched."""
    return tuple([d for d in range(ndim) if d not in contracting and d not in batch])


def _swapped(dimension_numbers: DotNumbers) -> DotNumbers:
    (lc, rc), (lb, rb) = dimension_numbers
    return (rc, lc), (rb, lb)


class DotGeneral:
    """`dot_general(lhs, rhs, dimension_numbers, precision=None, preferred_element_type=None)`: contract two arrays.

    `dimension_numbers` is `((lhs contracting, rhs contracting), (lhs batch, rhs batch))`. The result's axes are the
    batch axes, then lhs's others, then rhs's. Accumulates in, and returns, `preferred_element_type` if given.

    >>> lax.dot_general(np.ones((2, 3)), np.ones((3, 4)), (((1,), (0,)), ((), ()))).shape
    (2, 4)
    """

    name = "dot_general"

    def function(self, bind: Callable[..., Array]) -> Any:
        def dot_general(lhs: ArrayLike, rhs: ArrayLike, dimension_numbers: DotDimensionNumbers,
                        precision: PrecisionLike = None,
                        preferred_element_type: DTypeLike | None = None) -> Array:
            if preferred_element_type is not None:
                preferred_element_type = canonical_dtype(preferred_element_type)
            return bind(lhs, rhs, dimension_numbers=canonical_dot_numbers(dimension_numbers),
                        precision=canonical_precision("dot_general", precision),
                        preferred_element_type=preferred_element_type)
        return dot_general

    @hookimpl
    def impl(self, args: Any, *, dimension_numbers: DotNumbers, precision: Canonical,
             preferred_element_type: np.dtype | None) -> Any:
        lhs, rhs = args
        dtype = preferred_element_type or lhs.dtype
        lhs, rhs, sums = to_multiply(self.name, lhs, rhs, dtype, precision)
        out = _contract(lhs, rhs, _plan(dimension_numbers, lhs.ndim, rhs.ndim))
        return out if out.dtype is dtype else out.astype(sums, copy=False).astype(dtype, copy=False)

    @hookimpl
    def abstract_eval(self, avals: Any, *, dimension_numbers: DotNumbers, precision: Canonical,
                      preferred_element_type: np.dtype | None) -> ShapedArray:
        lhs, rhs = avals
        check_dot_numbers(self.name, lhs, rhs, dimension_numbers)
        dtype = product_dtype(self.name, avals, precision, preferred_element_type)
        (lc, rc), (lb, rb) = dimension_numbers
        axes = (*[lhs.shape[d] for d in lb], *[lhs.shape[d] for d in free_axes(lhs.ndim, lc, lb)],
                *[rhs.shape[d] for d in free_axes(rhs.ndim, rc, rb)])
        return ShapedArray(axes, dtype, all_weak(avals))

    jvp = partials(itself, itself)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, dimension_numbers: DotNumbers, precision: Canonical) -> Any:
        lhs, rhs = args
        if type(lhs) is Linear:
            return [_operand_cotangent(cotangents, lhs.aval, rhs, dimension_numbers, precision, False), None]
        return [None, _operand_cotangent(cotangents, rhs.aval, lhs, _swapped(dimension_numbers), precision, True)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, dimension_numbers: DotNumbers, precision: Canonical,
             preferred_element_type: np.dtype | None) -> Any:
        ((lc, rc), (lb, rb)), (l_dim, r_dim) = dimension_numbers, dims
        out_dim = 0
        if l_dim is not None:
            lc, lb = shaping.shifted(lc, l_dim), shaping.shifted(lb, l_dim)
        if r_dim is not None:
            rc, rb = shaping.shifted(rc, r_dim), shaping.shifted(rb, r_dim)
        if l_dim is not None and r_dim is not None:
            lb, rb = (l_dim, *lb), (r_dim, *rb)
        elif l_dim is not None:  # another free axis of lhs, wherever it is
            out_dim = len(lb) + free_axes(len(shape_of(args[0])), lc, lb).index(l_dim)
        elif len(shape_of(args[1])) == len(rc) + len(rb) + 1:  # the new axis is the only free one: it comes first
            args, out_dim = (args[1], args[0]), len(rb)
            (lc, rc), (lb, rb), precision = (rc, lc), (rb, lb), exchanged(precision)
        else:
            free = len(shape_of(args[0])) - len(lc) - len(lb)
            out_dim = len(rb) + free + free_axes(len(shape_of(args[1])), rc, rb).index(r_dim)
        return dot_general.primitive.bind(*args, dimension_numbers=((lc, rc), (lb, rb)), precision=precision,
                                          preferred_element_type=preferred_element_type), out_dim

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, dimension_numbers: DotNumbers, precision: Canonical) -> Any:
        (lc, rc), (lb, rb) = dimension_numbers
        attributes = {"dot_dimension_numbers": axis_numbers(ctx, "dot", {
            "lhs_batching_dimensions": lb, "rhs_batching_dimensions": rb,
            "lhs_contracting_dimensions": lc, "rhs_contracting_dimensions": rc})}
        return lower_product(ctx, "stablehlo.dot_general", args, attributes, precision)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        plain = {"precision": None, "preferred_element_type": None}
        for left, right, numbers in [((3,), (3,), (((0,), (0,)), ((), ()))), ((2, 3), (3, 4), (((1,), (0,)), ((), ()))),
                                     ((2, 3), (2, 4), (((0,), (0,)), ((), ()))), ((2,), (3,), (((), ()), ((), ()))),
                                     ((2, 3), (4, 3), (((1,), (1,)), ((), ()))), ((), (3,), (((), ()), ((), ()))),
                                     ((2, 3), (3,), (((1,), (0,)), ((), ()))), ((3,), (3, 2), (((0,), (0,)), ((), ()))),
                                     ((3,), (3,), (((), ()), ((0,), (0,)))),
                                     ((5, 2, 3), (5, 3, 4), (((2,), (1,)), ((0,), (0,)))),
                                     ((2, 3, 5), (3, 5, 4), (((1,), (0,)), ((2,), (1,)))),
                                     ((2, 3, 4), (4, 3, 2), (((1,), (1,)), ((0, 2), (2, 0)))),
                                     ((3, 2, 5), (4, 5, 3), (((2, 0), (1, 2)), ((), ()))),
                                     ((3, 2, 5), (4, 5, 3), (((0, 2), (2, 1)), ((), ()))),
                                     ((2, 3, 4, 5), (3, 5, 2, 6), (((3,), (1,)), ((1, 0), (0, 2)))),
                                     ((0, 2), (2, 3), (((1,), (0,)), ((), ()))),
                                     ((2, 0), (0, 3), (((1,), (0,)), ((), ()))), ((), (), (((), ()), ((), ())))]:
            operands = [rng.standard_normal(left), rng.standard_normal(right)]
            terms = prod([left[axis] for axis in numbers[0][0]])
            exempt = {} if numbers[0][0] else {"zeros keep their signs": "NumPy adds each product to 0, XLA doesn't"}
            if terms > 2:
                exempt = {"extreme numbers agree": "large products cancel to what rounding left of them"}
            yield Sample(operands, {"dimension_numbers": numbers, **plain}, exempt=exempt,
                         ulps=_SUM_ULPS if numbers[0][0] else None)
        matmul = {"dimension_numbers": (((1,), (0,)), ((), ())), **plain}
        yield Sample([rng.integers(-9, 9, (2, 3), np.int8), rng.integers(-9, 9, (3, 2), np.int8)], matmul)
        for dtype, precision in (("float32", None), ("float64", ("HIGHEST", "DEFAULT"))):
            yield Sample([rng.standard_normal((2, 3)).astype("float32"), rng.standard_normal((3, 2)).astype(dtype)],
                         {**matmul, "preferred_element_type": np.dtype(np.float64), "precision": precision},
                         ulps=_SUM_ULPS)
        double = np.dtype(np.float64)  # narrower algorithms round doubles, for which the kit's checks have no allowance
        for algorithm in ("F64_F64_F64", (double, double, double, 1, 1, 1, False)):
            yield Sample([rng.standard_normal((2, 3)), rng.standard_normal((3, 4))],
                         {**matmul, "precision": algorithm}, ulps=_SUM_ULPS)
        yield Sample([np.ones((2, 3), int), np.ones((3, 2), int)], {**matmul, "precision": "F32_F32_F32"},
                     error=TypeError)
        yield Sample([np.ones((2, 3)), np.ones((2, 3))], matmul, error=TypeError)
        yield Sample([np.ones((2, 3)), np.ones((3, 2))], {**matmul, "preferred_element_type": np.dtype(np.int32)},
                     error=TypeError)


def to_multiply(primitive: str, lhs: Any, rhs: Any, dtype: np.dtype, precision: Canonical) -> tuple[Any, Any, np.dtype]:
    """NumPy operands in the type to multiply in, and the type that sums of products are then rounded to.

    `dtype` is the result's.
    """
    sums = dtype
    if precision is not None and is_algorithm(precision):
        refuse_on_cpu(primitive, precision)
        left, right, sums = computed_in(precision, lhs.dtype, rhs.dtype, dtype)
        lhs, rhs = lhs.astype(left, copy=False), rhs.astype(right, copy=False)
    wide = np.dtype(np.float32) if sums.itemsize < 4 and dtype_kind(sums) == "f" else sums
    if wide.itemsize < lhs.dtype.itemsize:
        wide = lhs.dtype
    if lhs.dtype != wide:
        lhs = lhs.astype(wide)
    if rhs.dtype != wide:
        rhs = rhs.astype(wide)
    return lhs, rhs, sums


def _contract(lhs: Any, rhs: Any, plan: Plan) -> Any:
    lhs_order, rhs_order, n_batch, n_contract = plan
    if lhs_order is not None:
        lhs = lhs.transpose(lhs_order)
    if rhs_order is not None:
        rhs = rhs.transpose(rhs_order)
    if n_contract == 1 and not n_batch and rhs.ndim <= 2:
        return lhs.dot(rhs)
    l_free, batch = lhs.shape[n_batch:lhs.ndim - n_contract], lhs.shape[:n_batch]
    r_free, shared = rhs.shape[n_batch + n_contract:], prod(lhs.shape[lhs.ndim - n_contract:])
    left = lhs.reshape((*batch, prod(l_free), shared))
    right = rhs.reshape((*batch, shared, prod(r_free)))
    return np.matmul(left, right).reshape((*batch, *l_free, *r_free))


def _operand_cotangent(ct: Any, wanted: ShapedArray, other: Any, dimension_numbers: DotNumbers, precision: Canonical,
                       other_first: bool) -> Any:
    """The cotangent of one operand, with `dimension_numbers` given for (that operand, the other).

    The factors keep their order, so that for a matrix product nothing has to be transposed afterwards.
    """
    ct_aval, other_aval = aval_of(ct), aval_of(other)
    if other_aval.dtype != ct_aval.dtype:
        other = lax.convert_element_type(other, ct_aval.dtype)
    numbers, order = _cotangent_numbers(dimension_numbers, wanted.ndim, other_aval.ndim, other_first)
    pair = (other, ct) if other_first else (ct, other)
    product = dot_general.primitive.bind(*pair, dimension_numbers=numbers, precision=precision,
                                         preferred_element_type=None)
    if order is not None:
        product = transpose(product, order)
    return lax.convert_element_type(product, wanted.dtype) if ct_aval.dtype != wanted.dtype else product


@lru_cache(maxsize=4096)
def _cotangent_numbers(dimension_numbers: DotNumbers, own_ndim: int, other_ndim: int, other_first: bool
                       ) -> tuple[DotNumbers, Shape | None]:
    """What to contract a cotangent with another operand by, and how to transpose the product, if at all."""
    (own_contract, contract), (own_batch, batch) = dimension_numbers
    own_free, free = free_axes(own_ndim, own_contract, own_batch), free_axes(other_ndim, contract, batch)
    n_batch = len(batch)
    start = n_batch if other_first else n_batch + len(own_free)
    ct_free, ct_batch = tuple(range(start, start + len(free))), tuple(range(n_batch))
    # contracted axes come out in the order of the other operand
    contracted = [own_contract[i] for i in sorted(range(len(contract)), key=contract.__getitem__)]
    if other_first:
        numbers, axes = ((free, ct_free), (batch, ct_batch)), (*own_batch, *contracted, *own_free)
    else:
        numbers, axes = ((ct_free, free), (ct_batch, batch)), (*own_batch, *own_free, *contracted)
    order = inverse(axes)
    return numbers, None if order == tuple(range(len(order))) else order


def canonical_dot_numbers(dimension_numbers: Any) -> DotNumbers:
    """Dimension numbers as tuples of Python integers."""
    try:
        return _remembered_numbers(dimension_numbers)
    except TypeError:  # lists aren't hashable
        return _to_numbers(dimension_numbers)


def _to_numbers(dimension_numbers: Any) -> DotNumbers:
    try:
        (lc, rc), (lb, rb) = dimension_numbers
    except (TypeError, ValueError) as error:
        raise refused("dot_general", "dimension_numbers has the wrong form", got=repr(dimension_numbers),
                      wanted="((lhs contracting, rhs contracting), (lhs batch, rhs batch))",
                      todo="for a matrix product: (((1,), (0,)), ((), ()))") from error
    what = "dimension_numbers"
    return ((shaping.as_ints("dot_general", what, lc), shaping.as_ints("dot_general", what, rc)),
            (shaping.as_ints("dot_general", what, lb), shaping.as_ints("dot_general", what, rb)))


_remembered_numbers = lru_cache(maxsize=4096)(_to_numbers)


def check_dot_numbers(primitive: str, lhs: ShapedArray, rhs: ShapedArray, dimension_numbers: DotNumbers) -> None:
    """Raise unless the axes exist, each is in one place only, and pairs are of the same size."""
    (lc, rc), (lb, rb) = dimension_numbers
    got = f"{lhs} and {rhs}, contracting {lc} with {rc}, batch axes {lb} and {rb}"
    for aval, contract, batch in ((lhs, lc, lb), (rhs, rc, rb)):
        axes = (*contract, *batch)
        if len(set(axes)) != len(axes) or any([not 0 <= d < aval.ndim for d in axes]):
            raise refused(primitive, f"dimension_numbers must be distinct axes of {aval}", got=got,
                          wanted=f"each axis at most once, from 0 to {aval.ndim - 1}",
                          todo="an axis is contracted, batched or free; negative axes aren't supported here")
    for what, left, right in (("contracting", lc, rc), ("batch", lb, rb)):
        if len(left) != len(right) or [lhs.shape[d] for d in left] != [rhs.shape[d] for d in right]:
            raise refused(primitive, f"{what} axes differ in size", got=got, wanted="equal sizes pair by pair",
                          todo="check the shapes, or transpose an operand")


def product_dtype(primitive: str, avals: Sequence[ShapedArray], precision: Canonical,
                  preferred: np.dtype | None) -> np.dtype:
    """The type of products of these operands, after checking them."""
    if is_algorithm(canonical_precision(primitive, precision)):
        check_algorithm(primitive, precision, avals)
    if preferred is None:
        same_dtype(primitive, avals)
        return avals[0].dtype
    for aval in avals:
        _check_preferred(primitive, aval, preferred)
    return preferred


def _check_preferred(primitive: str, aval: ShapedArray, preferred: np.dtype) -> None:
    have, want = dtype_kind(aval.dtype), dtype_kind(preferred)
    fits = have == want or (have in "iu" and want in "iuf")
    if not fits or (have in "iu" and dtypes.bits_of(preferred) < dtypes.bits_of(aval.dtype)):
        wide = f", at least as wide as {aval.dtype}" if have in "iu" else ""
        raise refused(primitive, f"preferred_element_type {preferred} can't hold products of {aval}",
                      got=str(preferred), wanted=f"integers or floats{wide}" if wide else f"a dtype of kind {have!r}",
                      todo="convert the result with lax.convert_element_type")


dot_general: Any = define(DotGeneral())


@public
def dot(lhs: ArrayLike, rhs: ArrayLike, *, dimension_numbers: DotDimensionNumbers | None = None,
        precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """The product of vectors and matrices; with `dimension_numbers`, the same as `dot_general`.

    >>> dot(np.ones((2, 3)), np.ones(3)).tolist()
    [3.0, 3.0]
    """
    if dimension_numbers is None:
        left, right = shape_of(lhs), shape_of(rhs)
        if not (1 <= len(left) <= 2 and 1 <= len(right) <= 2 and left[-1] == right[0]):
            raise refused("dot", "the operands must be vectors or matrices that fit together",
                          got=f"shapes {left} and {right}",
                          wanted="1 or 2 axes each, the last of lhs as long as the first of rhs",
                          todo="use lax.dot_general, or x @ y, for other shapes")
        dimension_numbers = (((len(left) - 1,), (0,)), ((), ()))
    return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)  # type: ignore[no-any-return]


@public
def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: PrecisionLike = None) -> Array:
    """Matrix products along equal leading axes: `(..., n, k)` and `(..., k, m)` give `(..., n, m)`.

    >>> batch_matmul(np.ones((5, 2, 3)), np.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    ndim = len(shape_of(lhs))
    if ndim < 2 or len(shape_of(rhs)) != ndim:
        raise refused("batch_matmul", "the operands must be stacks of matrices of equal rank",
                      got=f"{aval_of(lhs)} and {aval_of(rhs)}", wanted="equal ranks of at least 2",
                      todo="use x @ y, which broadcasts leading axes")
    batch = tuple(range(ndim - 2))
    return dot_general(lhs, rhs, (((ndim - 1,), (ndim - 2,)), (batch, batch)), precision)  # type: ignore[no-any-return]


_bind = dot_general.primitive.bind


def matmul(lhs: Any, rhs: Any) -> Any:
    """`lhs @ rhs` as in NumPy, for operands of the same dtype: leading axes broadcast without copies.

    >>> matmul(np.ones((5, 1, 2, 3)), np.ones((4, 3, 2))).shape
    (5, 4, 2, 2)
    """
    layout = _matmul_layout(shape_of(lhs), shape_of(rhs))
    if layout is None:
        raise refused("matmul", "the shapes of the operands don't fit together",
                      got=f"{aval_of(lhs)} and {aval_of(rhs)}",
                      wanted="(..., n, k) @ (..., k, m), with leading axes that broadcast",
                      todo="multiply scalars with *; transpose or reshape the others")
    l_dropped, r_dropped, numbers, order = layout
    out = _bind(lax.squeeze(lhs, l_dropped) if l_dropped else lhs, lax.squeeze(rhs, r_dropped) if r_dropped else rhs,
                dimension_numbers=numbers, precision=None, preferred_element_type=None)
    return out if order is None else transpose(out, order)


@lru_cache(maxsize=4096)
def _matmul_layout(left: Shape, right: Shape) -> tuple[Shape, Shape, DotNumbers, Shape | None] | None:
    """The axes to drop of each operand, what to contract then, and how to transpose the product, if at all.

    None if the shapes don't fit together.
    """
    fits = left and right and left[-1] == right[-2 if len(right) > 1 else 0]
    lead = broadcast_shape((left[:-2], right[:-2])) if fits else None
    if lead is None:
        return None
    (l_axes, l_dropped), (r_axes, r_dropped) = _leading(left, lead), _leading(right, lead)
    shared = [a for a in l_axes if a in r_axes]
    batch = tuple([l_axes.index(a) for a in shared]), tuple([r_axes.index(a) for a in shared])
    contract = (len(left) - len(l_dropped) - 1,), (len(r_axes),)
    # its axes: shared leading axes, those only of lhs and its rows, those only of rhs and its columns
    names = [*shared, *[a for a in l_axes if a not in shared], *([-2] if len(left) > 1 else []),
             *[a for a in r_axes if a not in shared], *([-1] if len(right) > 1 else [])]
    wanted = [*range(len(lead)), *[a for a in (-2, -1) if a in names]]  # each leading axis comes from an operand
    order = None if names == wanted else tuple([names.index(a) for a in wanted])
    return l_dropped, r_dropped, (contract, batch), order


def _leading(shape: Shape, lead: Shape) -> tuple[list[int], Shape]:
    """Which of the result's leading axes an operand has, and the axes of size 1 that broadcast, which it is to drop."""
    mine = shape[:-2]
    offset = len(lead) - len(mine)
    dropped = tuple([d for d, size in enumerate(mine) if size == 1 and lead[offset + d] != 1])
    return [offset + d for d in range(len(mine)) if d not in dropped], dropped
