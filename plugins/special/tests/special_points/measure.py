"""`python -m special_points.measure [NAME ...]`, in plugins/special/tests: errors and speeds beside jax's and SciPy's.

Errors are those at random operands, by mpmath: the largest, and the 99th percentile, in units in the last place (ulps);
for the functions whose condition counts, as shares of what is allowed. Speeds are medians of ratios of pairs, each side
first in turn, with an interval of 95%: jax's time by ours for 10^6 elements (10^5 for two operands), compiled; and
SciPy's by ours for 10^3, evaluated, until the values are there.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import mpmath as mp
import numpy as np

import corejax as cj
from corejax import lax
from special_points import ULPS
from special_points.references import DIGITS, FUNCTIONS, condition

SCIPY = {"erf_inv": "erfinv", "lgamma": "gammaln", "bessel_i0e": "i0e", "bessel_i1e": "i1e"}


def operands(name: str, count: int, dtype: type[np.floating[Any]]) -> list[np.ndarray]:
    """Random ones, where the function is used."""
    rng = np.random.default_rng(0)
    end = {"erfc": 9.0 if dtype is np.float32 else 26.0, "erf": 5.0}.get(name, 20.0)
    if name == "zeta":
        return [x.astype(dtype) for x in (1.0 + np.exp(rng.uniform(-3, 3, count)), np.exp(rng.uniform(-3, 4, count)))]
    if name == "polygamma":
        return [rng.integers(0, 8, count).astype(dtype), np.exp(rng.uniform(-2, 4, count)).astype(dtype)]
    if name == "erf_inv":
        return [np.clip(rng.uniform(-1, 1, count), -0.999999, 0.999999).astype(dtype)]
    low = -6.0 if name in ("lgamma", "digamma") else -5.0 if name.startswith("erf") else -end
    return [rng.uniform(low, end if name.startswith("erf") else 20.0, count).astype(dtype)]


def errors(name: str, dtype: type[np.floating[Any]], count: int) -> list[np.ndarray]:
    """Ours and jax's: in ulps, and as shares of what the condition allows."""
    args, function, eps = operands(name, count, dtype), FUNCTIONS[name], float(np.finfo(dtype).eps)
    results = [np.asarray(cj.jit(getattr(lax, name))(*args)), np.asarray(jax.jit(getattr(jax.lax, name))(*args))]
    found: list[list[float]] = [[], []]
    for k in range(count):
        numbers = tuple(mp.mpf(float(x[k])) for x in args)
        value = function.value(*numbers)
        unit = eps * 2.0 ** float(mp.floor(mp.log(abs(value), 2)))
        if name not in ULPS:
            unit = 2 * condition(function, numbers, value) * eps * abs(value) + 8 * unit
        for one, result in zip(found, results, strict=True):
            one.append(float(abs(mp.mpf(float(result[k])) - value) / unit) if np.isfinite(result[k]) else np.inf)
    return [np.array(one) for one in found]


def ratio(ours: Callable[[], Any], theirs: Callable[[], Any], pairs: int = 60) -> str:
    """The median of their time by ours, with an interval of 95%."""
    def seconds(call: Callable[[], Any]) -> float:
        begun = time.perf_counter()
        call()
        return time.perf_counter() - begun

    seconds(ours), seconds(theirs)
    quotients = []
    for k in range(pairs):
        if k % 2:
            mine, other = seconds(ours), seconds(theirs)
        else:
            other, mine = seconds(theirs), seconds(ours)
        quotients.append(other / mine)
    quotients.sort()
    low = int(pairs / 2 - 0.98 * pairs ** 0.5)
    return f"{quotients[pairs // 2]:.2f} ({quotients[low]:.2f} to {quotients[-low - 1]:.2f})"


def speeds(name: str, dtype: type[np.floating[Any]]) -> tuple[str, str]:
    """Compiled beside jax, and evaluated beside SciPy, if it is installed."""
    args = operands(name, 10 ** 6 if name not in ("zeta", "polygamma") else 10 ** 5, dtype)
    mine, other = [[put(x) for x in args] for put in (cj.device_put, jax.device_put)]
    f, g = cj.jit(getattr(lax, name)), jax.jit(getattr(jax.lax, name))
    compiled = ratio(lambda: f(*mine).block_until_ready(), lambda: g(*other).block_until_ready())
    try:
        from scipy import special
    except ImportError:
        return compiled, ""
    few, known = [x[:1000] for x in args], getattr(special, SCIPY.get(name, name))
    if name == "polygamma":
        few[0] = few[0].astype(int)
    evaluated = [few[0].astype(dtype), *few[1:]]
    return compiled, ratio(lambda: [np.asarray(getattr(lax, name)(*evaluated)) for _ in range(20)],
                           lambda: [known(*few) for _ in range(20)])


def main() -> None:
    """Print the table."""
    jax.config.update("jax_enable_x64", True)
    count = int(os.environ.get("POINTS", "2000"))
    print("| function | dtype | error | jax's | jax's time by ours | SciPy's by ours |", "| --- " * 6 + "|", sep="\n")
    for name in sys.argv[1:] or FUNCTIONS:
        for dtype in (np.float32, np.float64):
            with mp.workdps(DIGITS):
                both = errors(name, dtype, count if name in ULPS else count // 4)
            told = [f"{one.max():.3g}, {np.quantile(one, 0.99):.3g}" for one in both]
            print(f"| {name} | {dtype.__name__} | {' | '.join(told)} | {' | '.join(speeds(name, dtype))} |", flush=True)


if __name__ == "__main__":
    main()
