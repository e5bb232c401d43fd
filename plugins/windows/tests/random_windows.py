"""Random windows over random arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Windows:
    """The shape of an operand, and windows over it."""

    shape: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    padding: Any
    base: tuple[int, ...]
    dilation: tuple[int, ...]

    @property
    def args(self) -> tuple[Any, ...]:
        return self.sizes, self.strides, self.padding, self.base, self.dilation

    @property
    def params(self) -> dict[str, Any]:
        names = ("window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation")
        return dict(zip(names, self.args, strict=True))


def random_windows(rng: np.random.Generator, dilated: bool = True, text: bool = True) -> Windows:
    """Windows of one to three axes: also larger than the operand, with strides beyond it, and negative padding."""
    ndim = int(rng.integers(1, 4))

    def entries(low: int, high: int) -> tuple[int, ...]:
        return tuple(int(n) for n in rng.integers(low, high, ndim))

    shape = tuple(int(rng.choice([1, 2, 3, 5, 6, 7, 4, 0], p=[.1, .1, .2, .2, .15, .1, .12, .03])) for _ in range(ndim))
    sizes, strides = entries(1, 4), entries(1, 4)
    if rng.integers(6) == 0:
        sizes = tuple(size + int(rng.integers(6)) for size in sizes)
    ones = (1,) * ndim
    base = entries(1, 4) if dilated and rng.integers(3) == 0 else ones
    dilation = entries(1, 4) if dilated and rng.integers(3) == 0 else ones
    padding: Any = tuple((int(low), int(high)) for low, high in rng.integers(0, 3, (ndim, 2)))
    if rng.integers(4) == 0:  # cut some off, but not all
        padding = tuple((int(low), int(high)) for low, high in rng.integers(-1, 2, (ndim, 2)))
        padding = tuple((max(low, 0), max(high, 0)) if n < 3 else (low, high)
                        for n, (low, high) in zip(shape, padding, strict=True))
    if text and rng.integers(3) == 0:
        padding = str(rng.choice(["VALID", "SAME", "SAME_LOWER"]))
    return Windows(shape, sizes, strides, padding, base, dilation)


def with_ties(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of which some are equal, and infinities."""
    dtype = np.dtype(dtype)
    x = rng.integers(-4, 5, shape) / 2
    if dtype.kind == "c":
        x = x + 1j * rng.integers(-2, 3, shape)
    elif dtype.kind not in "biu" and rng.integers(3) == 0:
        x[rng.random(shape) < 0.1] = rng.choice([np.inf, -np.inf])
    return x.astype(dtype) if dtype.kind not in "u" else np.abs(x).astype(dtype)


def apart(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers all different."""
    return (rng.permutation(int(np.prod(shape))).reshape(shape) - 2.3) * 0.1
