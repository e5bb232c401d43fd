"""`python -m tests.mistakes --write` makes every mistake and writes the page."""

from __future__ import annotations

import sys

from .page import PAGE, page

if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page())
    else:
        print(page())
