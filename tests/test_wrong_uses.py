"""What users do wrong: each gets an error that says what was got and wanted, where, and what to do about it."""

from __future__ import annotations

import pytest

from test_faults import AGAIN
from tests.faults.speech import unfit
from tests.faults.wrong_uses import CASES, jax_messages
from tests.faults.wrong_uses.case import WrongUse
from tests.faults.wrong_uses.run import RECORD, answer_to, run

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)


def test_there_are_many() -> None:
    assert len(CASES) >= 110


@every_case
def test_error_is_what_one_expects_at_the_line_that_is_wrong_in_words_for_people(case: WrongUse) -> None:
    outcome = run(case)
    assert {"CorejaxError", case.error.__name__} <= {*outcome.classes}, outcome.trace or "nothing was raised"
    assert [] == [part for part in ("got", "wanted", "todo") if not outcome.parts.get(part)], outcome.message
    assert [] == [word for word in case.words if word not in outcome.message], outcome.message
    assert outcome.is_at([case.line]), f"{outcome.parts.get('where')}, not {case.line}"
    assert [] == unfit(outcome.message), outcome.message
    assert [] == outcome.internal_frames, outcome.trace
    assert RECORD.recorded().get(case.title) == answer_to(case, outcome), AGAIN


def test_each_wrong_use_is_compared_with_what_jax_says_of_it() -> None:
    assert {case.title for case in CASES if case.jax is not None} == set(jax_messages.messages())


@pytest.mark.sample(200)
@pytest.mark.parametrize("case", [case for case in CASES if case.jax is not None], ids=lambda case: case.title)
def test_parity_recorded_message_is_what_jax_says(case: WrongUse) -> None:
    jax = pytest.importorskip("jax")
    if jax.__version__ != jax_messages.JAX_VERSION:
        pytest.skip(f"messages were recorded of jax {jax_messages.JAX_VERSION}")
    assert jax_messages.messages()[case.title] == jax_messages.jax_says(case)
