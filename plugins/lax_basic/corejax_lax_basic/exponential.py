"""Exponentials, logarithms, roots and powers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from corejax.core import Array, ArrayLike, ShapedArray, aval_of, dtypes
from corejax.plugin import Sample, define, factors, families, hookimpl, over
from corejax_lax_basic import _accurate, complex_parts
from corejax_lax_basic._complex_edges import at_edges
from corejax_lax_basic.accuracy import AccuracyMode, Tolerance, accurately  # noqa: F401, signatures name the types
from corejax_lax_basic.arithmetic import add, div, integer_pow, mul, sub
from corejax_lax_basic.comparison import eq
from corejax_lax_basic.conversion import convert_element_type
from corejax_lax_basic.selection import select_n

__all__ = ["cbrt", "exp", "exp2", "expm1", "log", "log1p", "logistic", "pow", "rsqrt", "sqrt"]


def _reciprocal_root(x: Any) -> Any:
    return np.reciprocal(np.sqrt(x))


exp = define(families.unary(
    "exp", np.exp, hlo=at_edges("exp", "stablehlo.exponential"), dtypes="fc", jvp=factors(lambda out, x: out),
    compiled_at=families.at_special_points, accurately=accurately, doc="e to the power of x.",
    example="exp(0.5) -> Array(1.64872127, dtype=float64, weak_type=True)"))
expm1 = define(families.unary(
    "expm1", np.expm1, hlo=at_edges("expm1", "stablehlo.exponential_minus_one"), dtypes="fc",
    jvp=factors(lambda out, x: add(out, 1)),
    compiled_at=families.at_special_points, accurately=accurately, doc="exp(x) - 1, accurate even near 0.",
    example="expm1(0.5) -> Array(0.64872127, dtype=float64, weak_type=True)"))
log = define(families.unary(
    "log", np.log, hlo=at_edges("log", "stablehlo.log"), dtypes="fc", jvp=factors(over(lambda out, x: x)),
    domain=(0.2, 3.0), ulps=32.0, compiled_at=families.where_infinite, accurately=accurately,
    doc="The natural logarithm.",
    example="log(2.0) -> Array(0.69314718, dtype=float64, weak_type=True)"))
log1p = define(families.unary(
    "log1p", np.log1p, dtypes="fc", jvp=factors(over(lambda out, x: add(x, 1))), domain=(-0.8, 2.0),
    hlo=_accurate.by_formula(_accurate.log1p, at_edges("log1p", "stablehlo.log_plus_one"), only=[dtypes.float64]),
    compiled_at=families.where_infinite, accurately=accurately, doc="log(1 + x), accurate even near 0.",
    example="log1p(0.5) -> Array(0.40546511, dtype=float64, weak_type=True)"))
logistic = define(families.unary(
    "logistic", lambda x: np.reciprocal(x.dtype.type(1) + np.exp(-x)), hlo="logistic", dtypes="fc",
    jvp=factors(lambda out, x: mul(out, sub(1, out))),
    compiled_at=families.at_special_points, accurately=accurately, doc="The logistic function 1 / (1 + exp(-x)).",
    example="logistic(0.5) -> Array(0.62245933, dtype=float64, weak_type=True)"))
sqrt = define(families.unary(
    "sqrt", np.sqrt, hlo=at_edges("sqrt", "stablehlo.sqrt"), dtypes="fc", jvp=factors(lambda out, x: div(0.5, out)),
    domain=(0.2, 3.0), compiled_at=families.at_special_points, accurately=accurately,
    doc="The square root. Its derivative at 0 is infinite.",
    example="sqrt(4.0).item() -> 2.0"))
rsqrt = define(families.unary(
    "rsqrt", _reciprocal_root, hlo="rsqrt", dtypes="fc",
    jvp=factors(lambda out, x: mul(div(out, x), -0.5)), domain=(0.2, 3.0),
    compiled_at=families.at_special_points, accurately=accurately, doc="1 / sqrt(x).",
    example="rsqrt(4.0).item() -> 0.5"))
cbrt = define(families.unary(
    "cbrt", np.cbrt, hlo=_accurate.cbrt, dtypes="f", jvp=factors(lambda out, x: mul(1 / 3, integer_pow(out, -2))),
    domain=(0.2, 3.0), accurately=accurately,
    doc="The cubic root, negative for negative x. Its derivative at 0 is infinite.",
    example="cbrt(np.array([8.0, -1.0])).tolist() -> [2.0, -1.0]"))


# Powers

def _exp2(x: Any) -> Any:
    return np.exp2(x) if x.dtype.kind != "c" else np.exp(x * x.dtype.type(_accurate.LN2))


def _lower_complex_exp2(ctx: Any, args: Any) -> Any:
    def by_exp(x: Any) -> Any:
        parts = complex_parts.real(x), complex_parts.imag(x)
        return exp(complex_parts.complex(*[mul(part, _accurate.LN2) for part in parts]))
    return ctx.lower(by_exp, *args)


exp2 = define(families.unary(
    "exp2", _exp2, hlo=_accurate.by_formula(_accurate.exp2, _lower_complex_exp2), dtypes="fc",
    jvp=factors(lambda out, x: mul(out, _accurate.LN2)), compiled_at=families.at_special_points,
    accurately=accurately, doc="2 to the power of x.", example="exp2(np.array([3.0, -1.0])).tolist() -> [8.0, 0.5]"))


def _base_slope(out: Any, x: Any, y: Any) -> Any:
    """y x^(y - 1): NaN at x = y = 0."""
    return mul(y, pow(x, y - 1))  # y may be a Python number, as the operator allows


def _exponent_slope(out: Any, x: Any, y: Any) -> Any:
    """log(x) x^y; 0 at x = 0, which is the limit for y > 0."""
    zero, one = families.weak_scalar(0, out.aval.dtype), families.weak_scalar(1, out.aval.dtype)
    return mul(log(select_n(eq(x, zero), x, one)), out)


class _Pow(families.Elementwise):
    def function(self, bind: Callable[..., Array]) -> Callable[..., Any]:
        def of_one_dtype(x: Any, y: Any) -> Array:
            x_dtype = aval_of(x).dtype
            if dtypes.is_inexact(x_dtype) and dtypes.is_integer(aval_of(y).dtype):
                y = convert_element_type(y, x_dtype)
            return bind(x, y)
        of_any = families.matching_any(of_one_dtype)

        def pow(x: ArrayLike, y: ArrayLike) -> Array:
            if type(y) is int and type(x) not in dtypes.PYTHON_SCALARS and dtypes.is_inexact(aval_of(x).dtype):
                return integer_pow(x, y)  # type: ignore[no-any-return]
            return of_any(x, y)  # type: ignore[no-any-return]
        return pow

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        yield from super().samples(rng)
        yield self._sample([np.array([0.0, 2.0]), np.array([2.0, 1.5])])
        yield self._sample([np.array([1.5, 2.0]), 0.5])
        yield self._sample([1.5, np.array([0.5, 2.0])])


def _power(x: Any, y: Any) -> Any:
    if x.dtype.kind == "c":  # zero to the power of a non-real number is undefined
        return np.where((x == 0) & (y.imag != 0), complex(np.nan, np.nan), np.power(x, y)).astype(x.dtype)
    if x.dtype.kind != "i":
        return np.power(x, y) if any(y.strides) or not y.size or y.flat[0] != 0.5 else _root(x, y)
    # a negative power of an integer is 0 unless the base is 1 or -1; NumPy rejects it
    inverse = np.where(np.abs(x) == 1, np.where(y & 1, x, 1), 0).astype(x.dtype)
    return np.where(y < 0, inverse, np.power(x, np.maximum(y, 0)))


def _root(x: Any, y: Any) -> Any:
    """x to the power of 1/2. If all exponents are equal, NumPy uses square roots, which differ at -inf and -0."""
    shape = np.broadcast_shapes(x.shape, y.shape)
    bases = np.broadcast_to(x, shape).reshape(-1)
    return np.power(bases, np.full_like(bases, 0.5)).reshape(shape)


def _lower_power(ctx: Any, args: Sequence[Any]) -> Any:
    """The compiler only uses six bits of an integer exponent, so it is split: powers of x, of x^64, and so on."""
    x, y = args
    aval = ctx.avals_out[0]
    plain = ctx.op("stablehlo.power", args)
    if not dtypes.is_integer(aval.dtype) or aval.dtype == np.int8 or aval.dtype in dtypes.PACKED:
        return plain

    def constant(value: int) -> Any:
        return families.constant_like(ctx, value, aval)

    out = None
    for start in range(0, 8 * aval.dtype.itemsize, 6):
        digit = ctx.op("stablehlo.shift_right_logical", [y, constant(start)]) if start else y
        part = ctx.op("stablehlo.power", [x, ctx.op("stablehlo.and", [digit, constant(63)])])
        out = part if out is None else ctx.op("stablehlo.multiply", [out, part])
        for _ in range(6):
            x = ctx.op("stablehlo.multiply", [x, x])
    if aval.dtype.kind == "u":
        return out
    direction = ctx.ir.Attribute.parse("#stablehlo<comparison_direction LT>")
    negative = ctx.op("stablehlo.compare", [y, constant(0)], {"comparison_direction": direction},
                      [ctx.type_of(ShapedArray(aval.shape, dtypes.bool_))])
    return ctx.op("stablehlo.select", [negative, plain, out])


pow = define(_Pow(
    "pow", _power, arity=2, hlo=_lower_power, dtypes="iufc",
    jvp=factors(_base_slope, _exponent_slope), domain=(0.3, 2.5),
    compiled_at=families.at_special_points,
    doc="x to the power of y. Beside a float or complex x, y may be an integer.",
    example="pow(np.array([2.0, 3.0]), 3).tolist() -> [8.0, 27.0]"))
