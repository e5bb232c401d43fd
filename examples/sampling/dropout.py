"""A network with dropout that remembers little: each layer is computed again for its derivative, with the same mask.

    python examples/sampling/dropout.py

What is dropped depends on the layer's key alone. So `checkpoint` needs to keep only each layer's input: the second
time, the same key gives the same mask.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import corejax as cj
import corejax.numpy as jnp
from corejax import lax, random


def spirals(key: Any, count: int) -> tuple[Any, Any]:
    """Points on two arms of a spiral, and which arm each is on."""
    of_arms, of_places, of_noise = random.split(key, 3)
    arms = random.bernoulli(of_arms, 0.5, (count,)).astype(float)
    along = 0.5 + 2.5 * jnp.sqrt(random.uniform(of_places, (count,)))
    angles = 2.0 * along + jnp.pi * arms
    points = along[:, None] * jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)
    return points + 0.1 * random.normal(of_noise, (count, 2)), arms


def model(key: Any, width: int, depth: int) -> dict[str, Any]:
    """The first layer, those between as one array, and the last."""
    first, middle, last = random.split(key, 3)
    return {"first": random.normal(first, (3, width)), "last": random.normal(last, (width,)) / jnp.sqrt(width),
            "middle": random.normal(middle, (depth, width, width)) / jnp.sqrt(width)}


def layer(x: Any, given: Any) -> tuple[Any, None]:
    """A layer of which a fifth is dropped, added to what went in."""
    weights, key = given
    kept = random.bernoulli(key, 0.8, x.shape)
    return x + jnp.where(kept, jnp.tanh(x @ weights), 0.0) / 0.8, None


def applied(params: dict[str, Any], keys: Any, points: Any, again: bool) -> Any:
    """A number for each point, with dropout by a key for each layer; `again`: with the layers computed twice."""
    x = jnp.tanh(jnp.concatenate([points, jnp.ones((len(points), 1))], axis=1) @ params["first"])
    x, _ = lax.scan(cj.checkpoint(layer) if again else layer, x, (params["middle"], keys))
    return x @ params["last"]


def loss(params: dict[str, Any], keys: Any, points: Any, arms: Any, again: bool) -> Any:
    logits = applied(params, keys, points, again)
    return jnp.mean(jnp.logaddexp(0.0, logits) - arms * logits)


@partial(cj.jit, static_argnums=(3, 4, 5))
def trained(key: Any, points: Any, arms: Any, rounds: int, width: int, depth: int) -> tuple[Any, Any]:
    """The parameters after so many rounds of gradient descent with momentum, and the losses."""
    def learn(carry: Any, key: Any) -> Any:
        params, speed = carry
        value, slopes = cj.value_and_grad(loss)(params, random.split(key, depth), points, arms, True)
        speed = cj.tree.map(lambda v, g: 0.9 * v - 0.05 * g, speed, slopes)
        return (cj.tree.map(jnp.add, params, speed), speed), value

    of_model, of_rounds = random.split(key)
    params = model(of_model, width, depth)
    still = cj.tree.map(jnp.zeros_like, params)
    (params, _), losses = lax.scan(learn, (params, still), random.split(of_rounds, rounds))
    return params, losses


def undropped(params: dict[str, Any], points: Any) -> Any:
    """The network without dropout."""
    x = jnp.tanh(jnp.concatenate([points, jnp.ones((len(points), 1))], axis=1) @ params["first"])
    return lax.scan(lambda x, weights: (x + jnp.tanh(x @ weights), None), x, params["middle"])[0] @ params["last"]


def experiment(rounds: int, width: int = 32, depth: int = 4) -> tuple[Any, Any]:
    """The losses while learning, and the share of new points whose arm is found."""
    of_data, of_training, of_test = random.split(random.key(2), 3)
    params, losses = trained(of_training, *spirals(of_data, 400), rounds, width, depth)
    points, arms = spirals(of_test, 2000)
    return losses, jnp.mean((undropped(params, points) > 0.0) == (arms > 0.5))


def main() -> None:
    losses, share = experiment(1500)
    print(f"loss {float(losses[0]):.2f} at first and {float(losses[-50:].mean()):.3f} in the end; "
          f"the arm of {100 * float(share):.1f}% of new points is found")


if __name__ == "__main__":
    main()
