"""What distributions require and isn't there: others, in certain versions, or a certain Python."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from corejax.inspect.answers import Problem
from corejax.installed import manifest, markers
from corejax.installed.requirements import canonical, is_range, satisfies

if TYPE_CHECKING:
    from corejax.installed.distributions import Distribution

_LINE = re.compile(r"\s*(?P<name>[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)\s*(?:\[(?P<extras>[^\]]*)\])?\s*"
                   r"(?:@\s*(?P<url>\S+)|\(?\s*(?P<range>[^;()@]*?)\s*\)?)\s*(?:;(?P<marker>.*))?", re.ASCII)


def unmet(name: str, distribution: Distribution, extra: str = "") -> Iterator[Problem]:
    """What a distribution requires here, or with one of its extras, and isn't there."""
    try:
        lines, python = list(distribution.requires or ()), distribution.metadata.get("Requires-Python")
    except Exception as error:  # other people's files
        yield Problem(name, f"its metadata can't be read: {type(error).__name__}: {error}", "install it again")
        return
    if python and not extra:
        if not is_range(python):
            yield _unreadable(name, f"Requires-Python: {python}")
        elif not satisfies(platform.python_version(), python):
            yield Problem(name, f"it requires Python {python}, and this is {platform.python_version()}",
                          f"use another Python, or install a version of {name} that is for this one")
    for line in lines:
        yield from _unmet(name, line, extra)


def _unmet(name: str, line: str, extra: str) -> Iterator[Problem]:
    found = _LINE.fullmatch(line)
    holds = markers.holds(found["marker"], extra) if found and found["marker"] else True
    if found is None or holds is None or (found["range"] and not is_range(found["range"])):
        yield _unreadable(name, f"Requires-Dist: {line}")
        return
    if not holds or (extra and markers.holds(found["marker"] or "", "") is not False):
        return  # for something else, or required without the extra, too
    wanted, range_ = canonical(found["name"]), (found["range"] or "").replace(" ", "")
    there = manifest.distribution(wanted)
    version = _version(there)
    told = f"{wanted}{range_}" + (f" from {found['url']}" if found["url"] else "")
    todo = f"pip install '{found['name']} @ {found['url']}'" if found["url"] else f"pip install '{wanted}{range_}'"
    if there is None or version is None:
        yield Problem(name, f"it requires {told}, which isn't installed", todo)
    elif range_ and not satisfies(version, range_):
        yield Problem(name, f"it requires {told}, and {version} is installed",
                      f"{todo}; or install another version of {name}")
    elif not extra:  # what extras require in turn is left to who has them
        for each in (found["extras"] or "").split(","):
            if each.strip():
                yield from [problem._replace(pack=name, problem=f"it requires {wanted}[{each.strip()}], and that "
                                                       f"{problem.problem.removeprefix('it ')}")
                            for problem in unmet(wanted, there, canonical(each))]


def _version(there: Distribution | None) -> str | None:
    """The installed version; None if a removed distribution left an empty folder behind."""
    try:
        return None if there is None else there.version
    except Exception:  # without metadata, as above
        return None


def _unreadable(name: str, line: str) -> Problem:
    return Problem(name, f"its metadata has a line that can't be read: {line}",
                   f"correct the requirement in the metadata of {name}, or install another version")
