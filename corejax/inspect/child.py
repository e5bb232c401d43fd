"""What `check` and `doctor` run in processes of their own, since others' code may hang or end a process.

    python -m corejax.inspect.child FILE packs [STEP ...]
    python -m corejax.inspect.child FILE backend NAME

It writes JSON into the file, a line as soon as it is known: {"at": ...}, what is being done now,
{"step": ...}, which step of several has begun, or what was found.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.arrays.array import Array
from corejax.arrays.storage import to_numpy
from corejax.base.avals import ShapedArray
from corejax.base.config import config
from corejax.base.errors import CorejaxError
from corejax.inspect.checkup import checkup
from corejax.installed import registry
from corejax.interpreters.staging import stage
from corejax.kernel.declarations import hookimpl
from corejax.kernel.primitive import Primitive
from corejax.packs.define import define
from corejax.xla.cache.compile import compile_jaxpr
from corejax.xla.runtime import backends, client

Say = Callable[..., None]

_PACKS = "packs"


def packs(say: Say, *without: str) -> None:
    """Say everything that is wrong with packs, and before that which one is looked at; some steps are left out."""
    now = ""

    def begin(step: str) -> None:
        nonlocal now
        now = "" if " " in step else step
        say(step=step)
        say(at=now)

    registry.tell_of_imports(lambda pack: say(at=pack or now))
    for problem in checkup(begin, without):
        say(**problem._asdict())


class Twice:
    """A primitive for the smoke run, since there may be no pack."""

    name = "twice"

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray]) -> ShapedArray:
        return avals[0]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Sequence[Any]) -> Any:
        return ctx.op("stablehlo.add", [args[0], args[0]])


def backend(say: Say, name: str) -> None:
    """Compile and run a small program on a device of each kind that the backend has; say what came of it."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # somebody else may be using the device
    config.compilation_cache_dir = None
    say(at="its pack is imported")
    found = backends.offer(name)
    say(at="it is asked whether it can be used")
    reason = found.why_not()
    if reason is not None:
        say(unusable=reason)
        return
    config.backend = name
    say(at="it is started")
    devices = client.devices()
    kinds = {device.device_kind: device for device in reversed(devices)}
    for kind, device in reversed(kinds.items()):
        say(at=f"a program runs on {device}")
        start = time.perf_counter()
        got = _smoke(device)
        count = sum([each.device_kind == kind for each in devices])
        say(kind=kind, count=count, seconds=time.perf_counter() - start, wrong=got)


def _smoke(device: object) -> str:
    """What the program computes on a device, if that is wrong."""
    values = np.arange(4, dtype=np.float32)
    aval = ShapedArray(values.shape, values.dtype)
    primitive: Primitive = vars(define(Twice()))["primitive"]
    program = compile_jaxpr(stage(lambda x: [primitive.bind(x)], [aval]), name="smoke", at=client.place_of(device))
    out = to_numpy(program([Array.from_host(values, aval)])[0])
    return "" if np.array_equal(out, values + values) else f"{out.tolist()} instead of {(values + values).tolist()}"


def main(file: str, command: str, *arguments: str) -> None:
    """Run a command; an error is what it found last."""
    if hasattr(faulthandler, "register"):  # whoever waits for it asks where it is; to abort it would leave a core dump
        faulthandler.register(signal.SIGUSR1)
    with open(file, "a", encoding="utf-8") as lines:
        def say(**found: object) -> None:
            if os.getpid() != me:  # what is being checked has forked the process, and goes on in both
                os._exit(0)
            print(json.dumps(found), file=lines, flush=True)

        me = os.getpid()
        try:
            if command == _PACKS:
                packs(say, *arguments)
            else:
                backend(say, *arguments)
        except CorejaxError as error:
            say(error=error.message + (f": {error.got}" if error.got else ""), todo=error.todo or "")
        except (Exception, SystemExit) as error:
            say(error=registry.words(error), todo="")
        say(at="")
    if command == _PACKS:
        os._exit(0)  # whatever threads there are: those that keep a process from ending have been told


if __name__ == "__main__":
    main(*sys.argv[1:])
