"""`Array` with the packs: operators, methods and indices of arrays that are deleted, traced, odd, or used by many."""

from __future__ import annotations

import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax as cj
from corejax.errors import CorejaxError
from corejax.xla import dispatch
from corejax.xla.array import as_array
from corejax.xla.storage import is_on_device

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
        with pytest.raises(CorejaxError, match="only the type is known"):
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
