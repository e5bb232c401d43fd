"""`grad`, `jvp`, `vjp`, `linearize` and the Jacobians: arguments, structures, aux, integers, complex numbers."""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxIndexError, CorejaxTypeError, CorejaxValueError, LeakedTracerError

X = np.array([0.5, -1.0, 2.0])
PARAMS = {"w": X, "b": (1.5, {"c": np.float64(2.0)})}


def loss(params, x):
    return (params["w"] * x).sum() * params["b"][0] + params["b"][1]["c"] * x


def model(params, x):
    return {"y": params["w"] * x, "z": params["b"][0] * x * x}


# grad

def test_the_gradient_has_the_structure_of_its_argument():
    g = cj.grad(loss)(PARAMS, 2.0)
    np.testing.assert_allclose(g["w"], 3.0 * np.ones(3))
    assert (3.0, 2.0) == (float(g["b"][0]), float(g["b"][1]["c"]))
    assert g["w"].dtype == np.float64 and cj.tree.structure(g) == cj.tree.structure(PARAMS)


def test_argnums_choose_the_arguments():
    def f(x, y, z):
        return x * y * z

    assert 6.0 == float(cj.grad(f)(1.0, 2.0, 3.0))
    assert 2.0 == float(cj.grad(f, 2)(1.0, 2.0, 3.0)) == float(cj.grad(f, argnums=-1)(1.0, 2.0, 3.0))
    assert (6.0, 2.0) == tuple(map(float, cj.grad(f, (0, 2))(1.0, 2.0, 3.0)))
    assert (2.0, 6.0) == tuple(map(float, cj.grad(f, [2, 0])(1.0, 2.0, 3.0)))
    (g,) = cj.grad(f, (1,))(1.0, 2.0, z=3.0)
    assert 3.0 == float(g)
    assert () == cj.grad(f, ())(1.0, 2.0, 3.0)


def test_arguments_that_are_not_differentiated_are_left_alone():
    seen = []

    def f(x, n, text, *, flag):
        seen.append((n, text, flag))
        for _ in range(n):
            x = x * 2.0
        return x

    assert 8.0 == float(cj.grad(f)(1.0, 3, "text", flag=None))
    assert [(3, "text", None)] == seen


def test_value_and_grad_gives_both():
    value, gradient = cj.value_and_grad(lambda x: (x * x).sum())(X)
    np.testing.assert_allclose((X * X).sum(), value)
    np.testing.assert_allclose(2 * X, gradient)


def test_aux_is_handed_on():
    def f(x):
        y = x * x
        return y.sum(), {"y": y, "text": "aux", "n": 3}

    g, aux = cj.grad(f, has_aux=True)(X)
    np.testing.assert_allclose(2 * X, g)
    np.testing.assert_allclose(X * X, aux["y"])
    assert ("text" in aux, 3) == (True, aux["n"])
    (value, aux), g = cj.value_and_grad(f, has_aux=True)(X)
    assert type(aux["y"]) is cj.Array and type(value) is cj.Array
    y, pullback, aux = cj.vjp(f, X, has_aux=True)
    np.testing.assert_allclose(2 * X, pullback(1.0)[0])
    y, y_dot, aux = cj.jvp(f, (X,), (X,), has_aux=True)
    np.testing.assert_allclose(X * X, aux["y"])
    y, f_lin, aux = cj.linearize(f, X, has_aux=True)
    np.testing.assert_allclose((2 * X * X).sum(), f_lin(X))
    assert "aux" == aux["text"]


def test_aux_can_be_used_under_an_outer_transformation():
    def f(x):
        return cj.grad(lambda x: (x * x, x * x * x), has_aux=True)(x)[1]

    assert 12.0 == float(cj.grad(f)(2.0)) == float(cj.jit(cj.grad(f))(2.0))
    np.testing.assert_allclose(X ** 3, cj.vmap(f)(X))


def test_python_control_flow_on_values_works_under_grad():
    def f(x):
        return x * x if x > 0.0 else -x

    assert [4.0, -1.0] == [float(cj.grad(f)(2.0)), float(cj.grad(f)(-2.0))]


def test_a_constant_function_has_gradient_zero():
    assert 0.0 == float(cj.grad(lambda x: 1.0)(2.0))
    np.testing.assert_array_equal(np.zeros(3), cj.grad(lambda x: lax.full((), 2.0))(X))


def test_integers_have_float0_gradients_if_allowed():
    g = cj.grad(lambda n, x: n * x, argnums=(0, 1), allow_int=True)(3, 2.0)
    assert cj.float0 == g[0].dtype and () == g[0].shape and 3.0 == float(g[1])
    with pytest.raises(CorejaxTypeError, match=r"grad: args\[0\] has an integer or boolean type") as caught:
        cj.grad(lambda n: n * 2.0)(3)
    assert "~i64[]" == caught.value.got and "test_api_autodiff.py" in caught.value.where
    with pytest.raises(CorejaxTypeError, match=r"args\[1\]\['n'\]"):
        cj.grad(lambda x, d: x * d["n"], argnums=1)(1.0, {"n": np.int32(3)})


def test_complex_values_need_holomorphic():
    f = cj.grad(lambda z: z * z, holomorphic=True)
    assert 2 + 4j == complex(f(1 + 2j))
    with pytest.raises(CorejaxTypeError, match="grad: the function's value is complex.*\n(.*\n)*.*holomorphic=True"):
        cj.grad(lambda z: z * z)(1 + 2j)
    with pytest.raises(CorejaxTypeError, match="with holomorphic=True the inputs must be complex"):
        f(1.0)
    with pytest.raises(CorejaxTypeError, match="with holomorphic=True the value must be complex"):
        cj.grad(lambda z: z.real, holomorphic=True)(1 + 2j)


@pytest.mark.parametrize(("out", "got"), [
    (lambda x: x, r"f64\[3\]"), (lambda x: (x.sum(), 1.0), "a tuple"), (lambda x: None, "None"),
    (lambda x: [x], "a list"),
])
def test_the_value_must_be_a_scalar(out, got):
    with pytest.raises(CorejaxTypeError, match="grad: the function's value is not a scalar") as caught:
        cj.grad(out)(X)
    caught.match(f"got: +{got}")


def test_integer_values_have_no_gradient():
    with pytest.raises(CorejaxTypeError, match="value has an integer or boolean type"):
        cj.grad(lambda x: x > 0.0)(1.0)


def test_wrong_argnums():
    with pytest.raises(CorejaxIndexError, match="there is no argument number 2"):
        cj.grad(lambda x, y: x, argnums=2)(1.0, 2.0)
    with pytest.raises(IndexError, match="there is no argument number 0"):
        cj.grad(lambda x: x)(x=1.0)
    with pytest.raises(CorejaxTypeError, match="argnums must be positions"):
        cj.grad(lambda x: x, argnums="x")
    with pytest.raises(CorejaxTypeError, match="argnums must be positions"):
        cj.grad(lambda x: x, argnums=True)
    with pytest.raises(CorejaxValueError, match="the same argument twice"):
        cj.grad(lambda x, y: x, argnums=(0, -2))(1.0, 2.0)


def test_arguments_that_are_no_arrays_are_named():
    with pytest.raises(CorejaxTypeError, match=r"grad: args\[1\]\['w'\] is a str, not an array"):
        cj.grad(lambda x, d: x, argnums=1)(1.0, {"w": "text"})
    with pytest.raises(CorejaxTypeError, match=r"vjp: primals\[0\]\[1\] is a str, not an array"):
        cj.vjp(lambda x: x, (1.0, "text"))
    with pytest.raises(CorejaxTypeError, match=r"jvp: result\['a'\] is a set, not an array"):
        cj.jvp(lambda x: {"a": {1}}, (1.0,), (1.0,))


def test_arrays_that_can_not_be_computed_with_are_named():
    for value, match in ((np.array(["a"]), "dtype <U1"), (np.array([None]), "dtype object"),
                         (np.ma.array([1.0], mask=[True]), "masked array")):
        with pytest.raises(CorejaxTypeError, match=rf"grad: args\[0\]\['k'\]: .*{match}"):
            cj.grad(lambda d: d["k"])({"k": value})


def test_aux_must_be_a_pair():
    with pytest.raises(CorejaxTypeError, match=r"grad: with has_aux=True the function must return a pair"):
        cj.grad(lambda x: x, has_aux=True)(1.0)
    with pytest.raises(CorejaxTypeError, match="must return a pair"):
        cj.vjp(lambda x: (x, x, x), 1.0, has_aux=True)


@pytest.mark.parametrize("transform", [cj.jit, cj.grad, cj.value_and_grad, cj.vmap, cj.jacfwd, cj.jacrev, cj.hessian,
                                       cj.make_jaxpr, lambda f: cj.vjp(f, 1.0), lambda f: cj.linearize(f, 1.0),
                                       lambda f: cj.jvp(f, (1.0,), (1.0,)), lambda f: cj.eval_shape(f, 1.0),
                                       lambda f: cj.linear_transpose(f, 1.0)])
def test_what_is_no_function_is_refused(transform):
    with pytest.raises(CorejaxTypeError, match="expected a function") as caught:
        transform(3.0)
    assert "a float: 3.0" == caught.value.got


def test_names_and_docs_are_kept_but_not_attributes():
    @cj.jit
    def f(x):
        """The doc."""
        return x

    for g in (cj.grad(f), cj.value_and_grad(f), cj.vmap(f), cj.jacfwd(f), cj.make_jaxpr(f)):
        assert ("f", "The doc.") == (g.__name__, g.__doc__)
        assert not hasattr(g, "lower") and g.__wrapped__ is f


# vjp

def test_the_pullback_returns_one_cotangent_for_each_primal():
    y, pullback = cj.vjp(model, PARAMS, 2.0)
    np.testing.assert_allclose(2 * X, y["y"])
    params_bar, x_bar = pullback({"y": np.ones(3), "z": 1.0})
    np.testing.assert_allclose(2 * np.ones(3), params_bar["w"])
    assert (4.0, 0.0) == (float(params_bar["b"][0]), float(params_bar["b"][1]["c"]))
    np.testing.assert_allclose(X.sum() + 2 * 1.5 * 2.0, x_bar)


def test_the_pullback_may_be_applied_again_and_transformed():
    _, pullback = cj.vjp(lambda x: x * x, X)
    for ct in (np.ones(3), X):
        np.testing.assert_allclose(2 * X * ct, pullback(ct)[0])
    np.testing.assert_allclose(2 * np.diag(X), cj.vmap(pullback)(np.eye(3))[0])
    np.testing.assert_allclose(2 * X, cj.jit(pullback)(np.ones(3))[0])
    np.testing.assert_allclose(2 * X, cj.grad(lambda ct: pullback(ct)[0].sum())(np.ones(3)))


def test_arrays_given_to_vjp_may_change_afterwards():
    x = X.copy()
    y, pullback = cj.vjp(lambda x: x * x, x)
    _, f_lin = cj.linearize(lambda x: x * x, x)
    x[:] = 0.0
    np.testing.assert_allclose(2 * X, pullback(np.ones(3))[0])
    np.testing.assert_allclose(2 * X, f_lin(np.ones(3)))
    np.testing.assert_allclose(X * X, y)


@pytest.mark.parametrize(("ct", "match"), [
    ({"y": np.ones(2), "z": 1.0}, r"the cotangent\['y'\] doesn't fit the output"),
    ({"y": np.ones(3, np.float32), "z": 1.0}, r"the cotangent\['y'\] doesn't fit the output"),
    ({"y": np.ones(3), "z": 1}, r"the cotangent\['z'\] doesn't fit the output"),
    ({"y": np.ones(3), "z": "text"}, r"the cotangent\['z'\] is a str"),
    ({"y": np.ones(3)}, r"doesn't have the structure of the output"),
    ((np.ones(3), 1.0), "doesn't have the structure of the output"),
    (np.ones(3), "doesn't have the structure of the output"),
])
def test_cotangents_must_fit_the_output(ct, match):
    _, pullback = cj.vjp(model, PARAMS, 2.0)
    with pytest.raises(CorejaxTypeError, match=match):
        pullback(ct)


def test_cotangents_of_integer_outputs_are_float0():
    (y, n), pullback = cj.vjp(lambda x: (x * x, x > 0.0), 3.0)
    assert 6.0 == float(pullback((1.0, np.zeros((), cj.float0)))[0])


def test_integer_primals_get_float0_cotangents():
    _, pullback = cj.vjp(lambda n, x: n * x, 3, 2.0)
    n_bar, x_bar = pullback(1.0)
    assert (cj.float0, 3.0) == (n_bar.dtype, float(x_bar))


# jvp and linearize

def test_jvp_of_pytrees():
    tangents = cj.tree.map(lambda x: np.ones_like(x), PARAMS)
    y, y_dot = cj.jvp(model, (PARAMS, 2.0), (tangents, 0.0))
    np.testing.assert_allclose(2 * np.ones(3), y_dot["y"])
    assert 4.0 == float(y_dot["z"])


def test_integer_primals_have_float0_tangents():
    y, y_dot = cj.jvp(lambda n, x: n * x, (3, 2.0), (np.zeros((), cj.float0), 1.0))
    assert (6.0, 3.0) == (float(y), float(y_dot))
    y, y_dot = cj.jvp(lambda x: x > 0.0, (2.0,), (1.0,))
    assert cj.float0 == y_dot.dtype
    with pytest.raises(CorejaxTypeError, match=r"jvp: tangents\[0\] doesn't fit its primal.*\n(.*\n)*.*float0"):
        cj.jvp(lambda n, x: n * x, (3, 2.0), (1, 1.0))


@pytest.mark.parametrize(("primals", "tangents", "match"), [
    (1.0, (1.0,), "jvp: primals must be a sequence"), ((1.0,), 1.0, "jvp: tangents must be a sequence"),
    ((1.0,), (1.0, 2.0), "tangents doesn't have the structure of primals, at tangents\n"),
    (({"a": 1.0},), ({"b": 1.0},), r"at tangents\[0\]"), ((X,), (X[:2],), r"tangents\[0\] doesn't fit its primal"),
    ((1.0,), (1,), r"tangents\[0\] doesn't fit its primal"), ((X,), (None,), r"at tangents\[0\]"),
    ((np.float32(1.0),), (np.float64(1.0),), r"tangents\[0\] doesn't fit its primal"),
])
def test_tangents_must_fit_the_primals(primals, tangents, match):
    with pytest.raises(CorejaxTypeError, match=match):
        cj.jvp(lambda x: x, primals, tangents)


def test_linearize_evaluates_once():
    calls = []

    def f(x):
        calls.append(x)
        return lax.sin(x) * x

    y, f_lin = cj.linearize(f, X)
    for t in (np.ones(3), X):
        np.testing.assert_allclose((np.cos(X) * X + np.sin(X)) * t, f_lin(t))
    assert 1 == len(calls)
    np.testing.assert_allclose(np.diag(np.cos(X) * X + np.sin(X)), cj.vmap(f_lin)(np.eye(3)))
    with pytest.raises(CorejaxTypeError, match=r"linearize: tangents\[0\] doesn't fit"):
        f_lin(1.0)
    with pytest.raises(CorejaxTypeError, match="doesn't have the structure"):
        f_lin(X, X)


def test_linear_transpose():
    x = cj.ShapeDtypeStruct((3,), float)
    transpose = cj.linear_transpose(lambda x, y: {"s": 2.0 * x, "t": x.sum() + y}, x, 1.0)
    x_bar, y_bar = transpose({"s": X, "t": 10.0})
    np.testing.assert_allclose(2 * X + 10.0, x_bar)
    assert 10.0 == float(y_bar)
    with pytest.raises(NotImplementedError):
        cj.linear_transpose(lax.sin, 1.0)(1.0)


@pytest.mark.parametrize(("fun", "primal", "got"), [
    (lambda n: n * 2.0, 3, "~i64[] at primals[0] and ~f64[] at the result"),
    (lambda x: x.astype(int), X, "f64[3] at primals[0] and i64[3] at the result"),
    (lambda x: (x, 3), 1.0, "~f64[] at primals[0] and ~i64[] at the result"),
    (lambda p: p, np.True_, "bool[] at primals[0] and bool[] at the result"),
])
def test_linear_transpose_takes_floats_or_integers_alone(fun, primal, got):
    with pytest.raises(CorejaxTypeError, match="floats and complex numbers, or of integers alone") as caught:
        cj.linear_transpose(fun, primal)
    assert got == caught.value.got


def test_the_transpose_of_a_function_of_integers_is_a_pytree():
    transpose = cj.jit(lambda m: cj.linear_transpose(lambda n: m * n, 1))(3)
    assert [12] == cj.jit(lambda f, ct: f(ct))(transpose, 4)[0].reshape(1).tolist()


def test_what_rounds_has_a_transpose_of_zeros():
    np.testing.assert_array_equal(np.zeros(3), cj.linear_transpose(lambda x: x.astype(int).astype(float), X)(X)[0])


def test_perturbations_are_not_confused():
    assert 1.0 == float(cj.grad(lambda x: x * cj.grad(lambda y: x + y)(1.0))(2.0))
    assert 2.0 == float(cj.grad(lambda x: x * cj.jvp(lambda y: x * y, (3.0,), (1.0,))[1] / 1.0)(1.0))


def test_leaked_tracers_are_refused():
    leaked = []
    cj.grad(lambda x: leaked.append(x) or x)(1.0)
    with pytest.raises(LeakedTracerError):
        leaked[0] + 1.0
    with pytest.raises(LeakedTracerError):
        cj.grad(lambda x: x * leaked[0])(1.0)


# Jacobians

@pytest.mark.parametrize("jac", [cj.jacfwd, cj.jacrev])
def test_jacobians_of_arrays(jac):
    a = np.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(a, jac(lambda x: a @ x)(X))
    outer = jac(lambda x: x[:, None] * x[None, :])(X)
    wanted = np.einsum("ik,j->ijk", np.eye(3), X) + np.einsum("jk,i->ijk", np.eye(3), X)
    np.testing.assert_allclose(wanted, outer)
    assert 6.0 == float(jac(lambda x: x * x)(3.0))


@pytest.mark.parametrize("jac", [cj.jacfwd, cj.jacrev])
def test_jacobians_of_pytrees(jac):
    j = jac(model, argnums=(0, 1))(PARAMS, 2.0)
    np.testing.assert_allclose(2 * np.eye(3), j["y"][0]["w"])
    np.testing.assert_allclose(X, j["y"][1])
    np.testing.assert_allclose(np.zeros(3), j["z"][0]["w"])
    assert (4.0, 6.0) == (float(j["z"][0]["b"][0]), float(j["z"][1]))
    assert (3,) == j["y"][0]["b"][1]["c"].shape


@pytest.mark.parametrize("jac", [cj.jacfwd, cj.jacrev])
def test_jacobians_with_aux_and_complex(jac):
    j, aux = jac(lambda x: (x * x, {"twice": 2.0 * x, "n": 1}), has_aux=True)(X)
    np.testing.assert_allclose(np.diag(2 * X), j)
    np.testing.assert_allclose(2 * X, aux["twice"])
    z = np.array([1 + 2j, 3 - 1j])
    np.testing.assert_allclose(np.diag(2 * z), jac(lambda z: z * z, holomorphic=True)(z))
    with pytest.raises(CorejaxTypeError, match="complex|real derivative"):
        jac(lambda z: z * z)(z)
    with pytest.raises(CorejaxTypeError, match=r"args\[0\] has an integer"):
        jac(lambda n: n * 1.0)(3)


def test_jacrev_of_integers_gives_float0():
    j = cj.jacrev(lambda n, x: n * x, argnums=(0, 1), allow_int=True)(np.array([1, 2, 3]), X)
    assert ((3, 3), cj.float0) == (j[0].shape, j[0].dtype)
    np.testing.assert_allclose(np.diag([1.0, 2.0, 3.0]), j[1])


def test_hessian():
    h = cj.hessian(lambda x: (x * x * x).sum() + x[0] * x[1])(X)
    wanted = np.diag(6 * X)
    wanted[0, 1] = wanted[1, 0] = 1.0
    np.testing.assert_allclose(wanted, h)
    np.testing.assert_allclose(wanted, cj.jit(cj.hessian(lambda x: (x * x * x).sum() + x[0] * x[1]))(X))


def test_whatever_array_is_given_for_the_cotangent_of_an_integer_has_no_effect():
    out, pullback = cj.vjp(lambda x: {"loss": x * 2.0, "step": lax.full((2,), 3), "last": x > 0.0}, 1.0)
    none = np.zeros(2, cj.float0), np.zeros((), cj.float0)
    for step, last in ((out["step"], out["last"]), (np.zeros(2), 0), none):
        assert (2.0,) == pullback({"loss": 1.0, "step": step, "last": last})
    with pytest.raises(CorejaxTypeError, match="doesn't fit the output"):
        pullback({"loss": 1.0, "step": np.zeros(3), "last": 0})
    with pytest.raises(CorejaxTypeError, match="doesn't fit its primal"):
        cj.jvp(lambda n: n, (2,), (1,))
    assert cj.jacobian is cj.jacrev


def test_arrays_of_float0_are_filled_with_the_one_value_that_there_is():
    gradients = cj.grad(lambda n, x: n * x, (0, 1), allow_int=True)(np.arange(3)[1], 2.0)
    zeros = cj.tree.map(cj.numpy.zeros_like, gradients)
    assert (cj.float0, ()) == (zeros[0].dtype, zeros[0].shape) and 0.0 == zeros[1]
    for made in (lax.full((2,), 0, cj.float0), cj.jit(lambda: lax.full((2,), 0, cj.float0))(),
                 cj.numpy.zeros((2,), cj.float0), cj.numpy.ones_like(np.zeros(2, cj.float0)),
                 lax.full_like(np.zeros(2, cj.float0), 0)):
        assert (cj.float0, (2,)) == (made.dtype, made.shape)
