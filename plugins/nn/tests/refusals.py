"""Uses that are refused, and what their errors say."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from corejax.errors import CorejaxError


def assert_refused(use: Callable[[], object], kind: type[Exception], text: str) -> None:
    """A use raises an error of corejax that is also of a built-in class, and says this."""
    with pytest.raises(kind) as caught:
        use()
    assert isinstance(caught.value, CorejaxError)
    assert text in str(caught.value)
