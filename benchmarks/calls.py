"""Calls of compiled functions, by kind of arguments, and the stages before the first call."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.measure import Effort, Task, Timing, measured
from benchmarks.rivals import Function, Rival
from benchmarks.rows import Measure, Row, by_operators, ready, timed_alike

# In older revisions, which are measured too, the module is elsewhere.
_jaxlib = import_module("corejax.base._jaxlib" if find_spec("corejax.base") else "corejax._jaxlib")

LEAVES = 20
LONG = 1_000
SHORT = 30
AGAIN = 20


def _small() -> np.ndarray:
    return np.linspace(0.1, 0.9, 8)


def _simple(module: Any) -> Function:
    return lambda x, y: module.lax.sin(x) * y + y


def device_arrays(module: Any) -> Task:
    f, x = module.jit(_simple(module)), module.device_put(_small())
    return Task(lambda _: f(x, x))


def and_wait(module: Any) -> Task:
    f, x = module.jit(_simple(module)), module.device_put(_small())
    return Task(lambda _: f(x, x).block_until_ready())


def ndarrays(module: Any) -> Task:
    f, x = module.jit(_simple(module)), _small()
    return Task(lambda _: f(x, x))


def scalars(module: Any) -> Task:
    f = module.jit(_simple(module))
    return Task(lambda _: f(0.5, 2.0))


def pytrees(put: bool) -> Callable[[Any], Task]:
    """Takes and returns layers with two arrays each."""
    def make(module: Any) -> Task:
        array = module.device_put(_small()) if put else _small()
        layers = [{"weights": array, "bias": array} for _ in range(LEAVES // 2)]
        f = module.jit(lambda layers: module.tree.map(lambda x: x * 0.9, layers))
        return Task(lambda _: f(layers))
    return make


def keywords(module: Any) -> Task:
    f, x = module.jit(_simple(module)), module.device_put(_small())
    return Task(lambda _: f(x, y=x))


def _powers(module: Any) -> Function:
    return lambda x, y, power: module.lax.integer_pow(x, power) * y


def static_by_position(module: Any) -> Task:
    f, x = module.jit(_powers(module), static_argnums=2), module.device_put(_small())
    return Task(lambda _: f(x, x, 3))


def static_by_name(module: Any) -> Task:
    f, x = module.jit(_powers(module), static_argnames="power"), module.device_put(_small())
    return Task(lambda _: f(x, x, power=3))


def other_shape(module: Any) -> Task:
    """Two signatures, alternating."""
    f, x, y = module.jit(_simple(module)), module.device_put(_small()), module.device_put(np.ones(9))

    def run(_: Any) -> None:
        f(x, x)
        f(y, y)
    return Task(run)


#: Never the same number twice in a process, so that programs with it aren't in any cache.
_NEW = itertools.count(1)


def new_number() -> float:
    return 1.0 + next(_NEW) / 2 ** 30


def _chain(module: Any, operations: int) -> Function:
    """A program that is new to all caches."""
    new, sin = new_number(), module.lax.sin

    def chain(x: Any, y: Any) -> Any:
        x = x * new
        for _ in range(operations // 3):
            x = sin(x) * y + y
        return x
    return chain


def compiling(module: Any) -> Task:
    x = _small()
    return Task(lambda lowered: lowered.compile(), lambda: module.jit(_chain(module, LONG)).lower(x, x))


def first_call(module: Any) -> Task:
    x = _small()
    return Task(lambda chain: ready(module.jit(chain)(x, x)), lambda: _chain(module, SHORT))


def retracing(module: Any) -> Task:
    f = module.jit(_chain(module, LONG))
    return Task(lambda x: f.trace(x, x), lambda: np.ones(next(_NEW)))


def new_shape(module: Any) -> Task:
    f = module.jit(_chain(module, SHORT))
    return Task(lambda x: ready(f(x, x)), lambda: np.ones(next(_NEW)))


def made_anew(rivals: Mapping[str, Rival], effort: Effort) -> Iterator[Row]:
    """An equal program from a new function, beside the time for tracing alone, which is a lower bound."""
    x = _small()

    def make(name: str) -> Task | None:
        rival = rivals.get(name, rivals["corejax"])
        if rival.module is None:
            return None
        module, chain = rival.module, by_operators(rival, SHORT)
        if name in rivals:
            return Task(lambda f: ready(module.jit(f)(x, x)), lambda: lambda x, y: chain(x, y))
        return Task(lambda f: module.jit(f).trace(x, x), lambda: lambda x, y: chain(x, y))

    timings = measured(make, [*rivals, "corejax, traced only"], effort)
    yield Row(f"`jit(lambda ...)` made anew: {SHORT} equations, second time", timings)


def compiles(rivals: Mapping[str, Rival], _: Effort) -> Iterator[Row]:
    """How often the compiler runs for equal programs."""
    counts = {}
    for name, rival in rivals.items():
        if rival.module is None:
            continue
        chain, x, count = _chain(rival.module, SHORT), _small(), _counted(rival.module)
        for _turn in range(AGAIN):
            rival.module.jit(lambda x, y, chain=chain: chain(x, y))(x, x)
        counts[name] = Timing.exact(count())
    yield Row(f"compiles for {AGAIN} equal `jit(lambda ...)`", counts, {"jax": AGAIN}, "n")


def _counted(module: Any) -> Callable[[], int]:
    """A counter of how often the compiler runs from now on."""
    counted = [0]
    if hasattr(module, "monitoring"):
        def heard(event: str, _seconds: float, **_rest: Any) -> None:
            counted[0] += event == "/jax/core/compile/backend_compile_duration"
        module.monitoring.register_event_duration_secs_listener(heard)
        return lambda: counted[0]
    compile_module = _jaxlib.compile_module

    def compile_and_count(*args: Any, **rest: Any) -> Any:
        counted[0] += 1
        return compile_module(*args, **rest)
    _jaxlib.compile_module = compile_and_count

    def count() -> int:
        _jaxlib.compile_module = compile_module
        return counted[0]
    return count


SAME = {"jax": 1.0}
CALLS: dict[str, Measure] = {
    "device": timed_alike("call with two device arrays of 8", device_arrays, SAME),
    "wait": timed_alike("call with two device arrays of 8, and wait", and_wait, SAME),
    "numpy": timed_alike("call with two ndarrays of 8", ndarrays, SAME),
    "scalars": timed_alike("call with two Python numbers", scalars, SAME),
    "pytree": timed_alike(f"call with a tree of {LEAVES} device arrays", pytrees(put=True), SAME),
    "pytree_numpy": timed_alike(f"call with a tree of {LEAVES} ndarrays", pytrees(put=False), SAME),
    "keyword": timed_alike("call with a keyword argument", keywords, SAME),
    "static": timed_alike("call with a static argument", static_by_position, SAME),
    "static_keyword": timed_alike("call with a static keyword argument", static_by_name, SAME),
    "shapes": timed_alike("two calls, with two shapes in turn", other_shape, SAME)}
STAGES: dict[str, Measure] = {
    "compile": timed_alike(f"compiling a program of {LONG:,} equations", compiling, SAME),
    "first": timed_alike(f"first call: {SHORT} equations traced, lowered, compiled and run", first_call),
    "retrace": timed_alike("retracing after a change of shape, per equation", retracing, per=LONG),
    "new_shape": timed_alike(f"first call with a new shape: {SHORT} equations", new_shape),
    "anew": made_anew, "compiles": compiles}
