"""What the conformance kit found: outcomes, and the error that reports failures."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from traceback import extract_tb
from typing import Any

import corejax
from corejax.errors import CorejaxError

#: How many failed checks an error describes in full.
_SHOWN = 20

#: The folders of the kernel and of the kit.
_OURS = tuple([str(Path(str(file)).parent) + os.sep for file in (corejax.__file__, __file__)])


def clipped(value: object, length: int = 80) -> str:
    """A value's text on one line, with at most this many characters."""
    text = " ".join(str(value).split())
    return text if len(text) <= length else text[:length - 3] + "..."


class Mismatch(Exception):
    """Raised by a check: the primitive doesn't keep the law. Becomes a `Failure`."""

    def __init__(self, hook: str, problem: str, *, got: Any = None, wanted: Any = None, todo: str = "") -> None:
        super().__init__(problem)
        self.hook, self.problem, self.got, self.wanted, self.todo = hook, problem, got, wanted, todo


class NotApplicable(Exception):
    """Raised by a check that doesn't apply to an input, with the reason."""


def no_derivative(error: CorejaxError) -> NotApplicable:
    """What to raise where a derivative is refused that a check is about."""
    return NotApplicable(f"it has no derivative: {error.args[0]}".partition("\n")[0])


@dataclass(frozen=True, slots=True)
class Failure:
    """A law that a primitive breaks on an input. `program` is the text of a program that shows it, if searched for."""

    primitive: str
    origin: str
    check: str
    hook: str
    sample: str
    problem: str
    got: Any = None
    wanted: Any = None
    todo: str = ""
    cause: BaseException | None = None
    where: str = ""
    program: str = ""

    def __str__(self) -> str:
        parts = (("input", self.sample), ("got", self.got), ("wanted", self.wanted), ("in", _frames(self.cause)),
                 ("where", self.where), ("to do", self.todo), ("repeat", self._indented()))
        lines = "".join(f"\n  {label + ':':<7} {text}".replace(": \n", ":\n") for label, text in parts
                        if text is not None and not (isinstance(text, str) and text == ""))
        blamed = f"{self.primitive}.{self.hook}" if self.hook else self.primitive
        return f"{blamed} ({self.origin}), check {self.check!r}: {self.problem}{lines}"

    def _indented(self) -> str:
        """The program that repeats it, on lines of its own."""
        return "".join([f"\n      {line}".rstrip(" ") for line in self.program.splitlines()])


def _frames(cause: BaseException | None) -> str:
    """Where in a pack an exception came from: the innermost frames that aren't the kernel's or the kit's."""
    found = [frame for frame in extract_tb(cause.__traceback__ if cause else None)
             if not frame.filename.startswith(_OURS)]
    lines = [f"{frame.filename}:{frame.lineno} ({frame.name}): {frame.line}" for frame in found[-3:]]
    return "\n          ".join(lines)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one check of a primitive, over all its samples."""

    primitive: str
    check: str
    hook: str
    failures: tuple[Failure, ...]
    held: int
    exempt: tuple[str, ...]
    not_applicable: tuple[str, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether no sample failed."""
        return not self.failures

    @property
    def status(self) -> str:
        """`failed`, `held`, `exempt` or `not applicable`."""
        if self.failures:
            return "failed"
        return "held" if self.held else "exempt" if self.exempt else "not applicable"


class ConformanceError(CorejaxError, AssertionError):
    """A primitive breaks laws: `failures` has all cases, the message one input for each problem."""

    def __init__(self, failures: Sequence[Failure]) -> None:
        self.failures = tuple(failures)
        groups: dict[tuple[str, ...], list[Failure]] = {}
        for failure in self.failures:
            groups.setdefault((failure.primitive, failure.check, failure.problem), []).append(failure)
        shown = "\n\n".join([_text_of(group) for group in list(groups.values())[:_SHOWN]])
        more = f"\n\nand {len(groups) - _SHOWN} more" if len(groups) > _SHOWN else ""
        first, checks = self.failures[0], len({key[:2] for key in groups})
        super().__init__(f"{checks} failed check{'s' * (checks > 1)}\n\n{shown}{more}",
                         primitive=first.primitive, hook=first.hook, pack=first.origin, where=first.where or None)

    def __str__(self) -> str:
        return self.message  # where each rule is stands beside its failure


ConformanceError.__module__ = "corejax.testing"  # where users find it: used in tracebacks and pickles


def _text_of(group: Sequence[Failure]) -> str:
    """The first failure of a check, and which other inputs have the same problem."""
    others = [failure.sample.partition(":")[0] for failure in group[1:]]
    return "\n".join([str(group[0]), *[f"  also:   {', '.join(others)}"] * bool(others)])


@dataclass(frozen=True, slots=True)
class Report:
    """All outcomes of a run; its text is a table.

    `hooks` says who provides each hook of a primitive, for those that have rules of several packs; `notes` says what
    couldn't be checked.
    """

    outcomes: tuple[Outcome, ...]
    hooks: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def failures(self) -> list[Failure]:
        """All failures, in the order in which they were found."""
        return [failure for outcome in self.outcomes for failure in outcome.failures]

    @property
    def seconds(self) -> float:
        """How long all checks took."""
        return sum([outcome.seconds for outcome in self.outcomes])

    @property
    def primitives(self) -> dict[str, list[Outcome]]:
        """The outcomes of each primitive."""
        found: dict[str, list[Outcome]] = {}
        for outcome in self.outcomes:
            found.setdefault(outcome.primitive, []).append(outcome)
        return found

    def __str__(self) -> str:
        return "\n".join([*self._lines(), repr(self)])

    def _lines(self) -> Iterator[str]:
        width = max([len(outcome.check) for outcome in self.outcomes], default=0)
        for name, found in self.primitives.items():
            yield f"{name}: {sum([outcome.seconds for outcome in found]):.2f} s"
            yield from [f"  {text}" for text in by_provider(self.hooks.get(name, {}))]
            for o in found:
                yield f"  {o.check:<{width}}  {o.status:<14} {o.held:>4} samples {o.seconds * 1e3:9.1f} ms"
                yield from [f"    exempt: {reason}" for reason in o.exempt]
        yield from self.notes

    def __repr__(self) -> str:
        primitives = self.primitives
        held = sum([outcome.status == "held" for outcome in self.outcomes])
        return (f"Report({len(primitives)} primitive{'s' * (len(primitives) != 1)}: {held} checks held, "
                f"{len(self.failures)} failed, {self.seconds:.2f} s" + "; ".join(["", *self.notes]) + ")")


def by_provider(hooks: Mapping[str, str]) -> list[str]:
    """For each provider a line with its hooks."""
    return [f"by {provider}: {', '.join([hook for hook, who in hooks.items() if who == provider])}"
            for provider in dict.fromkeys(hooks.values())]
