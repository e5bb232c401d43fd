"""Compare this checkout with another revision, row by row, or with a rival.

    python -m benchmarks.against REV                 all rows of corejax itself
    python -m benchmarks.against REV calls eager     a selection
    python -m benchmarks.against REV --pairs 12      more pairs of processes (default: 9)
    python -m benchmarks.against REV --quick         twenty rows in less than three minutes, for before a change lands
    python -m benchmarks.against jax devices         beside a rival, in the same processes

Each revision is installed into its own environment, with nothing else, and both run this checkout's benchmarks. A
process of one is followed by a process of the other, and the order alternates from pair to pair. For the ratios within
pairs, the median is shown, with an interval that contains the true median with at least 95% confidence, whatever the
distribution (with fewer than six pairs: from the least to the greatest). A row is slower, or faster, if the whole
interval is beyond 3%; in the quick mode beyond 5%, and then the exit code is 1 if a row is slower.

What was installed for a revision is kept, so that the next comparison with it begins at once.
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

from benchmarks.measure import Timing
from benchmarks.report import LIBRARIES, Report, from_json, shown

ROOT = Path(__file__).resolve().parent.parent
WORKPLACE = ROOT / ".venv-against"
PROJECTS = (".", "plugins/lax_basic", "plugins/reductions", "plugins/control_flow", "plugins/special",
            "plugins/sorting", "plugins/collectives", "plugins/windows", "plugins/linear_algebra", "plugins/fft",
            "plugins/numpy", "plugins/random", "plugins/nn", "plugins/callbacks", "plugins/checkify",
            "plugins/references", "plugins/processes", "plugins/taylor",
            "examples/softplus_pack")
SECTIONS = ("start", "functions", "operators", "eager", "calls", "training", "device", "stages", "real", "loops")
MARGIN, QUICK_MARGIN = 0.03, 0.05
#: One row for each way in which a change has made something slower before.
QUICK = ("start.add", "functions.make_jaxpr", "functions.grad", "functions.lowering", "functions.grad_1000",
         "eager.vmap", "eager.index", "eager.jvp", "calls.device", "calls.numpy", "calls.scalars", "calls.pytree",
         "calls.static", "calls.shapes", "training.state_20_batch_1kB", "training.donated_20_device",
         "device.add", "device.mean", "device.asarray_new", "stages.retrace")
QUICK_PAIRS, QUICK_ROUNDS = 7, 4
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Comparison:
    """A row: the medians here and there, the ratio of this revision's time to the other's, and the interval around it.
    """

    name: str
    what: str
    here: float
    there: float
    median: float
    low: float
    high: float
    margin: float = MARGIN

    @property
    def verdict(self) -> str:
        return "**slower**" if self.low > 1 + self.margin else "faster" if self.high < 1 / (1 + self.margin) else ""


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


def compared(here: Sequence[Report], there: Sequence[Report], library: str = "corejax", margin: float = MARGIN
             ) -> list[Comparison]:
    """The rows that there are in every pair, slowest first: corejax's here, and those of `library` there."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for new, old in zip(here, there, strict=True):
        before = _medians(old, library)
        for key, median in _medians(new, "corejax").items():
            if before.get(key):
                found.setdefault(key, []).append((median, before[key]))
    rows = []
    for (name, what), pairs in found.items():
        if len(pairs) == len(here):
            ratios = [new / old for new, old in pairs]
            rows.append(Comparison(name, what, *map(statistics.median, zip(*pairs, strict=True)),
                                   statistics.median(ratios), *interval(ratios), margin))
    return sorted(rows, key=lambda row: -row.median)


def _medians(report: Report, library: str) -> dict[tuple[str, str], float]:
    return {(name, row.what): row.timings[library].median for named in report.sections.values()
            for name, rows in named.items() for row in rows if library in row.timings}


def table(rows: Sequence[Comparison]) -> str:
    """Markdown."""
    lines = ["| row | what | this | other | this / other | 95% interval | |",
             "| --- | --- | ---: | ---: | ---: | --- | --- |"]
    lines += [f"| {row.name} | {row.what} | {shown(Timing.exact(row.here))} | {shown(Timing.exact(row.there))} "
              f"| {row.median:.3f} | {row.low:.3f} to {row.high:.3f} | {row.verdict} |" for row in rows]
    slower = [row.name for row in rows if row.verdict == "**slower**"]
    lines += ["", f"{len(rows)} rows; slower by more than {rows[0].margin if rows else MARGIN:.0%}: "
              f"{', '.join(slower) or 'none'}."]
    return "\n".join(lines)


def prepare(revision: str) -> dict[str, Path]:
    """The interpreters of both environments, each with its revision installed."""
    wanted = subprocess.run(["git", "rev-parse", revision], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    installed = WORKPLACE / "installed"  # the other revision, and what this one needs
    wanted += "".join([(ROOT / project / "pyproject.toml").read_text() for project in PROJECTS])
    if installed.exists() and installed.read_text() == wanted:
        return {name: WORKPLACE / name / "bin" / "python" for name in ("here", "there")}
    shutil.rmtree(WORKPLACE, ignore_errors=True)
    there, bench = WORKPLACE / "tree", WORKPLACE / "run"
    bench.mkdir(parents=True)
    for folder in ("benchmarks", "examples"):
        (bench / folder).symlink_to(ROOT / folder)  # run from there, so that there is no corejax beside them
    archive = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(there, filter="data")
    pythons = {"here": _installed(ROOT, "here"), "there": _installed(there, "there")}
    installed.write_text(wanted)
    return pythons


def _installed(tree: Path, name: str) -> Path:
    subprocess.run([sys.executable, "-m", "venv", WORKPLACE / name], check=True)
    python = WORKPLACE / name / "bin" / "python"
    there = [tree / project for project in PROJECTS if (tree / project).exists()]  # older revisions have fewer packs
    packages = [part for project in there for part in ("-e", str(project))]
    subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True)
    return python


def run(python: Path, names: Sequence[str], rounds: int, folder: Path = WORKPLACE / "run") -> Report:
    """The report of one process, which is started in this folder."""
    into = WORKPLACE / "found"
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([python, "-m", "benchmarks", *names, "--rounds", str(rounds), "--into", into], check=True, env=env,
                   cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return from_json((into / "benchmarks.json").read_text())


def main() -> None:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision", metavar="REV")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--pairs", type=int)
    parser.add_argument("--rounds", type=int, help="samples of each figure in each process")
    parser.add_argument("--quick", action="store_true", help="twenty rows, and an exit code")
    options = parser.parse_args()
    quick = options.quick
    names = options.names or (QUICK if quick else SECTIONS)
    options.pairs = options.pairs or (QUICK_PAIRS if quick else 9)
    options.rounds = options.rounds or (QUICK_ROUNDS if quick else 8)
    if options.revision in LIBRARIES:
        reports = []
        for turn in range(options.pairs):
            reports.append(run(Path(sys.executable), names, options.rounds, ROOT))
            print(f"{turn + 1}/{options.pairs} processes", file=sys.stderr, flush=True)
        print(table(compared(reports, reports, options.revision)))
        return
    pythons = prepare(options.revision)
    found: dict[str, list[Report]] = {"here": [], "there": []}
    for pair in range(options.pairs):
        for name in ("here", "there") if pair % 2 else ("there", "here"):
            found[name].append(run(pythons[name], names, options.rounds))
        print(f"{pair + 1}/{options.pairs} pairs", file=sys.stderr, flush=True)
    rows = compared(found["here"], found["there"], margin=QUICK_MARGIN if quick else MARGIN)
    print(table(rows))
    sys.exit(quick and any([row.verdict == "**slower**" for row in rows]))


if __name__ == "__main__":
    main()
