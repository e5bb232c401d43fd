"""Where the microseconds of a call go: a picture for docs/performance.md.

    python -m benchmarks.anatomy            measure, print, and draw docs/one-call.svg

The runtime alone runs the program on the same buffers and takes its results apart. The code that is made for calls
alike runs without the function around it. Each of these, the whole call and JAX's take turns.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import corejax as cj
from benchmarks import plot
from benchmarks.measure import Effort, Task, measured
from corejax.xla.runtime.execution import Parts

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "one-call.svg"
SMALL = np.linspace(0.0, 1.0, 8, dtype=np.float32)


def cases(module: Any) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """The functions, each with its arguments."""
    x = module.device_put(SMALL)
    return {"a device array": (lambda x: x * 0.9, (x,)), "two device arrays": (lambda x, y: x * y, (x, x)),
            "a small ndarray": (lambda x: x * 0.9, (SMALL,)), "a number": (lambda x: x * 0.9, (0.5,)),
            "a dict of 20 device arrays": (lambda tree: {name: x * 0.9 for name, x in tree.items()},
                                           ({f"layer{i}": x for i in range(20)},))}


def tasks(what: str) -> dict[str, Task]:
    """The call, the code made for it, and the runtime alone; and JAX's call."""
    function, args = cases(cj)[what]
    compiled = cj.jit(lambda *args: function(*args))
    for _ in range(4):
        compiled(*args)
    (entry,), = inspect.getclosurevars(compiled).nonlocals["entries"][cj.config.default_bits].values()
    parts, = [value for value in entry.__globals__.values() if type(value) is Parts]
    buffers = [cj.device_put(x)._buffer for x in cj.tree.leaves(args)]
    execute, handlers = parts.execute, parts.handlers
    jax = import_module("jax")
    rival, rivals_args = cases(jax)[what]
    theirs = jax.jit(rival)
    return {"the runtime": Task(lambda _: execute(buffers).consume_with_handlers(handlers)),
            "the code": Task(lambda _: entry(args)), "the call": Task(lambda _: compiled(*args)),
            "jax": Task(lambda _: theirs(*rivals_args))}


def main() -> None:
    """Measure, print, and draw."""
    import_module("jax").config.update("jax_enable_x64", True)
    found, rival = {}, {}
    for what in cases(cj):
        made = tasks(what)
        timings = measured(made.get, made, Effort(rounds=40))
        runtime, code, call, theirs = [timing.median * 1e6 for timing in timings.values()]
        found[what], rival[what] = (runtime, code - runtime, call - code), theirs
        print(f"{what:28} runtime {runtime:6.2f}  code {code - runtime:6.2f}  call {call - code:6.2f}  = {call:6.2f} µs"
              f"   jax {theirs:6.2f}")
    PICTURE.write_text(plot.one_call(found, rival))


if __name__ == "__main__":
    main()
