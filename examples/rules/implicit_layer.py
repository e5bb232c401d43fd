"""A layer whose output is the fixed point of a step, with a derivative that needs no step of the way there.

    python examples/rules/implicit_layer.py

At the fixed point, the pullback is a fixed point too: of the step's own pullback. So the backward pass solves a linear
equation by the same loop, and keeps the solution alone, however many steps were taken.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import corejax as cj
import corejax.numpy as jnp
from corejax import lax


def settled(step: Callable[[Any], Any], start: Any) -> Any:
    """What a contracting step comes to."""
    def going(pair: Any) -> Any:
        return jnp.max(jnp.abs(pair[1] - pair[0])) > 1e-12

    return lax.while_loop(going, lambda pair: (pair[1], step(pair[1])), (start, step(start)))[1]


@partial(cj.custom_vjp, nondiff_argnums=(0,))
def fixed_point(step: Callable[[Any, Any], Any], params: Any, start: Any) -> Any:
    """The x for which `step(params, x)` is x."""
    return settled(lambda x: step(params, x), start)


def _forward(step: Callable[[Any, Any], Any], params: Any, start: Any) -> Any:
    x = fixed_point(step, params, start)
    return x, (params, x)


def _backward(step: Callable[[Any, Any], Any], kept: Any, ct: Any) -> Any:
    params, x = kept
    _, back = cj.vjp(step, params, x)

    def adjoint_step(given: Any, adjoint: Any) -> Any:
        params, x, ct = given
        return ct + cj.vjp(partial(step, params), x)[1](adjoint)[0]
    # a fixed point again, so that this can be differentiated as well
    adjoint = fixed_point(adjoint_step, (params, x, ct), ct)
    return back(adjoint)[0], jnp.zeros_like(x)


fixed_point.defvjp(_forward, _backward)


def square_root(a: Any) -> Any:
    """By the step of Heron, which is told to be a function of a."""
    return fixed_point(lambda a, x: 0.5 * (x + a / x), a, a)


def layer(weights: Any, x: Any) -> Any:
    """A hidden state that agrees with itself: z = tanh(w z + u x + b)."""
    recurrent, given, bias = weights
    return fixed_point(lambda at, z: jnp.tanh(at[0] @ z + at[1]), (recurrent, given @ x + bias), jnp.zeros(len(bias)))


def loss(weights: Any, xs: Any, targets: Any) -> Any:
    found = cj.vmap(layer, (None, 0))(weights, xs)
    return jnp.mean((found[:, :1] - targets) ** 2)


@partial(cj.jit, static_argnums=3)
def trained(weights: Any, xs: Any, targets: Any, steps: int) -> tuple[Any, Any]:
    """The weights after gradient descent, and the losses."""
    def step(weights: Any, _: Any) -> Any:
        value, slopes = cj.value_and_grad(loss)(weights, xs, targets)
        return cj.tree.map(lambda w, g: w - 0.5 * g, weights, slopes), value
    return lax.scan(step, weights, None, steps)


def problem(size: int, count: int) -> tuple[Any, Any, Any]:
    """Weights to begin with, points, and numbers to learn."""
    xs = jnp.sin(jnp.arange(count * 2.0).reshape(count, 2) * 1.7)
    recurrent = 0.3 * jnp.cos(jnp.arange(size * size * 1.0).reshape(size, size) * 2.3) / size ** 0.5
    given = jnp.sin(jnp.arange(size * 2.0).reshape(size, 2) * 0.9)
    return (recurrent, given, jnp.zeros(size)), xs, 0.5 * jnp.sin(3.0 * xs[:, :1]) * xs[:, 1:]


def main() -> None:
    value, slope = cj.value_and_grad(square_root)(2.0)
    second = cj.grad(cj.grad(square_root))(2.0)
    print(f"the root of 2: {float(value):.12f}, slope {float(slope):.12f}, its slope {float(second):.12f}")
    weights, losses = trained(*problem(12, 40), 400)
    print(f"loss {float(losses[0]):.4f} at first and {float(losses[-1]):.5f} in the end")


if __name__ == "__main__":
    main()
