"""`--write [PROCESSES]` runs all mutants, freezes what comes out; `--totals` prints what that comes to.

Words run the mutants whose names have one of them, and print what the kit says.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[4]))

from tests import manual

from . import MUTANTS, totals
from .results import freeze
from .running import run, run_all


def show(words: list[str]) -> None:
    """Run some, and print the outcomes."""
    chosen = [m for m in MUTANTS if any(word in m.name for word in words)]
    killed = 0
    for mutant in chosen:
        try:
            outcome = run(mutant)
        except Exception as error:
            print(f"{mutant.name}: THE HARNESS FAILS: {type(error).__name__}: {error}", flush=True)
            continue
        killed += outcome.killed
        verdict = f"{outcome.check!r} blames {outcome.blamed}: {outcome.said}" if outcome.killed else "SURVIVES"
        print(f"{mutant.name} ({outcome.seconds} s): {verdict}", flush=True)
        if outcome.killed == bool(mutant.survives) or not outcome.killed:
            print(f"    {mutant.old!r} -> {mutant.new!r}  {mutant.survives and 'stated: ' + mutant.survives}")
    print(f"{killed} of {len(chosen)} killed")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--write", *processes]:
            freeze(run_all(MUTANTS, int(*processes) if processes else 1))
            manual.write()
        case ["--totals"]:
            print(totals.tables())
        case [_, *_] as words:
            show(words)
        case _:
            print(__doc__)
