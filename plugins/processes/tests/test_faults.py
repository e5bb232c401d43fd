"""What goes wrong among processes is told to all others, soon, and nothing is left over."""

from __future__ import annotations

import pytest

import faults

#: Those that every run of the tests tries, in so many processes.
SAMPLE = {("killed", 2), ("stopped", 2), ("raised", 2), ("other constant", 2), ("other order", 2)}


@pytest.mark.parametrize(("kind", "count"), [
    pytest.param(kind, count, marks=[] if (kind, count) in SAMPLE else pytest.mark.exhaustive)
    for kind in faults.FAULTS for count in (2, 4)])
def test_whoever_computes_with_a_faulty_process_is_told(kind: str, count: int) -> None:
    outcomes = faults.run(kind, count)
    assert not faults.problems(kind, count, outcomes)
