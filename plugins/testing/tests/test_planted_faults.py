"""The conformance kit finds the faults with which somebody tried to break it, each by the check that is named."""

from __future__ import annotations

import pytest

from planted_faults import FAULTS, RIGHT, ROOT, Fault, failing


@pytest.mark.parametrize("kind", RIGHT)
def test_primitives_without_a_fault_pass(kind: type) -> None:
    assert set() == failing(kind())


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_fault_is_found_by_the_named_check(fault: Fault) -> None:
    assert {fault.check} == fault.found(fault.full, [fault.check])


def test_decision_has_a_row_for_each() -> None:
    text = (ROOT / "docs/decisions/0030-what-the-kit-can-see.md").read_text()
    rows = [f"| {fault.what} | {'found' if fault.known else 'missed'} | {fault.check}{' (full mode)' * fault.full} |\n"
            for fault in FAULTS.values()]
    assert [] == [row for row in rows if row not in text]
    assert (23, 9, 1) == (len(rows), sum([fault.known for fault in FAULTS.values()]),
                          sum([fault.full for fault in FAULTS.values()]))
