"""What came out when all mutants ran: frozen in `results.json`, which tests compare with what comes out now."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path

from .running import Outcome

FILE = Path(__file__).with_name("results.json")


@cache
def frozen() -> dict[str, Outcome]:
    """The outcome of each mutant by its name."""
    return {name: Outcome(name, **fields) for name, fields in json.loads(FILE.read_text(encoding="utf-8")).items()}


def known_law(name: str) -> str:
    """The law that a mutant is known to break; empty where there is none."""
    return frozen()[name].check if name in frozen() else ""


def freeze(outcomes: Sequence[Outcome]) -> None:
    """Write the outcomes, one a line."""
    def line(outcome: Outcome) -> str:
        fields = asdict(outcome)
        return f"{json.dumps(fields.pop('name'))}: {json.dumps(fields)}"

    FILE.write_text("{\n" + ",\n".join(map(line, outcomes)) + "\n}\n", encoding="utf-8")
    frozen.cache_clear()
