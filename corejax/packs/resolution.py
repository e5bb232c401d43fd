"""Who provides each hook of a primitive, and whose rule wins if several plugins offer one.

The plugins of a primitive are its owner's, those of other packs under `corejax.rules`, and those passed to `extend`. A
plugin is used as a whole or not at all: a mistake in one part leaves out the whole plugin.

pluggy's order (`tryfirst`, `trylast`, otherwise the last registered first) decides among the plugins of one pack.
Between packs the user decides, with COREJAX_PREFER or `extend(..., replace=True)`. A rule marked `trylast` doesn't
compete with others: it is used where the hook is missing, or where the rules before it return None.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from corejax.base.errors import CorejaxError, PackError
from corejax.installed import manifest, registry
from corejax.kernel.declarations import Linearity
from corejax.kernel.hookspecs import HOOKS
from corejax.kernel.primitive import Primitive
from corejax.packs.hook_signatures import Signature
from corejax.packs.source import Source
from corejax.packs.validation import Manager, check_fit

#: Families of platforms. A lowering for a family is used for each member that has none of its own.
FAMILIES = {"gpu": ("cuda", "rocm")}

#: Hooks that can always be wrapped, since every primitive has a rule for them in the end, perhaps a derived one.
ALWAYS_THERE = frozenset(("abstract_eval", "jvp", "transpose", "vmap", "xla_translation"))

#: The arguments of `extend` for each primitive: (plugin, whose, replace).
extensions: weakref.WeakKeyDictionary[Primitive, list[tuple[Any, str, bool]]] = weakref.WeakKeyDictionary()

Offers = dict[str, list["Offer"]]


class Offer(NamedTuple):
    """What a plugin provides for a hook: a rule, a wrapper or a declaration; `last` if it is marked `trylast`."""

    source: Source
    rule: Any
    last: bool = False


class Ranking(NamedTuple):
    """The offers, the winner first, and why it won."""

    offers: list[Offer]
    why: str


# Who offers what

class Resolution:
    """The plugins of a primitive, and what they offer for each hook; `left_out` has pairs (pack, reason)."""

    __slots__ = ("left_out", "manager", "offers", "owner", "sources", "wrappers")

    def __init__(self, primitive: Primitive) -> None:
        self.manager = Manager()
        self.sources: list[Source] = []
        self.left_out: list[tuple[str, Exception]] = []
        self.owner = Source(primitive.plugin, primitive.name, primitive.pack, primitive.origin, is_owner=True)
        self._admit(self.owner)
        for source in self._others(primitive):
            self._admit(source)
        self.offers: Offers
        self.wrappers: Offers
        self.offers, self.wrappers = _collect(self.manager, self.sources)
        self._check_wrappers()

    @property
    def params(self) -> Signature:
        """The params, from the signature of the owner's abstract_eval, else its decompose, else another plugin's."""
        for source in self.sources:
            rules = source.rules
            for hook in ("abstract_eval", "decompose"):
                if hook in rules:
                    return rules[hook]
        return Signature((), (), False, True)

    def _others(self, primitive: Primitive) -> Iterator[Source]:
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
        except (Exception, SystemExit) as error:  # whatever went wrong, the primitive works without these rules
            self._leave_out(source, error)

    def _leave_out(self, source: Source, error: Exception | SystemExit) -> None:
        self.manager.remove(source)
        if source in self.sources:
            self.sources.remove(source)
        if not isinstance(error, CorejaxError):
            problem = source.error("it raises when it is inspected", got=f"{type(error).__name__}: {error}")
            problem.__cause__ = error
            error = problem
        if source.extends or source.is_owner:
            raise error
        self.left_out.append((source.origin, error))

    def _check_wrappers(self) -> None:
        """Leave out plugins with wrappers that have nothing to wrap."""
        idle = next((source for hook, found in self.wrappers.items() for source, _, _ in found
                     if hook not in ALWAYS_THERE and not self.offers[hook]), None)
        if idle is None:
            return
        hook = next(hook for hook, is_wrapper, _ in idle.found if is_wrapper and not self.offers[hook])
        self._leave_out(idle, idle.error("it wraps a rule that doesn't exist", hook,
                                         wanted=f"a rule {idle.primitive}.{hook}",
                                         todo="write the rule instead of a wrapper"))
        self.offers, self.wrappers = _collect(self.manager, self.sources)
        self._check_wrappers()


def _collect(manager: Manager, sources: Sequence[Source]) -> tuple[Offers, Offers]:
    """(offers, wrappers) by hook; the last registered offer comes first, the order in which pluggy calls them."""
    offers: Offers = {}
    wrappers: Offers = {}
    for hook in HOOKS:
        offers[hook], wrappers[hook] = [], []
        for implementation in getattr(manager.hook, hook).get_hookimpls():
            offer = Offer(manager.sources[id(implementation.plugin)], implementation.function, implementation.trylast)
            if implementation.wrapper:
                wrappers[hook].append(offer)
            else:
                offers[hook].insert(0, offer)
    for source in sources:
        if source.linear is not None:
            offers["jvp"].insert(0, Offer(source, Linearity(source.linear)))
        for hook, declaration in source.declared.items():
            offers[hook].insert(0, Offer(source, declaration))
    return offers, wrappers


# Which offer wins

def rank(primitive: str, hook: str, offers: Sequence[Offer]) -> Ranking:
    """The offers in order; raises if packs compete and the user made no choice."""
    if len(offers) == 1:
        return Ranking([*offers], "the only one")
    backups = [offer for offer in offers if offer.last]
    rivals = [offer for offer in offers if not offer.last] or backups
    backups = [] if rivals is backups else backups
    if len({offer.source.origin for offer in rivals}) == 1:
        return Ranking(rivals + backups, "the others are marked trylast" if len(rivals) == 1 else
                       "its pack's plugins come in pluggy's order")
    prefer = manifest.read().prefer
    if any(offer.source.replaces for offer in rivals):
        why = "extend(..., replace=True)"
    elif any(offer.source.pack in prefer for offer in rivals):
        why = "COREJAX_PREFER"
    else:
        raise _conflict(primitive, hook, rivals)
    places: dict[str | None, int] = {pack: place for place, pack in enumerate(prefer)}
    rivals.sort(key=lambda offer: -1 if offer.source.replaces else places.get(offer.source.pack, len(places)))
    return Ranking(rivals + backups, f"chosen by {why}")


def _conflict(primitive: str, hook: str, rivals: Sequence[Offer]) -> PackError:
    owners_first = sorted(rivals, key=lambda offer: not offer.source.is_owner)
    origins = list(dict.fromkeys([offer.source.origin for offer in owners_first]))
    packs = list(dict.fromkeys([offer.source.pack for offer in reversed(owners_first) if offer.source.pack]))
    choices = [f"choose with COREJAX_PREFER={packs[0]}" + f" (or {', '.join(packs[1:])})" * (len(packs) > 1)] * (
        len(packs) > 0)
    if any(offer.source.extends for offer in rivals):
        choices.append("pass replace=True to extend")
    return PackError(
        f"{primitive}.{hook} is provided by {' and by '.join(origins)}", primitive=primitive, hook=hook,
        got=f"rules of {len(origins)} packs", wanted="one rule, or a choice",
        todo="; or ".join(choices) or "leave one of them out")


def by_platform(primitive: str, offers: Sequence[Offer]) -> dict[str, Ranking]:
    """The ranked lowerings for each platform that has any. Members of a family without their own get the family's."""
    platforms = dict.fromkeys([offer.source.platform for offer in offers if offer.source.platform is not None])
    found = {platform: rank(primitive, f"xla_translation on {platform}",
                            [offer for offer in offers if offer.source.platform == platform])
             for platform in sorted(platforms)}
    for family, members in FAMILIES.items():
        if family in found:
            found = {**dict.fromkeys(members, found[family]), **found}
    return found


def general(hook: str, offers: Sequence[Offer]) -> list[Offer]:
    """The offers that apply to every platform."""
    return [offer for offer in offers if hook != "xla_translation" or offer.source.platform is None]
