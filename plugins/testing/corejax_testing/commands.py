"""The command `python -m corejax conformance`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from corejax_testing.running import check_pack


def conformance(arguments: Sequence[str]) -> Iterator[str]:
    """Check every rule of installed packs against the other rules and against mathematics."""
    parser = argparse.ArgumentParser("python -m corejax conformance", description=conformance.__doc__)
    parser.add_argument("packs", nargs="+", metavar="PACK", help="the name of a distribution")
    parser.add_argument("--full", action="store_true", help="run the slow checks, too")
    parser.add_argument("--search", action="store_true", help="look for other inputs that break a law, too")
    options = parser.parse_args(arguments)
    for pack in options.packs:
        yield str(check_pack(pack, full=options.full, search=options.search))
