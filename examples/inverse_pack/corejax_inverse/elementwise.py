"""Inverses of the elementwise primitives of corejax-lax-basic and corejax-special, as rows of tables."""

from __future__ import annotations

from typing import Any

from corejax import lax
from corejax.core import aval_of, is_concrete
from corejax.plugin import transforming
from corejax_inverse._rules import undo

__all__ = ["BASIC", "SPECIAL"]


def _root(out: Any, x: Any, *, y: int) -> Any:
    """x from x ** y: the real root for odd y; even powers forget the sign."""
    if y % 2 == 0:
        return None
    if y in (1, -1):
        return out if y == 1 else 1.0 / out
    root = lax.sign(out) * lax.abs(out) ** (1.0 / abs(y))
    return root if y > 0 else 1.0 / root


def _base(out: Any, x: Any, y: Any) -> Any:
    """x from x ** y, for an exponent that is known: of positive numbers, or odd."""
    if not is_concrete(y) or aval_of(y).shape:
        return None
    exponent = float(y)
    return _root(out, x, y=int(exponent)) if exponent.is_integer() else out ** (1.0 / exponent)


def _even(what: str) -> transforming.Absent:
    return transforming.absent(f"{what} of x and of -x are the same")


def _periodic(what: str) -> transforming.Absent:
    return transforming.absent(f"{what} takes each value again and again")


BASIC = {
    "add": undo(lambda out, x, y: out - y, lambda out, x, y: out - x, kinds="iufc"),
    "sub": undo(lambda out, x, y: out + y, lambda out, x, y: x - out, kinds="iufc"),
    "mul": undo(lambda out, x, y: out / y, lambda out, x, y: out / x, kinds="fc"),
    "div": undo(lambda out, x, y: out * y, lambda out, x, y: x / out, kinds="fc"),
    "neg": undo(lambda out, x: -out, kinds="iufc"),
    "pow": undo(_base, lambda out, x, y: lax.log(out) / lax.log(x)),
    "integer_pow": undo(_root),
    "sqrt": undo(lambda out, x: out * out),
    "rsqrt": undo(lambda out, x: 1.0 / (out * out)),
    "cbrt": undo(lambda out, x: out * out * out),
    "exp": undo(lambda out, x: lax.log(out)),
    "exp2": undo(lambda out, x: lax.log(out) / 0.6931471805599453),
    "expm1": undo(lambda out, x: lax.log1p(out)),
    "log": undo(lambda out, x: lax.exp(out)),
    "log1p": undo(lambda out, x: lax.expm1(out)),
    "logistic": undo(lambda out, x: lax.log(out) - lax.log1p(-out)),
    "tanh": undo(lambda out, x: lax.atanh(out)),
    "atanh": undo(lambda out, x: lax.tanh(out)),
    "sinh": undo(lambda out, x: lax.asinh(out)),
    "asinh": undo(lambda out, x: lax.sinh(out)),
    "acosh": undo(lambda out, x: lax.cosh(out)),
    "asin": undo(lambda out, x: lax.sin(out)),
    "acos": undo(lambda out, x: lax.cos(out)),
    "atan": undo(lambda out, x: lax.tan(out)),
    "conj": undo(lambda out, x: lax.conj(out), kinds="c"),
    "not": undo(lambda out, x: lax.bitwise_not(out), kinds="biu"),
    "xor": undo(lambda out, x, y: lax.bitwise_xor(out, y), lambda out, x, y: lax.bitwise_xor(out, x), kinds="biu"),
    "abs": _even("the absolute values"),
    "square": _even("the squares"),
    "cosh": _even("the hyperbolic cosines"),
    "sin": _periodic("the sine"),
    "cos": _periodic("the cosine"),
    "tan": _periodic("the tangent"),
}

SPECIAL = {
    "erf": undo(lambda out, x: lax.erf_inv(out)),
    "erf_inv": undo(lambda out, x: lax.erf(out)),
    "erfc": transforming.absent("1 - erfc(x) has lost what is small, and there is no function that keeps it"),
}
