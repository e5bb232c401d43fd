"""A pack with every name of `lax` and one with every primitive change no program of the standard packs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from corejax.installed import manifest

PROGRAMS = Path(__file__).with_name("clashing_names.py")

RUN = """
import clashing_names
print("\\n".join(clashing_names.lines({every})))
"""


def pack(folder: Path, name: str, requires: list[str], module: str, **groups: list[str]) -> None:
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    lines = [f"[corejax.{group}]\n" + "".join(f"{each} = {name}:{each}\n" for each in names)
             for group, names in groups.items()]
    (info / "entry_points.txt").write_text("".join(lines))
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n" + "".join(
        f"Requires-Dist: {each}\n" for each in requires))
    (folder / f"{name}.py").write_text(module)


def run(every: int, *folders: Path) -> list[str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith("COREJAX_")}
    env["PYTHONPATH"] = os.pathsep.join(map(str, folders))
    done = subprocess.run([sys.executable, "-c", RUN.format(every=every)], env=env, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_packs_with_every_name_change_no_program(tmp_path, every):
    installed = manifest.read()
    standard = sorted(name for name in installed.packs if name.startswith("corejax-"))
    users, functions, primitives = [tmp_path / name for name in ("users", "functions", "primitives")]
    pack(users, "clashing_names", standard, PROGRAMS.read_text(), functions=["lines"])
    names = sorted({*installed.names_in_lax(), "linalg"})
    pack(functions, "every_function", [], "".join(
        f"def {name}(*args, **options):\n    raise AssertionError('{name} of the other pack')\n" for name in names),
        functions=names)
    names = sorted(installed.names("corejax.primitives"))
    pack(primitives, "every_primitive", [], "from corejax.plugin import define, hookimpl\n" + "".join(f"""
class _{name}:
    name = "{name}"

    @hookimpl
    def decompose(self, args, **params):
        raise AssertionError("{name} of the other pack")

{name} = define(_{name}())
""" for name in names), primitives=names)
    alone, beside = run(every, users), run(every, users, functions, primitives)
    assert [] == [(one, other) for one, other in zip(alone, beside, strict=True) if one != other]
    assert 1000 < len(alone) and 0.5 < sum(": raises" not in line for line in alone) / len(alone)
