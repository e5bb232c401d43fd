"""`python -m tests.mistakes --write` makes every mistake and records what is read; else that is printed."""

from __future__ import annotations

import sys

from .. import manual
from .record import messages, write

if "--write" in sys.argv[1:]:
    write()
    manual.write()
else:
    for title, lines in messages().items():
        print(f"=== {title}", *lines, "", sep="\n")
