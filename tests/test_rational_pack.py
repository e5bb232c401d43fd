"""The example pack with an element type: installed by pip, tested, exported from, cached, and gone again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from imports import ROOT
from test_native_pack import run

pytestmark = pytest.mark.slow

PACK = ROOT / "examples/rational_pack"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the pack is installed in, beside what this environment has."""
    folder = tmp_path_factory.mktemp("rational")
    shutil.copytree(PACK, folder / "source", ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    shutil.move(folder / "source/tests", folder / "tests")
    run(folder, None, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target",
        str(folder / "packages"), str(folder / "source"))
    return folder


@pytest.mark.parametrize("which", ["not test_rules or rational_of or rational_parts or rational_to_float",
                                   pytest.param("test_rules", marks=pytest.mark.exhaustive)])
def test_its_own_tests_and_examples_pass_on_what_pip_built(installed: Path, which: str) -> None:
    said = run(installed, installed / "packages", "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "tests",
               "--doctest-modules", "packages/corejax_rational", "--rootdir", str(installed), "-k", which)
    assert " passed" in said


def test_check_and_stubs_know_it(installed: Path) -> None:
    assert "nothing is broken" == run(installed, installed / "packages", "-m", "corejax", "check")
    said = run(installed, installed / "packages", "-m", "corejax", "explain", "rational")
    assert "rational (corejax-rational 0.1.0): an element type, its only provider" in said


def test_programs_and_arrays_that_are_saved_need_it_in_a_new_process(installed: Path) -> None:
    packages = installed / "packages"
    cache = {"COREJAX_COMPILATION_CACHE_DIR": str(installed / "cache")}
    program = """if True:
        import pickle
        import corejax as cj
        from corejax import lax
        from corejax.base import _jaxlib
        compiled, compile_module = [], _jaxlib.compile_module
        _jaxlib.compile_module = lambda *args: compiled.append(1) or compile_module(*args)
    """
    save = program + """
        x = lax.rational([1, 2], [2, 3])
        del compiled[:]
        f = cj.jit(lambda x: lax.scan(lambda c, r: (lax.rational_mul(c, r), c), lax.rational_add(x[0], x[1]), x)[0])
        print(f(x), len(compiled))
        open("program", "wb").write(cj.export.export(f)(x).serialize())
        pickle.dump(x, open("array", "wb"))
    """
    load = program + """
        def load():
            x = pickle.load(open("array", "rb"))
            return cj.export.deserialize(open("program", "rb").read()).call(x)
        try:
            print(load())
        except cj.CorejaxError as error:
            print(error)
    """
    assert "7/18 1" == run(installed, packages, "-c", save, **cache)
    assert "7/18 0" == run(installed, packages, "-c", save, **cache)
    assert "7/18" == run(installed, packages, "-c", load)
    assert "no pack in use brings the element type 'rational'" in run(installed, None, "-c", load)
    excluded = run(installed, packages, "-c", load, COREJAX_DISABLE_PACKS="corejax-rational")
    assert "corejax-rational 0.1.0 provides it" in excluded
