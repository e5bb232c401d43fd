"""Real programs written with jax.numpy, compiled, beside jax: the same text with other imports.

    JAX_ENABLE_X64=1 python -m benchmarks.numpy_programs [PAIRS [WORD]]

The ten programs were fixed before corejax.numpy was written and before anything was measured; all but their sizes is in
examples/jnp. Calls are paired, in turns first. Printed are the median of jax's time divided by corejax's, and the
interval that holds it with 95% confidence: from the ranks of the ratios, so that no distribution is assumed. With a
word, only programs with it in their names run.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.against import interval
from benchmarks.functions import ratios
from benchmarks.real import Program, compiled, written_for
from benchmarks.rows import ready


def _drawn() -> np.random.Generator:
    return np.random.default_rng(0)


def digits(library: str) -> Program:
    module, rng = written_for(library, "jnp/digits"), _drawn()
    params = module.network(rng, 64, 256, 128, 10)
    still = module.cj.tree.map(module.jnp.zeros_like, params)
    return module.step, (params, (still, still), 3.0, rng.uniform(0.0, 1.0, (512, 64)), rng.integers(0, 10, 512))


def neural_ode(library: str) -> Program:
    module, rng = written_for(library, "jnp/neural_ode"), _drawn()
    times, starts = np.linspace(0.0, 1.0, 11), rng.uniform(-1.0, 1.0, (64, 2))
    return module.cj.grad(module.loss), (module.untrained(rng, 64), starts, times, rng.normal(size=(11, 64, 2)))


def kalman_filter(library: str) -> Program:
    module = written_for(library, "jnp/kalman_filter")
    model = module.moving(0.1, 0.5, 0.2)
    return module.tracked, (model, _drawn().normal(size=(500, 2)))


def korteweg_de_vries(library: str) -> Program:
    module = written_for(library, "jnp/korteweg_de_vries")
    return lambda u: module.travelled(u, 0.1, 500), (np.asarray(module.solitons(module.places(1024), -0.4)),)


def k_means(library: str) -> Program:
    module = written_for(library, "jnp/k_means")
    return lambda points: module.clustered(points, 16), (module.blobs(_drawn(), 20_000, 16, 4)[0],)


def _regression(library: str, rows: int, width: int) -> tuple[Any, np.ndarray, np.ndarray]:
    module = written_for(library, "jnp/linear_models")
    x, y, _ = module.observed(_drawn(), rows, width, 10)
    return module, x, y


def principal_components(library: str) -> Program:
    module, x, _ = _regression(library, 2000, 100)
    return lambda x: module.principal_components(x, 10), (x,)


def ridge_regression(library: str) -> Program:
    module, x, y = _regression(library, 1000, 50)
    return module.best, (x, y, np.logspace(-4.0, 4.0, 20))


def gaussian_process(library: str) -> Program:
    module = written_for(library, "jnp/gaussian_process")
    return module.cj.value_and_grad(module.log_likelihood), (module.START, *module.observed(_drawn(), 500, 0.1))


def transformer(library: str) -> Program:
    module, rng = written_for(library, "jnp/transformer"), _drawn()
    x = rng.normal(size=(8, 64, 128))
    return module.cj.grad(module.block_loss), (module.block(rng, 128, 8), x, np.roll(x, 1, axis=1))


def sinkhorn(library: str) -> Program:
    module, rng = written_for(library, "jnp/sinkhorn"), _drawn()
    return module.transported, (rng.normal(size=(400, 2)), 1.0 + rng.normal(size=(400, 2)), 0.1)


#: What is timed, by name.
PROGRAMS: dict[str, tuple[str, Callable[[str], Program]]] = {
    "digits": ("a training step of a network on images of digits", digits),
    "neural_ode": ("the gradient of a neural ODE by its adjoint", neural_ode),
    "kalman_filter": ("a Kalman filter by an associative scan, with its smoothed means", kalman_filter),
    "korteweg_de_vries": ("waves in shallow water by exponential integration", korteweg_de_vries),
    "k_means": ("k-means of 20,000 points", k_means),
    "principal_components": ("principal components of 2,000 rows of 100", principal_components),
    "ridge_regression": ("ridge regressions with 20 penalties, by vmap of a solver", ridge_regression),
    "gaussian_process": ("the likelihood of a Gaussian process and its gradient", gaussian_process),
    "transformer": ("the gradient of a transformer block's loss", transformer),
    "sinkhorn": ("optimal transport between 400 points by Sinkhorn's iteration", sinkhorn)}


def seconds(function: Callable[..., Any], args: Any) -> float:
    """How long one call takes, until all results are there."""
    begun = time.perf_counter()
    ready(function(*args))
    return time.perf_counter() - begun


def main(pairs: int, word: str) -> None:
    """Print a line for each program."""
    modules = {library: import_module(library) for library in ("corejax", "jax")}
    modules["jax"].config.update("jax_enable_x64", True)
    for name, (what, program) in PROGRAMS.items():
        if word not in name:
            continue
        tasks = {library: compiled(module, program(library)) for library, module in modules.items()}
        first = {library: seconds(*task) for library, task in tasks.items()}
        again = seconds(*tasks["corejax"])
        found = ratios(pairs, lambda: seconds(*tasks["corejax"]), lambda: seconds(*tasks["jax"]))  # noqa: B023
        low, high = interval(found)
        print(f"{name:22} {statistics.median(found):6.2f}  [{low:.2f}, {high:.2f}]  "
              f"first {first['corejax']:.1f} s, {first['jax']:.1f} s; then {1e3 * again:.1f} ms: {what}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 21, sys.argv[2] if len(sys.argv) > 2 else "")
