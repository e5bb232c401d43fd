"""Interleaved timing: every library takes its turn in every round, so that what disturbs one disturbs all.

A warm-up comes first and is not counted. The cyclic garbage collector is off while the clock runs, as in `timeit`,
because JAX hooks a callback into it that would slow its rivals down.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

_SAMPLE_SECONDS = 0.004


@dataclass(frozen=True, slots=True)
class Task:
    """What is timed: `run(prepare())`, of which only `run` counts."""

    run: Callable[[Any], Any]
    prepare: Callable[[], Any] = lambda: None


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds (or bytes): the median of the samples, and the quartiles around it."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, samples: Sequence[float]) -> Timing:
        low, median, high = statistics.quantiles(samples, n=4)
        return cls(median, low, high)

    @classmethod
    def exact(cls, value: float) -> Timing:
        """A figure that is always the same."""
        return cls(value, value, value)

    def per(self, units: int) -> Timing:
        """The same for one of `units` equal parts."""
        return Timing(self.median / units, self.low / units, self.high / units)


def interleaved(tasks: Mapping[str, Task], rounds: int) -> dict[str, Timing]:
    """Time each task once in every round, with rotating order."""
    return {name: Timing.of(times) for name, times in _samples(tasks, rounds).items()}


def rebuilt(make: Callable[[str], Task], names: Sequence[str], rounds: int) -> dict[str, Timing]:
    """The same for tasks of large arrays, which are made anew four times, with the names in turn the first.

    Where a program's memory lies is settled when it is made, and whoever comes first in a process lies worse: by up to
    20% for the same machine code.
    """
    pooled: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(4):
        shift = turn % len(names)
        tasks = {name: make(name) for name in [*names[shift:], *names[:shift]]}
        for name, times in _samples(tasks, -(-rounds // 4)).items():
            pooled[name] += times
    return {name: Timing.of(times) for name, times in pooled.items()}


def _samples(tasks: Mapping[str, Task], rounds: int) -> dict[str, list[float]]:
    runs = {name: _calibrate(task) for name, task in tasks.items()}
    samples: dict[str, list[float]] = {name: [] for name in tasks}
    names = list(tasks)
    for turn in range(rounds):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            samples[name].append(_sample(tasks[name], runs[name]))
    return samples


def _calibrate(task: Task) -> int:
    """How many runs make a sample long enough to trust the clock; warms up on the way."""
    _sample(task, 2)
    return max(1, min(20_000, round(_SAMPLE_SECONDS / _sample(task, 3))))


def _sample(task: Task, runs: int) -> float:
    """The mean time of some runs, in seconds."""
    run = task.run
    prepared = [task.prepare() for _ in range(runs)]
    gc.collect()
    gc.disable()
    try:
        start = perf_counter()
        for value in prepared:
            run(value)
        return (perf_counter() - start) / runs
    finally:
        gc.enable()
