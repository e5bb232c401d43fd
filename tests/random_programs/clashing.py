"""The same programs where other installed packs bring all the names of the standard packs again: bit for bit the same.

Those packs' functions and primitives raise errors when they are used. Users say what they mean by preferring the
standard packs, or by importing from them.
"""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import tempfile
from functools import cache
from importlib import import_module
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import numpy as np

import corejax as cj

from .comparing import Outcome, Refused, difference, outcome
from .oracles import Difference, Oracle
from .programs import Program

ROOT = Path(__file__).resolve().parents[2]


def standard() -> list[str]:
    """The distributions of the standard packs: what `corejax[std]` requires."""
    found = [re.match(r"[\w-]+(?=.*extra == .std.)", line) for line in distribution("corejax").requires or []]
    return sorted([match[0] for match in found if match and any(
        [entry.group.startswith("corejax.") for entry in distribution(match[0]).entry_points])])


def names(pack: str, *groups: str) -> list[str]:
    """The names of the functions and primitives of a pack, or of what it has in these groups of entry points."""
    return [entry.name for entry in distribution(pack).entry_points
            if entry.group in (groups or (FUNCTIONS_GROUP, PRIMITIVES_GROUP)) and "/" not in entry.name]


FUNCTIONS_GROUP, PRIMITIVES_GROUP = "corejax.functions", "corejax.primitives"


FUNCTIONS = '''
def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    def function(*args, **params):
        raise RuntimeError(f"{name} of a rival was called")
    function.__name__ = name
    return function
'''

PRIMITIVES = '''
from corejax.plugin import define, hookimpl

class Rival:
    """A primitive that isn't meant."""
    def __init__(self, name):
        self.name = name

    @hookimpl
    def impl(self, args):
        raise RuntimeError(f"{self.name} of a rival was evaluated")

    @hookimpl
    def abstract_eval(self, avals):
        raise RuntimeError(f"{self.name} of a rival was traced")

def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    handle = globals()[name] = define(Rival(name))
    return handle
'''


def write(folder: Path, name: str, group: str, entries: list[str], module: str) -> None:
    """A distribution whose entry points in this group have these names."""
    package = name.replace("-", "_")
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Dist: corejax\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n" + "".join([f"{key} = {package}:{key}\n" for key in entries]))
    (folder / f"{package}.py").write_text(module)


def install(folder: Path, which: str) -> None:
    """Rival packs into a folder, to be on the path: one with functions, one with primitives, or three with some."""
    everything = sorted({name for pack in standard() for name in names(pack)})
    primitives = sorted({name for pack in standard() for name in names(pack, PRIMITIVES_GROUP)})
    if which == "functions":
        write(folder, "rival-functions", FUNCTIONS_GROUP, everything, FUNCTIONS)
    elif which == "primitives":
        write(folder, "rival-primitives", PRIMITIVES_GROUP, primitives, PRIMITIVES)
    else:
        write(folder, "a-rival", FUNCTIONS_GROUP, everything[::2], FUNCTIONS)
        write(folder, "rival-of-rivals", FUNCTIONS_GROUP, everything[1::3], FUNCTIONS)
        write(folder, "z-rival", PRIMITIVES_GROUP, primitives[::2], PRIMITIVES)


#: Which rivals there are, and what users do about it.
SURROUNDINGS = [(which, how) for which in ("functions", "primitives", "several") for how in ("prefer", "import")]


class Facades:
    """The functions of the standard packs, imported from the packs."""

    def __init__(self) -> None:
        self._homes = {name: pack for pack in standard() for name in names(pack)}

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._homes[name].replace("-", "_")), name)


class Surrounded:
    """A process in which rival packs are installed; it runs programs."""

    def __init__(self, which: str, how: str) -> None:
        self.folder = tempfile.TemporaryDirectory()
        install(Path(self.folder.name), which)
        path = os.pathsep.join([self.folder.name, str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
        self.process = subprocess.Popen([sys.executable, "-W", "ignore", "-c", ANSWERING, how], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}, cwd=ROOT)

    def run(self, program: Program) -> Outcome:
        assert self.process.stdin and self.process.stdout
        pickle.dump(program.for_another_process(), self.process.stdin)
        self.process.stdin.flush()
        found = pickle.load(self.process.stdout)
        return Refused(RuntimeError(found)) if isinstance(found, str) else found


ANSWERING = f"import sys; from {__name__} import answering; answering(sys.argv[1])"


def answering(how: str) -> None:
    """What such a process does."""
    lax: Any = Facades() if how == "import" else cj.lax
    if how == "prefer":
        cj.plugins.prefer(*standard())
    given, out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            program = pickle.load(given)
        except EOFError:
            return
        with np.errstate(all="ignore"):
            found = result(program, lax)
        pickle.dump(str(found) if isinstance(found, Refused) else found, out)
        out.flush()


def result(program: Program, lax: Any) -> Outcome:
    """What it gives; of most programs the text that is compiled, which is done in a tenth of the time."""
    def lowered() -> Any:
        args = [program.inputs[key] for key in program.slots]
        return cj.jit(program.transformed(cj, lax)).lower(*args).as_text()
    if program.seed // len(SURROUNDINGS) % RUN_ONE_OF:
        return outcome(lambda: [np.array(lowered())], list)
    return outcome(lambda: program.run(cj, lax, lax.copy), cj.tree.leaves)


RUN_ONE_OF = 5


class Clashing(Oracle):
    """This process, where no other packs are installed."""

    name = "without clashes"

    def __init__(self) -> None:
        self.surrounded = cache(Surrounded)

    def subject(self, program: Program) -> Outcome:
        return self.surrounded(*SURROUNDINGS[program.seed % len(SURROUNDINGS)]).run(program)

    def difference(self, program: Program, got: Outcome) -> Difference | None:
        wanted = result(program, cj.lax)
        if isinstance(got, Refused) and "rival" in str(got):
            return "error", f"got {got}"
        if isinstance(got, Refused) or isinstance(wanted, Refused):
            return difference(got, wanted, lambda leaf: 0.0)
        if got[0].value.dtype.kind == "U":
            texts = got[0].value, wanted[0].value
            return None if texts[0] == texts[1] else ("value", "got {}\nwanted {}".format(*texts))
        found = difference(got, wanted, lambda leaf: 0.0)
        if found:
            return found
        return next((("value", f"result {i} has other bits: got {x}\n  wanted {y}") for i, (x, y) in
                     enumerate(zip(got, wanted, strict=True)) if x.value.tobytes() != y.value.tobytes()), None)
