"""The commands that packs bring to `python -m corejax`: entry points of the group `corejax.commands`.

Behind each is a function that is called with the arguments after the command's name, and yields the lines to print; the
first line of its docstring says what it is for.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from corejax.base.errors import CorejaxError, CorejaxKeyError, kind_of, suggestion
from corejax.installed import registry
from corejax.installed.groups import COMMANDS

if TYPE_CHECKING:
    from corejax.installed.distributions import Entry

Command: TypeAlias = Callable[[Sequence[str]], Iterable[str]]

#: The commands of the kernel, whose names packs can't have.
OWN: Final = ("plugins", "check", "doctor", "primitives", "backends", "version", "explain")

#: What brings commands that some may look for here: extras of corejax.
_KNOWN: Final = {"new": "authoring", "stubs": "authoring", "entry-points": "authoring", "conformance": "testing",
                "launch": "distributed"}


def names() -> list[str]:
    """The commands that packs bring."""
    return [name for name in registry.installed().names(COMMANDS) if name not in OWN]


def run(name: str, arguments: Sequence[str]) -> Iterator[str]:
    """The lines that a pack's command yields for these arguments."""
    entry, function = _found(name)
    try:
        lines = function(arguments)
        if isinstance(lines, str) or not isinstance(lines, Iterable):
            raise registry.entry_error(entry, "doesn't yield lines", kind_of(lines),
                                       "an iterable of the lines to print")
        yield from lines
    except CorejaxError:
        raise
    except Exception as error:
        error.add_note(f"raised by the command {name!r} of {entry.pack}")
        raise


def _found(name: str) -> tuple[Entry, Command]:
    """The entry of a pack's command, and the function behind it."""
    entry = registry.installed().choose(COMMANDS, name) if name in names() else None
    if entry is None:
        raise _unknown(name)
    found = registry.load(COMMANDS, name)
    if not callable(found):
        raise registry.entry_error(entry, "is not a function", kind_of(found),
                                   "a function of the arguments, that yields the lines to print")
    return entry, found


def _unknown(name: str) -> CorejaxKeyError:
    known = sorted([*OWN, *names()])
    extra = _KNOWN.get(name)
    hidden = registry.installed().hidden_provider((COMMANDS,), name)
    todo = registry.install_hint(name, (COMMANDS,)) if hidden is not None else (
        f"corejax-{extra} brings it: pip install 'corejax[{extra}]'" if extra else suggestion(name, known))
    return CorejaxKeyError(f"there is no command {name!r}", got=name, wanted=f"one of: {', '.join(known)}",
                           todo=todo or "python -m corejax --help says what each is for")


def summary(name: str) -> str:
    """What a command is for, in a line."""
    try:
        entry, function = _found(name)
    except CorejaxError as error:
        return f"can't be used: {error.message}"
    text = inspect.getdoc(function) or "it doesn't say what it is for"
    return f"{text.splitlines()[0]} ({entry.pack.name})"
