"""Lines of the terminal that are drawn again and again, beneath what else is printed."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

#: How many seconds lie between two pictures of a line, at least; and about, in a loop of unknown length.
_PAUSE, _PART = 0.05, 0.1

#: How wide the bar is.
_BAR = 24

#: The lines that are shown now: the last one is where the terminal writes. Callbacks of several threads draw them.
_shown: list[Line] = []
_lock = threading.RLock()


def is_terminal() -> bool:
    """Whether standard error is one."""
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


@contextmanager
def aside() -> Iterator[None]:
    """Print something else: the line that is shown makes room, and is there again afterwards."""
    with _lock:
        line = _shown[-1] if _shown else None
        if line is not None:
            _write(f"\r{' ' * line.width}\r")
        yield
        if line is not None:
            try:
                sys.stdout.flush()
            except (AttributeError, OSError, ValueError):  # there is none
                pass
            _write(line.text)


def _write(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):  # the terminal is gone
        pass


class Line:
    """Says how many steps are done, of how many, at which rate, and how long it will take."""

    def __init__(self, label: str, every: int | None) -> None:
        self._label, self._every = label, every
        self._begun = self._drawn = time.monotonic()
        self.text = ""

    @property
    def width(self) -> int:
        """How many characters are shown."""
        return len(self.text)

    def begin(self, total: Any) -> np.int64:
        """The loop begins now: nothing is done yet."""
        with _lock:
            self._begun, self._drawn = time.monotonic(), 0.0
            self._leave()
        return np.int64(0)

    def show(self, done: Any, total: Any) -> None:
        """So many steps are done."""
        self._draw(int(done), int(total), int(done) == int(total))

    def next_part(self, done: Any, total: Any, going: Any) -> np.int64:
        """The same, for a loop that goes on or not; how many steps there shall be until the line is drawn again."""
        done, going = int(done), bool(going)
        if done == 0:
            self.begin(total)
        if done or not going:
            self._draw(done, int(total), not going)
        seconds = time.monotonic() - self._begun
        found = 1 if done == 0 else max(1, min(int(done / max(seconds, 1e-6) * _PART), 16 * done))
        return np.int64(self._every or found)

    def _draw(self, done: int, total: int, last: bool) -> None:
        now = time.monotonic()
        with _lock:
            if not last and now - self._drawn < _PAUSE:
                return
            self._drawn, width = now, self.width
            self.text = self._said(done, total, now - self._begun)[:shutil.get_terminal_size().columns - 1]
            _write(f"\r{self.text.ljust(width)}")
            if last:
                _write("\n")
                self._leave()
            elif self not in _shown:
                _shown.append(self)

    def _leave(self) -> None:
        self.text = ""
        if self in _shown:
            _shown.remove(self)

    def _said(self, done: int, total: int, seconds: float) -> str:
        rate = done / max(seconds, 1e-9)
        head = f"{self._label} " if self._label else ""
        if total < 0:
            return f"{head}{done:,} steps, {_rate(rate)}, {_duration(seconds)}"
        full = _BAR * done // max(total, 1)
        left = f"{_duration((total - done) / max(rate, 1e-9))} left" if done < total else f"in {_duration(seconds)}"
        return (f"{head}[{'#' * full}{'.' * (_BAR - full)}] {100 * done // max(total, 1):3}%  {done:,} of {total:,}, "
                f"{_rate(rate)}, {left}")


def _rate(rate: float) -> str:
    if rate >= 10.0:
        return f"{rate:,.0f} a second"
    return f"{rate:.1f} a second" if rate >= 1.0 else f"{60.0 * rate:.1f} a minute"


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10.0 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
