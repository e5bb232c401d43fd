"""Names of a public module, such as `corejax.lax`, that mean something else in each module that uses them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from sys import _getframe
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from corejax.base.caches import generation
from corejax.base.errors import CorejaxAttributeError, PackError
from corejax.base.late import late
from corejax.base.source import here, imports_from
from corejax.base.tracebacks import trim
from corejax.installed import registry
from corejax.installed.groups import ITSELF

if TYPE_CHECKING:
    from corejax.installed import scopes
    from corejax.installed.distributions import Entry
else:
    scopes = late("corejax.installed.scopes")  # it is only needed where several packs have a name


_UNKNOWN: Any = object()


class _Known(NamedTuple):
    """What a name means."""

    by_module: dict[str, Any]
    at_hand: dict[int, Any]
    """The same by the id of the module's variables."""


class Meanings:
    """What names that several packs have mean in each module; `load` makes an object of an entry and the name.

    Such a name never becomes an attribute of the public module, which would be there for all, but a property of its
    class: that costs 50 ns more than an attribute, where the module's `__getattr__` costs ten times as much.
    """

    def __init__(self, public: str, load: Callable[[Entry, str], Any]) -> None:
        self._public, self._load = public, load
        self._known: dict[str, _Known] = {}
        self._held: dict[int, Mapping[str, Any]] = {}  # modules' variables, so that no id is used twice
        self._lock = threading.Lock()
        registry.also_forget(self._forget)

    def find(self, name: str, entries: Sequence[Entry], frame: FrameType) -> Any:
        """What a name that these entries have means to the code that a frame runs."""
        since, variables = generation(), scopes.variables_of(frame)
        module = scopes.module_of(variables)
        known = self._known.get(name)
        if known is None:
            known = self._make_property(name, entries)
        found = known.by_module.get(module, _UNKNOWN)
        if found is _UNKNOWN:
            entry = self._choose(name, entries, module, frame)
            found = registry.keep(self._load(entry, name), known.by_module, module, since)
        if _are_of_a_module(variables):
            self._held[id(variables)] = variables
            registry.keep(found, known.at_hand, id(variables), since)
        return found

    def _choose(self, name: str, entries: Sequence[Entry], module: str, frame: FrameType) -> Entry:
        """The entry that is meant in a module. If nobody can tell, to Python the name isn't there, as for `hasattr`."""
        installed, (group, key, *_) = registry.installed(), entries[0]
        try:
            entry = installed.one_of(group, key, [*entries], installed.scopes.pack_of(module))
        except PackError as error:
            if imports_from(frame, self._public, name):
                raise
            raise CorejaxAttributeError(error.message, got=error.got, wanted=error.wanted, where=error.where,
                                        todo=error.todo, pack=error.pack) from None
        assert entry is not None
        return entry

    def _make_property(self, name: str, entries: Sequence[Entry]) -> _Known:
        known = _Known({}, {})
        at_hand = known.at_hand

        def meaning(_: ModuleType) -> Any:
            try:
                return at_hand[id(_getframe(1).f_globals)]
            except KeyError:  # nobody has used it there
                pass
            try:
                return self.find(name, entries, _getframe(1))
            except Exception as error:
                trim(error)
                raise

        def assign(_: ModuleType, value: object) -> None:
            if not isinstance(value, ModuleType):  # else Python has imported it, and would make it an attribute
                raise self._fixed(name, "assigned to", f"a value for {name!r}, which several packs have")

        def delete(_: ModuleType) -> None:
            raise self._fixed(name, "deleted", f"{name!r}, which several packs have")

        with self._lock:
            there = self._known.setdefault(name, known)
            if there is known:
                module = sys.modules[self._public]
                if type(module) is ModuleType:
                    module.__class__ = type("module", (ModuleType,), {})
                setattr(type(module), name, property(meaning, assign, delete))
        return there

    def _fixed(self, name: str, done: str, got: str) -> CorejaxAttributeError:
        return CorejaxAttributeError(
            f"{self._public}.{name} can't be {done}: it means something else in each pack", where=here(), got=got,
            wanted="a name that one pack has", todo="change the attribute of the module that defines it")

    def _forget(self, function: str | None) -> None:
        for name, known in list(self._known.items()):
            if function in (None, name) or name.endswith(ITSELF):
                known.by_module.clear()
                known.at_hand.clear()


def _are_of_a_module(variables: Mapping[str, Any]) -> bool:
    name = variables.get("__name__")
    return isinstance(name, str) and getattr(sys.modules.get(name), "__dict__", None) is variables
