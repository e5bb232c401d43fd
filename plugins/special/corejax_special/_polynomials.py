"""What the formulas of this pack are made of: polynomials, precisions, lowerings that are Python functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import aval_of
from corejax_special import _coefficients

_FLOAT32, _FLOAT64 = np.dtype("float32"), np.dtype("float64")


def polynomial(name: str, x: Any) -> Any:
    """The polynomial of this name in `_coefficients`, for the precision of `x`, at `x`."""
    origin, coefficients = constant(name, x)
    return horner(coefficients, x - origin if origin else x)


def constant(name: str, x: Any) -> Any:
    """What `_coefficients` has under this name, for the precision of `x`."""
    return getattr(_coefficients, f"{name}_{64 if is_double(x) else 32}")


def horner(coefficients: Sequence[float], x: Any) -> Any:
    """The polynomial with these coefficients, from that of the highest power to the constant."""
    highest, *others = coefficients
    total: Any = highest
    for c in others:
        total = total * x + c
    return total


def is_double(x: Any) -> bool:
    """Whether `x` is of float64, rather than of float32."""
    return aval_of(x).dtype == _FLOAT64


def where_any(mask: Any, compute: Callable[[], Any], otherwise: Any) -> Any:
    """`compute()` where the mask holds, else `otherwise`. For what is rare: computed only if it holds anywhere."""
    rank = aval_of(mask).ndim
    found = lax.cond(lax.reduce_or(mask, tuple(range(rank))), compute, lambda: lax.full_like(otherwise, 0.0))
    return lax.select(mask, found, otherwise)


def lowered(formula: Callable[..., Any]) -> Callable[..., Any]:
    """The lowering to what a function of float32 or float64 arrays computes; narrower floats go through float32."""
    @wraps(formula)
    def widened(*args: Any) -> Any:
        dtype = aval_of(args[0]).dtype
        if dtype in (_FLOAT32, _FLOAT64):
            return formula(*args)
        return lax.convert_element_type(formula(*[lax.convert_element_type(x, _FLOAT32) for x in args]), dtype)

    def lower(ctx: Any, args: Sequence[Any]) -> Any:
        return ctx.lower(widened, *args)
    return lower
