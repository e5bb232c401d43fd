"""Runs the tests of packs, each where only that pack and those that it needs are in use.

    python tests/shared/pack_suites.py [--also-dependents] [--rules] [-m MARKS] [NAME ...]

NAME is a folder of plugins/; without any, all are tested. `--also-dependents` adds the packs that need one of them,
`--rules` runs the conformance kit on what is named. Two run at a time, those with most to do first.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import left_out

ROOT = Path(__file__).resolve().parents[2]

#: By the names of their folders in plugins/. Tools for authors have no entry points that are written for them.
PACKS = {path.parent.name: path.parent for path in sorted(ROOT.glob("plugins/*/pyproject.toml"))
         if "entry points: written by" in path.read_text(encoding="utf-8")}


@cache
def distribution(pack: str) -> str:
    """The name of a pack's distribution."""
    name: str = _project(pack)["name"]
    return name


@cache
def _project(pack: str) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((PACKS[pack] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


def needed(pack: str) -> list[str]:
    """The packs that a pack requires, itself first, in turn; and those that its own tests name, in their extra."""
    project = _project(pack)
    found, todo = [pack], [*project["dependencies"], *project.get("optional-dependencies", {}).get("test", ())]
    while todo:
        name = re.split(r"[^\w-]", todo.pop())[0].removeprefix("corejax-").replace("-", "_")
        if name in PACKS and name not in found:
            found.append(name)
            todo += _project(name)["dependencies"]
    return found


def dependents(packs: Iterable[str]) -> list[str]:
    """The packs that require one of these."""
    named = set(packs)
    required = {pack: {re.split(r"[^\w-]", text)[0] for text in _project(pack)["dependencies"]} for pack in PACKS}
    while True:
        wider = named | {pack for pack, names in required.items() if names & {distribution(each) for each in named}}
        if wider == named:
            return sorted(named)
        named = wider


def size(pack: str) -> int:
    """How much there is to test, roughly."""
    return sum([path.stat().st_size for path in (PACKS[pack] / "tests").rglob("*.py")])


def command(pack: str, marks: str, rules: bool) -> list[str]:
    """What runs a pack's tests, of what is in the checkout."""
    more = ["--corejax-pack", distribution(pack)] if rules else []
    return [sys.executable, "-m", "pytest", "-q", "-m", marks, *more, str((PACKS[pack] / "tests").relative_to(ROOT))]


def run(pack: str, marks: str, rules: bool) -> bool:
    """Run a pack's tests and print what comes of it: whether they passed."""
    packs = ",".join(map(distribution, needed(pack)))
    done = subprocess.run(command(pack, marks, rules), cwd=ROOT, env={**os.environ, "COREJAX_PACKS": packs}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    text = done.stdout.strip()
    summary = [line.partition(",")[0] for line in text.splitlines() if left_out.TOLD in line] + [text.splitlines()[-1]]
    print(f"plugins/{pack}: {text if done.returncode else '; '.join(summary)}", flush=True)
    return done.returncode == 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run those that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packs", nargs="*", metavar="NAME")
    parser.add_argument("--also-dependents", action="store_true")
    parser.add_argument("--rules", action="store_true")
    parser.add_argument("-m", dest="marks", default="", metavar="MARKS")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.packs if name not in PACKS]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)} in plugins/; there are {', '.join(PACKS)}")
    chosen = dependents(options.packs) if options.also_dependents else options.packs or PACKS
    with ThreadPoolExecutor(2) as pool:
        done = pool.map(lambda pack: run(pack, options.marks, options.rules and pack in options.packs),
                        sorted(chosen, key=size, reverse=True))
        return 0 if all([*done]) else 1


if __name__ == "__main__":
    raise SystemExit(main())
