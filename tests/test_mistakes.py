"""The mistakes of a pack author: each is caught by name, in the words that are recorded."""

from __future__ import annotations

import pytest

from tests.mistakes.record import MISTAKES, changed, expected, message_of, messages


def test_the_pack_itself_has_no_mistake() -> None:
    assert "no error\n" == message_of(None)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.title)
def test_a_mistake_changes_the_pack(mistake) -> None:
    assert changed(None) != changed(mistake)


def test_what_is_recorded_is_what_is_said_now() -> None:
    assert expected() == messages(), "run: python -m tests.mistakes --write"


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.title)
def test_a_mistake_is_told_by_name(mistake) -> None:
    message = "\n".join(expected()[mistake.title])
    assert message.startswith("corejax.")
    for word in mistake.words:
        assert word in message
    assert "to do:" in message
