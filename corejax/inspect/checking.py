"""What is wrong with packs, whatever they do: they are checked in processes of their own.

A pack that ends its process, or doesn't come to an end, is a problem that names it; the next process goes on with the
packs that come after.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator

from corejax.inspect import watching
from corejax.inspect.answers import Problem
from corejax.installed import manifest

#: How long a process may take, in seconds.
SECONDS = 60.0


def problems(seconds: float) -> Iterator[Problem]:
    """What `corejax.inspect.checkup` finds, and what comes of checking. No process may take longer than this."""
    done: list[str] = []
    told: set[Problem] = set()
    culprits: dict[str, str] = {}
    while True:
        ended = watching.run(["packs", *done], seconds)
        for each in ended.found:
            problem = Problem(**each) if "problem" in each else Problem("corejax", each["error"], each["todo"])
            if problem not in told:
                told.add(problem)
                yield problem
        if not ended.why:
            return
        culprit = _culprit(ended, done)
        if culprit not in culprits:
            culprits[culprit] = ended.why
            yield _problem(ended, culprit)
        if culprit == ended.at and ended.steps and " " not in ended.steps[-1] and ended.steps[-1] != ended.at:
            yield Problem(ended.steps[-1], f"can't be checked, since it uses {ended.at}: that {culprits[ended.at]}")
        steps = ended.steps if culprit in (ended.at, *done) else ended.steps[:-1]  # which was another one's doing
        new = [step for step in dict.fromkeys((*steps, culprit)) if step and step not in done]
        if not new:
            return
        done += new


def _culprit(ended: watching.Ended, done: Collection[str]) -> str:
    """The pack whose code ended a process: perhaps a thread's, while another pack was looked at.

    One that was left out before doesn't run by itself, so that is the doing of the pack that is looked at.
    """
    owner = _owner(ended.file) if ended.file else ""
    return owner if owner and (owner not in done or not ended.at) else ended.at


def _owner(file: str) -> str:
    """The name of the pack whose file this is; nothing if it isn't a pack's."""
    folders = [os.path.join(os.path.abspath(entry), "") for entry in sys.path]
    inside = max([folder for folder in folders if file.startswith(folder)], key=len, default=None)
    if inside is None:
        return ""
    module = os.path.splitext(file.removeprefix(inside))[0].replace(os.sep, ".")
    pack = manifest.read().scopes.pack_of(module)
    return pack.name if pack is not None else ""


def _problem(ended: watching.Ended, culprit: str) -> Problem:
    what = "it" if culprit and culprit == ended.at else ended.at or "packs"
    patience = "; --seconds gives it more time" if ended.why.startswith("takes") else ""
    todo = f"COREJAX_DISABLE_PACKS={culprit} leaves it out" if culprit else "python -m corejax check says more"
    return Problem(culprit or "corejax", f"checking {what} {ended.why}" + (f": {ended.place}" if ended.place else ""),
                   todo + patience)
