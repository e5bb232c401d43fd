"""What comes of faulty rules, as recorded in `expected.json`."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from . import FAULTS
from .case import Fault
from .run import run

EXPECTED = Path(__file__).with_name("expected.json")


@cache
def expected() -> dict[str, str]:
    """The recorded answer to each fault, by its title."""
    found: dict[str, str] = json.loads(EXPECTED.read_text())
    return found


def write() -> None:
    """Record the answers that are given now."""
    EXPECTED.write_text(json.dumps({fault.title: answer(fault) for fault in FAULTS}, indent=1) + "\n")
    expected.cache_clear()


def answer(fault: Fault) -> str:
    """The first line of the error, or the exception with its note; and where only the kit sees the fault."""
    found = run(next((cell for cell in fault.cells if cell.expected != "unseen"), fault.cells[0]))
    if fault.caught == "harmless":
        return "no effect"
    text = f"{fault.raises}, with the note: {found.notes[0]}" if fault.caught == "note" else found.first_line
    if not fault.unseen:
        return text
    unseen = f"in {', '.join(fault.unseen)}: the kit's check '{fault.check}'"
    return unseen if set(fault.unseen) == set(fault.contexts) else f"{text}; {unseen}"
