"""What a distribution requires of another one, and whether a version satisfies it (PEP 440 and 508).

Only what metadata of installed distributions has is understood: installers have checked the rest.

>>> satisfies("1.10", ">=1.2,<2"), satisfies("2.0rc1", "<2"), satisfies("1.4.1", "~=1.4.0"), satisfies("1.5", "==1.4.*")
(True, False, True, False)
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

_VERSION = re.compile(r"""
    v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)
    (?:[-_.]?(?P<pre>a|b|c|rc|alpha|beta|pre|preview)[-_.]?(?P<pre_number>\d*))?
    (?P<post>-\d+|[-_.]?(?:post|rev|r)[-_.]?\d*)?
    (?P<dev>[-_.]?dev[-_.]?\d*)?
    (?:\+[a-z0-9]+(?:[-_.][a-z0-9]+)*)?""", re.VERBOSE | re.IGNORECASE)
_CLAUSE = re.compile(r"\s*(===|~=|==|!=|<=|>=|<|>)\s*([^\s,]+)\s*")

#: A line of metadata that names a distribution.
LINE = re.compile(r"\s*(?P<name>[A-Za-z0-9][\w.-]*)\s*(\[(?P<extras>[^\]]*)\])?\s*\(?(?P<range>[^;()@]*)\)?\s*"
                  r"(@\s*\S+\s*)?(;(?P<marker>.*))?")
_EXTRA = re.compile(r"\bextra\b")
_FIRST, _LAST = float("-inf"), float("inf")
_PRE = {"a": "a", "alpha": "a", "b": "b", "beta": "b"}  # the rest is "rc"


class Requirement(NamedTuple):
    """A line of a distribution's metadata; `optional` if it is only for an extra."""

    name: str
    range: str
    optional: bool


class _Version(NamedTuple):
    """Fields in the order in which versions compare."""

    epoch: int
    release: tuple[int, ...]
    pre: tuple[str, float]
    post: float
    dev: float

    @property
    def base(self) -> tuple[int, tuple[int, ...]]:
        return self.epoch, self.release

    @property
    def is_early(self) -> bool:
        return self.dev < _LAST or self.pre[0] in ("a", "b", "rc")


def canonical(name: str) -> str:
    """A distribution's name as PEP 503 normalizes it.

    >>> canonical("My_Pack.Extras")
    'my-pack-extras'
    """
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def parse(lines: Iterable[str]) -> list[Requirement]:
    """The requirements of metadata, without those for another platform or Python, as far as a marker may say so."""
    found = []
    for line in lines:
        match = LINE.fullmatch(line)
        marker = match["marker"] if match else None
        if match and (not marker or _EXTRA.search(marker)):
            found.append(Requirement(canonical(match["name"]), match["range"].strip(), bool(marker)))
    return found


def satisfies(version: str, wanted: str) -> bool:
    """Is a version in a range? True if one of them is in a form that PEP 440 doesn't have: nobody can tell."""
    clauses = [_CLAUSE.fullmatch(clause) for clause in wanted.split(",") if clause.strip()]
    found = _parsed(version)
    if found is None:
        return True
    return all([_holds(version, found, clause[1], clause[2]) for clause in clauses if clause is not None])


def is_range(text: str) -> bool:
    """Is it a version specifier, such as `>=1,<2`?"""
    clauses = [_CLAUSE.fullmatch(clause) for clause in text.split(",")]
    return all([clause is not None and _parsed(clause[2].removesuffix(".*")) is not None for clause in clauses])


def overlap(one: str, other: str) -> bool:
    """May a version be in both ranges? Those that they name, and the next after each, are tried.

    >>> overlap(">=1,<2", ">=0.5"), overlap(">=1,<2", ">=2"), overlap(">1", "<3")
    (True, False, True)
    """
    named = [clause[2].removesuffix(".*") for text in (one, other) for clause in map(_CLAUSE.fullmatch, text.split(","))
             if clause is not None]
    return not named or any([satisfies(version, one) and satisfies(version, other)
                             for name in named for version in (name, f"{name}.0.0.1")])


_COMPARE: dict[str, Callable[[_Version, _Version], bool]] = {
    "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt, "==": operator.eq, "!=": operator.ne}


def _holds(version: str, found: _Version, how: str, text: str) -> bool:
    if how == "===":
        return version == text
    if text.endswith(".*"):
        return _starts(found, text[:-2].rpartition("!")[2]) is (how == "==")
    wanted = _parsed(text)
    if wanted is None:
        return True
    if how == "~=":
        match = _VERSION.fullmatch(text)
        return found >= wanted and match is not None and _starts(found, match["release"].rpartition(".")[0])
    if how == "<" and found.is_early and not wanted.is_early and found.base == wanted.base:
        return False
    if how == ">" and found.post > _FIRST and wanted.post == _FIRST and found.base == wanted.base:
        return False
    return _COMPARE[how](found, wanted)


def _starts(found: _Version, text: str) -> bool:
    """Does its release start with these numbers?"""
    wanted = [int(part) for part in re.findall(r"\d+", text)]
    return [*found.release, *[0] * len(wanted)][:len(wanted)] == wanted


def _parsed(text: str) -> _Version | None:
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        return None
    release = [int(part) for part in match["release"].split(".")]
    while len(release) > 1 and release[-1] == 0:  # 1.0 is 1
        release.pop()
    post = _FIRST if match["post"] is None else _number(match["post"])
    dev = _LAST if match["dev"] is None else _number(match["dev"])
    pre = ("zz", _LAST)
    if match["pre"]:
        pre = _PRE.get(match["pre"].lower(), "rc"), _number(match["pre_number"])
    elif match["dev"] is not None and match["post"] is None:
        pre = ("", _FIRST)
    return _Version(int(match["epoch"] or 0), tuple(release), pre, post, dev)


def _number(text: str) -> int:
    return int("".join(filter(str.isdigit, text)) or 0)
