"""The exact answers to all cases of a kind, in a file beside its cases."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar


class Case(Protocol):
    """What is recorded."""

    @property
    def title(self) -> str: ...


C = TypeVar("C", bound=Case)


class Record(Generic[C]):
    """The answers to the cases of a kind: `recorded` before, and as they are `now`."""

    def __init__(self, folder: str, cases: Sequence[C], now: Callable[[C], Any]) -> None:
        self.path, self.cases, self.now = Path(folder) / "expected.json", cases, now
        self._recorded: dict[str, Any] | None = None

    def recorded(self) -> dict[str, Any]:
        """The answer to each case, by its title."""
        if self._recorded is None:
            self._recorded = json.loads(self.path.read_text())
        return self._recorded

    def write(self) -> None:
        """Record what is answered now."""
        self._recorded = {case.title: self.now(case) for case in self.cases}
        self.path.write_text(json.dumps(self._recorded, indent=1) + "\n")

    def is_as_recorded(self, case: C) -> bool:
        """Whether a case is answered as it was."""
        return bool(self.recorded().get(case.title) == self.now(case))
