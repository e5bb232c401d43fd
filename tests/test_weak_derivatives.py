"""A derivative is weakly typed where the value it belongs to is: gradients as the argument, tangents as the output."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax

TREE = {"a": 1.5, "b": np.float32(2.0), "c": np.ones(3)}


def power(c: float, x: Any, lib: Any) -> Any:
    return lib.scan(lambda carry, _: (carry * x, None), c, None, length=3)[0]


# Each takes the module of transformations and its lax, so that jax can be asked too.
DERIVATIVES = {
    "grad": lambda cj, lax: cj.grad(lax.sin)(0.1),
    "grad of a strong one": lambda cj, lax: cj.grad(lax.sin)(np.float64(0.1)),
    "grad of grad": lambda cj, lax: cj.grad(cj.grad(lax.sin))(0.1),
    "jit of grad": lambda cj, lax: cj.jit(cj.grad(lax.sin))(0.1),
    "grad of jit": lambda cj, lax: cj.grad(cj.jit(lax.sin))(0.1),
    "vmap of grad": lambda cj, lax: cj.vmap(cj.grad(lax.sin), in_axes=None, axis_size=3)(0.1),
    "grad through a scan": lambda cj, lax: cj.grad(lambda x: power(1.0, x, lax))(0.3),
    "grad through a strong scan": lambda cj, lax: cj.grad(lambda x: power(1.0, x, lax))(np.float32(0.3)),
    "grad of a constant": lambda cj, lax: cj.grad(lambda x: 1.0)(0.3),
    "grad by complex numbers": lambda cj, lax: cj.grad(lambda z: z * z, holomorphic=True)(1 + 2j),
    "grad by integers": lambda cj, lax: cj.grad(lambda n: n * 1.0, allow_int=True)(3),
    "value_and_grad of a tree": lambda cj, lax: cj.value_and_grad(
        lambda t: lax.sin(t["a"]) * t["b"].astype("float64") * t["c"].sum())(TREE),
    "jvp": lambda cj, lax: cj.jvp(lax.sin, (0.1,), (1.0,)),
    "jvp with a strong output": lambda cj, lax: cj.jvp(lambda x: x * np.ones(2), (0.1,), (1.0,)),
    "jvp with integers": lambda cj, lax: cj.jvp(lambda x: (x * 1, (x * 0 + 3).astype(int)), (0.1,), (1.0,)),
    "linearize": lambda cj, lax: cj.linearize(lambda x, y: (lax.sin(x), x * y), 0.1, np.ones(2))[1](1.0, np.ones(2)),
    "vjp": lambda cj, lax: cj.vjp(lambda x, y: lax.sin(x) * y, 0.1, np.float64(2.0))[1](1.0),
    "linear_transpose": lambda cj, lax: cj.linear_transpose(lambda x: 3.0 * x, 1.0)(2.0),
    "jacfwd": lambda cj, lax: cj.jacfwd(lambda x, y: (lax.sin(x), x * y, y * 1.0), (0, 1))(2.0, np.ones(2)),
    "jacrev": lambda cj, lax: cj.jacrev(lambda x, y: (lax.sin(x), x * y, y * 1.0), (0, 1))(2.0, np.ones(2)),
    "hessian": lambda cj, lax: cj.hessian(lambda x: x**3)(2.0),
    "hessian of two": lambda cj, lax: cj.hessian(lambda x, y: x**2 * y**2, (0, 1))(2.0, np.float64(3.0)),
    "jit of hessian": lambda cj, lax: cj.jit(cj.hessian(lambda x: x**3))(2.0),
}


def types(tree: Any, flatten: Any) -> list[Any]:
    return [(x.shape, str(x.dtype), getattr(x, "weak_type", False)) for x in flatten(tree)]


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_are_weak_where_jax_has_them_weak(name: str) -> None:
    jax = pytest.importorskip("jax")
    derivative = DERIVATIVES[name]
    expected = types(derivative(jax, jax.lax), jax.tree.leaves)
    assert expected == types(derivative(cj, lax), cj.tree.leaves)


@pytest.mark.parametrize(("expected", "derivative"), [
    (True, lambda: cj.grad(lax.sin)(0.1)), (False, lambda: cj.grad(lax.sin)(np.float64(0.1))),
    (True, lambda: cj.vjp(lax.sin, 0.1)[1](np.float64(1.0))[0]), (True, lambda: cj.jvp(lax.sin, (0.1,), (1.0,))[1]),
    (False, lambda: cj.jvp(lambda x: x * np.ones(2), (0.1,), (1.0,))[1]),
    (True, lambda: cj.linearize(lax.sin, 0.1)[1](1.0)), (True, lambda: cj.jacfwd(lax.sin)(0.1)),
    (True, lambda: cj.jacrev(lambda x: x * np.ones(2))(0.1)), (True, lambda: cj.hessian(lax.sin)(0.1)),
    (False, lambda: cj.jacfwd(lambda x: x * np.ones(2))(0.1)),
    (False, lambda: cj.grad(lambda n: n * 1.0, allow_int=True)(3)),
])
def test_a_derivative_is_weak_where_what_it_belongs_to_is(expected: bool, derivative: Any) -> None:
    assert expected is derivative().weak_type


def test_a_step_by_a_weak_gradient_keeps_the_parameters_type() -> None:
    slope = cj.grad(lambda rate: rate * rate)
    w = cj.device_put(np.ones(2, np.float32))
    assert "float32" == (w - 0.1 * slope(0.1)).dtype.name
    assert "float32" == cj.jit(lambda w: w - 0.1 * slope(0.1))(w).dtype.name
    last, _ = lax.scan(lambda c, _: (c - 0.5 * slope(0.25), None), np.float32(1.0), None, length=2)
    assert (np.float32(0.5), "float32") == (last, last.dtype.name)


def test_descent_from_a_python_float_stays_weak_and_is_compiled_once() -> None:
    traced = []

    @cj.jit
    def step(x: Any) -> Any:
        traced.append(x.aval)
        return x - 0.5 * cj.grad(lambda x: x * x)(x)

    x: Any = 3.0
    for _ in range(3):
        x = step(x)
    assert (1, True, 0.0) == (len(traced), x.weak_type, float(x))


def test_a_weak_gradient_on_a_device_stays_there() -> None:
    given = cj.jit(lambda: lax.full((3,), 2.0))()
    assert given.weak_type
    (back,) = cj.vjp(lambda x: x, given)[1](given.astype("float64"))
    assert back.weak_type and not back.is_deleted()
    assert [2.0, 2.0, 2.0] == back.tolist()
