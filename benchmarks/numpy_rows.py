"""corejax.numpy beside jax.numpy, autograd and torch.func: importing, tracing, eager gradients, and real programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.measure import Effort, Task, measured
from benchmarks.numpy_programs import PROGRAMS
from benchmarks.real import running, written_for
from benchmarks.rivals import Function, Rival
from benchmarks.rows import Measure, Row, anew, ready, timed
from benchmarks.starting import first_numpy_call

#: Where each library has NumPy's functions.
NAMESPACES = {"corejax": "corejax.numpy", "jax": "jax.numpy", "autograd": "autograd.numpy", "torch.func": "torch"}
WIDTHS = (16, 32, 32, 1)


def perceptron(np: Any) -> Function:
    """The mean square error of a network, with the functions of a namespace."""
    def loss(params: Any, x: Any, y: Any) -> Any:
        *hidden, (weights, bias) = params
        for w, b in hidden:
            x = np.tanh(np.matmul(x, w) + b)
        return np.mean(np.square(np.matmul(x, weights) + bias - y))
    return loss


def eager_step(rival: Rival) -> Task | None:
    """Gradient descent by one step, nothing compiled."""
    if rival.name not in NAMESPACES:
        return None
    gradient, rng = rival.gradient(perceptron(import_module(NAMESPACES[rival.name]))), np.random.default_rng(0)
    params = [(rival.array(rng.normal(size=(m, n))), rival.array(rng.normal(size=n)))
              for m, n in zip(WIDTHS, WIDTHS[1:])]
    x, y = rival.array(rng.normal(size=(32, 16))), rival.array(rng.normal(size=(32, 1)))

    def step(_: Any) -> Any:
        slopes = gradient(params, x, y)
        return ready([(w - 0.1 * dw, b - 0.1 * db) for (w, b), (dw, db) in zip(params, slopes)])
    return Task(step)


def tracing_a_transformer(rival: Rival) -> Task | None:
    """The gradient of a block's loss, traced anew each time."""
    if rival.module is None:
        return None
    module, rng = written_for(rival.name, "jnp/transformer"), np.random.default_rng(0)
    args = module.block(rng, 32, 4), rng.normal(size=(2, 8, 32)), rng.normal(size=(2, 8, 32))
    cj = module.cj
    return Task(lambda loss: cj.make_jaxpr(cj.grad(loss))(*args), lambda: anew(module.block_loss))


def eager_steps(rivals: Mapping[str, Rival], effort: Effort) -> Iterator[Row]:
    """Beside those that have NumPy's functions."""
    yield Row("eager step of a perceptron 16-32-32-1 on 32 rows",
              measured(lambda name: eager_step(rivals[name]), rivals, effort),
              {"jax": 15.0, "autograd": 1.3, "torch.func": 1.3})


NUMPY: dict[str, Measure] = {
    "start": first_numpy_call, "step": eager_steps,
    "make_jaxpr_grad": timed("`make_jaxpr(grad)` of a transformer block", tracing_a_transformer, {"jax": 8.0}),
    **{name: running(*program) for name, program in PROGRAMS.items()}}
