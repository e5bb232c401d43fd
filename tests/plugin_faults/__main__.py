"""`--write` makes the page; `--show [WORD]` prints what comes of each fault whose title has one of the words."""

from __future__ import annotations

import json
import sys

from . import FAULTS, page
from .run import outcomes

match sys.argv[1:]:
    case ["--show", *words]:
        for fault in FAULTS:
            if not words or any(word in fault.title for word in words):
                print(f"=== {fault.title}\n{json.dumps(outcomes()[fault.title], indent=1)}")
    case ["--write"]:
        page.write()
    case _:
        print(__doc__)
