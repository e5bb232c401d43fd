"""Effects: what happens when a program runs, beside its results. Packs declare them, and primitives have them.

>>> LOG = Effect("doc_log", ordered=True, refused={"recomputed": "the log would be written twice"})
>>> LOG, LOG.ordered
(doc_log, True)

An equation with effects is never left out, run twice or moved into another's place, and those that have an *ordered*
effect happen in the order of the program: within it, between programs, and between these and what is evaluated at once.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from corejax.base.errors import CorejaxTypeError, kind_of, suggestion
from corejax.base.source import here
from corejax.base.tracebacks import public

#: What an effect may refuse to happen in, with what that is in words.
SITUATIONS: Mapping[str, str] = MappingProxyType({
    "branch": "in a branch, which may be taken or not",
    "loop": "in the step of a loop",
    "recomputed": "in a program that reverse mode computes again",
    "rule": "in a function with a rule of its own",
    "vmap": "for each element of a batch",
    "derivative": "with operands that have tangents",
    "transpose": "with cotangents, in a transposed program",
    "devices": "in a program for several devices",
})

_NAME = re.compile(r"[A-Za-z_][\w.-]*")


@public
class Effect:
    """Something that happens when a program runs, beside its results. Equal ones have one name, in one module.

    - `name`: what it is called where programs are printed; the name of its entry point in `corejax.effects`.
    - `ordered`: whether it happens in the order of the program. If not, it may move, but is never lost or doubled.
    - `refused`: the situations in which it can't happen, each with "the reason; what to do instead": "branch", "loop",
      "recomputed" and "rule" say which programs can't hold it; "vmap", "derivative", "transpose" and "devices" what
      can't be made of it. Elsewhere the rules of the primitives that have it say what becomes of it.
    """

    __slots__ = ("module", "name", "ordered", "refused")
    name: str
    ordered: bool
    refused: Mapping[str, str]
    module: str
    """The module that declares it."""

    def __init__(self, name: str, *, ordered: bool = False, refused: Mapping[str, str] | None = None) -> None:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise _wrong("its name must be a word", repr(name), "a str such as 'print' or 'mypack.log'")
        if type(ordered) is not bool:
            raise _wrong(f"whether {name} is ordered must be a bool", kind_of(ordered), "True or False")
        if refused is not None and not isinstance(refused, Mapping):
            raise _wrong(f"what {name} refuses must be a mapping", kind_of(refused), "situations, each with a reason")
        for situation, reason in (refused or {}).items():
            if situation not in SITUATIONS:
                raise _wrong(f"{name} refuses {situation!r}, which is no situation", repr(situation),
                             ", ".join(SITUATIONS), suggestion(str(situation), SITUATIONS))
            if not isinstance(reason, str) or not reason:
                raise _wrong(f"{name} must say why it refuses {situation!r}", repr(reason), "a reason, as a str")
        self.name, self.ordered = name, ordered
        self.refused = MappingProxyType(dict(refused or {}))
        self.module = str(sys._getframe(1).f_globals.get("__name__", "?"))

    def __eq__(self, other: object) -> bool:
        return type(other) is Effect and (other.name, other.module) == (self.name, self.module)

    def __hash__(self) -> int:
        return hash((self.name, self.module))

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (self.name, self.ordered, dict(self.refused), self.module)


def _restored(name: str, ordered: bool, refused: Mapping[str, str], module: str) -> Effect:
    """An effect that was pickled."""
    effect = object.__new__(Effect)
    effect.name, effect.ordered, effect.refused, effect.module = name, ordered, MappingProxyType({**refused}), module
    return effect


def ordered(effects: Iterable[Effect]) -> list[Effect]:
    """Those that keep their order, always in the same one."""
    return sorted([effect for effect in effects if effect.ordered], key=lambda effect: (effect.name, effect.module))


def _wrong(problem: str, got: str, wanted: str, todo: str | None = None) -> CorejaxTypeError:
    return CorejaxTypeError(problem, got=got, wanted=wanted, where=here(),
                            todo=todo or "write Effect('mypack.log', ordered=True, refused={'branch': 'because ...'})")
