"""Trigonometric and hyperbolic functions, and their inverses. Angles are in radians."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.plugin import define, factors, families, over
from corejax_lax_basic import _accurate
from corejax_lax_basic._complex_edges import at_edges
from corejax_lax_basic.accuracy import AccuracyMode, Tolerance, accurately  # noqa: F401, signatures name the types
from corejax_lax_basic.arithmetic import add, div, mul, neg, square, sub
from corejax_lax_basic.exponential import rsqrt

__all__ = ["acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "sin", "sinh", "tan", "tanh"]


def _radius2(x: Any, y: Any) -> Any:
    return add(square(x), square(y))


sin = define(families.unary(
    "sin", np.sin, hlo=at_edges("sin", "stablehlo.sine"), dtypes="fc", jvp=factors(lambda out, x: cos(x)),
    compiled_at=families.at_special_points, accurately=accurately, doc="The sine.",
    example="sin(0.5) -> Array(0.47942554, dtype=float64, weak_type=True)"))
cos: Any = define(families.unary(
    "cos", np.cos, hlo=at_edges("cos", "stablehlo.cosine"), dtypes="fc", jvp=factors(lambda out, x: neg(sin(x))),
    compiled_at=families.at_special_points, accurately=accurately, doc="The cosine.",
    example="cos(0.5) -> Array(0.87758256, dtype=float64, weak_type=True)"))
tan = define(families.unary(
    "tan", np.tan, hlo=at_edges("tan", "stablehlo.tan"), dtypes="fc",
    jvp=factors(lambda out, x: add(square(out), 1)), domain=(-1.2, 1.2),
    compiled_at=families.at_special_points, accurately=accurately, doc="The tangent.",
    example="tan(0.5) -> Array(0.54630249, dtype=float64, weak_type=True)"))
asin = define(families.unary(
    "asin", np.arcsin, hlo=at_edges("asin", "chlo.asin"), dtypes="fc",
    jvp=factors(lambda out, x: rsqrt(sub(1, square(x)))),
    domain=(-0.8, 0.8), compiled_at=families.at_special_points, doc="The inverse of the sine, from -pi/2 to pi/2.",
    example="asin(0.5) -> Array(0.52359878, dtype=float64, weak_type=True)"))
acos = define(families.unary(
    "acos", np.arccos, hlo=at_edges("acos", "chlo.acos"), dtypes="fc",
    jvp=factors(lambda out, x: neg(rsqrt(sub(1, square(x))))),
    domain=(-0.8, 0.8), compiled_at=families.at_special_points, doc="The inverse of the cosine, from 0 to pi.",
    example="acos(0.5) -> Array(1.04719755, dtype=float64, weak_type=True)"))
atan = define(families.unary(
    "atan", np.arctan, hlo=at_edges("atan", "chlo.atan"), dtypes="fc",
    jvp=factors(over(lambda out, x: add(square(x), 1))),
    domain=(-0.8, 0.8), compiled_at=families.at_special_points, doc="The inverse of the tangent, from -pi/2 to pi/2.",
    example="atan(0.5) -> Array(0.46364761, dtype=float64, weak_type=True)"))
atan2 = define(families.binary(
    "atan2", np.arctan2, hlo="atan2", dtypes="f",
    jvp=factors(lambda out, x, y: div(y, _radius2(x, y)), lambda out, x, y: neg(div(x, _radius2(x, y)))),
    domain=(0.3, 2.0), exempt={"f": {"subnormal numbers agree or count as zero":
                                     "XLA gives -pi for positive subnormal ordinates of negative abscissas"}},
    doc="The angle, from -pi to pi, of the point whose ordinate is x and whose abscissa is y.",
    example="atan2(1.0, 1.0) -> Array(0.78539816, dtype=float64, weak_type=True)"))

sinh = define(families.unary(
    "sinh", np.sinh, hlo=at_edges("sinh", "chlo.sinh"), dtypes="fc", jvp=factors(lambda out, x: cosh(x)),
    compiled_at=families.at_special_points, doc="The hyperbolic sine.",
    example="sinh(0.5) -> Array(0.52109531, dtype=float64, weak_type=True)"))
cosh: Any = define(families.unary(
    "cosh", np.cosh, hlo=at_edges("cosh", "chlo.cosh"), dtypes="fc", jvp=factors(lambda out, x: sinh(x)),
    compiled_at=families.at_special_points, doc="The hyperbolic cosine.",
    example="cosh(0.5) -> Array(1.12762597, dtype=float64, weak_type=True)"))
tanh = define(families.unary(
    "tanh", np.tanh, hlo=at_edges("tanh", "stablehlo.tanh"), dtypes="fc",
    jvp=factors(lambda out, x: sub(1, square(out))),
    compiled_at=families.at_special_points, accurately=accurately, doc="The hyperbolic tangent.",
    example="tanh(0.5) -> Array(0.46211716, dtype=float64, weak_type=True)"))

asinh = define(families.unary(
    "asinh", np.arcsinh, hlo=_accurate.by_formula(_accurate.asinh, at_edges("asinh", "chlo.asinh")), dtypes="fc",
    jvp=factors(lambda out, x: rsqrt(add(square(x), 1))), compiled_at=families.at_special_points,
    doc="The inverse of the hyperbolic sine.",
    example="asinh(0.5) -> Array(0.48121183, dtype=float64, weak_type=True)"))
acosh = define(families.unary(
    "acosh", np.arccosh, hlo=_accurate.by_formula(_accurate.acosh, at_edges("acosh", "chlo.acosh")), dtypes="fc",
    jvp=factors(lambda out, x: mul(rsqrt(sub(x, 1)), rsqrt(add(x, 1)))), domain=(1.2, 3.0),
    compiled_at=families.at_special_points,
    doc="The inverse of the hyperbolic cosine, for x from 1 on. Its derivative at 1 is infinite.",
    example="acosh(2.0) -> Array(1.3169579, dtype=float64, weak_type=True)"))
atanh = define(families.unary(
    "atanh", np.arctanh, hlo=_accurate.by_formula(_accurate.atanh, at_edges("atanh", "chlo.atanh")), dtypes="fc",
    jvp=factors(over(lambda out, x: mul(sub(1, x), add(x, 1)))), domain=(-0.8, 0.8),
    compiled_at=families.at_special_points, doc="The inverse of the hyperbolic tangent, between -1 and 1.",
    example="atanh(0.5) -> Array(0.54930614, dtype=float64, weak_type=True)"))
