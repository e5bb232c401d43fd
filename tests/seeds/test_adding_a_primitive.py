"""The notes' five steps for adding a primitive, and their custom interpreter over jaxprs.

The steps: a primitive; its evaluation by NumPy; its abstract evaluation; its translation to XLA; its rules for
differentiation and batching. Here all five are hooks of one plugin object. The operation is x * y + z.
"""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import Literal, ShapedArray
from corejax.plugin import define, hookimpl


class MultiplyAdd:
    """multiply_add(x, y, z) = x * y + z, elementwise."""

    name = "multiply_add"

    @hookimpl
    def impl(self, args):
        x, y, z = args
        return np.add(np.multiply(x, y), z)

    @hookimpl
    def abstract_eval(self, avals):
        x, y, z = avals
        assert x.shape == y.shape == z.shape
        return ShapedArray(x.shape, x.dtype)

    @hookimpl
    def jvp(self, primals, tangents):
        (x, y, z), (x_dot, y_dot, z_dot) = primals, tangents
        return multiply_add(x, y, z), multiply_add(x_dot, y, multiply_add(x, y_dot, z_dot))

    @hookimpl
    def transpose(self, cotangents, args):
        from corejax.plugin import Linear
        x, y, z = args
        ct_z = cotangents if isinstance(z, Linear) else None
        if isinstance(x, Linear):
            return [lax.mul(cotangents, y), None, ct_z]
        if isinstance(y, Linear):
            return [None, lax.mul(x, cotangents), ct_z]
        return [None, None, ct_z]

    @hookimpl
    def vmap(self, axis, args, dims):
        from corejax.core import to_dim
        return multiply_add(*[to_dim(x, d, 0, axis.size) for x, d in zip(args, dims, strict=True)]), 0

    @hookimpl
    def xla_translation(self, ctx, args):
        x, y, z = args
        product = ctx.op("stablehlo.multiply", [x, y])
        return ctx.op("stablehlo.add", [product, z])


multiply_add = define(MultiplyAdd())


def square_add(a, b):
    return multiply_add(a, a, b)


def test_evaluation():
    assert 14.0 == float(square_add(2.0, 10.0))


def test_forward_mode():
    y, y_dot = cj.jvp(square_add, (2.0, 10.0), (1.0, 1.0))
    assert (14.0, 5.0) == (float(y), float(y_dot))


def test_compilation():
    assert 14.0 == float(cj.jit(square_add)(2.0, 10.0))
    assert 14.0 == float(cj.jit(lambda x, y: square_add(x, y), static_argnums=1)(2.0, 10.0))


def test_compiled_forward_mode():
    y, y_dot = cj.jit(lambda args, dots: cj.jvp(square_add, args, dots))((2.0, 10.0), (1.0, 1.0))
    assert (14.0, 5.0) == (float(y), float(y_dot))


@pytest.mark.parametrize("wrap", [lambda f: f, cj.jit])
def test_reverse_mode(wrap):
    assert 4.0 == float(wrap(cj.grad(square_add))(2.0, 10.0))
    assert 1.0 == float(wrap(cj.grad(square_add, argnums=1))(2.0, 10.0))


@pytest.mark.parametrize("wrap", [lambda f: f, cj.jit])
def test_batching(wrap):
    a, b = np.array([2.0, 3.0]), np.array([10.0, 20.0])
    np.testing.assert_array_equal([14.0, 29.0], wrap(cj.vmap(square_add))(a, b))
    np.testing.assert_array_equal([14.0, 19.0], wrap(cj.vmap(square_add, in_axes=(0, None)))(a, 10.0))


def counting(fun):
    """A custom interpreter: evaluates a function's jaxpr and counts what it applies."""
    def counted(*args):
        closed = cj.make_jaxpr(fun)(*args)
        env = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
        env.update(zip(closed.jaxpr.invars, args, strict=True))
        counts: dict[str, int] = {}
        for eqn in closed.eqns:
            values = [a.val if isinstance(a, Literal) else env[a] for a in eqn.invars]
            out = eqn.primitive.bind(*values, **eqn.params)
            env.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True))
            counts[eqn.primitive.name] = counts.get(eqn.primitive.name, 0) + 1
        return [env[v] for v in closed.jaxpr.outvars], counts
    return counted


def test_a_custom_interpreter_sees_every_equation():
    def fun(x):
        return lax.exp(lax.tanh(x) + lax.tanh(x * 2.0))

    (out,), counts = counting(fun)(0.5)
    np.testing.assert_allclose(out, np.exp(np.tanh(0.5) + np.tanh(1.0)), rtol=1e-14)
    assert {"tanh": 2, "mul": 1, "add": 1, "exp": 1} == counts


def test_a_custom_interpreter_can_be_transformed():
    def total(x):
        return counting(lambda x: lax.sin(x) * x)(x)[0][0]

    np.testing.assert_allclose(cj.grad(total)(0.7), np.cos(0.7) * 0.7 + np.sin(0.7), rtol=1e-14)
    x = np.array([0.1, 0.2])
    np.testing.assert_allclose(cj.jit(cj.vmap(total))(x), np.sin(x) * x, rtol=1e-14)
