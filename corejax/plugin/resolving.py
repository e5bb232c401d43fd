"""Who gives what for a primitive: its owner, other packs under `corejax.rules`, and `extend`.

A plugin counts whole or not at all: what is wrong with a part of it leaves all of it out.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

from corejax.errors import CorejaxError, PackError
from corejax.plugin import manifest, registry
from corejax.plugin.adapters import Signature
from corejax.plugin.ranking import Offers, collect
from corejax.plugin.validate import Manager, Source, check_fit

#: Hooks that can be wrapped whoever wrote them, as every primitive has them in the end.
ALWAYS_THERE = frozenset(("abstract_eval", "jvp", "transpose", "vmap", "xla_translation"))

#: What `extend` was given for a primitive: (plugin, whose, replace).
extensions: weakref.WeakKeyDictionary[Any, list[tuple[Any, str, bool]]] = weakref.WeakKeyDictionary()


class Resolution:
    """The plugins of a primitive, and what they offer for each hook; `left_out` are pairs (pack, why)."""

    __slots__ = ("left_out", "manager", "offers", "owner", "sources", "wrappers")

    def __init__(self, primitive: Any) -> None:
        self.manager = Manager()
        self.sources: list[Source] = []
        self.left_out: list[tuple[str, Exception]] = []
        self.owner = Source(primitive.plugin, primitive.name, primitive.pack, primitive.origin, is_owner=True)
        self._admit(self.owner)
        for source in self._others(primitive):
            self._admit(source)
        self.offers: Offers
        self.wrappers: Offers
        self.offers, self.wrappers = collect(self.manager, self.sources)
        self._check_wrappers()

    @property
    def params(self) -> Signature:
        """What params there are: the owner's abstract_eval says it, else its decompose; then whoever has one."""
        for source in self.sources:
            rules = source.rules
            for hook in ("abstract_eval", "decompose"):
                if hook in rules:
                    return rules[hook]
        return Signature((), (), False, True)

    def _others(self, primitive: Any) -> Iterator[Source]:
        for entry in manifest.read().rules(primitive.name) if primitive.pack else ():
            try:
                plugin = registry.load_entry(entry)
            except PackError as error:
                self.left_out.append((str(entry.pack), error))
                continue
            yield Source(plugin, primitive.name, entry.pack.name, str(entry.pack))
        for plugin, whose, replace in extensions.get(primitive, ()):
            yield Source(plugin, primitive.name, None, whose, extends=True, replaces=replace)

    def _admit(self, source: Source) -> None:
        try:
            self.manager.add(source)
            self.sources.append(source)
            check_fit(source, self.params, getattr(self.owner.plugin, "multiple_results", False))
        except (Exception, SystemExit) as error:  # whatever it is, the primitive works without these rules
            self._leave_out(source, error)

    def _leave_out(self, source: Source, error: Exception | SystemExit) -> None:
        self.manager.remove(source)
        if source in self.sources:
            self.sources.remove(source)
        if not isinstance(error, CorejaxError):
            problem = source.error("it raises while it is looked at", got=f"{type(error).__name__}: {error}")
            problem.__cause__ = error
            error = problem
        if source.extends or source.is_owner:
            raise error
        self.left_out.append((source.origin, error))

    def _check_wrappers(self) -> None:
        """A wrapper needs something that it wraps; the plugins of those that have nothing are left out."""
        idle = next((source for hook, found in self.wrappers.items() for source, _, _ in found
                     if hook not in ALWAYS_THERE and not self.offers[hook]), None)
        if idle is None:
            return
        hook = next(hook for hook, is_wrapper, _ in idle.found if is_wrapper and not self.offers[hook])
        self._leave_out(idle, idle.error("it wraps a rule that doesn't exist", hook,
                                         wanted=f"a rule {idle.primitive}.{hook}",
                                         todo="write the rule instead of a wrapper"))
        self.offers, self.wrappers = collect(self.manager, self.sources)
        self._check_wrappers()
