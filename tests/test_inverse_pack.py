"""The example pack with a transformation: installed by pip, tested, explained, and found by its entry points."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from imports import ROOT
from test_native_pack import run

pytestmark = pytest.mark.slow

PACK = ROOT / "examples/inverse_pack"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the pack is installed in, beside what this environment has."""
    folder = tmp_path_factory.mktemp("inverse")
    shutil.copytree(PACK, folder / "source", ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    shutil.move(folder / "source/tests", folder / "tests")
    run(folder, None, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target",
        str(folder / "packages"), str(folder / "source"))
    return folder


def test_its_own_tests_and_examples_pass_on_what_pip_built(installed: Path) -> None:
    said = run(installed, installed / "packages", "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "tests",
               "source/README.md", "--doctest-modules", "--doctest-glob=README.md", "packages/corejax_inverse",
               "-o", "doctest_optionflags=ELLIPSIS", "--rootdir", str(installed))
    assert " passed" in said


def test_check_and_explain_know_it(installed: Path) -> None:
    packages = installed / "packages"
    assert "nothing is broken" == run(installed, packages, "-m", "corejax", "check")
    said = run(installed, packages, "-m", "corejax", "explain", "tan")
    assert ("inverse: corejax-inverse 0.1.0, declared: absent('the tangent takes each value again and again') at "
            "corejax_inverse.tables:BASIC; added where there was none") in said
    said = run(installed, packages, "-m", "corejax", "explain", "cond")
    assert "inverse: derived through its programs, backward" in said


def test_without_it_a_row_with_an_inverse_is_a_row(installed: Path) -> None:
    program = """if True:
        import sys
        import corejax as cj, numpy as np
        from corejax import lax
        from corejax.plugin import define, families, not_differentiable
        half = define(families.unary("half", lambda x: x / 2, dtypes="f", jvp=not_differentiable("no"), doc="x / 2.",
                                     hlo=lambda ctx, args: ctx.lower(lambda x: x / 2, *args),
                                     rules={"inverse": lambda out, args: [out * 2]}))
        print(half(3.0).item(), "corejax_inverse" in sys.modules)
        try:
            print(cj.inverse(half)(1.5).item())
        except cj.CorejaxError as error:
            print(error.message)
    """
    assert "1.5 False\n3.0" == run(installed, installed / "packages", "-c", program)
    assert "1.5 False\n" in run(installed, None, "-c", program)
