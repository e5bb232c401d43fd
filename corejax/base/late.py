"""Modules that are imported on first use, so that `import corejax` stays cheap.

>>> json = late("json")
>>> json.loads("[1]")
[1]
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class _Late:
    """Stands for a module that may not be imported yet."""

    def __init__(self, name: str, keep: bool) -> None:
        self._name, self._keep = name, keep

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self._name), name)
        if self._keep:
            setattr(self, name, value)
        return value

    def __repr__(self) -> str:
        return f"late({self._name!r})"


def late(name: str, *, keep: bool = False) -> Any:
    """The module of this name, imported at first use. By the rule of rooms, this counts as an import.

    With `keep`, its functions are kept as attributes, so that later uses cost no more than with a real module.
    """
    return _Late(name, keep)
