"""Bounded caches, for what Python's `lru_cache` can't do: being emptied while other threads compute what they keep."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_all_caches: weakref.WeakSet[Any] = weakref.WeakSet()
_generation = 0


def generation() -> int:
    """How many times all was forgotten. What began to be computed in an earlier generation must not be kept."""
    return _generation


def also_clear(cache: Any) -> None:
    """Clear this one, too, when all are. It may die before."""
    _all_caches.add(cache)


def new_generation() -> None:
    """Whoever makes caches empty calls this first."""
    global _generation
    _generation += 1


class BoundedCache(Generic[K, V]):
    """A dict that drops its oldest entries beyond `maxsize`.

    Reading is a plain dict lookup without a lock, so it doesn't reorder: the entry added first is dropped first.
    """

    __slots__ = ("_entries", "_lock", "maxsize", "__weakref__")

    def __init__(self, maxsize: int) -> None:
        self._entries: dict[K, V] = {}
        self._lock = threading.Lock()
        self.maxsize = maxsize
        _all_caches.add(self)

    def get(self, key: K) -> V | None:
        return self._entries.get(key)

    def put(self, key: K, value: V, since: int | None = None) -> V:
        """Store, or return what another thread stored first. `since` is the generation when its computation began."""
        with self._lock:
            return self._keep(key, value) if since is None or since == _generation else value

    def replace(self, key: K, value: V, since: int) -> None:
        """Store in place of what is there."""
        with self._lock:
            if since == _generation:
                self._entries.pop(key, None)
                self._keep(key, value)

    def clear(self) -> None:
        with self._lock:
            self._drop()

    def _keep(self, key: K, value: V) -> V:
        kept = self._entries.setdefault(key, value)
        if len(self._entries) > self.maxsize:
            for oldest in list(self._entries)[: self.maxsize // 8 + 1]:
                del self._entries[oldest]
        return kept

    def _drop(self) -> None:
        self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)


class SharedCache(BoundedCache[K, V]):
    """Keeps the newest `maxsize` entries, and those whose values are still in use elsewhere."""

    __slots__ = ("_alive",)

    def __init__(self, maxsize: int) -> None:
        super().__init__(maxsize)
        self._alive: weakref.WeakValueDictionary[K, V] = weakref.WeakValueDictionary()

    def get(self, key: K) -> V | None:
        found = self._entries.get(key)
        return self._alive.get(key) if found is None else found

    def _keep(self, key: K, value: V) -> V:
        return super()._keep(key, self._alive.setdefault(key, value))

    def _drop(self) -> None:
        super()._drop()
        self._alive.clear()


class WeakCache(Generic[V]):
    """Maps (object, key) to a value; the entry is dropped when the object dies.

    `function(obj, *key)` computes a missing value. A value that refers to the object strongly keeps both alive, so it
    must not, unless it is derived from the object and meant to live as long.
    """

    __slots__ = ("_function", "_per_object", "_lock", "_entries", "__weakref__")

    def __init__(self, function: Callable[..., V], entries_per_object: int = 64) -> None:
        self._function = function
        self._per_object = entries_per_object
        self._entries: weakref.WeakKeyDictionary[Any, OrderedDict[Any, V]] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()
        _all_caches.add(self)

    def __call__(self, obj: object, *key: Hashable) -> V:
        try:
            return self._entries[obj][key]
        except KeyError:
            pass
        since = _generation
        value = self._function(obj, *key)
        with self._lock:
            if since != _generation:
                return value
            entries = self._entries.setdefault(obj, OrderedDict())
            value = entries.setdefault(key, value)
            while len(entries) > self._per_object:
                entries.popitem(last=False)
        return value

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()


def clear_all() -> None:
    """Empty all caches of the library: functions are traced and compiled again."""
    new_generation()
    for cache in list(_all_caches):
        cache.clear()
    gc.collect()
    trim = getattr(ctypes.pythonapi, "malloc_trim", None)
    if trim is not None:  # otherwise the C library keeps most of the freed memory
        trim(0)
