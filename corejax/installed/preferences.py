"""What the user prefers where several packs provide something: `COREJAX_PREFER`, and `cj.plugins.prefer`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from corejax.base.errors import CorejaxValueError, suggestion
from corejax.base.source import here
from corejax.installed.groups import PRIMITIVES, RULES
from corejax.installed.targets import EVERY, Choice, Target

if TYPE_CHECKING:
    from corejax.installed.distributions import Entry, Pack

#: What was chosen in code, the latest last.
_pushed: tuple[Choice, ...] = ()


def push(choices: Sequence[Choice]) -> None:
    """Prefer these over all that was preferred before. What was loaded by earlier choices is the caller's to drop."""
    global _pushed
    _pushed += tuple(choices)


def take_back(choices: Sequence[Choice]) -> None:
    """Undo a `push`, whatever was pushed after it."""
    global _pushed
    left = list(_pushed)
    for choice in choices:
        if choice in left:
            del left[len(left) - 1 - left[::-1].index(choice)]
    _pushed = tuple(left)


class Preference(NamedTuple):
    """How much something is preferred, 0 for not at all, and how the user said so."""

    degree: int
    where: str


class Preferences(NamedTuple):
    """All that is preferred at one moment: what the environment names, and what was chosen in code, the latest last."""

    environment: Sequence[Choice]
    pushed: Sequence[Choice]

    def of(self, pack: str | None, name: str, hook: str | None = None, platform: str | None = None) -> Preference:
        """How much a pack is preferred for something.

        A choice that names more counts for more; among equals, what was chosen in code counts for more than the
        environment, later code for more than earlier code, and what the variable names first for more than the rest.
        """
        chosen = (*self.environment[::-1], *self.pushed)
        parts, place = max([(choice.parts, place) for place, choice in enumerate(chosen)
                            if choice.pack == pack and choice.covers(name, hook, platform)], default=(0, -1))
        return Preference(parts * (len(chosen) + 1) + place + 1,
                          "COREJAX_PREFER" if place < len(self.environment) else "cj.plugins.prefer")


def now(environment: Sequence[Choice]) -> Preferences:
    """What is preferred now."""
    return Preferences(environment, _pushed)


# From text

def read(where: str, text: str, packs: Mapping[str, Pack], broken: Iterable[str]) -> Choice:
    """The choice that a text says; an error if it names what isn't there."""
    choice = Choice.parse(text)
    if choice is None:
        raise CorejaxValueError(f"{where} can't be read", got=repr(text),
                                wanted="PACK, PACK/NAME, PACK/NAME:HOOK or PACK/NAME:HOOK@PLATFORM", where=here(),
                                todo="name a pack as `python -m corejax plugins` does")
    if choice.pack not in packs:
        raise not_installed(where, choice.pack, [*packs, *broken])
    _check_provided(where, choice, packs[choice.pack].entries)
    return choice


def _check_provided(where: str, choice: Choice, entries: Sequence[Entry]) -> None:
    targets = [target for entry in entries if entry.group == RULES and (target := Target.parse(entry.name))]
    names = {entry.name for entry in entries if entry.group != RULES} | {target.primitive for target in targets}
    if choice.name is None or any([entry.group == PRIMITIVES and entry.name == choice.name for entry in entries]):
        return
    if choice.name not in names and EVERY not in names:
        raise CorejaxValueError(f"{where}: {choice.pack} provides nothing for {choice.name!r}", got=str(choice),
                                wanted=f"something that {choice.pack} provides", where=here(),
                                todo=suggestion(choice.name, names) or "name what it provides, or the pack alone")
    of_it = [target for target in targets if target.primitive in (choice.name, EVERY)]
    if choice.hook is not None and not any([choice.covers(choice.name, each.hook, each.platform) for each in of_it]):
        raise CorejaxValueError(f"{where}: {choice.pack} has no such rule for {choice.name!r}", got=str(choice),
                                wanted=", ".join(sorted([each.slot for each in of_it])) or "it has no rules for it",
                                where=here(), todo="name a rule that it has, or the pack alone")


def not_installed(where: str, name: str, packs: Iterable[str]) -> CorejaxValueError:
    """The error for a pack's name that nothing installed has."""
    return CorejaxValueError(f"{where} names a pack that is not installed", got=repr(name),
                             wanted=f"one or more of: {', '.join(sorted(packs)) or 'no pack is installed'}",
                             todo=suggestion(name, packs) or f"correct {where}, or install the pack")
