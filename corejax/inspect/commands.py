"""The commands that packs bring to `python -m corejax`: entry points of the group `corejax.commands`.

Behind each is a function that is called with the arguments after the command's name, and yields the lines to print; the
first line of its docstring says what it is for.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from corejax.base.errors import CorejaxError, CorejaxKeyError, suggestion
from corejax.installed import registry
from corejax.installed.groups import COMMANDS

Command: TypeAlias = Callable[[Sequence[str]], Iterable[str]]

#: The commands of the kernel, whose names packs can't have.
OWN: Final = ("plugins", "check", "doctor", "primitives", "backends", "version", "explain")

#: What brings commands that some may look for here: extras of corejax.
_KNOWN: Final = {"new": "authoring", "stubs": "authoring", "entry-points": "authoring", "conformance": "testing"}


def names() -> list[str]:
    """The commands that packs bring."""
    return [name for name in registry.installed().names(COMMANDS) if name not in OWN]


def find(name: str) -> Command:
    """The function behind a command of a pack."""
    if name not in names():
        raise _unknown(name)
    found = registry.load(COMMANDS, name)
    if not callable(found):
        entry = registry.installed().choose(COMMANDS, name)
        assert entry is not None
        raise registry.entry_error(entry, "is not a function", type(found).__name__,
                                   "a function of the arguments, that yields the lines to print")
    return found  # type: ignore[no-any-return]


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
        text = inspect.getdoc(find(name)) or "it doesn't say what it is for"
    except CorejaxError as error:
        return f"can't be used: {error.message}"
    entry = registry.installed().choose(COMMANDS, name)
    return f"{text.splitlines()[0]} ({entry.pack.name if entry else ''})"
