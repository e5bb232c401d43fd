"""`Array` with the packs: operators, methods and indices of arrays that are deleted, traced, odd, or used by many."""

from __future__ import annotations

import functools
import inspect
import pickle
import re
import subprocess
import sys
import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.arrays.array import as_array
from corejax.arrays.datamodel import BINARY, UNARY
from corejax.arrays.storage import is_on_device
from corejax.base.avals import Zero
from corejax.core import aval_of, is_concrete
from corejax.eager import dispatch
from corejax.errors import CorejaxError
from corejax.plugin import operators

DTYPES = [np.bool_, np.int8, np.uint16, np.int64, np.float16, np.float32, np.complex128, ml_dtypes.bfloat16,
          ml_dtypes.float8_e4m3fn]


@pytest.fixture(params=["host", "device"])
def place(request: Any) -> Any:
    return (lambda x: as_array(x, copy=True)) if request.param == "host" else cj.device_put


USES: dict[str, Any] = {
    "add": lambda x: x + 1.0, "radd": lambda x: np.ones(3) + x, "neg": lambda x: -x, "matmul": lambda x: x @ x,
    "eq": lambda x: x == x, "in": lambda x: 7.0 in x, "index": lambda x: x[0], "slice": lambda x: x[::-1],
    "index array": lambda x: x[np.array([0, 1])], "mask": lambda x: x[np.array([True, False, True])],
    "new axis": lambda x: x[None], "at": lambda x: x.at[0].set(1.0), "at get": lambda x: x.at[:2].get(),
    "sum": lambda x: x.sum(), "reshape": lambda x: x.reshape(3, 1), "astype": lambda x: x.astype(np.float32),
    "copy": lambda x: x.copy(), "round": lambda x: round(x, 1), "iterate": lambda x: list(x), "lax": cj.lax.sin,
    "jit": lambda x: cj.jit(lambda x: x + 1)(x), "grad": lambda x: cj.grad(lambda x: (x * x).sum())(x),
    "vmap": lambda x: cj.vmap(lambda x: x * 2)(x), "closed over": lambda x: cj.jit(lambda y: y + x)(1.0)}


@pytest.mark.parametrize("name", USES)
def test_deleted_arrays_are_refused_by_name(place: Any, name: str) -> None:
    x = place(np.arange(3.0))
    USES[name](x)
    x.delete()
    with pytest.raises(CorejaxError, match="deleted") as caught:
        USES[name](x)
    assert None not in (caught.value.got, caught.value.wanted, caught.value.where, caught.value.todo)


@pytest.mark.parametrize("name", USES)
def test_everything_that_arrays_do_traced_values_do(name: str) -> None:
    x = np.arange(3.0)
    if name == "in":
        with pytest.raises(CorejaxError, match="only its type is known"):
            cj.jit(USES[name])(x)
        return
    expected = cj.tree.leaves(USES[name](as_array(x, copy=True)))
    traced = [cj.tree.leaves(cj.jit(USES[name])(x)), cj.tree.leaves(cj.vjp(USES[name], x)[0])]
    batch = np.stack([x, x + 1])
    mapped = cj.tree.leaves(cj.vmap(USES[name])(batch))
    for found in traced:
        for out, want in zip(found, expected, strict=True):
            assert (out.shape, out.dtype) == (want.shape, want.dtype)
            np.testing.assert_array_equal(np.asarray(out), np.asarray(want))
    for out, want in zip(mapped, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(out)[0], np.asarray(want))


def test_membership_compares_elements(place: Any) -> None:
    x = place(np.array([[1.0, 2.0], [3.0, np.nan]]))
    assert 2.0 in x and np.float32(3) in x
    assert 5.0 not in x and np.nan not in x
    assert 1 not in place(np.zeros((0, 3)))


def test_completion_offers_methods_and_properties_and_no_operators(place: Any) -> None:
    x = place(np.zeros((2, 2)))
    offered = dir(x)
    for name in ("shape", "sum", "at", "T", "mT", "astype", "device", "block_until_ready", "nbytes"):
        assert name in offered
        assert getattr(x, name) is not None
    assert not {"radd", "getitem", "truediv"} & set(offered)
    assert offered == sorted(offered)


@pytest.mark.parametrize("operate", [
    lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x / y, lambda x, y: x ** y,
    lambda x, y: x @ y, lambda x, y: x < y, lambda x, y: x >= y, lambda x, y: x == y, lambda x, y: x != y,
    lambda x, y: x // y, lambda x, y: x % y])
def test_arrays_win_over_ndarrays_and_numpy_scalars_on_either_side(place: Any, operate: Any) -> None:
    x, raw = np.array([1.0, 2.0, 3.0]), np.array([2.0, 3.0, 0.5])
    for left, right in ((place(x), raw), (x, place(raw)), (place(x), place(raw))):
        out = operate(left, right)
        assert type(out) is cj.Array
        np.testing.assert_allclose(np.asarray(out), operate(x, raw))
    if operate(x, raw).ndim:
        out = operate(np.float64(2.0), place(raw))
        assert type(out) is cj.Array
        np.testing.assert_allclose(np.asarray(out), operate(np.float64(2.0), raw))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_indexing_keeps_odd_dtypes_weak_types_and_places(place: Any, dtype: Any) -> None:
    for shape in ((3, 4), (3,), (2, 0), (1, 1, 2)):
        host = (np.arange(np.prod(shape)).reshape(shape) % 3).astype(dtype)
        x = place(host)
        for index in (0, -1, slice(None, None, -1), (slice(1, None),), None, Ellipsis, np.array([0, 0]), [0],
                      (0,) * len(shape) if 0 not in shape else (0,), place(np.array([0, -1])), place(np.int32(-1))):
            expected = host[np.asarray(index) if isinstance(index, cj.Array) else index]
            out = x[index]
            assert (x.dtype, expected.shape, is_on_device(x)) == (out.dtype, out.shape, is_on_device(out))
            np.testing.assert_array_equal(np.asarray(out), expected)
            assert not np.asarray(out).flags.writeable
    weak = as_array(2.0, copy=False)
    assert weak[None].weak_type and weak[...].weak_type and weak[None][0].weak_type


def test_a_part_is_no_way_to_write_to_the_whole() -> None:
    x = as_array(np.arange(6.0).reshape(2, 3), copy=True)
    for part in (x[0], x[:, 1], x[::-1], x[None], x[...], x[np.array([0])], x[0, 1]):
        with pytest.raises(ValueError, match="read-only"):
            np.asarray(part)[...] = 9.0


def test_reading_in_a_traced_function_is_in_its_program() -> None:
    x = as_array(np.arange(6.0).reshape(2, 3), copy=True)
    names = [eqn.primitive.name for eqn in cj.make_jaxpr(lambda: x[0])().eqns]
    assert ["slice", "squeeze"] == names


def test_places_beyond_the_first_compile_nothing_new() -> None:
    x = cj.device_put(np.arange(400.0).reshape(100, 4))
    x[3], x[3, 1:3], x[2:7]
    known = len(dispatch._programs)
    for i in range(10, 20):
        np.testing.assert_array_equal(np.arange(4.0 * i, 4 * i + 4), np.asarray(x[i]))
        np.testing.assert_array_equal(np.arange(4.0 * i, 4 * i + 2), np.asarray(x[i, 0:2]))
        assert (5, 4) == x[i:i + 5].shape
    assert known == len(dispatch._programs)
    assert [4.0 * i for i in range(100)] == [float(row[0]) for row in x]


def test_many_threads_index_and_update_the_same_arrays(place: Any) -> None:
    x, wrong = place(np.arange(20.0).reshape(4, 5)), []
    host = np.asarray(x).copy()

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            for _ in range(40):
                i, j = int(rng.integers(4)), int(rng.integers(5))
                assert host[i, j] == float(x[i, j])
                np.testing.assert_array_equal(host[:, j], np.asarray(x[:, j]))
                assert float(x.at[i, j].set(-1.0)[i, j]) == -1.0
                gradient = cj.grad(lambda x: x[i] @ x[i])(x)  # noqa: B023
                np.testing.assert_array_equal(2 * host[i], np.asarray(gradient)[i])
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == wrong
    np.testing.assert_array_equal(host, np.asarray(x))


# Traced values as instances of the class

TRACING: dict[str, Any] = {
    "jit": lambda f, x: cj.jit(f)(x), "grad": lambda f, x: cj.grad(f)(x), "vjp": lambda f, x: cj.vjp(f, x)[1](1.0),
    "jvp": lambda f, x: cj.jvp(f, (x,), (x,)), "linearize": lambda f, x: cj.linearize(f, x)[1](x),
    "vmap": lambda f, x: cj.vmap(lambda row: f(row))(x[None]), "make_jaxpr": lambda f, x: cj.make_jaxpr(f)(x),
    "eval_shape": lambda f, x: cj.eval_shape(f, x), "checkpoint": lambda f, x: cj.grad(cj.checkpoint(f))(x),
    "hessian": lambda f, x: cj.hessian(f)(x), "jit of grad": lambda f, x: cj.jit(cj.grad(f))(x),
    "scan": lambda f, x: lax.scan(lambda c, row: (c + f(row), None), 0.0, x[None]),
    "cond": lambda f, x: lax.cond(True, f, f, x),
}


@pytest.mark.parametrize("way", TRACING)
def test_traced_values_are_instances_of_array_and_are_not_concrete(way: str) -> None:
    seen = []

    def f(x: Any) -> Any:
        seen.append((isinstance(x, cj.Array), issubclass(type(x), cj.Array), type(x) is cj.Array, is_concrete(x)))
        return (x * x).sum()

    TRACING[way](f, np.arange(3.0))
    assert {(True, True, False, False)} == set(seen)


def test_user_code_that_asks_for_arrays_takes_the_same_branch_when_traced() -> None:
    def double(x: Any) -> Any:
        return 2.0 * x if isinstance(x, cj.Array) else 100.0

    @functools.singledispatch
    def triple(x: Any) -> Any:
        return 100.0

    @triple.register(cj.Array)
    def _(x: Any) -> Any:
        return 3.0 * x

    def quadruple(x: Any) -> Any:
        match x:
            case cj.Array():
                return 4.0 * x
        return 100.0

    for times, f in ((2.0, double), (3.0, triple), (4.0, quadruple)):
        x = cj.device_put(5.0)
        assert (5.0 * times, times, times * 5.0) == (f(x), cj.grad(f)(x), cj.jit(f)(x))


@pytest.mark.parametrize("x", [np.zeros(3), np.float64(1.0), 1.0, None, [1.0], Zero(aval_of(1.0)), aval_of(1.0)],
                         ids=lambda x: type(x).__name__)
def test_nothing_else_is_an_instance_of_array(x: Any) -> None:
    assert not isinstance(x, cj.Array) and not issubclass(type(x), cj.Array)
    assert is_concrete(x) is isinstance(x, (np.ndarray, np.generic, float))


def put(a: Any, i: Any) -> None:
    a[i] = 0.0


@pytest.mark.parametrize("index", [lambda a, i: a[i], lambda a, i: a[i, 0], lambda a, i: a[i > 0],
                                   lambda a, i: a[[0, i]], lambda a, i: a[None, i], put])
def test_an_ndarray_with_a_traced_index_is_to_be_one_of_corejax(index: Any) -> None:
    a = np.arange(6.0).reshape(3, 2)
    for transformed in (cj.jit(lambda i: index(a, i)), lambda i: cj.vmap(lambda i: index(a, i))(i[None])):
        with pytest.raises(CorejaxError) as caught:
            transformed(np.int64(1))
        assert "cj.device_put(a)[i]" in str(caught.value.todo)
    assert 2.0 == cj.jit(lambda i: cj.device_put(a)[i, 0])(1)


# Methods as attributes of the class

def test_methods_of_packs_show_their_signature_and_documentation(place: Any) -> None:
    x = place(np.arange(4.0).reshape(2, 2))
    assert ["axis", "dtype", "out", "keepdims", "initial", "where", "promote_integers"] == list(
        inspect.signature(x.sum).parameters)
    assert inspect.getdoc(operators.sum) == inspect.getdoc(x.sum) == inspect.getdoc(cj.Array.sum)
    assert ("sum", "Array.sum", x) == (x.sum.__name__, x.sum.__qualname__, x.sum.__self__)
    assert [2.0, 4.0] == np.asarray(cj.Array.sum(x, axis=0)).tolist() == pickle.loads(pickle.dumps(x.sum))(0).tolist()
    assert isinstance(cj.Array.T, property) and inspect.getdoc(operators.T) == inspect.getdoc(cj.Array.T)
    assert [[0.0, 2.0], [1.0, 3.0]] == cj.Array.T.__get__(x).tolist()


def test_the_class_has_methods_before_anything_was_computed() -> None:
    code = """if True:
        import inspect, sys, corejax as cj
        print(*inspect.signature(cj.Array.sum).parameters, "T" in dir(cj.Array), hasattr(cj.Array, "putt"))
        print(inspect.getdoc(cj.Array.reshape))
        help(cj.Array.mean)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "x axis dtype out keepdims initial where promote_integers True False" in done.stdout
    assert inspect.getdoc(operators.reshape) in done.stdout and "mean(x:" in done.stdout


@pytest.mark.parametrize("name", sorted({*UNARY, *BINARY}))
def test_operators_are_no_methods(name: str) -> None:
    for x in (cj.device_put(1.0), cj.Array):
        assert not hasattr(x, name) and name not in dir(x)


@pytest.mark.parametrize(("name", "wanted"), [("foo", None), ("summ", "'sum'"),
                                              ("tolst", "'tolist'"), ("or", "'sort'"), ("getitem", "'item'")])
def test_suggestions_are_attributes_that_exist(name: str, wanted: str | None) -> None:
    with pytest.raises(AttributeError, match=f"arrays have no attribute '{name}'") as caught:
        getattr(cj.device_put(1.0), name)
    todo = caught.value.todo  # type: ignore[attr-defined]
    suggested = re.findall(r"'(\w+)'", todo.partition("?")[0] if "did you mean" in todo else "")
    assert (wanted is None and not suggested) or wanted in todo
    assert all(hasattr(cj.device_put(1.0), name) for name in suggested)
    assert "pip install" not in todo  # all of std is installed here


@pytest.mark.parametrize(("shape", "expected"), [
    ((0,), "Array([], dtype=float64)"), ((2, 0), "Array([], shape=(2, 0), dtype=float64)"),
    ((0, 3), "Array([], shape=(0, 3), dtype=float64)"), ((1, 1), "Array([[0.]], dtype=float64)")])
def test_the_text_of_an_array_without_elements_tells_its_shape(place: Any, shape: Any, expected: str) -> None:
    assert expected == repr(place(np.zeros(shape)))
