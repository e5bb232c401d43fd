"""Who provides each hook of a primitive, and whose rule counts where several do.

Rules come from the primitive's owner, from other packs under `corejax.rules`, and from `extend`. What only adds counts
by being there; what changes an answer counts only if the user chose it: by `COREJAX_PREFER`, `cj.plugins.prefer` or
`extend(..., replace=True)`. There is an answer where the owner's plugin has a rule, or one can be derived from it; a
slow substitute is none, nor is a refusal.

Within one plugin or pack, pluggy's order decides (`tryfirst`, `trylast`, else the last registered comes first). A rule
marked `trylast` doesn't compete: it stands in where a hook is missing, or where the rules before it return None.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Container, Iterable
from typing import Any, NamedTuple

from corejax.base.errors import CorejaxError
from corejax.installed import manifest
from corejax.installed.distributions import Pack
from corejax.kernel.declarations import Linearity, Partials
from corejax.kernel.hookspecs import HOOKS
from corejax.kernel.primitive import Primitive, refill
from corejax.kernel.transformations import Transformation
from corejax.packs import foreign
from corejax.packs.foreign import Foreign
from corejax.packs.hook_signatures import Signature
from corejax.packs.ranking import Offer, clash, degree
from corejax.packs.source import Source
from corejax.packs.validation import Manager, check_fit

#: Hooks that can always be wrapped, since every primitive has a rule for them in the end, perhaps a derived one.
ALWAYS_THERE = frozenset(("abstract_eval", "jvp", "transpose", "vmap", "xla_translation"))

#: Hooks whose foreign rule is imported when it is first called; others must be known when a primitive is frozen.
LATE = frozenset(("jvp", "transpose", "vmap", "xla_translation"))

Offers = dict[str, list[Offer]]


class Extension(NamedTuple):
    """The arguments of a call of `extend`, and the pack that was being imported when it was called, if any."""

    plugin: Any
    whose: str
    replace: bool
    pack: Pack | None


extensions: weakref.WeakKeyDictionary[Primitive, list[Extension]] = weakref.WeakKeyDictionary()


class Unchosen(NamedTuple):
    """A rule that would change an answer, and that the user didn't choose; it may not be imported."""

    slot: str
    pack: str | None
    origin: str
    what: Foreign | Offer


class Resolution:
    """The plugins of a primitive, and what they offer for each hook.

    `offers` and `wrappers` are what counts: the owner's rules and those that the user chose; `add` adds what others
    have for hooks without an answer. `left_out` has pairs (pack, reason); `unchosen` has what would need the user's
    consent. With `everything`, rules are imported that could wait. With a `transformation`, it is about its hook alone.
    """

    __slots__ = ("_added", "_brought_by", "_everything", "_primitive", "_waiting", "left_out", "manager", "offers",
                 "owner", "preferences", "sources", "transformation", "unchosen", "wrappers")

    def __init__(self, primitive: Primitive, *, everything: bool = False, transformation: Transformation | None = None,
                 brought_by: str | None = None) -> None:
        self._primitive, self._everything = primitive, everything
        self.preferences = manifest.read().preferences  # of one moment: another thread may change them
        self.manager = Manager(transformation)
        self.transformation, self._brought_by = transformation, brought_by
        self.sources: list[Source] = []
        self.left_out: list[tuple[str, Exception]] = []
        self.unchosen: list[Unchosen] = []
        self._waiting: list[Foreign] = []
        self._added: Offers = {}
        self.owner = Source(primitive.plugin, primitive.name, primitive.pack, primitive.origin, is_owner=True)
        self._admit(self.owner)
        for rule in self._rules_of_packs():
            self._consider(rule)
        for plugin, whose, replace, pack in extensions.get(primitive, ()):
            source = Source(plugin, primitive.name, pack.name if pack else None, str(pack) if pack else whose,
                            extends=pack is None, replaces=replace and pack is None, consented=False)
            source.consented = source.replaces or (
                degree(source, "", self.preferences) > degree(self.owner, "", self.preferences))
            self._admit(source)
        self.offers: Offers
        self.wrappers: Offers
        self._collect()
        self._check_wrappers()

    @property
    def params(self) -> Signature:
        """The params, from the signature of the owner's abstract_eval, else its decompose, else another plugin's."""
        if self.transformation is not None:  # then they are known
            return Signature((), tuple(self._primitive.params), False, self._primitive.open_params)
        for source in self.sources:
            rules = source.rules
            for hook in ("abstract_eval", "decompose"):
                if hook in rules:
                    return rules[hook]
        return Signature((), (), False, True)

    @property
    def _operands(self) -> int | None:
        """How many operands it takes, if its owner says so."""
        names = getattr(self.owner.plugin, "operands", None)
        if names is not None and not names[-1].startswith("*"):
            return len(names)
        jvp = self.owner.declared.get("jvp")
        return len(jvp.functions) if isinstance(jvp, Partials) else None

    # Who is there

    def _rules_of_packs(self) -> list[Foreign]:
        """The rules for these hooks; those of the primitive's pack first, then those of the transformation's."""
        rules = [rule for rule in foreign.rules_for(self._primitive) if rule.target.hook in self.manager.hooks or (
            self.transformation is None and rule.target.hook not in foreign.known_hooks() and not rule.target.optional)]
        packs = [self._primitive.pack, self._brought_by]
        return rules if self.transformation is None else sorted(
            rules, key=lambda rule: packs.index(rule.entry.pack.name) if rule.entry.pack.name in packs else len(packs))

    def _is_consented(self, rule: Foreign) -> bool:
        """Did the user choose a rule, or need nobody choose it: the owner's, or else the transformation's own?"""
        if foreign.is_chosen(self._primitive, rule, self.preferences):
            return True
        hook = rule.target.hook
        return rule.entry.pack.name == self._brought_by and not any(
            [hook in source.declared or hook in source.rules for source in self.sources])

    def _consider(self, rule: Foreign) -> None:
        """Import a foreign rule that was chosen, or was imported before; let another one wait."""
        try:
            foreign.check_target(rule)
        except CorejaxError as error:
            self.left_out.append((str(rule.entry.pack), error))
            return
        chosen = self._is_consented(rule)
        if chosen or self._everything or foreign.is_met(self._primitive, rule):
            self._import(rule, chosen)
        else:
            self._waiting.append(rule)

    def _import(self, rule: Foreign, chosen: bool = False) -> None:
        try:
            source = foreign.source_of(self._primitive, rule, chosen)
        except CorejaxError as error:
            self.left_out.append((str(rule.entry.pack), error))
            return
        if source is not None:
            self._admit(source)

    def _admit(self, source: Source) -> None:
        try:
            self.manager.add(source)
            self.sources.append(source)
            check_fit(source, self.params, getattr(self.owner.plugin, "multiple_results", False), self._operands)
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

    # What they offer

    def _collect(self) -> None:
        self.offers, self.wrappers = self._all_offers()
        if not self._added and all([source.consented for source in self.sources]):  # as is usual
            return
        for by_hook in (self.offers, self.wrappers):
            for hook, found in by_hook.items():
                by_hook[hook] = [offer for offer in found if offer.source.consented]
        for hook, added in self._added.items():
            self.offers[hook] += added

    def _all_offers(self) -> tuple[Offers, Offers]:
        """(offers, wrappers) by hook; the last registered offer comes first, the order in which pluggy calls them."""
        offers: Offers = {}
        wrappers: Offers = {}
        for hook in self.manager.hooks:
            offers[hook], wrappers[hook] = [], []
            for implementation in getattr(self.manager.hook, hook).get_hookimpls():
                source = self.manager.sources[id(implementation.plugin)]
                offer = Offer(source, implementation.function, implementation.trylast, bool(implementation.wrapper))
                if offer.wraps:
                    wrappers[hook].append(offer)
                else:
                    offers[hook].insert(0, offer)
        for source in self.sources:
            if source.linear is not None and "jvp" in offers:
                offers["jvp"].insert(0, Offer(source, Linearity(source.linear)))
            for hook, declaration in source.declared.items():
                if hook in offers:
                    offers[hook].insert(0, Offer(source, declaration))
        return offers, wrappers

    def _check_wrappers(self) -> None:
        """Leave out plugins with wrappers that have nothing to wrap."""
        idle = next((offer.source for hook, found in self.wrappers.items() for offer in found
                     if hook in HOOKS and hook not in ALWAYS_THERE and not self.offers[hook]), None)
        if idle is None:
            return
        hook = next(hook for hook, is_wrapper, _ in idle.found if is_wrapper and not self.offers[hook])
        self._leave_out(idle, idle.error("it wraps a rule that doesn't exist", hook,
                                         wanted=f"a rule {idle.primitive}.{hook}",
                                         todo="write the rule instead of a wrapper"))
        self._collect()
        self._check_wrappers()

    # What is added

    def add(self, is_there: Callable[[str], bool], among: Container[str] = HOOKS) -> bool:
        """Add the rules that nobody had to choose: those for hooks without an answer. Was there any?"""
        if not self._waiting and all([source.consented for source in self.sources]):
            return False
        before = {hook: len(found) for hook, found in self._added.items()}
        offers, wrappers = self._all_offers()
        slots: dict[str, list[Foreign | Offer]] = {}
        for rule in self._waiting:
            slots.setdefault(rule.slot, []).append(rule)
        for hook, found in offers.items():
            taken = [offer.source for offer in self._added.get(hook, ())]
            for offer in found:
                if not offer.source.consented and offer.source not in taken:
                    slots.setdefault(_slot(hook, offer.source), []).append(offer)
        self.unchosen = [_unchosen(hook, offer) for hook, found in wrappers.items() for offer in found
                        if not offer.source.consented]
        for slot, rules in slots.items():
            if slot.partition("@")[0] not in among:
                continue
            if is_there(slot):
                self._let_stand(slot, rules)
            else:
                self._add(slot, rules)
        self._collect()
        return {hook: len(found) for hook, found in self._added.items()} != before

    def _let_stand(self, slot: str, rules: Iterable[Foreign | Offer]) -> None:
        """The answer that is there stays; a rule that only stands in where others return None may do so."""
        for rule in rules:
            if isinstance(rule, Offer) and rule.last:
                self._added.setdefault(slot.partition("@")[0], []).append(rule)
            else:
                self.unchosen.append(_unchosen(slot, rule))

    def _add(self, slot: str, rules: list[Foreign | Offer]) -> None:
        hook = slot.partition("@")[0]
        waiting = [rule for rule in rules if isinstance(rule, Foreign)]
        if waiting and hook in LATE and not self.wrappers[hook]:
            self._added.setdefault(hook, []).append(self._late(slot, waiting, rules))
            return
        for rule in waiting:
            self._waiting.remove(rule)
            self._import(rule)
        found = [offer for offer in self._all_offers()[0][hook]
                 if not offer.source.consented and _slot(hook, offer.source) == slot]
        rivals = [offer for offer in found if not offer.last] or found
        if len({offer.source.origin for offer in rivals}) > 1:
            found = [Offer(rivals[0].source, clash(self._primitive.name, slot, rivals))]
            found[0].source.signatures[found[0].rule] = Signature(self.manager.hooks[hook], (), False, True)
        self._added.setdefault(hook, []).extend(found)

    def _late(self, slot: str, waiting: list[Foreign], rules: list[Foreign | Offer]) -> Offer:
        """An offer that imports the rules for a slot when it is first called, and then is replaced by what they are."""
        primitive, hook = self._primitive, slot.partition("@")[0]

        def late(*args: Any, **params: Any) -> Any:
            for rule in waiting:
                foreign.meet(primitive, rule)
            refill(primitive)
            return (primitive.lowering(args[0].platform) if hook == "xla_translation" else getattr(primitive, hook))(
                *args, **params)

        origin = " or ".join(dict.fromkeys([_unchosen(slot, rule).origin for rule in rules]))
        source = Source(foreign.OneRule(waiting[0].target, late), primitive.name, waiting[0].entry.pack.name, origin,
                        consented=False)
        source.signatures[late] = Signature(HOOKS[hook], (), False, True)
        self._waiting = [rule for rule in self._waiting if rule not in waiting]
        return Offer(source, late)


def _slot(hook: str, source: Source) -> str:
    return f"{hook}@{source.platform}" if hook == "xla_translation" and source.platform else hook


def _unchosen(slot: str, rule: Foreign | Offer) -> Unchosen:
    if isinstance(rule, Foreign):
        return Unchosen(slot, rule.entry.pack.name, str(rule.entry.pack), rule)
    return Unchosen(slot, rule.source.pack, rule.source.origin, rule)
