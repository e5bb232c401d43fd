"""Printing from within compiled programs: in branches and loops, and of the gradient that passes through a point."""


import corejax as cj
from corejax import lax, numpy as jnp


def collatz(n):
    """How many steps it takes to reach 1; each step is printed."""
    def step(state):
        n, count = state
        cj.debug.print("step {count}: {n}", count=count, n=n, ordered=True)
        n = lax.cond(n % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, n)
        return n, count + 1

    return lax.while_loop(lambda state: state[0] != 1, step, (n, 0))[1]


@cj.custom_vjp
def shown(x):
    """x, whose gradient is printed on its way back."""
    return x


def forward(x):
    return x, None


def backward(_, slope):
    cj.debug.print("slope {:.3f}", slope, ordered=True)
    return (slope,)


shown.defvjp(forward, backward)


def wave(x):
    """A function with a look at two of its parts."""
    y = shown(jnp.sin(x))
    cj.debug.print("sine {:.3f}", y, ordered=True)
    return jnp.exp(shown(2.0 * y))


def experiment():
    """The number of steps from 6, and the slope of a wave; the text is printed."""
    count = cj.jit(collatz)(6)
    slope = cj.jit(cj.grad(wave))(0.5)
    cj.vmap(lambda x: cj.debug.print("one of a batch: {}", x))(jnp.arange(3))
    cj.effects_barrier()
    return count, slope


if __name__ == "__main__":
    count, slope = experiment()
    print(f"{int(count)} steps; slope {float(slope):.4f}")
