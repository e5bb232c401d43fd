"""Functions with rules for maps and transposes, and checkpointed ones with fwd rules, on the devices of a mesh."""

import numpy as np
import pytest

import corejax as cj
from corejax import P, lax
from corejax.custom_batching import custom_vmap, sequential_vmap
from corejax.custom_derivatives import linear_call

X = np.linspace(0.1, 2.0, 8)


@custom_vmap
def product(x, y):
    return lax.sin(x) * y


@product.def_vmap
def _mapped(size, batched, x, y):
    return 10.0 * lax.sin(x) * y, True


@cj.custom_vjp
def sine(x):
    return lax.sin(x)


sine.defvjp(lambda x: (lax.sin(x), x), lambda x, ct: (5.0 * lax.cos(x) * ct,), optimize_remat=True)


def divided(r, x):
    return linear_call(lambda r, x: x / r, lambda r, ct: 10.0 * ct / r, r, x)


PROGRAMS = {
    "vmap": (lambda x: cj.vmap(product)(x, x), 10 * np.sin(X) * X),
    "not mapped": (lambda x: product(x, 2.0), 2 * np.sin(X)),
    "grad": (lambda x: cj.grad(lambda x: product(x, 2.0).sum())(x), 2 * np.cos(X)),
    "vmap(grad)": (lambda x: cj.vmap(cj.grad(product))(x, x), 10 * np.cos(X) * X),
    "vmap beside a sum over the devices": (lambda x: cj.vmap(lambda a: product(a, lax.psum(a, "x")))(x),
                                           10 * np.sin(X) * X.sum()),
    "sequential": (lambda x: cj.vmap(sequential_vmap(lambda x: lax.cond(x > 1.0, lambda: x, lambda: -x)))(x),
                   np.where(X > 1, X, -X)),
    "linear": (lambda x: cj.grad(lambda x: divided(2.0, x).sum())(x), np.full(8, 5.0)),
    "checkpoint": (lambda x: cj.grad(lambda x: cj.checkpoint(sine)(x).sum())(x), 5 * np.cos(X)),
    "custom_gradient": (lambda x: cj.grad(lambda x: cj.custom_gradient(
        lambda x: (x, lambda ct: ct * lax.sin(x)))(x).sum())(x), np.sin(X)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_rules_hold_in_what_each_device_runs(line, name):
    program, expected = PROGRAMS[name]
    on_devices = cj.shard_map(program, mesh=line, in_specs=P("x"), out_specs=P("x"))
    np.testing.assert_allclose(on_devices(X), expected, rtol=1e-12)
    np.testing.assert_allclose(cj.jit(on_devices)(X), expected, rtol=1e-12)


def test_the_whole_is_differentiated():
    for program, expected in ((lambda x: product(x, 2.0), 2 * np.cos(X)), (lambda x: divided(2.0, x), np.full(8, 5.0)),
                              (lambda x: cj.checkpoint(sine)(x), 5 * np.cos(X))):
        mesh = cj.make_mesh((4,), ("x",))
        whole = cj.shard_map(program, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
        np.testing.assert_allclose(cj.grad(lambda x, f=whole: f(x).sum())(X), expected, rtol=1e-12)
