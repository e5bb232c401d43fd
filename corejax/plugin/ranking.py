"""Which rule counts where several plugins offer one for the same hook.

pluggy's order (`tryfirst`, `trylast`, else the last registered first) decides among the plugins of one pack. Between
packs the user decides: by COREJAX_PREFER, or by `extend(..., replace=True)`. A rule marked `trylast` competes with no
other: it stands in where the hook is missing, or where the rules before it return None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from corejax.errors import PackError
from corejax.plugin import manifest
from corejax.plugin.declarations import Linearity
from corejax.plugin.hookspecs import HOOKS
from corejax.plugin.validate import Manager, Source

#: Platforms that a lowering for another one serves too, unless there is one for just that platform.
FAMILIES = {"gpu": ("cuda", "rocm")}

Offers = dict[str, list["Offer"]]


class Offer(NamedTuple):
    """What a plugin gives for a hook: a rule, a wrapper or a declaration; `last` if it is marked `trylast`."""

    source: Source
    rule: Any
    last: bool = False


class Ranking(NamedTuple):
    """The offers, the one that counts first, and why it is the first."""

    offers: list[Offer]
    why: str


def collect(manager: Manager, sources: Sequence[Source]) -> tuple[Offers, Offers]:
    """(offers, wrappers) of each hook; among the offers the last registered comes first, as when pluggy calls them."""
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


def rank(primitive: str, hook: str, offers: Sequence[Offer]) -> Ranking:
    """The offers in their order; an error if packs compete and the user made no choice."""
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
    """The ranked lowerings of each platform that one is for; a family serves its members that have none."""
    platforms = dict.fromkeys([offer.source.platform for offer in offers if offer.source.platform is not None])
    found = {platform: rank(primitive, f"xla_translation on {platform}",
                            [offer for offer in offers if offer.source.platform == platform])
             for platform in sorted(platforms)}
    for family, members in FAMILIES.items():
        if family in found:
            found = {**dict.fromkeys(members, found[family]), **found}
    return found


def general(hook: str, offers: Sequence[Offer]) -> list[Offer]:
    """The offers that are for every platform."""
    return [offer for offer in offers if hook != "xla_translation" or offer.source.platform is None]
