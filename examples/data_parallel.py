"""Training a perceptron on eight devices: each has its part of the batch, and all have the same weights.

    python examples/data_parallel.py
    python -m corejax launch -n 2 --devices 4 examples/data_parallel.py

The second command does the same in two processes, with the same losses.
Nothing in the model knows of devices. The batch is put on a mesh, computation follows it, and the compiler adds up the
gradients. The second way says the same by hand: `shard_map` with a `psum` that types put in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import corejax as cj
from corejax import P, lax

Weights = list[tuple[Any, Any]]


def weights(rng: np.random.Generator, sizes: Sequence[int]) -> Weights:
    """A matrix and an offset for each layer."""
    return [(rng.normal(size=(m, n)) / np.sqrt(m), np.zeros(n)) for m, n in zip(sizes, sizes[1:], strict=False)]


def predict(params: Weights, x: Any) -> Any:
    """The outputs for a batch of inputs."""
    *hidden, (matrix, offset) = params
    for m, b in hidden:
        x = lax.tanh(x @ m + b)
    return x @ matrix + offset


def loss(params: Weights, x: Any, y: Any) -> Any:
    """The mean of the squared errors."""
    error = predict(params, x) - y
    return (error * error).mean()


def step(params: Weights, x: Any, y: Any) -> tuple[Any, Weights]:
    """The loss, and the weights after a step of gradient descent."""
    value, slopes = cj.value_and_grad(loss)(params, x, y)
    return value, cj.tree.map(lambda p, g: p - 0.1 * g, params, slopes)


def step_by_hand(mesh: Any) -> Callable[..., tuple[Any, Weights]]:
    """The same step as a function of each device's part of the batch."""
    def of_part(params: Weights, x: Any, y: Any) -> tuple[Any, Weights]:
        def mean_loss(params: Weights) -> Any:
            return lax.pmean(loss(params, x, y), "batch")

        value, slopes = cj.value_and_grad(mean_loss)(params)  # all devices use params: the sum over them is implied
        return value, cj.tree.map(lambda p, g: p - 0.1 * g, params, slopes)

    return cj.shard_map(of_part, mesh=mesh, in_specs=(P(), P("batch"), P("batch")), out_specs=P())


def data(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Points, and a smooth function of them."""
    x = rng.uniform(-1.0, 1.0, size=(count, 4))
    return x, np.sin(2.0 * x).sum(axis=1, keepdims=True) * x[:, :1]


def train(function: Callable[..., tuple[Any, Weights]], params: Weights, x: Any, y: Any, steps: int
          ) -> tuple[list[float], Weights]:
    """The losses of some steps, and the weights after them."""
    compiled, losses = cj.jit(function), []
    for _ in range(steps):
        value, params = compiled(params, x, y)
        losses.append(float(value))
    return losses, params


def main() -> None:
    """Train on one device and, in both ways, on all of them."""
    if cj.config.num_cpu_devices is None:
        cj.config.num_cpu_devices = 8  # a processor counts as one device unless told otherwise
    count = cj.device_count()
    rng = np.random.default_rng(0)
    params, (x, y) = weights(rng, [4, 64, 64, 1]), data(rng, 4096)
    mesh = cj.make_mesh((count,), ("batch",))
    divided = [cj.device_put(part, cj.NamedSharding(mesh, P("batch"))) for part in (x, y)]

    one, _ = train(step, params, x, y, 50)
    several, trained = train(step, params, *divided, 50)
    by_hand, _ = train(step_by_hand(mesh), params, *divided, 50)
    if cj.process_index() > 0:
        return
    print(f"the batch: {divided[0].shape}, of which each device has {divided[0].addressable_shards[0].data.shape}")
    print(f"the weights: {trained[0][0].sharding.spec}, the same on {len(trained[0][0].devices())} devices")
    for name, losses in (("one device", one), (f"{count} devices", several), ("by hand", by_hand)):
        print(f"{name + ':':<14} {losses[0]:.6f} at first, {losses[-1]:.6f} after {len(losses)} steps")
    most = np.abs(np.subtract([several, by_hand], one)).max()
    print(f"largest difference of losses: {most:.1e}")


if __name__ == "__main__":
    main()
