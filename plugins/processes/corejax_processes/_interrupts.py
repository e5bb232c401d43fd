"""Ctrl-C while a program waits for other processes, and the main thread that doesn't come out of the runtime.

Python handles a signal where its main thread next runs Python, and that waits in the runtime. But the signal's number
is written to a file at once, which another thread reads.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from time import process_time, sleep
from types import FrameType

import corejax
from corejax.plugin import peers

#: For so long the main thread must stand still before it counts as waiting in the runtime, in seconds.
_STILL = 0.3

#: For so long a program may take to fail, once its sockets are shut down, in seconds.
_STUCK = 3.0

_RUNTIME = os.path.dirname(corejax.__file__) + os.sep


class _State:
    """Where signals are written to."""

    writing = -1


_state = _State()


def forget() -> None:
    """In a forked child: its signals are none of its parent's."""
    if _state.writing != -1:
        with suppress(ValueError):  # not in the main thread
            signal.set_wakeup_fd(-1)
        os.close(_state.writing)
        _state.writing = -1


def watch(interrupt: Callable[[], None]) -> None:
    """Call `interrupt` in another thread when a SIGINT has come, and the main thread doesn't come out of the runtime.

    Nothing is watched where somebody else does so already, as an event loop does.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    if before != -1:
        signal.set_wakeup_fd(before)
        os.close(reading)
        os.close(writing)
        return
    _state.writing = writing

    def listen() -> None:
        while True:
            numbers = os.read(reading, 64)
            usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else somebody knows better
            if signal.SIGINT in numbers and usual and _stands_still(_STILL):
                interrupt()

    threading.Thread(target=listen, name="corejax: Ctrl-C", daemon=True).start()


def end_if_stuck(why: str) -> None:
    """End this process if its main thread waits for a program of several processes although its sockets are shut down.

    A process that goes on after it was stopped may be in that state, by a fault of Gloo, for half an hour. Nothing else
    ends it, and there is nobody to compute with any more. One that uses the processor isn't in that state.
    """
    def look() -> None:
        worked = process_time()
        while not peers.all_ended(_STUCK) and _stands_still(_STILL):
            before, worked = worked, process_time()
            if worked - before > _STUCK / 10:  # it computes still, and comes to where it waits later
                continue
            print(f"{why}\nThe runtime doesn't come out of a program that waits for other processes: this process is "
                  "ended by corejax.", file=sys.stderr, flush=True)
            os._exit(1)

    threading.Thread(target=look, name="corejax: the last resort", daemon=True).start()


def _stands_still(seconds: float) -> bool:
    """Whether the main thread waits in a call of corejax."""
    before = _where()
    sleep(seconds)
    return before is not None and before == _where()


def _where() -> tuple[FrameType, int] | None:
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    if frame is None or not frame.f_code.co_filename.startswith((_RUNTIME, os.path.dirname(__file__))):
        return None
    return frame, frame.f_lasti
