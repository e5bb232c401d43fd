"""Run the quick tests under every release line of jaxlib and every CPython that is found here, and print a table.

    python tools/matrix.py [--only PYTHON-JAXLIB ...] [--workers N] [--anew]

Each pair, such as 3.12-0.11, gets its own virtual environment in .venv-matrix/, which is kept for next time, and a log
beside it. Pairs run one after the other. The exit status is 1 if a test fails, or if nothing could be run.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".venv-matrix"
PYTHONS = ("3.11", "3.12", "3.13")
#: The release lines that corejax supports: their names, and what to ask pip for.
JAXLIBS = {"0.10": "jaxlib==0.10.2", "0.11": "jaxlib==0.11.*", "0.12": "jaxlib==0.12.*"}
_PIP_FAILED = "pip failed: "
_OUTCOMES = re.compile(r"^(?=.*\b(?:passed|failed|errors?)\b).* in [\d.]+s.*$", re.MULTILINE)


def candidates(version: str) -> Iterator[str]:
    """Where an interpreter of this version may be."""
    yield sys.executable
    yield from filter(None, [shutil.which(f"python{version}")])
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    yield from (str(path) for path in sorted(pyenv.glob(f"{version}.*/bin/python")))


def interpreter(version: str) -> str | None:
    """A working interpreter of this version: a shim may be there for one that isn't selected."""
    for path in candidates(version):
        done = subprocess.run([path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                              capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout.strip() == version:
            return path
    return None


def projects() -> list[Path]:
    """The folders of the packs of the repository, and of their stubs."""
    return [*sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml")), ROOT / "examples/softplus_pack",
            ROOT / "stubs"]


def prepare(python: str, jaxlib: str, folder: Path) -> str | None:
    """Make the environment, or bring it up to date with the projects; returns what is wrong if that fails."""
    done = folder / "done"
    newest = max((path / "pyproject.toml").stat().st_mtime for path in (ROOT, *projects()))
    if done.exists() and done.stat().st_mtime > newest:
        return None
    subprocess.run([python, "-m", "venv", folder], check=True)
    options = [option for path in projects() for option in ("-e", str(path))]
    pip = [str(folder / "bin/python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    found = subprocess.run([*pip, JAXLIBS[jaxlib], "-e", ".[test]", *options], cwd=ROOT, capture_output=True,
                           text=True, check=False)
    if found.returncode:
        shutil.rmtree(folder)
        if "No matching distribution found for jaxlib" in found.stderr:
            return "no such release"
        return _PIP_FAILED + (found.stderr.strip().splitlines() or ["without a word"])[-1]
    done.touch()
    return None


def run(folder: Path, workers: int) -> tuple[bool, str]:
    """Run the quick tests in an environment: whether all passed, and the counts."""
    command = ["make", "-k", "--no-print-directory", "quick-suite", f"IN={folder.relative_to(ROOT)}",
               f"WORKERS={workers}"]
    log = folder.with_suffix(folder.suffix + ".log")
    with log.open("w", encoding="utf-8") as file:
        done = subprocess.run(command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, check=False)
    return done.returncode == 0, counts(log.read_text(encoding="utf-8"))


def counts(log: str) -> str:
    """The outcomes of all pytest runs in a log, added up: `3 failed, 120 passed`."""
    total: dict[str, int] = {}
    for line in _OUTCOMES.findall(log):
        for number, word in re.findall(r"(\d+) (failed|passed|skipped|xfailed|errors?)\b", line):
            word = "error" if word == "errors" else word
            total[word] = total.get(word, 0) + int(number)
    return ", ".join(f"{total[word]} {word}" for word in ("failed", "error", "passed", "skipped", "xfailed")
                     if word in total) or "no test ran"


def release(folder: Path) -> str:
    """Which release of jaxlib an environment has."""
    code = "import importlib.metadata; print(importlib.metadata.version('jaxlib'))"
    return subprocess.run([folder / "bin/python", "-c", code], capture_output=True, text=True,
                          check=True).stdout.strip()


def table(cells: dict[tuple[str, str], str]) -> str:
    """The outcomes as a Markdown table: a row for each Python, a column for each release line of jaxlib."""
    rows = [["CPython", *[f"jaxlib {line}" for line in JAXLIBS]], ["---"] * (len(JAXLIBS) + 1)]
    rows += [[python, *[cells.get((python, line), "not run") for line in JAXLIBS]] for python in PYTHONS]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the pairs one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], metavar="PYTHON-JAXLIB")
    parser.add_argument("--workers", type=int, default=2, metavar="N")
    parser.add_argument("--anew", action="store_true", help="make new environments")
    options = parser.parse_args(arguments)
    pairs = {f"{python}-{line}": (python, line) for python in PYTHONS for line in JAXLIBS}
    unknown = [name for name in options.only if name not in pairs]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(pairs)}")
    cells, passed = {}, []
    for name, (python, line) in pairs.items():
        if options.only and name not in options.only:
            continue
        found, folder = interpreter(python), HOME / name
        if options.anew:
            shutil.rmtree(folder, ignore_errors=True)
        problem = "no interpreter" if found is None else prepare(found, line, folder)
        if problem is None:
            good, outcome = run(folder, options.workers)
            passed.append(good)
            problem = f"{release(folder)}: {outcome}"
        elif problem.startswith(_PIP_FAILED):
            passed.append(False)
        cells[python, line] = problem
        print(f"{name}: {problem}", flush=True)
    print("\n" + table(cells))
    return 0 if passed and all(passed) else 1


if __name__ == "__main__":
    raise SystemExit(main())
