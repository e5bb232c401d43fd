"""Matrices with NaNs and infinities, kept away from LAPACK: its svd goes on forever with some, eig writes messages."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax import lax
from corejax_linear_algebra._matrices import is_complex


def finite_or_zero(ctx: Any, x: Any) -> tuple[Any, Any]:
    """The matrices of a batch with zeros in place of those that aren't finite; and which ones are."""
    def separate(x: Any) -> list[Any]:
        parts = [lax.real(x), lax.imag(x)] if is_complex(x) else [x]
        finite = lax.is_finite(parts[0]) if len(parts) == 1 else lax.is_finite(parts[0]) & lax.is_finite(parts[1])
        ok = lax.reduce_and(finite, (x.ndim - 2, x.ndim - 1))
        mask = lax.broadcast_in_dim(ok, x.shape, tuple(range(x.ndim - 2)))
        return [lax.select(mask, x, lax.full_like(x, 0)), ok]
    x, ok = ctx.lower(separate, x)
    return x, ok


def status_if(ctx: Any, ok: Any, status: Any) -> Any:
    """The status of a call, which is a failure where the matrix wasn't finite."""
    return ctx.lower(lambda ok, status: lax.select(ok, status, lax.full_like(status, np.int32(1))), ok, status)
