"""Measure, print the table, and keep it in docs/.

    python -m benchmarks [--rounds N] [--no-write]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks import loops, report, rivals, rows

DOCS = Path(__file__).resolve().parent.parent / "docs"


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=25, help="samples of each figure")
    parser.add_argument("--no-write", action="store_true", help="only print")
    options = parser.parse_args()
    found = rivals.installed()
    sections = {"Import, and one call": [rows.importing(found, max(5, options.rounds // 3)),
                                          rows.eager_add_ndarrays(found, options.rounds)]}
    for title, style in rows.STYLES.items():
        sections[f"Programs written with {title}"] = list(rows.measure(found, style, options.rounds))
    sections["Loops"] = list(loops.measure(found, options.rounds))
    page = report.markdown(sections, options.rounds)
    print(page)
    if not options.no_write:
        (DOCS / "benchmarks.md").write_text(page)
        (DOCS / "benchmarks.json").write_text(report.as_json(sections, options.rounds))


if __name__ == "__main__":
    main()
