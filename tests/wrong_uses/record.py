"""What wrong uses raise, as recorded in `expected.json`; and what jax said when it was asked, in `jax.json`."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from . import CASES
from .case import WrongUse
from .run import Outcome, run, run_jax

EXPECTED = Path(__file__).with_name("expected.json")
JAX_MESSAGES = Path(__file__).with_name("jax.json")
JAX_VERSION = "0.10.2"


@cache
def expected() -> dict[str, list[str]]:
    """The recorded lines of each error, by the title of the wrong use."""
    found: dict[str, list[str]] = json.loads(EXPECTED.read_text())
    return found


def lines(case: WrongUse, outcome: Outcome) -> list[str]:
    """The lines of an error, without what differs from one installation to another."""
    text = f"{outcome.kind}: {outcome.message}".replace(", corejax-softplus", "")
    if case.local:
        text = re.sub(r"(?m)^(  wanted: ).*$", r"\1(what this machine has)", text)
    return text.splitlines()


def write() -> None:
    """Record what is raised now."""
    EXPECTED.write_text(json.dumps({case.title: lines(case, run(case)) for case in CASES}, indent=1) + "\n")
    expected.cache_clear()


def messages() -> Any:
    """What jax said: for each wrong use its class and first line, or None if it said nothing."""
    return json.loads(JAX_MESSAGES.read_text())["messages"]


def jax_says(case: WrongUse) -> dict[str, str] | None:
    """What the installed jax says, in the form in which it is recorded."""
    found = run_jax(case)
    assert found is not None
    if found.kind == "nothing":
        return None
    return {"class": found.kind, "message": _stable(found.first_line)}


def write_jax_messages() -> None:
    """Ask the installed jax."""
    said = {case.title: jax_says(case) for case in CASES if case.jax is not None}
    JAX_MESSAGES.write_text(json.dumps({"jax": JAX_VERSION, "messages": said}, indent=1) + "\n")


def _stable(text: str) -> str:
    """A message without addresses."""
    return re.sub(r"0x[0-9a-f]{6,}", "0x...", text)[:300]
