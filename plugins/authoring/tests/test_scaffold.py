"""Packs from nothing: each kind is written, installed, and passes its own tests, `check` and mypy as it is."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from corejax.errors import CorejaxError, CorejaxRuntimeError, CorejaxValueError
from corejax.inspect import cli
from corejax_authoring import scaffold
from pythons import compiler, run

#: Whose laws `make test` checks; `make test-all` takes every kind.
SAMPLED = ("elementwise", "structured", "transform")


def name_of(kind: str) -> str:
    return f"corejax-demo-{kind}"


def write(kind: str, into: Path) -> Path:
    *paths, todo = scaffold.new(name_of(kind), kind, str(into))
    folder = into / name_of(kind)
    assert sorted(paths) == sorted(str(path) for path in folder.rglob("*") if path.is_file())
    assert f"cd {folder}" in todo
    return folder


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a repository of each kind."""
    folder = tmp_path_factory.mktemp("written")
    for kind in scaffold.KINDS:
        write(kind, folder)
    return folder


@pytest.fixture(scope="module")
def installed(written: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all packs in `packages`, and the tests of each in a folder of its own."""
    folder = tmp_path_factory.mktemp("installed")
    kinds = [kind for kind in scaffold.KINDS if kind != "native" or compiler()]
    for kind in kinds:
        shutil.copytree(written / name_of(kind), folder / "source" / kind)
        shutil.copytree(written / name_of(kind) / "tests", folder / kind / "tests")
    run(folder, None, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-compile", "--target",
        "packages", *(f"./source/{kind}" for kind in kinds))
    return folder


def kinds_in(installed: Path) -> list[str]:
    return [kind for kind in scaffold.KINDS if (installed / kind).exists()]


def run_tests(installed: Path, *options: str) -> str:
    return run(installed, installed / "packages", "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider",
               "--import-mode=importlib", "--rootdir", str(installed), *options)


# As they are written

def test_there_is_a_folder_of_templates_for_each_kind_and_help_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert sorted(scaffold.KINDS) == sorted(path.name for path in (scaffold.TEMPLATES / "kinds").iterdir())
    assert 0 == cli.main(["new", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert ", ".join(scaffold.KINDS[:-1]).replace("elementwise", "elementwise (the default)") in said


def test_a_repository_has_all_that_it_needs(written: Path) -> None:
    for kind in scaffold.KINDS:
        folder, stem = written / name_of(kind), f"demo_{kind}"
        wanted = {".gitignore", ".github/workflows/tests.yml", "README.md", "pyproject.toml", "tests/test_rules.py",
                  f"tests/test_{stem}.py", f"corejax_{stem}/__init__.py", f"corejax_{stem}/py.typed"}
        texts = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
        assert wanted <= texts.keys()
        lines = [line for text in texts.values() for line in text.splitlines()]
        assert "      - run: pytest --corejax-full\n" in texts[".github/workflows/tests.yml"]
        assert ["          python-version: ${{ matrix.python }}"] == [line for line in lines if "$" in line]
        assert max(map(len, lines)) <= 130


def test_their_entry_points_are_those_that_would_be_written(written: Path) -> None:
    assert "the entry points are up to date" == run(
        written, None, "-m", "corejax", "entry-points", "--check", *map(name_of, scaffold.KINDS))


def test_ruff_finds_nothing_with_their_settings(written: Path) -> None:
    assert "All checks passed!" == run(written, None, "-m", "ruff", "check", ".")


@pytest.mark.slow
def test_mypy_finds_nothing_with_their_settings(written: Path) -> None:
    # Files of one name can't be checked together: that of the kind with the most to check, for all.
    files = [str(path) for path in sorted(written.glob("*/*/*.py"))
             if path.name != "test_rules.py" or path.is_relative_to(written / name_of("rules"))]
    assert f"Success: no issues found in {len(files)} source files" == run(
        written, None, "-m", "mypy", "--cache-dir", "cache", "--config-file",
        f"{name_of('elementwise')}/pyproject.toml", *files)


# Installed together

@pytest.mark.slow
def test_check_finds_nothing_broken(installed: Path) -> None:
    assert "nothing is broken" == run(installed, installed / "packages", "-m", "corejax", "check")


@pytest.mark.slow
def test_what_they_compute_is_right_and_so_are_the_rules_of_some(installed: Path) -> None:
    chosen = " or ".join(f"demo_{kind}:" for kind in SAMPLED)
    packages = [str(path) for path in installed.glob("packages/corejax_demo_*") if path.suffix != ".dist-info"]
    assert " passed" in run_tests(installed, *kinds_in(installed), "--doctest-modules", *packages,
                                  "-k", f"not test_rules or {chosen}")


@pytest.mark.slow
def test_the_example_in_each_readme_runs(installed: Path) -> None:
    examples = [(installed / "source" / kind / "README.md").read_text().partition("```py\n")[2].partition("```")[0]
                for kind in kinds_in(installed)]
    assert all(examples)
    run(installed, installed / "packages", "-c", f"for example in {examples!r}: exec(example)")


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", scaffold.KINDS)
def test_every_law_holds(installed: Path, kind: str) -> None:
    if kind not in kinds_in(installed):
        pytest.skip("there is no C++ compiler, which building it takes: install one, or set CXX")
    assert " passed" in run_tests(installed, kind, "--corejax-full")  # as the workflow does


# Names

@pytest.mark.parametrize(("given", "distribution", "module", "name"), [
    ("corejax-smooth", "corejax-smooth", "corejax_smooth", "smooth"),
    ("My_Own.Pack", "my-own-pack", "my_own_pack", "my_own_pack"),
    ("quaternions2", "quaternions2", "quaternions2", "quaternions2")])
def test_names_are_normalized(tmp_path: Path, given: str, distribution: str, module: str, name: str) -> None:
    list(scaffold.new(given, "elementwise", str(tmp_path)))
    project = (tmp_path / distribution / "pyproject.toml").read_text()
    assert f'name = "{distribution}"\n' in project and f'{name} = "{module}:{name}"\n' in project


@pytest.mark.parametrize("name", ["", "1st", "a/b", "../up", "naïve", "a b", "corejax-", "corejax-lambda",
                                  "corejax-2d"])
def test_names_that_no_pack_can_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(CorejaxValueError, match="a pack can't be called") as caught:
        list(scaffold.new(name, "elementwise", str(tmp_path)))
    assert "corejax-smooth" in str(caught.value)
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(("name", "kind", "said"), [
    ("random", "elementwise", "there is a module random already"), ("pytest", "rules", "call it corejax-pytest"),
    ("corejax", "elementwise", "there is a module corejax already"),
    ("corejax-softplus", "rules", "there is a module corejax_softplus already"),
    ("corejax-exp", "structured", "corejax-lax-basic 0.1.0 provides the primitive 'exp' already"),
    ("corejax-full", "structured", "corejax-lax-basic 0.1.0 provides the function 'full' already"),
    ("corejax-concatenate", "native", "provides the primitive 'concatenate' already"),
    ("corejax-lax", "elementwise", "the files of this kind use the name lax for something else"),
    ("corejax-sample", "structured", "use the name Sample for"), ("corejax-step", "carrying", "use the name step for"),
    ("corejax-float32", "dtype", "corejax or NumPy provides the element type 'float32' already"),
    ("corejax-export", "namespace", "corejax provides the namespace 'export' already"),
    ("corejax-pmap", "namespace", "corejax-collectives 0.1.0 provides the function 'pmap' already"),
    ("corejax-interval", "transform", "use the name Interval for"),
    ("corejax-transpose", "transform", "corejax has a hook or a declaration 'transpose' already"),
    ("corejax-function", "transform", "corejax has a hook or a declaration 'function' already")])
def test_names_that_are_taken(tmp_path: Path, name: str, kind: str, said: str) -> None:
    with pytest.raises(CorejaxValueError) as caught:
        list(scaffold.new(name, kind, str(tmp_path)))
    assert said in str(caught.value) and "to do:" in str(caught.value)
    assert [] == list(tmp_path.iterdir())


def test_rules_may_be_called_after_what_they_are_for(tmp_path: Path) -> None:
    list(scaffold.new("corejax-asin", "rules", str(tmp_path)))
    assert (tmp_path / "corejax-asin/pyproject.toml").exists()


# Where they go

def test_an_unknown_kind(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert 1 == cli.main(["new", "corejax-smooth", "--kind", "elementwize", "--in", str(tmp_path)])
    said = capsys.readouterr().err
    assert "there is no kind 'elementwize' of packs" in said and "did you mean 'elementwise'?" in said


def test_an_empty_folder_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "smooth").mkdir()
    list(scaffold.new("smooth", "rules", str(tmp_path)))
    assert (tmp_path / "smooth/README.md").exists()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    folder = tmp_path / "corejax-smooth"
    list(scaffold.new("corejax-smooth", "rules", str(tmp_path)))
    (folder / "README.md").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(CorejaxValueError, match="exists, and isn't an empty folder"):
        list(scaffold.new("corejax-smooth", "elementwise", str(tmp_path)))
    assert ("mine", before) == ((folder / "README.md").read_text(), sorted(tmp_path.rglob("*")))
    (tmp_path / "corejax-other").write_text("a file")
    with pytest.raises(CorejaxError, match="exists, and isn't an empty folder"):
        list(scaffold.new("corejax-other", "elementwise", str(tmp_path)))


def test_a_folder_that_can_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CorejaxRuntimeError, match="can't be written") as caught:
        list(scaffold.new("corejax-smooth", "rules", str(tmp_path / "file")))
    assert "NotADirectoryError" in str(caught.value) and "--in" in str(caught.value)
    list(scaffold.new("corejax-smooth", "rules", str(tmp_path / "new/one")))
    assert (tmp_path / "new/one/corejax-smooth/README.md").exists()
