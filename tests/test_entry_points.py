"""The entry-point tables of the packs are what their modules export, and the generator notices when they aren't."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from imports import ROOT

TOOL = ROOT / "tools/entry_points.py"
PACK = ROOT / "examples/softplus_pack"


def generate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(TOOL), *arguments], capture_output=True, text=True)


def copied(directory: Path) -> Path:
    return Path(shutil.copytree(PACK, directory / "pack", ignore=shutil.ignore_patterns("__pycache__")))


def test_tables_of_the_packs_are_up_to_date() -> None:
    done = generate("--check")
    assert 0 == done.returncode, done.stdout + done.stderr


def test_a_new_public_function_is_drift_until_it_is_written(tmp_path: Path) -> None:
    pack = copied(tmp_path)
    module = pack / "corejax_softplus/__init__.py"
    module.write_text(module.read_text().replace('["softplus"]', '["softplus", "twice"]')
                      + "\n\ndef twice(x):\n    return x + x\n")
    assert 1 == generate("--check", str(pack)).returncode
    assert 0 == generate(str(pack)).returncode
    assert 0 == generate("--check", str(pack)).returncode
    functions = (pack / "pyproject.toml").read_text().partition('"corejax.functions"]')[2]
    assert 'twice = "corejax_softplus:twice"' in functions


def test_roles_and_operators_become_roles(tmp_path: Path) -> None:
    pack = copied(tmp_path)
    (pack / "corejax_softplus/roles.py").write_text("__all__ = ['zeros']\ndef zeros(aval): ...\n")
    (pack / "corejax_softplus/operators.py").write_text("__all__ = ['and_', 'sum']\ndef and_(x, y): ...\nsum = and_\n")
    assert 0 == generate(str(pack)).returncode
    roles = (pack / "pyproject.toml").read_text().partition('"corejax.roles"]')[2]
    assert 'zeros = "corejax_softplus.roles:zeros"' in roles
    assert '"operators.and" = "corejax_softplus.operators:and_"' in roles
    assert '"operators.sum" = "corejax_softplus.operators:sum"' in roles
    assert 'softplus = "corejax_softplus:softplus"' in (pack / "pyproject.toml").read_text()
