"""What comes of plugin faults, as recorded in `expected.json`."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from . import FAULTS
from .fault import Fault
from .run import outcomes

EXPECTED = Path(__file__).with_name("expected.json")


@cache
def expected() -> dict[str, list[str]]:
    """The recorded lines that each fault brings forth, by its title."""
    found: dict[str, list[str]] = json.loads(EXPECTED.read_text())
    return found


def write() -> None:
    """Record what comes of the faults now."""
    said = {fault.title: lines(fault, outcomes()[fault.title]) for fault in FAULTS}
    EXPECTED.write_text(json.dumps(said, indent=1) + "\n")
    expected.cache_clear()


def lines(fault: Fault, outcome: dict[str, Any]) -> list[str]:
    """What is printed, then the error or the value, then the warnings."""
    first = outcome["first"]
    error = f"{first['error']}: {message_of(fault, outcome)}".rstrip(": ") if first["error"] else first["message"]
    warned = [f"CorejaxWarning: {text}" for text in warnings_of(fault, outcome)]
    return "\n".join([*first["printed"].splitlines(), error, *warned]).splitlines()


def message_of(fault: Fault, outcome: dict[str, Any]) -> str:
    """What a fault says, without what differs from one installation to another."""
    text = outcome["first"]["message"]
    text = re.sub(r"(?<=packs in use: ).*?(?=; broken|$)", "...", text, flags=re.MULTILINE)
    own = "|".join(re.escape(pack.name) for pack in fault.packs)
    return re.sub(rf"; broken: (?!(?:{own}) \()[^;]*?\)(?=;|$)", "", text, flags=re.MULTILINE)


def warnings_of(fault: Fault, outcome: dict[str, Any]) -> list[str]:
    """The warnings about its packs."""
    texts = [*outcome["early"]["warned"], *outcome["first"]["warned"], *outcome["second"]["warned"]]
    return [text for text in texts if any(re.search(rf"(^|\s){re.escape(pack.name)}\s", text) for pack in fault.packs)]
