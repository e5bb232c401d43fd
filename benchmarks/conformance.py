"""The CPU time of the conformance kit for each primitive on one core, with nothing compiled before.

    python -m benchmarks.conformance [--full] [--rounds N] [--checks] [NAME ...]

A NAME is a pack or a primitive; without any, all installed packs are measured. `--checks` adds the time for each check.
CPU time includes the processes that the full mode starts, but no other load.
"""

from __future__ import annotations

import argparse
import os
import statistics
import warnings
from collections.abc import Iterator, Sequence

import corejax as cj
from corejax.errors import CorejaxWarning
from corejax.installed import manifest
from corejax_testing.packs import primitives_of
from corejax_testing.report import Report
from corejax_testing.running import outcomes


def on_one_core() -> None:
    """Restrict the process to one thread and, if the system can, to one core; call it before jaxlib is loaded."""
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def chosen(names: Sequence[str]) -> list[str]:
    """These primitives, with packs expanded."""
    packs = manifest.read().packs
    primitives = {name: None for name in names or packs for name in (primitives_of(name) if name in packs else [name])}
    return list(primitives)


def processor_seconds() -> float:
    """The CPU time of this process and its children so far."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def measured(primitive: str, full: bool) -> tuple[float, Report]:
    """One run, with empty caches of compiled programs."""
    cj.clear_caches()
    start = processor_seconds()
    report = Report(tuple(outcomes(primitive, full=full)))
    return processor_seconds() - start, report


def lines(full: bool, rounds: int, names: Sequence[str], checks: bool) -> Iterator[str]:
    """The lines of the table, as they are measured."""
    medians: dict[str, float] = {}
    by_check: dict[str, float] = {}
    for name in names:
        runs = [measured(name, full) for _ in range(rounds)]
        medians[name] = statistics.median([seconds for seconds, _ in runs])
        report = runs[-1][1]
        for outcome in report.outcomes:
            by_check[outcome.check] = by_check.get(outcome.check, 0.0) + outcome.seconds
        failed = "; ".join([outcome.check for outcome in report.outcomes if outcome.failures])
        yield f"{name:<24} {medians[name]:8.2f} s" + f"  failed: {failed}" * bool(failed)
    times = list(medians.values())
    yield (f"{len(times)} primitives: median {statistics.median(times):.2f} s, most {max(times):.2f} s, "
           f"sum {sum(times):.1f} s")
    if checks:
        yield from [f"  {took:8.2f} s  {name}" for name, took in sorted(by_check.items(), key=lambda item: -item[1])]


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--full", action="store_true", help="the full mode")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured; the median counts")
    parser.add_argument("--checks", action="store_true", help="also what each check takes, over all primitives")
    options = parser.parse_args()
    on_one_core()
    warnings.simplefilter("ignore", CorejaxWarning)
    names = chosen(options.names)
    measured(names[0], full=False)  # a warm-up, which loads everything
    for line in lines(options.full, options.rounds, names, options.checks):
        print(line, flush=True)


if __name__ == "__main__":
    main()
