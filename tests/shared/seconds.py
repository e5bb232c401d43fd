"""Seconds of the processor that tests take: measured in tests, shown at the end of a run."""

from __future__ import annotations

import os
from typing import Any

#: The property of a test that says how long the conformance kit took for a primitive, and how long it may take.
OF_THE_KIT = "corejax seconds"


def spent() -> float:
    """By this process and by those it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def show(terminalreporter: Any) -> None:
    """Which primitives took the conformance kit longest."""
    told = [text for report in terminalreporter.stats.get("passed", ()) if report.when == "call"
            for name, text in report.user_properties if name == OF_THE_KIT]
    if told:
        seconds = {text: float(text.split()[1]) for text in told}
        terminalreporter.section("the conformance kit in its quick mode")
        terminalreporter.line(f"{sum(seconds.values()):.0f} s for {len(told)} primitives; the longest:")
        for text in sorted(told, key=seconds.__getitem__, reverse=True)[:10]:
            terminalreporter.line(text)
