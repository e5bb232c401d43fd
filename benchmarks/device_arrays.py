"""Arrays on a device, eagerly: each operation by itself, and reading what it gave."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.measure import Task
from benchmarks.rows import Measure, timed_alike

#: What is timed, of a module, its numpy, vectors `x` and `y`, a mask `b`, a number `i`, and a matrix `m`.
OPERATIONS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "add": ("x + y", lambda on: on.x + on.y), "times": ("x * 2.0", lambda on: on.x * 2.0),
    "equal": ("x == y", lambda on: on.x == on.y), "sin": ("lax.sin(x)", lambda on: on.lax.sin(on.x)),
    "exp": ("exp(x)", lambda on: on.np.exp(on.x)), "maximum": ("maximum(x, y)", lambda on: on.np.maximum(on.x, on.y)),
    "where": ("where(b, x, y)", lambda on: on.np.where(on.b, on.x, on.y)), "matmul": ("m @ m", lambda on: on.m @ on.m),
    "sum": ("x.sum()", lambda on: on.x.sum()), "mean": ("x.mean()", lambda on: on.x.mean()),
    "argmax": ("argmax(x)", lambda on: on.np.argmax(on.x)), "cumsum": ("cumsum(x)", lambda on: on.np.cumsum(on.x)),
    "index": ("x[3]", lambda on: on.x[3]), "index_array": ("x[i]", lambda on: on.x[on.i]),
    "slice": ("x[1:3]", lambda on: on.x[1:3]), "at_set": ("x.at[3].set(1.0)", lambda on: on.x.at[3].set(1.0)),
    "reshape": ("x.reshape(2, -1)", lambda on: on.x.reshape(2, -1)),
    "transpose": ("transpose(m)", lambda on: on.np.transpose(on.m)),
    "astype": ('x.astype("int32")', lambda on: on.x.astype("int32")),
    "concatenate": ("concatenate([x, y])", lambda on: on.np.concatenate([on.x, on.y])),
    "stack": ("stack([x, y])", lambda on: on.np.stack([on.x, on.y])),
    "broadcast_to": ("broadcast_to(x, (3, n))", lambda on: on.np.broadcast_to(on.x, (3, *on.x.shape))),
    "asarray": ("np.asarray(x)", lambda on: np.asarray(on.x)), "float": ("float(i)", lambda on: float(on.i)),
    "item": ("i.item()", lambda on: on.i.item()), "print": ("repr(m)", lambda on: repr(on.m)),
    "asarray_new": ("np.asarray(f(x)) of a compiled f", lambda on: np.asarray(on.f(on.x)))}


def operation(name: str, size: int) -> Measure:
    what, apply = OPERATIONS[name]

    def make(module: Any) -> Task:
        put, side = module.device_put, min(100, int(size**0.5))
        x = np.linspace(0.0, 1.0, size, dtype=np.float32)
        matrix = np.linspace(0.0, 1.0, side * side, dtype=np.float32).reshape(side, side)
        on = SimpleNamespace(lax=module.lax, np=import_module(f"{module.__name__}.numpy"), x=put(x),
                             y=put(x[::-1].copy()), b=put(x > 0.5), i=put(np.int32(3)), m=put(matrix),
                             f=module.jit(lambda x: x + 1))
        return Task(lambda _: apply(on))
    return timed_alike(f"eager `{what}` of device arrays of {size:,}", make, {"jax": 1.0})


DEVICE_ARRAYS: dict[str, Measure] = {
    **{name: operation(name, 8) for name in OPERATIONS},
    **{f"{name}_10000": operation(name, 10_000) for name in ("add", "sin", "where", "sum", "mean", "index", "slice")}}
