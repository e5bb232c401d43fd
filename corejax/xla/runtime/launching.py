"""Starting programs in which devices of the processor exchange data, so that they can't block each other.

The parts of such a program wait for each other, each holding a thread of the runtime. With many programs under way, all
threads may be held by parts that wait for others which no thread is left to run: the runtime then ends the process.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from corejax.base import _jaxlib

#: How many may be under way. A second one is enough to have no pause between them.
_MOST = 2

_lock = threading.Lock()
_under_way: deque[Any] = deque()
#: How many threads are starting one, or wait for their turn.
_starting: list[None] = []


def in_turn(loaded: Any) -> Callable[[Sequence[Any]], Any]:
    """A function that starts a program once few enough others are under way, all its parts before those of the next."""
    start = loaded.execute_sharded

    def execute(buffers: Sequence[Any]) -> Any:
        _starting.append(None)
        try:
            with _lock:
                while len(_under_way) >= _MOST:
                    _await(_under_way.popleft())
                results = start(buffers, with_tokens=True)
                _under_way.append(results.consume_token())
            return results
        finally:
            _starting.pop()
    return execute


def _await(token: Any) -> None:
    try:
        token.block_until_ready()
    except _jaxlib.RuntimeFailure:  # whoever reads its results is told
        pass


def all_ended(seconds: float) -> bool:
    """Whether no such program is under way after so many seconds."""
    ended = threading.Event()

    def wait() -> None:
        for token in list(_under_way):
            _await(token)
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    return ended.wait(seconds) and not _starting
