"""Runs a script in several processes that compute together, and gathers what each of them has to say."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

#: Where a script writes its results to, which `keep` does.
_RESULTS = "TOGETHER_RESULTS"

#: Small machines run many processes at once: one thread of the compiler's code in each.
_ONE_THREAD = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


class Outcome(NamedTuple):
    """How one of the processes ended."""

    code: int
    out: str
    error: str
    results: Any
    """What it has passed to `keep`; None if it hasn't."""


class TookTooLong(Exception):
    """Some processes had to be killed."""


def free_port() -> int:
    """A port of this machine at which nobody listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def keep(results: object) -> None:
    """Hand results to the test that has started this process."""
    Path(os.environ[_RESULTS]).write_bytes(pickle.dumps(results))


def together(script: str | Path, processes: int, devices: int, args: Sequence[str] = (), *, seconds: float = 120.0,
             environment: Mapping[str, str] | None = None) -> list[Outcome]:
    """The outcomes of a script (a path, or Python code) in so many processes, each with so many devices.

    One process alone isn't told of others. All are killed if they take longer than `seconds`, which is an error; none
    is left when this returns.
    """
    command = [sys.executable, str(script)] if isinstance(script, Path) else [sys.executable, "-c", script]
    common = {name: value for name, value in os.environ.items() if not name.startswith(("COREJAX_", "SLURM_"))}
    common |= {name: value for name, value in os.environ.items() if name == "COREJAX_PACKS"}
    common |= {**_ONE_THREAD, "COREJAX_NUM_CPU_DEVICES": str(devices), "JAX_NUM_CPU_DEVICES": str(devices),
               "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]),
               "TOGETHER_PROCESSES": str(processes)}
    if processes > 1:
        common |= {"COREJAX_COORDINATOR_ADDRESS": f"127.0.0.1:{free_port()}", "COREJAX_NUM_PROCESSES": str(processes)}
    with tempfile.TemporaryDirectory() as folder:
        running = []
        files = []
        for i in range(processes):
            base = Path(folder, str(i))
            own = {_RESULTS: f"{base}.results"} | ({"COREJAX_PROCESS_ID": str(i)} if processes > 1 else {})
            files.append([open(f"{base}.out", "w+b"), open(f"{base}.err", "w+b")])
            running.append(subprocess.Popen([*command, *args], env={**common, **own, **(environment or {})},
                                            stdin=subprocess.DEVNULL, stdout=files[i][0], stderr=files[i][1],
                                            start_new_session=True))
        try:
            late = _wait(running, seconds)
            texts = [[_text(file) for file in pair] for pair in files]
            if late:
                raise TookTooLong(f"the processes {late} of {processes} took longer than {seconds} s:\n"
                                  + "\n".join(f"[{i}] {error[-3000:]}" for i, (_, error) in enumerate(texts)))
            return [Outcome(process.returncode, out, error, _results(Path(folder, f"{i}.results")))
                    for i, (process, (out, error)) in enumerate(zip(running, texts, strict=True))]
        finally:
            for process in running:
                _kill(process)
            for pair in files:
                for file in pair:
                    file.close()


def _wait(running: Sequence[subprocess.Popen[bytes]], seconds: float) -> list[int]:
    """Wait for all; the numbers of those that are too late."""
    until = time.monotonic() + seconds
    for process in running:
        try:
            process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            pass
    return [i for i, process in enumerate(running) if process.poll() is None]


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and those that it has started: process 0 has the service."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _text(file: Any) -> str:
    file.seek(0)
    text: str = file.read().decode(errors="replace")
    return text


def _results(path: Path) -> Any:
    return pickle.loads(path.read_bytes()) if path.exists() else None
