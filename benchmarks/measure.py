"""Interleaved timing: every library takes its turn in every round, so that all share any disturbance.

Whatever is timed is made several times, with a different library first each time: the location of a program's memory is
settled when it is made, and whichever comes first in a process is at a disadvantage, of up to 20% for the same machine
code. A warm-up comes first and isn't counted. The cyclic garbage collector is off while the clock runs, as in `timeit`,
because JAX hooks a callback into it that would slow down its rivals.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

_SAMPLE_SECONDS = 0.004
_SLOW_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Task:
    """Something to time: `run(prepare())`, where only `run` counts."""

    run: Callable[[Any], Any]
    prepare: Callable[[], Any] = lambda: None


@dataclass(frozen=True, slots=True)
class Effort:
    """How many samples each figure takes, how often the tasks are made again, and when to stop."""

    rounds: int = 25
    turns: int = 4
    seconds: float = 15.0

    @property
    def few(self) -> int:
        """The number of samples for something that takes seconds."""
        return max(2, self.rounds // 5)


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds (or bytes): the median of the samples, the quartiles, and the number of samples."""

    median: float
    low: float
    high: float
    count: int = 1

    @classmethod
    def of(cls, samples: Sequence[float]) -> Timing:
        low, median, high = statistics.quantiles(samples, n=4)
        return cls(median, low, high, len(samples))

    @classmethod
    def exact(cls, value: float) -> Timing:
        """A figure that is always the same."""
        return cls(value, value, value)

    def per(self, units: int) -> Timing:
        """The same per unit, for `units` equal parts."""
        return Timing(self.median / units, self.low / units, self.high / units, self.count)


def measured(make: Callable[[str], Task | None], names: Iterable[str], effort: Effort) -> dict[str, Timing]:
    """Time the task that `make` returns for each name, skipping names without one."""
    pooled: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(effort.turns):
        tasks = {}
        for name in _rotated(list(pooled), turn):
            task = make(name)
            if task is None:
                del pooled[name]
            else:
                tasks[name] = task
        for name, times in _samples(tasks, -(-effort.rounds // effort.turns), effort.seconds / effort.turns).items():
            pooled[name] += times
    return {name: Timing.of(times) for name, times in pooled.items()}


def _rotated(names: list[str], by: int) -> list[str]:
    shift = by % len(names)
    return names[shift:] + names[:shift]


def _samples(tasks: Mapping[str, Task], rounds: int, seconds: float) -> dict[str, list[float]]:
    """A sample of each task in every round; fewer rounds, but at least two, if they take too long."""
    runs = {name: _calibrate(task) for name, task in tasks.items()}
    samples: dict[str, list[float]] = {name: [] for name in tasks}
    start = perf_counter()
    for turn in range(rounds):
        for name in _rotated(list(tasks), turn):
            samples[name].append(_sample(tasks[name], runs[name]))
        if turn and perf_counter() - start > seconds:
            break
    return samples


def _calibrate(task: Task) -> int:
    """How many runs make a sample long enough to trust the clock; warms up on the way."""
    _sample(task, 1)
    if _sample(task, 1) > _SLOW_SECONDS:
        return 1
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
