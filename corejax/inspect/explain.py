"""Who provides what, and why it won."""

from __future__ import annotations

import ast
import inspect
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corejax.base.errors import CorejaxError, CorejaxKeyError, CorejaxTypeError, PackError, kind_of, suggestion
from corejax.base.source import here
from corejax.inspect.answers import Explanation, Hook, Listing, Provided
from corejax.installed import groups, manifest, registry
from corejax.installed.targets import Target
from corejax.kernel import hookspecs
from corejax.kernel.declarations import Declaration
from corejax.kernel.hookspecs import HOOKS
from corejax.kernel.primitive import Primitive
from corejax.packs.define import find
from corejax.packs.foreign import Foreign, orphans, place
from corejax.packs.hook_signatures import place_of
from corejax.packs.ranking import Offer, Ranking, by_platform, chosen_by, general, rank
from corejax.packs.resolution import Resolution, Unchosen
from corejax.packs.slots import draft
from corejax.packs.source import Source
from corejax.xla.runtime import backends as known_backends

if TYPE_CHECKING:
    from corejax.installed.distributions import Entry

_KERNEL = str(Path(__file__).parent.parent) + os.sep
_EXCLUDED = "excluded by COREJAX_PACKS or COREJAX_DISABLE_PACKS"


# Listings

def packs() -> Listing:
    """Packs in use with how much they provide, packs that are excluded, and rules for primitives that don't exist."""
    installed = manifest.read()
    rows: dict[str, dict[str, int]] = {}
    lines = []
    for pack in installed.all().values():
        counts = rows[str(pack)] = {}
        for entry in pack.entries:
            noun = entry.group.rpartition(".")[2]
            counts[noun] = counts.get(noun, 0) + 1
        lines.append(f"{pack}: {groups.counted([entry.group for entry in pack.entries])}")
    lines += [f"{pack}: {_EXCLUDED}" for pack in installed.hidden.values()]
    lines += [f"{name}: broken: {why}" for name, why in registry.broken().items()]
    lines += [f"{name}: {what}" for name, what in installed.several_versions()]
    lines += [f"{pack}: its rule for {target} does nothing: {why}" for target, pack, why in orphans()]
    lines += [f"{name}: {what}" for name, what in installed.misspelled_rules()]
    text = "\n".join(lines) or "no pack is installed: pip install 'corejax[std]' brings the standard ones"
    return Listing(rows, text, f"{len(rows)} packs")


def primitives() -> Listing:
    """The primitives of each pack. Imports no pack."""
    rows = {}
    for pack in manifest.read().packs.values():
        names = sorted(entry.name for entry in pack.entries if entry.group == groups.PRIMITIVES)
        if names:
            rows[str(pack)] = names
    text = "\n".join("\n".join([f"{pack}:", *[f"  {name}" for name in names]]) for pack, names in rows.items())
    return Listing(rows, text, f"{sum(map(len, rows.values()))} primitives")


def backends() -> Listing:
    """Each backend, and whether it can be used on this machine. Starts none."""
    rows = dict(known_backends.states())
    return Listing(rows, "\n".join(f"{name}: {state}" for name, state in rows.items()), f"{len(rows)} backends")


# Names

def explain(what: object) -> Explanation:
    """Everything known about a name, a primitive, or a primitive's function; `pack/name` is that pack's primitive."""
    primitive = getattr(what, "primitive", what)
    if isinstance(primitive, Primitive):
        if not _is_what_its_name_stands_for(primitive):
            return Explanation(primitive.name, (_local(primitive),))
        what = primitive.name
    if not isinstance(what, str):
        raise CorejaxTypeError("it is not something to explain", got=kind_of(what), where=here(),
                               wanted="the name of a primitive, function or role; or a primitive or its function",
                               todo="pass a name, as cj.plugins.primitives() lists them")
    found = tuple(_by_name(what))
    if not found and "/" in what:
        return explain(find(what))
    if not found:
        searched = (groups.PRIMITIVES, groups.FUNCTIONS, groups.ROLES)
        near = suggestion(what, {name for group in searched for name in manifest.read().names(group)})
        raise CorejaxKeyError(f"no installed pack provides a primitive, function or role called {what!r}", where=here(),
                              got=registry.packs_in_use(), wanted="a name that one of these provides",
                              todo=near or registry.install_hint(what, searched))
    return Explanation(what, found)


def _is_what_its_name_stands_for(primitive: Primitive) -> bool:
    try:
        return primitive.pack is not None and find(primitive.name) is primitive
    except PackError:  # several packs provide one of that name
        return False


def _by_name(name: str) -> Iterator[Provided]:
    installed = manifest.read()
    searched = dict.fromkeys([groups.PRIMITIVES, groups.FUNCTIONS, groups.ROLES,
                            *[entry.group for pack in installed.all().values() for entry in pack.entries]])
    for group in searched:
        for key in (name, f"operators.{name}") if group == groups.ROLES else (name,):
            if group == groups.ROLES and key in groups.TABLES:
                yield from map(_table, installed.providers(group, key))
            elif installed.providers(group, key) and group != groups.RULES:
                yield _provided(group, key)
    idle = [f"the rule for {target} of {pack} does nothing: {why}" for target, pack, why in orphans()
            if target.partition("/")[2].partition(":")[0] == name]
    if idle and not installed.providers(groups.PRIMITIVES, name):
        near = suggestion(name, installed.names(groups.PRIMITIVES))
        yield Provided("primitive", name, None, why="which no installed pack provides", lost=tuple(idle),
                       problem=near or registry.install_hint(name, (groups.PRIMITIVES,)))


def _table(entry: Entry) -> Provided:
    """One pack's part of a role that every pack may fill."""
    why, problem = "joined with those of other packs", None
    try:
        why = f"a table of {len(registry.load_entry(entry))} functions, {why}"
    except CorejaxError as error:
        problem = str(error)
    return Provided("role", entry.name, str(entry.pack), f"{entry.module}:{entry.attr}", why, problem=problem)


def _provided(group: str, name: str) -> Provided:
    installed, noun = manifest.read(), groups.noun(group)
    entries = installed.providers(group, name)
    if group == groups.FUNCTIONS:  # other groups have what is called the same
        _, entries = installed.called(group, name)
    try:
        entry = installed.one_of(group, name, entries)
        assert entry is not None
        value = registry.load_once(entry)
    except CorejaxError as error:
        origin = " or ".join(str(entry.pack) for entry in entries)
        return Provided(noun, name, origin, problem=str(error))
    by = installed.preferences.of(entry.pack.name, name).where
    lost = [f"not used: {other.pack}, by {by}" for other in entries if other is not entry]
    lost += [f"not used: {pack}, {_EXCLUDED}" for pack in installed.hidden.values()
             if any(other.group == group and other.name == name for other in pack.entries)]
    why = "its only provider" if len(entries) == 1 else f"chosen by {by}"
    if group != groups.PRIMITIVES:
        primitive = getattr(value, "primitive", None)
        where = home(primitive) if isinstance(primitive, Primitive) else place_of(value)
        return Provided(noun, name, str(entry.pack), where or f"{entry.module}:{entry.attr}", why, lost=tuple(lost))
    try:
        return _primitive(find(name), why, lost)
    except CorejaxError as error:
        return Provided(noun, name, str(entry.pack), f"{entry.module}:{entry.attr}", why, problem=str(error))


# Primitives

def _local(primitive: Primitive) -> Provided:
    return _primitive(primitive, "", [])


def _primitive(primitive: Primitive, why: str, lost: Sequence[str]) -> Provided:
    resolution = Resolution(primitive, everything=True)
    problem = None
    slots: Any = None
    try:
        slots = draft(primitive, resolution)
    except CorejaxError as error:
        problem = str(error)
    hooks = {hook.name: hook for hook in _hooks(primitive, resolution, getattr(slots, "notes", {}))}
    signature, defaults = resolution.params, primitive.defaults
    params = ", ".join([f"{name}={defaults[name]!r}" if name in defaults else name for name in signature.keywords]
                       + ["**params"] * signature.open)
    others = [f"left out: the rules of {pack}: {_first_line(error)}" for pack, error in resolution.left_out]
    others += [f"not used: rules of {pack}, {_EXCLUDED}" for pack in manifest.read().hidden.values()
               if primitive.pack and any([target.primitive == primitive.name and target.owner == primitive.pack
                                          for entry in pack.entries if entry.group == groups.RULES
                                          if (target := Target.parse(entry.name))])]
    return Provided("primitive", primitive.name, primitive.origin, home(primitive), why, params or "none",
                    hooks, (*lost, *others), problem)


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
    resolution = Resolution(primitive, everything=True)
    with suppress(CorejaxError):
        draft(primitive, resolution)
    name, _, platform = hook.partition("@")
    for each in (name, "decompose"):
        offers, wrappers = [[offer for offer in found.get(each, ()) if offer.source.platform in (None, platform)]
                            for found in (resolution.offers, resolution.wrappers)]
        offers.sort(key=lambda offer: offer.source.platform != (platform or None))
        if offers or wrappers:
            return ", wrapped at ".join([_named(primitive, offer) for offer in (*offers[:1], *wrappers)])
    return home(primitive)


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
            if isinstance(node, ast.Assign) and any([ast.unparse(target) == name for target in node.targets]):
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


def _first_line(error: Exception) -> str:
    cause = getattr(error, "got", None) if isinstance(error, PackError) else None
    return f"{getattr(error, 'message', error)}" + (f" ({cause})" if cause else "")


def _hooks(primitive: Primitive, resolution: Resolution, notes: Mapping[str, Any]) -> Iterator[Hook]:
    """Each hook; with it, the rules for it that would need the user's consent."""
    found = {hook.name: hook for hook in _holding(primitive, resolution, notes)}
    for each in resolution.unchosen:
        hook = found.get(each.slot) or found[each.slot.partition("@")[0]]
        text = f"not taken, as nobody chose it: {_unchosen(primitive, each)}; COREJAX_PREFER={each.pack} takes it"
        found[hook.name] = replace(hook, lost=(*hook.lost, text))
    yield from found.values()


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
        why = "" if first.source.is_owner else "added where there was none" if not first.source.consented else \
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
