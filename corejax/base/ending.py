"""What becomes of threads that use the runtime while the interpreter ends.

Python ends a daemon thread where it next asks for Python's lock. If that is in native code that had let go of the lock,
such as a compiled program's, C++ is unwound where it can't be, and the process aborts. So no thread may be there by
then: when the interpreter begins to end, calls under way are awaited for a while, and what daemon threads call anew
waits for good. The main thread goes on as before, as do threads that it starts to do its last work.

The functions that enter the runtime are exchanged for that, so until then no call pays for it.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from time import monotonic, sleep
from types import CodeType, FrameType
from typing import Any, NoReturn, TypeVar

#: For how long calls under way are awaited, in seconds.
PATIENCE = 5.0

#: For how long a thread may take to let go of the runtime that frees an array, and one that the runtime has called to
#: find out that it is too late.
_MOMENT, _LAST_WORD = 0.02, 0.5

#: How long to wait before looking again at what threads do: first, and at most.
_SOON, _LATE = 0.0005, 0.01

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep

#: Makes another function of one.
By = Callable[[Callable[..., Any]], Callable[..., Any]]

_Function = TypeVar("_Function", bound=Callable[..., Any])


class _State:
    """What has been said, and how far the end has come."""

    def __init__(self) -> None:
        self.doors: list[tuple[Any, str]] = []
        self.exchanges: list[Callable[[By], None]] = []
        self.classes: list[type] = []
        self.locking: set[CodeType] = set()
        self.called_back: set[CodeType] = set()
        self.begun = self.too_late = False
        #: Whether it is known which threads and calls there were when the end began.
        self.known = threading.Event()
        self.threads: frozenset[threading.Thread] = frozenset()
        #: The outermost call of each thread then.
        self.under_way: frozenset[FrameType] = frozenset()
        self.kept: list[Any] = []
        #: How many calls are going on that began when it was too late for others.
        self.last_work = 0


_state = _State()


# What other modules say

def doors(owner: Any, *names: str) -> None:
    """These functions of a module or class enter the runtime; they are looked up there for each call."""
    _state.doors += [(owner, name) for name in names]


def exchange(change: Callable[[By], None]) -> None:
    """Call `change(by)` to exchange functions that enter the runtime and are kept elsewhere, as they are in use now."""
    _state.exchanges.append(change)
    exchange_now(change)


def exchange_now(change: Callable[[By], None]) -> None:
    """The same for a function that was made just now, if the end has begun."""
    if _state.begun:
        change(_gated)


def freeing_takes_part(kind: type) -> None:
    """To free an instance of this class enters the runtime."""
    _state.classes.append(kind)


def holds_lock(function: _Function) -> _Function:
    """Within this function, a thread may hold what others wait for, so it goes on."""
    _state.locking.add(function.__code__)
    return function


def called_back(function: _Function) -> _Function:
    """The runtime calls this function, for a call that is under way."""
    _state.called_back.add(function.__code__)
    return function


def stop_if_too_late() -> None:
    """Wait for good if calls under way are no longer awaited; for what the runtime calls back."""
    if _is_over():
        _wait_for_good()


# The end

def serve() -> None:
    """Take part in the end of the interpreter. Handlers run last in, first out: the sooner this is called, the better.
    """
    atexit.register(_begin)


def _begin() -> None:
    if _state.begun or not (_state.exchanges and _frames()):
        return
    _state.begun = True
    try:
        for owner, name in _state.doors:
            setattr(owner, name, _gated(vars(owner)[name]))
        for change in _state.exchanges:
            change(_gated)
        _state.threads = frozenset(threading.enumerate())
        _state.under_way = frozenset([call for frame in _frames() if (call := _outermost(frame)) is not None])
        # gc.get_objects would refer to tuples that other threads are just making, which is an error in these
        _state.kept = [x for x in gc.get_referrers(*_state.classes) if type(x) in _state.classes]
        _state.known.set()
        _await(PATIENCE, lambda: all([_state.under_way.isdisjoint(_stack(frame)) for frame in _frames()]))
    except KeyboardInterrupt:  # somebody has no patience
        pass
    finally:
        _state.too_late = True
        _state.known.set()
        _state.under_way = frozenset()
        _interrupt()
        _await(_LAST_WORD, lambda: not any([_is_called_back(frame) for frame in _frames()]))
        sleep(_MOMENT)


def _await(seconds: float, is_so: Callable[[], bool]) -> None:
    """Wait until something is so, for so long at most."""
    end, pause = monotonic() + seconds, _SOON
    while monotonic() < end and not is_so():
        sleep(pause)
        pause = min(2 * pause, _LATE)


def _interrupt() -> None:
    """Have what the runtime has called, and what computes in Python for good, find out that it is too late."""
    for ident, frame in sys._current_frames().items():
        if ident != threading.get_ident() and _is_called_back(frame):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(SystemExit))


def _is_called_back(frame: FrameType) -> bool:
    """Whether the runtime has called what a thread does, which doesn't wait for good yet."""
    codes = [each.f_code for each in _stack(frame)]
    return codes[0] is not _wait_for_good.__code__ and not _state.called_back.isdisjoint(codes)


def _frames() -> list[FrameType]:
    """Where the other threads are."""
    me = threading.get_ident()
    return [frame for ident, frame in sys._current_frames().items() if ident != me]


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _outermost(frame: FrameType) -> FrameType | None:
    """The call of ours by which a thread got where it is."""
    return next((each for each in reversed(list(_stack(frame)))
                 if each.f_code.co_filename.startswith(_PACKAGE) and each.f_code.co_filename != __file__), None)


# What is called meanwhile

def _gated(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        _pass()
        if not _state.too_late:
            return function(*args, **kwargs)
        _state.last_work += 1
        try:
            return function(*args, **kwargs)
        finally:
            _state.last_work -= 1
    return call


def _pass() -> None:
    """Return to a thread that may go on."""
    me = threading.current_thread()
    if not me.daemon:
        return
    _state.known.wait()
    if me not in _state.threads and not isinstance(me, threading._DummyThread):  # it does somebody's last work
        return
    calls = list(_stack(sys._getframe(1)))
    codes = {call.f_code for call in calls}
    if not codes.isdisjoint(_state.locking) or not _state.under_way.isdisjoint(calls):
        return
    if codes.isdisjoint(_state.called_back) or _is_over():
        _wait_for_good()


def _is_over() -> bool:
    return _state.too_late and not _state.last_work


def _wait_for_good() -> NoReturn:
    """Wait without Python's lock, and never ask for it again."""
    while True:
        sleep(1e6)
