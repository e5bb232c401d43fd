"""A deep network's gradient in less memory: what to keep, what to name, and a chain that is halved again and again.

    python examples/rules/memory_policies.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import corejax as cj
import corejax.numpy as jnp
from corejax import lax
from corejax.ad_checkpoint import checkpoint_name

Layer = Callable[[Any], Any]
POLICIES: dict[str, Any] = {
    "everything": cj.checkpoint_policies.everything_saveable,
    "nothing": cj.checkpoint_policies.nothing_saveable,
    "products": cj.checkpoint_policies.dots_with_no_batch_dims_saveable,
    "named": cj.checkpoint_policies.save_only_these_names("hidden"),
    "both": cj.checkpoint_policies.save_from_both_policies(
        cj.checkpoint_policies.dots_saveable, cj.checkpoint_policies.save_only_these_names("hidden")),
    "own": lambda primitive, *avals, **params: primitive.name == "tanh",
}


def layer(x: Any, weights: Any) -> tuple[Any, None]:
    """Two products, with a bend between and after them."""
    hidden = checkpoint_name(jnp.tanh(x @ weights[0]), "hidden")
    return x + jnp.sin(hidden * hidden) @ weights[1], None


def loss(weights: Any, x: Any, policy: str) -> Any:
    """Of a network of many layers, each checkpointed."""
    each = cj.checkpoint(layer, policy=POLICIES[policy], prevent_cse=False)
    return jnp.mean(lax.scan(each, x, weights)[0] ** 2)


def model(depth: int, width: int) -> tuple[Any, Any]:
    """The weights of all layers, and inputs."""
    at = jnp.arange(depth * 2.0 * width * width).reshape(depth, 2, width, width)
    weights = jnp.cos(at * at) / width ** 0.5
    return (weights[:, 0], weights[:, 1]), jnp.sin(jnp.arange(4.0 * width).reshape(4, width))


def memory(policy: str, depth: int, width: int) -> int:
    """The bytes that the compiled gradient needs beside what it is given and returns."""
    gradient = cj.jit(partial(cj.grad(loss), policy=policy))
    return int(gradient.lower(*model(depth, width)).compile().memory_analysis().temp_size_in_bytes)


def halved(layers: Sequence[Layer]) -> Layer:
    """The layers one after the other; of each half but the first, only what goes in is kept.

    As many values are kept as there are halvings, and each layer is computed about as many times.
    """
    if len(layers) == 1:
        return layers[0]
    first, second = [halved(half) for half in (layers[:len(layers) // 2], layers[len(layers) // 2:])]
    return lambda x: second(cj.checkpoint(first)(x))


def chain(x: Any, count: int) -> Any:
    """The sum of what a chain of steps makes of x."""
    return jnp.sum(halved([lambda x, i=i: x + jnp.sin(x + i) / 4.0 for i in range(count)])(x))


def main() -> None:
    weights, x = model(24, 64)
    for policy in POLICIES:
        slopes = cj.grad(loss)(weights, x, policy)
        print(f"{policy:10}  {memory(policy, 24, 64) / 1e3:8.0f} KB  {float(slopes[0][0, 0, 0]):.12f}")
    print(f"the slope of 32 steps: {float(cj.grad(chain)(1.0, 32)):.12f}")


if __name__ == "__main__":
    main()
