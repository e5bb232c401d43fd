"""How far a namespace follows the array API standard, by group of functions.

    python -m tests.array_api [MODULE] [--suite FOLDER] [--examples N] [--only EXPRESSION] [--processes N] [--write]

Without a suite, each function is compared with array-api-strict; with one, its tests are run. `--write` writes what
came of it to docs/reference/array-api.md.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from . import compare, page, suite


def against_strict(module: str, only: str) -> bool:
    """Print a line for each table and what is different; whether nothing is."""
    xp, different = import_module(module), []
    print(f"{'operands':12} functions   calls  different functions")
    for table, rows in compare.TABLES.items():
        names = [name for name in rows if only in name]
        found = {name: compare.compared(xp, table, name) for name in names}
        wrong = {name: why for name, (_, why) in found.items() if why}
        print(f"{table:12} {len(names):9} {sum(count for count, _ in found.values()):7}  {len(wrong):19}")
        different += [f"{table} {len(why)}x {why[0]}" for why in wrong.values()]
    print(*different, sep="\n")
    return not different


def by_suite(folder: Path, module: str, examples: int, only: str, processes: int, write: bool) -> bool:
    """Print a line for each file of the suite, what failed, and what of that is unexpected; whether nothing is."""
    outcome = suite.run(folder, module, examples, only, processes)
    print(outcome.table())
    print(*(f"{name}: {why[:150]}" for name, why in sorted(outcome.failed.items())), sep="\n")
    if write:
        page.PAGE.write_text(page.text(outcome, folder, examples))
    unexpected = suite.unexpected(outcome, suite.exceptions())
    print(f"{len(unexpected)} unexpected", *unexpected, sep="\n")
    return not unexpected


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module", nargs="?", default="corejax.numpy")
    parser.add_argument("--suite", type=Path, default=suite.checkout())
    parser.add_argument("--examples", type=int, default=20)
    parser.add_argument("--only", default="")
    parser.add_argument("--processes", type=int, default=0)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.suite is None:
        return 0 if against_strict(options.module, options.only) else 1
    right = by_suite(options.suite.resolve(), options.module, options.examples, options.only, options.processes,
                     options.write)
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
