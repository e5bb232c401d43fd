"""`--write` records what is raised now; `--jax` asks jax again; `--show [WORD]` prints both, `--run TITLE` runs one."""

from __future__ import annotations

import sys

from .. import manual
from . import CASES, record
from .run import as_json, run, run_here


def show(words: list[str]) -> None:
    """Print what corejax says, and what jax said, to each whose title has one of the words."""
    said = record.messages()
    for case in CASES:
        if not words or any(word in case.title for word in words):
            found = run(case)
            print(f"=== {case.title}\n{case.code}--> {found.kind}: {found.message}")
            print(f"jax: {said.get(case.title)}\n" if case.jax else "")


match sys.argv[1:]:
    case ["--run", title]:
        print(as_json(run_here(next(case for case in CASES if case.title == title))))
    case ["--show", *words]:
        show(words)
    case ["--jax"]:
        record.write_jax_messages()
    case ["--write"]:
        record.write()
        manual.write()
    case _:
        print(__doc__)
