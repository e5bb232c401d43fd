"""A neural ordinary differential equation: an adaptive solver of its own, and its adjoint as a custom derivative.

    python examples/jnp/neural_ode.py

Backwards, the solver runs once more, from the end to the beginning, for the state together with its adjoint: nothing
between the times that are asked for is remembered.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import corejax as cj
import corejax.numpy as jnp
from corejax import lax

#: A right-hand side: the slope at a state, a time and parameters.
Slope = Callable[[Any, Any, Any], Any]

# The method of Dormand and Prince: each row weighs the slopes so far; the last row is the step, of fifth order.
STAGES = ((1 / 5,), (3 / 40, 9 / 40), (44 / 45, -56 / 15, 32 / 9),
          (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
          (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
          (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84))
TIMES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)


def combined(step: Any, weights: tuple[float, ...], slopes: list[Any]) -> Any:
    """The change of a state, which is a tree of arrays."""
    used = [(w, k) for w, k in zip(weights, slopes, strict=True) if w]
    return cj.tree.map(lambda *ks: step * sum(w * k for (w, _), k in zip(used, ks, strict=True)), *[k for _, k in used])


def tried(f: Slope, y: Any, t: Any, step: Any, params: Any) -> tuple[Any, Any]:
    """The state after a step, and an estimate of its error."""
    slopes = [f(y, t, params)]
    for weights, part in zip(STAGES, TIMES, strict=True):
        there = cj.tree.map(jnp.add, y, combined(step, weights, slopes))
        slopes.append(f(there, t + part * step, params))
    return there, combined(step, ERROR, slopes)


def size(error: Any, before: Any, after: Any, tolerance: float) -> Any:
    """The root mean square of errors, relative to what is tolerated; at most 1 is good."""
    scaled = cj.tree.map(lambda e, a, b: jnp.mean(jnp.square(
        e / (tolerance * (1.0 + jnp.maximum(jnp.abs(a), jnp.abs(b)))))), error, before, after)
    return jnp.sqrt(jnp.mean(jnp.stack(cj.tree.leaves(scaled))))


def solved(f: Slope, tolerance: float, y: Any, begin: Any, end: Any, params: Any) -> Any:
    """The state at `end` of the solution that is `y` at `begin`; time may run backwards."""
    def going(carry: Any) -> Any:
        return jnp.abs(end - carry[1]) > 1e-12 * jnp.maximum(jnp.abs(begin), jnp.abs(end))

    def advance(carry: Any) -> Any:
        y, t, step = carry
        left = end - t
        step = jnp.where(jnp.abs(step) > jnp.abs(left), left, step)
        new, error = tried(f, y, t, step, params)
        wrong = size(error, y, new, tolerance)
        good = wrong <= 1.0
        y = cj.tree.map(lambda new, old: jnp.where(good, new, old), new, y)
        factor = jnp.clip(0.9 * jnp.maximum(wrong, 1e-10) ** -0.2, 0.2, 5.0)
        return y, jnp.where(good, t + step, t), step * factor

    return lax.while_loop(going, advance, (y, begin, 0.1 * (end - begin)))[0]


@partial(cj.custom_vjp, nondiff_argnums=(0, 1))
def flow(f: Slope, tolerance: float, y: Any, begin: Any, end: Any, params: Any) -> Any:
    """`solved`, with derivatives by the adjoint method."""
    return solved(f, tolerance, y, begin, end, params)


def _forward(f: Slope, tolerance: float, y: Any, begin: Any, end: Any, params: Any) -> tuple[Any, Any]:
    out = solved(f, tolerance, y, begin, end, params)
    return out, (y, out, begin, end, params)


def _backward(f: Slope, tolerance: float, saved: Any, y_bar: Any) -> tuple[Any, Any, Any, Any]:
    start, y, begin, end, params = saved

    def both(state: Any, t: Any, params: Any) -> Any:
        y, y_bar, _ = state
        slope, pulled = cj.vjp(lambda y, params: f(y, t, params), y, params)
        y_back, params_back = pulled(y_bar)
        return slope, cj.tree.map(jnp.negative, y_back), cj.tree.map(jnp.negative, params_back)

    state = y, y_bar, cj.tree.map(jnp.zeros_like, params)
    _, first_bar, params_bar = solved(both, tolerance, state, end, begin, params)
    return (first_bar, -jnp.vdot(first_bar, f(start, begin, params)), jnp.vdot(y_bar, f(y, end, params)), params_bar)


flow.defvjp(_forward, _backward)


def odeint(f: Slope, y: Any, times: Any, params: Any, tolerance: float = 1e-7) -> Any:
    """The states at all times, of which the first one is that of `y`."""
    def between(y: Any, ends: Any) -> tuple[Any, Any]:
        y = flow(f, tolerance, y, *ends, params)
        return y, y
    _, rest = lax.scan(between, y, (times[:-1], times[1:]))
    return jnp.concatenate([y[None], rest])


def spiral(y: Any, t: Any, matrix: Any) -> Any:
    """The equation that is to be learnt."""
    return jnp.matmul(y ** 3, matrix)


def perceptron(y: Any, t: Any, params: Any) -> Any:
    """The equation that learns it: a network with one hidden layer."""
    hidden = jnp.tanh(jnp.matmul(y ** 3, params["in"]) + params["bias"])
    return jnp.matmul(hidden, params["out"])


def untrained(rng: np.random.Generator, width: int) -> dict[str, Any]:
    """A network that hardly moves."""
    return {"in": jnp.array(rng.normal(size=(2, width))), "bias": jnp.zeros(width),
            "out": jnp.array(rng.normal(size=(width, 2)) * 0.1)}


def loss(params: Any, starts: Any, times: Any, seen: Any) -> Any:
    """The mean square distance from the states that were seen."""
    return jnp.mean(jnp.square(odeint(perceptron, starts, times, params, 1e-5) - seen))


@partial(cj.jit, static_argnums=4)
def learnt(params: Any, starts: Any, times: Any, seen: Any, steps: int) -> tuple[Any, Any]:
    """The parameters after these steps by Adam's rule, and the losses before each."""
    def step(carry: Any, i: Any) -> tuple[Any, Any]:
        params, mean, square = carry
        value, slopes = cj.value_and_grad(loss)(params, starts, times, seen)
        mean = cj.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, slopes)
        square = cj.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, slopes)
        rate = 0.02 * jnp.sqrt(1.0 - 0.99 ** (i + 1.0)) / (1.0 - 0.9 ** (i + 1.0))
        params = cj.tree.map(lambda p, m, s: p - rate * m / (jnp.sqrt(s) + 1e-8), params, mean, square)
        return (params, mean, square), value
    still = cj.tree.map(jnp.zeros_like, params)
    (params, _, _), losses = lax.scan(step, (params, still, still), jnp.arange(steps))
    return params, losses


def experiment(steps: int = 200, starts: int = 8, width: int = 32) -> tuple[Any, Any]:
    """The losses while a network learns the spiral from a few of its ways."""
    rng = np.random.default_rng(0)
    angles = jnp.linspace(0.0, 2.0 * jnp.pi, starts, endpoint=False)
    places = 1.5 * jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)
    times = jnp.linspace(0.0, 1.0, 11)
    seen = odeint(spiral, places, times, jnp.array([[-0.1, 2.0], [-2.0, -0.1]]))
    return learnt(untrained(rng, width), places, times, seen, steps)


def main() -> None:
    _, losses = experiment()
    print(f"loss {float(losses[0]):.4f} -> {float(losses[-1]):.6f}")


if __name__ == "__main__":
    main()
