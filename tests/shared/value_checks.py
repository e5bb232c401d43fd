"""What a public function computes, evaluated and compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.testing import assert_allclose

import corejax as cj


def check_value(fun: Callable[..., Any], args: Sequence[Any], expected: Any) -> None:
    """Eager and compiled give the expected array, dtype and shape included."""
    expected = np.asarray(expected)
    for call in (fun, cj.jit(fun)):
        out = call(*args)
        assert expected.shape == out.shape
        assert expected.dtype == out.dtype
        assert_allclose(np.asarray(out, _exact(out.dtype)), expected.astype(_exact(expected.dtype)), rtol=1e-12)


def _exact(dtype: Any) -> Any:
    return np.float64 if np.dtype(dtype).kind == "V" else dtype
