"""Packs made up on the spot: distributions in a temporary folder, used by a Python of their own."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import forked

ROOT = Path(__file__).resolve().parents[2]

TOY = """
import numpy as np
from corejax.base.avals import ShapedArray
from corejax.plugin import define, hookimpl

class Toy:
    '''A toy.'''
    def __init__(self, name, factor):
        self.name = name
        self._factor = factor

    @hookimpl
    def impl(self, args):
        return np.multiply(args[0], self._factor)

    @hookimpl
    def abstract_eval(self, avals):
        return avals[0]
"""


class Site:
    """A folder on the path with the distributions that a test makes."""

    TOY = TOY

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: list[str] = []

    def pack(self, name: str, entries: Mapping[str, Mapping[str, str]] | str, modules: Mapping[str, str] | None = None,
             version: str = "1.0", requires: Sequence[str] = (), python: str = "", listed: bool = False) -> None:
        """A distribution with these entry points ({group: {name: value}}, or the text itself) and modules.

        Its metadata has a list of files only if they are to be `listed`.
        """
        info = self.folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + "".join(
            f"Requires-Dist: {line}\n" for line in requires) + (f"Requires-Python: {python}\n" if python else ""))
        if not isinstance(entries, str):
            entries = "".join(f"[corejax.{group}]\n" + "".join(f"{key} = {value}\n" for key, value in table.items())
                              for group, table in entries.items())
        (info / "entry_points.txt").write_text(entries)
        for module, text in (modules or {}).items():
            path = self.folder / (module.replace(".", "/") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        if listed:
            (info / "RECORD").write_text("".join(f"{module.replace('.', '/')}.py,,\n" for module in modules or ()))
        self.names.append(name)

    def toy(self, name: str, primitive: str = "toy", factor: float = 2.0, version: str = "1.0") -> None:
        """A pack with one good primitive, whose handle its entry point names."""
        module = name.replace("-", "_")
        self.pack(name, {"primitives": {primitive: f"{module}:{primitive}"}},
                  {module: f"{TOY}\n{primitive} = define(Toy({primitive!r}, {factor}))\n"}, version)

    def run(self, code: str, **environment: str) -> str:
        """What the code prints, in a new Python that sees these packs only."""
        env = {key: value for key, value in os.environ.items() if not key.startswith("COREJAX_")}
        env |= {"PYTHONPATH": os.pathsep.join((str(self.folder), str(ROOT))), "COREJAX_PACKS": ",".join(self.names)}
        env |= environment
        done = forked.run(PRELUDE + textwrap.dedent(code), env)
        assert done.returncode == 0, done.stderr
        return done.stdout


PRELUDE = """
import sys, warnings
import numpy as np
from corejax import lax
from corejax.errors import *
from corejax.installed import groups, manifest, registry
from corejax.plugin import define, find, hookimpl, operators, roles

def error(action):
    try:
        action()
    except BaseException as caught:
        return f"{type(caught).__name__}: {caught}"
    raise AssertionError("no error")
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """An empty `Site`."""
    return Site(tmp_path)
