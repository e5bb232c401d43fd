"""Running many programs, in processes that may die: a program that ends its process is a failure like others.

A worker writes one line of JSON when it begins a program and one when it is done; so the seed of a program that killed
it, or took too long, is known, and the next worker goes on after it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .modes import Mode
from .oracles import check

LIMIT = 240.0  # seconds for one program
PROGRAMS_OF_A_WORKER = 200  # compiled programs stay in memory


@dataclass
class Worker:
    """A process that runs the programs of some seeds."""

    seeds: list[int]
    mode: str
    against: str
    process: subprocess.Popen[bytes] | None = None
    current: int | None = None
    begun: float = 0.0
    rest: bytes = b""
    done: list[int] = field(default_factory=list)

    def start(self) -> None:
        seeds = [seed for seed in self.seeds if seed not in set(self.done)][:PROGRAMS_OF_A_WORKER]
        self.process = subprocess.Popen(
            command(self.mode, self.against), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment())
        assert self.process.stdin
        self.process.stdin.write(json.dumps(seeds).encode())
        self.process.stdin.close()
        self.current, self.rest, self.begun = None, b"", time.monotonic()

    def reports(self) -> Iterator[dict[str, Any]]:
        """What came since; a process that died is begun anew after the program that killed it."""
        assert self.process and self.process.stdout
        text = os.read(self.process.stdout.fileno(), 1 << 16)
        *lines, self.rest = (self.rest + text).split(b"\n")
        for line in lines:
            report = json.loads(line)
            if report["kind"] == "begin":
                self.current, self.begun = report["seed"], time.monotonic()
            else:
                self.done.append(report["seed"])
                self.current = None
                yield report
        if not text:
            yield from self.ended()

    def ended(self) -> Iterator[dict[str, Any]]:
        assert self.process
        code = self.process.wait()
        if self.current is not None:
            how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            if -code == signal.SIGKILL and time.monotonic() - self.begun > LIMIT:
                how = f"it took more than {LIMIT:.0f} s"
            self.done.append(self.current)
            yield {"kind": "died", "seed": self.current, "what": how}
        elif code:
            raise RuntimeError(f"a worker of tests.random_programs failed outside of programs, with exit code {code}")
        self.process = None
        if len(self.done) < len(self.seeds):
            self.start()


def command(mode: str, against: str) -> list[str]:
    return [sys.executable, "-W", "ignore", "-m", "tests.random_programs", "--worker", "--mode", mode,
            "--against", against]


def environment() -> dict[str, str]:
    return {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
            "JAX_ENABLE_X64": "1", "TF_CPP_MIN_LOG_LEVEL": "3", **os.environ}


def run(seeds: Iterable[int], mode: str, against: str, processes: int = 2) -> Iterator[dict[str, Any]]:
    """A report for each program as it is done: kind "passed", "died" or that of a failure; seed; what."""
    seeds = list(seeds)
    workers = [Worker(seeds[k::processes], mode, against) for k in range(processes) if seeds[k::processes]]
    for worker in workers:
        worker.start()
    try:
        while running := [w for w in workers if w.process]:
            files = {w.process.stdout.fileno(): w for w in running if w.process and w.process.stdout}
            for file in select.select([*files], [], [], 5.0)[0]:
                yield from files[file].reports()
            for worker in running:
                if worker.process and worker.current is not None and time.monotonic() - worker.begun > LIMIT:
                    worker.process.kill()
    finally:
        for worker in workers:
            if worker.process:
                worker.process.kill()


def work(mode: Mode, against: str) -> None:
    """What a worker does."""
    seeds, using = json.load(sys.stdin), mode.oracle(against)
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def tell(**report: Any) -> None:
        out.write(json.dumps(report) + "\n")

    for seed in seeds:
        tell(kind="begin", seed=seed)
        failure = check(mode.program(seed), using)
        if failure:
            tell(kind=failure.kind, seed=seed, what=str(failure), signature=failure.signature)
        else:
            tell(kind="passed", seed=seed)
