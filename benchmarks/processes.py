"""Two processes with two devices each, by corejax and by jax: how long calls take, and the beginning.

    python -m benchmarks.processes [rounds]

Both are started in turn, in pairs. Each figure is the median over pairs, with the quartiles in brackets; a ratio above
1 says that corejax is faster. What a process measures is the median of many calls, after some that don't count.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

#: What is measured, with the unit and how many of it are a second.
ROWS = {"from the start of Python to the end of `initialize`": ("s", 1), "the call of `initialize`": ("s", 1),
        "`initialize`, and then the devices": ("s", 1),
        "call of a program over 2 x 2 devices, elementwise, and wait": ("µs", 1e6),
        "call of a program over 2 x 2 devices, with a sum over all, and wait": ("µs", 1e6),
        "psum of 10^6 float32 over 2 processes, and wait": ("ms", 1e3)}

NAMES = ("corejax", "jax")


def child(name: str) -> None:
    """Measure in one of the processes."""
    begun = float(os.environ["BEGUN"])
    address, index = os.environ["ADDRESS"], int(os.environ["INDEX"])
    if name == "jax":
        import jax as cj
        from jax import lax
        from jax.sharding import Mesh, NamedSharding, PartitionSpec
        cj.config.update("jax_num_cpu_devices", 2)
        cj.config.update("jax_cpu_collectives_implementation", "gloo")
    else:
        import corejax as cj  # type: ignore[no-redef]
        from corejax import NamedSharding, P as PartitionSpec, lax  # type: ignore[no-redef,assignment]
        from corejax.sharding import Mesh  # type: ignore[assignment]
        cj.config.num_cpu_devices = 2  # type: ignore[attr-defined]
    called = time.perf_counter()
    cj.distributed.initialize(address, 2, index)
    returned, since = time.perf_counter(), time.time()
    devices = cj.devices()
    started = time.perf_counter()
    every = Mesh(np.array(devices), ("x",))
    two = Mesh(np.array([devices[0], devices[2]]), ("x",))
    spec = PartitionSpec("x")
    x = cj.device_put(np.ones(128, np.float32), NamedSharding(every, spec))
    million = cj.device_put(np.ones(2 * 10**6, np.float32), NamedSharding(two, spec))
    elementwise, total = cj.jit(lambda x: x * 2), cj.jit(lambda x: x.sum())
    psum = cj.jit(cj.shard_map(lambda x: lax.psum(x, "x"), mesh=two, in_specs=spec, out_specs=PartitionSpec()))
    found = [since - begun, returned - called, started - called, timed(lambda: elementwise(x), 500),
             timed(lambda: total(x), 300), timed(lambda: psum(million), 30)]
    if index == 0:
        print(json.dumps(found))


def timed(call: Callable[[], Any], count: int) -> float:
    """The seconds that a call takes, and until its result is there."""
    times = []
    for _ in range(count + count // 10 + 2):
        begun = time.perf_counter()
        call().block_until_ready()
        times.append(time.perf_counter() - begun)
    return median(times[-count:])


def run(name: str) -> list[float]:
    """What process 0 of two has measured."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    environment = {**os.environ, "ADDRESS": address, "BEGUN": repr(time.time())}
    both = [subprocess.Popen([sys.executable, "-m", "benchmarks.processes", "child", name], stderr=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, text=True, env={**environment, "INDEX": str(i)}) for i in range(2)]
    try:
        outs = [process.communicate(timeout=120)[0] for process in both]
    finally:
        for process in both:
            process.kill()
    lines = [line for line in outs[0].splitlines() if line.startswith("[") and not line.startswith("[Gloo")]
    return [float(x) for x in json.loads(lines[-1])]


def main(rounds: int = 15) -> None:
    """Measure, and print a table."""
    pairs = np.array([[run(name) for name in (NAMES if i % 2 else NAMES[::-1])][::1 if i % 2 else -1]
                      for i in range(rounds + 1)])[1:]
    print("| what | corejax | jax | ratio |\n| --- | --- | --- | --- |")
    for i, (what, (unit, scale)) in enumerate(ROWS.items()):
        ours, theirs = pairs[:, 0, i] * scale, pairs[:, 1, i] * scale
        print(f"| {what} | {quartiles(ours, unit)} | {quartiles(theirs, unit)} | {quartiles(theirs / ours)} |")


def quartiles(values: Any, unit: str = "") -> str:
    low, middle, high = np.percentile(values, [25, 50, 75])
    return f"{middle:.3g}{unit and ' ' + unit} [{low:.3g} to {high:.3g}]"


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        child(sys.argv[2])
    else:
        main(*map(int, sys.argv[1:]))
