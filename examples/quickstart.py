"""Ten minutes with corejax: fit a small network by transformations alone.

    make demo
"""

from __future__ import annotations

from typing import Any

import numpy as np

import corejax as cj
from corejax import lax

Params = dict[str, Any]


def predict(params: Params, x: Any) -> Any:
    """A network with one hidden layer, for one scalar input."""
    hidden = lax.tanh(params["w1"] * x + params["b1"])
    return hidden @ params["w2"] + params["b2"]


def loss(params: Params, xs: Any, ys: Any) -> Any:
    """The mean squared error; `vmap` makes the function of one input one of many."""
    errors = cj.vmap(predict, in_axes=(None, 0))(params, xs) - ys
    return (errors * errors).mean()


@cj.jit
def step(params: Params, xs: Any, ys: Any) -> tuple[Params, Any]:
    """One step of gradient descent, compiled as a whole."""
    value, slopes = cj.value_and_grad(loss)(params, xs, ys)
    return cj.tree.map(lambda p, slope: p - 0.05 * slope, params, slopes), value


def main() -> None:
    """Show each transformation, then train."""
    def f(x: Any) -> Any:
        return lax.sin(x) * x ** 2

    print("f(2)                    =", f(2.0))
    print("its derivative          =", cj.grad(f)(2.0))
    print("the second              =", cj.grad(cj.grad(f))(2.0))
    print("many derivatives        =", cj.vmap(cj.grad(f))(np.array([0.0, 1.0, 2.0])))
    print("the same, compiled      =", cj.jit(cj.vmap(cj.grad(f)))(np.array([0.0, 1.0, 2.0])))
    print("value and directional   =", *cj.jvp(f, (2.0,), (1.0,)))
    print("\nWhat grad does, as a program:\n", cj.make_jaxpr(cj.grad(f))(2.0), sep="")

    rng = np.random.default_rng(0)
    params: Params = {"w1": rng.normal(size=16), "b1": rng.normal(size=16), "w2": rng.normal(size=16) / 4, "b2": 0.0}
    xs = np.linspace(-3.0, 3.0, 128)
    ys = np.sin(xs)
    print("\nFitting sin with 16 hidden units:")
    for turn in range(1001):
        params, value = step(params, xs, ys)
        if turn % 250 == 0:
            print(f"  step {turn:4}: loss {float(value):.5f}")


if __name__ == "__main__":
    main()
