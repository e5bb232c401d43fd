"""Programs that call Python, beside jax's: a call until its result is there and its effects have happened."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.measure import Task
from benchmarks.rows import Measure, ready, timed_alike

#: Of a module and its `io_callback`: a program of an array of 8 numbers.
Written = Callable[[Any, Any], Callable[[Any], Any]]


def _nothing(x: Any) -> None:
    pass


def _debug(module: Any, io: Any, ordered: bool) -> Callable[[Any], Any]:
    return lambda x: (module.debug.callback(_nothing, x, ordered=ordered), x + 1.0)[1]


def _io(module: Any, io: Any, ordered: bool) -> Callable[[Any], Any]:
    kind = module.ShapeDtypeStruct((8,), np.float64)
    return lambda x: io(np.asarray, kind, x, ordered=ordered) + 1.0


def _pure(module: Any, io: Any) -> Callable[[Any], Any]:
    kind = module.ShapeDtypeStruct((8,), np.float64)
    return lambda x: module.pure_callback(np.asarray, kind, x) + 1.0


def _steps(module: Any, io: Any, ordered: bool) -> Callable[[Any], Any]:
    def step(x: Any, _: Any) -> Any:
        module.debug.callback(_nothing, x, ordered=ordered)
        return x + 1.0, None
    return lambda x: module.lax.scan(step, x, None, length=100)[0]


def _reference(module: Any, io: Any) -> Callable[[Any], Any]:
    ref = module.new_ref(module.numpy.zeros(8))

    def write(x: Any) -> Any:
        ref[...] += x
        return x + 1.0
    return write


def row(what: str, least: float, written: Written) -> Measure:
    def make(module: Any) -> Task:
        io = import_module(f"{module.__name__}.experimental").io_callback
        function, x = module.jit(written(module, io)), module.device_put(np.arange(8.0))

        def run(_: Any) -> Any:
            out = ready(function(x))
            module.effects_barrier()
            return out
        return Task(run)
    return timed_alike(what, make, {"jax": least})


#: Ordered calls may take 1.1 times as long as jax's.
EFFECTS: dict[str, Measure] = {
    "debug": row("`debug.callback`", 1.0, lambda module, io: _debug(module, io, False)),
    "debug_ordered": row("`debug.callback`, ordered", 1 / 1.1, lambda module, io: _debug(module, io, True)),
    "pure": row("`pure_callback`", 1.0, _pure),
    "io": row("`io_callback`", 1.0, lambda module, io: _io(module, io, False)),
    "io_ordered": row("`io_callback`, ordered", 1 / 1.1, lambda module, io: _io(module, io, True)),
    "steps": row("100 steps with a `debug.callback` each", 1.0, lambda module, io: _steps(module, io, False)),
    "steps_ordered": row("100 steps with an ordered one each", 1 / 1.1, lambda module, io: _steps(module, io, True)),
    "reference": row("adding to a reference that is closed over", 1.0, _reference)}
