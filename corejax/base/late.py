"""Modules that are imported on first use, so that `import corejax` stays cheap.

>>> json = late("json")
>>> json.loads("[1]")
[1]
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from corejax.base.source import error_without, here


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


def homes(names: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Where each name of a facade is defined, as (module, name there), given the names from each module.

    `there=name` renames, and `=name` is the module itself.

    >>> homes({"corejax.base.avals": "Zero aval_of=type_of"})
    {'Zero': ('corejax.base.avals', 'Zero'), 'type_of': ('corejax.base.avals', 'aval_of')}
    """
    found = {}
    for module, text in names.items():
        for pair in text.split():
            there, _, name = pair.partition("=")
            found[name or there] = module, there
    return found


def find_in(home: Mapping[str, tuple[str, str]], facade: str, name: str) -> Any:
    """Look up a name of a facade, for its `__getattr__`; it is kept there unless it is a module."""
    if name in home:
        module, there = home[name]
        if not there:
            return import_module(module)
        value = getattr(import_module(module), there)
        setattr(sys.modules[facade], name, value)
        return value
    if name.startswith("__"):
        raise AttributeError(name)  # names that Python and its tools look up in any module
    known = vars(sys.modules[facade])["__all__"]
    close = get_close_matches(name, known, 1)
    raise error_without(facade, name, 2)(
        f"{facade} has no {name!r}", got=name, wanted=f"one of: {', '.join(known)}", where=here(),
        todo=f"did you mean {close[0]!r}?" if close else "use one of these")
