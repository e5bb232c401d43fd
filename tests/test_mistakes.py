"""The mistakes of a pack author: each is caught by name, in the words that are recorded."""

from __future__ import annotations

import pytest

from tests.faults.mistakes.run import MISTAKES, RECORD, changed, message_of


def test_the_pack_itself_has_no_mistake() -> None:
    assert "no error\n" == message_of(None)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.title)
def test_a_mistake_changes_the_pack(mistake) -> None:
    assert changed(None) != changed(mistake)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.title)
def test_a_mistake_is_told_by_name(mistake) -> None:
    message = "\n".join(RECORD.recorded()[mistake.title])
    assert message.startswith("corejax.")
    for word in mistake.words:
        assert word in message
    assert "to do:" in message
