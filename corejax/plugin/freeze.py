"""From plugin objects to the rules of a primitive: order, conflicts, adapters.

pluggy registers the owner's plugin and then the plugins that other packs add under `corejax.rules`, and orders their
hooks. What comes out is one plain callable for each hook, so that applying a primitive never enters pluggy.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from corejax.errors import CorejaxWarning, PackError, PluginError
from corejax.plugin import checks, derive, manifest, registry
from corejax.plugin.adapters import Signature, adapt, adapt_partial, chain, wrapped
from corejax.plugin.declarations import Declaration, Factors, Linearity, Partials
from corejax.plugin.hookspecs import HOOKS, OPTIONAL_ARGS, WITHOUT_PARAMS
from corejax.plugin.validate import Manager, Source

Rule = Callable[..., Any]
Offer = tuple[Source, Any]  # a plugin, and its rule or declaration for a hook


def freeze(primitive: Any) -> dict[str, Any]:
    """The final value of every slot of a primitive."""
    manager = Manager()
    owner = Source(primitive.plugin, primitive.name, primitive.pack, primitive.origin, True)
    manager.add(owner)
    sources = [owner]
    for source in _rules_for(primitive):
        try:
            manager.add(source)
        except PluginError as error:
            warnings.warn(f"rules are left out. {error}", CorejaxWarning, stacklevel=4)
            continue
        sources.append(source)
    offers, wrappers = {}, {}
    for hook in HOOKS:
        offers[hook], wrappers[hook] = _candidates(manager, sources, hook)
    params = _params_signature(offers)
    slots = _merge(owner, offers, params)
    slots["lowered_params"] = _lowered_params([*offers["xla_translation"], *wrappers["xla_translation"]])
    draft = SimpleNamespace(**slots)  # not yet the primitive's own slots: other threads must not see them half done
    derive.fill(draft, primitive)
    for hook, check in checks.WHOLE_RESULTS.items():
        rule = getattr(draft, hook)
        if rule is not None:
            setattr(draft, hook, _checked(primitive, rule, check))
    for hook in ("abstract_eval", "jvp", "transpose", "vmap", "xla_translation"):
        draft.providers.setdefault(hook, "derived")
    for hook, found in wrappers.items():
        _wrap(draft, hook, found, params)
    return {name: getattr(draft, name) for name in slots}


def _checked(primitive: Any, rule: Rule, check: Rule) -> Rule:
    return lambda *args, **params: check(primitive, rule(*args, **params))


def _rules_for(primitive: Any) -> list[Source]:
    """Other packs' rules for an installed primitive; those of a broken pack are left out with a warning."""
    found = []
    for entry in manifest.read().rules(primitive.name) if primitive.pack else ():
        try:
            plugin = registry.load_entry(entry)
        except PackError as error:
            warnings.warn(f"rules for {primitive.name} are left out. {error}", CorejaxWarning, stacklevel=5)
            continue
        found.append(Source(plugin, primitive.name, entry.pack.name, str(entry.pack), False))
    return found


def _candidates(manager: Manager, sources: list[Source], hook: str) -> tuple[list[Offer], list[Offer]]:
    """(offers, wrappers) of a hook; among the offers the last registered comes first, as when pluggy calls them."""
    offers: list[Offer] = []
    wrappers: list[Offer] = []
    for implementation in getattr(manager.hook, hook).get_hookimpls():
        offer = manager.sources[id(implementation.plugin)], implementation.function
        if implementation.wrapper:
            wrappers.append(offer)
        else:
            offers.insert(0, offer)
    for source in sources:
        rule: Any = source.declared.get(hook)
        if rule is None and hook == "jvp" and source.linear is not None:
            rule = Linearity(source.linear)
        if rule is not None and not any(source is other for other, _ in offers):
            offers.insert(0, (source, rule))
    return offers, wrappers


def _merge(owner: Source, offers: dict[str, list[Offer]], params: Signature) -> dict[str, Any]:
    """One rule for each hook from all that is offered, and what else is declared."""
    slots: dict[str, Any] = dict.fromkeys(HOOKS)
    providers: dict[str, str] = {}
    lowerings: dict[str, Rule] = {}
    for platform in sorted({source.platform for source, _ in offers["xla_translation"] if source.platform is not None}):
        special = [offer for offer in offers["xla_translation"] if offer[0].platform == platform]
        source, rule = _ranked(owner, f"xla_translation on {platform}", special)[0]
        lowerings[platform] = _adapted(source, "xla_translation", rule, params)
        providers[f"xla_translation on {platform}"] = source.origin
    declared: dict[str, Any] = {"linear": None, "factors": None, "symbolic_zeros": False}
    for hook, found in offers.items():
        general = [offer for offer in found if hook != "xla_translation" or offer[0].platform is None]
        if not general:
            continue
        ranked = _ranked(owner, hook, general)
        source, rule = ranked[0]
        providers[hook] = source.origin
        if hook == "jvp":
            declared = _declared_with_jvp(source, rule, params)
        if isinstance(rule, Declaration):
            slots[hook] = _adapted_declaration(rule, params)
            continue
        rules = [_adapted(other, hook, function, params) for other, function in ranked
                 if not isinstance(function, Declaration)]
        slots[hook] = rules[0] if len(rules) == 1 else chain(rules)
    _check_complete(owner, slots, lowerings)
    return slots | declared | {
        "params": frozenset(params.keywords), "open_params": params.open, "lowerings": lowerings,
        "multiple_results": getattr(owner.plugin, "multiple_results", False), "providers": providers,
        "jvp_binds_itself": False}


def _lowered_params(offers: list[Offer]) -> frozenset[str] | None:
    """The params that lowerings read: no others matter to what is compiled. None if that can't be told."""
    signatures = [Signature.of(rule) for _, rule in offers if not isinstance(rule, Declaration)]
    if all(source.platform is not None for source, _ in offers) or any(signature.open for signature in signatures):
        return None
    return frozenset([name for signature in signatures for name in signature.keywords])


def _wrap(draft: Any, hook: str, wrappers: list[Offer], params: Signature) -> None:
    """Put wrappers around a hook's rule, also around one that was derived; the last one outermost."""
    for source, wrapper in wrappers:
        inner = getattr(draft, hook)
        if inner is None:
            raise source.error("it wraps a rule that doesn't exist", hook, wanted=f"a rule {source.primitive}.{hook}",
                               todo="write the rule instead of a wrapper")
        setattr(draft, hook, wrapped(_adapted(source, hook, wrapper, params), inner))
        draft.providers[hook] += f", wrapped by {source.origin}"
        if hook == "jvp":
            draft.linear = draft.factors = None  # what reverse mode would use in place of the rule


def _ranked(owner: Source, hook: str, offers: list[Offer]) -> list[Offer]:
    """The offers with the one that counts first; an error if packs compete and the user made no choice."""
    if len({id(source) for source, _ in offers}) < 2:
        return offers
    prefer = manifest.read().prefer
    if not any(source.pack in prefer for source, _ in offers):
        names = [source.origin for source, _ in reversed(offers)]
        raise PackError(
            f"{owner.primitive}.{hook} is provided by {' and by '.join(names)}", primitive=owner.primitive, hook=hook,
            got=f"rules of {len(names)} packs", wanted="one rule, or a choice",
            todo=f"choose with COREJAX_PREFER={offers[0][0].pack} (or {offers[-1][0].pack})")
    return sorted(offers, key=lambda offer: prefer.index(offer[0].pack) if offer[0].pack in prefer else len(prefer))


def _params_signature(offers: dict[str, list[Offer]]) -> Signature:
    """The params of a primitive: those of `abstract_eval`, else of `decompose`; of the owner, who registered first."""
    for hook in ("abstract_eval", "decompose"):
        if offers[hook]:
            return Signature.of(offers[hook][-1][1])
    return Signature((), (), False, True)


def _adapted(source: Source, hook: str, rule: Rule, params: Signature) -> Rule:
    signature = Signature.of(rule)
    unknown = [name for name in signature.keywords if name not in params.keywords]
    if unknown and not params.open:
        raise source.error(
            f"it reads a param {unknown[0]!r} that the primitive doesn't have", hook, got=f"def {hook}{signature}",
            wanted=f"params among: {', '.join(params.keywords) or 'none'}",
            todo=registry.suggestion(unknown[0], params.keywords)
            or "a primitive's params are the keyword-only arguments of abstract_eval (else of decompose): add it there")
    clash = sorted(set(signature.positional) & set(params.keywords))
    if clash:
        raise source.error(
            f"its argument {clash[0]!r} has the name of a param", hook, got=f"def {hook}{signature}",
            wanted=f"a param with another name, or a hook without the argument {clash[0]!r}",
            todo="rename the param; or leave the argument out of the hook and read what it needs from the operands")
    if hook in WITHOUT_PARAMS:
        given = [name for name in HOOKS[hook] if name not in OPTIONAL_ARGS or name in signature.positional]
        return adapt(rule, signature, given, Signature((), (), False, False))
    return adapt(rule, signature, HOOKS[hook], params)


def _adapted_declaration(rule: Declaration, params: Signature) -> Any:
    if isinstance(rule, Partials):
        return Partials([adapt_partial(function, params) for function in rule.functions])
    return None if isinstance(rule, Linearity) else rule


def _declared_with_jvp(source: Source, rule: Any, params: Signature) -> dict[str, Any]:
    """What is declared by the plugin whose jvp was chosen: it goes with that rule."""
    factors = None
    if isinstance(rule, Factors):
        factors = tuple([adapt_partial(f, params) if callable(f) else f for f in rule.factors])
    return {"linear": source.linear, "factors": factors,
            "symbolic_zeros": getattr(source.plugin, "symbolic_zeros", False)}


def _check_complete(owner: Source, slots: dict[str, Any], lowerings: dict[str, Rule]) -> None:
    """There is enough to know a result's type, and to compute it."""
    if slots["decompose"] is not None:
        return
    if slots["abstract_eval"] is None:
        raise owner.error("a required hook is missing", got="neither abstract_eval nor decompose",
                          wanted="abstract_eval(self, avals, *, ...) or decompose(self, args, *, ...)",
                          todo="write abstract_eval, and impl or xla_translation; or decompose alone")
    if slots["impl"] is None and slots["xla_translation"] is None and not lowerings:
        raise owner.error("nothing says how to compute it", got="neither impl, xla_translation nor decompose",
                          wanted="one of them", todo="write impl by NumPy, xla_translation by StableHLO, or decompose")
