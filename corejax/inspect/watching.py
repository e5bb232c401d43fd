"""Running others' code in a process that may hang or die, and finding out where it did.

Nothing is read from pipes: what such a process started may hold them open for good.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

#: In the folder that a process gets: what it finds, and what it prints.
LINES, SAID = "lines", "said"

_KERNEL = str(Path(__file__).parent.parent) + os.sep
_POSIX = hasattr(os, "killpg")
_PYTHON = str(Path(os.__file__).parent) + os.sep
_STACK = re.compile(r"^Current thread .*\n((?:  .*\n)*)", re.MULTILINE)
_FRAME = re.compile(r'^ +File "(.*)", line (\d+) in (.*)$', re.MULTILINE)
_MOMENT, _PATIENCE = 1.0, 5.0  # seconds for a process to say where it is, and for its end
_PAUSE = 0.1  # seconds between looking at what it takes
_MOST_SAID, _TAIL = 1 << 26, 1 << 20  # bytes that it may write, and of which the last are read


class Ended(NamedTuple):
    """What a process found; and if it didn't come to its end, why, what it was doing, on which line of which file, and
    all steps that it had begun.
    """

    found: list[dict[str, Any]]
    why: str = ""
    at: str = ""
    place: str = ""
    steps: tuple[str, ...] = ()
    file: str = ""


def run(arguments: Sequence[str], seconds: float) -> Ended:
    """Run `corejax.inspect.child` with these arguments, as this process would find it, for so many seconds at most."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        lines, said = Path(folder, LINES), Path(folder, SAID)
        lines.touch()
        path = os.pathsep.join([os.path.abspath(entry) for entry in sys.path])
        # Not the current folder first, unless it is here; and what is printed is written at once.
        command = [sys.executable, "-P", "-u", "-X", "faulthandler", "-m", "corejax.inspect.child", folder, *arguments]
        with open(said, "ab") as output:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                       env={**os.environ, "PYTHONPATH": path}, start_new_session=True)
        try:
            why = _ended(process, seconds, said)
        finally:
            _end(process)
        found = [json.loads(line) for line in lines.read_text("utf-8").splitlines() if line.endswith("}")]
        at = next((each["at"] for each in reversed(found) if "at" in each), "")
        steps = tuple([each["step"] for each in found if "step" in each])
        rest = [{key: value for key, value in each.items() if key != SAID} for each in found
                if "at" not in each and "step" not in each]
        if not why and found and not at:
            return Ended(rest)
        text = _tail(said, _since(found, at))
        file, place = _place(text)
        return Ended(rest, why or f"ends with exit code {process.returncode}", at, place or _last(text), steps, file)


def _since(found: Sequence[dict[str, Any]], at: str) -> int:
    """How much a process had printed when it began, in its last step, with what it was doing."""
    begun = [i for i, each in enumerate(found) if "step" in each]
    return next((each[SAID] for each in found[begun[-1]:] if each.get("at") == at), 0) if begun else 0


def _ended(process: subprocess.Popen[bytes], seconds: float, said: Path) -> str:
    """Wait for a process to end by itself; if it doesn't, why."""
    end = time.monotonic() + seconds
    while True:
        try:
            code = process.wait(min(_PAUSE, max(end - time.monotonic(), 0.0)))
            break
        except subprocess.TimeoutExpired:
            why = _too_much(process.pid, said)
            if time.monotonic() >= end:
                why = f"takes more than {seconds:g} s"
        if why:
            if _POSIX:
                process.send_signal(signal.SIGUSR1)  # so it says where it is
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_MOMENT)
            return why
    by = next((each.name for each in signal.Signals if each == -code), f"signal {-code}")
    return f"is ended by {by}" if code < 0 else ""


def _too_much(pid: int, said: Path) -> str:
    """What a process has taken too much of, as far as the system tells it."""
    if said.stat().st_size > _MOST_SAID:
        return f"writes more than {_MOST_SAID >> 20} MB"
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        most = os.sysconf("SC_PHYS_PAGES") // 2
    except (OSError, ValueError, IndexError):
        return ""
    return "takes more than half of the memory" if pages > most else ""


def _tail(said: Path, since: int) -> str:
    """The end of what a process wrote, from a place on."""
    with open(said, "rb") as file:
        file.seek(max(since, said.stat().st_size - _TAIL))
        return file.read().decode("utf-8", "replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started."""
    with suppress(ProcessLookupError, PermissionError, subprocess.TimeoutExpired):
        if _POSIX:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait(_PATIENCE)  # one that a driver holds can't be ended, so not for ever


def _place(said: str) -> tuple[str, str]:
    """The file of the innermost line of others' code on the stack that a process left, and the line as text."""
    stack = _STACK.search(said)
    frames = [found for found in _FRAME.findall(stack[1] if stack else "") if not _is_below(found[0])]
    return (frames[0][0], "{}:{} ({})".format(*frames[0])) if frames else ("", "")


def _is_below(file: str) -> bool:
    """Whether a file is of Python or of corejax, which others' code calls or is called by."""
    return file.startswith(("<frozen", _KERNEL)) or (file.startswith(_PYTHON) and "-packages" not in file)


def _last(said: str) -> str:
    """The last line that a process wrote."""
    return next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "")
