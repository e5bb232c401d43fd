"""Modules that hold public names only, each imported from its room when it is first asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, TypeAlias

from corejax.base.source import error_without, here
from corejax.base.tracebacks import trim

#: Of a facade: its public names, and its `__getattr__` and `__dir__`.
Facade: TypeAlias = tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]


def facade(name: str, names: Mapping[str, str], own: Iterable[str] = ()) -> Facade:
    """What makes a module a facade: its `__all__`, `__getattr__` and `__dir__`.

    `names` are those from each module: `there=name` renames, and `=name` is the module itself. `own` are public names
    that it has without these.

    >>> public, find, _ = facade("corejax.base.facades", {"corejax.base.avals": "Zero aval_of=type_of"}, ["facade"])
    >>> public
    ['Zero', 'facade', 'type_of']
    >>> find("type_of")(3.0)
    ~f64[]
    """
    found = origins(names)

    def get(wanted: str) -> Any:
        try:
            return find_in(found, name, wanted)
        except Exception as error:
            trim(error)
            raise

    public = sorted({*found, *own})
    return public, get, public.copy


def origins(names: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Where each name of a facade is defined, as (module, name there), given the names from each module.

    >>> origins({"corejax.base.avals": "Zero aval_of=type_of"})
    {'Zero': ('corejax.base.avals', 'Zero'), 'type_of': ('corejax.base.avals', 'aval_of')}
    """
    found = {}
    for module, text in names.items():
        for pair in text.split():
            there, _, name = pair.partition("=")
            found[name or there] = module, there
    return found


def find_in(origin: Mapping[str, tuple[str, str]], facade: str, name: str) -> Any:
    """Look up a name of a facade, for its `__getattr__`; it is kept there unless it is a module."""
    if name in origin:
        module, there = origin[name]
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
