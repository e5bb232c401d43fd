"""What several processes print, line by line, with the number of the process before each line."""

from __future__ import annotations

import os
import re
import selectors
import time
from collections import deque
from collections.abc import Iterable
from typing import IO, Final

#: How much is read at once.
_CHUNK: Final = 1 << 16

#: A line that is longer than this comes in parts.
_LONGEST: Final = 1 << 20

#: So many of its last lines on stderr are repeated of a process that fails.
KEPT: Final = 40

#: What Gloo prints whenever processes get connected. It may follow what a script has printed without a newline.
_NOISE: Final = re.compile(rb"\[Gloo\] Rank \d+ is connected to \d+ peer ranks\. "
                           rb"Expected number of connected peer ranks is : \d+\r?\n?")

#: The same as it comes if two threads of a process print it at once: its pieces, in any order.
_PIECES: Final = re.compile(rb"(?:\[Gloo\] Rank |is connected to |peer ranks\.|"
                            rb"Expected number of connected peer ranks is : |[\d\s])*")
_CERTAINLY: Final = (b"[Gloo] Rank ", b"Expected number of connected peer ranks is : ")


def without_noise(line: bytes) -> bytes:
    """A line as a script printed it: less, without its end, or nothing if Gloo printed into it."""
    if b"peer ranks" not in line and b"[Gloo]" not in line:
        return line
    line = _NOISE.sub(b"", line)
    return b"" if any([each in line for each in _CERTAINLY]) and _PIECES.fullmatch(line) else line


class Stream:
    """The stdout or the stderr of one process, and where its lines go."""

    def __init__(self, number: int, pipe: IO[bytes], to: IO[bytes], keep: bool) -> None:
        self.pipe = pipe
        self.last: deque[bytes] = deque(maxlen=KEPT if keep else 0)
        self._label, self._to, self._rest = b"[%d] " % number, to, b""

    def feed(self, data: bytes) -> int:
        """Print the lines that this completes; how many."""
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = b""
        count = 0
        for line in lines:
            count += self._take(line + b"\n")
        self._rest += rest
        if len(self._rest) > _LONGEST:
            count += self.end()
        self._to.flush()
        return count

    def end(self) -> int:
        """Print what is left without a newline; how many lines that is."""
        text, self._rest = without_noise(self._rest), b""
        return self._take(text + b"\n") if text else 0

    def _take(self, line: bytes) -> int:
        text = without_noise(self._rest + line)
        self._rest = b""
        if not text.endswith(b"\n"):  # its end was Gloo's, or there is nothing
            self._rest = text
            return 0
        self._to.write(self._label + text)
        self.last.append(self._label + text)
        return 1


class Output:
    """The streams of all processes."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._streams: list[Stream] = []
        #: What printed last, and how many lines without another in between.
        self.latest: tuple[Stream | None, int] = (None, 0)

    def add(self, stream: Stream) -> None:
        self._streams.append(stream)
        self._selector.register(stream.pipe, selectors.EVENT_READ, stream)

    def wake_by(self, descriptor: int) -> None:
        """Stop waiting when something can be read here, too."""
        self._selector.register(descriptor, selectors.EVENT_READ)

    def no_longer_by(self, descriptor: int) -> None:
        self._selector.unregister(descriptor)

    def pump(self, seconds: float) -> bool:
        """Wait for so long for anything, and print it; whether there was something."""
        ready = self._selector.select(seconds)
        for key, _ in ready:
            if key.data is None:
                continue
            data = os.read(key.fd, _CHUNK)
            self._printed(key.data, key.data.feed(data) if data else key.data.end())
            if not data:
                self._selector.unregister(key.fileobj)
                key.data.pipe.close()
        return bool(ready)

    def finish(self, seconds: float) -> None:
        """Print what has arrived, for so long at most: somebody may hold a pipe for good, and write to it."""
        until = time.monotonic() + seconds
        while self.pump(0) and time.monotonic() < until:
            pass
        for stream in self._streams:
            self._printed(stream, stream.end())

    def repeated(self, stream: Stream) -> Iterable[bytes]:
        """The last lines of a stream from the first traceback among them; none if they have just been printed."""
        lines = list(stream.last)
        start = next((i for i, line in enumerate(lines) if b"Traceback (most recent call last):" in line), 0)
        printed = self.latest[1] if self.latest[0] is stream else 0
        return lines[start:] if printed < len(lines) - start else []

    def close(self) -> None:
        self._selector.close()
        for stream in self._streams:
            stream.pipe.close()

    def _printed(self, stream: Stream, count: int) -> None:
        if count:
            self.latest = (stream, self.latest[1] + count if self.latest[0] is stream else count)
