"""What is measured: one function for each row of the budgets, and the programs that they run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.measure import Task, Timing, interleaved
from benchmarks.rivals import Function, Rival

EQUATIONS = 300


@dataclass(frozen=True, slots=True)
class Row:
    """A quantity, in seconds or bytes, and the factors by which that of corejax should be smaller."""

    what: str
    timings: Mapping[str, Timing]
    targets: Mapping[str, float] = field(default_factory=dict)
    unit: str = "s"


def by_functions(rival: Rival, operations: int) -> Function:
    """A chain of sin, mul and add, as calls of the library's functions."""
    sin, mul, add = rival.sin, rival.mul, rival.add

    def chain(x: Any, y: Any) -> Any:
        for _ in range(operations // 3):
            x = add(mul(sin(x), y), y)
        return x
    return chain


def by_operators(rival: Rival, operations: int) -> Function:
    """The same chain, in operators."""
    sin = rival.sin

    def chain(x: Any, y: Any) -> Any:
        for _ in range(operations // 3):
            x = sin(x) * y + y
        return x
    return chain


Style = Callable[[Rival, int], Function]
STYLES: dict[str, Style] = {"lax functions": by_functions, "operators": by_operators}


def _call(function: Function, x: Any, y: Any) -> Task:
    return Task(lambda _: function(x, y))


def _anew(function: Function) -> Function:
    """The same program as another function, for which nothing is cached."""
    return lambda *args: function(*args)


def _tracers(rivals: Mapping[str, Rival]) -> dict[str, Rival]:
    return {name: rival for name, rival in rivals.items() if rival.module is not None}


def _trace_row(what: str, rivals: Mapping[str, Rival], transform: Callable[[Rival], Function], target: float,
               rounds: int) -> Row:
    """Tracing `transform(rival)`, a function of two arrays that comes from EQUATIONS source equations."""
    x = np.linspace(0.1, 0.9, 8)
    tasks = {}
    for name, rival in _tracers(rivals).items():
        tasks[name] = _trace(rival.module.make_jaxpr, transform(rival), x)
    timings = interleaved(tasks, rounds)
    return Row(what, {name: timing.per(EQUATIONS) for name, timing in timings.items()}, {"jax": target})


def _trace(make_jaxpr: Function, function: Function, x: np.ndarray) -> Task:
    return Task(lambda program: make_jaxpr(program)(x, x), lambda: _anew(function))


def tracing(rivals: Mapping[str, Rival], style: Style, rounds: int) -> Row:
    return _trace_row("`make_jaxpr`, per equation", rivals, lambda rival: style(rival, EQUATIONS), 4, rounds)


def tracing_grad(rivals: Mapping[str, Rival], style: Style, rounds: int) -> Row:
    def gradient(rival: Rival) -> Function:
        chain = style(rival, EQUATIONS)
        return lambda x, y: rival.gradient(lambda x: rival.total(chain(x, y)))(x)
    return _trace_row("`make_jaxpr(grad)`, per source equation", rivals, gradient, 8, rounds)


def tracing_vmap(rivals: Mapping[str, Rival], style: Style, rounds: int) -> Row:
    def mapped(rival: Rival) -> Function:
        chain = style(rival, EQUATIONS)
        return lambda x, y: rival.module.vmap(lambda x, y: chain(x, y))(x, y)
    return _trace_row("`make_jaxpr(vmap)`, per source equation", rivals, mapped, 4, rounds)


def lowering(rivals: Mapping[str, Rival], style: Style, rounds: int) -> Row:
    x = np.linspace(0.1, 0.9, 8)
    tasks = {}
    for name, rival in _tracers(rivals).items():
        tasks[name] = _lower(rival.module.jit, style(rival, EQUATIONS), x)
    timings = interleaved(tasks, rounds)
    return Row("lowering to StableHLO, per equation",
               {name: timing.per(EQUATIONS) for name, timing in timings.items()}, {"jax": 2.5})


def _lower(jit: Function, chain: Function, x: np.ndarray) -> Task:
    return Task(lambda traced: traced.lower(), lambda: jit(_anew(chain)).trace(x, x))


def eager_add_ndarrays(rivals: Mapping[str, Rival], rounds: int) -> Row:
    x = np.linspace(0.1, 0.9, 8)
    tasks = {"numpy": _call(np.add, x, x)}
    for name, rival in rivals.items():
        array = x if rival.module else rival.array(x)
        tasks[name] = _call(rival.add, array, array)
    tasks.pop("torch tape", None)  # the same function as torch.func's
    return Row("eager `add(x, y)` of two ndarrays of 8", interleaved(tasks, rounds), {"jax": 5})


def eager_add(rivals: Mapping[str, Rival], style: Style, rounds: int) -> Row:
    """The operands are the library's own arrays, as results of other computations are; ours stay on the host."""
    x = np.linspace(0.1, 0.9, 8)
    tasks = {}
    for name, rival in _tracers(rivals).items():
        array = rival.array(x)
        tasks[name] = _call(rival.add, array, array) if style is by_functions else _operator_add(array)
    return Row("eager `add` of two arrays of 8", interleaved(tasks, rounds), {"jax": 5})


def _operator_add(x: Any) -> Task:
    return Task(lambda _: x + x)


def _eager_gradient(rivals: Mapping[str, Rival], style: Style, x: np.ndarray, rounds: int) -> dict[str, Timing]:
    tasks = {}
    for name, rival in rivals.items():
        chain = style(rival, 30)
        function = chain if x.ndim == 0 else _summed(rival.total, chain)
        tasks[name] = _gradient(rival.gradient(function), rival.array(x))
    return interleaved(tasks, rounds)


def _summed(total: Function, chain: Function) -> Function:
    return lambda x, y: total(chain(x, y))


def _gradient(gradient: Function, array: Any) -> Task:
    return Task(lambda _: _ready(gradient(array, array)))


def _ready(value: Any) -> Any:
    wait = getattr(value, "block_until_ready", None)
    return wait() if wait is not None else value


def eager_grad_scalar(rivals: Mapping[str, Rival], style: Style, rounds: int) -> Row:
    timings = _eager_gradient(rivals, style, np.array(0.7), rounds)
    return Row("eager `grad` of 30 scalar ops", timings, {"jax": 30, "autograd": 2, "torch.func": 2})


def eager_grad_array(rivals: Mapping[str, Rival], style: Style, rounds: int) -> Row:
    timings = _eager_gradient(rivals, style, np.linspace(0.1, 0.9, 1000), rounds)
    return Row("eager `grad` of 30 ops on 1,000 elements", timings, {"jax": 20, "torch.func": 1.2})


def importing(rivals: Mapping[str, Rival], rounds: int) -> Row:
    """Time of the import statement in a fresh interpreter."""
    modules = [m for m in ("corejax", "jax", "autograd", "torch", "numpy") if m == "numpy" or _has(rivals, m)]
    samples: dict[str, list[float]] = {module: [] for module in modules}
    for turn in range(rounds + 1):
        for module in modules:
            seconds = _import_once(module)
            if turn:  # the first may write bytecode and fill the disk's cache
                samples[module].append(seconds)
    return Row("`import`", {m: Timing.of(times) for m, times in samples.items()}, {"jax": 1 / 0.35})


def _has(rivals: Mapping[str, Rival], module: str) -> bool:
    return any(name.startswith(module) for name in rivals)


def _import_once(module: str) -> float:
    code = f"from time import perf_counter as now; start = now(); import {module}; print(now() - start)"
    env = {**os.environ}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    return float(done.stdout)


ROWS = (tracing, tracing_grad, tracing_vmap, lowering, eager_add, eager_grad_scalar, eager_grad_array)


def measure(rivals: Mapping[str, Rival], style: Style, rounds: int) -> Iterator[Row]:
    """Each row for programs in one style."""
    for row in ROWS:
        yield row(rivals, style, rounds)
