"""All kinds of what goes wrong: cases have names of their own, and are answered word for word as recorded."""

from __future__ import annotations

import pytest

from tests.faults.kinds import RECORDS

AGAIN = "run: python -m tests.faults --write"


@pytest.mark.parametrize("kind", RECORDS)
def test_cases_have_names_of_their_own_and_are_those_that_are_recorded(kind: str) -> None:
    titles = [case.title for case in RECORDS[kind].cases]
    assert len(titles) == len({*titles})
    assert titles == list(RECORDS[kind].recorded()), AGAIN


#: Those whose cases run once, in a test of their own.
ELSEWHERE = ("wrong_uses", "plugin_faults")
CASES = [pytest.param(kind, case, id=f"{kind}: {case.title}") for kind, record in RECORDS.items()
         for case in record.cases if kind not in ELSEWHERE]


@pytest.mark.parametrize(("kind", "case"), CASES)
def test_it_is_answered_as_recorded(kind: str, case: object) -> None:
    assert RECORDS[kind].recorded().get(case.title) == RECORDS[kind].now(case), AGAIN  # type: ignore[attr-defined]
