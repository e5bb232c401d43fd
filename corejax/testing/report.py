"""What the conformance kit found: outcomes, and the error that tells of failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from corejax.errors import CorejaxError


class Mismatch(Exception):
    """Raised by a check: the primitive doesn't keep the law. Becomes a `Failure`."""

    def __init__(self, hook: str, problem: str, *, got: Any = None, wanted: Any = None, todo: str = "") -> None:
        super().__init__(problem)
        self.hook, self.problem, self.got, self.wanted, self.todo = hook, problem, got, wanted, todo


class NotApplicable(Exception):
    """Raised by a check that has nothing to say about an input, with the reason."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A law that a primitive breaks on an input."""

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

    def __str__(self) -> str:
        parts = (("input", self.sample), ("got", self.got), ("wanted", self.wanted), ("to do", self.todo))
        lines = "".join(f"\n  {label + ':':<7} {text}" for label, text in parts if text not in (None, ""))
        return f"{self.primitive}.{self.hook} ({self.origin}), check {self.check!r}: {self.problem}{lines}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One check of one primitive over all its samples."""

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
        """No sample failed."""
        return not self.failures

    @property
    def status(self) -> str:
        """`failed`, `held`, `exempt` or `not applicable`."""
        if self.failures:
            return "failed"
        return "held" if self.held else "exempt" if self.exempt else "not applicable"


class ConformanceError(CorejaxError, AssertionError):
    """A primitive breaks laws; `failures` has them all."""

    def __init__(self, failures: Sequence[Failure]) -> None:
        self.failures = tuple(failures)
        shown = "\n\n".join(map(str, self.failures[:20]))
        more = f"\n\nand {len(self.failures) - 20} more" if len(self.failures) > 20 else ""
        first = self.failures[0]
        super().__init__(f"{len(self.failures)} failed check{'s' * (len(self.failures) > 1)}\n\n{shown}{more}",
                         primitive=first.primitive, hook=first.hook, pack=first.origin)


@dataclass(frozen=True, slots=True)
class Report:
    """All outcomes of a run; its text is a table."""

    outcomes: tuple[Outcome, ...]

    @property
    def failures(self) -> list[Failure]:
        """Every failure, in the order in which they were found."""
        return [failure for outcome in self.outcomes for failure in outcome.failures]

    @property
    def seconds(self) -> float:
        """How long all checks took."""
        return sum([outcome.seconds for outcome in self.outcomes])

    def __str__(self) -> str:
        width = max([len(outcome.check) for outcome in self.outcomes], default=0)
        lines = [f"{o.primitive}: {o.check:<{width}}  {o.status:<14} {o.held:>4} samples  {o.seconds * 1e3:8.1f} ms"
                 for o in self.outcomes]
        exempt = [f"{o.primitive}: {o.check}: exempt: {reason}" for o in self.outcomes for reason in o.exempt]
        return "\n".join([*lines, *exempt])

    def __repr__(self) -> str:
        primitives = {outcome.primitive for outcome in self.outcomes}
        held = sum([outcome.status == "held" for outcome in self.outcomes])
        return (f"Report({len(primitives)} primitive{'s' * (len(primitives) != 1)}: {held} checks held, "
                f"{len(self.failures)} failed, {self.seconds:.2f} s)")
