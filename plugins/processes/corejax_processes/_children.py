"""Processes that belong together: all get the signals that their starter gets, and if one fails, all end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

from corejax_processes._output import Output, Stream
from corejax_processes._service import ServiceProcess

#: When one has failed, the others have so long to end by themselves, and then after SIGTERM, in seconds.
_BY_THEMSELVES: Final = 3.0
_AFTER_TERM: Final = 5.0

#: What a process leaves behind in its group has so long to end, and then after SIGTERM.
_LEFT: Final = 1.0

#: How long to wait at most before looking at everything again; signals and output end it.
_EACH: Final = 0.2

#: Output that somebody else holds open is read for so long after the end of all.
_REST: Final = 1.0

#: So many notes, or signals, are read at once.
_MOST: Final = 4096


class Plan:
    """SIGTERM after some seconds, SIGKILL after more."""

    def __init__(self, first: float, then: float) -> None:
        now = time.monotonic()
        self._steps = [(now + first, signal.SIGTERM), (now + first + then, signal.SIGKILL)]

    def due(self) -> Iterator[int]:
        """The signals whose time has come, each once."""
        while self._steps and time.monotonic() >= self._steps[0][0]:
            yield self._steps.pop(0)[1]

    def is_done(self) -> bool:
        return not self._steps


class Child:
    """One of the processes, with the group that it leads, unless it shares its starter's."""

    def __init__(self, number: int, command: Sequence[str], environment: Mapping[str, str], shared: bool,
                 notes: int) -> None:
        self.number, self.shared = number, shared
        self.process = subprocess.Popen(command, env=environment, stdin=None if number == 0 else subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        process_group=None if shared else 0, pass_fds=[notes])
        self.code: int | None = None
        self._left: Plan | None = None

    def send(self, number: int) -> bool:
        """Send a signal to it and to what it has started; whether somebody is there. 0 is none."""
        if self.code is not None and self._left is None:
            return False
        try:
            (os.kill if self.shared else os.killpg)(self.process.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def has_ended(self) -> bool:
        """Whether it has ended just now."""
        if self.code is not None or self.process.poll() is None:
            return False
        self.code = self.process.returncode
        self._left = None if self.shared else Plan(_LEFT, _LEFT)
        return True

    def is_over(self) -> bool:
        """Whether nothing of it is left; ends what is, in time."""
        if self._left is not None:
            for number in self._left.due():
                self.send(number)
            # The group's number isn't given to others while somebody is in it.
            if self._left.is_done() or not self.send(0):
                self._left = None
        return self.code is not None and self._left is None

    def kill(self) -> None:
        """End it and what it has started, now."""
        self.send(signal.SIGKILL)
        self._left = None
        self.code = self.process.wait()


class Children:
    """The processes, from their start to the end of the last one."""

    def __init__(self, service: ServiceProcess, output: Output) -> None:
        self._service, self._output = service, output
        self._children: list[Child] = []
        self._errors: list[Stream] = []
        #: Those of which one knows that they fail, in this order; they may still be about to end.
        self._failing: list[int] = []
        self._noted: set[int] = set()
        #: Where processes say that they fail, before they end: the others hear of it, and may end earlier.
        self._notes, self.notes = _pipe()
        self._woken, self._wakes = _pipe()
        self._plan: Plan | None = None
        self._asked: int | None = None
        self._looking = self._service_died = self._interrupted = False

    def run(self, commands: Sequence[tuple[Sequence[str], Mapping[str, str]]]) -> int:
        """Start them and wait for all; the exit code: that of the first one that failed."""
        try:
            with _terminal_kept(), self._handlers():
                self._start(commands)
                while not all([child.is_over() for child in self._children]):
                    self._output.pump(_EACH)
                    _read(self._woken)
                    self._look()
                    for number in self._plan.due() if self._plan else ():
                        self._send(number)
            self._output.finish(_REST)
            return self._outcome()
        finally:
            for child in self._children:
                child.kill()
            self._output.close()
            for descriptor in (self._notes, self.notes, self._woken, self._wakes):
                os.close(descriptor)

    def _start(self, commands: Sequence[tuple[Sequence[str], Mapping[str, str]]]) -> None:
        out, err = sys.stdout.buffer, sys.stderr.buffer
        sys.stdout.flush()
        for number, (command, environment) in enumerate(commands):
            # In a group of its own it couldn't read from the terminal.
            child = Child(number, command, environment, number == 0 and os.isatty(0), self.notes)
            self._children.append(child)
            assert child.process.stdout is not None and child.process.stderr is not None
            self._output.add(Stream(number, child.process.stdout, out, keep=False))
            self._errors.append(Stream(number, child.process.stderr, err, keep=True))
            self._output.add(self._errors[-1])
            if self._asked is not None:  # those before have got the signal, and this one perhaps
                self._send(signal.SIGKILL)
                return

    # Who has ended

    def _look(self) -> None:
        """See who has ended since the last time. Also called when a signal says so, so that the first one is known."""
        if self._looking:
            return
        self._looking = True
        # Without the service, all end at once: so it is looked at first.
        if not self._failing and not self._service_died and not self._service.alive():
            self._service_died = True
        ended = [child.number for child in self._children if child.has_ended() and child.code]
        killed = [number for number in ended if (self._children[number].code or 0) < 0]  # it couldn't say so
        noted = _read(self._notes)
        self._noted.update(noted)
        self._failing += [number for number in dict.fromkeys([*killed, *noted, *ended]) if number not in self._failing]
        if self._plan is None and (ended or self._service_died):
            self._plan = Plan(_BY_THEMSELVES, _AFTER_TERM)
        self._looking = False

    def _outcome(self) -> int:
        """The exit code; says what went wrong."""
        if self._service_died:
            _say("the service that the processes meet at has died; all are ended")
            return 1
        first = next((child for number in self._failing for child in self._children[number:number + 1] if child.code),
                     None)
        if first is None:
            return 0
        if self._asked is not None:
            return 128 + self._asked
        for line in self._output.repeated(self._errors[first.number]):
            sys.stderr.buffer.write(line)
        code = first.code or 0
        failed = "failed, did not end, and " if first.number in self._noted else ""
        how = f"failed with exit code {code}" if code > 0 else f"{failed}was ended by {_name(-code)}"
        _say(f"process {first.number} {how}")
        return code if code > 0 else 128 - code

    # Signals

    def _send(self, number: int) -> None:
        for child in self._children:
            child.send(number)

    @contextmanager
    def _handlers(self) -> Iterator[None]:
        """Pass signals on, and see at once when a process ends."""
        for descriptor in (self._woken, self._notes):
            self._output.wake_by(descriptor)
        wanted: dict[int, Callable[[int, FrameType | None], None]] = {
            signal.SIGCHLD: lambda number, frame: self._look(), signal.SIGINT: self._interrupt,
            signal.SIGTERM: self._end, signal.SIGHUP: self._end, signal.SIGTSTP: self._pause,
            **dict.fromkeys((signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT), self._pass_on)}
        # What is ignored, as by nohup, stays so, for the processes as well; but one must hear of their ends.
        before = {number: signal.signal(number, handler) for number, handler in wanted.items()
                  if number == signal.SIGCHLD or signal.getsignal(number) is not signal.SIG_IGN}
        old = signal.set_wakeup_fd(self._wakes, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(old)
            for number, handler in before.items():
                signal.signal(number, handler)
            for descriptor in (self._woken, self._notes):
                self._output.no_longer_by(descriptor)

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        self._send(number)

    def _end(self, number: int, frame: FrameType | None) -> None:
        if not self._failing:
            self._asked = number
        self._send(number)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """The first Ctrl-C interrupts all, the second one kills them."""
        if self._interrupted:
            self._send(signal.SIGKILL)
            return
        self._interrupted = True
        if not self._failing:
            self._asked = number
        for child in self._children:
            if not (child.shared and _in_foreground()):  # else the terminal has sent it
                child.send(number)

    def _pause(self, number: int, frame: FrameType | None) -> None:
        """Ctrl-Z stops all, and then this process; SIGCONT is passed on as it goes on."""
        self._send(number)
        os.kill(os.getpid(), signal.SIGSTOP)


def _pipe() -> tuple[int, int]:
    """A pipe at which nobody waits."""
    ends = os.pipe()
    for each in ends:
        os.set_blocking(each, False)
    return ends


def _read(descriptor: int) -> bytes:
    """What has come by a pipe."""
    try:
        return os.read(descriptor, _MOST)
    except BlockingIOError:
        return b""


@contextmanager
def _terminal_kept() -> Iterator[None]:
    """Leave the terminal as it is now, whatever process 0 has made of it before it was killed."""
    before = termios.tcgetattr(0) if os.isatty(0) else None
    try:
        yield
    finally:
        with suppress(termios.error):  # it is gone
            if before is not None and _in_foreground() and termios.tcgetattr(0) != before:
                termios.tcsetattr(0, termios.TCSADRAIN, before)


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _say(text: str) -> None:
    sys.stderr.flush()
    sys.stderr.buffer.write(f"{text}\n".encode())
    sys.stderr.buffer.flush()
