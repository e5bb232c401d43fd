"""Sorts and the largest elements, compiled, beside jax: `JAX_ENABLE_X64=1 python -m benchmarks.sorting [PAIRS]`.

Calls are paired, in turns first. Printed are the median of jax's time divided by corejax's, and the interval that
holds it with 95% confidence: from the ranks of the ratios, so that no distribution is assumed.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

SIZE = 1_000_000


def cases() -> dict[str, tuple[Callable[[Any], Callable[..., Any]], list[np.ndarray]]]:
    """By name: a function of either library's lax that gives what is timed, and its operands."""
    rng = np.random.default_rng(0)
    x, i = rng.standard_normal(SIZE), rng.integers(-2 ** 31, 2 ** 31, SIZE).astype(np.int32)
    f = x.astype(np.float32)
    found: dict[str, tuple[Callable[[Any], Callable[..., Any]], list[np.ndarray]]] = {
        "sort f32": (lambda lax: lax.sort, [f]), "sort f64": (lambda lax: lax.sort, [x]),
        "sort i32": (lambda lax: lax.sort, [i]), "sort rows f32": (lambda lax: lax.sort, [f.reshape(1000, 1000)]),
        "sort_key_val f32": (lambda lax: lax.sort_key_val, [f, f]),
        "sort_key_val f64": (lambda lax: lax.sort_key_val, [x, x]),
        "sort by i32, f32": (lambda lax: lambda *xs: lax.sort(xs, num_keys=2), [i >> 24, f, x]),
    }
    for k in (10, 1000):
        for name, operand in {"f32": f, "f64": x, "i32": i}.items():
            found[f"top_k {k} {name}"] = (lambda lax, k=k: lambda x: lax.top_k(x, k)), [operand]  # type: ignore[misc]
    return found


def seconds(f: Callable[..., Any], args: list[Any]) -> float:
    """How long one call takes, until its first result is there."""
    begun = time.perf_counter()
    out = f(*args)
    (out[0] if isinstance(out, (tuple, list)) else out).block_until_ready()
    return time.perf_counter() - begun


def ratios(pairs: int, ours: Callable[[], float], theirs: Callable[[], float]) -> list[float]:
    """The other's time divided by ours, sorted."""
    found = []
    for k in range(pairs):
        if k % 2:
            mine, other = ours(), theirs()
        else:
            other, mine = theirs(), ours()
        found.append(other / mine)
    return sorted(found)


def main(pairs: int) -> None:
    """Print a line for each case."""
    import jax

    import corejax as cj

    jax.config.update("jax_enable_x64", True)
    tail = max(int((pairs - 1.96 * pairs ** 0.5) / 2), 0)
    for name, (make, args) in cases().items():
        mine, other = cj.jit(make(cj.lax)), jax.jit(make(jax.lax))
        here, there = [cj.device_put(x) for x in args], [jax.device_put(x) for x in args]
        seconds(mine, here), seconds(other, there)
        found = ratios(pairs, lambda: seconds(mine, here), lambda: seconds(other, there))  # noqa: B023
        print(f"{name:20} {statistics.median(found):6.2f}  [{found[tail]:.2f}, {found[-1 - tail]:.2f}]", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 21)
