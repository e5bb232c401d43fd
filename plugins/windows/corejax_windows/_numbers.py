"""The ends of an order, and which of two elements comes first in it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from corejax import lax
from corejax.core import Primitive, dtypes


def bound(dtype: np.dtype, sign: int) -> Any:
    """The greatest value of a dtype, or the least: an infinity if it has one. Complex numbers count by real parts."""
    if dtype == dtypes.bool_:
        return np.bool_(sign > 0)
    if dtypes.is_integer(dtype):
        return dtype.type(dtypes.integer_limits(dtype).max if sign > 0 else dtypes.integer_limits(dtype).min)
    infinity = np.asarray(sign * np.inf).astype(dtype)[()]
    if np.isinf(np.asarray(infinity).astype(np.complex128)):
        return infinity
    limits: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]  # several float8 formats have no infinity
    return limits.max if sign > 0 else limits.min


def keeps(select_prim: Primitive, x: Any, y: Any) -> Any:
    """Whether x stays selected beside y: x >= y, or x <= y. Complex numbers count by real, then by imaginary parts."""
    at_least, more = (lax.ge, lax.gt) if select_prim is lax.ge_p else (lax.le, lax.lt)
    if not dtypes.is_complex(x.dtype):
        return at_least(x, y)
    (a, b), (c, d) = [(lax.real(z), lax.imag(z)) for z in (x, y)]
    return lax.bitwise_or(more(a, c), lax.bitwise_and(lax.eq(a, c), at_least(b, d)))
