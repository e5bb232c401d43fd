"""On a terminal, compiling that takes long says so, in a line that is gone again once it is done."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from corejax.base.config import config

#: After how many seconds it is told, and how often the time is told anew.
LONG, EACH = 2.0, 0.5


@contextmanager
def told(name: str) -> Iterator[None]:
    """Say in a line of the terminal that this is being compiled, if it takes longer than the block shall silently."""
    if not config.progress or not _is_terminal():
        yield
        return
    done = threading.Event()
    teller = threading.Thread(target=_tell, args=(name, done), name=f"compiling {name}", daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is none, as in a process without console, or it is closed
        return False


def _tell(name: str, done: threading.Event) -> None:
    begun, shown = time.monotonic(), 0
    wait = LONG
    while not done.wait(wait):
        line = f"compiling {name}: {time.monotonic() - begun:.0f} s"
        _write(f"\r{line}{' ' * (shown - len(line))}")
        shown, wait = len(line), EACH
    if shown:
        _write(f"\r{' ' * shown}\r")


def _write(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):  # the terminal is gone
        pass
