"""Messages between processes and the service: a JSON object in a line."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from typing import Any

#: A line may be so long, in bytes: the longest are programs that differ.
MOST = 1 << 28


def encoded(message: Mapping[str, Any]) -> bytes:
    """A message as a line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


class Lines:
    """Puts together the messages that come in pieces."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, piece: bytes) -> Iterator[dict[str, Any]]:
        """The messages that are complete with this piece; raises ValueError for what isn't one."""
        *complete, rest = piece.split(b"\n")
        for line in complete:
            whole = b"".join([*self._pieces, line])
            self._pieces, self._size = [], 0
            message = json.loads(whole)
            if not isinstance(message, dict):
                raise ValueError("a message must be an object")
            yield message
        if rest:
            self._pieces.append(rest)
            self._size += len(rest)
            if self._size > MOST:
                raise ValueError("a message is too long")


def split_address(address: str) -> tuple[str, int]:
    """The host and the port of an address that has been checked, `host:port` or `[host]:port`."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def joined_address(host: str, port: int) -> str:
    """The opposite of `split_address`."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens at this address only; port 0 is a free one."""
    family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(1024)
    except OSError:
        found.close()
        raise
    return found
