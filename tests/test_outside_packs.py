"""Packs as outsiders write them, in tests/outside: built, installed together, tested, and gone again."""

from __future__ import annotations

import ast
import io
import re
import shutil
import textwrap
import tokenize
from functools import partial
from pathlib import Path

import pytest

from imports import ROOT, imports
from pythons import compiler, run as run_python

pytestmark = pytest.mark.slow

#: Packs that bring functions of the same names as these.
run = partial(run_python, COREJAX_DISABLE_PACKS="corejax-special,corejax-linear-algebra,corejax-fft,corejax-numpy,"
                                                "corejax-random,corejax-nn,corejax-checkify,corejax-callbacks,"
                                                "corejax-references,corejax-processes,corejax-taylor")

OUTSIDE = ROOT / "tests/outside"
PACKS = {path.parent.name: path.parent for path in sorted(OUTSIDE.glob("*/pyproject.toml"))}

#: What a pack may import of corejax, as docs/writing-a-pack.md says.
PUBLIC = {"corejax", *(f"corejax.{name}" for name in ("core", "errors", "ir", "lax", "plugin", "tree"))}

#: The primitives that `make test` runs the conformance kit on; `make test-all` takes all of them.
SAMPLED = ("erf", "searchsorted", "bounded_while")

#: For packs with kernels: a function to export, its arguments, and its value and slope.
EXPORTED = {
    "lapack": ("cj.vmap(lax.cholesky)", "(a[None],)",
               "[[[2.0, 0.0], [1.0, 2.0]]] [[[0.1875, 0.0], [0.25, 0.25]]]"),
    "native": ("lambda b: lax.tridiagonal_solve(0.0 * b, 2.0 + 0.0 * b, 0.0 * b, b)", "(x,)",
               "[0.5, 0.5, 0.5] [0.5, 0.5, 0.5]"),
}


def built() -> list[str]:
    return [name for name in PACKS if not (PACKS[name] / "setup.py").exists() or compiler()]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all packs installed in `packages`, and their tests in `tests`."""
    folder = tmp_path_factory.mktemp("outside")
    for name in built():
        shutil.copytree(PACKS[name], folder / "source" / name, ignore=shutil.ignore_patterns("__pycache__", "build"))
        shutil.copytree(PACKS[name] / "tests", folder / "tests", dirs_exist_ok=True)
    run(folder, None, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", "wheels",
        *(f"./source/{name}" for name in built()))
    run(folder, None, "-m", "pip", "install", "-q", "--no-deps", "--no-compile", "--target", "packages",
        *map(str, sorted(folder.glob("wheels/*.whl"))))
    return folder


def python(installed: Path, code: str, packages: bool = True, **environment: str) -> str:
    return run(installed, installed / "packages" if packages else None, "-c", textwrap.dedent(code), **environment)


# As they are written

def code_lines(source: str) -> int:
    """How many lines have code: neither blank, nor comments, nor docstrings."""
    lines: set[int] = set()
    begins = True
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
            continue
        docstring = begins and token.type == tokenize.STRING
        begins = token.type == tokenize.NEWLINE
        if not docstring and not begins:
            lines |= {*range(token.start[0], token.end[0] + 1)}
    return len(lines)


def pack_lines(name: str) -> int:
    """The lines of code of a pack: Python and C++, without its tests and its metadata."""
    sources = [*PACKS[name].glob("outside_*/*.py"), *PACKS[name].glob("setup.py")]
    native = [line for path in PACKS[name].glob("outside_*/*.cc") for line in path.read_text().splitlines()]
    return sum(code_lines(path.read_text()) for path in sources) + \
        len([line for line in native if line.strip() and not line.strip().startswith("//")])


def test_erf_and_its_gradient_take_at_most_15_lines() -> None:
    source = (PACKS["special"] / "outside_special/error_functions.py").read_text()
    erf = next(node for node in ast.parse(source).body if ast.unparse(node).startswith("erf = "))
    assert erf.end_lineno is not None
    assert code_lines("\n".join(source.splitlines()[:erf.end_lineno])) <= 15


def test_the_table_says_how_long_each_pack_is() -> None:
    table = (OUTSIDE / "README.md").read_text()
    said = {name: int(lines) for name, lines in re.findall(r"^\| \[(\w+)\].*\| *(\d+) *\|$", table, re.M)}
    assert {name: pack_lines(name) for name in PACKS} == said


@pytest.mark.parametrize("name", PACKS)
def test_only_public_names_of_corejax_are_imported(name: str) -> None:
    found = {item.module for path in (PACKS[name] / f"outside_{name}").rglob("*.py") for item in imports(path, {})}
    assert set() == {module for module in found if module.partition(".")[0] == "corejax"} - PUBLIC


# Installed together

@pytest.mark.exhaustive
def test_their_own_tests_pass(installed: Path) -> None:
    run_tests(installed, "-k", f"not test_rules or {' or '.join(f'{name}:' for name in SAMPLED)}")


@pytest.mark.exhaustive
def test_every_law_holds_for_all_their_primitives(installed: Path) -> None:
    run_tests(installed, "-m", "corejax")


def run_tests(installed: Path, *options: str) -> None:
    said = run(installed, installed / "packages", "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "tests",
               "--rootdir", str(installed), *options)
    assert " passed" in said


def test_check_finds_nothing_broken(installed: Path) -> None:
    assert "nothing is broken" == run(installed, installed / "packages", "-m", "corejax", "check")


def test_the_command_line_says_who_provides_what_and_what_waits(installed: Path) -> None:
    listed = run(installed, installed / "packages", "-m", "corejax", "plugins")
    assert set() == {f"outside-{name} 1.0.0" for name in built()} - {line.split(":")[0] for line in listed.splitlines()}
    erf = run(installed, installed / "packages", "-m", "corejax", "explain", "erf")
    assert "erf (outside-special 1.0.0): a primitive, its only provider" in erf
    assert "not taken, as nobody chose it: outside-rules 1.0.0" in erf
    erf = run(installed, installed / "packages", "-m", "corejax", "explain", "erf", COREJAX_PREFER="outside-rules")
    assert "xla_translation@cpu: outside-rules 1.0.0" in erf and "chosen by COREJAX_PREFER" in erf


def test_exported_programs_find_their_kernels_in_new_processes_or_ask_for_the_pack(installed: Path) -> None:
    names = [name for name in EXPORTED if name in built()]
    given = f"""
        import numpy as np
        import corejax as cj
        from corejax import lax

        a, x = np.array([[4.0, 2.0], [2.0, 5.0]]), np.ones(3)
        for name, (function, args, _) in {({name: EXPORTED[name] for name in names})!r}.items():
            args = eval(args)
    """
    python(installed, given + """
            exported = cj.export.export(cj.jit(eval(function)), vjp_order=1)(*args)
            open(name, "wb").write(exported.serialize())""")
    load = given + """
            try:
                loaded = cj.export.deserialize(open(name, "rb").read())
                slope = cj.grad(lambda x: loaded.call(x).sum())(*args)
                print(name, np.asarray(loaded.call(*args)).tolist(), np.asarray(slope).round(6).tolist())
            except cj.errors.PackError as error:
                print(name, error.message, "/", error.todo)"""
    assert [f"{name} {EXPORTED[name][2]}" for name in names] == python(installed, load).splitlines()
    kernels = {"lapack": "potrf_f64", "native": "tridiagonal_solve"}
    for name, said in zip(names, python(installed, load, packages=False).splitlines(), strict=True):
        target = f"outside-{name}.{kernels[name]}"
        assert f"needs the kernel {target!r}, which is missing: no installed pack provides it" in said
        assert said.endswith(f"/ pip install outside-{name}")


def test_the_pack_with_a_kernel_in_cpp_was_built(installed: Path) -> None:
    if "native" not in built():
        pytest.skip("there is no C++ compiler, which building tests/outside/native takes: install one, or set CXX")
    assert list((installed / "packages/outside_native").glob("_kernels*"))
