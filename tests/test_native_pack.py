"""The example pack with a kernel in C++: built by pip, tested, exported from, cached, and gone again."""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path

import pytest

from imports import ROOT
from pythons import compiler, run

pytestmark = pytest.mark.slow

PACK = ROOT / "examples/native_pack"

#: The pack's own program, and how many programs this process compiles.
PROGRAM = """
    import sys
    import numpy as np
    import corejax as cj
    from corejax.base import _jaxlib

    compiled, compile_module = [], _jaxlib.compile_module
    _jaxlib.compile_module = lambda *args: compiled.append(1) or compile_module(*args)
    x = np.array([8.0, 4.0, 2.0])
    path = sys.argv[1]
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the pack is installed in, beside what this environment has."""
    if compiler() is None:
        pytest.skip("there is no C++ compiler, which building examples/native_pack takes: install one, or set CXX")
    folder = tmp_path_factory.mktemp("native")
    unneeded = shutil.ignore_patterns("__pycache__", "build", "*.egg-info", "*.so")
    shutil.copytree(PACK, folder / "source", ignore=unneeded)
    shutil.move(folder / "source/tests", folder / "tests")
    run(folder, None, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target",
        str(folder / "packages"), str(folder / "source"))
    return folder


def test_its_own_tests_pass_on_what_pip_built(installed: Path) -> None:
    said = run(installed, installed / "packages", "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "tests",
               "--rootdir", str(installed))
    assert " passed" in said


def test_check_finds_its_library_and_its_function(installed: Path) -> None:
    assert "nothing is broken" == run(installed, installed / "packages", "-m", "corejax", "check")
    broken = installed / "broken"
    shutil.copytree(installed / "packages", broken)
    for library in broken.glob("corejax_native/_kernels*"):
        library.unlink()
    said = run(installed, broken, "-m", "corejax", "check", fails=True)
    assert "corejax-native 0.1.0: the library of the kernel 'corejax-native.decaying_sum' is not there" in said


def test_programs_that_are_exported_or_cached_find_it_in_a_new_process(installed: Path) -> None:
    packages, path, cache = installed / "packages", str(installed / "program"), str(installed / "cache")

    def python(code: str, there: Path | None = packages, cached: bool = True) -> str:
        environment = {"COREJAX_COMPILATION_CACHE_DIR": cache} if cached else {}
        return run(installed, there, "-c", textwrap.dedent(PROGRAM) + textwrap.dedent(code), path, **environment)

    program = """
        f = cj.jit(cj.grad(lambda x: (cj.lax.decaying_sum(x, decay=0.5) ** 2).sum()))
        print(f(x).tolist(), len(compiled))
    """
    assert "[27.0, 22.0, 12.0] 1" == python(program)
    assert "[27.0, 22.0, 12.0] 0" == python(program)
    assert "[8.0, 8.0, 6.0]" == python("""
        exported = cj.export.export(lambda x: cj.lax.decaying_sum(x, decay=0.5), vjp_order=1)(x)
        open(path, "wb").write(exported.serialize())
        print(exported.call(x).tolist())""")
    load = """
        loaded = cj.export.deserialize(open(path, "rb").read())
        print(loaded.call(x).tolist(), cj.grad(lambda x: (loaded.call(x) ** 2).sum())(x).tolist())"""
    assert "[8.0, 8.0, 6.0] [27.0, 22.0, 12.0]" == python(load, cached=False)
    said = python("""
        try:
            cj.export.deserialize(open(path, "rb").read())
        except cj.errors.CorejaxError as error:
            print(error)""", there=None)
    assert said.startswith("the exported program ")
    assert "needs the kernel 'corejax-native.decaying_sum', which is missing: no installed pack provides it" in said
    assert said.endswith("to do:  pip install corejax-native")


def test_the_benchmark_prints_the_kernel_beside_the_callback(installed: Path) -> None:
    said = run(installed, installed / "packages", "-c", textwrap.dedent("""
        from corejax_native import benchmark
        benchmark.SECONDS = 0.01
        benchmark.main()"""))
    assert "kernel" in said and "callback" in said and 4 == len(said.splitlines())
