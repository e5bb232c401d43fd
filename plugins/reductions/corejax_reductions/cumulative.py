"""Running results along one axis: sums, products, extrema, logarithms of sums; and linear recurrences.

Each is a row of the same family, which has the NumPy ufunc to accumulate with, the same in StableHLO, an identity, and
the derivative. A running product and a running logarithm have linear recurrences as derivatives, and so have these:
nothing is divided by, so they hold at zeros and infinities, and no program grows with the axis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, ShapedArray, Zero, aval_of, dtypes, to_dim
from corejax.errors import CorejaxTypeError
from corejax.plugin import Sample, hookimpl, not_linear, partials, refused, shaping
from corejax_reductions import _lowering
from corejax_reductions._reduction import accumulator, check_dtype, defined
from corejax_reductions.associative import associative_scan
from corejax_reductions.extrema import chooser, greatest, least

__all__ = ["cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum", "linear_recurrence"]

_COUNT = "convert booleans to integers first: x.astype(int)"


class _Along:
    """A plugin that runs along `axis`, from the other end if `reverse`. All operands have the type of the result."""

    @hookimpl
    def vmap(self, args: Any, dims: Any, *, axis: int, reverse: bool) -> Any:
        # doesn't take the batch axis, since that argument has the same name as the param
        dim, size = [(d, aval_of(x).shape[d]) for x, d in zip(args, dims, strict=True) if d is not None][-1]
        args = [to_dim(x, d, dim, size) for x, d in zip(args, dims, strict=True)]
        return self._bind(*args, axis=axis + (axis >= dim), reverse=reverse), dim

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, axis: int, reverse: bool) -> Any:
        aval = ctx.avals_in[-1]
        wide = aval.update(dtype=accumulator(aval.dtype))
        if wide.dtype == aval.dtype:
            return self._running(ctx, args, aval, axis, reverse)
        xs = [_lowering.convert(ctx, x, aval.shape, wide.dtype) for x in args]
        return _lowering.convert(ctx, self._running(ctx, xs, wide, axis, reverse), aval.shape, aval.dtype)

    def _running(self, ctx: Any, xs: Any, aval: ShapedArray, axis: int, reverse: bool) -> Any:
        """The result of operands of this type, as an MLIR value."""
        raise NotImplementedError(type(self).__name__)

    _bind: Callable[..., Any]


class _Cumulative(_Along):
    """A plugin that accumulates its operand along `axis`, from the other end if `reverse`."""

    name = ""
    transpose: Any = not_linear("of its operand; only its derivative is")

    _kinds = "iufc"
    _todo = _COUNT
    _ufunc: np.ufunc
    _simple = True  # combining with the identity changes nothing, and costs little
    _exempt: Mapping[str, str] = {}

    def function(self, bind: Callable[..., Array]) -> Any:
        def accumulate(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
            at = shaping.canonical_axis(self.name, axis, aval_of(operand).ndim)
            return bind(operand, axis=at, reverse=shaping.as_flag(self.name, "reverse", reverse))
        return accumulate

    @hookimpl
    def impl(self, args: Any, *, axis: int, reverse: bool) -> Any:
        (x,) = args
        wide = accumulator(x.dtype)
        if not reverse:
            return self._accumulated(x, axis, wide).astype(x.dtype, copy=False)
        out = self._accumulated(np.flip(x, axis), axis, wide)
        return np.ascontiguousarray(np.flip(out, axis)).astype(x.dtype, copy=False)

    def _accumulated(self, x: Any, axis: int, dtype: np.dtype) -> Any:
        return self._ufunc.accumulate(x, axis, dtype)

    @hookimpl
    def abstract_eval(self, avals: Any, *, axis: int, reverse: bool) -> ShapedArray:
        (x,) = avals
        shaping.check_axes(self.name, "axis", (axis,), x.ndim)
        check_dtype(self.name, x, self._kinds, self._todo)
        return x  # type: ignore[no-any-return]

    def _running(self, ctx: Any, xs: Any, aval: ShapedArray, axis: int, reverse: bool) -> Any:
        if aval.shape[axis] <= 1 or not aval.size:
            return self._single(ctx, aval.dtype, *xs)
        if _platform(ctx) != "cpu" or (self._simple and _are_short(aval, axis)):
            return _lowering.running_by_windows(ctx, xs[0], aval, axis, reverse, self._identity(aval.dtype),
                                                lambda x, y: self._combine(ctx, aval.dtype, x, y))
        return _lowering.running(ctx, xs, aval, axis, reverse, lambda x: self._single(ctx, aval.dtype, x),
                                 lambda x, y: self._combine(ctx, aval.dtype, x, y))

    def _single(self, ctx: Any, dtype: np.dtype, x: Any) -> Any:
        """The result for one element, as an MLIR value."""
        return x

    def _combine(self, ctx: Any, dtype: np.dtype, x: Any, y: Any) -> Any:
        """The result for two elements of a dtype, as an MLIR value."""
        raise NotImplementedError(type(self).__name__)

    def _identity(self, dtype: np.dtype) -> Any:
        raise NotImplementedError(type(self).__name__)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for shape, axis, reverse in _SAMPLED:
            yield self._sample(self._operand(rng, shape), axis, reverse)
        if "i" in self._kinds:
            yield self._sample(rng.integers(-3, 4, (3, 4)).astype(np.int32), 1, False)
        yield Sample([np.ones(3)], {"axis": 1, "reverse": False}, error=IndexError)
        yield Sample([np.ones(3, np.bool_)], {"axis": 0, "reverse": False}, error=TypeError)

    def _sample(self, x: Any, axis: int, reverse: bool, **more: Any) -> Sample:
        exempt = self._exempt if x.dtype.kind == "f" and x.shape[axis] > 2 else None
        return Sample([x], {"axis": axis, "reverse": reverse}, domain=(-3.0, 3.0), exempt=exempt, **more)

    def _operand(self, rng: Any, shape: Any) -> Any:
        # distinct values, far from each other, so that differences don't see ties
        return (rng.permutation(prod(shape)).reshape(shape) - 2.3) * 0.5


class Cumsum(_Cumulative):
    """`cumsum(operand, axis=0, reverse=False)`: element i is the sum of elements 0 to i, or i to the end if `reverse`.

    Floats narrower than 32 bits accumulate in float32.

    >>> lax.cumsum(np.array([1.0, 2.0, 3.0])).tolist()
    [1.0, 3.0, 6.0]
    """

    name = "cumsum"
    linear = (0,)

    _ufunc = np.add

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, axis: int, reverse: bool) -> Any:
        return [self._bind(cotangents, axis=axis, reverse=not reverse)]

    def _combine(self, ctx: Any, dtype: np.dtype, x: Any, y: Any) -> Any:
        return _lowering.binary(ctx, "add")(x, y)

    def _identity(self, dtype: np.dtype) -> Any:
        return -0.0 if dtypes.is_float(dtype) else 0  # 0 + -0 is 0


def _product_tangent(x_dot: Any, out: Any, x: Any, *, axis: int, reverse: bool) -> Any:
    """The tangent of y[i] = x[i] y[i-1], which is x[i] y_dot[i-1] + y[i-1] x_dot[i]."""
    return linear_recurrence(x, lax.mul(x_dot, _before(out, axis, reverse, 1)), axis, reverse)


class Cumprod(_Cumulative):
    """`cumprod(operand, axis=0, reverse=False)`: element i is the product of elements 0 to i, or i to the end.

    It goes from the end if `reverse`. Floats narrower than 32 bits accumulate in float32. Derivatives hold at zeros.

    >>> lax.cumprod(np.array([1.0, 2.0, 3.0])).tolist()
    [1.0, 2.0, 6.0]
    >>> lax.cumprod(np.array([1.0, 2.0, 3.0]), reverse=True).tolist()
    [6.0, 6.0, 3.0]
    """

    name = "cumprod"
    _exempt = {"extreme numbers agree": "whether a product overflows on its way depends on the order"}
    jvp = partials(_product_tangent)

    _ufunc = np.multiply

    def _combine(self, ctx: Any, dtype: np.dtype, x: Any, y: Any) -> Any:
        return _lowering.binary(ctx, "multiply")(x, y)

    def _identity(self, dtype: np.dtype) -> Any:
        return 1

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        yield from super().samples(rng)
        yield self._sample(np.array([2.0, 0.0, 3.0, 0.0, 1.5]), 0, False, results=[2.0, 0.0, 0.0, 0.0, 0.0])


class _Extremum(_Cumulative):
    """The running maximum or minimum. Where elements tie, `lax.max` or `lax.min` shares the derivative."""

    _operation: str
    _direction: str

    def _combine(self, ctx: Any, dtype: np.dtype, x: Any, y: Any) -> Any:
        return chooser(ctx, dtype, self._operation, self._direction)(x, y)

    @staticmethod
    def _tangent(choose: Callable[..., Any]) -> Callable[..., Any]:
        """The derivative, with elements compared in pairs, and pairs of pairs: which decides who shares in a tie.

        So there are as many steps as the axis has doublings. JAX compares in this order, and has these derivatives.
        """
        def combine(one: Any, other: Any) -> Any:
            (x, x_dot), (y, y_dot) = one, other
            out = choose(x, y)
            return out, lax.add(lax.mul(x_dot, _share(x, y, out)), lax.mul(y_dot, _share(y, x, out)))

        def tangent(x_dot: Any, out: Any, x: Any, *, axis: int, reverse: bool) -> Any:
            return associative_scan(combine, (x, x_dot), reverse, axis)[1]
        return tangent


def _share(x: Any, other: Any, out: Any) -> Any:
    """1 where `x` is chosen, 0 where it isn't, and 1/2 where both are equal."""
    half = lax.select(lax.eq(x, other), lax.full_like(x, 0.5), lax.full_like(x, 1))
    return lax.select(lax.eq(x, out), half, lax.full_like(x, 0))


class Cummax(_Extremum):
    """`cummax(operand, axis=0, reverse=False)`: element i is the largest of elements 0 to i, or i to the end.

    It goes from the end if `reverse`. NaN counts as largest.

    >>> lax.cummax(np.array([1.0, 3.0, 2.0])).tolist()
    [1.0, 3.0, 3.0]
    """

    name = "cummax"
    jvp = partials(_Extremum._tangent(lambda x, y: lax.max(x, y)))

    _ufunc = np.maximum
    _operation = "maximum"
    _direction = "GT"

    def _identity(self, dtype: np.dtype) -> Any:
        return least(dtype)


class Cummin(_Extremum):
    """`cummin(operand, axis=0, reverse=False)`: element i is the smallest of elements 0 to i, or i to the end.

    It goes from the end if `reverse`. NaN counts as smallest.

    >>> lax.cummin(np.array([3.0, 1.0, 2.0])).tolist()
    [3.0, 1.0, 1.0]
    """

    name = "cummin"
    jvp = partials(_Extremum._tangent(lambda x, y: lax.min(x, y)))

    _ufunc = np.minimum
    _operation = "minimum"
    _direction = "LT"

    def _identity(self, dtype: np.dtype) -> Any:
        return greatest(dtype)


def _log_tangent(x_dot: Any, out: Any, x: Any, *, axis: int, reverse: bool) -> Any:
    """The tangent of y[i] = log(exp(y[i-1]) + exp(x[i])): each tangent times the part of its operand in the sum."""
    part = lax.exp(_difference(x, out))
    before = lax.exp(_difference(_before(out, axis, reverse, -np.inf), out))
    return linear_recurrence(before, lax.mul(x_dot, part), axis, reverse)


def _difference(x: Any, y: Any) -> Any:
    """x - y; 0 if both are the same infinity."""
    return lax.select(lax.eq(x, y), lax.full_like(x, 0), lax.sub(x, y))


class Cumlogsumexp(_Cumulative):
    """`cumlogsumexp(operand, axis=0, reverse=False)`: element i is log(exp(x[0]) + ... + exp(x[i])).

    The sum is from i to the end if `reverse`. No exponential overflows. Complex results have an imaginary part from
    -pi to pi.

    >>> lax.cumlogsumexp(np.array([1000.0, 1000.0, -np.inf])).tolist()
    [1000.0, 1000.6931471805599, 1000.6931471805599]
    """

    name = "cumlogsumexp"
    jvp = partials(_log_tangent)

    _ufunc = np.logaddexp
    _kinds = "fc"
    _simple = False
    _todo = "convert to floats first, with lax.convert_element_type or x.astype(...)"

    def _accumulated(self, x: Any, axis: int, dtype: np.dtype) -> Any:
        if x.dtype.kind != "c":
            return super()._accumulated(x, axis, dtype)
        out = np.moveaxis(_wrapped_array(x), axis, 0)
        distance = 1
        while distance < len(out):  # results for twice as many elements in each round
            out = np.concatenate([out[:distance], _complex_sum_of_arrays(out[:-distance], out[distance:])])
            distance *= 2
        return np.ascontiguousarray(np.moveaxis(out, 0, axis))

    def _single(self, ctx: Any, dtype: np.dtype, x: Any) -> Any:
        return ctx.lower(_wrapped, x) if dtypes.is_complex(dtype) else x

    def _combine(self, ctx: Any, dtype: np.dtype, x: Any, y: Any) -> Any:
        return ctx.lower(_complex_sum if dtypes.is_complex(dtype) else _real_sum, x, y)

    def _identity(self, dtype: np.dtype) -> Any:
        return -np.inf

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        yield from super().samples(rng)
        yield self._sample(np.array([1000.0, 1000.0, -np.inf]), 0, False,
                           results=1000.0 + np.log([1.0, 2.0, 2.0]))
        yield self._sample(rng.standard_normal((2, 3)) + 1j * rng.standard_normal((2, 3)) + 800.0, 1, True)
        yield Sample([np.arange(3)], {"axis": 0, "reverse": False}, error=TypeError)


def _real_sum(x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y)) of reals."""
    distance = lax.abs(_difference(x, y))
    return lax.add(lax.max(x, y), lax.log1p(lax.exp(lax.neg(distance))))


def _complex_sum(x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y)) of complex numbers."""
    top = lax.max(lax.real(x), lax.real(y))
    top = lax.select(lax.is_finite(top), top, lax.full_like(top, 0))
    top = lax.complex(top, lax.full_like(top, 0))
    return lax.add(lax.log(lax.add(lax.exp(lax.sub(x, top)), lax.exp(lax.sub(y, top)))), top)


def _complex_sum_of_arrays(x: Any, y: Any) -> Any:
    """The same by NumPy."""
    top = np.maximum(x.real, y.real)
    top = np.where(np.isfinite(top), top, top.dtype.type(0))
    return np.log(np.exp(x - top) + np.exp(y - top)) + top


def _wrapped(x: Any) -> Any:
    """A complex number with an imaginary part from -pi to pi, with the same exponential."""
    turns = lax.round(lax.div(lax.imag(x), 2 * np.pi), lax.RoundingMethod.TO_NEAREST_EVEN)
    return lax.complex(lax.real(x), lax.sub(lax.imag(x), lax.mul(turns, 2 * np.pi)))


def _wrapped_array(x: Any) -> Any:
    """The same by NumPy."""
    out = x.copy()
    out.imag -= np.round(x.imag / (2 * np.pi)) * (2 * np.pi)
    return out


class LinearRecurrence(_Along):
    """`linear_recurrence(factors, terms, axis=0, reverse=False)`: y[i] = factors[i] * y[i-1] + terms[i].

    It starts with y[0] = terms[0], and from the other end if `reverse`: y[i] = factors[i] * y[i+1] + terms[i]. Both
    operands have the same type. Floats narrower than 32 bits accumulate in float32. It has derivatives of all orders
    by both operands, which are recurrences as well.

    >>> lax.linear_recurrence(np.array([0.0, 2.0, 3.0]), np.ones(3)).tolist()
    [1.0, 3.0, 10.0]
    """

    name = "linear_recurrence"
    operands = ("factors", "terms")
    not_linear_in = (0,)

    def function(self, bind: Callable[..., Array]) -> Any:
        def linear_recurrence(factors: ArrayLike, terms: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
            at = shaping.canonical_axis(self.name, axis, aval_of(terms).ndim)
            return bind(factors, terms, axis=at, reverse=shaping.as_flag(self.name, "reverse", reverse))
        return linear_recurrence

    @hookimpl
    def impl(self, args: Any, *, axis: int, reverse: bool) -> Any:
        wide = accumulator(args[1].dtype)
        factors, terms = [np.moveaxis(x, axis, 0).astype(wide, copy=False) for x in args]
        out = np.empty(terms.shape, wide)
        rows = range(len(terms))
        so_far: Any = None
        for i in reversed(rows) if reverse else rows:
            so_far = terms[i] if so_far is None else factors[i] * so_far + terms[i]
            out[i] = so_far
        return np.ascontiguousarray(np.moveaxis(out, 0, axis)).astype(args[1].dtype, copy=False)

    @hookimpl
    def abstract_eval(self, avals: Any, *, axis: int, reverse: bool) -> ShapedArray:
        factors, terms = avals
        if not factors.matches(terms):
            raise refused(self.name, "factors and terms must have the same type", got=f"{factors} and {terms}",
                          wanted="the same shape and dtype", todo="broadcast or convert one of them first",
                          kind=CorejaxTypeError)
        shaping.check_axes(self.name, "axis", (axis,), terms.ndim)
        check_dtype(self.name, terms, "iufc", _COUNT)
        return terms.update(weak_type=factors.weak_type and terms.weak_type)  # type: ignore[no-any-return]

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, axis: int, reverse: bool) -> Any:
        factors, _ = primals
        out = self._bind(*primals, axis=axis, reverse=reverse)
        return out, self._bind(factors, self._term(out, tangents, axis, reverse), axis=axis, reverse=reverse)

    symbolic_zeros = True

    def _term(self, out: Any, tangents: Any, axis: int, reverse: bool) -> Any:
        """The terms of the recurrence of tangents: what each step adds to the tangent of the one before."""
        factors_dot, terms_dot = tangents
        if type(factors_dot) is Zero:
            return terms_dot
        of_factors = lax.mul(factors_dot, _before(out, axis, reverse, 0))
        return of_factors if type(terms_dot) is Zero else lax.add(terms_dot, of_factors)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, axis: int, reverse: bool) -> Any:
        # c[i] = ct[i] + factors[i+1] c[i+1]: what y[i] adds to y[i+1] comes back
        after = _before(args[0], axis, not reverse, 0)
        return [None, self._bind(after, cotangents, axis=axis, reverse=not reverse)]

    def _running(self, ctx: Any, xs: Any, aval: ShapedArray, axis: int, reverse: bool) -> Any:
        if aval.shape[axis] <= 1 or not aval.size:
            return xs[1]
        if _platform(ctx) != "cpu":
            return ctx.lower(lambda *xs: associative_scan(_composed, xs, reverse, axis)[1], *xs)
        add, mul = _lowering.binary(ctx, "add"), _lowering.binary(ctx, "multiply")
        return _lowering.running(ctx, xs, aval, axis, reverse, lambda a, x: x, lambda y, a, x: add(mul(a, y), x))

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for shape, axis, reverse in _SAMPLED:
            yield Sample([rng.standard_normal(shape), rng.standard_normal(shape)], {"axis": axis, "reverse": reverse},
                         domain=(-2.0, 2.0))
        yield Sample([rng.integers(-3, 4, (3, 4)).astype(np.int32) for _ in range(2)], {"axis": 1, "reverse": False})
        yield Sample([np.array([np.inf, 2.0, 0.0, 3.0]), np.ones(4)], {"axis": 0, "reverse": False},
                     results=[1.0, 3.0, 1.0, 4.0])
        yield Sample([np.ones(3), np.ones(4)], {"axis": 0, "reverse": False}, error=TypeError)
        yield Sample([np.ones(3), np.ones(3)], {"axis": 1, "reverse": False}, error=IndexError)


def _composed(one: Any, other: Any) -> Any:
    """Two steps of a recurrence as one. They don't commute, so windows won't do: compilers combine those in any order.

    A parallel machine needs few steps more than it needs small programs.
    """
    (a, x), (b, y) = one, other
    return lax.mul(a, b), lax.add(lax.mul(b, x), y)


# Shared by all

#: Shapes, axes and `reverse`, with short and long rows of few and of many numbers.
_SAMPLED = [((1,), 0, False), ((5,), 0, True), ((2, 3), 1, False), ((3, 9), 0, True), ((2, 3, 8), 1, False),
            ((17,), 0, False), ((0,), 0, False), ((2, 0), 1, True)]


def _platform(ctx: Any) -> str:
    """Where the program will run; tests replace this, to compile what other platforms get for the CPU."""
    return ctx.platform  # type: ignore[no-any-return]


def _are_short(aval: ShapedArray, axis: int) -> bool:
    """Whether there are so few numbers along the axis, and beside it, that the steps of a loop would cost the most."""
    return aval.shape[axis] <= 16 and prod(aval.shape[axis + 1:]) < 8 and not dtypes.is_complex(aval.dtype)


def _before(x: Any, axis: int, reverse: bool, first: float) -> Any:
    """For each element the one before it along an axis, in the way of the recurrence; the first is given."""
    ways = [(0, 0, 0)] * aval_of(x).ndim
    ways[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
    return lax.pad(x, first, ways)


linear_recurrence = defined(LinearRecurrence())
cumsum = defined(Cumsum())
cumprod = defined(Cumprod())
cummax = defined(Cummax())
cummin = defined(Cummin())
cumlogsumexp = defined(Cumlogsumexp())
