"""`--write [KIND ...]` records how cases are answered now, of all kinds or of some; `--show KIND [WORD ...]` prints it
for those whose titles have all the words; `--jax` asks jax again. `--run TITLE` runs a wrong use, and prints its
outcome as JSON.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from .. import manual
from .faulty_rules import jax_rules
from .kinds import RECORDS
from .wrong_uses import CASES, jax_messages
from .wrong_uses.run import run_here


def show(kind: str, words: list[str]) -> None:
    """Print how cases are answered."""
    for case in RECORDS[kind].cases:
        if all(word in case.title for word in words):
            answer = RECORDS[kind].now(case)
            print(f"=== {case.title}", *([answer] if isinstance(answer, str) else answer), sep="\n")


match sys.argv[1:]:
    case ["--run", title]:
        print(json.dumps(asdict(run_here(next(case for case in CASES if case.title == title)))))
    case ["--show", kind, *words] if kind in RECORDS:
        show(kind, words)
    case ["--jax"]:
        jax_messages.write_jax_messages()
        jax_rules.record()
    case ["--write", *kinds] if {*kinds} <= RECORDS.keys():
        for kind in kinds or RECORDS:
            RECORDS[kind].write()
        manual.write()
    case _:
        print(__doc__, f"KIND is one of: {', '.join(RECORDS)}", sep="\n")
