"""The class of checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from corejax_testing.case import Case

Run = Callable[[Case], None]


@dataclass(frozen=True, slots=True)
class Check:
    """A law, and the function that tests it on a case."""

    name: str
    hook: str
    doc: str
    run: Run
    full: bool
    errors: bool
    costly: bool
    departure: str
    decisive: bool = False

    def __str__(self) -> str:
        return self.name


def check(hook: str, *, full: bool = False, errors: bool = False, costly: bool = False,
          departure: str = "", decisive: bool = False) -> Callable[[Run], Check]:
    """Make a function a check: it returns if the law holds, else raises what `case.fail` returns, or `NotApplicable`.

    Its name states the law. `hook` is blamed for any other exception. `full` says that it is too slow for the quick
    mode, `errors` that it is only for the samples that must raise an error, `costly` that the quick
    mode runs it on only a few samples if each transformation of the primitive compiles another program. `departure` is
    the word for samples that intend not to keep this law and its like. `decisive` says that it is as sharp in the quick
    mode as in the full one, so that an exempt sample must break it there, too.
    """
    def made(run: Run) -> Check:
        return Check(run.__name__.replace("_", " "), hook, (run.__doc__ or "").strip(), run, full, errors, costly,
                     departure, decisive)
    return made
