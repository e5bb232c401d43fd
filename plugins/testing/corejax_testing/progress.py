"""How far a long run is, on one line of a terminal that is rewritten in place, and cleared at the end.

A thread writes the line, from what the run last said, so that the run itself loses no time. Where standard error isn't
a terminal that can rewrite a line, or under pytest, nothing is written.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self, TextIO

from corejax_testing.effort import NO_COUNTEREXAMPLE
from corejax_testing.report import clipped

#: Seconds before the line is first written, and between two times.
_FIRST, _EVERY = 0.5, 0.2

#: What checks usually cost, relative to most of the others.
_COSTS: Mapping[str, float] = {
    NO_COUNTEREXAMPLE: 100.0, "orderings to depth three agree": 80.0, "every dtype that is accepted works": 30.0,
    "another process gives the same": 20.0, "threads do not disturb each other": 10.0,
    "third derivatives agree with differences": 10.0, "impl and the compiled program agree": 10.0,
    "derivatives agree at special points": 8.0, "orderings to depth two agree": 8.0,
    "operands on the device give the same": 5.0, "second derivatives agree with differences": 4.0,
    "python scalars give the announced weak types": 4.0, "it works inside checkpoints and loops": 3.0,
    "a map is a loop": 3.0, "no fallback is hidden": 3.0, "nested maps are nested loops": 3.0,
    "maps of jvps and jvps of maps are loops": 3.0, "empty arrays and scalars work": 3.0}

#: Only one line at a time: of runs in several threads, the first one shows how far it is.
_shown = threading.Lock()


class Progress:
    """The line, as a context. What is told of the run is kept even if nothing is shown: it costs nothing.

    The seconds left are estimated from what the run took so far: each primitive counts the same, and within one each
    check as much as it usually costs.
    """

    def __init__(self, primitives: int = 1, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._primitives, self._finished = primitives, 0
        self._name = self._check = ""
        self._costs: dict[str, float] = {}
        self._spent = self._part = 0.0
        self._thread: threading.Thread | None = None
        self._over = threading.Event()
        self._length = 0
        self._start = time.perf_counter()

    # What the run tells

    def primitive(self, name: str, checks: Sequence[str]) -> None:
        """The checks of a primitive begin."""
        self._name, self._check, self._spent, self._part = name, "", 0.0, 0.0
        self._costs = {check: _COSTS.get(check, 1.0) for check in checks}

    def check(self, name: str) -> None:
        """A check begins, and the one before is over."""
        self._spent += self._costs.get(self._check, 0.0)
        self._check, self._part = name, 0.0

    def part(self, done: float) -> None:
        """How much of the current check is done, from 0 to 1."""
        self._part = done

    def finished(self) -> None:
        """The primitive is done."""
        self._finished += 1
        self._costs = {}

    # The line

    def __enter__(self) -> Self:
        if _can_be_rewritten(self._stream) and _shown.acquire(blocking=False):
            self._start = time.perf_counter()
            self._thread = threading.Thread(target=self._write_again, name="corejax progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
                 ) -> None:
        if self._thread is not None:
            self._over.set()
            self._thread.join()
            _shown.release()

    def _write_again(self) -> None:
        pause = _FIRST
        while not self._over.wait(pause):
            pause = _EVERY
            self._write(self.text())
        if self._length:
            self._write("")
            self._write("", end="\r")

    def _write(self, text: str, end: str = "") -> None:
        try:
            text = clipped(text, max(os.get_terminal_size(self._stream.fileno()).columns - 1, 10))
            self._stream.write(f"\r{text.ljust(self._length)}{end}")
            self._stream.flush()
        except (OSError, ValueError):  # the terminal is gone
            self._over.set()
        self._length = len(text)

    def text(self) -> str:
        """The line: the primitive, the check, the seconds so far, and how many are left."""
        elapsed, done = time.perf_counter() - self._start, self.fraction()
        left = f", about {_seconds(elapsed * (1 - done) / done)} left" if done else ""
        which = f" ({self._finished + 1} of {self._primitives})" if self._primitives > 1 else ""
        return f"{self._name}{which}: {self._check}, {_seconds(elapsed)}{left}"

    def fraction(self) -> float:
        """How much is done, from 0 to 1."""
        total = sum(self._costs.values())
        within = (self._spent + self._part * self._costs.get(self._check, 0.0)) / total if total else 0.0
        return min((self._finished + within) / self._primitives, 1.0)


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _can_be_rewritten(stream: TextIO) -> bool:
    """Whether a line written there can be written again, and somebody is there to see it."""
    try:
        terminal = stream.isatty() and os.get_terminal_size(stream.fileno()).columns > 20
    except (AttributeError, OSError, ValueError):
        return False
    return terminal and os.environ.get("TERM", "dumb") != "dumb" and "PYTEST_CURRENT_TEST" not in os.environ
