"""Write the table of the conformance kit's checks into docs/testing-a-pack.md.

    python tools/check_table.py [--check]

`--check` writes nothing and fails if the table is out of date.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from corejax.testing import CHECKS
from corejax_testing.packs import RULES_ARE_USED
from corejax_testing.specification import HAS_SAMPLES

PAGE = Path(__file__).resolve().parent.parent / "docs/testing-a-pack.md"
BEGIN = "<!-- checks: written by tools/check_table.py -->\n"
END = "<!-- checks end -->\n"


def table() -> str:
    """A row for each check, in the order in which they run."""
    rows = [f"| {RULES_ARE_USED} | any | Of a pack with rules for others' primitives: each takes effect if chosen. | |",
            f"| {HAS_SAMPLES} | `samples` | The samples can be used, and are the same each time. | |"]
    for each in CHECKS.values():
        law = " ".join(each.doc.split("\n\n")[0].split())
        rows.append(f"| {each.name} | `{each.hook}` | {law} | {'full' if each.full else ''} |")
    return "\n".join(["| check | hook | law | mode |", "| --- | --- | --- | --- |", *rows]) + "\n"


def written(page: str) -> str:
    """The page with an up-to-date table."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{table()}{END}{after}"


def main() -> int:
    """Write the page, or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    if written(page) == page:
        return 0
    if options.check:
        print(f"{PAGE.name} is out of date: run python tools/check_table.py", file=sys.stderr)
        return 1
    PAGE.write_text(written(page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
