"""How much a process grows while it does something. Each sample is a separate process.

    python -m benchmarks.memory TASK LIBRARY
"""

from __future__ import annotations

import gc
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.loops import CLOSE, STEPS, gradient
from benchmarks.measure import Effort, Timing
from benchmarks.rivals import Rival, corejax, jax
from benchmarks.rows import Measure, Row, by_operators, ready

#: Source equations: many, so that what a library loads once doesn't matter.
TRACED = 100_000
DIFFERENTIATED = 20_000

#: The work to measure; a short piece of the same kind has been done before.
Work = Callable[[], Any]


def tracing(rival: Rival) -> Work:
    rival.module.make_jaxpr(by_operators(rival, 30))(0.5, 0.5)
    return lambda: rival.module.make_jaxpr(by_operators(rival, TRACED))(0.5, 0.5)


def tracing_a_gradient(rival: Rival) -> Work:
    rival.module.make_jaxpr(rival.gradient(by_operators(rival, 30)))(0.5, 0.5)
    return lambda: rival.module.make_jaxpr(rival.gradient(by_operators(rival, DIFFERENTIATED)))(0.5, 0.5)


def running_a_loop(rival: Rival) -> Work:
    short, args = gradient(rival, "an RNN of 64", 100)
    ready(short(*args))
    function, args = gradient(rival, "an RNN of 64", STEPS * 10)
    compiled = function.lower(*args).compile()
    return lambda: ready(compiled(*args))


TASKS: dict[str, Callable[[Rival], Work]] = {
    "trace": tracing, "trace_grad": tracing_a_gradient, "loop": running_a_loop}


def grown(what: str, task: str, target: float | None = None, per: int = 1) -> Measure:
    """A row in bytes."""
    def measure(rivals: Mapping[str, Rival], effort: Effort) -> Iterator[Row]:
        samples: dict[str, list[float]] = {name: [] for name, rival in rivals.items() if rival.module}
        for _ in range(max(2, effort.few // 2 + 1)):
            for name, found in samples.items():
                found.append(_once(task, name))
        targets = {} if target is None else {"jax": target}
        yield Row(what, {name: Timing.of(found).per(per) for name, found in samples.items()}, targets, "B")
    return measure


def _once(task: str, library: str) -> float:
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run([sys.executable, "-m", "benchmarks.memory", task, library], capture_output=True, text=True,
                          check=True, cwd=root)
    return float(done.stdout)


def most_resident(forget: bool = False) -> int:
    """The peak memory of this process so far, in bytes; `forget` resets it first (where Linux allows that)."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if forget:
        Path("/proc/self/clear_refs").write_text("5")
    (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def main() -> None:
    """Do the work, and print by how many bytes the process grew at most."""
    task, library = sys.argv[1:]
    work = TASKS[task]({"corejax": corejax, "jax": jax}[library]())
    gc.collect()
    before = most_resident(forget=True)
    kept = work()
    print(most_resident() - before)
    del kept


MEMORY: dict[str, Measure] = {
    "trace": grown("peak memory of `make_jaxpr`, per equation", "trace", per=TRACED),
    "trace_grad": grown("peak memory of `make_jaxpr(grad)`, per source equation", "trace_grad", per=DIFFERENTIATED),
    "loop": grown(f"growth of a process by {STEPS * 10:,} steps: an RNN of 64", "loop", CLOSE)}


if __name__ == "__main__":
    main()
