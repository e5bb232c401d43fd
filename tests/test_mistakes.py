"""The mistakes of a pack author: each is caught by name, and the page about them shows what is said now."""

from __future__ import annotations

import pytest

from tests.mistakes.page import MISTAKES, PAGE, changed, message_of, page


def test_the_pack_itself_has_no_mistake() -> None:
    assert "no error\n" == message_of(None)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.title)
def test_a_mistake_changes_the_pack(mistake) -> None:
    assert changed(None) != changed(mistake)


def test_the_page_shows_what_is_said_now() -> None:
    found = page()
    assert found == PAGE.read_text(), "run: python -m tests.mistakes --write"


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.title)
def test_a_mistake_is_told_by_name(mistake) -> None:
    section = PAGE.read_text().partition(f". {mistake.title}\n")[2].partition("\n## ")[0]
    message = section.partition("```text\n")[2].partition("```")[0]
    assert message.startswith("corejax.")
    for word in mistake.words:
        assert word in message
    assert "to do:" in message
