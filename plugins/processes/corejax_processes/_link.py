"""This process's connection to the service: it says that this process is alive, and hears what becomes of others."""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Callable, Mapping, Sequence, Set as AbstractSet
from time import monotonic, sleep
from typing import Any

from corejax_processes import _errors
from corejax_processes._errors import PeerError
from corejax_processes._wire import Lines, encoded

#: How often to look whether what is waited for has come, so that Ctrl-C is heard, in seconds.
_LOOK = 0.1

#: After so long, a process that waits for others says for whom, in seconds.
LONG = 60.0


class Refused(Exception):
    """The service doesn't let this process in; the argument is what it says."""


class Absent(Exception):
    """Not all have come in time; the argument says which have, or is None and why if there is no service."""


class Link:
    """The connection. `failure` is the error to raise once computing together is over."""

    def __init__(self, hello: Mapping[str, Any], on_failure: Callable[[], None],
                 on_ending: Callable[[int, Mapping[str, int]], None], started: Callable[[], Mapping[str, Any]]) -> None:
        self.me: int = hello["hello"]
        self.heartbeat: float = hello["heartbeat"]
        self.hello, self._on_failure, self._on_ending, self._started = hello, on_failure, on_ending, started
        self.failure: PeerError | None = None
        #: Processes that have said that they are at their end, with how many programs each group had started.
        self.ended: dict[int, Mapping[str, int]] = {}
        #: Those that have left.
        self.left: set[int] = set()
        self._news = threading.Condition()
        self._here: list[int] = []
        self._port: str | None = None
        self._refused: Any = None
        self._values: dict[str, dict[str, str]] = {}
        self._sending = threading.Lock()
        self._heard = monotonic()
        self._closing = False
        self._socket: socket.socket | None = None

    # The beginning

    def open(self, host: str, port: int, seconds: float) -> str:
        """Wait until all processes are there; returns the port of the runtime's service."""
        until = monotonic() + seconds
        self._socket = _connected(host, port, until)
        self._send(self.hello)
        self._heard = monotonic()
        threading.Thread(target=self._listen, name="corejax: other processes", daemon=True).start()
        self._wait(lambda: self._port is not None or self._refused is not None, until)
        if self._refused is not None:
            raise Refused(self._refused)
        if self.failure is not None:
            raise self.failure.again()
        if self._port is None:
            raise Absent(self._here)
        return self._port

    @property
    def own_host(self) -> str:
        """The address of this host at which the service's host reaches it."""
        assert self._socket is not None
        name: str = self._socket.getsockname()[0]
        return name

    def _wait(self, is_so: Callable[[], bool], until: float = float("inf")) -> None:
        with self._news:
            while not (is_so() or self.failure is not None) and monotonic() < until:
                self._news.wait(_LOOK)

    # What is said

    def _send(self, message: Mapping[str, Any]) -> None:
        data = encoded(message)
        with self._sending:
            try:
                self._socket.sendall(data)  # type: ignore[union-attr]
            except OSError:
                pass  # whoever reads is told

    def _beat(self) -> None:
        """Say that this process is alive, unless it is just saying something else, perhaps for good."""
        if self._sending.acquire(blocking=False):
            try:
                self._socket.sendall(encoded({"beat": 1, "started": self._started()}))  # type: ignore[union-attr]
            except OSError:
                pass
            finally:
                self._sending.release()

    def exchange(self, key: str, group: Sequence[int], value: str, what: str,
                 until: float = float("inf"), last: bool = False) -> dict[int, str]:
        """The values that these processes, of which this is one, give under this key; waits for all of them.

        `what` says in errors what it is for. Processes at their end take part only if it is the `last` one.
        """
        names = ",".join(map(str, group))
        self._send({"exchange": key, "group": names, "value": value, "last": last, "started": self._started()})
        begun, told = monotonic(), False

        def absent() -> AbstractSet[int]:
            return self.left if last else self.ended.keys()

        while key not in self._values:
            if self.failure is not None:
                raise self.failure.again()
            if not absent().isdisjoint(group):
                raise _errors.ended_first(min(absent() & set(group)), what)
            if monotonic() > until:
                raise TimeoutError
            self._wait(lambda: key in self._values or not absent().isdisjoint(group), min(until, monotonic() + LONG))
            if not told and monotonic() - begun > LONG:
                told = True
                _errors.say_waiting(what, group, monotonic() - begun)
        return {int(i): one for i, one in self._values.pop(key).items()}

    def close(self, why: str) -> None:
        """Say goodbye; `why` is empty unless something went wrong."""
        self._closing = True
        if self._socket is None:
            return
        self._send({"bye": why})
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def forget(self) -> None:
        """Let go of the connection without a word: it is another process's."""
        self._closing = True
        if self._socket is not None:
            self._socket.close()

    def say_ending(self) -> None:
        """Say that no program over several processes will be started any more."""
        self._send({"ending": True, "started": self._started()})

    # What is heard

    def _listen(self) -> None:
        lines, interval = Lines(), min(1.0, self.heartbeat / 5)
        sock, due, ready = self._socket, monotonic(), selectors.DefaultSelector()
        assert sock is not None
        ready.register(sock, selectors.EVENT_READ)
        while not self._closing:
            if monotonic() >= due:
                self._beat()
                due = monotonic() + interval
            before = monotonic()
            try:
                if ready.select(max(0.0, min(due - before, interval))):
                    piece = sock.recv(1 << 20)
                    if not piece:
                        break
                    self._heard = monotonic()
                    for message in lines.add(piece):
                        self._receive(message)
            except (OSError, ValueError):
                break
            if monotonic() - before > 2 * interval:  # it was stopped itself, or had no turn
                self._heard = monotonic()
            if self._port is not None and monotonic() - self._heard > self.heartbeat:
                self.fail(_errors.service_gone(monotonic() - self._heard))
                sock.shutdown(socket.SHUT_RDWR)  # another thread may wait to be read
                return
        if not self._closing:
            self.fail(_errors.service_gone(None))

    def _receive(self, message: dict[str, Any]) -> None:
        with self._news:
            if "exchanged" in message:
                self._values[message["exchanged"]] = message["values"]
            elif "welcome" in message:
                self._port = message["welcome"]
            elif "here" in message:
                self._here = message["here"]
            elif "refused" in message:
                self._refused = message["refused"]
            elif "ending" in message:
                self.ended[message["ending"]] = message["started"]
            elif "gone" in message and message["how"] == "ended":
                self.left.add(message["gone"])
                self.ended.setdefault(message["gone"], {})
            self._news.notify_all()
        if "ending" in message:
            self._on_ending(message["ending"], message["started"])
        elif "gone" in message and message["how"] != "ended":
            self.fail(_errors.myself_gone(message, self.me) if message["gone"] == self.me else _errors.gone(message))
        elif "differ" in message:
            programs = {int(i): name for i, name in message["programs"].items()}
            self.fail(_errors.other_programs(message["number"], programs, self.me))

    def fail(self, error: PeerError) -> None:
        """From now on, nothing is computed together any more."""
        with self._news:
            first = self.failure is None
            if first:
                self.failure = error
            self._news.notify_all()
        if first:
            self._on_failure()

    def wait_for_failure(self, seconds: float) -> PeerError | None:
        """The failure, as soon as there is one; None if there is none within so many seconds."""
        self._wait(lambda: False, monotonic() + seconds)
        return self.failure


def _connected(host: str, port: int, until: float) -> socket.socket:
    """A connection to the service, which may not be there yet."""
    pause = 0.005
    while True:
        try:
            found = socket.create_connection((host, port), timeout=max(0.1, until - monotonic()))
            if found.getsockname() != found.getpeername():
                found.settimeout(None)
                found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return found
            found.close()  # nobody listens there yet, and the socket got that very port, so that it found itself
        except OSError as error:
            if monotonic() + pause > until:
                raise Absent(None, error.strerror or str(error)) from error
        sleep(pause)
        pause = min(0.1, pause * 1.5)
