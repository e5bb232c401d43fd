"""Guards around the import of a pack: a watch that reports slow imports, and protection of `sys.modules`."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from _thread import start_new_thread
from types import FrameType
from typing import TYPE_CHECKING

from corejax.base.errors import CorejaxValueError, CorejaxWarning
from corejax.base.source import describe

if TYPE_CHECKING:
    from corejax.installed.distributions import Pack

_SECONDS = "COREJAX_SLOW_IMPORT"
_DEFAULT_SECONDS = 10.0
_LONGEST = 1e6

_watching = threading.local()
_reported: set[str] = set()


class Watch:
    """Warns, once, if an import takes long, with the line that is running. It never stops the import.

    A nested import is watched by the outer one's thread.
    """

    def __init__(self, pack: Pack, module: str) -> None:
        self._pack, self._module = pack, module
        self._seconds = patience()
        self._busy = threading.Lock()  # held during the import

    def __enter__(self) -> None:
        if getattr(_watching, "now", None) is not None or not self._seconds:
            return
        _watching.now = self
        self._busy.acquire()
        try:
            # Not a `Thread`, whose `start` waits until the new thread has run: milliseconds on a busy machine.
            start_new_thread(self._wait, (threading.get_ident(),))
        except RuntimeError:  # threads can't be started here, so nothing is watched
            return
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        if getattr(_watching, "now", None) is self:
            _watching.now = None
            self._busy.release()

    def _wait(self, importer: int) -> None:
        if self._busy.acquire(timeout=self._seconds):
            return
        frame = _frame_at_work(sys._current_frames().get(importer))
        if frame is None or not self._busy.locked() or self._pack.name in _reported:
            return
        _reported.add(self._pack.name)
        what = "waits for another thread that imports it" if _is_waiting(importer) else \
            f"is at {describe((frame.f_code, frame.f_lasti))}"
        text = (f"importing {self._module} of the pack {self._pack} takes more than {self._seconds:g} s; it {what}. "
                f"COREJAX_DISABLE_PACKS={self._pack.name} leaves the pack out; {_SECONDS} says after how "
                f"many seconds this is reported, 0 for never")
        try:
            warnings.warn_explicit(text, CorejaxWarning, frame.f_code.co_filename, frame.f_lineno)
        except CorejaxWarning:  # warnings are errors: raised in this thread, nobody would see it
            print(f"CorejaxWarning: {text}", file=sys.stderr)


def patience() -> float:
    """After how many seconds an import is reported as slow, from the environment variable `COREJAX_SLOW_IMPORT`."""
    text = os.environ.get(_SECONDS)
    if text is None:
        return _DEFAULT_SECONDS
    try:
        seconds = float(text)
        if 0 <= seconds < _LONGEST:
            return seconds
    except ValueError:
        pass
    raise CorejaxValueError(f"{_SECONDS} must be a number of seconds", got=repr(text), wanted="a number, 0 for never",
                            todo=f"correct {_SECONDS}, or unset it: the default is {_DEFAULT_SECONDS:g} then")


def is_machinery(frame: FrameType) -> bool:
    """Whether the frame is of Python's own import."""
    return frame.f_code.co_filename.startswith("<frozen importlib")


def _frame_at_work(frame: FrameType | None) -> FrameType | None:
    """The innermost frame that isn't part of Python's own import system."""
    while frame is not None and is_machinery(frame):
        frame = frame.f_back
    return frame


def _is_waiting(thread: int) -> bool:
    frame = sys._current_frames().get(thread)
    return frame is not None and is_machinery(frame) and frame.f_code.co_name == "acquire"


class Modules:
    """`sys.modules` before an import, to restore what the import must not change."""

    def __init__(self) -> None:
        # A module that another thread is importing now may disappear by itself, if that import fails.
        self._before = {name: module for name, module in list(sys.modules.items())
                        if not getattr(getattr(module, "__spec__", None), "_initializing", False)}
        self._names = frozenset(sys.modules)

    def forget(self, package: str) -> None:
        """Remove what a failed import of `package` left behind."""
        for name in set(sys.modules) - self._names:
            if name == package or name.startswith(package + "."):
                module = sys.modules.pop(name, None)
                parent, _, child = name.rpartition(".")
                if module is not None and getattr(sys.modules.get(parent), child, None) is module:
                    delattr(sys.modules[parent], child)

    def restore(self, package: str) -> list[str]:
        """Restore other packages' modules that were removed, or replaced without an import. Returns their names."""
        changed = []
        for name, module in self._before.items():
            now = sys.modules.get(name)
            if now is module or name == package or name.startswith(package + "."):
                continue
            if now is None or getattr(now, "__spec__", None) is None:
                sys.modules[name] = module
                changed.append(name)
        return changed
