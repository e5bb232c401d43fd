"""The kernel beside the same primitive as a Python callback: `python -m corejax_native.benchmark`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import corejax as cj
from corejax.plugin import define, hookimpl
from corejax_native import DecayingSum, decaying_sum

#: How long each function is called.
SECONDS = 0.5


class ByCallback(DecayingSum):
    """The same, computed by NumPy when the program runs."""

    name = "decaying_sum_by_callback"

    @hookimpl
    def xla_translation(self, ctx: Any, args: Sequence[Any], *, decay: float, reverse: bool) -> Any:
        def compute(x: np.ndarray) -> list[np.ndarray]:
            out = x[..., ::-1].copy() if reverse else x.copy()
            for t in range(1, x.shape[-1]):
                out[..., t] += decay * out[..., t - 1]
            return [out[..., ::-1] if reverse else out]
        return ctx.callback(compute, args, ctx.avals_out)[0]


by_callback = define(ByCallback())


def microseconds(function: Callable[[Any], Any], x: Any) -> float:
    """The fastest of many calls."""
    np.asarray(function(x))
    best, end = float("inf"), time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        start = time.perf_counter()
        function(x).block_until_ready()
        best = min(best, time.perf_counter() - start)
    return best * 1e6


def main() -> None:
    """Print a table, in microseconds a call."""
    print(f"{'x':<14} {'kernel':>9} {'callback':>9} {'grad, kernel':>13} {'grad, callback':>15}")
    for shape in ((8,), (100, 100), (100, 10_000)):
        x = cj.device_put(np.random.default_rng(0).normal(size=shape))
        row = [microseconds(f, x) for f in (
            cj.jit(decaying_sum), cj.jit(by_callback),
            cj.jit(cj.grad(lambda x: (decaying_sum(x) ** 2).sum())),
            cj.jit(cj.grad(lambda x: (by_callback(x) ** 2).sum())))]
        print(f"{shape!s:<14} {row[0]:>9.1f} {row[1]:>9.1f} {row[2]:>13.1f} {row[3]:>15.1f}")


if __name__ == "__main__":
    main()
