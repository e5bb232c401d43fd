"""What a line that shows a loop's progress costs: loops of a million steps in a terminal, with it and without.

    python -m benchmarks.progress_line [rounds]

Everything is compiled and has run once. Each figure is a median, with the quartiles in brackets.
"""

from __future__ import annotations

import os
import pty
import sys
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numpy as np

import corejax as cj
from corejax import lax

STEPS = 10**6

#: How many sines a step takes, which are 12 ns each.
WORK = (0, 1, 5)

Loop = Callable[[Any], Any]


def loops(module: Any, work: int) -> Iterator[tuple[str, Loop]]:
    """Programs with the loops of `lax`, or of what stands in its place."""
    def step(x: Any) -> Any:
        for _ in range(work):
            x = lax.sin(x)
        return x * 0.999999 + 1.0

    rows = cj.device_put(np.linspace(0.0, 1.0, STEPS))
    for name, loop in {
            "fori_loop": lambda x: module.fori_loop(0, STEPS, lambda i, x: step(x), x),
            "fori_loop, length unknown": lambda x: module.fori_loop(0, lax.convert_element_type(x, int) * 0 + STEPS,
                                                                    lambda i, x: step(x), x),
            "while_loop": lambda x: module.while_loop(lambda s: s[0] < STEPS, lambda s: (s[0] + 1, step(s[1])), (0, x)),
            "scan": lambda x: module.scan(lambda x, _: (step(x), None), x, None, STEPS),
            "scan over inputs": lambda x: module.scan(lambda x, y: (step(x) + y, None), x, rows),
            "scan over inputs, with outputs": lambda x: module.scan(lambda x, y: (step(x) + y, x), x, rows)}.items():
        yield name, cj.jit(loop)


def measured(rounds: int) -> Iterator[str]:
    """A line for each loop."""
    for work in WORK:
        for (name, plain), (_, shown) in zip(loops(lax, work), loops(cj.callbacks.progress(), work), strict=True):
            times = np.array([[seconds(loop) for loop in (plain, shown)] for _ in range(rounds + 1)])[1:]
            low, ratio, high = np.percentile(times[:, 1] / times[:, 0], [25, 50, 75])
            more = 1e6 * np.median(times[:, 1] - times[:, 0])
            each = 1e9 * np.median(times[:, 0]) / STEPS
            yield f"{name}, {each:.1f} ns a step: {ratio:.3f} [{low:.3f} to {high:.3f}] of the time, {more:.0f} µs more"


def seconds(loop: Loop) -> float:
    """How long a loop takes."""
    begun = perf_counter()
    cj.block_until_ready(loop(1.0))
    return perf_counter() - begun


def main(rounds: int = 25) -> None:
    """Measure in a terminal, of which this process reads what is shown."""
    results, report = os.pipe()
    child, terminal = pty.fork()
    if child == 0:
        with os.fdopen(report, "w", buffering=1) as out:
            for line in measured(rounds):
                print(line, file=out)
        os._exit(0)
    os.close(report)
    try:
        while os.read(terminal, 1024):
            pass
    except OSError:  # it has ended
        pass
    os.waitpid(child, 0)
    with os.fdopen(results) as lines:
        sys.stdout.write(lines.read())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
