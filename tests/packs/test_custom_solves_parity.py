"""The same solves, roots, platforms and composites on jax: values, tangents, gradients, maps, and types."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

import corejax as cj
from corejax import lax

jax = pytest.importorskip("jax")

RNG = np.random.default_rng(5)
A, B, V = np.eye(3) * 3.0 + RNG.uniform(-0.5, 0.5, (3, 3)), RNG.standard_normal(3), RNG.standard_normal(3)
AS, BS = np.stack([A, A + np.eye(3)]), np.stack([B, -B])


def programs(L):
    """Functions of a matrix and a vector, written once for both libraries; L is their lax."""
    def jacobi(matvec, b):
        return L.fori_loop(0, 40, lambda _, x: x + (b - matvec(x)) / 3.0, b * 0.0)

    def general(a, b):
        return L.custom_linear_solve(lambda x: L.dot(a, x), b, jacobi, jacobi)

    def symmetric(a, b):
        c = a + L.transpose(a, (1, 0))
        return L.custom_linear_solve(lambda x: L.dot(c, x) / 2.0, L.sin(b), jacobi, symmetric=True)

    def forward_only(a, b):
        return L.custom_linear_solve(lambda x: a[0, 0] * x, b, lambda _, b: b / a[0, 0])

    def of_a_tree(a, b):
        def solve(matvec, b):
            return {"p": b["p"] / a[0], "q": (b["q"][0] / 2.0,)}, b["p"].sum()
        x, aux = L.custom_linear_solve(lambda x: {"p": x["p"] * a[0], "q": (2.0 * x["q"][0],)},
                                       {"p": b, "q": (b[1],)}, solve, solve, has_aux=True)
        return x["p"] * x["q"][0], aux

    def root(a, b):
        def newton(f, x):
            return L.fori_loop(0, 30, lambda _, x: x - f(x) / (3.0 * x * x + 1.0), x)

        def solve(g, y):
            return y / g(np.ones(3))
        c = L.dot(a, b)
        return L.custom_root(lambda x: x * x * x + x - c, b, newton, solve)

    def root_of_a_number(a, b):
        def solve(f, x):
            return L.while_loop(lambda x: L.abs(f(x)) > 1e-14, lambda x: x - f(x) / L.exp(x), x), b
        x, aux = L.custom_root(lambda x: L.exp(x) - 1.5 - b[0] * b[0] * a[1, 1], 0.5, solve,
                               lambda g, y: y / g(1.0), has_aux=True)
        return x * b, aux

    def solve_in_a_root(a, b):
        def solve(g, y):
            return L.custom_linear_solve(g, y, lambda _, y: y / (a[0] * 2.0), symmetric=True)
        return L.custom_root(lambda x: a[0] * 2.0 * x - L.sin(b), b, lambda f, x: L.sin(b) / (a[0] * 2.0), solve)

    def platform(a, b):
        return L.platform_dependent(a, b, cpu=lambda a, b: L.dot(a, L.sin(b)), default=lambda a, b: b)

    return [general, symmetric, forward_only, of_a_tree, root, root_of_a_number, solve_in_a_root, platform]


PAIRS = list(zip(programs(lax), programs(jax.lax), strict=True))


def transformed(api, f, a, b, many_a, many_b):
    """What every transformation that both have gives, by name."""
    def energy(a, b):
        return sum(((x * x).sum() for x in api.tree.leaves(f(a, b))), 0.0)

    def first(a, b):
        return api.jvp(f, (a, b), (a * 0.5, V))

    found = {
        "value": f(a, b), "jvp": first(a, b), "second": api.jvp(first, (a, b), (a, V)),
        "vmap b": api.vmap(f, (None, 0))(a, many_b), "vmap a": api.vmap(f, (0, None))(many_a, b),
        "vmap of jvp": api.vmap(lambda a, b: api.jvp(f, (a, b), (a, b)), (0, 1))(many_a, many_b.T),
    }
    if f.__name__ in ("forward_only", "of_a_tree"):  # jax stumbles over the reverse mode of the second
        return found
    return found | {
        "grad": api.grad(api.jit(energy), (0, 1))(a, b), "hessian": api.jacfwd(api.grad(energy, 1), 1)(a, b),
        "reverse over reverse": api.jacrev(api.grad(energy, 1), 0)(a, b),
        "vmap of grad": api.vmap(api.grad(energy, (0, 1)))(many_a, many_b),
        "checkpoint": api.grad(api.checkpoint(energy), (0, 1))(a, b),
    }


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=[ours.__name__ for ours, _ in PAIRS])
def test_transformations_agree_with_jax(ours, theirs):
    found, wanted = [api.jit(partial(transformed, api, f))(A, B, AS, BS) for api, f in ((cj, ours), (jax, theirs))]
    for name, expected in wanted.items():
        for x, y in zip(cj.tree.leaves(found[name]), jax.tree.leaves(expected), strict=True):
            assert (y.shape, y.dtype) == (x.shape, x.dtype), name
            assert_allclose(x, y, rtol=1e-8, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("value", [True, 3, 0.5, "log", np.float32(1), np.arange(3), [1, 2], (1.0, "a"), {"a": 1}, None,
                                   []], ids=str)
def test_a_composite_is_lowered_as_jax_lowers_it(value):
    texts = []
    for api in (cj, jax):
        f = api.lax.composite(lambda x, *, k, L=api.lax: L.sin(x), "test.f", version=2)
        lowered = api.jit(lambda x, f=f: f(x, k=value)).lower(1.0).as_text()
        texts.append([re.sub(r"%\w+", "%", line).strip() for line in lowered.splitlines() if "composite" in line])
    assert texts[1] == texts[0]


def test_float_bounds_and_sizes_of_numpy_as_in_jax():
    for api in (cj, jax):
        L = api.lax
        assert [3, 3.0, 4.5, 2, 6.0] == [float(x) for x in (
            L.fori_loop(0.0, 3.0, lambda i, c: c + i, 0),
            api.jit(lambda n, L=L: L.fori_loop(0.0, n, lambda i, c: c + i, 0.0))(3.0),
            api.jit(lambda n, L=L: L.fori_loop(0.5, n, lambda i, c: c + i, 0.0))(3.0),
            L.switch(np.int8(1), [lambda: 1, lambda: 2]),
            L.scan(lambda c, x: (c + x, x), 0.0, np.arange(4.0), length=np.int64(4), unroll=np.int64(2))[0])]


# Arrays of jax as operands

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
