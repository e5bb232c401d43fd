"""What the user prefers where packs provide the same: `prefer`."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from corejax.base.errors import CorejaxRuntimeError, CorejaxTypeError, kind_of
from corejax.base.source import here
from corejax.base.tracebacks import public
from corejax.installed import manifest, preferences
from corejax.installed.targets import Choice
from corejax.packs import freeze


class Preferring:
    """What `prefer` returns. As a context, it ends the preference."""

    def __init__(self, choices: Sequence[Choice]) -> None:
        self._choices = choices
        self._ended = False

    def __enter__(self) -> Preferring:
        if self._ended:
            raise CorejaxRuntimeError("this preference has ended", got=repr(self), wanted="one that holds",
                                      where=here(), todo="call prefer again")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if not self._ended:
            preferences.take_back(self._choices)
        self._ended = True
        freeze.choose_anew()

    def __repr__(self) -> str:
        return f"<prefer({', '.join([repr(str(choice)) for choice in self._choices])})>"


@public
def prefer(*choices: str) -> Preferring:
    """Let packs count where several provide the same, and let their rules change what others' primitives do.

    Each choice is a `"pack"` with all that it provides, a `"pack/name"` for a primitive, function or role of this name,
    or a `"pack/primitive:hook"`, and for a lowering `"pack/primitive:xla_translation@platform"`. To prefer the owner of
    a primitive is to keep its rules. A choice that names more counts for more, and a later one for more than an earlier
    one. `COREJAX_PREFER=pack,...` says the same for a whole process.

    It holds for the process from now on, or to the end of a `with` block. Programs that were compiled are dropped;
    functions that were imported from a module already are not replaced.

    >>> import corejax as cj
    >>> with cj.plugins.prefer("corejax-lax-basic"):
    ...     float(cj.lax.sin(0.0))
    0.0
    """
    for choice in choices:
        if not isinstance(choice, str):
            raise CorejaxTypeError("prefer takes names", got=kind_of(choice), wanted="texts, such as 'pack/primitive'",
                                   where=here(), todo="name packs as `python -m corejax plugins` does")
    found = manifest.read().choices("prefer()", choices)
    preferences.push(found)
    freeze.choose_anew()
    return Preferring(found)
