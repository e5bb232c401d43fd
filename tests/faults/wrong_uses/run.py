"""Runs a wrong use, in a process of its own where it has an environment, and says how it is answered."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from ..programs import Outcome, execute, outcome_of
from ..record import Record
from . import CASES
from .case import WrongUse

ROOT = Path(__file__).resolve().parents[3]

SILENT = Outcome("nothing")


def ran(code: str, names: dict[str, Any]) -> Outcome:
    """What comes of a program."""
    found = execute(code, names)
    return outcome_of(found) if isinstance(found, Exception) else SILENT


def run(case: WrongUse) -> Outcome:
    """What corejax says."""
    if case.environment:
        return _run_apart(case)
    return run_here(case)


def run_here(case: WrongUse) -> Outcome:
    """What corejax says, in this process."""
    import corejax as cj
    from corejax.core import ShapedArray
    from corejax.plugin import Zero, define, factors, hookimpl, not_differentiable, not_linear, partials

    names = {"cj": cj, "lax": cj.lax, "np": np, "ShapedArray": ShapedArray,
             "Zero": Zero, "define": define,
             "factors": factors, "hookimpl": hookimpl, "not_differentiable": not_differentiable,
             "not_linear": not_linear, "partials": partials}
    if "jnp." in case.code:
        names["jnp"] = cj.numpy
    return ran(case.code, names)


def _run_apart(case: WrongUse) -> Outcome:
    env = {key: value for key, value in os.environ.items() if not key.startswith("COREJAX_")}
    env |= {"PYTHONPATH": str(ROOT), **case.environment}
    done = subprocess.run([sys.executable, "-m", "tests.faults", "--run", case.title], env=env, cwd=ROOT,
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return Outcome(**json.loads(done.stdout))


def answer(case: WrongUse) -> list[str]:
    """The lines of the error, as they are recorded."""
    return answer_to(case, run(case))


def answer_to(case: WrongUse, outcome: Outcome) -> list[str]:
    """The lines of an outcome's error, without what differs from one installation to another."""
    text = f"{outcome.kind}: {outcome.message}".replace(", corejax-softplus", "")
    if case.local:
        text = re.sub(r"(?m)^(  wanted: ).*$", r"\1(what this machine has)", text)
    return text.splitlines()


RECORD = Record(str(Path(__file__).parent), CASES, answer)
