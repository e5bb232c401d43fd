"""What a compiled loop tells while it runs: losses that a callback collects, under jit and grad."""


import corejax as cj
from corejax import lax, numpy as jnp


class Collected:
    """Numbers by name, in the order in which they came."""

    def __init__(self):
        self.lines = []

    def add(self, name, step, value):
        """One more."""
        self.lines.append((name, int(step), float(value)))


def descent(collected, start, steps=5):
    """Newton's method for a minimum, in a loop that tells where it is after each step."""
    def height(x):
        return (x - 3.0) ** 4 + x ** 2

    def step(i, x):
        cj.debug.callback(collected.add, "height", i, height(x), ordered=True)
        slope = cj.grad(height)(x)
        cj.debug.callback(collected.add, "slope", i, slope, ordered=True)
        return x - slope / cj.grad(cj.grad(height))(x)

    return lax.fori_loop(0, steps, step, start)


def experiment():
    """The minimum; what was told by the compiled loop, and by one that is differentiated."""
    collected, differentiated = Collected(), Collected()
    minimum = cj.jit(lambda x: descent(collected, x))(jnp.asarray(0.0))
    slope = cj.jit(cj.grad(lambda x: descent(differentiated, x)))(jnp.asarray(0.0))
    cj.effects_barrier()
    return minimum, slope, collected.lines, differentiated.lines


if __name__ == "__main__":
    minimum, slope, lines, _ = experiment()
    for name, step, value in lines:
        print(f"{step} {name:6} {value:12.6f}")
    print(f"minimum at {float(minimum):.6f}; by the start: {float(slope):.2e}")
