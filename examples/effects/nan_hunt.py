"""Where a compiled loop goes wrong: Python is called in the branch that is taken once a number isn't one."""

import numpy as np

import corejax as cj
from corejax import lax, numpy as jnp


class Report:
    """The first step after which a value wasn't finite, and the values there."""

    def __init__(self):
        self.first = None

    def tell(self, step, values):
        """Keep the first report."""
        if self.first is None:
            self.first = int(step), np.array(values)


def descent(report, rate, steps=40):
    """Gradient descent, 25 steps at a time; a rate may be too large for one of the two directions."""
    stiffness = jnp.array([1.0, 50.0])

    def step(x, i):
        x = x * (1.0 - rate * stiffness) ** 25
        bad = jnp.logical_not(jnp.all(jnp.isfinite(x)))
        lax.cond(bad, lambda: cj.debug.callback(report.tell, i, x, ordered=True), lambda: None)
        return x, None

    return lax.scan(step, jnp.array([0.1, 0.1]), jnp.arange(steps))[0]


def experiment():
    """The step at which a stable and an unstable loop went wrong, if they did."""
    stable, unstable = Report(), Report()
    cj.jit(lambda: descent(stable, 0.02))()
    cj.jit(lambda: descent(unstable, 0.1))()
    cj.effects_barrier()
    return stable.first, unstable.first


if __name__ == "__main__":
    stable, unstable = experiment()
    print(f"stable: {stable}; unstable: after step {unstable[0]}, values {unstable[1]}")
