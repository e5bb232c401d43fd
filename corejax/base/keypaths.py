"""Where a leaf is in a pytree: a step for each container on the way to it.

>>> keystr((DictKey("w"), SequenceKey(0), GetAttrKey("bias")))
"['w'][0].bias"
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias


class Key:
    """One step from a container to a child; its `str` is the step as Python code."""

    __slots__ = ("key",)
    pattern = "[<flat index {0!r}>]"

    def __init__(self, key: object) -> None:
        self.key = key

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.key == other.key

    def __hash__(self) -> int:
        return hash((type(self), self.key))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.key!r})"

    def __str__(self) -> str:
        return self.pattern.format(self.key)


class FlattenedIndexKey(Key):
    """The child's index, in a custom node without better names."""

    __slots__ = ()


class SequenceKey(Key):
    """`[idx]`"""

    __slots__ = ()
    pattern = "[{0}]"
    idx = property(lambda self: self.key)

    def __init__(self, idx: int) -> None:
        super().__init__(idx)


class DictKey(Key):
    """`['key']`"""

    __slots__ = ()
    pattern = "[{0!r}]"


class GetAttrKey(Key):
    """`.name`"""

    __slots__ = ()
    pattern = ".{0}"
    name = property(lambda self: self.key)

    def __init__(self, name: str) -> None:
        super().__init__(name)


Path: TypeAlias = tuple[Any, ...]
#: The name of a tree in errors: text, or a function from the path of a node to its name.
Root: TypeAlias = str | Callable[[Path], str] | None
_KEYS = {cls.__name__: cls for cls in (SequenceKey, DictKey, GetAttrKey, FlattenedIndexKey)}


def own_key(key: object) -> object:
    """A key of jaxlib's as one of ours; any other object is returned unchanged."""
    cls = _KEYS.get(type(key).__name__)
    if cls is None or isinstance(key, Key):
        return key
    return cls(next(getattr(key, name) for name in ("key", "idx", "name") if hasattr(key, name)))


def keystr(path: Path, *, simple: bool = False, separator: str = "") -> str:
    """A path as Python code: `[0]['w'].bias`; or what is in the keys alone if `simple`, with something in between.

    >>> keystr((DictKey("w"), SequenceKey(0), GetAttrKey("bias")), simple=True, separator="/")
    'w/0/bias'
    """
    return separator.join([str(key.key if simple and isinstance(key, Key) else key) for key in path])
