"""Special functions at fixed points, with values known to 30 digits: tables.json, which `__main__.py` computes."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

TABLES = Path(__file__).parent / "tables.json"

#: At most this many units in the last place, in float32 and in float64.
ULPS = {name: (2.0, 4.0) for name in ("erf", "erfc", "erf_inv", "bessel_i0e", "bessel_i1e")}


@cache
def tables() -> dict[str, list[list[float]]]:
    """By function and dtype."""
    found: dict[str, list[list[float]]] = json.loads(TABLES.read_text(encoding="utf-8"))
    return found


class Table:
    """What a function should return in one dtype."""

    def __init__(self, name: str, dtype: type[np.floating[Any]]) -> None:
        columns = np.array(tables()[f"{name} {dtype.__name__}"]).T
        *operands, self.high, self.low, self.condition = columns
        self.name, self.dtype, self.operands = name, dtype, [x.astype(dtype) for x in operands]
        found = np.finfo(dtype)
        exponents = np.floor(np.log2(np.clip(abs(self.high), float(found.smallest_normal), float(found.max))))
        self.ulp, self.eps = float(found.eps) * 2.0 ** exponents, float(found.eps)

    def errors(self, got: np.ndarray) -> np.ndarray:
        """How far results are from the values. Subnormal numbers may be zeros, and what is too large is infinite."""
        found = np.finfo(self.dtype)
        flushed = (abs(self.high) < float(found.smallest_normal)) & (got == 0)
        beyond = (abs(self.high) > float(found.max)) & (got == np.sign(self.high) * np.inf)
        with np.errstate(invalid="ignore"):
            return np.where(flushed | beyond, 0.0, abs((got.astype(np.float64) - self.high) - self.low))

    def in_ulps(self, got: np.ndarray) -> np.ndarray:
        """The same in units in the last place of the values."""
        found: np.ndarray = self.errors(got) / self.ulp
        return found

    def allowed(self) -> np.ndarray:
        """How far results may be: some ulps, or eight and what twice the rounding errors of the operands explain.

        Near its zeros, lgamma of negative numbers is the difference of two others: there, an absolute error counts.
        """
        if self.name in ULPS:
            return ULPS[self.name][self.dtype is np.float64] * self.ulp
        bound = 2.0 * self.condition * self.eps * abs(self.high) + 8.0 * self.ulp
        return np.maximum(bound, 1.5 * self.eps) if self.name == "lgamma" else bound
