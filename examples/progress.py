"""A loop that trains in one compiled program, prints its loss from inside, and shows in the terminal how far it is."""

import numpy as np

import corejax as cj
from corejax import lax, numpy as jnp

STEPS = 100_000


def loss(params, x, y):
    """The mean square error of a small network."""
    hidden = jnp.tanh(x @ params["in"] + params["shift"])
    return jnp.mean((hidden @ params["out"] - y) ** 2)


def train(params, x, y, steps):
    """The parameters after that many steps of gradient descent."""
    bar = cj.callbacks.progress(label="training")

    def step(params, i):
        value, slopes = cj.value_and_grad(loss)(params, x, y)
        lax.cond(i % (steps // 5) == 0, lambda: cj.debug.print("step {:>6}: loss {:.6f}", i, value, ordered=True),
                 lambda: None)
        return cj.tree_util.tree_map(lambda p, g: p - 0.2 * g, params, slopes), None

    return bar.scan(step, params, jnp.arange(steps))[0]


def main(steps=STEPS):
    """Fit a wave, and print the loss at the end."""
    generator = np.random.default_rng(0)
    x = np.linspace(-2.0, 2.0, 32)[:, None]
    y = np.sin(3.0 * x)
    params = {"in": generator.normal(size=(1, 16)), "shift": generator.normal(size=16),
              "out": generator.normal(size=(16, 1)) / 4.0}
    params = cj.jit(train, static_argnums=3)(params, x, y, steps)
    print(f"loss at the end: {float(loss(params, x, y)):.6f}")


if __name__ == "__main__":
    main()
