"""Values of which there is one object each, so that `is` compares two of them and hashing one costs nothing."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Hashable
from typing import Any, ClassVar, Self

from corejax.base.errors import CorejaxAttributeError
from corejax.base.source import here
from corejax.base.tracebacks import public


class Interned:
    """The base of classes whose instances are never changed, and are made by `_one` only."""

    __slots__ = ("__weakref__",)
    _known: ClassVar[weakref.WeakValueDictionary[Hashable, Any]]
    _lock: ClassVar[Any] = threading.RLock()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._known = weakref.WeakValueDictionary()

    @classmethod
    def _one(cls, key: Hashable, **fields: object) -> Self:
        """The instance with this key; if there is none yet, a new one with these fields."""
        with cls._lock:
            found: Self | None = cls._known.get(key)
            if found is None:
                found = object.__new__(cls)
                for name, value in fields.items():
                    object.__setattr__(found, name, value)
                cls._known[key] = found
            return found

    @public
    def __setattr__(self, name: str, value: object) -> None:
        kind = type(self).__name__
        raise CorejaxAttributeError(f"a {kind} can't be changed: it may be in use elsewhere", where=here(),
                                    got=f"{name} = {value!r}"[:80], wanted=f"another {kind}", todo=f"make a new {kind}")

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self
