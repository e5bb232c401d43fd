"""What `python -m corejax check` finds with these tools: entry points that are missing, and stubs out of date."""

from __future__ import annotations

from collections.abc import Iterator

from corejax.distributions import Pack, Problem, broken, counted, installed
from corejax.errors import CorejaxError
from corejax_authoring import exports
from corejax_authoring.outdated import outdated

_MOST = 8  # names that are shown


def entry_points() -> Iterator[Problem]:
    """What the imported modules of packs export, and their metadata doesn't say."""
    for pack in installed().packs.values():
        if pack.name not in broken():
            yield from _missing(pack)


def _missing(pack: Pack) -> Iterator[Problem]:
    try:
        missing = exports.missing(pack)
    except CorejaxError as error:
        yield Problem(pack.name, error.message, error.todo or "")
        return
    for group in dict.fromkeys([group for group, _ in missing]):
        names = [name for of, name in missing if of == group]
        shown = ", ".join(names[:_MOST]) + (f" and {len(names) - _MOST} more" if len(names) > _MOST else "")
        yield Problem(pack.name, f"its modules export what has no entry point, so that nobody finds it: "
                      f"{counted([group] * len(names))}, {shown}",
                      "install it again if its pyproject.toml has them; else python -m corejax entry-points --write "
                      "adds them")


def stubs() -> Iterator[Problem]:
    """Stubs that don't describe what is installed."""
    for name, problem, todo in outdated():
        yield Problem(name, problem, todo)
