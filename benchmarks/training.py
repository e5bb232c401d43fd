"""Training loops: the state stays on the device, batches come from NumPy, and no step is awaited."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.measure import Task
from benchmarks.rows import Measure, ready, timed_alike

LEAVES = (2, 20, 200)
STEPS = 20

#: Numbers of 4 bytes in a batch, by how the rows call its size.
SIZES = {"1kB": 250, "100kB": 25_000, "10MB": 2_500_000}


def loop(leaves: int, size: str, donated: bool, make_batch: Callable[[Any, np.ndarray], Any]) -> Measure:
    """STEPS steps, and then waiting for the last. The state is a dict of layers with two arrays each."""
    def make(module: Any) -> Task:
        def step(state: Any, batch: Any) -> Any:
            shift = batch[:8].sum()
            return module.tree.map(lambda x: x * 0.9 + shift, state)
        f = module.jit(step, donate_argnums=0 if donated else ())
        state = {f"layer{i}": {"weights": _put(module), "bias": _put(module)} for i in range(leaves // 2)}
        batches = [make_batch(module, _numbers(SIZES[size], i)) for i in range(4)]

        def run(_: Any) -> None:
            nonlocal state
            for i in range(STEPS):
                state = f(state, batches[i % 4])
            ready(state)
        return Task(run)
    how = ", donated," if donated else ""
    kinds = {_unaligned: "ndarrays", _aligned: "ndarrays at multiples of 64 bytes", _on_device: "device arrays"}
    what = f"a step: {leaves} arrays of state{how} and batches of {size[:-2]} {size[-2:]}, {kinds[make_batch]}"
    return timed_alike(what, make, {} if make_batch is _aligned else {"jax": 1.0}, per=STEPS)


def _put(module: Any) -> Any:
    return module.device_put(np.linspace(0.0, 1.0, 100, dtype=np.float32))


def _numbers(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random(count, dtype=np.float32)


def _placed(numbers: np.ndarray, offset: int) -> np.ndarray:
    """The same at so many numbers after a multiple of 64 bytes."""
    memory = np.empty(numbers.size + 32, np.float32)
    start = -memory.ctypes.data // 4 % 16 + offset
    found = memory[start:start + numbers.size]
    found[:] = numbers
    return found


def _unaligned(_: Any, numbers: np.ndarray) -> np.ndarray:
    return _placed(numbers, 1)


def _aligned(_: Any, numbers: np.ndarray) -> np.ndarray:
    """JAX reads the memory of such a batch in place, so that what is written to it later changes its result."""
    return _placed(numbers, 0)


def _on_device(module: Any, numbers: np.ndarray) -> Any:
    return module.device_put(numbers)


TRAINING: dict[str, Measure] = {
    **{f"state_{n}_batch_{size}": loop(n, size, False, _unaligned) for n in LEAVES for size in SIZES},
    **{f"donated_{n}_batch_{size}": loop(n, size, True, _unaligned) for n in LEAVES for size in ("1kB", "10MB")},
    **{f"state_{n}_device": loop(n, "1kB", False, _on_device) for n in LEAVES},
    **{f"donated_{n}_device": loop(n, "1kB", True, _on_device) for n in LEAVES},
    "state_2_aligned_10MB": loop(2, "10MB", False, _aligned)}
