"""Measure, print tables, and keep them in docs/ with plots.

    python -m benchmarks                     everything, into docs/
    python -m benchmarks calls real.greeks   a selection, only printed
    python -m benchmarks calls --keep        and update these figures in docs/
    python -m benchmarks --quick             few samples, only printed
    python -m benchmarks --list              list what can be run
    python -m benchmarks --draw              the page and the plots again, from docs/benchmarks.json
    python -m benchmarks public              every public function beside JAX's, into docs/: see benchmarks.public

Whatever can't be measured is reported and skipped: a benchmark never fails the run.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import (
    calls,
    device_arrays,
    devices,
    effect_rows,
    growth,
    loops,
    memory,
    network_rows,
    numpy_rows,
    plot,
    policy_rows,
    public,
    random_rows,
    real,
    report,
    rivals,
    rows,
    starting,
    training,
)
from benchmarks.measure import Effort
from benchmarks.rivals import Rival

DOCS = Path(__file__).resolve().parent.parent / "docs"
QUICK = Effort(rounds=4, turns=2, seconds=1.0)

#: What is measured: the first part of each name, its title on the page, and its rows.
SECTIONS: dict[str, tuple[str, Mapping[str, rows.Measure]]] = {
    "start": ("Import, and the first call", starting.STARTING | rows.START),
    "functions": ("Programs written with lax functions", rows.styled(rows.by_functions)),
    "operators": ("Programs written with operators", rows.styled(rows.by_operators)),
    "eager": ("Eager transformations", rows.EAGER),
    "calls": ("Calls of compiled functions", calls.CALLS),
    "training": ("Training loops", training.TRAINING),
    "device": ("Device arrays, eagerly", device_arrays.DEVICE_ARRAYS),
    "stages": ("Before the first call", calls.STAGES),
    "devices": ("Arrays over eight devices", devices.ON_DEVICES),
    "real": ("Real programs, compiled", real.REAL),
    "loops": ("Loops, compiled", loops.LOOPS),
    "nn": ("Networks", network_rows.NETWORKS),
    "saved": ("What is saved for a gradient through twelve transformer blocks", policy_rows.SAVED),
    "effects": ("Programs that call Python", effect_rows.EFFECTS),
    "random": ("Random numbers", random_rows.RANDOM),
    "numpy": ("Programs written with jax.numpy", numpy_rows.NUMPY),
    "memory": ("Memory", memory.MEMORY)}


def names() -> list[str]:
    """The names of everything that can be run."""
    listed = [(section, measures) for section, (_, measures) in SECTIONS.items()]
    return [f"{section}.{name}" for section, measures in [*listed, ("growth", growth.GROWTH)] for name in measures]


def chosen(wanted: Sequence[str]) -> list[str]:
    """These names, with sections expanded; all names if none are given."""
    there = names()
    unknown = [each for each in wanted if each not in there and each not in SECTIONS and each != "growth"]
    if unknown:
        sys.exit(f"nothing is called {', '.join(unknown)}; `--list` says what there is")
    return [name for name in there if not wanted or name in wanted or name.split(".")[0] in wanted]


def measure(wanted: Sequence[str], effort: Effort) -> report.Report:
    """Run the given measurements, and print progress."""
    found = rivals.installed()
    result = report.Report(report.setting(), effort)
    begin = perf_counter()
    try:
        for i, name in enumerate(wanted):
            section, _, last = name.partition(".")
            start = perf_counter()
            gc.collect()
            gc.freeze()  # so that permanent objects aren't traversed before each sample
            if section == "growth":
                result.growth[name] = _tried(growth.GROWTH[last], found, result, name)
            else:
                title, measures = SECTIONS[section]
                result.sections.setdefault(title, {})[name] = _tried(measures[last], found, result, name)
            now = perf_counter()
            print(f"{i + 1:3}/{len(wanted)}  {now - start:6.1f} s  {name}", file=sys.stderr, flush=True)
    finally:
        gc.unfreeze()
    print(f"{(perf_counter() - begin) / 60:.1f} minutes", file=sys.stderr)
    return result


def _tried(measure: Callable[[Mapping[str, Rival], Effort], Iterable[Any]], found: Mapping[str, Rival],
           result: report.Report, name: str) -> list[Any]:
    got: list[Any] = []
    try:
        for each in measure(found, result.effort):
            got.append(each)
    except Exception as error:  # whatever went wrong, the other rows are still useful
        result.failures[name] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        print(f"{name}: {result.failures[name]}", file=sys.stderr)
    return got


def joined(old: report.Report, new: report.Report) -> report.Report:
    """The old report, updated with the new one."""
    if old.setting != new.setting:
        sys.exit(f"kept nothing, as docs/ has figures of another machine or of other versions:\n{old.setting}\n"
                 f"{new.setting}")
    for title, named in new.sections.items():
        old.sections.setdefault(title, {}).update(named)
    old.growth.update(new.growth)
    fresh = [*new.growth, *[name for named in new.sections.values() for name in named]]
    failures = {name: why for name, why in old.failures.items() if name not in fresh}
    return report.Report(old.setting, old.effort, old.sections, old.growth, {**failures, **new.failures})


def write(found: report.Report, folder: Path) -> None:
    """The page, the plots, and the figures."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "benchmarks.json").write_text(report.as_json(found))
    (folder / "benchmarks.md").write_text(report.markdown(found))
    for title, page in report.PAGES.items():
        (folder / page).write_text(report.page_of(found, title))
    (folder / "benchmarks.svg").write_text(plot.ratios(found))
    (folder / "benchmarks-growth.svg").write_text(plot.growth(found))


def main() -> None:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--rounds", type=int, default=Effort().rounds, help="samples of each figure")
    for flag, text in (("quick", "few samples, and nothing is written"), ("list", "only say what there is"),
                       ("keep", "write what some names have given, too"), ("draw", "only write page and plots again")):
        parser.add_argument(f"--{flag}", action="store_true", help=text)
    parser.add_argument("--into", type=Path, help="write into this folder, whatever was run")
    options = parser.parse_args()
    if options.names == ["public"]:
        return public.main(())
    if options.list:
        print("\n".join(names()))
        return
    folder = options.into or DOCS
    kept = folder / "benchmarks.json"
    if options.draw:
        write(report.from_json(kept.read_text()), folder)
        return
    found = measure(chosen(options.names), QUICK if options.quick else Effort(rounds=options.rounds))
    print(report.markdown(found))
    print(*[report.page_of(found, title) for title in report.PAGES if title in found.sections], sep="\n")
    if options.keep and kept.exists():
        found = joined(report.from_json(kept.read_text()), found)
    if options.into or options.keep or not (options.names or options.quick):
        write(found, folder)


if __name__ == "__main__":
    main()
