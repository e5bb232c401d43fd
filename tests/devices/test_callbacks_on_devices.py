"""Callbacks in programs for several devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxNotImplementedError
from corejax.experimental import io_callback

X = np.arange(16.0).reshape(8, 2)


def divided(f: Any) -> Any:
    """f for each of 8 devices, which have two elements each."""
    mesh = cj.make_mesh((4, 2), ("x", "y"))
    return cj.shard_map(f, mesh=mesh, in_specs=cj.P("x", "y"), out_specs=cj.P("x", "y"))


def like(x: Any) -> cj.ShapeDtypeStruct:
    return cj.ShapeDtypeStruct(x.shape, x.dtype)


def placed() -> Any:
    return cj.device_put(X, cj.NamedSharding(cj.make_mesh((4, 2), ("x", "y")), cj.P("x", "y")))


CALLS = {
    "debug": lambda seen, x: (cj.debug.callback(seen.append, x), x * 2)[1],
    "pure": lambda seen, x: cj.pure_callback(lambda x: (seen.append(x), x * 2)[1], like(x), x),
    "io": lambda seen, x: io_callback(lambda x: (seen.append(x), x * 2)[1], like(x), x),
}


@pytest.mark.parametrize("kind", CALLS)
def test_a_program_for_several_devices_calls_once_with_whole_arrays(kind: str) -> None:
    seen: list[Any] = []
    out = cj.jit(lambda x: CALLS[kind](seen, x) + 1)(placed())
    assert np.array_equal(2 * X + 1, out) and [(8, 2)] == [x.shape for x in seen]
    cj.debug.callback(seen.append, placed())
    assert np.array_equal(X, seen[-1])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kind", CALLS)
def test_each_device_calls_with_its_part(kind: str, compiled: bool) -> None:
    seen: list[Any] = []
    f = divided(lambda x: CALLS[kind](seen, x) + 1)
    assert np.array_equal(2 * X + 1, (cj.jit(f) if compiled else f)(placed()))
    assert [(2, 1)] * 8 == [x.shape for x in seen]
    assert sorted(X.ravel()) == sorted(np.concatenate([np.ravel(x) for x in seen]))


def test_in_loops_and_derivatives_of_each_device() -> None:
    seen: list[Any] = []

    def step(c: Any, i: Any) -> Any:
        cj.debug.callback(seen.append, i)
        return lax.sin(c), None

    f = divided(lambda x: lax.scan(step, x, np.arange(3))[0])
    slope = cj.jit(cj.grad(lambda x: f(x).sum()))(placed())
    assert 24 == len(seen)
    np.testing.assert_allclose(np.cos(X) * np.cos(np.sin(X)) * np.cos(np.sin(np.sin(X))), slope)


def test_pmap_calls_for_each_position() -> None:
    seen: list[Any] = []
    assert [2.0 * i for i in range(8)] == cj.pmap(lambda x: CALLS["io"](seen, x))(np.arange(8.0)).tolist()
    assert list(range(8)) == sorted(int(x) for x in seen)


def test_printing_on_each_device(capsys: pytest.CaptureFixture[str]) -> None:
    cj.jit(divided(lambda x: (cj.debug.print("{}", x[0, 0]), x)[1]))(placed())
    assert sorted(map(str, X[::2].ravel())) == sorted(capsys.readouterr().out.split())


@pytest.mark.parametrize("within", [lambda f: f, divided])
def test_ordered_calls_are_refused(within: Any) -> None:
    def f(x: Any) -> Any:
        cj.debug.print("{}", x, ordered=True)
        return x

    with pytest.raises(CorejaxNotImplementedError, match="in a program for several devices") as caught:
        cj.jit(within(f))(placed())
    assert "ordered=False" in str(caught.value.todo)


def test_an_exception_on_one_device_arrives_as_itself() -> None:
    mistake = ValueError("mine")

    def fails(x: Any) -> None:
        if x[0, 0] == 5.0:
            raise mistake

    with pytest.raises(ValueError, match="mine") as caught:
        cj.jit(divided(lambda x: (cj.debug.callback(fails, x), x)[1]))(placed())
    assert mistake is caught.value


def test_what_is_called_once_may_be_a_result():
    mesh = cj.make_mesh((4,), ("x",))
    x = cj.device_put(np.arange(8.0), cj.NamedSharding(mesh, cj.P("x")))
    out = cj.jit(lambda x: cj.pure_callback(lambda x: np.asarray(x) * 2, cj.ShapeDtypeStruct((8,), "float64"), x))(x)
    assert 4 == len(out.addressable_shards)
    for shard in out.addressable_shards:
        np.testing.assert_array_equal(2 * np.arange(8.0), np.asarray(shard.data))


def test_devices_do_not_wait_for_one_whose_callback_has_failed():
    mesh = cj.make_mesh((4,), ("x",))

    def fails_on_the_first(x):
        if x[0] == 0:
            raise KeyError("mine")
        return x

    def f(x):
        return cj.lax.psum(cj.pure_callback(fails_on_the_first, cj.ShapeDtypeStruct((2,), "float64"), x), "x")

    mapped = cj.jit(cj.shard_map(f, mesh=mesh, in_specs=cj.P("x"), out_specs=cj.P()))
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            mapped(np.arange(8.0))
    np.testing.assert_array_equal([16.0, 20.0], np.asarray(mapped(np.arange(8.0) + 1)))
