"""docs/reference/array-api.md: what came of the standard's test suite when it was last run."""

from __future__ import annotations

import subprocess
from importlib.metadata import version
from pathlib import Path

from . import suite
from .compare import VERSION

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/array-api.md"

_INTRO = """# The array API standard

What the [test suite of the array API standard](https://github.com/data-apis/array-api-tests) says of `corejax.numpy`,
for the version {standard} of the standard: commit {commit} of the suite, {examples} examples for each test,
NumPy {numpy}, jaxlib {jaxlib}.

Of {total:,} tests, {passed:,} pass, {skipped} are skipped by the suite, and {failed} fail.

```
{table}
```

Written by `ARRAY_API_SUITE=FOLDER python -m tests.array_api --examples {examples} --write`, where FOLDER is a checkout
of the suite with its submodule. What the suite requires must be installed.

## Why tests fail

"""
_LINKS = """
[NumPy](../numpy.md#where-numpy-and-jax-differ) says what functions of `corejax.numpy` do where NumPy and JAX differ.
Without the suite, `python -m tests.array_api` compares every function of the standard with array-api-strict.
"""


def rows(allowed: dict[str, str]) -> str:
    """The table of exceptions."""
    names = {pattern: pattern.partition(".py::")[2] for pattern in allowed}
    lines = [f"| `{names[pattern]}` | {reason} |" for pattern, reason in allowed.items()]
    return "\n".join(["| tests | why |", "| --- | --- |", *lines]) + "\n"


def text(outcome: suite.Outcome, folder: Path, examples: int) -> str:
    """The page for an outcome of the whole suite."""
    done = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=folder, capture_output=True, text=True)
    counts = {kind: len(getattr(outcome, kind)) for kind in ("passed", "failed", "skipped")}
    intro = _INTRO.format(standard=VERSION, commit=done.stdout.strip() or "unknown", examples=examples,
                          numpy=version("numpy"), jaxlib=version("jaxlib"), total=sum(counts.values()),
                          table=outcome.table(), **counts)
    return intro + rows(suite.exceptions()) + _LINKS
