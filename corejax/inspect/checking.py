"""What is wrong with packs, whatever they do: they are checked in processes of their own.

A pack that ends its process, or doesn't come to an end, is a problem that names it; the next process goes on with the
packs that come after.
"""

from __future__ import annotations

from collections.abc import Iterator

from corejax.inspect import watching
from corejax.inspect.answers import Problem

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
        if ended.at not in culprits:
            yield Problem(ended.at or "corejax", f"checking {'it' if ended.at else 'packs'} {ended.why}"
                          + (f": {ended.place}" if ended.place else ""), _leave_out(ended.at, ended.why))
            culprits[ended.at] = ended.why
        if ended.steps and " " not in ended.steps[-1] and ended.steps[-1] != ended.at:
            yield Problem(ended.steps[-1], f"can't be checked, since it uses {ended.at}: that {culprits[ended.at]}")
        if not set(ended.steps) - set(done):
            return  # nothing would be new
        done += [step for step in (*ended.steps, ended.at) if step and step not in done]


def _leave_out(pack: str, why: str) -> str:
    patience = "; --seconds gives it more time" if why.startswith("takes") else ""
    return (f"COREJAX_DISABLE_PACKS={pack} leaves it out" if pack else "python -m corejax check says more") + patience
