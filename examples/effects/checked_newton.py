"""Newton's method in a while loop: divisions by zero and numbers that are none come out as errors, for each start."""

import numpy as np

import corejax as cj
from corejax import lax, numpy as jnp
from corejax.experimental import checkify


def root(x, value):
    """A root of x^3 - value from a start."""
    def step(state):
        x, _ = state
        moved = x - (x ** 3 - value) / (3.0 * x ** 2)
        return moved, jnp.abs(moved - x)

    return lax.while_loop(lambda state: state[1] > 1e-10, step, (x, jnp.asarray(1.0)))[0]


def experiment():
    """For some starts: the root, or which error there was."""
    checked = checkify.checkify(root, errors=checkify.float_checks)
    found = []
    for x, value in ((1.0, 8.0), (0.0, 8.0), (2.0, np.nan)):
        error, y = cj.jit(checked)(jnp.asarray(x), jnp.asarray(value))
        message = error.get()
        kind = None if message is None else "division by zero" if "division by zero" in message else "nan"
        found.append((kind, None if kind else round(float(y), 9)))
    return found


if __name__ == "__main__":
    for kind, y in experiment():
        print(kind or f"root {y}")
