"""Rules that packs bring by entry points, for the primitives of others or one's own. Each is imported when needed."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from inspect import isroutine
from typing import Any, NamedTuple

from corejax.base.errors import CorejaxError, PluginError, kind_of, suggestion
from corejax.installed import groups, manifest, registry, requirements
from corejax.installed.distributions import Entry
from corejax.installed.preferences import Preferences
from corejax.installed.targets import EVERY, Target
from corejax.kernel.declarations import Declaration
from corejax.kernel.hookspecs import HOOKS
from corejax.kernel.primitive import Primitive
from corejax.packs.consistency import PLATFORMS
from corejax.packs.source import Source

_ABSENT = object()

#: What was imported so far for a primitive, by entry; `_ABSENT` where a table has nothing for it.
_met: weakref.WeakKeyDictionary[Primitive, dict[Entry, Any]] = weakref.WeakKeyDictionary()

#: Rules that don't count for a primitive for now: see `freeze.without`.
ignored: weakref.WeakKeyDictionary[Primitive, frozenset[Foreign]] = weakref.WeakKeyDictionary()


class Foreign(NamedTuple):
    """A rule that may not be imported yet."""

    target: Target
    entry: Entry

    @property
    def slot(self) -> str:
        return self.target.slot

    @property
    def in_table(self) -> bool:
        """Does its entry lead to a table, which may have no rule for this primitive?"""
        return self.target.primitive == EVERY


class OneRule:
    """The plugin that a rule makes by itself."""

    def __init__(self, target: Target, rule: Any) -> None:
        setattr(self, target.hook, rule)
        if target.platform:
            self.platform = target.platform
        if getattr(rule, "symbolic_zeros", False):
            self.symbolic_zeros = True


def rules_for(primitive: Primitive) -> Iterator[Foreign]:
    """The rules of other packs for a primitive: those for its distribution's, and for that which it substitutes."""
    if primitive.pack is None:
        return
    installed, left_out = manifest.read(), ignored.get(primitive, ())
    for owner in filter(None, dict.fromkeys([primitive.pack, substituted(primitive)[0]])):
        for target, entry in installed.rules(owner, primitive.name):
            rule = Foreign(target, entry)
            if rule not in left_out:
                yield rule


def substituted(primitive: Primitive) -> tuple[str | None, str]:
    """The distribution for whose primitive this one stands, and its versions: `substitutes = "corejax-x>=1,<2"`."""
    text = getattr(primitive.plugin, "substitutes", None)
    found = requirements.parse([text]) if isinstance(text, str) else []
    return (found[0].name, found[0].range) if found else (None, "")


def known_hooks() -> tuple[str, ...]:
    """The kernel's hooks, and those of the transformations that are installed."""
    return (*HOOKS, *manifest.read().names(groups.TRANSFORMS))


def check_target(foreign: Foreign) -> None:
    """Check that an entry's name is that of a hook, and of a platform; nothing is imported."""
    target, platforms = foreign.target, (*PLATFORMS, *manifest.read().names("corejax.backends"))
    hooks = known_hooks()
    if target.hook not in hooks and not target.optional:
        raise _error(foreign, f"{target.hook!r} is not a hook", got=foreign.entry.name,
                     wanted=f"one of: {', '.join(hooks)}", todo=suggestion(target.hook, hooks) or
                     f"name the hook; or write {target.hook}? for a transformation that may not be installed")
    if target.platform is None:
        return
    if target.hook != "xla_translation":
        raise _error(foreign, f"{target.hook} is for every platform", got=foreign.entry.name,
                     wanted="a platform for xla_translation only", todo=f"leave out @{target.platform}")
    near = None if target.platform in platforms else suggestion(target.platform, platforms)
    if near:
        raise _error(foreign, f"there is no platform {target.platform!r}", got=foreign.entry.name,
                     wanted=f"one of {', '.join(platforms)}", todo=near)


def is_chosen(primitive: Primitive, foreign: Foreign, preferences: Preferences) -> bool:
    """Does the user prefer it to what the primitive's owner has, or is it the owner's?"""
    hook, platform = foreign.target.hook, foreign.target.platform
    return foreign.entry.pack.name == primitive.pack or (
        preferences.of(foreign.entry.pack.name, primitive.name, hook, platform).degree >
        preferences.of(primitive.pack, primitive.name, hook, platform).degree)


def is_met(primitive: Primitive, foreign: Foreign) -> bool:
    """Was it imported for this primitive?"""
    return foreign.entry in _met.get(primitive, ())


def source_of(primitive: Primitive, foreign: Foreign, chosen: bool) -> Source | None:
    """The rule as a plugin of its own, imported now if it wasn't; None if it is a table without this primitive."""
    rule = meet(primitive, foreign)
    if isinstance(rule, CorejaxError):
        raise rule
    if rule is _ABSENT:
        return None
    return Source(OneRule(foreign.target, rule), primitive.name, foreign.entry.pack.name, str(foreign.entry.pack),
                  single=foreign.target.hook, consented=chosen, at=place(foreign))


def meet(primitive: Primitive, foreign: Foreign) -> Any:
    """Import a rule, unless it was; what is wrong with it is kept, too."""
    met = _met.setdefault(primitive, {})
    if foreign.entry not in met:
        try:
            _check_version(primitive, foreign)
            met[foreign.entry] = _imported(primitive, foreign)
        except CorejaxError as error:
            met[foreign.entry] = error
    return met[foreign.entry]


def forget() -> None:
    """Import all rules anew when they are needed: a module that has some was reloaded."""
    _met.clear()


def _imported(primitive: Primitive, foreign: Foreign) -> Any:
    rule = registry.load_entry(foreign.entry)
    if foreign.in_table:
        if not isinstance(rule, Mapping):
            raise _error(foreign, "the entry for all primitives must lead to a table of rules", got=kind_of(rule),
                         wanted="a mapping from the names of primitives to rules", todo="name a dict")
        if primitive.name not in rule:
            return _ABSENT
        rule = rule[primitive.name]
    if not (isinstance(rule, Declaration) or isroutine(rule)) or hasattr(rule, "primitive"):
        raise _error(foreign, "it is not a rule", got=kind_of(rule),
                     wanted=f"a function ({', '.join(HOOKS.get(foreign.target.hook, ['...']))}), or a declaration in "
                     "its place",
                     todo="let the entry lead to that one rule; a method of an object is a function, too")
    return rule


def _check_version(primitive: Primitive, foreign: Foreign) -> None:
    """A pack's own requirement says for which versions of the owner its rules are."""
    pack, owner = foreign.entry.pack, foreign.target.owner
    required = pack.requirement(owner)
    if required is None:
        return
    if owner == primitive.pack:
        version = manifest.read().packs[owner].version
        fits, got = requirements.satisfies(version, required.range), f"{owner} {version}"
    else:
        stands_for = substituted(primitive)[1]
        fits, got = requirements.overlap(required.range, stands_for), f"{primitive.origin}, for {owner}{stands_for}"
    if not fits:
        raise _error(foreign, f"it is for another version of {owner}", got=got, wanted=f"{owner}{required.range}",
                     todo=f"install versions of {pack.name} and {owner} that match")


def _error(foreign: Foreign, problem: str, **parts: Any) -> PluginError:
    target, entry = foreign
    return PluginError(f"{target.primitive}.{target.hook} ({entry.pack}): {problem}", primitive=target.primitive,
                       hook=target.hook, pack=str(entry.pack), where=f"the entry point `{entry}` of {entry.pack.name}",
                       **parts)


def place(foreign: Foreign) -> str:
    """Where a rule is, without importing it."""
    return f"{foreign.entry.module}:{foreign.entry.attr}"


def orphans() -> Iterator[tuple[str, str, str]]:
    """(target, pack, why) of the rules that do nothing, though whom they are for is required, or installed."""
    installed = manifest.read()
    for owner in installed.rule_owners():
        there = installed.packs.get(owner)
        names = [entry.name for entry in there.entries if entry.group == groups.PRIMITIVES] if there else []
        for target, entry in installed.rules(owner):
            what = f"{owner}/{target.primitive}:{target.slot}"
            if there is not None and target.primitive not in (*names, EVERY):
                yield what, str(entry.pack), f"{there} has no such primitive" + (
                    f"; {near}" if (near := suggestion(target.primitive, names)) else "")
            elif there is None and owner not in installed.hidden:
                required = entry.pack.requirement(owner)
                if required is not None and not required.optional:
                    yield what, str(entry.pack), f"{owner} isn't installed, which {entry.pack.name} requires"
