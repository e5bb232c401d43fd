"""Complex functions at infinities and NaN, where the compiler's own results are NaN in both parts, or wrong.

There a part of the result is often known though the other isn't: e to the power of -inf + NaN j is 0, and the sine of
0 + NaN j has the real part 0. The values are those of the C standard (Annex G), of the array API and, but for `expm1`,
NumPy's. Each correction gets the parts `a, b` of the operand and `u, v` of the compiler's result, all finite operands
being left to the compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, nan, pi
from typing import Any

from corejax import lax
from corejax.core import dtypes

__all__ = ["at_edges", "corrected"]

Parts = tuple[Any, Any]


def at_edges(function: str, operation: str | Callable[..., Any]) -> Callable[..., Any]:
    """A lowering: by an operation, or another lowering, whose results for complex numbers are corrected."""
    def lower(ctx: Any, args: Sequence[Any]) -> Any:
        out = ctx.op(operation, args) if isinstance(operation, str) else operation(ctx, args)
        return corrected(ctx, function, args, out)
    return lower


def corrected(ctx: Any, function: str, args: Sequence[Any], out: Any) -> Any:
    """The compiler's result of a function, corrected if it is complex."""
    correct = _CORRECTIONS.get(function)
    if correct is None or not dtypes.is_complex(ctx.avals_in[0].dtype):
        return out
    return ctx.lower(lambda z, w: lax.complex(*correct(lax.real(z), lax.imag(z), lax.real(w), lax.imag(w))), *args, out)


# Parts

def _where(condition: Any, x: Any, y: Any) -> Any:
    return lax.select(condition, lax.full_like(y, x) if isinstance(x, (int, float)) else x, y)


def _open(x: Any) -> Any:
    """Whether it is infinite or NaN."""
    return ~lax.is_finite(x)


def _infinite(x: Any) -> Any:
    return lax.abs(x) == inf


def _nan(x: Any) -> Any:
    return x != x


def _lost(a: Any, b: Any) -> Any:
    """Whether there is a NaN, and no infinity that the result could still depend on."""
    return (_nan(a) | _nan(b)) & ~(_infinite(a) | _infinite(b))


# Exponentials, logarithms, roots

def _exp_towards(limit: float) -> Callable[..., Parts]:
    """`exp` or `expm1`, by the limit at -inf: the angle doesn't matter there, and is unknown at inf."""
    def correct(a: Any, b: Any, u: Any, v: Any) -> Parts:
        edge, large = _infinite(a) & _open(b), a > 0
        return _where(edge & large, inf, _where(edge, limit, u)), _where(edge & large, nan, _where(edge, 0.0, v))
    return correct


def _log(a: Any, b: Any, u: Any, v: Any) -> Parts:
    return _where(_infinite(a) | _infinite(b), inf, u), v


def _sqrt(a: Any, b: Any, u: Any, v: Any) -> Parts:
    across = _infinite(b)
    return _where((a == inf) | across, inf, u), _where(across, b, _where((a == -inf) & _nan(b), inf, v))


# Hyperbolic functions, and those of angles: cos z = cosh iz, sin z = -i sinh iz, tan z = -i tanh iz

def _cosh(a: Any, b: Any, u: Any, v: Any) -> Parts:
    return _where(_infinite(a) & _open(b), inf, u), _where((a == 0) & _open(b), 0.0, v)


def _sinh(a: Any, b: Any, u: Any, v: Any) -> Parts:
    return _where(((a == 0) | _infinite(a)) & _open(b), a, u), v


def _tanh(a: Any, b: Any, u: Any, v: Any) -> Parts:
    return _where((a == 0) & _open(b), a, u), v


def _cos(a: Any, b: Any, u: Any, v: Any) -> Parts:
    return _where(_infinite(b) & _open(a), inf, u), _where(_nan(v) & ((a == 0) | (b == 0)), 0.0, v)


def _sin(a: Any, b: Any, u: Any, v: Any) -> Parts:
    return _where((a == 0) & _open(b), a, u), _where(((b == 0) | _infinite(b)) & _open(a), b, v)


def _tan(a: Any, b: Any, u: Any, v: Any) -> Parts:
    return u, _where((b == 0) & _open(a), b, v)


# Their inverses

def _asinh(a: Any, b: Any, u: Any, v: Any) -> Parts:
    lost = _lost(a, b)
    return _where(lost, nan, u), _where(lost, _where(b == 0, b, lax.full_like(b, nan)), v)


def _acosh(a: Any, b: Any, u: Any, v: Any) -> Parts:
    lost = _lost(a, b)
    return _where(lost, nan, u), _where(lost, _where(a == 0, pi / 2, lax.full_like(a, nan)), v)


def _atanh(a: Any, b: Any, u: Any, v: Any) -> Parts:
    lost = _lost(a, b)
    return _where(lost, _where(a == 0, a, lax.full_like(a, nan)), u), _where(lost | _nan(b), nan, v)


def _swapped(correct: Callable[..., Parts]) -> Callable[..., Parts]:
    """The same with the parts exchanged, for asin z = -i asinh iz and atan z = -i atanh iz."""
    def swapped(a: Any, b: Any, u: Any, v: Any) -> Parts:
        v, u = correct(b, a, v, u)
        return u, v
    return swapped


def _acos(a: Any, b: Any, u: Any, v: Any) -> Parts:
    """The parts of acosh, exchanged."""
    v, u = _acosh(a, b, v, u)
    return u, v


_CORRECTIONS: dict[str, Callable[..., Parts]] = {
    "exp": _exp_towards(0.0), "expm1": _exp_towards(-1.0), "log": _log, "log1p": _log, "sqrt": _sqrt,
    "cosh": _cosh, "sinh": _sinh, "tanh": _tanh, "cos": _cos, "sin": _sin, "tan": _tan,
    "acosh": _acosh, "asinh": _asinh, "atanh": _atanh,
    "acos": _acos, "asin": _swapped(_asinh), "atan": _swapped(_atanh)}
