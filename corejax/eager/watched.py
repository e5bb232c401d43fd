"""Evaluation that is watched, while a setting that watches is on: its function is called around what is evaluated.

The bottom trace of each thread then has another class, so that no short way is taken: they are for `EvalTrace` itself.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeGuard

from corejax.base.config import SETTINGS, config
from corejax.eager.evaluate import EvalTrace
from corejax.kernel.primitive import Primitive


class WatchedTrace(EvalTrace):
    """Applies primitives as `EvalTrace` does, by an own one, whose inner steps aren't seen a second time."""

    __slots__ = ()

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        def apply() -> Sequence[Any]:
            out = _plain.trace.process(primitive, args, params)
            return out if primitive.multiple_results else [out]

        outs = watch(primitive, args, params, apply)
        return outs if primitive.multiple_results else outs[0]


class _Plain(threading.local):
    def __init__(self) -> None:
        self.trace = EvalTrace()


_plain = _Plain()
_bottoms: weakref.WeakSet[EvalTrace] = weakref.WeakSet()
_lock = threading.RLock()
#: How often settings that watch are on: each in the process once, and in each `with` block of any thread.
_count = 0


def bottom() -> EvalTrace:
    """A thread's first trace."""
    trace = EvalTrace()
    with _lock:
        _bottoms.add(trace)
        if _count:
            trace.__class__ = WatchedTrace
    return trace


def count(change: int) -> None:
    """So many more settings that watch are on, or fewer."""
    global _count
    with _lock:
        before, _count = _count, _count + change
        if bool(before) != bool(_count):
            for trace in _bottoms:
                trace.__class__ = WatchedTrace if _count else EvalTrace


def watch(primitive: Primitive | None, args: Sequence[Any], params: Mapping[str, Any],
          apply: Callable[[], Sequence[Any]]) -> Sequence[Any]:
    """The results of `apply`, called by the functions of those settings that are on in this thread."""
    for setting in list(SETTINGS.values()):
        if setting.watch is not None and getattr(config, setting.name):
            apply = partial(setting.watch, primitive, args, params, apply)
    return apply()


def is_watched(trace: object) -> TypeGuard[WatchedTrace]:
    """Whether what is evaluated under this trace is told to `watch`."""
    return type(trace) is WatchedTrace


def is_active() -> bool:
    """Whether any thread watches."""
    return _count > 0
