"""A first look at corejax: transform a function, fit a small network, write your own primitive.

    make demo
"""

from __future__ import annotations

from typing import Any

import numpy as np

import corejax as cj
from corejax import lax
from corejax.plugin import define, factors, hookimpl

Params = dict[str, Any]


def predict(params: Params, x: Any) -> Any:
    """A network with one hidden layer, for one scalar input."""
    hidden = lax.tanh(params["w1"] * x + params["b1"])
    return hidden @ params["w2"] + params["b2"]


def loss(params: Params, xs: Any, ys: Any) -> Any:
    """The mean squared error; `vmap` turns the function of one input into a function of many."""
    errors = cj.vmap(predict, in_axes=(None, 0))(params, xs) - ys
    return (errors * errors).mean()


@cj.jit
def step(params: Params, xs: Any, ys: Any) -> tuple[Params, Any]:
    """A step of gradient descent, compiled as a whole."""
    value, slopes = cj.value_and_grad(loss)(params, xs, ys)
    return cj.tree.map(lambda p, slope: p - 0.05 * slope, params, slopes), value


class CubeRoot:
    """The real cube root, elementwise: a primitive that no installed pack provides."""

    name = "cube_root"
    jvp = factors(lambda out, x: 1.0 / (3.0 * out * out))

    @hookimpl
    def abstract_eval(self, avals: Any) -> Any:
        return avals[0]

    @hookimpl
    def impl(self, args: Any) -> Any:
        return np.cbrt(args[0])

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any) -> Any:
        return cube_root(args[0]), dims[0]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any) -> Any:
        return ctx.op("stablehlo.cbrt", args)


cube_root = define(CubeRoot())


def main() -> None:
    """Show each transformation, then train, then define a primitive."""
    transform()
    train()
    extend()


def transform() -> None:
    """Apply each transformation to a function, and print one of the resulting programs."""
    def f(x: Any) -> Any:
        return lax.sin(x) * x ** 2

    print("f(2)                    =", f(2.0))
    print("its derivative          =", cj.grad(f)(2.0))
    print("the second              =", cj.grad(cj.grad(f))(2.0))
    print("many derivatives        =", cj.vmap(cj.grad(f))(np.array([0.0, 1.0, 2.0])))
    print("the same, compiled      =", cj.jit(cj.vmap(cj.grad(f)))(np.array([0.0, 1.0, 2.0])))
    print("value and directional   =", *cj.jvp(f, (2.0,), (1.0,)))
    print("\nWhat grad does, as a program:\n", cj.make_jaxpr(cj.grad(f))(2.0), sep="")


def train() -> None:
    """Fit sin on an interval with gradient descent."""
    rng = np.random.default_rng(0)
    params: Params = {"w1": rng.normal(size=16), "b1": rng.normal(size=16), "w2": rng.normal(size=16) / 4, "b2": 0.0}
    xs = np.linspace(-3.0, 3.0, 128)
    ys = np.sin(xs)
    print("\nFitting sin with 16 hidden units:")
    for turn in range(1001):
        params, value = step(params, xs, ys)
        if turn % 250 == 0:
            print(f"  step {turn:4}: loss {float(value):.5f}")


def extend() -> None:
    """Use the primitive above like any other: under each transformation, in any order."""
    x = np.array([1.0, 8.0, -27.0])
    print("\nYour own primitive:")
    print("  cube_root(x)           =", cube_root(x))
    print("  its derivative         =", cj.vmap(cj.grad(cube_root))(x))
    print("  the second, compiled   =", cj.jit(cj.vmap(cj.grad(cj.grad(cube_root))))(x))
    print("  by hand                =", -2.0 / (9.0 * np.cbrt(x) ** 5))


if __name__ == "__main__":
    main()
