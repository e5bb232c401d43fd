"""The hooks of a primitive: who wrote each rule or how it is derived, where it is, and why it won."""

from __future__ import annotations

import ast
import inspect
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from corejax.base.errors import CorejaxError, PackError
from corejax.inspect.answers import Hook
from corejax.kernel import hookspecs
from corejax.kernel.declarations import Declaration
from corejax.kernel.hookspecs import HOOKS
from corejax.kernel.primitive import Primitive
from corejax.kernel.transformations import Transformation
from corejax.packs import answering
from corejax.packs.foreign import Foreign, place
from corejax.packs.hook_signatures import place_of
from corejax.packs.ranking import Offer, Ranking, by_platform, chosen_by, degree, general, rank
from corejax.packs.resolution import Resolution, Unchosen
from corejax.packs.slots import draft
from corejax.packs.source import Source

_KERNEL = str(Path(__file__).parent.parent) + os.sep


def home(primitive: Primitive) -> str:
    """Where a plugin is defined: its class, or the row of a table that a family made it from."""
    place = Source(primitive.plugin, primitive.name, None, "").place()
    module = sys.modules.get(primitive.module or "")
    if module is None or type(primitive.plugin).__module__ == primitive.module:
        return place
    line = _rows(module).get(primitive.name)
    return f"{module.__file__}:{line}" if line else place


def place_of_rule(primitive: Primitive, hook: str) -> str:
    """Where the rule for a hook, or `hook@platform`, is written: a function, or the row of a table. With its wrappers.

    For a derived rule that is `decompose`, and for one that is missing it is the plugin.
    """
    resolution = _resolution(primitive, hook)
    name, _, platform = hook.partition("@")
    for each in (name, "decompose"):
        offers, wrappers = [[offer for offer in found.get(each, ()) if offer.source.platform in (None, platform)]
                            for found in (resolution.offers, resolution.wrappers)]
        offers.sort(key=lambda offer: offer.source.platform != (platform or None))
        if offers or wrappers:
            return ", wrapped at ".join([_named(primitive, offer) for offer in (*offers[:1], *wrappers)])
    return home(primitive)


def _resolution(primitive: Primitive, hook: str) -> Resolution:
    """Everything that there is for a hook, that of a transformation included, if it was asked for."""
    for transformation in [*primitive.answers]:
        if transformation.name == hook:
            return answering.resolved(primitive, transformation)[0]
    resolution = Resolution(primitive, everything=True)
    with suppress(CorejaxError):
        draft(primitive, resolution)
    return resolution


def _named(primitive: Primitive, offer: Offer) -> str:
    """The place of a rule, with its name if it is a function."""
    place, name = _place_of_offer(primitive, offer), getattr(offer.rule, "__qualname__", "")
    if isinstance(offer.rule, Declaration) and offer.source.at == place:
        return _assigned(*place.split(":"))
    return f"{place} ({name.rpartition('<locals>.')[2]})" if place == place_of(offer.rule) else place


@lru_cache(64)
def _assigned(module: str, name: str) -> str:
    """Where a name of a module gets its value."""
    found = sys.modules.get(module)
    with suppress(OSError, TypeError, SyntaxError):  # it has no source
        for node in ast.parse(inspect.getsource(found)).body:  # type: ignore[arg-type]
            targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(
                node, ast.AnnAssign) else []
            if any([ast.unparse(target) == name for target in targets]):
                return f"{found.__file__}:{node.lineno} ({name})"  # type: ignore[union-attr]
    return f"{module}:{name}"


@lru_cache(64)
def _rows(module: Any) -> dict[Any, int]:
    """The lines of calls in a module whose first argument is a constant, by that constant."""
    try:
        calls = [node for node in ast.walk(ast.parse(inspect.getsource(module)))
                 if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant)]
    except (OSError, TypeError, SyntaxError):  # it has no source
        return {}
    return {node.args[0].value: node.lineno for node in reversed(calls)}  # type: ignore[attr-defined]


def hooks_of(primitive: Primitive, resolution: Resolution, notes: Mapping[str, Any]) -> Iterator[Hook]:
    """Each hook of the kernel; with it, the rules for it that would need the user's consent."""
    found = {hook.name: hook for hook in _holding(primitive, resolution, notes)}
    for each in resolution.unchosen:
        hook = found.get(each.slot) or found[each.slot.partition("@")[0]]
        text = f"not taken, as nobody chose it: {_unchosen(primitive, each)}; COREJAX_PREFER={each.pack} takes it"
        found[hook.name] = replace(hook, lost=(*hook.lost, text))
    yield from found.values()


def of_transformations(primitive: Primitive) -> Iterator[Hook]:
    """Each hook that a transformation of a pack adds."""
    primitive = answering.at_first_sight(primitive)
    for transformation in answering.all_installed():
        try:
            yield _of_transformation(primitive, transformation)
        except CorejaxError as error:
            yield Hook(transformation.name, "conflict", None, error.message, why=error.todo or "")


def _of_transformation(primitive: Primitive, transformation: Transformation) -> Hook:
    resolution, answer = answering.resolved(primitive, transformation)
    name = transformation.name
    offers = resolution.offers[name]
    if offers:
        hook = _chosen(primitive, name, rank(primitive.name, name, offers, resolution.preferences), (), resolution)
    else:
        hook = Hook(name, "declared" if answer.how == "absent" else answer.how, None, answer.what)
    wrappers = tuple([_at(primitive, offer) for offer in resolution.wrappers[name]])
    lost = [f"not taken, as nobody chose it: {_unchosen(primitive, each)}; COREJAX_PREFER={each.pack} takes it"
            for each in resolution.unchosen]
    lost += [f"left out: the rule of {pack}: {getattr(error, 'message', error)}" for pack, error in resolution.left_out]
    return replace(hook, wrappers=wrappers, lost=(*hook.lost, *lost))


def _unchosen(primitive: Primitive, rule: Unchosen) -> str:
    return f"{rule.origin} at {place(rule.what)}" if isinstance(rule.what, Foreign) else _at(primitive, rule.what)


def _holding(primitive: Primitive, resolution: Resolution, notes: Mapping[str, Any]) -> Iterator[Hook]:
    """What each hook of a primitive is."""
    for hook in HOOKS:
        offers = general(hook, resolution.offers[hook])
        wrappers = tuple(_at(primitive, offer) for offer in resolution.wrappers[hook] if offer.source.platform is None)
        if offers:
            try:
                ranking = rank(primitive.name, hook, offers, resolution.preferences)
                yield _chosen(primitive, hook, ranking, wrappers, resolution)
            except PackError as error:
                yield Hook(hook, "conflict", None, error.message, why=error.todo or "")
            continue
        note = notes.get(hook)
        if note is None:
            without = re.search(r"Without it: (.*?)\.\s*$", getattr(hookspecs, hook).__doc__, re.DOTALL)
            yield Hook(hook, "absent", what=" ".join(without[1].split()) if without else "", wrappers=wrappers)
            continue
        where = _place(primitive, resolution, "decompose") if note.how == "derived" else None
        yield Hook(hook, note.how, None, note.what, where, cost=note.cost, wrappers=wrappers)
    yield from _lowerings(primitive, resolution)


def _lowerings(primitive: Primitive, resolution: Resolution) -> Iterator[Hook]:
    """The lowerings for single platforms."""
    try:
        found = by_platform(primitive.name, resolution.offers["xla_translation"], resolution.preferences)
    except PackError as error:
        yield Hook(error.hook or "xla_translation", "conflict", None, error.message, why=error.todo or "")
        return
    backups = tuple(f"asked only where that returns None: {_at(primitive, offer)}"
                    for offer in general("xla_translation", resolution.offers["xla_translation"]))
    for platform, ranking in found.items():
        wrappers = tuple(_at(primitive, offer) for offer in resolution.wrappers["xla_translation"]
                         if offer.source.platform in (None, platform))
        own = ranking.offers[0].source.platform
        try:
            hook = _chosen(primitive, f"xla_translation@{platform}", ranking, wrappers, resolution)
            hook = replace(hook, lost=(*hook.lost, *backups))
        except PackError as error:
            hook = Hook(f"xla_translation@{platform}", "conflict", None, error.message, why=error.todo or "")
        yield hook if own == platform else replace(hook, why=f"as it is for {own}")


def _chosen(primitive: Primitive, name: str, ranking: Ranking, wrappers: tuple[str, ...],
            resolution: Resolution) -> Hook:
    (first, *others), why = ranking
    if hasattr(first.rule, "error"):  # several packs add it
        raise first.rule.error()
    declared = isinstance(first.rule, Declaration)
    if not others:
        chosen = first.source.consented and degree(first.source, name, resolution.preferences)
        why = "" if first.source.is_owner else "added where there was none" if not chosen else \
            f"chosen by {chosen_by(first.source, name, resolution.preferences)}"
    lost = [f"not used: {_at(primitive, other)}" if declared or isinstance(other.rule, Declaration) else
            f"asked only where that returns None: {_at(primitive, other)}" for other in others]
    return Hook(name, "declared" if declared else "written", first.source.origin, repr(first.rule) * declared,
                _place_of_offer(primitive, first), why, wrappers=wrappers, lost=tuple(lost))


def _place_of_offer(primitive: Primitive, offer: Offer) -> str:
    place = (None if isinstance(offer.rule, Declaration) else place_of(offer.rule)) or offer.source.place()
    by_family = offer.source.is_owner and place.startswith(_KERNEL)
    return home(primitive) if by_family else place  # written as a row of a table


def _at(primitive: Primitive, offer: Offer) -> str:
    return f"{offer.source.origin} at {_place_of_offer(primitive, offer)}"


def _place(primitive: Primitive, resolution: Resolution, hook: str) -> str | None:
    return next((_place_of_offer(primitive, offer) for offer in resolution.offers[hook]), None)
