"""The table for people, and the same as JSON."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version

from benchmarks.measure import Timing
from benchmarks.rows import Row

LIBRARIES = ("corejax", "jax", "jaxlib", "numpy", "autograd", "torch")
_HEAD = """\
# Benchmarks

Written by `make bench`: corejax and its rivals in one process, in turns, each after a warm-up. A figure is the median
of {rounds} samples, with the quartiles in brackets. A target says how many times faster corejax has to be.
{setting}
"""


def setting() -> str:
    """What was measured on what."""
    versions = []
    for library in LIBRARIES:
        try:
            versions.append(f"{library} {version(library)}")
        except PackageNotFoundError:
            versions.append(f"{library} not installed")
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{os.cpu_count()} cores, {python}, {', '.join(versions)}."


NAMES = {"s": "seconds", "B": "bytes"}
UNITS = {"s": ((1, "s"), (1e3, "ms"), (1e6, "µs")), "B": ((1e-6, "MB"), (1e-3, "kB"), (1, "B"))}


def shown(timing: Timing, base: str = "s") -> str:
    """`12.3 µs [12.0 to 12.9]`, in a readable unit."""
    units = UNITS[base]
    scale, unit = next((s, u) for s, u in units if timing.median * s >= 1 or (s, u) == units[-1])
    median, low, high = (f"{seconds * scale:.3g}" if seconds * scale < 100 else f"{seconds * scale:,.0f}"
                         for seconds in (timing.median, timing.low, timing.high))
    return f"{median} {unit} [{low} to {high}]"


def ratio(row: Row, rival: str) -> float:
    """How many times faster, or smaller, corejax is."""
    return row.timings[rival].median / row.timings["corejax"].median


def met(row: Row, rival: str) -> bool:
    return ratio(row, rival) >= row.targets[rival]


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Lines of Markdown: one for each rival of each row."""
    yield "| what | corejax | rival | takes | times faster, or smaller | target | met |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for row in rows:
        first = True
        for rival in row.timings:
            if rival == "corejax":
                continue
            target = row.targets.get(rival)
            verdict = "" if target is None else "yes" if met(row, rival) else "**no**"
            lead = f"{row.what} | {shown(row.timings['corejax'], row.unit)}" if first else " | "
            wanted = "" if target is None else f"{target:.3g}"
            takes = shown(row.timings[rival], row.unit)
            yield f"| {lead} | {rival} | {takes} | {ratio(row, rival):.3g} | {wanted} | {verdict} |"
            first = False


def markdown(sections: Mapping[str, Sequence[Row]], rounds: int) -> str:
    """The page."""
    lines = [_HEAD.format(rounds=rounds, setting=setting())]
    for title, rows in sections.items():
        lines += [f"## {title}", "", *table(rows), ""]
    return "\n".join(lines)


def as_json(sections: Mapping[str, Sequence[Row]], rounds: int) -> str:
    """The same figures in seconds."""
    content = {
        title: [{"what": row.what, "targets": dict(row.targets),
                 NAMES[row.unit]: {name: [t.median, t.low, t.high] for name, t in row.timings.items()}} for row in rows]
        for title, rows in sections.items()}
    return json.dumps({"setting": setting(), "rounds": rounds, "sections": content}, indent=1) + "\n"
