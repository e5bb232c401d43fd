"""`--write` records what comes of the faults now; `--show [WORD]` prints it for those whose title has one of the words.
"""

from __future__ import annotations

import json
import sys

from .. import manual
from . import FAULTS, record
from .run import outcomes

match sys.argv[1:]:
    case ["--show", *words]:
        for fault in FAULTS:
            if not words or any(word in fault.title for word in words):
                print(f"=== {fault.title}\n{json.dumps(outcomes()[fault.title], indent=1)}")
    case ["--write"]:
        record.write()
        manual.write()
    case _:
        print(__doc__)
