"""Modules that are imported when something of them is first asked for, so that `import corejax` stays cheap.

>>> json = late("json")
>>> json.loads("[1]")
[1]
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class _Late:
    """Stands for a module that may not be imported yet."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)

    def __repr__(self) -> str:
        return f"late({self._name!r})"


def late(name: str) -> Any:
    """The module of this name, imported at first use. To the rule of rooms, it counts as an import."""
    return _Late(name)
