"""Compare this checkout with another revision, row by row.

    python -m benchmarks.against REV                 all rows of corejax itself
    python -m benchmarks.against REV calls eager     a selection
    python -m benchmarks.against REV --pairs 12      more pairs of processes (default: 9)

Each revision is installed into its own environment, with nothing else, and both run this checkout's benchmarks. A
process of one is followed by a process of the other, and the order alternates from pair to pair. For the ratios within
pairs, the median is shown, with an interval that contains the true median with at least 95% confidence, whatever the
distribution (with fewer than six pairs: from the least to the greatest). A row is slower, or faster, if the whole
interval is beyond 3%.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from pathlib import Path

from benchmarks.report import Report, from_json

ROOT = Path(__file__).resolve().parent.parent
WORKPLACE = ROOT / ".venv-against"
PROJECTS = (".", "plugins/lax_basic", "plugins/reductions", "plugins/control_flow", "plugins/special",
            "plugins/sorting", "examples/softplus_pack")
SECTIONS = ("start", "functions", "operators", "eager", "calls", "stages", "real", "loops")
MARGIN = 0.03
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Comparison:
    """A row: this revision's time divided by the other's, and the interval around it."""

    name: str
    what: str
    median: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        return "**slower**" if self.low > 1 + MARGIN else "faster" if self.high < 1 / (1 + MARGIN) else ""


def interval(samples: Sequence[float]) -> tuple[float, float]:
    """The narrowest pair of order statistics that contains the median with the desired confidence.

    >>> interval([5.0, 1.0, 3.0, 2.0, 4.0, 9.0, 8.0, 7.0, 6.0])
    (2.0, 8.0)
    """
    ordered, n = sorted(samples), len(samples)
    outside, cut = 0.0, 0
    while cut < n // 2:
        outside += 2 * comb(n, cut) / 2 ** n
        if outside > 1 - CONFIDENCE:
            break
        cut += 1
    cut = max(cut - 1, 0)
    return ordered[cut], ordered[n - 1 - cut]


def compared(here: Sequence[Report], there: Sequence[Report]) -> list[Comparison]:
    """The rows that both revisions have in every pair, slowest first."""
    found: dict[tuple[str, str], list[float]] = {}
    for new, old in zip(here, there, strict=True):
        before = _medians(old)
        for key, median in _medians(new).items():
            if before.get(key):
                found.setdefault(key, []).append(median / before[key])
    rows = [Comparison(name, what, statistics.median(ratios), *interval(ratios))
            for (name, what), ratios in found.items() if len(ratios) == len(here)]
    return sorted(rows, key=lambda row: -row.median)


def _medians(report: Report) -> dict[tuple[str, str], float]:
    return {(name, row.what): row.timings["corejax"].median for named in report.sections.values()
            for name, rows in named.items() for row in rows if "corejax" in row.timings}


def table(rows: Sequence[Comparison]) -> str:
    """Markdown."""
    lines = ["| row | what | this / other | 95% interval | |", "| --- | --- | ---: | --- | --- |"]
    lines += [f"| {row.name} | {row.what} | {row.median:.3f} | {row.low:.3f} to {row.high:.3f} | {row.verdict} |"
              for row in rows]
    slower = [row.name for row in rows if row.verdict == "**slower**"]
    lines += ["", f"{len(rows)} rows; slower by more than 3%: {', '.join(slower) or 'none'}."]
    return "\n".join(lines)


def prepare(revision: str) -> dict[str, Path]:
    """The interpreters of both environments, each with its revision installed."""
    shutil.rmtree(WORKPLACE, ignore_errors=True)
    there, bench = WORKPLACE / "tree", WORKPLACE / "run"
    bench.mkdir(parents=True)
    for folder in ("benchmarks", "examples"):
        (bench / folder).symlink_to(ROOT / folder)  # run from there, so that there is no corejax beside them
    archive = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(there, filter="data")
    return {"here": _installed(ROOT, "here"), "there": _installed(there, "there")}


def _installed(tree: Path, name: str) -> Path:
    subprocess.run([sys.executable, "-m", "venv", WORKPLACE / name], check=True)
    python = WORKPLACE / name / "bin" / "python"
    packages = [part for project in PROJECTS for part in ("-e", str(tree / project))]
    subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True)
    return python


def run(python: Path, names: Sequence[str], rounds: int) -> Report:
    """The report of one process."""
    into = WORKPLACE / "found"
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([python, "-m", "benchmarks", *names, "--rounds", str(rounds), "--into", into], check=True, env=env,
                   cwd=WORKPLACE / "run", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return from_json((into / "benchmarks.json").read_text())


def main() -> None:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision", metavar="REV")
    parser.add_argument("names", nargs="*", metavar="NAME", default=list(SECTIONS))
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--rounds", type=int, default=8, help="samples of each figure in each process")
    options = parser.parse_args()
    pythons = prepare(options.revision)
    found: dict[str, list[Report]] = {"here": [], "there": []}
    for pair in range(options.pairs):
        for name in ("here", "there") if pair % 2 else ("there", "here"):
            found[name].append(run(pythons[name], options.names or SECTIONS, options.rounds))
        print(f"{pair + 1}/{options.pairs} pairs", file=sys.stderr, flush=True)
    print(table(compared(found["here"], found["there"])))


if __name__ == "__main__":
    main()
