"""Which of several offers for a hook counts: what the user chose, else pluggy's order within one plugin or pack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from corejax.base.errors import PackError
from corejax.base.source import here
from corejax.installed.preferences import Preferences
from corejax.kernel.declarations import NotDifferentiable, NotLinear
from corejax.packs.source import Source

#: Families of platforms. A lowering for a family is used for each member that has none of its own.
FAMILIES = {"gpu": ("cuda", "rocm")}

#: How much `extend(..., replace=True)` is preferred: to any choice of a pack.
_REPLACED = 1 << 60


class Offer(NamedTuple):
    """What a plugin provides for a hook: a rule, a wrapper or a declaration; `last` if it is marked `trylast`."""

    source: Source
    rule: Any
    last: bool = False
    wraps: bool = False

    @property
    def refuses(self) -> bool:
        """Does it declare that there is no rule?"""
        return isinstance(self.rule, (NotDifferentiable, NotLinear))


class Ranking(NamedTuple):
    """The offers, the winner first, and why it won."""

    offers: list[Offer]
    why: str


def rank(primitive: str, hook: str, offers: Sequence[Offer], preferences: Preferences) -> Ranking:
    """The offers in order; raises if packs compete and the user made no choice."""
    if len(offers) == 1:
        return Ranking([*offers], "the only one")
    backups = [offer for offer in offers if offer.last or offer.refuses]
    rivals = [offer for offer in offers if offer not in backups] or backups
    backups = [] if rivals is backups else backups
    if len({offer.source.origin for offer in rivals}) == 1:
        return Ranking(rivals + backups, "its pack's plugins come in pluggy's order" if len(rivals) > 1 else
                       "the owner declares that there is none" if backups[0].refuses else
                       "the others are marked trylast")
    degrees = {offer.source.origin: degree(offer.source, hook, preferences) for offer in rivals}
    rivals.sort(key=lambda offer: -degrees[offer.source.origin])
    if not degrees[rivals[0].source.origin]:
        raise conflict(primitive, hook, rivals)
    return Ranking(rivals + backups, f"chosen by {chosen_by(rivals[0].source, hook, preferences)}")


def degree(source: Source, slot: str, preferences: Preferences) -> int:
    """How much the user prefers a plugin for a hook: 0 is not at all."""
    hook, _, platform = slot.partition("@")
    if source.replaces:
        return _REPLACED
    return preferences.of(source.pack, source.primitive, hook, platform or source.platform).degree


def chosen_by(source: Source, slot: str, preferences: Preferences) -> str:
    """How the user said it."""
    hook, _, platform = slot.partition("@")
    if source.replaces:
        return "extend(..., replace=True)"
    return preferences.of(source.pack, source.primitive, hook, platform or source.platform).where


def conflict(primitive: str, hook: str, rivals: Sequence[Offer]) -> PackError:
    """The error where packs provide the same and nothing was chosen."""
    owners_first = sorted(rivals, key=lambda offer: not offer.source.is_owner)
    origins = list(dict.fromkeys([offer.source.origin for offer in owners_first]))
    packs = list(dict.fromkeys([offer.source.pack for offer in reversed(owners_first) if offer.source.pack]))
    choices = [f"choose with COREJAX_PREFER={packs[0]}" + f" (or {', '.join(packs[1:])})" * (len(packs) > 1) +
               f", or cj.plugins.prefer({packs[0]!r})"] if packs else []
    if any(offer.source.extends for offer in rivals):
        choices.append("pass replace=True to extend")
    return PackError(
        f"{primitive}.{hook} is provided by {' and by '.join(origins)}", primitive=primitive, hook=hook,
        got=f"rules of {len(origins)} packs", wanted="one rule, or a choice", where=here(),
        todo="; or ".join(choices) or "leave one of them out")


def clash(primitive: str, hook: str, rivals: Sequence[Offer]) -> Any:
    """A rule that raises this error: two packs add what a primitive lacks, and all else of it works."""
    def rule(*_: Any, **__: Any) -> NoReturn:
        raise conflict(primitive, hook, rivals)
    rule.error = lambda: conflict(primitive, hook, rivals)  # type: ignore[attr-defined]
    return rule


def by_platform(primitive: str, offers: Sequence[Offer], preferences: Preferences) -> dict[str, Ranking]:
    """The ranked lowerings for each platform that has any. Those of a family come after a member's own."""
    platforms = dict.fromkeys([offer.source.platform for offer in offers if offer.source.platform is not None])
    found = {platform: rank(primitive, f"xla_translation@{platform}",
                            [offer for offer in offers if offer.source.platform == platform], preferences)
             for platform in sorted(platforms)}
    for family, members in FAMILIES.items():
        for member in members if family in found else ():
            own = found.get(member)
            found[member] = found[family] if own is None else Ranking([*own.offers, *found[family].offers], own.why)
    return found


def general(hook: str, offers: Sequence[Offer]) -> list[Offer]:
    """The offers that apply to every platform."""
    return [offer for offer in offers if hook != "xla_translation" or offer.source.platform is None]
