"""Functions of real and complex elements that aren't primitives: what the rows of `elementwise` mean.

Their operands are arrays of one dtype that broadcast together.
"""

# mypy: no-warn-return-any

from __future__ import annotations

from collections.abc import Callable
from math import log as real_log, pi
from typing import Any

import ml_dtypes
import numpy as np

from corejax import lax
from corejax.core import aval_of, context, dtypes
from corejax.plugin import NotDirectly, directly, operators, refused
from corejax_numpy._arrays import array
from corejax_numpy._picking import pick

Function = Callable[..., Any]


def real_only(name: str, *xs: Any) -> None:
    """Refuse complex numbers."""
    for x in xs:
        if dtypes.is_complex(aval_of(x).dtype):
            raise refused(name, "only real numbers are supported", got=str(aval_of(x)), wanted="a real dtype",
                          todo="take the real and imaginary parts first")


# Rounding and parts

def unless_exact(function: Function) -> Function:
    """A rounding function that returns integers and booleans unchanged."""
    return lambda x: function(x) if dtypes.is_inexact(x.aval.dtype) else x


def truncate(x: Any) -> Any:
    """Rounded towards zero."""
    real_only("trunc", x)
    return pick(x < 0, lax.ceil(x), lax.floor(x))


def to_even(x: Any) -> Any:
    """Rounded to the nearest integer, halves to the even one; integers as floats."""
    if dtypes.is_complex(x.aval.dtype):
        return lax.complex(to_even(operators.real(x)), to_even(operators.imag(x)))
    if not dtypes.is_inexact(x.aval.dtype):
        return operators.astype(x, dtypes.default_dtype("f"))
    return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)


def whole_and_rest(x: Any) -> tuple[Any, Any]:
    """`modf`: the fraction and the whole part, both with the sign of x."""
    real_only("modf", x)
    whole, below = truncate(x), sign_bit(x)
    rest = pick(below, -(whole - x), x - whole)  # -0.0 for negative whole numbers, with the derivative 1
    return pick(is_infinite(x), pick(below, -0.0, 0.0), rest), whole


def times(factor: float, name: str) -> Function:
    """x times a number."""
    def apply(x: Any) -> Any:
        real_only(name, x)
        return x * factor
    return apply


def log_over(base: float) -> Function:
    """The logarithm to a base."""
    def apply(x: Any) -> Any:
        found = lax.log(x)
        if not dtypes.is_complex(found.aval.dtype):
            return found / real_log(base)
        return lax.complex(operators.real(found) / real_log(base), operators.imag(found) / real_log(base))
    return apply


def absolute_float(x: Any) -> Any:
    """`fabs`."""
    real_only("fabs", x)
    return lax.abs(x)


def _signs(x: Any) -> Any:
    if x.dtype.kind not in "iuf":
        raise NotDirectly
    return np.sign(x)


@directly(_signs, 1)
def sign(x: Any) -> Any:
    """`sign`: unlike the primitive's, 0 for both zeros."""
    found = lax.sign(x)
    return pick(operators.eq(x, 0), 0, found) if dtypes.is_inexact(x.aval.dtype) else found


# Kinds of numbers

def is_nan(x: Any) -> Any:
    """Whether x isn't a number."""
    return lax.ne(x, x)


def is_finite(x: Any) -> Any:
    """Whether x is neither infinite nor NaN."""
    dtype = x.aval.dtype
    if dtypes.is_complex(dtype):
        return is_finite(operators.real(x)) & is_finite(operators.imag(x))
    return lax.is_finite(x) if dtypes.is_inexact(dtype) else lax.eq(x, x)


def is_infinite(x: Any) -> Any:
    """Whether x is infinite; for complex numbers, whether a part is."""
    dtype = x.aval.dtype
    if dtypes.is_complex(dtype):
        return is_infinite(operators.real(x)) | is_infinite(operators.imag(x))
    return lax.eq(lax.abs(x), np.asarray(np.inf, dtype)) if dtypes.is_inexact(dtype) else lax.ne(x, x)


def truth(x: Any) -> Any:
    """Whether x isn't zero."""
    return x if x.aval.dtype == dtypes.bool_ else operators.ne(x, 0)


# Bits of floats

def _bits(x: Any) -> Any:
    return lax.bitcast_convert_type(x, np.dtype(f"int{8 * x.aval.dtype.itemsize}"))


def sign_bit(x: Any) -> Any:
    """Whether the sign is a minus: of negative numbers, of -0.0 and of some NaNs."""
    real_only("signbit", x)
    if dtypes.is_float(x.aval.dtype):
        return _bits(x) < 0
    return lax.ne(x, x) if x.aval.dtype == dtypes.bool_ else operators.lt(x, 0)


def copy_sign(x: Any, y: Any) -> Any:
    """x with the sign of y."""
    real_only("copysign", x, y)
    if x.aval.weak_type and not y.aval.weak_type:
        x = operators.astype(x, x.aval.dtype)
    return pick(sign_bit(x) ^ sign_bit(y), -x, x)


def spacing(x: Any) -> Any:
    """The distance to the next number away from zero, with the sign of x."""
    real_only("spacing", x)
    fixed = lax.stop_gradient(x)
    size = lax.abs(fixed)
    above = lax.nextafter(size, np.asarray(np.inf, x.aval.dtype))
    gap = pick(size == 0, above, above - size)
    return pick(lax.is_finite(fixed), copy_sign(gap, fixed), np.nan)


def split_exponent(x: Any) -> tuple[Any, Any]:
    """`frexp`: a fraction from 0.5 to 1, or 0, and an exponent, with x = fraction * 2**exponent."""
    real_only("frexp", x)
    dtype = x.aval.dtype
    if dtype.itemsize < 4:  # exact in float32
        fraction, exponent = split_exponent(operators.astype(x, dtypes.float32))
        return operators.astype(fraction, dtype), exponent
    fixed = lax.stop_gradient(x)
    info: Any = np.finfo(dtype)
    is_small = lax.abs(fixed) < float(info.tiny)
    lifted = pick(is_small, fixed * 2.0 ** info.nmant, fixed)
    field = (_bits(lifted) >> info.nmant) & ((1 << info.nexp) - 1)
    exponent = operators.astype(field, dtypes.int32) - (1 - info.minexp - 1) - pick(is_small, info.nmant, 0)
    plain = lax.is_finite(fixed) & (fixed != 0)
    exponent = operators.astype(pick(plain, exponent, 0), dtypes.int32)
    return scale(x, -exponent), exponent


def scale(x: Any, n: Any) -> Any:
    """`ldexp`: x * 2**n, in steps none of which goes beyond what floats can represent unless the result does."""
    real_only("ldexp", x)
    dtype = x.aval.dtype
    if n.aval.dtype == dtypes.bool_:
        n = operators.astype(n, dtypes.int32)
    if not dtypes.is_integer(n.aval.dtype):
        raise refused("ldexp", "exponents are integers", got=str(n.aval), wanted="an integer dtype",
                      todo="multiply by 2.0 ** x2 instead")
    if dtype.itemsize < 4:
        return operators.astype(scale(operators.astype(x, dtypes.float32), n), dtype)
    info: Any = np.finfo(dtype)
    most, least, lift = info.maxexp - 1, info.minexp, info.nmant + 1
    for _ in range(2):
        above, below = n > most, n < least
        x = x * pick(above, 2.0 ** most, pick(below, 2.0 ** (least + lift), 1.0))
        n = n - operators.astype(pick(above, most, pick(below, least + lift, 0)), n.aval.dtype)
    n = operators.astype(operators.clip(n, least, most), np.dtype(f"int{8 * dtype.itemsize}"))
    return x * lax.bitcast_convert_type((n + (1 - info.minexp)) << info.nmant, dtype)


# Two operands

def ignoring_nan(first: Function) -> Function:
    """`fmax` and `fmin`: at ties, the second operand has all of the derivative."""
    return lambda x, y: pick(first(x, y) | is_nan(y), x, y)


def _ordered(x: Any, y: Any) -> tuple[Any, Any]:
    """The larger and the smaller one. At ties, each is still one of the operands, even in derivatives, not the mean."""
    first = operators.gt(x, y)
    return pick(first, x, y), pick(first, y, x)


def hypotenuse(x: Any, y: Any) -> Any:
    """sqrt(x² + y²) without overflow, and with a derivative of 0 where both are 0."""
    real_only("hypot", x, y)
    infinite = is_infinite(x) | is_infinite(y)
    long, short = _ordered(lax.abs(x), lax.abs(y))
    plain = (long > 0) & lax.is_finite(long)
    ratio = pick(plain, short, 0) / pick(plain, long, 1)
    found = pick(long == 0, 0, long * lax.sqrt(lax.square(ratio) + 1))
    found = pick(is_nan(x) | is_nan(y), np.nan, found)
    return pick(infinite, np.inf, found)


def log_of_sum(x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y)), computed without overflow."""
    long, short = _ordered(x, y)
    both = lax.eq(x, y) & is_infinite(x)
    gap = pick(both, 0, short - long)
    out = pick(both, x + y, long + lax.log1p(lax.exp(gap)))
    if not dtypes.is_complex(out.aval.dtype):
        return out
    turn = operators.imag(out)
    return lax.complex(operators.real(out), turn - 2 * pi * operators.round((lax.stop_gradient(turn)) / (2 * pi)))


def log2_of_sum(x: Any, y: Any) -> Any:
    """log2(2**x + 2**y)."""
    return log_of_sum(x * real_log(2), y * real_log(2)) / real_log(2)


def step(x: Any, y: Any) -> Any:
    """`heaviside`: 0 below 0, 1 above, y at 0."""
    real_only("heaviside", x)
    return pick(x == 0, y, pick(x > 0, 1, pick(x < 0, 0, x * 0)))


def power(x: Any, y: Any) -> Any:
    """x to the power of y. An integer exponent has no derivative, so one of 0 has the derivative 0 even at x = 0."""
    x = array(x)
    if type(y) in (int, float):
        return operators.pow(x, y)
    y = array(y)
    if not context.trace.knows_values and dtypes.is_inexact(x.aval.dtype) and dtypes.is_integer(y.aval.dtype):
        return operators.pow(pick(y == 0, 1, x), y)
    return operators.pow(x, y)


def float_power(x: Any, y: Any) -> Any:
    """x to the power of y in the widest float dtype, or complex one."""
    wide = dtypes.default_dtype("c" if any([dtypes.is_complex(z.aval.dtype) for z in (x, y)]) else "f")
    return power(operators.astype(x, wide), operators.astype(y, wide))


# Others

def sinc(x: Any) -> Any:
    """sin(pi x) / (pi x), 1 at 0: near 0 by a series, which keeps the derivatives that the quotient loses."""
    scaled = x * pi
    near = lax.abs(x) < 0.15
    square, series = lax.square(scaled), 1.0
    for n in range(10, 0, -1):
        series = square * series * (-1.0 / (2 * n * (2 * n + 1))) + 1.0
    divisor = pick(near, 1.0, scaled)
    return pick(near, series, lax.sin(divisor) / divisor)


def bessel_i0(x: Any) -> Any:
    """The modified Bessel function of order 0. Its derivative at 0 is 0, since `abs` is replaced there."""
    real_only("i0", x)
    return lax.bessel_i0e(x) * lax.exp(x * lax.sign(x))


def largest(dtype: np.dtype) -> tuple[float, float]:
    """The largest and the smallest finite number of a float dtype."""
    info: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    return float(info.max), float(info.min)

