"""NumPy's functions of elements: arithmetic, powers, angles, comparisons, logic, rounding, parts of numbers.

Those of one or two operands are rows: NumPy's ufunc, what it means, documentation, and the kind of numbers that
operands are converted to at least (`i` integers, `f` floats). They are objects, see `ufuncs`.
"""

# mypy: no-warn-return-any

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, dtypes
from corejax.plugin import directly, operators, public
from corejax_lax_basic import promoted
from corejax_numpy import _integer_functions as integers, _real_functions as reals, _reductions as reductions
from corejax_numpy._arrays import array, no_out
from corejax_numpy._in_memory import elements as in_memory
from corejax_numpy._picking import operand
from corejax_numpy._ufunc_rows import binary, by_operator, unary

__all__ = [
    "abs", "absolute", "acos", "acosh", "add", "angle", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2",
    "arctanh", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_count", "bitwise_invert",
    "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "cbrt", "ceil", "conj",
    "conjugate", "copysign", "cos", "cosh", "deg2rad", "degrees", "divide", "divmod", "equal", "exp", "exp2", "expm1",
    "fabs", "float_power", "floor", "floor_divide", "fmax", "fmin", "fmod", "frexp", "gcd", "greater",
    "greater_equal", "heaviside", "hypot", "i0", "imag", "invert", "iscomplex", "isfinite", "isinf", "isnan",
    "isneginf", "isposinf", "isreal", "lcm", "ldexp", "left_shift", "less", "less_equal", "log", "log10", "log1p",
    "log2", "logaddexp", "logaddexp2", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum",
    "minimum", "mod", "modf", "multiply", "negative", "nextafter", "not_equal", "positive", "pow", "power", "rad2deg",
    "radians", "real", "reciprocal", "remainder", "right_shift", "rint", "sign", "signbit", "sin", "sinc", "sinh",
    "spacing", "sqrt", "square", "subtract", "tan", "tanh", "true_divide", "trunc",
]

# Exponentials, logarithms, roots

exp = unary(np.exp, lax.exp, "e to the power of x.", "exp(1.0).item() -> 2.718281828459045", "f", "fc")
exp2 = unary(np.exp2, lax.exp2, "2 to the power of x.", "exp2(3).item() -> 8.0", "f", "fc")
expm1 = unary(np.expm1, lax.expm1, "exp(x) - 1, accurate even near 0.", "expm1(1e-20).item() -> 1e-20", "f", "fc")
log = unary(np.log, lax.log, "The natural logarithm.", "log(1.0).item() -> 0.0", "f", "fc")
log1p = unary(np.log1p, lax.log1p, "log(1 + x), accurate even near 0.", "log1p(1e-20).item() -> 1e-20", "f", "fc")
log2 = unary(np.log2, reals.log_over(2), "The logarithm to base 2.", "log2(8.0).item() -> 3.0", "f")
log10 = unary(np.log10, reals.log_over(10), "The logarithm to base 10.", "log10(100.0).item() -> 2.0", "f")
sqrt = unary(np.sqrt, lax.sqrt, "The square root.", "sqrt(4).item() -> 2.0", "f", "fc")
cbrt = unary(np.cbrt, lax.cbrt, "The cubic root, negative for negative x.", "cbrt(-8.0).item() -> -2.0", "f", "f")
square = unary(np.square, lax.square, "x * x.", "square(3).item() -> 9", "i", "iufc")
reciprocal = unary(np.reciprocal, lax.reciprocal, "1 / x; of integers, too, a float.",
                   "reciprocal(jnp.array([2, 4])).tolist() -> [0.5, 0.25]", "f", takes_numpy=in_memory.reciprocal)

# Angles

sin = unary(np.sin, lax.sin, "The sine.", "sin(0.0).item() -> 0.0", "f", "fc")
cos = unary(np.cos, lax.cos, "The cosine.", "cos(0.0).item() -> 1.0", "f", "fc")
tan = unary(np.tan, lax.tan, "The tangent.", "tan(0.0).item() -> 0.0", "f", "fc")
arcsin = unary(np.arcsin, lax.asin, "The inverse of the sine, from -pi/2 to pi/2.", "arcsin(0.0).item() -> 0.0",
               "f", "fc")
arccos = unary(np.arccos, lax.acos, "The inverse of the cosine, from 0 to pi.", "arccos(1.0).item() -> 0.0", "f", "fc")
arctan = unary(np.arctan, lax.atan, "The inverse of the tangent, from -pi/2 to pi/2.", "arctan(0.0).item() -> 0.0",
               "f", "fc")
sinh = unary(np.sinh, lax.sinh, "The hyperbolic sine.", "sinh(0.0).item() -> 0.0", "f", "fc")
cosh = unary(np.cosh, lax.cosh, "The hyperbolic cosine.", "cosh(0.0).item() -> 1.0", "f", "fc")
tanh = unary(np.tanh, lax.tanh, "The hyperbolic tangent.", "tanh(0.0).item() -> 0.0", "f", "fc")
arcsinh = unary(np.arcsinh, lax.asinh, "The inverse of the hyperbolic sine.", "arcsinh(0.0).item() -> 0.0", "f", "fc")
arccosh = unary(np.arccosh, lax.acosh, "The inverse of the hyperbolic cosine, at least 0.",
                "arccosh(1.0).item() -> 0.0", "f", "fc")
arctanh = unary(np.arctanh, lax.atanh, "The inverse of the hyperbolic tangent.", "arctanh(0.0).item() -> 0.0",
                "f", "fc")
deg2rad = unary(np.deg2rad, reals.times(pi / 180, "deg2rad"), "Degrees as radians.",
                "deg2rad(180.0).item() -> 3.141592653589793", "f")
rad2deg = unary(np.rad2deg, reals.times(180 / pi, "rad2deg"), "Radians as degrees.",
                "rad2deg(jnp.pi).item() -> 180.0", "f")
radians = unary(np.radians, reals.times(pi / 180, "radians"), "Degrees as radians.",
                "radians(180.0).item() -> 3.141592653589793", "f")
degrees = unary(np.degrees, reals.times(180 / pi, "degrees"), "Radians as degrees.",
                "degrees(jnp.pi).item() -> 180.0", "f")
arctan2 = binary(np.arctan2, lax.atan2, "The angle, from -pi to pi, of the point with ordinate x1 and abscissa x2.",
                 "arctan2(0.0, 1.0).item() -> 0.0", "f", fast=lax.atan2, kinds="f")
hypot = binary(np.hypot, reals.hypotenuse, "sqrt(x1**2 + x2**2), without overflow.", "hypot(3.0, 4.0).item() -> 5.0",
               "f")

# Signs and parts

absolute = unary(np.absolute, operators.abs, "The absolute value.", "absolute(-3).item() -> 3", "b", "ifc",
                 fast=lax.abs, takes_numpy=False)
fabs = unary(np.fabs, reals.absolute_float, "The absolute value, as a float.", "fabs(-3).item() -> 3.0", "f")
negative = unary(np.negative, lax.neg, "-x.", "negative(3).item() -> -3", "b", "iufc")
positive = unary(np.positive, lambda x: x, "x itself.", "positive(3).item() -> 3", takes_numpy=False)
sign = unary(np.sign, reals.sign, "-1, 0 or 1; x / |x| for complex numbers.",
             "sign(jnp.array([-3.0, -0.0])).tolist() -> [-1.0, 0.0]", takes_numpy=False)
conjugate = unary(np.conjugate, operators.conj, "The complex conjugate; x itself if it is real.",
                  "conjugate(1 + 2j).item() -> (1-2j)", "b", "c", fast=lax.conj, takes_numpy=False)
signbit = unary(np.signbit, reals.sign_bit, "Whether the sign is a minus, even of zeros.",
                "signbit(jnp.array([-0.0, 2.0])).tolist() -> [True, False]")
copysign = binary(np.copysign, reals.copy_sign, "x1 with the sign of x2.", "copysign(2.0, -0.0).item() -> -2.0", "f")
heaviside = binary(np.heaviside, reals.step, "The step: 0 below 0, 1 above 0, and x2 at 0.",
                   "heaviside(jnp.array([-1.0, 0.0, 2.0]), 0.5).tolist() -> [0.0, 0.5, 1.0]", "f")
nextafter = binary(np.nextafter, lax.nextafter, "The next number after x1 towards x2.",
                   "nextafter(1.0, 2.0).item() -> 1.0000000000000002", "f", fast=lax.nextafter, kinds="f",
                   takes_numpy=False)
spacing = unary(np.spacing, reals.spacing, "The distance to the next number away from 0.",
                "spacing(1.0).item() -> 2.220446049250313e-16", "f", takes_numpy=in_memory.spacing)
frexp = unary(np.frexp, reals.split_exponent, "A fraction from 0.5 to 1 and an exponent: x is fraction * 2**exponent.",
              "frexp(6.0) -> (Array(0.75, dtype=float64), Array(3, dtype=int32))", "f")
modf = unary(np.modf, reals.whole_and_rest, "The fraction and the whole part, both with the sign of x.",
             "modf(jnp.array(-1.5))[0].item() -> -0.5", "f")
ldexp = binary(np.ldexp, lambda x, n: reals.scale(array(promoted((x,), "f")[0]), array(n)),
               "x1 * 2**x2, for integers x2.", "ldexp(0.75, 3).item() -> 6.0", promoting=False)

# Rounding

floor = unary(np.floor, reals.unless_exact(lax.floor), "Rounded down.", "floor(-1.5).item() -> -2.0")
ceil = unary(np.ceil, reals.unless_exact(lax.ceil), "Rounded up.", "ceil(1.5).item() -> 2.0")
trunc = unary(np.trunc, reals.unless_exact(reals.truncate), "Rounded towards zero.", "trunc(-1.5).item() -> -1.0")
rint = unary(np.rint, reals.to_even, "Rounded to the nearest integer, halves to the even one.",
             "rint(jnp.array([0.5, 1.5])).tolist() -> [0.0, 2.0]")

# Arithmetic

add = binary(np.add, by_operator(operators.add, operators.radd), "x1 + x2.",
             "add(jnp.array([1.0, 2.0]), 3).tolist() -> [4.0, 5.0]", fast=operators.add, promoting=False,
             **reductions.SUMS)
subtract = binary(np.subtract, by_operator(operators.sub, operators.rsub), "x1 - x2.", "subtract(3, 1).item() -> 2",
                  fast=operators.sub, promoting=False, at=reductions.at("subtract"))
multiply = binary(np.multiply, by_operator(operators.mul, operators.rmul), "x1 * x2.", "multiply(3, 2).item() -> 6",
                  fast=operators.mul, promoting=False, **reductions.PRODUCTS)
divide = binary(np.true_divide, by_operator(operators.truediv, operators.rtruediv), "x1 / x2.",
                "divide(3, 2).item() -> 1.5", fast=operators.truediv, promoting=False, at=reductions.at("divide"))
floor_divide = binary(np.floor_divide, by_operator(operators.floordiv, operators.rfloordiv),
                      "x1 / x2, rounded down.", "floor_divide(-3, 2).item() -> -2", fast=operators.floordiv,
                      promoting=False)
remainder = binary(np.remainder, by_operator(operators.mod, operators.rmod), "x1 % x2, with the sign of x2.",
                   "remainder(-3, 2).item() -> 1", fast=operators.mod, promoting=False)
divmod = binary(np.divmod, by_operator(operators.divmod, operators.rdivmod), "The pair of x1 // x2 and x1 % x2.",
                "divmod(7, 2) -> (Array(3, dtype=int64, weak_type=True), Array(1, dtype=int64, weak_type=True))",
                promoting=False, fast=operators.divmod)
fmod = binary(np.fmod, integers.remainder_of_dividend, "The remainder of x1 / x2, with the sign of x1.",
              "fmod(-3, 2).item() -> -1", "i")
power = binary(np.power, reals.power, "x1 to the power of x2.", "power(2.0, 3).item() -> 8.0", promoting=False,
               fast=reals.power, takes_numpy=False)
float_power = binary(np.float_power, reals.float_power, "x1 to the power of x2, as 64-bit floats.",
                     "float_power(2, -1).item() -> 0.5", takes_numpy=in_memory.float_power)
gcd = binary(np.gcd, integers.greatest_divisor, "The greatest common divisor.", "gcd(12, 18).item() -> 6")
lcm = binary(np.lcm, integers.least_multiple, "The least common multiple.", "lcm(4, 6).item() -> 12")
logaddexp = binary(np.logaddexp, reals.log_of_sum, "log(exp(x1) + exp(x2)), without overflow.",
                   "logaddexp(1000.0, -1000.0).item() -> 1000.0", "f", **reductions.SUMS_OF_EXPONENTIALS)
logaddexp2 = binary(np.logaddexp2, reals.log2_of_sum, "log2(2**x1 + 2**x2), without overflow.",
                    "logaddexp2(3.0, 3.0).item() -> 4.0", "f")
maximum = binary(np.maximum, lax.max, "The larger one; NaN if either is.", "maximum(2, 3).item() -> 3",
                 fast=lax.max, kinds="biufc", **reductions.MAXIMA)
minimum = binary(np.minimum, lax.min, "The smaller one; NaN if either is.", "minimum(2, 3).item() -> 2",
                 fast=lax.min, kinds="biufc", **reductions.MINIMA)
fmax = binary(np.fmax, reals.ignoring_nan(operators.gt), "The larger one; if one is NaN, the other.",
              "fmax(jnp.nan, 3.0).item() -> 3.0", takes_numpy=in_memory.real(np.fmax))
fmin = binary(np.fmin, reals.ignoring_nan(operators.lt), "The smaller one; if one is NaN, the other.",
              "fmin(jnp.nan, 3.0).item() -> 3.0", takes_numpy=in_memory.real(np.fmin))

# Comparisons

equal = binary(np.equal, by_operator(operators.eq, operators.eq), "x1 == x2.", "equal(2, 2.0).item() -> True",
               fast=operators.eq, promoting=False)
not_equal = binary(np.not_equal, by_operator(operators.ne, operators.ne), "x1 != x2.",
                   "not_equal(2, 2.0).item() -> False", fast=operators.ne, promoting=False)
less = binary(np.less, by_operator(operators.lt, operators.gt), "x1 < x2.", "less(1, 2).item() -> True",
              fast=operators.lt, promoting=False)
less_equal = binary(np.less_equal, by_operator(operators.le, operators.ge), "x1 <= x2.",
                    "less_equal(2, 2).item() -> True", fast=operators.le, promoting=False)
greater = binary(np.greater, by_operator(operators.gt, operators.lt), "x1 > x2.", "greater(1, 2).item() -> False",
                 fast=operators.gt, promoting=False)
greater_equal = binary(np.greater_equal, by_operator(operators.ge, operators.le), "x1 >= x2.",
                       "greater_equal(2, 2).item() -> True", fast=operators.ge, promoting=False)

# Logic and bits

logical_and = binary(np.logical_and, lambda x, y: reals.truth(x) & reals.truth(y), "Whether both are nonzero.",
                     "logical_and(2, 0).item() -> False", **reductions.ALL)
logical_or = binary(np.logical_or, lambda x, y: reals.truth(x) | reals.truth(y), "Whether one is nonzero.",
                    "logical_or(2, 0).item() -> True", **reductions.ANY)
logical_xor = binary(np.logical_xor, lambda x, y: reals.truth(x) ^ reals.truth(y), "Whether just one is nonzero.",
                     "logical_xor(2, 1).item() -> False")
logical_not = unary(np.logical_not, lambda x: ~reals.truth(x), "Whether x is 0.", "logical_not(2).item() -> False")
bitwise_and = binary(np.bitwise_and, lax.bitwise_and, "The bits that are 1 in both.", "bitwise_and(6, 3).item() -> 2",
                     fast=lax.bitwise_and, kinds="biu", reduce=reductions.bitwise("and"))
bitwise_or = binary(np.bitwise_or, lax.bitwise_or, "The bits that are 1 in one.", "bitwise_or(6, 3).item() -> 7",
                    fast=lax.bitwise_or, kinds="biu", reduce=reductions.bitwise("or"))
bitwise_xor = binary(np.bitwise_xor, lax.bitwise_xor, "The bits that differ.", "bitwise_xor(6, 3).item() -> 5",
                     fast=lax.bitwise_xor, kinds="biu", reduce=reductions.bitwise("xor"))
invert = unary(np.invert, lax.bitwise_not, "All bits inverted.", "invert(6).item() -> -7", "b", "biu")
left_shift = binary(np.left_shift, by_operator(operators.lshift, operators.rlshift), "x1 shifted left by x2 bits.",
                    "left_shift(1, 3).item() -> 8", fast=operators.lshift, promoting=False)
right_shift = binary(np.right_shift, by_operator(operators.rshift, operators.rrshift), "x1 shifted right by x2 bits.",
                     "right_shift(-8, 1).item() -> -4", fast=operators.rshift, promoting=False)
bitwise_count = unary(np.bitwise_count, integers.bit_count, "How many bits of the absolute value are 1.",
                      "bitwise_count(jnp.array([7, -8])).tolist() -> [3, 1]")

# Kinds of numbers

isnan = unary(np.isnan, reals.is_nan, "Whether x isn't a number.", "isnan(jnp.nan).item() -> True")
isfinite = unary(np.isfinite, reals.is_finite, "Whether x is neither infinite nor NaN.",
                 "isfinite(jnp.inf).item() -> False")
isinf = unary(np.isinf, reals.is_infinite, "Whether x is infinite.", "isinf(-jnp.inf).item() -> True")

# Other names of the same

abs, acos, acosh, asin, asinh = absolute, arccos, arccosh, arcsin, arcsinh
atan, atan2, atanh, conj = arctan, arctan2, arctanh, conjugate
bitwise_invert = bitwise_not = invert
bitwise_left_shift, bitwise_right_shift = left_shift, right_shift
mod, pow, true_divide = remainder, power, divide


# Functions that aren't ufuncs in NumPy, either

@public
def real(val: ArrayLike, /) -> Array:
    """The real part.

    >>> jnp.real(1 + 2j).item()
    1.0
    """
    return operators.real(array(val))


@directly(in_memory.imag)
def imag(val: ArrayLike, /) -> Array:
    """The imaginary part.

    >>> jnp.imag(1 + 2j).item()
    2.0
    """
    return operators.imag(array(val))


@directly(np.angle, whole=True)
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The angle of complex numbers, from -pi to pi; in degrees if `deg`.

    >>> jnp.angle(jnp.array([1j, -1.0]), deg=True).tolist()
    [90.0, 180.0]
    """
    found = array(operand(z))
    if not dtypes.is_inexact(found.aval.dtype):
        found = operators.astype(found, dtypes.default_dtype("f"))
    turned = lax.atan2(operators.imag(found), operators.real(found))
    return turned * (180 / pi) if deg else turned


@directly(np.sinc, whole=True)
def sinc(x: ArrayLike, /) -> Array:
    """sin(pi x) / (pi x), which is 1 at 0.

    >>> jnp.sinc(jnp.array([0.0, 0.5])).tolist()
    [1.0, 0.6366197723675814]
    """
    return reals.sinc(array(promoted((operand(x),), "f")[0]))


@directly(in_memory.i0, whole=True)
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind, of order 0.

    >>> jnp.i0(0.0).item()
    1.0
    """
    return reals.bessel_i0(array(promoted((operand(x),), "f")[0]))


@directly(np.iscomplex, whole=True)
def iscomplex(x: ArrayLike) -> Array:
    """Whether the imaginary part isn't 0.

    >>> jnp.iscomplex(jnp.array([1j, 1.0])).tolist()
    [True, False]
    """
    return operators.ne(operators.imag(array(x)), 0)


@directly(np.isreal, whole=True)
def isreal(x: ArrayLike) -> Array:
    """Whether the imaginary part is 0.

    >>> jnp.isreal(jnp.array([1j, 1.0])).tolist()
    [False, True]
    """
    return operators.eq(operators.imag(array(x)), 0)


@directly(lambda x, out=None: np.equal(x, np.inf), whole=True)
def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether x is positive infinity.

    >>> jnp.isposinf(jnp.array([jnp.inf, -jnp.inf])).tolist()
    [True, False]
    """
    return _infinite("isposinf", x, out, 1)


@directly(lambda x, out=None: np.equal(x, -np.inf), whole=True)
def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether x is negative infinity.

    >>> jnp.isneginf(jnp.array([jnp.inf, -jnp.inf])).tolist()
    [False, True]
    """
    return _infinite("isneginf", x, out, -1)


def _infinite(name: str, x: Any, out: None, side: int) -> Any:
    no_out(name, out)
    x = array(x)
    reals.real_only(name, x)
    return x == np.asarray(side * np.inf, x.aval.dtype) if dtypes.is_inexact(x.aval.dtype) else lax.ne(x, x)
