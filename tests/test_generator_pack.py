"""The example of a third party's random generator: installed by pip, found by name, tested."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from imports import ROOT
from test_native_pack import run

pytestmark = pytest.mark.slow

PACK = ROOT / "examples/generator_pack"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the pack is installed in, beside what this environment has."""
    folder = tmp_path_factory.mktemp("generator")
    shutil.copytree(PACK, folder / "source", ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    shutil.move(folder / "source/tests", folder / "tests")
    run(folder, None, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target",
        str(folder / "packages"), str(folder / "source"))
    return folder


def test_its_own_tests_and_examples_pass_on_what_pip_built(installed: Path) -> None:
    said = run(installed, installed / "packages", "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "tests",
               "--doctest-modules", "packages/corejax_splitmix", "--rootdir", str(installed))
    assert " passed" in said


def test_check_knows_it(installed: Path) -> None:
    assert "nothing is broken" == run(installed, installed / "packages", "-m", "corejax", "check")


def test_it_is_short() -> None:
    assert len((PACK / "corejax_splitmix/__init__.py").read_text().splitlines()) <= 60
