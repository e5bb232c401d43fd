"""What each transformation has for each installed primitive: a table, `python -m tests.transformed --write`.

`written` and `declared` rules are somebody's, `derived` ones are made of others, `absent` ones are declared not to be,
and for what is `missing` an error says so. The first three are the kernel's transformations, the rest those of packs.
"""

from __future__ import annotations

import csv
import io
import sys
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path

import corejax as cj
from corejax.plugin import entry_point_names
from corejax.rules import transformations

TABLE = Path(__file__).parent / "transformed.csv"

#: The kernel's, in the table beside those of packs.
OWN = ("jvp", "transpose", "vmap")


def hooks() -> list[str]:
    """The transformations that are installed."""
    return [*OWN, *[each.name for each in transformations()]]


def rows() -> list[list[str]]:
    """For each primitive its name, and what each transformation has for it."""
    found = []
    for name in sorted(entry_point_names("corejax.primitives")):
        with redirect_stdout(io.StringIO()):
            explained = cj.plugins.explain(name).hooks
        found.append([name, *[_answer(explained[hook]) for hook in hooks()]])
    return found


def _answer(hook: object) -> str:
    how, what = getattr(hook, "how", ""), getattr(hook, "what", "")
    refuses = what.startswith(("not_differentiable", "not_linear", "declared absent", "absent("))
    return "absent" if how == "declared" and refuses else str(how)


def text() -> str:
    """The table."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["primitive", *hooks()])
    writer.writerows(rows())
    return out.getvalue()


def totals(table: str) -> dict[str, Counter[str]]:
    """How many primitives have which answer, for each transformation."""
    names, *found = csv.reader(io.StringIO(table))
    return {hook: Counter([row[i] for row in found]) for i, hook in enumerate(names) if i}


def main() -> None:
    """Print the totals; with --write, write the table."""
    now = text()
    if "--write" in sys.argv:
        TABLE.write_text(now)
    for hook, counts in totals(now).items():
        print(f"{hook}: {', '.join([f'{count} {how}' for how, count in sorted(counts.items())])}")


if __name__ == "__main__":
    main()
