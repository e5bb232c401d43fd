"""The Laplacian of a network, forward: a Taylor series of order 2 along each axis, without a matrix of derivatives.

The Laplacian is the sum of the second derivatives along all axes, which is the trace of the Hessian. The Hessian takes
reverse mode, which keeps something of each layer for the way back. Series go forward only: they take as long, in memory
that doesn't grow with the depth of the network, and along a few axes at a time in as little as one wants.

    python examples/forward_laplacian.py

>>> square = lambda x: (x * x).sum()
>>> laplacian(square, np.array([1.0, 2.0, 3.0])).item()
6.0
>>> laplacian(lambda x: x[0] * x[0] - x[1] * x[1], np.array([1.0, 2.0])).item()
0.0
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

import corejax as cj
from corejax import lax, taylor


def bend(f: Callable[[Any], Any], x: Any, way: Any) -> Any:
    """The second derivative of f at x, in one direction."""
    return taylor.jet(f, (x,), ([way, lax.full_like(x, 0.0)],))[1][1]


def laplacian(f: Callable[[Any], Any], x: Any, *, together: int | None = None) -> Any:
    """The sum of the second derivatives of f, which takes a vector and returns a number.

    They are computed along all axes at once, or in the memory that some axes take `together`.
    """
    axes = np.eye(len(x), dtype=x.dtype)
    if together is None:
        return cj.vmap(partial(bend, f, x))(axes).sum()
    return lax.map(partial(bend, f, x), axes, batch_size=together).sum()


def estimate(f: Callable[[Any], Any], x: Any, ways: Any) -> Any:
    """The Laplacian, on average: the mean of the second derivatives in random directions, of elements 1 and -1."""
    return cj.vmap(partial(bend, f, x))(ways).mean()


def by_hessian(f: Callable[[Any], Any], x: Any) -> Any:
    """The Laplacian by all derivatives of the gradient."""
    return cj.hessian(f)(x).trace()


def network(n: int, width: int, depth: int, seed: int = 0) -> Callable[[Any], Any]:
    """A perceptron with random weights, from n numbers to one."""
    rng = np.random.default_rng(seed)
    sizes = [n, *[width] * depth, 1]
    weights = [rng.standard_normal(shape) / np.sqrt(shape[0]) for shape in pairwise(sizes)]

    def f(x: Any) -> Any:
        *inner, last = weights
        for w in inner:
            x = lax.tanh(x @ w)
        return (x @ last)[0]
    return f


def main() -> None:
    """Print the Laplacian of a network as each way finds it, and what it takes."""
    rng = np.random.default_rng(1)
    print("a network of 8 layers of 128\n  inputs  way                   Laplacian     time     memory")
    for n in (50, 200):
        f, x = network(n, width=128, depth=8), rng.standard_normal(n)
        ways = rng.choice([-1.0, 1.0], (16, n))
        for name, fun in (("trace of the Hessian", by_hessian), ("all axes at once", laplacian),
                          ("25 axes at a time", partial(laplacian, together=25)),
                          ("16 random directions", partial(estimate, ways=ways))):
            compiled = cj.jit(partial(fun, f)).lower(x).compile()
            found, took = float(compiled(x)), seconds(partial(compiled, x))
            print(f"  {n:6}  {name:20} {found:10.6f} {took * 1e3:6.2f} ms {memory(compiled) / 1024:5.0f} KiB")


def seconds(run: Callable[[], Any]) -> float:
    """The shortest time of ten."""
    times = []
    for _ in range(10):
        start = time.perf_counter()
        run().block_until_ready()
        times.append(time.perf_counter() - start)
    return min(times)


def memory(compiled: Any) -> int:
    """The bytes that a compiled program takes for values on the way."""
    return int(compiled.memory_analysis().temp_size_in_bytes)


if __name__ == "__main__":
    main()
