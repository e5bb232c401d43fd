"""Arrays over several devices: eight of the CPU, in a process of their own for each row."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.calls import new_number
from benchmarks.measure import Effort, Task
from benchmarks.rivals import Function, Rival
from benchmarks.rows import Measure, Row, ready, timed_alike

DEVICES = 8
SMALL, LARGE = 128, 1_000_000
KB, MB = SMALL * 8 // 1000, LARGE * 8 // 1_000_000
ENVIRONMENT = {"COREJAX_NUM_CPU_DEVICES": str(DEVICES), "JAX_NUM_CPU_DEVICES": str(DEVICES)}


def elsewhere(name: str, measure: Measure) -> Measure:
    """The same in another process, which has the devices; `name` is what it is run by."""
    def run(rivals: Mapping[str, Rival], effort: Effort) -> Iterable[Row]:
        if os.environ.get("COREJAX_NUM_CPU_DEVICES") == str(DEVICES):
            return measure(rivals, effort)
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "benchmarks", name, "--rounds", str(effort.rounds), "--into", folder],
                           check=True, env={**os.environ, **ENVIRONMENT}, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
            found = report.from_json((Path(folder) / "benchmarks.json").read_text())
        for why in found.failures.values():
            raise RuntimeError(why)
        return [row for named in found.sections.values() for rows in named.values() for row in rows]
    return run


def line(module: Any) -> Any:
    """All devices along one axis, which programs don't see unless they name it."""
    kinds = getattr(module.sharding, "AxisType", None)
    return module.make_mesh((DEVICES,), ("x",), **({} if kinds is None else {"axis_types": (kinds.Auto,)}))


def divided(module: Any, ndim: int = 1, axis: int = 0) -> Any:
    """The sharding that divides one axis of arrays."""
    return module.NamedSharding(line(module), module.P(*["x" if i == axis else None for i in range(ndim)]))


def _numbers(size: int) -> np.ndarray:
    return np.linspace(0.1, 0.9, size)


def _put(module: Any, size: int) -> Any:
    return ready(module.device_put(_numbers(size), divided(module)))


# Calls

def _simple(module: Any) -> Function:
    return lambda *xs: module.lax.sin(xs[0]) * xs[-1] + xs[-1]


def calling(size: int, count: int) -> Callable[[Any], Task]:
    def make(module: Any) -> Task:
        f, xs = module.jit(_simple(module)), [_put(module, size) for _ in range(count)]
        return Task(lambda _: ready(f(*xs)))
    return make


def calling_with_tree(module: Any) -> Task:
    f, xs = module.jit(lambda xs: [x * 0.9 for x in xs]), [_put(module, SMALL) for _ in range(10)]
    return Task(lambda _: ready(f(xs)))


def calling_with_ndarrays(module: Any) -> Task:
    sharding = divided(module)
    f, x = module.jit(_simple(module), in_shardings=sharding, out_shardings=sharding), _numbers(SMALL)
    return Task(lambda _: ready(f(x, x)))


def mapping(put: bool) -> Callable[[Any], Task]:
    """The argument is what another such function returned, or an ndarray."""
    def make(module: Any) -> Task:
        f, x = module.pmap(lambda x: module.lax.sin(x) * x + x, axis_name="i"), _numbers(SMALL).reshape(DEVICES, -1)
        given = ready(f(x)) if put else x
        return Task(lambda _: ready(f(given)))
    return make


def _in_parts(module: Any, f: Function, n_args: int, result: Any) -> Function:
    """A function of parts, as one of arrays."""
    p = module.P
    return module.shard_map(f, mesh=line(module), in_specs=(p("x"),) * n_args, out_specs=result)


def summing(module: Any) -> Task:
    f = module.jit(_in_parts(module, lambda x: module.lax.psum(x, "x"), 1, module.P()))
    x = _put(module, LARGE)
    return Task(lambda _: ready(f(x)))


# Moving

def _to_copy(size: int) -> np.ndarray:
    """Numbers in memory that both have to copy: at a multiple of 64 bytes, JAX shares it with whoever writes to it."""
    memory = np.empty(size + 8)
    start = (-memory.ctypes.data // 8 + 1) % 8
    memory[start:start + size] = _numbers(size)
    return memory[start:start + size]


def putting(size: int) -> Callable[[Any], Task]:
    def make(module: Any) -> Task:
        x, sharding = _to_copy(size), divided(module)
        return Task(lambda _: ready(module.device_put(x, sharding)))
    return make


def putting_copies(module: Any) -> Task:
    x, sharding = _to_copy(LARGE // DEVICES), module.NamedSharding(line(module), module.P())
    return Task(lambda _: ready(module.device_put(x, sharding)))


def moving(size: int, to_one: bool = False) -> Callable[[Any], Task]:
    """From one sharding to another, or to a device. The arrays are new, as JAX keeps what it has read."""
    def make(module: Any) -> Task:
        x = module.device_put(_numbers(size).reshape(DEVICES, -1), divided(module, 2))
        f, target = module.jit(lambda x: x * 0.9), module.devices()[0] if to_one else divided(module, 2, axis=1)
        return Task(lambda x: ready(module.device_put(x, target)), lambda: ready(f(x)))
    return make


def getting(size: int) -> Callable[[Any], Task]:
    def make(module: Any) -> Task:
        f, x = module.jit(lambda x: x * 0.9), _put(module, size)
        return Task(np.asarray, lambda: ready(f(x)))
    return make


# One operation

def adding(module: Any) -> Task:
    x = _put(module, SMALL)
    return Task(lambda _: ready(x + x))


def totalling(module: Any) -> Task:
    x = _put(module, SMALL)
    return Task(lambda _: ready(x.sum()))


# Before the first call

def _exchanging(module: Any, result: Any = None) -> Function:
    """A program of 30 equations, with sums and exchanges among the devices; it is new to all caches."""
    lax, new, ring = module.lax, new_number(), [(i, (i + 1) % DEVICES) for i in range(DEVICES)]

    def parts(x: Any, y: Any) -> Any:
        x = x * new
        for _ in range(7):
            x = lax.sin(x) * y + y
        for _ in range(2):
            x = x * lax.psum(x, "x") + lax.ppermute(x, "x", ring)
        return x
    return _in_parts(module, parts, 2, module.P("x"))


def tracing(module: Any) -> Task:
    x = _numbers(SMALL)
    return Task(lambda f: module.make_jaxpr(f)(x, x), lambda: _exchanging(module))


def tracing_gradient(module: Any) -> Task:
    def gradient() -> Function:
        f = _exchanging(module)
        return module.grad(lambda x, y: f(x, y).sum())
    x = _numbers(SMALL)
    return Task(lambda f: module.make_jaxpr(f)(x, x), gradient)


def first_in_parts(module: Any) -> Task:
    x = _put(module, SMALL)
    return Task(lambda f: ready(f(x, x)), lambda: module.jit(_exchanging(module)))


def first_divided(module: Any) -> Task:
    """A program that the compiler divides: two products of matrices, and elementwise functions."""
    rows, columns = divided(module, 2), divided(module, 2, axis=1)
    x, lax = _numbers(64 * 64).reshape(64, 64), module.lax

    def fresh() -> Function:
        new = new_number()

        def layers(x: Any, v: Any, w: Any) -> Any:
            return lax.tanh(lax.tanh(x @ v * new) @ w) + x
        return module.jit(layers, in_shardings=(rows, columns, rows), out_shardings=rows)
    return Task(lambda f: ready(f(x, x, x)), fresh)


SAME = {"jax": 1.0}
_ROWS: dict[str, tuple[str, Callable[[Any], Task]]] = {
    "call": (f"call with an array of {SMALL}, and wait", calling(SMALL, 1)),
    "call_3": (f"call with three arrays of {SMALL}, and wait", calling(SMALL, 3)),
    "call_large": (f"call with an array of {LARGE:,}, and wait", calling(LARGE, 1)),
    "call_tree": (f"call with ten arrays of {SMALL} in a list, and wait", calling_with_tree),
    "call_numpy": (f"call with two ndarrays of {SMALL} and in_shardings, and wait", calling_with_ndarrays),
    "pmap": (f"call of `pmap` with an array of {SMALL}, and wait", mapping(put=True)),
    "pmap_numpy": (f"call of `pmap` with an ndarray of {SMALL}, and wait", mapping(put=False)),
    "psum": (f"`psum` of {LARGE:,} in `shard_map`, and wait", summing),
    "put": (f"`device_put` of an ndarray of {KB} kB", putting(SMALL)),
    "put_large": (f"`device_put` of an ndarray of {MB} MB", putting(LARGE)),
    "put_copies": (f"`device_put` of an ndarray of {MB / DEVICES:.0f} MB to every device", putting_copies),
    "move": (f"`device_put` of {KB} kB to another sharding", moving(SMALL)),
    "move_large": (f"`device_put` of {MB} MB to another sharding", moving(LARGE)),
    "gather": (f"`device_put` of {KB} kB to one device", moving(SMALL, to_one=True)),
    "gather_large": (f"`device_put` of {MB} MB to one device", moving(LARGE, to_one=True)),
    "get": (f"`np.asarray` of {KB} kB", getting(SMALL)),
    "get_large": (f"`np.asarray` of {MB} MB", getting(LARGE)),
    "add": (f"`x + x` of {SMALL}, and wait", adding), "sum": (f"`x.sum()` of {SMALL}, and wait", totalling),
    "trace": ("`make_jaxpr` of `shard_map` of 30 equations", tracing),
    "trace_grad": ("`make_jaxpr` of the gradient of `shard_map` of 30 equations", tracing_gradient),
    "first": ("first call of `jit` of `shard_map` of 30 equations", first_in_parts),
    "first_divided": ("first call of `jit` with shardings: two products of matrices", first_divided)}
ON_DEVICES: dict[str, Measure] = {
    name: elsewhere(f"devices.{name}", timed_alike(f"{what}", make, SAME)) for name, (what, make) in _ROWS.items()}
