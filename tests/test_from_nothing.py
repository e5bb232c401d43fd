"""The page "From nothing to PyPI", followed from top to bottom: its commands run, its files are written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from imports import ROOT

PAGE = ROOT / "docs/from-nothing-to-pypi.md"
BLOCK = re.compile(r"(?P<skipped><!-- not run: [^\n]* -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.M | re.S)

#: The same commands without the network: what packs require is here already.
OFFLINE = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_COMPILE": "1"}


def blocks() -> Iterator[tuple[str, str]]:
    """(language, text) of each block that isn't marked as needing the network."""
    for found in BLOCK.finditer(PAGE.read_text()):
        if not found["skipped"]:
            yield found["language"], found["text"]


def environment(folder: Path) -> dict[str, str]:
    """Variables of a fresh environment in a folder, which sees what is installed in this one."""
    venv.create(folder, symlinks=os.name != "nt")
    python = next(folder.glob("bin/python"))
    for command in ("pip", "pytest", "mypy"):
        script = python.with_name(command)
        script.write_text(f'#!/bin/sh\nexec {python} -m {command} "$@"\n')
        script.chmod(0o755)
    here = sysconfig.get_path("purelib")
    packages = next(folder.glob("lib/*/site-packages"))
    (packages / "outer.pth").write_text(f"import site; site.addsitedir({here!r})\n")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COREJAX_", "PIP_"))}
    return kept | OFFLINE | {"PATH": f"{python.parent}{os.pathsep}{kept['PATH']}", "VIRTUAL_ENV": str(folder)}


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the page is written for a POSIX shell")
def test_following_the_page_makes_a_wheel_that_works(tmp_path: Path) -> None:
    variables, folder, said = environment(tmp_path / "env"), tmp_path / "work", ""
    folder.mkdir()
    for language, text in blocks():
        first, _, rest = text.partition("\n")
        if language == "sh":
            script = f"set -e\n{text}\necho; pwd"
            done = subprocess.run(["sh", "-c", script], cwd=folder, env=variables, capture_output=True, text=True)
            assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
            said, folder = said + done.stdout, Path(done.stdout.splitlines()[-1])
        elif language == "py":
            (folder / first.removeprefix("# ")).write_text(rest)
        else:
            file, table = first.removeprefix("# ").split(", in ")
            path = folder / file
            path.write_text(path.read_text().replace(f"{table}\n", f"{table}\n{rest}", 1))
    assert 2 == said.count("nothing is broken") == said.count("Success: no issues found")
    assert "entry points written" in said and "the entry points are up to date" in said
    assert "gated (corejax-swish 0.1.0): a function, its only provider" in said
    assert "every transformation works" in said
    subprocess.run([sys.executable, "-m", "ruff", "check", "."], cwd=folder, check=True)
    wheel, = folder.glob("dist/*.whl")
    assert "corejax_swish-0.1.0-py3-none-any.whl" == wheel.name


def test_what_no_test_runs_is_marked_and_little() -> None:
    skipped = [found["text"] for found in BLOCK.finditer(PAGE.read_text()) if found["skipped"]]
    assert 2 == len(skipped) and "twine upload" in skipped[1]
    assert {"sh", "py", "toml"} == {language for language, _ in blocks()}
