"""The service at which processes meet, in a process of its own: `python -m corejax_processes._server ADDRESS COUNT`.

It says "ready" and its address when it listens, or why it can't, with exit code 2. It ends when the process that has
started it is gone, or has closed its standard input, and no other is connected any more: so any of these may die, and
the others learn of it. Whoever is connected when the service dies is ended by the runtime.

It imports nothing but Python's own library before it listens, since everybody waits for that.
"""

from __future__ import annotations

import errno
import os
import selectors
import signal
import socket
import sys
import threading
from collections import deque
from time import monotonic
from typing import Any

from corejax_processes._meeting import Meeting, Member
from corejax_processes._wire import Lines, encoded, joined_address, listen, split_address

#: How often to look who is silent, and for how long nobody may be connected once the starter is gone, in seconds.
_TICK, _ALONE = 0.1, 1.0

_CANT_LISTEN = 2
_STARTER = object()


class _Connection:
    """A process at the other end of a socket."""

    def __init__(self, server: Server, sock: socket.socket) -> None:
        self.server, self.sock = server, sock
        self.lines, self.out = Lines(), deque[bytes]()
        self.member: Member | None = None
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, message: dict[str, Any]) -> None:
        self.out.append(encoded(message))
        self.flush()

    def flush(self) -> None:
        """Write what the other end takes now."""
        try:
            while self.out:
                written = self.sock.send(self.out[0])
                if written < len(self.out[0]):
                    self.out[0] = self.out[0][written:]
                    break
                self.out.popleft()
        except BlockingIOError:
            pass
        except OSError:
            self.out.clear()  # reading will tell
        self.server.watch(self)

    def read(self) -> None:
        """Take what has come."""
        try:
            piece = self.sock.recv(1 << 20)
            if not piece:
                self.server.drop(self)
                return
            if self.member is not None:  # a long message takes a while
                self.member.heard = monotonic()
            for message in self.lines.add(piece):
                self._receive(message)
        except BlockingIOError:
            pass
        except Exception:  # hung up, or in somebody else's protocol: whatever it is, the others must not suffer
            self.server.drop(self)

    def _receive(self, message: dict[str, Any]) -> None:
        meeting = self.server.meeting
        if self.member is not None:
            meeting.receive(self.member, message)
        elif isinstance(message["hello"], int):
            self.member = meeting.hello(message, self.send)
            if self.member is None:
                self.server.drop(self)


class Server:
    """Listens, and passes on what comes."""

    def __init__(self, address: str, count: int) -> None:
        self.host, port = split_address(address)
        self.listener = listen(self.host, port)
        self.starter: int | None = os.getppid()
        self.address = joined_address(self.host, self.listener.getsockname()[1])
        self.meeting = Meeting(count, self.open_service, monotonic)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.connections: set[_Connection] = set()
        self.alone_since: float | None = None
        self.opened: Any = None
        self.count = count
        self.ready = threading.Thread(target=_prepare, daemon=True)

    def open_service(self) -> str:
        """The runtime's own service; returns its port, which is another one of the same host."""
        from corejax.plugin import peers
        self.ready.join()
        for attempt in range(10):
            with listen(self.host, 0) as free:
                port = free.getsockname()[1]
            try:
                self.opened = peers.service(joined_address(self.host, port), self.count)
            except Exception:  # somebody was faster
                if attempt == 9:
                    raise
            else:
                break
        return str(port)

    def watch(self, connection: _Connection) -> None:
        """Wait for what a connection waits for."""
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.out else 0)
        if connection in self.connections:
            self.selector.modify(connection.sock, events, connection)

    def drop(self, connection: _Connection) -> None:
        """Forget a connection."""
        if connection in self.connections:
            self.connections.remove(connection)
            self.selector.unregister(connection.sock)
            connection.sock.close()
            if connection.member is not None:
                self.meeting.hung_up(connection.member)

    def accept(self) -> None:
        try:
            sock, _ = self.listener.accept()
        except OSError:
            return
        connection = _Connection(self, sock)
        self.connections.add(connection)
        self.selector.register(sock, selectors.EVENT_READ, connection)

    def serve(self) -> None:
        """Until nobody needs it any more."""
        self.ready.start()
        self.selector.register(0, selectors.EVENT_READ, _STARTER)
        while self.starter is not None or not self._is_alone():
            for key, events in self.selector.select(_TICK):
                if key.fileobj is self.listener:
                    self.accept()
                elif key.data is _STARTER:
                    if not os.read(0, 1024):
                        self.selector.unregister(0)
                        self.starter = None
                else:
                    if events & selectors.EVENT_WRITE:
                        key.data.flush()
                    if events & selectors.EVENT_READ:
                        key.data.read()
            if os.getppid() != self.starter:  # gone, whoever else holds its end of the pipe
                self.starter = None
            self.meeting.tick()

    def _is_alone(self) -> bool:
        if any([each.member is not None for each in self.connections]):  # strangers don't count
            self.alone_since = None
            return False
        self.alone_since = self.alone_since or monotonic()
        return monotonic() - self.alone_since > _ALONE


def _prepare() -> None:
    """Load the runtime while processes come."""
    from corejax.plugin import peers
    peers.load()


def main(address: str, count: str) -> int:
    """Serve until nobody needs it; the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a batch system sends them to all processes at once
    try:
        server = Server(address, int(count))
    except OSError as error:
        print(_why(error, address), flush=True)
        return _CANT_LISTEN
    print("ready", server.address, flush=True)
    with open(os.devnull, "wb") as nothing:  # whoever reads the starter's output to its end must not wait for this one
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
    server.serve()
    return 0


def _why(error: OSError, address: str) -> str:
    """Why it can't listen there."""
    if isinstance(error, socket.gaierror):
        return f"there is no such host: {error.strerror}"
    return {errno.EADDRINUSE: "the port is taken", errno.EADDRNOTAVAIL: "the host isn't this machine",
            errno.EACCES: "the port is for the superuser"}.get(error.errno or 0, f"it can't listen: {error.strerror}")


if __name__ == "__main__":
    # At once: the runtime's service is of no use any more, and may wait for processes that are gone.
    os._exit(main(*sys.argv[1:]))
