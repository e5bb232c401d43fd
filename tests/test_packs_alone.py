"""Each pack's own tests pass where nothing is installed but that pack, those that it needs, and the kit."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from exhaustive import exhaustive_unless
from imports import ROOT
from pack_suites import PACKS, command, dependents, needed

#: What `make test` takes: one that needs others and is soon tested. The rest run there with other packs out of use.
TAKEN = "fft"


def environment(folder: Path, pack: str) -> Path:
    """The Python of a new environment with wheels of what a pack needs, beside the libraries of this one."""
    venv.create(folder)
    packages = next(folder.glob("lib/*/site-packages"))
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "corejax" not in path.name and path.suffix != ".pth" and not path.name.startswith("__editable__"):
            (packages / path.name).symlink_to(path)
    wheels = folder / "wheels"
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    projects = [ROOT, ROOT / "plugins/testing", *[PACKS[each] for each in needed(pack)]]
    _done([*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(wheels), *map(str, projects)])
    _done([*pip, "install", "--no-deps", "--no-index", "--no-compile", "--target", str(packages),
           *map(str, sorted(wheels.glob("*.whl")))])
    return folder / "bin/python"


def _done(command: list[str]) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COREJAX_", "PYTEST_"))}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="it makes links")
@pytest.mark.parametrize("pack", exhaustive_unless(TAKEN.__eq__, PACKS))
def test_its_tests_pass_with_nothing_else(pack: str, tmp_path: Path) -> None:
    python = environment(tmp_path, pack)
    code = "import corejax, importlib_metadata as m; print(corejax.__file__, *{d.name for d in m.distributions()})"
    place, *installed = _done([str(python), "-P", "-c", code]).split()
    assert Path(place).is_relative_to(tmp_path)
    assert {f"corejax-{each.replace('_', '-')}" for each in needed(pack)} | {"corejax", "corejax-testing"} == {
        name for name in installed if name.startswith("corejax")}
    said = _done([str(python), "-P", *command(pack, "not exhaustive", rules=False)[1:], "-p", "no:cacheprovider"])
    assert " passed" in said.splitlines()[-1]


def test_what_needs_a_pack_is_found() -> None:
    assert "lax_basic" in needed("fft") and "numpy" not in needed("fft")
    assert ["fft", "nn", "numpy", "random"] == dependents(["fft"])
    assert dependents(["lax_basic"]) == sorted(PACKS.keys() - {"processes"})
    assert 10 <= len(PACKS) and not {"testing", "authoring"} & PACKS.keys()
