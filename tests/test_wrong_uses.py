"""What users do wrong: each gets an error that says what was got and wanted, where, and what to do about it."""

from __future__ import annotations

import re
from functools import cache

import pytest

from wrong_uses import CASES, record
from wrong_uses.case import WrongUse
from wrong_uses.run import FILE, Outcome, run

ADDRESS = re.compile(r"0x[0-9a-f]{5,}| object at |<function |<class |<bound method ")
MLIR = re.compile(r"tensor<|stablehlo|func\.func|%arg\d|loc\(|INVALID_ARGUMENT|PyTreeDef\b.*PyTreeDef")
ARTICLE = re.compile(r"\b[Aa] [aeioAEIO]|\b[Aa]n (?!f\d|i\d|ndarray\b|[aeiouAEIOU])\w")

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)


@cache
def outcome_of(title: str) -> Outcome:
    return run(next(case for case in CASES if case.title == title))


def test_there_are_many_and_each_has_its_own_name() -> None:
    assert len(CASES) >= 110
    assert len({case.title for case in CASES}) == len(CASES)


@pytest.mark.sample(400)
@every_case
def test_error_is_of_the_class_that_one_expects(case: WrongUse) -> None:
    outcome = outcome_of(case.title)
    assert "CorejaxError" in outcome.classes, outcome.trace or "nothing was raised"
    assert case.error.__name__ in outcome.classes, outcome.message


@pytest.mark.sample(400)
@every_case
def test_error_says_what_was_got_and_wanted_and_what_to_do(case: WrongUse) -> None:
    outcome = outcome_of(case.title)
    assert [] == [part for part in ("got", "wanted", "todo") if not getattr(outcome, part)], outcome.message
    assert [] == [word for word in case.words if word not in outcome.message], outcome.message


@every_case
def test_error_names_the_line_that_is_wrong(case: WrongUse) -> None:
    where = outcome_of(case.title).where
    assert where is not None and re.match(rf"{re.escape(FILE)}:{case.line}( |$)", where), f"{where}, not {case.line}"


@every_case
def test_message_is_for_people(case: WrongUse) -> None:
    message = outcome_of(case.title).message
    for wrong in (ADDRESS, MLIR, ARTICLE):
        assert [] == wrong.findall(message), message


@every_case
def test_traceback_has_the_users_frames_only(case: WrongUse) -> None:
    outcome = outcome_of(case.title)
    assert [] == outcome.internal_frames, outcome.trace


def test_what_is_recorded_are_these() -> None:
    assert [case.title for case in CASES] == list(record.expected()), "run: python -m tests.wrong_uses --write"


@every_case
def test_error_says_what_is_recorded(case: WrongUse) -> None:
    said = record.lines(case, outcome_of(case.title))
    assert record.expected().get(case.title) == said, "run: python -m tests.wrong_uses --write"


def test_each_wrong_use_is_compared_with_what_jax_says_of_it() -> None:
    assert {case.title for case in CASES if case.jax is not None} == set(record.messages())


@pytest.mark.sample(300)
@pytest.mark.parametrize("case", [case for case in CASES if case.jax is not None], ids=lambda case: case.title)
def test_parity_recorded_message_is_what_jax_says(case: WrongUse) -> None:
    jax = pytest.importorskip("jax")
    if jax.__version__ != record.JAX_VERSION:
        pytest.skip(f"messages were recorded of jax {record.JAX_VERSION}")
    assert record.messages()[case.title] == record.jax_says(case)
