"""Names of a public module, such as `corejax.lax`, that mean something else in each module that uses them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from sys import _getframe
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

from corejax.base.caches import generation
from corejax.base.errors import CorejaxAttributeError
from corejax.base.late import late
from corejax.base.source import here
from corejax.base.tracebacks import trim
from corejax.installed import registry
from corejax.installed.groups import ITSELF

if TYPE_CHECKING:
    from corejax.installed import scopes
    from corejax.installed.distributions import Entry
else:
    scopes = late("corejax.installed.scopes")  # it is only needed where several packs have a name


class Meanings:
    """What names that several packs have mean in each module; `load` makes an object of an entry and the name.

    Such a name never becomes an attribute of the public module, which would be there for all, but a property of its
    class: that costs 50 ns more than an attribute, where the module's `__getattr__` costs ten times as much.
    """

    def __init__(self, public: str, load: Callable[[Entry, str], Any]) -> None:
        self._public, self._load = public, load
        self._known: dict[str, dict[str, Any]] = {}  # by name, by the module that uses it
        self._lock = threading.Lock()
        registry.also_forget(self._forget)

    def find(self, name: str, entries: Sequence[Entry], frame: FrameType | None) -> Any:
        """What a name that these entries have means to the code that a frame runs."""
        since, module = generation(), scopes.module_of(frame)
        known = self._known.get(name)
        if known is None:
            known = self._make_property(name, entries)
        elif module in known:  # of a script, which the property doesn't find by its name
            return known[module]
        installed, (group, key, *_) = registry.installed(), entries[0]
        entry = installed.one_of(group, key, [*entries], installed.scopes.pack_of(module))
        assert entry is not None
        return registry.keep(self._load(entry, name), known, module, since)

    def _make_property(self, name: str, entries: Sequence[Entry]) -> dict[str, Any]:
        known: dict[str, Any] = {}

        def meaning(_: ModuleType) -> Any:
            try:
                return known[_getframe(1).f_globals["__name__"]]
            except (KeyError, TypeError):  # nobody has used it there, or that module has no name
                pass
            try:
                return self.find(name, entries, _getframe(1))
            except Exception as error:
                trim(error)
                raise

        def assign(_: ModuleType, value: object) -> None:
            if not isinstance(value, ModuleType):  # else Python has imported it, and would make it an attribute
                raise CorejaxAttributeError(
                    f"{self._public}.{name} can't be assigned to: it means something else in each pack", where=here(),
                    got=f"a value for {name!r}, which several packs have", wanted="a name that one pack has",
                    todo="assign to the attribute of the module that defines it")

        with self._lock:
            there = self._known.setdefault(name, known)
            if there is known:
                module = sys.modules[self._public]
                if type(module) is ModuleType:
                    module.__class__ = type("module", (ModuleType,), {})
                setattr(type(module), name, property(meaning, assign))
        return there

    def _forget(self, function: str | None) -> None:
        for name, known in list(self._known.items()):
            if function in (None, name) or name.endswith(ITSELF):
                known.clear()
