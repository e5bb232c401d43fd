"""Who provides what, and why it won."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from corejax.base.errors import CorejaxError, CorejaxKeyError, CorejaxTypeError, PackError, kind_of, suggestion
from corejax.base.source import here
from corejax.inspect.answers import Explanation, Listing, Provided
from corejax.inspect.hooks import home, hooks_of, of_transformations
from corejax.installed import groups, manifest, registry
from corejax.installed.targets import Target
from corejax.kernel.primitive import Primitive
from corejax.packs.define import find
from corejax.packs.foreign import orphans
from corejax.packs.hook_signatures import place_of
from corejax.packs.resolution import Resolution
from corejax.packs.slots import draft
from corejax.xla.runtime import backends as known_backends

if TYPE_CHECKING:
    from corejax.installed.distributions import Entry

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
    hooks = {hook.name: hook for hook in hooks_of(primitive, resolution, getattr(slots, "notes", {}))}
    if problem is None:
        hooks.update({hook.name: hook for hook in of_transformations(primitive)})
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


def _first_line(error: Exception) -> str:
    cause = getattr(error, "got", None) if isinstance(error, PackError) else None
    return f"{getattr(error, 'message', error)}" + (f" ({cause})" if cause else "")
