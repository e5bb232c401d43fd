"""Which distributions one depends on here: on this platform, with this Python, for an extra or in any case."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from corejax.installed.markers import holds
from corejax.installed.requirements import LINE, canonical

_EXTRA = re.compile(r"\bextra\b")
_EXTRA_IS = re.compile(r"""\bextra\s*==\s*(?P<quote>['"])(?P<name>.+?)(?P=quote)""")


class Dependency(NamedTuple):
    """Another distribution, with the extras that are asked of it; `needed_for` some extras only, or always if empty."""

    name: str
    extras: frozenset[str]
    needed_for: frozenset[str]


def dependencies(lines: Iterable[str]) -> list[Dependency]:
    """The distributions that metadata names, whatever the version, without those for other Pythons and platforms.

    >>> dependencies(["corejax[std]>=1", 'My.Pack ; extra == "all"', 'old; python_version < "3"'])[1:]
    [Dependency(name='my-pack', extras=frozenset(), needed_for=frozenset({'all'}))]
    """
    found = []
    for match in filter(None, map(LINE.fullmatch, lines)):
        extras, needed_for = match["extras"] or "", _needed_for(match["marker"] or "")
        if needed_for is not None:
            found.append(Dependency(canonical(match["name"]), frozenset(
                [canonical(each) for each in extras.split(",") if each.strip()]), needed_for))
    return found


def _needed_for(marker: str) -> frozenset[str] | None:
    """For which extras it is needed, none of them if it always is; None if it isn't needed here."""
    if not _EXTRA.search(marker):
        return None if marker and holds(marker) is False else frozenset()
    named = [canonical(each["name"]) for each in _EXTRA_IS.finditer(marker)]
    if not named:
        return frozenset([marker])  # it asks in another form, for an extra that nobody can tell
    return frozenset([extra for extra in named if holds(marker, extra) is not False]) or None
