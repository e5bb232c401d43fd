"""What a new process waits for: the import, the first compiled call, and the first step of training."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.measure import Effort, Timing
from benchmarks.rivals import Rival
from benchmarks.rows import Measure, Row

_WITH_CACHE = "jax, with its cache"

_FIRST_CALL = """
f = module.jit(lambda x: module.lax.sin(x) * x + 1.0)
f(numpy.arange(8.0)).block_until_ready()
"""

_FIRST_STEP = """
from benchmarks.real import attention_gradient
gradient, args = attention_gradient("{library}")
step = module.jit(lambda params, x, y: module.tree.map(lambda p, g: p - 0.1 * g, params, gradient(params, x, y)))
for new in module.tree.leaves(step(*args)):
    new.block_until_ready()
"""

_FIRST_NUMPY_CALL = """
import {library}.numpy as jnp
float(jnp.sin(1.0))
"""


def seconds(library: str, code: str | None, cache: str | None = None) -> float:
    """How long a fresh interpreter takes to import a library and run this code, in which it is called `module`.

    If there is code, NumPy is imported before, as whoever passes arrays has done. Programs are kept in the directory
    `cache`.
    """
    before, more = "", ""
    if code is not None:
        before = "import numpy"
        more = ("module.config.update('jax_enable_x64', True)\n" * (library == "jax")) + code.format(library=library)
    code = (f"{before}\nfrom time import perf_counter as now\nstart = now()\nimport {library} as module\n{more}\n"
            "print(now() - start)")
    env = {name: value for name, value in os.environ.items()
           if name not in ("PYTHONDONTWRITEBYTECODE", "COREJAX_COMPILATION_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR")}
    if cache is not None:
        env |= {"COREJAX_COMPILATION_CACHE_DIR": cache, "JAX_COMPILATION_CACHE_DIR": cache}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    return float(done.stdout)


def in_turns(code: str | None, names: Sequence[str], effort: Effort, caches: Mapping[str, str] | None = None
             ) -> dict[str, Timing]:
    """Each library's times. The first turn isn't counted: it may write bytecode and programs to disk."""
    samples: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(2 * effort.few + 1):
        for name in [*names[turn % len(names):], *names[:turn % len(names)]]:
            found = seconds(name.partition(",")[0], code, (caches or {}).get(name))
            if turn:
                samples[name].append(found)
    return {name: Timing.of(times) for name, times in samples.items()}


def _both(rivals: Mapping[str, Rival]) -> list[str]:
    return [name for name in ("corejax", "jax") if name in rivals]


def importing(rivals: Mapping[str, Rival], effort: Effort) -> Iterator[Row]:
    """The import statement alone."""
    wanted = ("corejax", "jax", "autograd", "torch", "numpy")
    modules = [module for module in wanted if module == "numpy" or any(name.startswith(module) for name in rivals)]
    yield Row("`import`", in_turns(None, modules, effort), {"jax": 1 / 0.35})


def first_call(rivals: Mapping[str, Rival], effort: Effort) -> Iterator[Row]:
    """Import, tracing, compiling and running."""
    yield Row("`import`, and the first compiled call", in_turns(_FIRST_CALL, _both(rivals), effort), {"jax": 2.0})


def first_step(rivals: Mapping[str, Rival], effort: Effort) -> Iterator[Row]:
    """A transformer's training as far as one step, where it has run before; beside JAX with and without a cache."""
    names = [*_both(rivals), *[_WITH_CACHE for name in rivals if name == "jax"]]
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
        timings = in_turns(_FIRST_STEP, names, effort, {"corejax": ours, _WITH_CACHE: theirs})
    yield Row("`import`, and a transformer's first training step, from the compilation cache", timings, {"jax": 4.0})


def first_numpy_call(rivals: Mapping[str, Rival], effort: Effort) -> Iterator[Row]:
    """A fresh interpreter's imports of a library with its `numpy`, and a first call."""
    yield Row("imports and a first `jnp.sin(1.0)`", in_turns(_FIRST_NUMPY_CALL, _both(rivals), effort), {"jax": 2.0})


STARTING: dict[str, Measure] = {"import": importing, "first_call": first_call, "first_step": first_step}
