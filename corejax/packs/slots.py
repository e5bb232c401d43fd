"""From what is offered to the slots of a primitive: one plain callable for each hook.

Applying a primitive never enters pluggy: it is done with when the offers are ranked.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from corejax.kernel import checks
from corejax.kernel.declarations import Declaration, Factors, Linearity, Partials
from corejax.kernel.factors import instantiate
from corejax.kernel.hookspecs import HOOKS, WITHOUT_PARAMS
from corejax.kernel.primitive import Primitive, Rule
from corejax.packs import derivation
from corejax.packs.hook_signatures import (
    Signature,
    adapt,
    adapt_partial,
    chain,
    instantiated,
    of_operands,
    wrapped,
)
from corejax.packs.ranking import FAMILIES, Offer, by_platform, general, rank
from corejax.packs.resolution import ALWAYS_THERE, Resolution
from corejax.packs.source import Source
from corejax.packs.stored import on_stored

#: Hooks without which there is an answer all the same if there is one for another hook, and those with a default.
_BY_ANOTHER = {"impl": "xla_translation", "linearize": "jvp"}
_BY_DEFAULT = frozenset(("effects", "evaluate"))


def draft(primitive: Primitive, resolution: Resolution) -> SimpleNamespace:
    """All slots with their rules, including derived ones, and `notes` on how those were derived.

    They aren't the primitive's own yet, since no thread may see some of them without the others.
    """
    if not (resolution.offers["abstract_eval"] or resolution.offers["decompose"]):
        resolution.add(lambda slot: False, ("abstract_eval", "decompose"))
    slots, declared = _filled(primitive, resolution)
    if resolution.add(_answers(slots, resolution)):
        slots, declared = _filled(primitive, resolution)
    _check_computed(resolution.owner, slots)
    if slots.element_types and slots.impl is not None:
        slots.impl = on_stored(primitive, slots.impl)
    count = len(declared.functions) if isinstance(declared, Partials) else None
    if count is not None or slots.linear is not None:
        slots.abstract_eval = derivation.fits(primitive, slots.abstract_eval, count, slots.linear or ())
    for hook in ALWAYS_THERE:
        slots.providers.setdefault(hook, "derived")
    for hook, found in resolution.wrappers.items():
        for offer in found:
            _wrap(slots, hook, offer, resolution.params)
    for hook in checks.WHOLE_RESULTS:
        rule = getattr(slots, hook)
        if rule is not None:
            setattr(slots, hook, checks.checked(primitive, hook, rule))
    slots.of_one, slots.of_two, slots.beside = of_operands(None if slots.multiple_results else slots.impl)
    return slots


def _filled(primitive: Primitive, resolution: Resolution) -> tuple[SimpleNamespace, Any]:
    """What is offered, and what is derived of it; and the rule or declaration for jvp."""
    slots = SimpleNamespace(**_merge(resolution))
    declared = slots.jvp
    derivation.fill(slots, primitive)
    slots.lowerings = {platform: chain([rule, slots.xla_translation]) for platform, rule in slots.lowerings.items()}
    return slots, declared


def _answers(slots: SimpleNamespace, resolution: Resolution) -> Callable[[str], bool]:
    """Which slots have an answer, so that another rule would change it."""
    def is_there(slot: str) -> bool:
        hook, _, platform = slot.partition("@")
        if platform:
            return is_there(hook) or platform in slots.lowerings
        offers = general(hook, resolution.offers[hook])
        if offers:
            return not all([offer.last or offer.refuses for offer in offers])
        if hook in _BY_ANOTHER:
            return is_there(_BY_ANOTHER[hook])
        note = slots.notes.get(hook)
        return hook in _BY_DEFAULT or (note is not None and note.how == "derived")
    return is_there


def _merge(resolution: Resolution) -> dict[str, Any]:
    """One rule for each hook, chosen from all the offers, and everything else that is declared."""
    owner, offers, params = resolution.owner, resolution.offers, resolution.params
    several = getattr(owner.plugin, "multiple_results", False)
    slots: dict[str, Any] = dict.fromkeys(HOOKS)
    providers: dict[str, str] = {}
    lowerings: dict[str, Rule] = {}
    for platform, ranking in by_platform(
            owner.primitive, offers["xla_translation"], resolution.preferences).items():
        lowerings[platform] = _chosen("xla_translation", ranking.offers, params, several)
        providers[f"xla_translation@{platform}"] = ranking.offers[0].source.origin
    declared: dict[str, Any] = {"linear": None, "factors": None, "symbolic_zeros": False, "vmap_binds_itself": False}
    for hook, found in offers.items():
        offered = general(hook, found)
        if not offered:
            continue
        ranked = rank(owner.primitive, hook, offered, resolution.preferences).offers
        providers[hook] = ranked[0].source.origin
        if hook == "jvp":
            declared |= _declared_with_jvp(ranked[0], params)
        elif hook == "vmap":
            alone = len(ranked) == 1 and not resolution.wrappers["vmap"]
            plain = alone and not offers["effects"]
            declared["vmap_binds_itself"] = plain and getattr(ranked[0].rule, "binds_itself", False) and not (
                params.keywords or params.open)
        slots[hook] = _chosen(hook, ranked, params, several)
    _check_typed(owner, slots)
    return slots | declared | {
        "params": frozenset(params.keywords), "open_params": params.open, "lowerings": lowerings, "notes": {},
        "multiple_results": several, "cheap": getattr(owner.plugin, "cheap", False),
        "structural": getattr(owner.plugin, "structural", False),
        "tracks_varying": getattr(owner.plugin, "tracks_varying", False),
        "holds": getattr(owner.plugin, "holds", None),
        "element_types": tuple(getattr(owner.plugin, "element_types", ())),
        "linear_in": frozenset(),
        "not_linear_in": frozenset(getattr(owner.plugin, "not_linear_in", ())),
        "providers": providers, "jvp_binds_itself": False, "answers": {},
        "lowered_params": _lowered_params([*offers["xla_translation"], *resolution.wrappers["xla_translation"]])}


def _chosen(hook: str, ranked: list[Offer], params: Signature, several: bool) -> Any:
    """The first rule or declaration; if a rule returns None, the next one is called."""
    if isinstance(ranked[0].rule, Declaration):
        return _adapted_declaration(ranked[0].rule, params)
    zeros = _knows_zeros(ranked[0].source)
    rules = []
    for offer in ranked:
        if isinstance(offer.rule, Declaration):
            continue
        rule = _adapted(offer.source, hook, offer.rule, params)
        # The first plugin decides whether jvp rules get Zeros; transpose rules get them if there are several results.
        if not _knows_zeros(offer.source) and ((hook == "jvp" and zeros) or (hook == "transpose" and several)):
            rule = instantiated(rule, instantiate, HOOKS[hook].index("tangents" if hook == "jvp" else "cotangents"))
        rules.append(rule)
    return rules[0] if len(rules) == 1 else chain(rules)


def _knows_zeros(source: Source) -> bool:
    return bool(getattr(source.plugin, "symbolic_zeros", False))


def _lowered_params(offers: list[Offer]) -> frozenset[str] | None:
    """The params that lowerings read, the only ones that affect what is compiled; None if that can't be told."""
    signatures = [_signature(offer.source, offer.rule) for offer in offers]
    if all(offer.source.platform is not None for offer in offers) or any(signature.open for signature in signatures):
        return None
    return frozenset([name for signature in signatures for name in signature.keywords])


def _wrap(slots: SimpleNamespace, hook: str, offer: Offer, params: Signature) -> None:
    """Put a wrapper around a hook's rule, even a derived one. The last wrapper is the outermost."""
    source, wrapper, platform = offer.source, _adapted(offer.source, hook, offer.rule, params), offer.source.platform
    mark = f", wrapped by {source.origin}"
    if hook == "xla_translation":
        for name in [platform, *FAMILIES.get(platform, ())] if platform else slots.lowerings:
            slots.lowerings[name] = wrapped(wrapper, slots.lowerings.get(name) or slots.xla_translation)
            key = f"xla_translation@{name}"
            slots.providers[key] = slots.providers.get(key, slots.providers[hook]) + mark
        if platform:
            return
    setattr(slots, hook, wrapped(wrapper, getattr(slots, hook)))
    slots.providers[hook] += mark
    if hook == "jvp":
        slots.linear = slots.factors = None  # reverse mode would use these in place of the rule
        slots.linear_in = frozenset()


def _signature(source: Source, rule: Rule) -> Signature:
    return source.signatures.get(rule) or Signature.of(rule)


def _adapted(source: Source, hook: str, rule: Rule, params: Signature) -> Rule:
    signature = _signature(source, rule)
    if hook in WITHOUT_PARAMS:
        return adapt(rule, signature, HOOKS[hook], Signature((), (), False, False))
    return adapt(rule, signature, HOOKS[hook], params)


def _adapted_declaration(rule: Declaration, params: Signature) -> Any:
    if isinstance(rule, Partials):
        return Partials([adapt_partial(function, params) for function in rule.functions])
    return None if isinstance(rule, Linearity) else rule


def _declared_with_jvp(offer: Offer, params: Signature) -> dict[str, Any]:
    """The declarations that go with a jvp rule: those of the plugin whose rule was chosen."""
    factors = None
    if isinstance(offer.rule, Factors):
        factors = tuple([adapt_partial(f, params) for f in offer.rule.factors])
    return {"linear": offer.source.linear, "factors": factors, "symbolic_zeros": _knows_zeros(offer.source)}


def _check_typed(owner: Source, slots: dict[str, Any]) -> None:
    """There is enough to know a result's type."""
    if slots["decompose"] is None and slots["abstract_eval"] is None:
        raise owner.error("a required hook is missing", got="neither abstract_eval nor decompose",
                          wanted="abstract_eval(self, avals, *, ...) or decompose(self, args, *, ...)",
                          todo="write abstract_eval, and impl or xla_translation; or decompose alone")


def _check_computed(owner: Source, slots: SimpleNamespace) -> None:
    """There is enough to compute it."""
    note = slots.notes.get("xla_translation")
    if slots.impl is None and not slots.lowerings and note is not None and note.how == "missing":
        raise owner.error("nothing says how to compute it", got="neither impl, xla_translation nor decompose",
                          wanted="one of them", todo="write impl by NumPy, xla_translation by StableHLO, or decompose")
