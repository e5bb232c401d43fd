"""Batches that Python reads while a compiled loop trains: an ordered callback with results."""

import numpy as np

import corejax as cj
from corejax import lax, numpy as jnp
from corejax.experimental import io_callback


class Reader:
    """Reads one batch after the other, as from a file, and remembers how many it has read."""

    def __init__(self, seed=0, batch=16):
        self.generator = np.random.default_rng(seed)
        self.batch = batch
        self.count = 0

    def read(self):
        """The next batch: points and what is measured there."""
        self.count += 1
        x = self.generator.normal(size=(self.batch, 3))
        return x, x @ np.array([1.0, -2.0, 0.5]) + 0.25


def train(reader, steps):
    """Weights after some steps of gradient descent, and the losses, from one compiled program."""
    double = jnp.zeros(0).dtype
    kinds = (cj.ShapeDtypeStruct((reader.batch, 3), double), cj.ShapeDtypeStruct((reader.batch,), double))

    def loss(params, x, y):
        weights, bias = params
        return jnp.mean((x @ weights + bias - y) ** 2)

    def step(params, _):
        x, y = io_callback(reader.read, kinds, ordered=True)
        value, slopes = cj.value_and_grad(loss)(params, x, y)
        return cj.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, slopes), value

    return lax.scan(step, (jnp.zeros(3), jnp.asarray(0.0)), None, length=steps)


def experiment(steps=120):
    """The weights, the losses, and how many batches were read."""
    reader = Reader()
    (weights, bias), losses = cj.jit(lambda: train(reader, steps))()
    return weights, bias, losses, reader.count


if __name__ == "__main__":
    weights, bias, losses, count = experiment()
    print(f"{count} batches: weights {np.round(weights, 3)}, bias {float(bias):.3f}, loss {float(losses[-1]):.2e}")
