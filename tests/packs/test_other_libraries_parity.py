"""Arrays of jax and of other libraries as operands, and objects that stand for an array."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import corejax as cj
from corejax import lax

jax = pytest.importorskip("jax")


class StandsForAnArray:
    def __jax_array__(self):
        return jax.numpy.arange(3.0)


class OnlyDLPack:
    def __dlpack__(self, **options):
        return np.arange(3.0).__dlpack__(**options)

    def __dlpack_device__(self):
        return np.arange(3.0).__dlpack_device__()


@pytest.mark.parametrize("x", [jax.numpy.arange(3.0), StandsForAnArray(), OnlyDLPack()],
                         ids=lambda x: type(x).__name__)
def test_arrays_of_other_libraries_are_operands_as_parity_with_jax_wants(x):
    y = lax.sin(np.arange(3.0))
    for one, other in (
            (lax.sin(x), y), (lax.add(y, x), y + np.arange(3.0)), (y * x, y * np.arange(3.0)),
            (x * y, y * np.arange(3.0)), (cj.jit(lax.sin)(x), y), (cj.jit(lambda y: y * x)(y), y * np.arange(3.0)),
            (cj.vmap(lax.sin)(x), y), (cj.grad(lambda y: (y * x).sum())(y), np.arange(3.0)),
            (cj.grad(lambda x: (x * x).sum())(x), 2 * np.arange(3.0)), (cj.device_put(x), np.arange(3.0)),
            (lax.scan(lambda c, x: (c + x, c), 0.0, x)[0], 3.0), (lax.cond(True, lax.sin, lax.cos, x), y)):
        assert np.float64 == one.dtype
        assert_allclose(one, other, rtol=1e-15)


class StandsFor:
    """An object with `__jax_array__`, which counts its calls."""

    def __init__(self, array):
        self.array, self.calls = array, 0

    def __jax_array__(self):
        self.calls += 1
        return self.array


OPERATIONS = {
    "x + o": lambda L, x, o: x + o, "o - x": lambda L, x, o: o - x, "x < o": lambda L, x, o: x < o,
    "x @ o": lambda L, x, o: x @ o, "o ** x": lambda L, x, o: o ** x, "divmod": lambda L, x, o: divmod(x, o),
    "at": lambda L, x, o: x.at[:].set(o)}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("how", ["eager", "jit", "jvp"])
def test_what_stands_for_an_array_is_asked_once_by_operators_as_in_jax(name, how):
    found = []
    for api in (cj, jax):
        made = []

        def f(x, api=api, made=made):
            made.append(StandsFor(x * 2.0))
            return OPERATIONS[name](api.lax, x, made[0])

        x = api.device_put(np.arange(1.0, 4.0))
        out = f(x) if how == "eager" else api.jit(f)(x) if how == "jit" else api.jvp(f, (x,), (x,))
        assert [1] == [one.calls for one in made]
        found.append(api.tree.leaves(out))
    for mine, theirs in zip(*found, strict=True):
        if theirs.dtype != jax.dtypes.float0:
            assert_allclose(mine, theirs, rtol=1e-14)


MORE = {
    "sin": lambda o: lax.sin(o), "accuracy": lambda o: lax.exp(o, accuracy=None), "add": lambda o: lax.add(1.0, o),
    "concatenate": lambda o: lax.concatenate([o, np.ones(2)], dimension=0), "named": lambda o: lax.sort(operand=o),
    "cumsum": lambda o: lax.cumsum(o), "bind": lambda o: lax.neg_p.bind(o), "clip": lambda o: lax.sin(o.array).clip(o),
    "expand_dims": lambda o: lax.expand_dims(o, (0,)), "scan": lambda o: lax.scan(lambda c, x: (c + x, c), 0.0, o),
    "jit": lambda o: cj.jit(lambda x: x[0] + 1.0)([o]), "grad": lambda o: cj.grad(lambda x: (x * x).sum())(o),
    "vmap": lambda o: cj.vmap(lax.sin)(o), "tangent": lambda o: cj.jvp(lax.sin, (np.ones(3),), (o,)),
    "cotangent": lambda o: cj.vjp(lax.sin, np.ones(3))[1](o), "result": lambda o: cj.jit(lambda x: (x, o))(1.0),
    "put": lambda o: cj.device_put({"a": o}), "compiled": lambda o: cj.jit(lax.sin).lower(np.ones(3)).compile()(o)}


@pytest.mark.parametrize("name", MORE)
def test_what_stands_for_an_array_is_asked_once_and_may_be_traced(name):
    def f(x):
        made.append(StandsFor(x))
        return MORE[name](made[-1])

    made, x = [], lax.sin(np.arange(3.0))
    out = f(x)
    if name != "compiled":  # such a program takes no traced arguments
        for one, *others in zip(*map(cj.tree.leaves, (out, cj.jvp(f, (x,), (x,))[0], cj.jit(f)(x))), strict=True):
            for other in others:
                assert_allclose(one, other, rtol=1e-15)
    assert [1] * len(made) == [one.calls for one in made]


@pytest.mark.parametrize("f", [
    lambda x, of: lax.sin(of(x)), lambda x, of: 2.0 * x + of(x * x), lambda x, of: x * of(x),
    lambda x, of: lax.mul(of(x), of(x)), lambda x, of: cj.jit(lax.cos)(of(x))])
def test_derivatives_go_through_what_stands_for_a_traced_array(f):
    x = np.arange(3.0)
    for transform in (lambda g: cj.vmap(cj.grad(g))(x), lambda g: cj.jit(cj.vmap(cj.hessian(g)))(x)):
        found, expected = [transform(lambda x, of=of: f(x, of)) for of in (StandsFor, lambda x: x)]
        assert_allclose(found, expected, rtol=1e-15)


class Refusing:
    def __jax_array__(self):
        return "no array"


class Endless:
    def __jax_array__(self):
        return self

    def __dlpack__(self):
        raise NotImplementedError


@pytest.mark.parametrize("x", [Refusing(), Endless()], ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("use", [lax.sin, lambda x: lax.sin(1.0) + x, lambda x: cj.jit(lax.sin)(x), cj.grad(lax.sin)])
def test_an_object_that_stands_for_no_array_is_refused_by_name(use, x):
    with pytest.raises(TypeError, match=f"__jax_array__ of an? {type(x).__name__} doesn't return an array"):
        use(x)


def test_indices_flags_and_small_floats_of_jax():
    rows, jnp = lax.sin(np.arange(3.0)), jax.numpy
    assert rows[1] == rows[jnp.array([1])][0] == rows.at[jnp.array(0)].set(rows[1])[0]
    assert 3 == lax.fori_loop(jnp.array(0), jnp.array(3), lambda i, c: c + i, 0)
    assert ("bfloat16", True) == (lax.neg(jnp.ones(2, jnp.bfloat16)).dtype, lax.sin(jnp.asarray(1.0)).weak_type)


def test_traced_and_deleted_arrays_of_jax_are_refused_by_name():
    with pytest.raises(TypeError, match="sin: operand 0(.|\n)*Tracer"):
        jax.jit(lax.sin)(1.0)
    x = jax.numpy.ones(3)
    x.delete()
    with pytest.raises(TypeError, match="sin: operand 0: the elements of this ArrayImpl can't be read"):
        lax.sin(x)


@pytest.mark.parametrize("use", [
    lambda f, x: lax.scan(lambda c, _: (f(c), None), x, None, length=2), lambda f, x: lax.map(f, x),
    lambda f, x: lax.while_loop(lambda c: c.sum() < 9.0, f, x), lambda f, x: lax.fori_loop(0, 2, lambda _, c: f(c), x),
    lambda f, x: lax.cond(True, f, lambda c: c, x), lambda f, x: cj.vmap(f)(x), lambda f, x: cj.jit(f)(x),
    lambda f, x: cj.vjp(f, x), lambda f, x: cj.linearize(f, x), lambda f, x: cj.make_jaxpr(f)(x),
    lambda f, x: cj.jit(lambda c: f(c + x))(1.0), lambda f, x: cj.vmap(lambda c: (f(c), x))(np.ones(2))])
def test_a_function_runs_once_beside_what_stands_for_an_array_as_for_jax(use):
    ran = []
    x = StandsFor(np.arange(3.0))

    def function(c):
        ran.append(c)
        return c + 1.0

    use(function, x)
    assert 1 == len(ran)
