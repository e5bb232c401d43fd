"""Random programs beside jax, or beside corejax without compiling.

    python -m tests.random_programs --count 20000               as many, beside jax where it is installed
    python -m tests.random_programs --seed 17                   one, with its text and both results
    python -m tests.random_programs --seed 17 --shrink          one that fails, made smaller
    python -m tests.random_programs --mode closures             with custom rules that close over values of outer levels

The library under test is the corejax that can be imported. Exits with 1 if something failed.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

from . import MODES, Mode, check, running, shrink


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.random_programs", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=MODES, default="usual",
                        help="; ".join([f"{name}: {mode.doc}" for name, mode in MODES.items()]))
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=1000, help="how many programs")
    parser.add_argument("--seed", type=int, nargs="*", help="these alone")
    parser.add_argument("--against", choices=["jax", "itself"], default="jax" if find_spec("jax") else "itself")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--shrink", action="store_true", help="make what fails smaller")
    parser.add_argument("--failures", type=Path, help="a file for the texts of failing programs")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    mode = MODES[given.mode]
    given.against = mode.against(given.against)
    if given.worker:
        running.work(mode, given.against)
        return 0
    if given.seed:
        return sum([show(seed, mode, given.against, given.shrink) for seed in given.seed]) and 1
    return many(range(given.first, given.first + given.count), given)


def show(seed: int, mode: Mode, against: str, shrinking: bool) -> bool:
    """Print one program, and how it fails; does it?"""
    using, made = mode.oracle(against), mode.program(seed)
    failure = check(made, using)
    if failure and shrinking:
        failure = shrink(failure, lambda smaller: check(smaller, using))
    print(failure or f"{made}\nthe same as {against}")
    return failure is not None


def many(seeds: range, given: argparse.Namespace) -> int:
    counts: Counter[str] = Counter()
    first: dict[str, int] = {}
    begun = time.monotonic()
    out = open(given.failures, "w") if given.failures else sys.stdout
    for report in running.run(seeds, given.mode, given.against, given.processes):
        counts[report["kind"]] += 1
        if report["kind"] != "passed":
            what = f"{report['kind']}: {report.get('signature', report['what'])}"
            first.setdefault(what, report["seed"])
            print(f"{'=' * 100}\nseed {report['seed']}: {report['what']}", file=out, flush=True)
        if sum(counts.values()) % 200 == 0:
            print(f"{sum(counts.values())} programs, {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = sum(counts.values())
    print(f"\n{total} programs beside {given.against} in {time.monotonic() - begun:.0f} s, "
          f"{total * 60 / (used.ru_utime + used.ru_stime):.0f} in a minute of one processor: "
          + ", ".join([f"{n} {kind}" for kind, n in counts.most_common()]))
    for what, seed in sorted(first.items(), key=lambda item: item[1]):
        print(f"  first at seed {seed}: {what}")
    print(f"run one again: python -m tests.random_programs --mode {given.mode} --against {given.against} --seed N "
          "--shrink" * bool(first))
    return int(bool(first))


if __name__ == "__main__":
    sys.exit(main())
