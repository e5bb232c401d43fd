"""What the kit checks of a pack: its primitives, and those of others for which it has rules."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from corejax.core import Primitive, here
from corejax.distributions import (
    GROUPS,
    PRIMITIVES,
    RULES,
    TRANSFORMS,
    Entry,
    Pack,
    canonical,
    counted,
    installed,
    load_entry,
)
from corejax.errors import CorejaxError, CorejaxKeyError, suggestion
from corejax.plugin import HOOKS, find
from corejax.plugins import prefer
from corejax.rules import EVERY, Target, left_out, orphans, transformations
from corejax_testing.report import Failure, Outcome

#: The name of the check that each rule of a pack takes effect. Like `has samples`, it is about no single sample.
RULES_ARE_USED = "rules are used"


class Subject(NamedTuple):
    """A primitive to check for a pack: its own, or `owner/name` of another one with the slots of the rules for it."""

    pack: str
    name: str
    slots: tuple[str, ...] = ()

    @property
    def primitive(self) -> Primitive:
        owner, _, bare = self.name.rpartition("/")
        return find(f"{owner or self.pack}/{bare}")  # others may have one of that name

    def chosen(self) -> AbstractContextManager[object]:
        """The context in which the pack's rules for it count, whatever the user prefers."""
        return prefer(*self.choices) if self.slots else nullcontext()

    @property
    def transformations(self) -> tuple[str, ...]:
        """Of which transformations the rules are, if they are for another pack's primitive, and all of that kind.

        What the primitive does otherwise is then not the pack's: there is nothing else to check.
        """
        return () if "/" not in self.name or {*self.slots} - {each.name for each in transformations()} else self.slots

    @property
    def choices(self) -> list[str]:
        """What a user would prefer to choose the pack's rules for it."""
        bare = self.name.rpartition("/")[2]
        return [f"{self.pack}/{bare}:{slot}" for slot in self.slots]


class Contents(NamedTuple):
    """What there is to check of a pack, what is wrong with its entry points, and what is left out, with the reason."""

    subjects: list[Subject]
    failures: tuple[Failure, ...]
    notes: tuple[str, ...]

    def outcome(self, pack: str) -> Outcome | None:
        """The outcome for the pack as a whole; None if there is nothing to say."""
        if not self.failures and self.subjects:
            return None
        return Outcome(pack, RULES_ARE_USED, "", self.failures, 0, (), self.notes, 0.0)


def pack_of(name: str) -> Pack:
    """The installed distribution of this name, in any spelling."""
    packs, canonical_name = installed().packs, canonical(name)
    if canonical_name not in packs:
        raise CorejaxKeyError(f"no pack {name!r} is in use", got=repr(name), where=here(),
                              wanted=f"one of: {', '.join(sorted(packs)) or 'none is installed'}",
                              todo=suggestion(canonical_name, packs) or "install it, so that its entry points are seen")
    return packs[canonical_name]


def primitives_of(name: str) -> list[str]:
    """The names of the primitives that a distribution provides."""
    return _primitives(pack_of(name))


def contents_of(name: str) -> Contents:
    """What there is to check of a distribution."""
    pack = pack_of(name)
    slots: dict[str, list[str]] = {each: [] for each in _primitives(pack)}
    faults = [_failure(pack, target, why, "name a primitive that is there, or remove the entry point")
              for target, whose, why in orphans() if whose == str(pack)]
    faults += [_failure(pack, what, text, "spell it like that") for whose, text in installed().misspelled_rules()
               if whose == pack.name for what in [text.partition(" is left out")[0]]]
    notes = []
    for entry in pack.entries:
        target = Target.parse(entry.name) if entry.group == RULES else None
        if target is None:
            continue
        owner = installed().packs.get(target.owner)
        if owner is None:
            notes.append(f"not checked: {entry.name}, as {target.owner} isn't installed")
            continue
        if target.optional and target.hook not in (*HOOKS, *installed().names(TRANSFORMS)):
            notes.append(f"not checked: {entry.name}, as no transformation {target.hook} is installed")
            continue
        try:
            found = _reached(entry, target, owner)
        except CorejaxError as error:
            faults.append(_failure(pack, entry.name, "its table can't be imported", "fix the module", error))
            continue
        for primitive in found:
            if primitive in _primitives(owner):
                shown = primitive if owner is pack else f"{owner.name}/{primitive}"
                slots.setdefault(shown, []).append(target.slot)
            elif near := suggestion(primitive, _primitives(owner)) if target.primitive == EVERY else None:
                faults.append(_failure(pack, entry.name, f"{owner} has no primitive {primitive!r}", near))
    if not slots and not faults:
        notes, faults = _nothing(pack, notes)
    return Contents([Subject(pack.name, each, tuple(found)) for each, found in slots.items()], tuple(faults),
                    tuple(notes))


def _reached(entry: Entry, target: Target, owner: Pack) -> list[str]:
    """The names of the primitives that a rule, or a table of them, is for."""
    if target.primitive != EVERY:
        return [target.primitive]
    table = load_entry(entry)
    return sorted(map(str, table)) if isinstance(table, Mapping) else _primitives(owner)  # each of these says so


def _primitives(pack: Pack) -> list[str]:
    return sorted([entry.name for entry in pack.entries if entry.group == PRIMITIVES])


def _nothing(pack: Pack, notes: list[str]) -> tuple[list[str], list[Failure]]:
    """For a pack without any primitive to check: what it brings instead, or the failure that this is nothing."""
    kinds = [entry.group for entry in pack.entries]
    if notes or not set(kinds) & set(GROUPS):
        got = "; ".join(notes) or f"entry points in {', '.join(sorted(set(kinds)))}"
        return notes, [_failure(pack, "", "there is nothing to check", "install what its rules are for, or correct the "
                                "names of its groups of entry points", got=got)]
    return [f"{pack} has neither primitives nor rules, so there is nothing to check: it provides "
            f"{counted(kinds)}"], []


def use_of(subject: Subject, primitive: Primitive) -> Iterator[Outcome]:
    """The outcome of the check that each rule takes effect, if the pack has any for it. They must be chosen."""
    if not subject.slots:
        return
    start = time.perf_counter()
    pack = pack_of(subject.pack)
    failures = [_failure(pack, primitive.name, "its rules are left out", error.todo if isinstance(error, CorejaxError)
                         and error.todo else "fix them", error, hook=getattr(error, "hook", None) or "")
                for whose, error in left_out(primitive) if whose == str(pack)]
    yield Outcome(primitive.name, RULES_ARE_USED, "", tuple(failures), len(subject.slots) - len(failures), (), (),
                  time.perf_counter() - start)


def hooks_of(primitive: Primitive, asked: Collection[str] = ()) -> dict[str, str]:
    """Who provides each hook that is written rather than derived, if not all are the owner's; or `asked` ones alone."""
    found = {hook: who for hook, who in primitive.providers.items() if not who == "derived"}
    if asked:
        answers = {each.name: each.answer(primitive) for each in transformations() if each.name in asked}
        found = {name: answer.provider for name, answer in answers.items() if answer.provider}
    return found if {*found.values()} - {primitive.origin} else {}


def _failure(pack: Pack, target: str, problem: str, todo: str, error: Exception | None = None, *, hook: str = "rules",
             got: str | None = None) -> Failure:
    return Failure(target or pack.name, str(pack), RULES_ARE_USED, hook, f"the entry points of {pack}", problem,
                   got or (str(error).replace("\n", "\n          ") if error else target), "rules that take effect",
                   todo, error, where=getattr(error, "where", None) or "")
