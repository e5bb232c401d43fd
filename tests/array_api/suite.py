"""The standard's own test suite, run from a checkout of it and read by the names of its tests.

No copy of it is in this repository. `ARRAY_API_SUITE` is the folder of a checkout of data-apis/array-api-tests with its
submodule, and what it requires must be installed; otherwise what needs it is skipped.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from .compare import VERSION

EXCEPTIONS = Path(__file__).with_name("exceptions.txt")


@dataclass
class Outcome:
    """What became of each test, by its name: `test_linalg.py::test_svd`."""

    passed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    def table(self) -> str:
        """How many passed, failed and were skipped, by file."""
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for kind in ("passed", "failed", "skipped"):
            for name in getattr(self, kind):
                counts[name.partition(".py::")[0].removeprefix("test_")][kind] += 1
        total: Counter[str] = sum(counts.values(), Counter())
        lines = [f"{'group':40} passed failed skipped"]
        lines += [f"{group:40} {c['passed']:6} {c['failed']:6} {c['skipped']:7}"
                  for group, c in [*sorted(counts.items()), ("all", total)]]
        return "\n".join(lines)


def checkout() -> Path | None:
    """The folder of a checkout of the suite, if there is one."""
    named = os.environ.get("ARRAY_API_SUITE")
    return Path(named).resolve() if named else None


def run(suite: Path, module: str = "corejax.numpy", examples: int = 20, only: str = "", processes: int = 0) -> Outcome:
    """Run the suite, the same examples each time; `only` is an expression that selects tests, as pytest's -k."""
    with TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=line", "--derandomize",
                   f"--max-examples={examples}", "--disable-deadline", f"--junitxml={report}", f"-n{processes}",
                   *(["-k", only] if only else []), "array_api_tests"]
        env = {**os.environ, "ARRAY_API_TESTS_MODULE": module, "ARRAY_API_TESTS_VERSION": VERSION}
        done = subprocess.run(command, cwd=suite, env=env, capture_output=True, text=True)
        if not report.exists() or done.returncode not in (0, 1):  # 1: there were failures
            raise RuntimeError(f"the suite in {suite} didn't run:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return read(report)


def read(report: Path) -> Outcome:
    """The outcomes in a report of pytest's."""
    outcome = Outcome()
    for case in ElementTree.parse(report).iter("testcase"):
        file, *kind = case.get("classname", "").removeprefix("array_api_tests.").split(".")
        name = "::".join([f"{file}.py", *kind, case.get("name", "")])
        bad = case.find("failure") if case.find("failure") is not None else case.find("error")
        if bad is not None:
            outcome.failed[name] = (bad.get("message") or "").partition("\n")[0]
        elif case.find("skipped") is not None:
            outcome.skipped.append(name)
        else:
            outcome.passed.append(name)
    return outcome


def exceptions() -> dict[str, str]:
    """Patterns of tests that fail, and why they may."""
    lines = [line for line in EXCEPTIONS.read_text().splitlines() if line and not line.startswith("#")]
    return {pattern.strip(): reason.strip() for pattern, _, reason in (line.partition("  ") for line in lines)}


def unexpected(outcome: Outcome, allowed: dict[str, str]) -> list[str]:
    """The tests that fail and shouldn't, and the exceptions that aren't needed any more.

    A reason that starts with `sometimes` is of tests that pass with some values that the suite may draw.
    """
    def matches(name: str, pattern: str) -> bool:
        return fnmatchcase(name, pattern.replace("[", "[[]"))

    found = [f"{name} failed: {why}" for name, why in outcome.failed.items()
             if not any(matches(name, pattern) for pattern in allowed)]
    return found + [f"{pattern} is an exception, and no such test fails" for pattern, reason in allowed.items()
                    if not reason.startswith("sometimes")
                    and not any(matches(name, pattern) for name in outcome.failed)
                    and any(matches(name, pattern) for name in outcome.passed)]
