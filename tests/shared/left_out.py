"""Says which tests were left out as exhaustive: by whichever process collected them, at the end of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, MutableMapping
from typing import Any

#: Where a worker of xdist keeps the counts, and sends them: plain data, by the test's place.
SENT = "corejax tests left out"
TOLD = "tests were left out as exhaustive"
MOST = 12


def count(config: Any, items: Iterable[Any]) -> None:
    """Tests that `-m` left out, among them those marked exhaustive."""
    if "not exhaustive" not in config.option.markexpr:
        return  # left out for another reason
    places = [item.nodeid.partition("[")[0] for item in items if item.get_closest_marker("exhaustive")]
    kept = _kept(config)
    kept[SENT] = dict(Counter(kept.get(SENT, {})) + Counter(places))


def take_over(config: Any, sent: MutableMapping[str, Any]) -> None:
    """What a worker counted; all of them collect the same."""
    if SENT in sent:
        _kept(config)[SENT] = sent[SENT]


def _kept(config: Any) -> MutableMapping[str, Any]:
    if hasattr(config, "workeroutput"):
        return config.workeroutput  # type: ignore[no-any-return]
    if not hasattr(config, "corejax_left_out"):
        config.corejax_left_out = {}
    return config.corejax_left_out  # type: ignore[no-any-return]


def lines(counts: MutableMapping[str, int]) -> list[str]:
    """How many of each test, those with most first.

    >>> lines({"test_one.py::test_all_orders": 7, "test_two.py::test_all": 30})
    ['37 tests were left out as exhaustive, which `make test-all` runs:', '  30  test_two.py::test_all', \
'   7  test_one.py::test_all_orders']
    """
    most = sorted(counts, key=lambda place: (-counts[place], place))
    told = [f"{sum(counts.values())} {TOLD}, which `make test-all` runs:"]
    told += [f"{counts[place]:4}  {place}" for place in most[:MOST]]
    rest = most[MOST:]
    return told + ([f"{sum(counts[place] for place in rest):4}  of {len(rest)} others"] if rest else [])


def show(terminalreporter: Any) -> None:
    """Write them to the end of a run."""
    counts = _kept(terminalreporter.config).get(SENT)
    if counts:
        terminalreporter.section("left out")
        for line in lines(counts):
            terminalreporter.line(line)
