"""What `check` and `doctor` run in processes of their own, since others' code may hang or end a process.

    python -m corejax.inspect.child FOLDER packs [STEP ...]
    python -m corejax.inspect.child FOLDER backend NAME
    python -m corejax.inspect.child FOLDER facts NAME

It writes JSON into a file in the folder, a line as soon as it is known: {"at": ...}, what is being done now,
{"step": ...}, which step of several has begun, or what was found. `said` is how much had been printed by then.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from corejax.arrays.array import Array
from corejax.arrays.storage import to_numpy
from corejax.base.avals import ShapedArray
from corejax.base.config import config
from corejax.base.errors import CorejaxError
from corejax.inspect import watching
from corejax.inspect.checkup import checkup
from corejax.installed import groups, registry
from corejax.interpreters.staging import stage
from corejax.kernel.declarations import hookimpl
from corejax.kernel.primitive import Primitive
from corejax.packs.define import define
from corejax.xla.cache.compile import compile_jaxpr
from corejax.xla.runtime import backends, client

Say = Callable[..., None]

_PACKS = "packs"

# What is being checked may replace these, and close or redirect whatever is open.
_exit, _getpid, _stat, _open, _write, _close = os._exit, os.getpid, os.stat, os.open, os.write, os.close
_encode = json.JSONEncoder().encode
_FLAGS = os.O_WRONLY | os.O_APPEND
_HIGH = 200  # a descriptor that nobody closes by accident, with all of the first ones


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


def facts(say: Say, name: str) -> None:
    """Say what the function that a pack has for this section says."""
    entry = registry.installed().choose(groups.FACTS, name)
    found = registry.load(groups.FACTS, name)()
    if not isinstance(found, dict) or not all([isinstance(text, str) for pair in found.items() for text in pair]):
        assert entry is not None
        raise registry.entry_error(entry, "doesn't return facts", repr(found)[:80], "a dict of texts by their names")
    for key, fact in found.items():
        say(name=key, fact=fact)


def _append(path: str, text: str) -> None:
    opened = _open(path, _FLAGS)
    _write(opened, text.encode("utf-8", "backslashreplace"))
    _close(opened)


def _reporter(lines: str, said: str) -> Say:
    """The function that writes what was found."""
    me = _getpid()

    def say(**found: object) -> None:
        if _getpid() != me:  # what is being checked has forked the process, and goes on in both
            _exit(0)
        _append(lines, _encode({**found, "said": _stat(said).st_size}) + "\n")
    return say


def _show_stacks(said: str) -> None:
    """Have the stack written down if the process crashes, or if whoever waits for it asks where it is."""
    file = _open(said, _FLAGS)
    with suppress(OSError):
        file = os.dup2(file, _HIGH, inheritable=False)
    faulthandler.enable(file)
    if hasattr(faulthandler, "register"):  # to abort it would leave a core dump
        faulthandler.register(signal.SIGUSR1, file)


def main(folder: str, command: str, *arguments: str) -> None:
    """Run a command; an error is what it found last."""
    lines, said = os.path.join(folder, watching.LINES), os.path.join(folder, watching.SAID)
    _show_stacks(said)
    say = _reporter(lines, said)
    try:
        commands: dict[str, Callable[..., None]] = {_PACKS: packs, "backend": backend, "facts": facts}
        commands[command](say, *arguments)
    except CorejaxError as error:
        say(error=error.message + (f": {error.got}" if error.got else ""), todo=error.todo or "")
    except (Exception, SystemExit) as error:
        say(error=registry.words(error), todo="")
    except BaseException as error:  # which would end the process, unless there are threads that it waits for
        _append(said, f"\n{registry.words(error)}\n")
        _exit(1)
    say(at="")
    if command == _PACKS:
        _exit(0)  # whatever threads there are: those that keep a process from ending have been told


if __name__ == "__main__":
    main(*sys.argv[1:])
