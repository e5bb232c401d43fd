"""Modules that hold public names only, each imported from where it is defined when it is first asked for."""

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


#: Makes the error for a name that isn't there: of a module, the name, the module's public names.
Unknown: TypeAlias = Callable[[str, str, list[str]], Exception]


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
    return _lazy(name, origins(names), own, _unknown_in_facade)


def namespace(name: str, names: Mapping[str, str], own: Iterable[str] = (),
              hint: Callable[[str, list[str]], str] | None = None) -> Facade:
    """What makes a package of a pack a namespace that imports its modules when they are first needed.

    These are its `__all__`, `__getattr__` and `__dir__`. `names` are those from each of the package's modules, as in
    `{"activations": "relu silu", "initializers": "=initializers"}`: `there=name` renames, and `=name` is the module
    itself. `own` are public names that it has without these. One that begins with an underscore is found, but isn't
    public. `hint(wanted, public names)` says what to do about a name that isn't there.

    >>> public, find, _ = namespace("corejax.base", {"avals": "Zero aval_of=type_of", "trees": "=trees"})
    >>> public
    ['Zero', 'trees', 'type_of']
    >>> find("zero")
    Traceback (most recent call last):
      ...
    corejax.errors.CorejaxAttributeError: module 'corejax.base' has no attribute 'zero'
      got:    base.zero
      wanted: a name that dir(corejax.base) lists
      where:  ...
      to do:  did you mean Zero?
    """
    def unknown(module: str, wanted: str, public: list[str]) -> Exception:
        known = _known_as(module)
        return error_without(module, wanted, 2)(
            f"module {known!r} has no attribute {wanted!r}", got=f"{known.removeprefix('corejax.')}.{wanted}",
            wanted=f"a name that dir({known}) lists", where=here(), todo=(hint or _nearest)(wanted, public))

    return _lazy(name, origins({f"{name}.{module}": text for module, text in names.items()}), own, unknown)


def _lazy(module: str, found: Mapping[str, tuple[str, str]], own: Iterable[str], unknown: Unknown) -> Facade:
    def __getattr__(name: str) -> Any:
        try:
            if name in found:
                return find_in(found, module, name)
            raise unknown(module, name, public)
        except (Exception, SystemExit) as error:
            trim(error)
            raise

    public = sorted({*[name for name in found if not name.startswith("_")], *own})
    return public, __getattr__, public.copy


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
    module, there = origin[name]
    if not there:
        return import_module(module)
    value = getattr(import_module(module), there)
    setattr(sys.modules[facade], name, value)
    return value


def _unknown_in_facade(module: str, wanted: str, public: list[str]) -> Exception:
    if wanted.startswith("__"):
        return AttributeError(wanted)  # names that Python and its tools look up in any module
    close = get_close_matches(wanted, public, 1)
    return error_without(module, wanted, 2)(
        f"{module} has no {wanted!r}", got=wanted, wanted=f"one of: {', '.join(public)}", where=here(),
        todo=f"did you mean {close[0]!r}?" if close else "use one of these")


def _known_as(module: str) -> str:
    """What users call a pack's module: by the name in `corejax` that its package, or one around it, has."""
    package, below = module, ""
    while package:
        name = getattr(sys.modules.get(package), "__dict__", {}).get("NAMESPACE")
        if name is not None:
            return f"corejax.{name}{below}"
        package, _, last = package.rpartition(".")
        below = f".{last}{below}"
    return module


def _nearest(wanted: str, public: list[str]) -> str:
    near = get_close_matches(wanted, public, 1)
    return f"did you mean {near[0]}?" if near else "write it with what is there"
