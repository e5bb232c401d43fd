"""`--write` records what is raised now; `--jax` asks jax again; `--show [WORD]` prints it; `--bad` what is amiss."""

from __future__ import annotations

import sys
from collections import Counter

from .. import manual
from . import CELLS, jax_rules, record
from .run import complaints, run

match sys.argv[1:]:
    case ["--show", *words]:
        for cell in CELLS:
            if all(word in cell.title for word in words):
                found = run(cell)
                print(f"=== {cell.title}\n{cell.code}--> {found.kind}: {found.message}", *found.notes, sep="\n")
    case ["--bad", *words]:
        counts: Counter[str] = Counter()
        for cell in CELLS:
            if all(word in cell.title for word in words):
                found = run(cell)
                wrong = complaints(cell, found)
                counts[f"{cell.expected} {'as it should be' if not wrong else 'AMISS'}"] += 1
                counts["silent"] += found.silent
                if wrong:
                    print(f"{cell.title}: {'; '.join(wrong)}"[:400].replace("\n", " / "))
        print(counts)
    case ["--write"]:
        record.write()
        manual.write()
    case ["--jax"]:
        jax_rules.record()
    case _:
        print(__doc__)
