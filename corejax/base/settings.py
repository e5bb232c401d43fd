"""The kinds of values that settings take: how each is described, checked, and read from the environment.

>>> from corejax.base.settings import Whole
>>> Whole(1, optional=True).parse("4"), Whole(1, optional=True).wanted
(4, 'an int >= 1 or None')
"""

from __future__ import annotations

import operator
import os
from difflib import get_close_matches
from typing import Any, Protocol

_BOOLEANS = {True: ("1", "true", "yes", "on"), False: ("0", "false", "no", "off", "")}


def _is_none(text: str) -> bool:
    return text.strip().lower() in ("", "none")


class Refused(Exception):
    """Raised for a value that a setting doesn't take; `hint` is the next step, if there is one to suggest."""

    def __init__(self, hint: str = "") -> None:
        self.hint = hint


class Values(Protocol):
    """The values that a setting takes: how they are described, checked, and read from the environment."""

    @property
    def wanted(self) -> str:
        """A description of these values, for errors."""

    def check(self, value: Any) -> Any:
        """The value in the form that is stored; raises `Refused` if it isn't one of these."""

    def parse(self, text: str) -> Any:
        """The value that a text stands for; raises `Refused` if it isn't one of these."""


class OneOf:
    """A few values, written as in Python; booleans may also be 1 or 0, true or false, yes or no, on or off."""

    def __init__(self, *values: Any) -> None:
        self.values = values

    @property
    def wanted(self) -> str:
        return " or ".join(map(repr, self.values))

    def check(self, value: object) -> Any:
        for known in self.values:
            if type(value) is type(known) and value == known:
                return known
        raise self._refused(value)

    def parse(self, text: str) -> Any:
        for known in self.values:
            if text.strip().lower() in (_BOOLEANS[known] if isinstance(known, bool) else (str(known).lower(),)):
                return known
        raise self._refused(text)

    def _refused(self, value: object) -> Refused:
        close = get_close_matches(str(value).lower(), [str(known).lower() for known in self.values], n=1)
        return Refused(f"did you mean {close[0]!r}?" if close else "")


class Whole:
    """Integers from `least` to `most`, and None if `optional`."""

    def __init__(self, least: int, most: int | None = None, *, optional: bool = False) -> None:
        self.least, self.most, self.optional = least, most, optional

    @property
    def wanted(self) -> str:
        bounds = f">= {self.least}" if self.most is None else f"from {self.least} to {self.most}"
        return f"an int {bounds}{' or None' * self.optional}"

    def check(self, value: Any) -> int | None:
        if value is None and self.optional:
            return None
        try:
            number = None if isinstance(value, bool) else operator.index(value)
        except TypeError:
            number = None
        if number is None:
            near = isinstance(value, float) and value.is_integer() or isinstance(value, str) and value.strip().isdigit()
            raise Refused(f"write {int(value)}" if near else "")
        if number < self.least or (self.most is not None and number > self.most):
            raise Refused()
        return number

    def parse(self, text: str) -> int | None:
        if self.optional and _is_none(text):
            return None
        try:
            number = int(text)
        except ValueError:
            raise Refused() from None
        return self.check(number)


class PathName:
    """The path of a file or directory, stored as an absolute one, or None if `optional`. It need not exist."""

    def __init__(self, *, optional: bool = False) -> None:
        self.optional = optional

    @property
    def wanted(self) -> str:
        return f"a path{' or None' * self.optional}"

    def check(self, value: object) -> str | None:
        if value is None and self.optional:
            return None
        if not isinstance(value, (str, os.PathLike)):
            raise Refused()
        path = os.fspath(value)
        if not isinstance(path, str):
            raise Refused("give it as a str or a pathlib.Path")
        if not path.strip() or "\0" in path:
            raise Refused("None turns it off" if self.optional and not path.strip() else "")
        return os.path.abspath(os.path.expanduser(path))

    def parse(self, text: str) -> str | None:
        return None if self.optional and _is_none(text) else self.check(text)


class Name:
    """A name: an identifier in lower case."""

    wanted = "a name"

    def check(self, value: object) -> str:
        if not isinstance(value, str) or not (value.isidentifier() and value.islower()):
            lower = isinstance(value, str) and value.strip().lower()
            raise Refused(f"write {lower!r}" if lower and lower.isidentifier() else "")
        return value

    def parse(self, text: str) -> str:
        return self.check(text.strip().lower())
