"""Reports, for people and as JSON, which can be read back."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from benchmarks.growth import Series
from benchmarks.measure import Effort, Timing
from benchmarks.rows import Row

LIBRARIES = ("corejax", "jax", "jaxlib", "numpy", "autograd", "torch")
_HEAD = """\
# Benchmarks

Written by `make bench`: corejax and its rivals in one process, in turns, each after a warm-up. A figure is the median,
with the quartiles in brackets, of at least {rounds} samples, or of fewer for what takes seconds. Everything timed is
made {turns} times, each time with another library first. *Times faster* is the rival's median divided by corejax's; a
*target* says how large it must be, where there is a budget. Compiled programs run on the same engine, so about 1 is the
best one can expect there. All figures are in [benchmarks.json](benchmarks.json) too.

{setting}

![How many times faster than its rivals corejax is](benchmarks.svg)

{summary}
"""
_GROWTH = """\
## How cost grows

What one more equation, argument or step costs. For nested transformations, and for tracing and lowering a loop, where
the number of steps doesn't matter, it is the whole cost. A figure that is missing would have taken too long.

![How cost grows](benchmarks-growth.svg)
"""


@dataclass
class Report:
    """The results: rows by the names that they are run by, in sections."""

    setting: str
    effort: Effort
    sections: dict[str, dict[str, list[Row]]] = field(default_factory=dict)
    growth: dict[str, list[Series]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)


def setting() -> str:
    """The machine and the versions of all libraries."""
    versions = []
    for library in LIBRARIES:
        try:
            versions.append(f"{library} {version(library)}")
        except PackageNotFoundError:
            versions.append(f"{library} not installed")
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{os.cpu_count()} cores, {python}, {', '.join(versions)}."


UNITS = {"s": ((1, "s"), (1e3, "ms"), (1e6, "µs")), "B": ((1e-6, "MB"), (1e-3, "kB"), (1, "B")), "n": ((1, ""),)}


def shown(timing: Timing, base: str = "s") -> str:
    """`12.3 µs [12.0 to 12.9]`, in a readable unit."""
    units = UNITS[base]
    scale, unit = next((s, u) for s, u in units if timing.median * s >= 1 or (s, u) == units[-1])
    median, low, high = (f"{seconds * scale:.3g}" if seconds * scale < 100 else f"{seconds * scale:,.0f}"
                         for seconds in (timing.median, timing.low, timing.high))
    return f"{median} {unit} [{low} to {high}]" if timing.count > 1 else f"{median} {unit}".strip()


def ratio(row: Row, rival: str) -> float:
    """How many times faster, or smaller, corejax is."""
    return row.timings[rival].median / row.timings["corejax"].median


def met(row: Row, rival: str) -> bool:
    return ratio(row, rival) >= row.targets[rival]


def rivals_of(row: Row) -> list[str]:
    """The rivals that corejax is compared with; none if corejax itself failed."""
    return [name for name in row.timings if name != "corejax"] if "corejax" in row.timings else []


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Lines of Markdown: one for each row and rival."""
    yield "| what | corejax | rival | takes | times faster, or smaller | target | met |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for row in rows:
        lead = f"{row.what} | {shown(row.timings['corejax'], row.unit)}"
        for rival in rivals_of(row):
            target = row.targets.get(rival)
            verdict = "" if target is None else "yes" if met(row, rival) else "**no**"
            wanted = "" if target is None else f"{target:.3g}"
            takes = shown(row.timings[rival], row.unit)
            yield f"| {lead} | {rival} | {takes} | {ratio(row, rival):.3g} | {wanted} | {verdict} |"
            lead = " | "
        if not rivals_of(row):
            yield f"| {lead} | | | | | |"


def growth_table(series: Sequence[Series]) -> Iterator[str]:
    """A line for each quantity and library; all of `series` have the same sizes."""
    sizes = sorted({size for each in series for line in each.lines.values() for size in line})
    yield f"| by {series[0].over} | | {' | '.join(f'{size:,}' for size in sizes)} |"
    yield "| --- | --- |" + " ---: |" * len(sizes)
    for each in series:
        what = each.what
        for library, line in each.lines.items():
            cells = [_cell(line.get(size), size if each.each else 1) for size in sizes]
            yield f"| {what} | {library} | {' | '.join(cells)} |"
            what = ""


def _cell(timing: Timing | None, size: int) -> str:
    return "" if timing is None else shown(Timing.exact(timing.median / size))


def summary(report: Report) -> str:
    """How many targets are met, and which aren't."""
    named = [(name, row) for named in report.sections.values() for name, rows in named.items() for row in rows]
    judged = [(name, row, rival) for name, row in named for rival in row.targets if rival in rivals_of(row)]
    missed = [f"- `{name}`, {row.what}, beside {rival}: {ratio(row, rival):.3g}, wanted {row.targets[rival]:.3g}"
              for name, row, rival in judged if not met(row, rival)]
    broken = [f"- `{name}` could not be measured: {why}" for name, why in report.failures.items()]
    head = f"{len(judged) - len(missed)} of {len(judged)} targets are met{'. These are not:' if missed else '.'}"
    return "\n".join([head, *[""] * bool(missed), *missed, *[""] * bool(broken), *broken])


#: Sections that have a page of their own, by title.
PAGES = {"What is saved for a gradient through twelve transformer blocks": "benchmarks-saved.md",
         "Programs that call Python": "benchmarks-effects.md"}


def page_of(report: Report, title: str) -> str:
    """The page of a section that has one."""
    rows = [row for rows in report.sections.get(title, {}).values() for row in rows]
    return "\n".join([f"# {title}", "", "Of [Benchmarks](benchmarks.md), where it is said how they are measured.", "",
                      *table(rows), ""])


def markdown(report: Report) -> str:
    """The page."""
    head = _HEAD.format(setting=report.setting, summary=summary(report), rounds=report.effort.rounds,
                        turns=report.effort.turns)
    lines = [head]
    for title, named in report.sections.items():
        rows = [row for rows in named.values() for row in rows]
        if title in PAGES:
            lines += [f"## {title}", "", f"[{len(rows)} rows]({PAGES[title]}) on a page of their own.", ""]
        else:
            lines += [f"## {title}", "", *table(rows), ""] if rows else []
    overs = list(dict.fromkeys(each.over for found in report.growth.values() for each in found))
    for i, over in enumerate(overs):
        chosen = [each for found in report.growth.values() for each in found if each.over == over]
        lines += [_GROWTH] * (i == 0) + [*growth_table(chosen), ""]
    return "\n".join(lines)


def as_json(report: Report) -> str:
    """Everything needed to make the page and the plots again, in seconds, bytes, or counts."""
    return json.dumps(asdict(report), indent=1) + "\n"


def from_json(text: str) -> Report:
    """Read what `as_json` wrote."""
    found = json.loads(text)
    sections = {title: {name: [_row(row) for row in rows] for name, rows in named.items()}
                for title, named in found["sections"].items()}
    growth = {name: [_series(each) for each in some] for name, some in found["growth"].items()}
    return Report(found["setting"], Effort(**found["effort"]), sections, growth, found["failures"])


def _row(found: dict[str, Any]) -> Row:
    timings = {name: Timing(**timing) for name, timing in found["timings"].items()}
    return Row(found["what"], timings, found["targets"], found["unit"])


def _series(found: dict[str, Any]) -> Series:
    lines: Mapping[str, Mapping[int, Timing]] = {
        library: {int(size): Timing(**timing) for size, timing in line.items()}
        for library, line in found["lines"].items()}
    return Series(found["what"], found["over"], lines, found["each"])
