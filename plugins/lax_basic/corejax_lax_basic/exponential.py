"""Exponentials, logarithms, roots and powers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.core import aval_of, dtypes
from corejax.plugin import define, factors, families, over
from corejax_lax_basic.arithmetic import add, div, integer_pow, mul, sub
from corejax_lax_basic.comparison import eq
from corejax_lax_basic.conversion import convert_element_type
from corejax_lax_basic.selection import select_n

__all__ = ["exp", "expm1", "log", "log1p", "logistic", "pow", "rsqrt", "sqrt"]

exp = define(families.unary(
    "exp", np.exp, hlo="exponential", dtypes="fc", jvp=factors(lambda out, x: out), doc="e to the power of x."))
expm1 = define(families.unary(
    "expm1", np.expm1, hlo="exponential_minus_one", dtypes="fc", jvp=factors(lambda out, x: add(out, 1)),
    doc="exp(x) - 1, exact also near 0."))
log = define(families.unary(
    "log", np.log, hlo="log", dtypes="fc", jvp=factors(over(lambda out, x: x)), domain=(0.2, 3.0),
    doc="The natural logarithm."))
log1p = define(families.unary(
    "log1p", np.log1p, hlo="log_plus_one", dtypes="fc", jvp=factors(over(lambda out, x: add(x, 1))),
    domain=(-0.8, 2.0), doc="log(1 + x), exact also near 0."))
logistic = define(families.unary(
    "logistic", lambda x: np.reciprocal(x.dtype.type(1) + np.exp(-x)), hlo="logistic", dtypes="fc",
    jvp=factors(lambda out, x: mul(out, sub(1, out))), doc="The logistic function 1 / (1 + exp(-x))."))
sqrt = define(families.unary(
    "sqrt", np.sqrt, hlo="sqrt", dtypes="fc", jvp=factors(lambda out, x: div(0.5, out)), domain=(0.2, 3.0),
    doc="The square root. Its derivative at 0 is infinite."))
rsqrt = define(families.unary(
    "rsqrt", lambda x: np.reciprocal(np.sqrt(x)), hlo="rsqrt", dtypes="fc",
    jvp=factors(lambda out, x: mul(div(out, x), -0.5)), domain=(0.2, 3.0), doc="1 / sqrt(x)."))


# Powers

def _base_slope(out: Any, x: Any, y: Any) -> Any:
    """y x^(y - 1): not a number at x = y = 0."""
    return mul(y, pow(x, sub(y, 1)))


def _exponent_slope(out: Any, x: Any, y: Any) -> Any:
    """log(x) x^y; 0 at x = 0, which is the limit for y > 0."""
    return mul(log(select_n(eq(x, 0), x, families.weak_scalar(1, out.aval.dtype))), out)


class _Pow(families.Elementwise):
    def function(self, bind: Callable[..., Any]) -> Callable[..., Any]:
        self._bind = bind

        def pow(x: Any, y: Any) -> Any:
            if type(y) is int and type(x) not in dtypes.PYTHON_SCALARS and dtypes.is_inexact(aval_of(x).dtype):
                return integer_pow(x, y)
            x, y = families.match_scalars((x, y))
            x_dtype, y_dtype = aval_of(x).dtype, aval_of(y).dtype
            if dtypes.is_inexact(x_dtype) and dtypes.is_integer(y_dtype):
                y = convert_element_type(y, x_dtype)
            return bind(x, y)
        return pow


def _power(x: Any, y: Any) -> Any:
    if x.dtype.kind == "c":  # zero to the power of a number that is not real has no value
        return np.where((x == 0) & (y.imag != 0), complex(np.nan, np.nan), np.power(x, y)).astype(x.dtype)
    if x.dtype.kind != "i":
        return np.power(x, y)
    # of integers, a negative power is 0 unless the base is 1 or -1; NumPy refuses it
    inverse = np.where(np.abs(x) == 1, np.where(y & 1, x, 1), 0).astype(x.dtype)
    return np.where(y < 0, inverse, np.power(x, np.maximum(y, 0)))


pow = define(_Pow(
    "pow", _power, arity=2, hlo="power", dtypes="iufc",
    jvp=factors(_base_slope, _exponent_slope), domain=(0.3, 2.5),
    doc="x to the power of y. Beside a float or complex x, y may be an integer."))
