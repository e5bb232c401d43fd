"""NumPy's protocols on tracers, with toy primitives and no pack: operators, tables, array methods, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from calculus import add, calculus, mul, neg, sin

from corejax.core import Array, ShapedArray, Tracer, from_array_like, stage
from corejax.errors import CorejaxTypeError
from corejax.interpreters import forward
from corejax.plugin import provide

X = np.array([0.5, 1.0, 2.0])


@pytest.fixture(autouse=True)
def _roles():
    with calculus():
        yield


def equations(function, shape=(3,)):
    closed = stage(lambda x: [function(x)], [ShapedArray(shape, np.float64)])
    return [eqn.primitive.name for eqn in closed.eqns]


@pytest.mark.parametrize("function", [
    lambda x: X + x, lambda x: x + X, lambda x: np.add(X, x), lambda x: np.add(x, X), lambda x: np.add(x, [1, 2, 3]),
    lambda x: np.float64(2) + x, lambda x: np.float32(2) + x, lambda x: np.ones((), np.float16) + x,
])
def test_an_ndarray_and_a_traced_value_meet_in_the_operators_role(function):
    with provide({"operators.add": lambda x, y: neg(x), "operators.radd": lambda x, y: neg(x)}):
        assert ["neg"] == equations(function)


def test_reflected_operators_keep_the_order():
    seen = []
    with provide({"operators.rsub": lambda x, y: seen.append(("rsub", y.tolist())) or x,
                  "operators.gt": lambda x, y: seen.append(("gt", y.tolist())) or x,
                  "operators.rmatmul": lambda x, y: seen.append(("rmatmul", y.tolist())) or x}):
        equations(lambda x: X - (X < (X @ x)))
    assert [("rmatmul", X.tolist()), ("gt", X.tolist()), ("rsub", X.tolist())] == seen


def test_unary_operators_come_to_roles():
    assert ["neg"] == equations(lambda x: np.negative(x))


def test_tables_are_asked_by_the_function_itself():
    def sine(x):
        return sin(x)

    with provide({"numpy_ufunc": {np.sin: sine}, "numpy_function": {np.stack: lambda arrays, axis=0: sine(arrays[0]),
                                                                    np.linalg.norm: lambda x, ord=None: mul(x, x)}}):
        assert ["sin"] == equations(lambda x: np.sin(x)) == equations(lambda x: np.stack([x, X]))
        assert ["mul"] == equations(lambda x: np.linalg.norm(x))
        with pytest.raises(CorejaxTypeError, match="np.cos has no counterpart"):
            equations(lambda x: np.cos(x))
        with pytest.raises(CorejaxTypeError, match=r"np.stack doesn't take these arguments(?s:.)*casting"):
            equations(lambda x: np.stack([x, X], casting="no"))


def test_an_array_method_of_the_same_name_answers_for_a_function_of_numpys():
    with provide({"operators.sort": lambda x, axis=-1: mul(x, x)}):
        assert ["mul"] == equations(lambda x: np.sort(x, axis=0))
        assert ["mul"] == equations(lambda x: np.sort(a=x))


@pytest.mark.parametrize("name, call", [
    ("np.sin", lambda x: np.sin(x)), ("np.sort", lambda x: np.sort(x)), ("np.linalg.det", lambda x: np.linalg.det(x)),
    ("np.add.reduce", lambda x: np.add.reduce(x)),
])
def test_without_a_pack_functions_are_refused_by_name(name, call):
    with pytest.raises(CorejaxTypeError, match=f"(?s){name} has no counterpart.*packs in use: none") as caught:
        equations(call, (3, 3))
    assert __file__ in caught.value.where


def test_nothing_is_written_in_place():
    a = X.copy()

    def in_place(x):
        nonlocal a
        a += x

    with pytest.raises(CorejaxTypeError, match=r"write a = a \+ x"):
        equations(in_place)
    with pytest.raises(CorejaxTypeError, match="np.add would write"):
        equations(lambda x: np.add(X, x, out=a))
    with pytest.raises(CorejaxTypeError, match="np.add.at would write"):
        equations(lambda x: np.add.at(a, [0], x))
    with pytest.raises(CorejaxTypeError, match="np.copyto would write"):
        equations(lambda x: np.copyto(a, x))
    assert X.tolist() == a.tolist()


def test_what_is_no_operand_is_refused_by_name():
    with provide({"operators.mul": lambda x, y: NotImplemented}), pytest.raises(CorejaxTypeError, match="np.mult"):
        equations(lambda x: np.multiply(x, "a"))


def test_types_need_neither_a_pack_nor_a_value():
    seen = []
    equations(lambda x: seen.append((np.shape(x), np.ndim(x), np.size(x), np.result_type(x, np.complex64))) or x)
    assert [((3,), 1, 3, np.complex128)] == seen


def test_derivatives_pass_through_numpys_functions():
    x = from_array_like(X)
    with provide({"numpy_ufunc": {np.sin: sin}}):
        outs, dots = forward.jvp(lambda x: [np.sin(x) + X], [x], [from_array_like(np.ones(3))])
    np.testing.assert_allclose(np.asarray(dots[0]), np.cos(X))


def test_arrays_have_no_such_protocols():
    assert not hasattr(Array, "__array_ufunc__") and not hasattr(Array, "__array_function__")
    assert hasattr(Tracer, "__array_ufunc__") and hasattr(Tracer, "__array_function__")


def test_array_likes_become_arrays():
    x = from_array_like([[1, 2], [3, 4]])
    assert type(x) is Array and [[1, 2], [3, 4]] == x.tolist()
    assert from_array_like(x) is x
    with provide({"stack": lambda xs: add(xs[0], xs[1])}):
        assert ["add"] == equations(lambda x: from_array_like([x, X]))
