"""Functions of `lax`, compiled, beside jax: `JAX_ENABLE_X64=1 python -m benchmarks.functions [PAIRS [WORD]]`.

Calls are paired, in turns first. Printed are the median of jax's time divided by corejax's, and the interval that
holds it with 95% confidence: from the ranks of the ratios, so that no distribution is assumed. With a word, only cases
with it in their names run.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.against import interval
from benchmarks.array_functions import Case, matrices, transforms, windows

SIZE = 1_000_000

def cases() -> dict[str, Case]:
    """By name: a function of either library that gives what is timed, and its operands."""
    return {**sorts(), **running(), **special(), **products(), **windows(), **matrices(), **transforms()}


def sorts() -> dict[str, Case]:
    """Sorts and the largest elements."""
    rng = np.random.default_rng(0)
    x, i = rng.standard_normal(SIZE), rng.integers(-2 ** 31, 2 ** 31, SIZE).astype(np.int32)
    f = x.astype(np.float32)
    found: dict[str, Case] = {
        "sort f32": (lambda lib: lib.lax.sort, [f]), "sort f64": (lambda lib: lib.lax.sort, [x]),
        "sort i32": (lambda lib: lib.lax.sort, [i]),
        "sort rows f32": (lambda lib: lib.lax.sort, [f.reshape(1000, 1000)]),
        "sort_key_val f32": (lambda lib: lib.lax.sort_key_val, [f, f]),
        "sort_key_val f64": (lambda lib: lib.lax.sort_key_val, [x, x]),
        "sort by i32, f32": (lambda lib: lambda *xs: lib.lax.sort(xs, num_keys=2), [i >> 24, f, x]),
    }
    for k in (10, 1000):
        for name, operand in {"f32": f, "f64": x, "i32": i}.items():
            found[f"top_k {k} {name}"] = (lambda lib, k=k: lambda x: lib.lax.top_k(x, k)), [operand]  # type: ignore[misc]
    return found


def running() -> dict[str, Case]:
    """Running results, and reductions by a function."""
    x = np.random.default_rng(1).uniform(0.99, 1.01, SIZE)
    found: dict[str, Case] = {}
    for name, operand in {"f32": x.astype(np.float32), "f64": x}.items():
        for each in ("cumsum", "cumprod", "cummax", "cumlogsumexp"):
            found[f"{each} {name}"] = (lambda lib, each=each: getattr(lib.lax, each)), [operand]  # type: ignore[misc]
        found[f"cumsum of rows {name}"] = (lambda lib: lambda x: lib.lax.cumsum(x, 1)), [operand.reshape(1000, 1000)]
        found[f"cumsum of columns {name}"] = (lambda lib: lambda x: lib.lax.cumsum(x, 0)), [operand.reshape(1000, 1000)]
        found[f"associative_scan mul {name}"] = (
            lambda lib: lambda x: lib.lax.associative_scan(lib.lax.mul, x)), [operand]
        found[f"associative_scan affine {name}"] = (
            lambda lib: lambda x, y: lib.lax.associative_scan(
                lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x, y))[1],
            [operand, operand])
        found[f"reduce norm {name}"] = (lambda lib: lambda x: lib.lax.reduce(
            x, x.dtype.type(0), lambda a, b: lib.lax.sqrt(a * a + b * b), (0,))), [operand]
    return found


def special() -> dict[str, Case]:
    """Special functions, at points all over their domains."""
    rng = np.random.default_rng(2)
    wide, positive, inner = rng.normal(0.0, 3.0, SIZE), rng.uniform(0.0, 30.0, SIZE), rng.uniform(-1.0, 1.0, SIZE)
    found: dict[str, Case] = {}
    for dtype in ("f4", "f8"):
        for each in ("erf", "erfc", "lgamma", "digamma", "bessel_i0e", "bessel_i1e", "erf_inv"):
            operand = inner if each == "erf_inv" else positive if "gamma" in each else wide
            found[f"{each} {dtype}"] = ((lambda lib, each=each: getattr(lib.lax, each)),  # type: ignore[misc]
                                        [operand.astype(dtype)])
    return found


def products() -> dict[str, Case]:
    """Products of matrices in each precision, and of groups of rows."""
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((2, 768, 768)).astype(np.float32)
    rows, groups = rng.standard_normal((2048, 256)).astype(np.float32), rng.standard_normal((8, 256, 256), np.float32)
    found: dict[str, Case] = {}
    for precision in (None, "default", "high", "highest", "BF16_BF16_F32", "F32_F32_F32"):
        found[f"dot_general {precision}"] = (lambda lib, precision=precision: lambda x, y: lib.lax.dot_general(
            x, y, (((1,), (0,)), ((), ())), precision=precision)), [a, b]  # type: ignore[misc]
    found["ragged_dot even"] = (lambda lib: lambda x, y, n: lib.lax.ragged_dot(x, y, n)), [
        rows, groups, np.full(8, 256, np.int32)]
    found["ragged_dot uneven"] = (lambda lib: lambda x, y, n: lib.lax.ragged_dot(x, y, n)), [
        rows, groups, np.array([0, 900, 3, 500, 0, 45, 600, 0], np.int32)]
    return found


def seconds(f: Callable[..., Any], args: list[Any]) -> float:
    """How long one call takes, until its first result is there."""
    begun = time.perf_counter()
    out = f(*args)
    (out[0] if isinstance(out, (tuple, list)) else out).block_until_ready()
    return time.perf_counter() - begun


def ratios(pairs: int, ours: Callable[[], float], theirs: Callable[[], float]) -> list[float]:
    """The other's time divided by ours."""
    found = []
    for k in range(pairs):
        if k % 2:
            mine, other = ours(), theirs()
        else:
            other, mine = theirs(), ours()
        found.append(other / mine)
    return found


def main(pairs: int, word: str) -> None:
    """Print a line for each case."""
    import jax

    import corejax as cj

    jax.config.update("jax_enable_x64", True)
    for name, (make, args) in cases().items():
        if word not in name:
            continue
        mine, other = cj.jit(make(cj)), jax.jit(make(jax))
        here, there = [cj.device_put(x) for x in args], [jax.device_put(x) for x in args]
        seconds(mine, here), seconds(other, there)
        found = ratios(pairs, lambda: seconds(mine, here), lambda: seconds(other, there))  # noqa: B023
        low, high = interval(found)
        print(f"{name:28} {statistics.median(found):6.2f}  [{low:.2f}, {high:.2f}]", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 21, sys.argv[2] if len(sys.argv) > 2 else "")
