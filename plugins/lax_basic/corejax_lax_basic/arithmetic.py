"""Arithmetic: sums, products, quotients, remainders, powers with a fixed integer exponent, extremes, signs.

Integers wrap around. Dividing an integer by zero gives -1 (all bits set), its remainder is the dividend.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from corejax.core import Array, ArrayLike, DTypeLike, ShapedArray, Zero, aval_of, dtypes
from corejax.errors import CorejaxTypeError
from corejax.plugin import (
    Sample,
    define,
    factors,
    families,
    hookimpl,
    over,
    partials,
    public,
    refused,
    roles,
    shaping,
)
from corejax_lax_basic.comparison import eq, ge
from corejax_lax_basic.complex_parts import complex, conj, real
from corejax_lax_basic.rounding import floor
from corejax_lax_basic.selection import select_n

__all__ = ["abs", "add", "div", "integer_pow", "max", "min", "mul", "neg", "reciprocal", "rem", "sign", "square", "sub"]


# Sums. On arrays, Python's operators do the same as the ufuncs; on NumPy scalars, they are five times faster.

add = define(families.binary(
    "add", operator.add, hlo="add", dtypes="iufc", jvp=factors(1, 1),
    transpose=(lambda ct, x, y: ct, lambda ct, x, y: ct),
    cheap=True, doc="The sum x + y.", example="add(np.array([1.0, 2.0]), 0.5).tolist() -> [1.5, 2.5]"))
sub = define(families.binary(
    "sub", operator.sub, hlo="subtract", dtypes="iufc",
    jvp=factors(1, -1),
    transpose=(lambda ct, x, y: ct, lambda ct, x, y: neg(ct)),
    cheap=True, doc="The difference x - y.", example="sub(np.array([1.0, 2.0]), 0.5).tolist() -> [0.5, 1.5]"))

neg: Any = define(families.unary(
    "neg", operator.neg, hlo="negate", dtypes="iufc", jvp=None, linear=(0,), transpose=(lambda ct, x: neg(ct),),
    cheap=True, doc="The negation -x.", example="neg(np.array([1.0, -2.0])).tolist() -> [-1.0, 2.0]"))


# Products and quotients

def _into(x: ArrayLike, out_dtype: DTypeLike | None) -> Any:
    """A factor, in the dtype that the product is to have."""
    aval, wanted = aval_of(x), dtypes.canonical(out_dtype)
    for dtype in (aval.dtype, wanted):
        if dtypes.kind(dtype) not in "iufc":
            raise refused("mul", "only numbers are multiplied", got=dtypes.long_name(dtype), kind=CorejaxTypeError,
                          wanted="integers, floats or complex numbers", todo="convert booleans: x.astype('int8')")
    return roles.convert(x, wanted, aval.weak_type)


mul: Any = define(families.binary(
    "mul", operator.mul, hlo="multiply", dtypes="iufc",
    jvp=factors(lambda out, x, y: y, lambda out, x, y: x),
    transpose=(lambda ct, x, y: mul(ct, y), lambda ct, x, y: mul(ct, x)),
    cheap=True, into=_into, doc="The product x * y, computed in `out_dtype` if that is given.",
    example="mul(np.array([1.0, 2.0]), 0.5).tolist() -> [0.5, 1.0]"))

# np.square of a complex scalar gives other last bits depending on where its memory happens to be
square = define(families.unary(
    "square", lambda x: x * x, hlo=lambda ctx, args: ctx.op("stablehlo.multiply", [args[0], args[0]]), dtypes="iufc",
    jvp=factors(lambda out, x: mul(x, 2)), doc="The square x * x.", example="square(3.0).item() -> 9.0"))


def _divide(x: Any, y: Any) -> Any:
    if x.dtype.kind not in "iu":
        return np.true_divide(x, y)
    quotient = (x - np.fmod(x, y)) // y  # NumPy's own division rounds down
    return np.where(y == 0, ~x.dtype.type(0), quotient)


def _remainder(x: Any, y: Any) -> Any:
    return np.fmod(x, y) if x.dtype.kind not in "iu" else np.where(y == 0, x, np.fmod(x, y))


def _truncated_quotient(x: Any, y: Any) -> Any:
    from_zero = div(x, y)
    return mul(sign(from_zero), floor(abs(from_zero)))


div: Any = define(families.binary(
    "div", _divide, hlo="divide", dtypes="iufc",
    jvp=factors(over(lambda out, x, y: y), lambda out, x, y: neg(div(out, y))),
    transpose=(lambda ct, x, y: div(ct, y), None), domain=(0.5, 3.0),
    compiled_at=families.where_infinite, cheap=True, doc="The quotient x / y; for integers, rounded towards zero.",
    example="div(np.array([7, -7]), 2).tolist() -> [3, -3]"))


rem = define(families.binary(
    "rem", _remainder, hlo="remainder", dtypes="iuf",
    jvp=partials(lambda t, out, x, y: t, lambda t, out, x, y: mul(neg(t), _truncated_quotient(x, y))),
    domain=(-3.0, 3.0), singular=(0.0,), doc="The remainder of x / y, with the sign of x.",
    example="rem(np.array([7, -7]), 2).tolist() -> [1, -1]"))


class IntegerPow(families.Elementwise):
    """`integer_pow(x, y)`: x to the power of a Python integer, by repeated multiplication.

    >>> integer_pow(np.array([2.0, 3.0]), -2).tolist()
    [0.25, 0.1111111111111111]
    """

    def __init__(self) -> None:
        super().__init__("integer_pow", np.power, arity=1, hlo="power", dtypes="iufc", doc=str(IntegerPow.__doc__),
                         jvp=factors(lambda out, x, *, y: _power_slope(x, y)))

    def function(self, bind: Callable[..., Array]) -> Callable[..., Any]:
        def integer_pow(x: ArrayLike, y: int) -> Array:
            return bind(x, y=shaping.as_int("integer_pow", "the exponent", y))
        return integer_pow

    @hookimpl
    def impl(self, args: Any, *, y: int) -> Any:
        (x,) = args
        if y == 0:
            return np.ones_like(x)
        power = _repeated(x, y if y > 0 else -y, np.multiply)
        if y > 0:
            return power
        out = np.true_divide(x.dtype.type(1), power)
        if x.dtype.kind != "c":
            return out
        return families.settle(self._primitive, out, (x,), families.where_infinite, {"y": y})

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray], *, y: int) -> ShapedArray:  # type: ignore[override]
        if y < 0 and not dtypes.is_inexact(avals[0].dtype):
            raise families.refused(self.name, f"integers can't be raised to the power {y}", avals,
                                   "floats or complex numbers", "convert with x.astype(float)")
        return self._type(avals)

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, y: int) -> Any:
        if y == 0:
            return families.constant_like(ctx, 1)
        power = _repeated(args[0], y if y > 0 else -y, lambda a, b: ctx.op("stablehlo.multiply", [a, b]))
        return power if y > 0 else ctx.op("stablehlo.divide", [families.constant_like(ctx, 1), power])

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for y in (-3, -1, 0, 1, 2, 3, 7):
            for shape in ((), (3,), (0,)):
                yield Sample([rng.uniform(0.5, 2, shape)], {"y": y}, domain=(-2.0, 2.0) if y >= 0 else (0.5, 2.0))
        yield Sample([rng.standard_normal(3) + 1j], {"y": 3})
        yield Sample([np.array([0, -2, 3])], {"y": 5})
        yield Sample([np.array([0, -2, 3])], {"y": 0})
        yield Sample([np.array([1, 2])], {"y": -1}, error=TypeError)


def _repeated(x: Any, y: int, times: Callable[[Any, Any], Any]) -> Any:
    """x to the power of y > 0, by squaring."""
    power = None
    while True:
        if y & 1:
            power = x if power is None else times(power, x)
        y >>= 1
        if not y:
            return power
        x = times(x, x)


def _power_slope(x: Any, y: int) -> Any:
    if y in (0, 1):
        return families.weak_scalar(y, x.aval.dtype)
    return mul(y, x if y == 2 else integer_pow(x, y - 1))


integer_pow = define(IntegerPow())


@public
def reciprocal(x: ArrayLike) -> Array:
    """1 / x, for floats and complex numbers.

    >>> reciprocal(np.array([2.0, -4.0])).tolist()
    [0.5, -0.25]
    """
    aval = aval_of(x)
    if not dtypes.is_inexact(aval.dtype):
        raise families.refused("reciprocal", "an integer has no reciprocal among integers", [aval],
                               "floats or complex numbers", "convert with x.astype(float), or write 1 / x")
    return integer_pow(x, -1)  # type: ignore[no-any-return]


# Extremes

_select = select_n.primitive.bind  # type: ignore[attr-defined]


@lru_cache(maxsize=64)
def _shares(dtype: np.dtype) -> tuple[Any, Any, Any]:
    zero, half, one = [families.weak_scalar(value, dtype) for value in (0.0, 0.5, 1.0)]
    return zero, half, one


def _share(x: Any, y: Any, out: Any) -> Any:
    """The derivative of an extreme with respect to x: 1 where it is x, 1/2 where x and y tie, else 0."""
    zero, half, one = _shares(out.aval.dtype)
    return _select(eq(x, out), zero, _select(eq(y, out), one, half))


def _extreme(operation: str, direction: str) -> Callable[..., Any]:
    """Complex numbers are ordered by their real parts, then by their imaginary parts."""
    def lower(ctx: Any, args: Sequence[Any]) -> Any:
        out = ctx.avals_out[0]
        if not dtypes.is_complex(out.dtype):
            return ctx.op(f"stablehlo.{operation}", args)
        part = ctx.type_of(ShapedArray(out.shape, np.dtype(f"float{4 * out.dtype.itemsize}")))
        truth = ctx.type_of(ShapedArray(out.shape, dtypes.bool_))
        (x_real, x_imag), (y_real, y_imag) = [
            [ctx.op(f"stablehlo.{name}", [arg], None, [part]) for name in ("real", "imag")] for arg in args]

        def compare(x: Any, y: Any, how: str) -> Any:
            order = ctx.ir.Attribute.parse(f"#stablehlo<comparison_direction {how}>")
            return ctx.op("stablehlo.compare", [x, y], {"comparison_direction": order}, [truth])

        def either(*conditions: Any) -> Any:
            return reduce(lambda x, y: ctx.op("stablehlo.or", [x, y], None, [truth]), conditions)

        beside = ctx.op("stablehlo.and", [compare(x_real, y_real, "EQ"), compare(x_imag, y_imag, f"{direction[0]}E")],
                        None, [truth])
        first = either(compare(x_real, y_real, direction), beside, compare(x_real, x_real, "NE"),
                       compare(x_imag, x_imag, "NE"))
        y_is_nan = either(compare(y_real, y_real, "NE"), compare(y_imag, y_imag, "NE"))
        x_is_nan = either(compare(x_real, x_real, "NE"), compare(x_imag, x_imag, "NE"))
        keeps_y = ctx.op("stablehlo.and", [y_is_nan, ctx.op("stablehlo.not", [x_is_nan], None, [truth])], None, [truth])
        chosen = ctx.op("stablehlo.select", [first, args[0], args[1]])
        return ctx.op("stablehlo.select", [keeps_y, args[1], chosen])
    return lower


max = define(families.binary(
    "max", np.maximum, hlo=_extreme("maximum", "GT"), dtypes="biufc",
    jvp=factors(lambda out, x, y: _share(x, y, out), lambda out, x, y: _share(y, x, out)),
    cheap=True, doc="The larger of x and y; NaN if either is.",
    example="max(np.array([1.0, -2.0]), 0.0).tolist() -> [1.0, 0.0]"))
min = define(families.binary(
    "min", np.minimum, hlo=_extreme("minimum", "LT"), dtypes="biufc",
    jvp=factors(lambda out, x, y: _share(x, y, out), lambda out, x, y: _share(y, x, out)),
    cheap=True, doc="The smaller of x and y; NaN if either is.",
    example="min(np.array([1.0, -2.0]), 0.0).tolist() -> [0.0, -2.0]"))


# Signs and magnitudes

def _sign(x: Any) -> Any:
    if x.dtype.kind == "c":
        return np.where(np.isinf(x), np.nan, np.sign(x)).astype(x.dtype)
    return np.sign(x) if x.dtype.kind in "iu" else np.copysign(np.sign(x), x)  # keeps the sign of zero


def _lower_sign(ctx: Any, args: Sequence[Any]) -> Any:
    aval = ctx.avals_in[0]
    if dtypes.kind(aval.dtype) != "u":
        return ctx.op("stablehlo.sign", args)
    # the compiler has no sign for unsigned integers
    return ctx.op("stablehlo.minimum", [args[0], families.constant_like(ctx, 1)])


def _abs_tangent(t: Any, out: Any, x: Any) -> Any:
    if dtypes.is_complex(x.aval.dtype):
        return real(mul(t, conj(sign(x))))
    one, minus_one = families.weak_scalar(1, x.aval.dtype), families.weak_scalar(-1, x.aval.dtype)
    return mul(t, select_n(ge(x, 0), minus_one, one))


def _sign_tangent(t: Any, out: Any, x: Any) -> Any:
    """The tangent of a complex sign, which can only move along the unit circle."""
    if not dtypes.is_complex(out.aval.dtype):
        return Zero(out.aval.tangent)
    size = abs(x)
    zero = families.weak_scalar(0.0, size.aval.dtype)
    across = sub(t, mul(out, complex(real(mul(conj(out), t)), zero)))
    at_zero = eq(size, zero)
    scaled = div(across, complex(select_n(at_zero, size, families.weak_scalar(1.0, size.aval.dtype)), zero))
    return select_n(at_zero, scaled, families.weak_scalar(0.0, scaled.aval.dtype))


def _magnitude(dtype: np.dtype) -> np.dtype:
    return np.dtype(f"float{4 * dtype.itemsize}") if dtype.kind == "c" else dtype


abs = define(families.unary(
    "abs", np.abs, hlo="abs", dtypes="ifc", result=_magnitude, jvp=partials(_abs_tangent), singular=(0.0,),
    compiled_at=families.where_infinite, cheap=True,
    doc="The absolute value; real for complex x. Its derivative at 0 counts as 1, or 0 for complex x.",
    example="abs(np.array([3.0, -4.0])).tolist() -> [3.0, 4.0]"))
sign = define(families.unary(
    "sign", _sign, hlo=_lower_sign, dtypes="iufc", jvp=partials(_sign_tangent), singular=(0.0,),
    compiled_at=families.at_special_points, cheap=True,
    doc="-1, 0 or 1; x / |x| for complex numbers. Its derivative at 0 counts as 0.",
    example="sign(np.array([3.0, -4.0])).tolist() -> [1.0, -1.0]"))
