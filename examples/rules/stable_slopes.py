"""Functions whose derivatives are told, since those of their formulas overflow, vanish, or shall be other ones.

    python examples/rules/stable_slopes.py
"""

from __future__ import annotations

from functools import partial
from typing import Any

import corejax as cj
import corejax.numpy as jnp
from corejax import lax


@cj.custom_jvp
def softplus(x: Any) -> Any:
    """log(1 + exp(x)); by its formula the slope at 1000 would be infinity divided by infinity."""
    return jnp.where(x > 30.0, x, jnp.log(1.0 + jnp.exp(jnp.minimum(x, 30.0))))


@softplus.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x,), (x_dot,) = primals, tangents
    return softplus(x), x_dot / (1.0 + jnp.exp(-x))


@partial(cj.custom_jvp, nondiff_argnums=(0,))
def rooted(power: int, x: Any) -> Any:
    """The root of x of that power; the slope at 0 is taken to be 0."""
    return x ** (1.0 / power)


@rooted.defjvp
def _(power: int, primals: Any, tangents: Any) -> Any:
    (x,), (x_dot,) = primals, tangents
    root = rooted(power, x)
    safe = jnp.where(x == 0.0, 1.0, x)
    return root, jnp.where(x == 0.0, 0.0, root / (power * safe)) * x_dot


@cj.custom_vjp
def bounded(low: Any, high: Any, x: Any) -> Any:
    """x itself, whose cotangent is kept between two bounds on the way back."""
    return x


bounded.defvjp(lambda low, high, x: (x, (low, high)),
               lambda bounds, ct: (None, None, lax.clamp(bounds[0], ct, bounds[1])))


@cj.custom_vjp
def rounded(x: Any) -> Any:
    """The nearest integer, with the slope of x itself: a network of whole numbers can learn."""
    return jnp.round(x)


rounded.defvjp(lambda x: (rounded(x), None), lambda _, ct: (ct,))


def descended(x: Any, steps: int) -> tuple[Any, Any]:
    """Gradient descent on a steep function, from far away, with bounded slopes; also the values on the way."""
    def loss(x: Any) -> Any:
        return jnp.sum(jnp.exp(jnp.abs(bounded(-1.0, 1.0, x)) / 2.0) - 1.0)

    def step(x: Any, i: Any) -> Any:
        value, slope = cj.value_and_grad(loss)(x)
        return x - 0.5 * 0.97 ** i * slope, value
    return lax.scan(step, x, jnp.arange(steps))


def quantised(inputs: Any, targets: Any, steps: int) -> tuple[Any, Any]:
    """Weights in eighths that are learned through the rounding; and the losses."""
    def loss(weights: Any) -> Any:
        return jnp.mean((inputs @ (rounded(weights * 8.0) / 8.0) - targets) ** 2)

    def step(weights: Any, _: Any) -> Any:
        value, slope = cj.value_and_grad(loss)(weights)
        return weights - 0.1 * slope, value
    weights, losses = lax.scan(step, jnp.zeros(inputs.shape[1]), None, steps)
    return rounded(weights * 8.0) / 8.0, losses


def main() -> None:
    for x in (-1000.0, 0.0, 1000.0):
        value, slope = cj.value_and_grad(softplus)(x)
        print(f"softplus({x:7.1f}) = {float(value):7.2f}, slope {float(slope):.2f}")
    slope = cj.grad(partial(rooted, 3))
    print(f"cube root: slope {float(slope(8.0)):.4f} at 8, {float(slope(0.0))} at 0")
    _, values = descended(jnp.array([60.0, -40.0]), 200)
    print(f"descent with bounded slopes: from {float(values[0]):.2g} to {float(values[-1]):.2g}")


if __name__ == "__main__":
    main()
