"""Which versions of Python and jaxlib are said to work, where it is said; and the tool that runs the tests on them."""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
from types import SimpleNamespace
from typing import Any

import pytest

from corejax.base import _jaxlib
from corejax.errors import CorejaxAttributeError
from imports import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def load(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("tool", ROOT / path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


matrix = load("tools/matrix.py")


# What is said

def test_the_classifiers_are_the_pythons_of_the_matrix():
    said = [text.rpartition(" ")[2] for text in PROJECT["classifiers"] if re.search(r"Python :: 3\.", text)]
    assert list(matrix.PYTHONS) == said
    assert f">={matrix.PYTHONS[0]}" == PROJECT["requires-python"]


def test_the_bounds_of_jaxlib_are_those_of_the_matrix():
    wanted = next(text for text in PROJECT["dependencies"] if text.startswith("jaxlib"))
    first, last = next(iter(matrix.JAXLIBS.values())), list(matrix.JAXLIBS)[-1]
    low, high = re.fullmatch(r"jaxlib>=([\d.]+),<([\d.]+)", wanted).groups()
    assert f"jaxlib=={low}" == first
    assert [int(part) for part in high.split(".")] == [0, int(last.partition(".")[2]) + 1]


def test_packs_run_on_every_python_that_the_kernel_runs_on():
    for path in [*ROOT.glob("plugins/*/pyproject.toml"), *ROOT.glob("examples/*/pyproject.toml")]:
        assert PROJECT["requires-python"] == tomllib.loads(path.read_text())["project"]["requires-python"], path


def test_the_readme_names_them():
    page = (ROOT / "README.md").read_text()
    assert f"CPython {', '.join(matrix.PYTHONS[:-1])} or {matrix.PYTHONS[-1]}" in page
    assert "jaxlib 0.10.2, 0.11 or 0.12" in page
    assert ["0.10", "0.11", "0.12"] == list(matrix.JAXLIBS)


# How releases differ

def test_this_release_of_jaxlib_is_one_of_them():
    assert any(_jaxlib.version.startswith(line + ".") for line in matrix.JAXLIBS), _jaxlib.version


@pytest.mark.parametrize("arguments", [3, 4])
def test_result_handlers_are_made_with_and_without_the_argument_that_a_release_dropped(monkeypatch, arguments):
    def make(*args: Any) -> Any:
        if len(args) != arguments:
            raise TypeError("incompatible function arguments")
        return args

    monkeypatch.setitem(vars(_jaxlib), "runtime", SimpleNamespace(array_result_handler=make))
    assert ("aval", "sharding", False, True)[:arguments] == _jaxlib.result_handler("aval", "sharding")


def test_every_name_that_is_taken_from_jaxlib_is_there():
    missing = []
    for name, source in _jaxlib._SOURCES.items():
        try:
            getattr(_jaxlib, name)
        except (AttributeError, ImportError) as error:
            missing.append((name, source, error))
    assert [] == missing
    with pytest.raises(CorejaxAttributeError, match="uses nothing called 'no_such_name'"):
        _jaxlib.no_such_name  # noqa: B018


# The tool

def test_outcomes_of_all_runs_of_pytest_in_a_log_are_added_up():
    log = "....F\n== 1 failed, 120 passed in 3.00s ==\nmake: *** [x] Error 1\n" \
          "3 failed, 7 passed, 2 skipped, 1 xfailed, 1 error in 61.20s (0:01:01)\n"
    assert "4 failed, 1 error, 127 passed, 2 skipped, 1 xfailed" == matrix.counts(log)
    assert "609 passed" == matrix.counts("609 passed in 113.02s (0:01:53)\n")
    assert "no test ran" == matrix.counts("ModuleNotFoundError: No module named 'pytest'\n")


def test_the_table_has_a_row_for_each_python_and_a_column_for_each_release_line():
    table = matrix.table({("3.11", "0.10"): "0.10.2: 9 passed", ("3.11", "0.12"): "no such release"}).splitlines()
    assert "| CPython | jaxlib 0.10 | jaxlib 0.11 | jaxlib 0.12 |" == table[0]
    assert "| 3.11 | 0.10.2: 9 passed | not run | no such release |" == table[2]
    assert 2 + len(matrix.PYTHONS) == len(table)


def test_an_interpreter_is_taken_only_if_it_runs_and_is_of_that_version(tmp_path, monkeypatch):
    shim = tmp_path / "python9.9"
    shim.write_text("#!/bin/sh\necho not chosen >&2\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert matrix.interpreter("9.9") is None
    good = tmp_path / "versions/9.9.1/bin/python"
    good.parent.mkdir(parents=True)
    good.write_text("#!/bin/sh\necho 9.9\n")
    good.chmod(0o755)
    assert str(good) == matrix.interpreter("9.9")
    assert sys.executable == matrix.interpreter(".".join(map(str, sys.version_info[:2])))


def test_a_pair_that_there_is_not_is_refused(capsys):
    with pytest.raises(SystemExit):
        matrix.main(["--only", "3.10-0.10"])
    assert "there is no 3.10-0.10; there are 3.11-0.10" in capsys.readouterr().err


def test_nothing_that_could_be_run_is_a_failure(monkeypatch, capsys):
    monkeypatch.setattr(matrix, "interpreter", lambda version: None)
    assert 1 == matrix.main(["--only", "3.12-0.11"])
    assert "| 3.12 | not run | no interpreter | not run |" in capsys.readouterr().out
