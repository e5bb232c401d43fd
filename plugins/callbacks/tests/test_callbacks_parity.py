"""Callbacks beside jax: what happens, in which order, what is printed, and what programs compute."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import corejax as cj

jax = pytest.importorskip("jax")

LIBRARIES = {"corejax": cj, "jax": jax}
MODES = {"eager": lambda m, f: f, "jit": lambda m, f: m.jit(f)}


def of(name: str) -> tuple[Any, Any]:
    """The library, and its io_callback."""
    return LIBRARIES[name], importlib.import_module(f"{name}.experimental").io_callback


def plain(x: Any) -> Any:
    return np.asarray(x).tolist()


def both(program: Any, *args: Any, order: bool = True) -> None:
    """The same program does and computes the same in both libraries."""
    found = []
    for name in LIBRARIES:
        m, io = of(name)
        log: list[Any] = []
        out = program(m, io, lambda tag, *xs, log=log: log.append((tag, *map(plain, xs))))(*args)
        m.effects_barrier()
        found.append((m.tree_util.tree_map(plain, out), log if order else sorted(log, key=repr)))
    assert found[0] == found[1]


def loop(m: Any, io: Any, log: Any) -> Any:
    def step(c: Any, i: Any) -> Any:
        m.debug.callback(log, "step", i, c, ordered=True)
        c = m.lax.cond(i % 2 == 0, lambda c: (m.debug.callback(log, "even", c, ordered=True), c + 1)[1],
                       lambda c: (m.debug.callback(log, "odd", c, ordered=True), c * 2)[1], c)
        return c, c

    def f(x: Any) -> Any:
        m.debug.callback(log, "begin", x, ordered=True)
        c, ys = m.lax.scan(step, x, np.arange(4))
        c = m.lax.while_loop(lambda c: c < 60.0, lambda c: (m.debug.callback(log, "w", c, ordered=True), c * 2)[1], c)
        m.debug.callback(log, "end", c, ordered=True)
        return c, ys
    return f


def test_ordered_callbacks_in_control_flow() -> None:
    for mode in MODES.values():
        both(lambda m, io, log: mode(m, loop(m, io, log)), np.float64(1.5))  # noqa: B023
        both(lambda m, io, log: mode(m, lambda x: m.jvp(loop(m, io, log), (x,), (x,))), np.float64(1.5))  # noqa: B023


def simple(m: Any, io: Any, log: Any) -> Any:
    def f(x: Any) -> Any:
        m.debug.callback(log, "x", x)
        y = m.lax.sin(x)
        m.debug.callback(log, "y", y)
        return y * y
    return f


@pytest.mark.parametrize("transform", ["grad", "value_and_grad", "checkpoint", "vmap", "grad of checkpoint",
                                       "vmap of grad", "hessian"])
def test_unordered_callbacks_under_transformations(transform: str) -> None:
    def program(m: Any, io: Any, log: Any) -> Any:
        f = simple(m, io, log)
        for name in reversed(transform.split(" of ")):
            f = getattr(m, name)(f)
        return m.jit(f)

    x = np.float64(0.5)
    if transform == "grad of checkpoint":  # which jax computes again with its callbacks
        events = []
        program(cj, None, lambda *each: events.append(each))(x)
        assert 2 == len(events)
        return
    both(program, np.array([0.5, 1.0]) if "vmap" in transform else x, order=False)


@pytest.mark.parametrize("method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all",
                                    "legacy_vectorized"])
@pytest.mark.parametrize("mode", MODES)
def test_vmap_methods(method: str, mode: str) -> None:
    def program(m: Any, io: Any, log: Any) -> Any:
        def add(x: Any, y: Any) -> Any:
            log("shapes", np.shape(x), np.shape(y))
            return np.asarray(x) + np.asarray(y)

        def f(x: Any, y: Any) -> Any:
            return m.pure_callback(add, m.ShapeDtypeStruct((2,), np.float64), x, y, vmap_method=method)
        return MODES[mode](m, m.vmap(f, in_axes=(1, None)))

    both(program, np.arange(6.0).reshape(2, 3), np.ones(2))


def test_io_callbacks_have_results() -> None:
    def program(m: Any, io: Any, log: Any) -> Any:
        types = {"a": m.ShapeDtypeStruct((2,), np.float64), "b": m.ShapeDtypeStruct((), np.int32)}

        def call(x: Any, *, y: Any) -> Any:
            log("called", x, y)
            return {"a": np.asarray(x) * np.asarray(y), "b": np.int32(len(x))}

        def f(x: Any) -> Any:
            first = io(call, types, x, y=x, ordered=True)
            second = io(call, types, first["a"], y=x, ordered=True)
            return first, second
        return m.jit(f)

    both(program, np.array([2.0, 3.0]))
    both(lambda m, io, log: m.jit(m.vmap(lambda x: io(
        lambda x: (log("v", x), np.asarray(x) * 2)[1], m.ShapeDtypeStruct((), np.float64), x))), np.arange(3.0))


@pytest.mark.parametrize(("fmt", "args", "kwargs"), [
    ("x = {}", (np.float64(1.5),), {}), ("{:.3f} {y}", (np.float64(1.5),), {"y": np.arange(3)}),
    ("{0} {1} {0}", (np.int32(3), True), {}), ("{what} {x!r:>8} {{}}", (), {"what": "text", "x": "y"}),
    ("{}", (np.arange(20.0).reshape(4, 5),), {}), ("plain", (), {}), ("{x[a]}", (), {"x": {"a": np.float32(2)}})])
def test_printed_text(fmt: str, args: Any, kwargs: Any, capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for m in LIBRARIES.values():
        m.jit(lambda: m.debug.print(fmt, *args, **kwargs))()  # noqa: B023
        m.effects_barrier()
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] != ""


@pytest.mark.parametrize("case", [
    lambda m, io: m.vmap(lambda x: io(print, None, x, ordered=True))(np.ones(2)),
    lambda m, io: m.vmap(lambda x: m.pure_callback(abs, m.ShapeDtypeStruct((), np.float64), x, vmap_method="x"))(
        np.ones(2)),
    lambda m, io: m.grad(lambda x: m.pure_callback(abs, m.ShapeDtypeStruct((), np.float64), x))(1.0),
    lambda m, io: m.grad(lambda x: io(abs, m.ShapeDtypeStruct((), np.float64), x))(1.0),
    lambda m, io: m.debug.print("{} {}", 1), lambda m, io: m.debug.print("x", 1),
    lambda m, io: m.jit(lambda x: m.pure_callback(lambda x: np.zeros(3), m.ShapeDtypeStruct((), np.float64), x))(
        1.0).block_until_ready()])
def test_what_jax_refuses_is_refused(case: Any) -> None:
    for name in LIBRARIES:
        with pytest.raises(Exception):  # noqa: B017
            case(*of(name))
