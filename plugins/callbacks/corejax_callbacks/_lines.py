"""Lines of the terminal that are drawn again and again, beneath what else is printed."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

#: How many seconds lie between two pictures of a line, and before the first: at least, and about.
_PAUSE, _PART = 0.05, 0.1

#: A line is due again after at most so many times the steps that it has just seen. So a loop that is cheap at first and
#: slow later is silent for a hundred slow steps for each cheap one, and not for all that are done in `_PART` at the
#: first rate; and 10^6 cheap steps still call Python five times at most.
_GROWTH = 100

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
            _erase()
        yield
        if line is not None:
            try:
                sys.stdout.flush()
            except (AttributeError, OSError, ValueError):  # there is none
                pass
            _write(line.text)


def _erase() -> None:
    _write(f"\r{' ' * _width()}\r")


def _width() -> int:
    """How many characters the last line has that was drawn, at most."""
    return max([len(line.text) for line in _shown], default=0)


def _write(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):  # the terminal is gone
        pass


class Line:
    """Says how many steps are done, of how many, at which rate, and how long it will take.

    A loop carries what the line knows of it, so that a line may serve several loops at a time: after how many steps the
    line is due, how many were done when it was last called, when that was, when the loop began, in nanoseconds, and how
    many steps it has, or -1.
    """

    def __init__(self, label: str, every: int | None) -> None:
        self._label, self._every = label, every
        self._drawn = self._columns = self._columns_until = 0
        self.text = ""

    def begin(self, total: np.ndarray, going: np.ndarray) -> np.ndarray:
        """The loop begins now, if it is `going` to have any steps."""
        if self.text:  # of a loop that has been interrupted, or that is around this one
            with _lock:
                _erase()
                self._leave()
        steps, due, now = int(total), self._every or 1, time.monotonic_ns()
        loop = np.array([min(due, steps) if steps > 0 else due, 0, now, now, steps])
        return loop if going else self.show(loop, np.zeros((), np.int64), going)

    def show(self, loop: np.ndarray, done: np.ndarray, going: np.ndarray | None = None) -> np.ndarray:
        """So many steps are done; and it goes on or not, where that doesn't follow."""
        now, steps = time.monotonic_ns(), int(done)
        _, before, then, begun, total = loop.tolist()
        last = steps >= total if going is None else not going
        self._draw(steps, total, begun, now, last)
        if last:
            return loop
        seen, seconds = steps - before, 1e-9 * max(now - then, 1)
        due = steps + (self._every or max(1, int(seen * min(_PART / seconds, _GROWTH))))
        return np.array([min(due, total) if going is None else due, steps, time.monotonic_ns(), begun, total])

    def _draw(self, done: int, total: int, begun: int, now: int, last: bool) -> None:
        with _lock:
            if not last and now - max(begun, self._drawn) < 1e9 * _PAUSE:
                return
            self._drawn, width = now, _width()
            if now > self._columns_until:
                self._columns, self._columns_until = shutil.get_terminal_size().columns, now + 1_000_000_000
            self.text = self._said(done, total, 1e-9 * (now - begun))[:self._columns - 1]
            end = "\n" if last else ""
            _write(f"\r{self.text.ljust(width)}{end}")
            if last:
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
