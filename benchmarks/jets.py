"""Taylor series of order 4 beside jax.experimental.jet: eager, compiled, and what the compiled programs compute.

    python -m benchmarks.jets [WORD]

Functions whose names contain the word, or all. Run it where jax is installed. Times are the shortest of many, taken in
turns; the numbers of operations are the compiler's own, and don't depend on what else the machine does.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental.jet import jet as jet_of_jax

import corejax as cj
import corejax.numpy as jnp
from corejax import taylor

ORDER, SHAPE, SMALL = 4, (128, 64), (2, 64)

_rng = np.random.default_rng(0)
_LAYERS = [(_rng.standard_normal((64, 64)) / 8, _rng.standard_normal(64)) for _ in range(3)]


def _mlp(np_: Any) -> Callable[[Any], Any]:
    def mlp(x: Any) -> Any:
        for w, b in _LAYERS:
            x = np_.tanh(x @ w + b)
        return x
    return mlp


def _logistic(np_: Any) -> Callable[[Any], Any]:
    return lambda x: np_.tanh(x) * np_.exp(-x * x) / (1.0 + np_.exp(-x))


#: Functions, made of a module of NumPy's functions.
FUNCTIONS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "mlp with tanh": _mlp,
    "polynomial": lambda np_: lambda x: ((x * 3.0 + 2.0) * x - 1.0) * x + x ** 5 - x ** 2 * 4.0,
    "exp, sin, log": lambda np_: lambda x: (
        np_.exp(np_.sin(x)) * np_.log(x * x + 1.0) + np_.cos(x) / (x * x + 2.0)),
    "power": lambda np_: lambda x: (x * x + 1.0) ** 1.7,
    "square roots": lambda np_: lambda x: np_.sqrt(x * x + 1.0) + 1.0 / np_.sqrt(x * x + 2.0),
    "softmax": lambda np_: lambda x: np_.exp(x) / np_.sum(np_.exp(x), axis=-1, keepdims=True),
    "logsumexp": lambda np_: lambda x: np_.log(np_.sum(np_.exp(x), axis=-1)),
    "logistic mix": _logistic,
    "rational": lambda np_: lambda x: (x * x + 1.0) / (x * x * x * x + 2.0) / (1.0 + x * x),
    "products of matrices": lambda np_: lambda x: np_.sin(x @ x.T) @ x,
}


def fastest(functions: Sequence[Callable[[], Any]], rounds: int) -> list[float]:
    """The shortest time of each, in microseconds, taken in turns."""
    for function in functions:
        function()
    best = [float("inf")] * len(functions)
    for _ in range(rounds):
        for i, function in enumerate(functions):
            start = time.perf_counter()
            function()
            best[i] = min(best[i], 1e6 * (time.perf_counter() - start))
    return best


def _operations(compiled: Any) -> float:
    found = compiled.cost_analysis()
    return float((found[0] if isinstance(found, (list, tuple)) else found)["flops"])


def row(name: str) -> str:
    """The line of one function."""
    ours, theirs = FUNCTIONS[name](jnp), FUNCTIONS[name](jax.numpy)
    small = [_rng.uniform(0.5, 1.5, SMALL) for _ in range(ORDER + 1)]
    large = [_rng.uniform(0.5, 1.5, SHAPE) for _ in range(ORDER + 1)]

    def jet(x: Any, *terms: Any) -> Any:
        return taylor.jet(ours, (x,), (list(terms),))

    def their_jet(x: Any, *terms: Any) -> Any:
        return jet_of_jax(theirs, (x,), (list(terms),))

    eager = fastest([lambda: jet(*small), lambda: jax.block_until_ready(
        their_jet(*map(jax.numpy.asarray, small)))], 20)
    here, there = [cj.device_put(x, cj.devices()[0]) for x in large], [jax.numpy.asarray(x) for x in large]
    compiled, their_compiled = cj.jit(jet), jax.jit(their_jet)
    times = fastest([lambda: cj.block_until_ready(compiled(*here)), lambda: jax.block_until_ready(
        their_compiled(*there))], 80)
    counts = [_operations(compiled.lower(*here).compile()), _operations(their_compiled.lower(*there).compile())]
    return (f"{name:22}{eager[0]:9.0f}{eager[1]:9.0f}{eager[1] / eager[0]:6.1f}x {times[0]:9.0f}{times[1]:9.0f}"
            f"{times[0] / times[1]:7.2f} {counts[0] / counts[1]:10.2f}")


def main() -> None:
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    print(f"{'':22}{'eager, us':>9}{'jax':>9}{'':7} {'jit, us':>9}{'jax':>9}{'ratio':>7} {'operations':>10}")
    with jax.enable_x64(True):
        for name in FUNCTIONS:
            if word in name:
                print(row(name), flush=True)


if __name__ == "__main__":
    main()
