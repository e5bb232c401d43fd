"""The sockets by which the processors of several processes exchange data, which the runtime's Gloo opens.

A program waits in the runtime for what other processes send, for good. It raises as soon as the sockets are shut down,
which another thread can do. Only they are: whatever else the process is connected with goes on.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from typing import Any

#: How many files a process may have, where nobody tells.
_MANY = 4096

_FAMILIES = (socket.AF_INET, socket.AF_INET6)


def _open_sockets() -> Iterator[socket.socket]:
    """A duplicate of each socket of this process."""
    for number in _descriptors():
        try:
            duplicate = os.dup(number)
        except OSError:  # closed meanwhile, as is the one that listed the folder
            continue
        try:
            found = socket.socket(fileno=duplicate)
        except OSError:  # a file
            os.close(duplicate)
            continue
        with found:
            if found.family in _FAMILIES:
                yield found


def _descriptors() -> list[int]:
    """The numbers of this process's files."""
    try:
        return [int(name) for name in os.listdir("/dev/fd")]
    except OSError:  # it isn't everywhere
        return list(range(_MANY))


def _listening() -> set[Any]:
    found = set()
    for each in _open_sockets():
        try:
            if each.type & socket.SOCK_STREAM and each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                found.add(each.getsockname()[:2])
        except OSError:
            pass
    return found


def listening_of(make: Callable[[], Any]) -> tuple[Any, list[int]]:
    """What a function makes, and the ports at which it has begun to listen."""
    before = _listening()
    made = make()
    return made, sorted(port for _, port in _listening() - before)


def shut_down(ports: set[int]) -> int:
    """End the connections from or to these ports; returns how many there were."""
    count = 0
    for each in _open_sockets():
        try:
            if not {each.getsockname()[1], each.getpeername()[1]}.isdisjoint(ports):
                each.shutdown(socket.SHUT_RDWR)
                count += 1
        except OSError:  # not connected
            pass
    return count
