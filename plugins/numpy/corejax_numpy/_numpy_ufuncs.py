"""NumPy's ufuncs for traced values, except those that are Python operators, which the kernel takes care of.

Dtypes follow the operators. A function without integer results converts integers to the float dtype that NumPy's own
loop uses for them.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log as real_log
from math import pi
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import aval_of, dtypes, from_array_like
from corejax.plugin import operators, refused, roles
from corejax_lax_basic import broadcast_together, of_one_dtype, promoted

Function = Callable[..., Any]

# Operands

def inexact(ufunc: np.ufunc, x: Any) -> Any:
    """The traced operand of a ufunc with inexact results; integers are converted to the dtype that NumPy uses."""
    aval = x.aval
    if dtypes.is_inexact(aval.dtype):
        return x
    own = dtypes.canonical(ufunc.resolve_dtypes((aval.dtype, *[None] * ufunc.nout))[-1])
    default = dtypes.default_dtype("f")
    return roles.convert(x, own if own.itemsize < default.itemsize else default, aval.weak_type)


def _of_floats(ufunc: np.ufunc, function: Function) -> Function:
    def apply(x: Any) -> Any:
        return function(inexact(ufunc, x))
    return apply


def _of_two(function: Function, at_least: str = "b") -> Function:
    def apply(x: Any, y: Any) -> Any:
        return function(*map(from_array_like, promoted((x, y), at_least)))
    return apply


def _scalar(value: float, like: Any) -> Any:
    """A number in the dtype of an array."""
    return roles.convert(value, aval_of(like).dtype, True)


def _is_nan(x: Any) -> Any:
    return lax.ne(x, x)


def _truth(x: Any) -> Any:
    return x if aval_of(x).dtype == dtypes.bool_ else lax.ne(x, _scalar(0, x))


def _real(name: str, x: Any) -> Any:
    if dtypes.is_complex(aval_of(x).dtype):
        raise refused(name, "only real numbers are supported", got=str(aval_of(x)), wanted="a real dtype",
                      todo="write it with the functions of cj.lax")
    return x

# With one operand

def _same_if_exact(function: Function) -> Function:
    """A rounding function that returns integers and booleans unchanged."""
    return lambda x: function(x) if dtypes.is_inexact(aval_of(x).dtype) else x


@_same_if_exact
def truncated(x: Any) -> Any:
    """Rounded towards zero."""
    return lax.select(lax.lt(x, _scalar(0, x)), lax.ceil(x), lax.floor(x))


def _to_even(x: Any) -> Any:
    return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)


def is_finite(x: Any) -> Any:
    """Whether x is neither infinite nor NaN."""
    dtype = aval_of(x).dtype
    if dtypes.is_complex(dtype):
        return lax.bitwise_and(lax.is_finite(operators.real(x)), lax.is_finite(operators.imag(x)))
    return lax.is_finite(x) if dtypes.is_inexact(dtype) else lax.eq(x, x)


def is_infinite(x: Any) -> Any:
    """Whether x is infinite; for complex numbers, whether a part is."""
    dtype = aval_of(x).dtype
    if dtypes.is_complex(dtype):
        return lax.bitwise_or(is_infinite(operators.real(x)), is_infinite(operators.imag(x)))
    return lax.eq(lax.abs(x), _scalar(np.inf, x)) if dtypes.is_inexact(dtype) else lax.ne(x, x)


def _times(factor: float) -> Function:
    return lambda x: lax.mul(_real("a conversion of angles", x), _scalar(factor, x))


def _over(divisor: float, function: Function) -> Function:
    return lambda x: lax.div(function(x), _scalar(divisor, x))

# With two operands

def _ignoring_nan(choose: Any) -> Function:
    def apply(x: Any, y: Any) -> Any:
        chosen = choose(x, y)
        if not dtypes.is_inexact(aval_of(x).dtype):
            return chosen
        return _where(_is_nan(x), y, _where(_is_nan(y), x, chosen))
    return apply


def _where(condition: Any, x: Any, y: Any) -> Any:
    return lax.select_n(*broadcast_together([condition, y, x]))


def _remainder_of_dividend(x: Any, y: Any) -> Any:
    if dtypes.is_integer(aval_of(x).dtype):
        y = lax.select(lax.eq(y, _scalar(0, y)), lax.add(y, _scalar(1, y)), y)
    return lax.rem(x, y)


def _float_power(x: Any, y: Any) -> Any:
    return lax.pow(*map(from_array_like, promoted((x, y, np.float64(0)))[:2]))


def _ordered(x: Any, y: Any) -> tuple[Any, Any]:
    """The larger and the smaller one. At ties, each is still one of the operands, even in derivatives, not the mean."""
    first = lax.gt(x, y)
    return _where(first, x, y), _where(first, y, x)


def _hypotenuse(x: Any, y: Any) -> Any:
    """sqrt(x² + y²) without overflow, and with a derivative of 0 where both are 0."""
    x, y = lax.abs(_real("hypot", x)), lax.abs(y)
    long, short = _ordered(x, y)
    plain = lax.bitwise_and(lax.gt(long, _scalar(0, x)), lax.is_finite(long))
    ratio = lax.div(_where(plain, short, _scalar(0, x)), _where(plain, long, _scalar(1, x)))
    found = lax.mul(long, lax.sqrt(lax.add(lax.square(ratio), _scalar(1, x))))
    found = _where(lax.eq(long, _scalar(0, x)), _scalar(0, x), found)
    infinite = lax.bitwise_or(is_infinite(x), is_infinite(y))
    return _where(infinite, _scalar(np.inf, x), found)


def _log_of_sum(x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y)), computed without overflow."""
    long, short = _ordered(_real("logaddexp", x), y)
    both_infinite = lax.bitwise_and(lax.eq(x, y), is_infinite(long))
    gap = _where(both_infinite, _scalar(0, x), lax.sub(short, long))
    return lax.add(long, lax.log1p(lax.exp(gap)))


def _logical(combine: Any) -> Function:
    def apply(x: Any, y: Any) -> Any:
        return combine(*broadcast_together([_truth(from_array_like(x)), _truth(from_array_like(y))]))
    return apply


def vector_product(x: Any, y: Any) -> Any:
    """Sums of products along the last axes; the axes before them broadcast, and x is conjugated."""
    x, y = of_one_dtype((from_array_like(x), from_array_like(y)))
    if not x.aval.ndim or not y.aval.ndim or x.aval.shape[-1] != y.aval.shape[-1]:
        raise refused("vecdot", "the last axes differ in size", got=f"{x.aval} and {y.aval}",
                      wanted="last axes of equal size", todo="transpose or slice one of the operands")
    x, y = broadcast_together([x, y])
    last = aval_of(x).ndim - 1
    lead = tuple(range(last))
    return lax.dot_general(operators.conj(x), y, (((last,), (last,)), (lead, lead)))


def _matrix_vector(x: Any, y: Any) -> Any:
    x, y = of_one_dtype((x, y))
    column = lax.expand_dims(y, (aval_of(y).ndim,))
    product = operators.matmul(from_array_like(x), column)
    return lax.squeeze(product, (aval_of(product).ndim - 1,))


def _vector_matrix(x: Any, y: Any) -> Any:
    x, y = of_one_dtype((x, y))
    row = lax.expand_dims(operators.conj(x), (aval_of(x).ndim - 1,))
    product = operators.matmul(from_array_like(row), y)
    return lax.squeeze(product, (aval_of(product).ndim - 2,))

# The table

_FLOATS: dict[np.ufunc, Function] = {
    np.sin: lax.sin, np.cos: lax.cos, np.tan: lax.tan, np.arcsin: lax.asin,
    np.arccos: lax.acos, np.arctan: lax.atan, np.sinh: lax.sinh,
    np.cosh: lax.cosh, np.tanh: lax.tanh, np.arcsinh: lax.asinh,
    np.arccosh: lax.acosh, np.arctanh: lax.atanh, np.cbrt: lax.cbrt,
    np.exp: lax.exp, np.exp2: lax.exp2, np.expm1: lax.expm1,
    np.log: lax.log, np.log2: _over(real_log(2), lax.log),
    np.log10: _over(real_log(10), lax.log), np.log1p: lax.log1p, np.sqrt: lax.sqrt,
    np.fabs: lambda x: lax.abs(_real("fabs", x)), np.rint: _to_even,
    np.deg2rad: _times(pi / 180), np.rad2deg: _times(180 / pi), np.radians: _times(pi / 180),
    np.degrees: _times(180 / pi),
}

#: Ufuncs of x alone that keep its dtype, or return a boolean.
_UNARY: dict[np.ufunc, Function] = {
    np.sign: lax.sign, np.square: lax.square, np.reciprocal: lax.reciprocal,
    np.conjugate: operators.conj, np.floor: _same_if_exact(lax.floor), np.ceil: _same_if_exact(lax.ceil),
    np.trunc: truncated, np.isnan: _is_nan, np.isfinite: is_finite, np.isinf: is_infinite,
    np.logical_not: lambda x: lax.bitwise_not(_truth(x)),
}

_BINARY: dict[np.ufunc, Function] = {
    np.maximum: _of_two(lax.max), np.minimum: _of_two(lax.min),
    np.fmax: _of_two(_ignoring_nan(lax.max)), np.fmin: _of_two(_ignoring_nan(lax.min)),
    np.fmod: _of_two(_remainder_of_dividend, "i"), np.arctan2: _of_two(lax.atan2, "f"),
    np.float_power: _float_power, np.hypot: _of_two(_hypotenuse, "f"), np.logaddexp: _of_two(_log_of_sum, "f"),
    np.nextafter: _of_two(lax.nextafter, "f"),
    np.logical_and: _logical(lax.bitwise_and), np.logical_or: _logical(lax.bitwise_or),
    np.logical_xor: _logical(lax.bitwise_xor),
}

_OPERATORS = {
    np.add: operators.add, np.subtract: operators.sub, np.multiply: operators.mul, np.true_divide: operators.truediv,
    np.floor_divide: operators.floordiv, np.remainder: operators.mod, np.power: operators.pow,
    np.equal: operators.eq, np.not_equal: operators.ne, np.less: operators.lt, np.less_equal: operators.le,
    np.greater: operators.gt, np.greater_equal: operators.ge, np.bitwise_and: lax.bitwise_and,
    np.bitwise_or: lax.bitwise_or, np.bitwise_xor: lax.bitwise_xor,
}


def _outer(function: Function) -> Function:
    """`ufunc.outer`: each element of x with each element of y."""
    def apply(x: Any, y: Any) -> Any:
        x, y = from_array_like(x), from_array_like(y)
        count = aval_of(y).ndim
        return function(operators.reshape(x, (*aval_of(x).shape, *[1] * count)), y)
    return apply


numpy_ufunc: dict[Any, Function] = {
    **{ufunc: _of_floats(ufunc, function) for ufunc, function in _FLOATS.items()}, **_UNARY, **_BINARY,
    **{ufunc.outer: _outer(function) for ufunc, function in (_OPERATORS | _BINARY).items()},
    np.vecdot: vector_product,
    **{getattr(np, name): function for name, function in (("matvec", _matrix_vector), ("vecmat", _vector_matrix))
       if hasattr(np, name)},  # new in NumPy 2.2
}
