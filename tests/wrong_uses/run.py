"""Runs a wrong use, for corejax or for jax, and keeps what its error says."""

from __future__ import annotations

import contextlib
import io
import json
import linecache
import os
import re
import subprocess
import sys
import traceback
import types
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .case import WrongUse

ROOT = Path(__file__).resolve().parents[2]

#: The file that snippets seem to stand in.
FILE = "model.py"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a snippet raised: plain data, so that it can come from another process."""

    kind: str
    classes: list[str] = field(default_factory=list)
    message: str = ""
    got: str | None = None
    wanted: str | None = None
    todo: str | None = None
    where: str | None = None
    trace: str = ""

    @property
    def internal_frames(self) -> list[str]:
        """The files in the traceback, and in those of its causes, that are neither the snippet nor its runner."""
        files = re.findall(r'^ +File "([^"]+)"', self.trace, re.MULTILINE)
        return [file for file in files if file not in (FILE, __file__)]

    @property
    def first_line(self) -> str:
        return next((line.strip() for line in self.message.splitlines() if line.strip()), "")


SILENT = Outcome("nothing")


def outcome_of(error: BaseException) -> Outcome:
    """An error as plain data."""
    def text(name: str) -> str | None:
        value = getattr(error, name, None)
        return None if value is None else str(value)
    classes = [c.__name__ for c in type(error).__mro__]
    trace = "".join(traceback.format_exception(error))
    return Outcome(type(error).__name__, classes, str(error), text("got"), text("wanted"), text("todo"),
                   text("where"), trace)


def run_code(code: str, names: dict[str, Any]) -> Outcome:
    """Run a snippet as the module `model`."""
    module = types.ModuleType("model")
    module.__dict__.update(names, __file__=FILE)
    linecache.cache[FILE] = (len(code), None, code.splitlines(True), FILE)
    program = compile(code, FILE, "exec", dont_inherit=True)
    sys.modules["model"] = module  # where `inspect` looks for the source of classes
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            exec(program, module.__dict__)
    except Exception as error:
        return outcome_of(error)
    finally:
        del sys.modules["model"]
    return SILENT


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
    return run_code(case.code, names)


def _run_apart(case: WrongUse) -> Outcome:
    env = {key: value for key, value in os.environ.items() if not key.startswith("COREJAX_")}
    env |= {"PYTHONPATH": str(ROOT), **case.environment}
    done = subprocess.run([sys.executable, "-m", "tests.wrong_uses", "--run", case.title], env=env, cwd=ROOT,
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return Outcome(**json.loads(done.stdout))


def as_json(outcome: Outcome) -> str:
    return json.dumps(asdict(outcome))


def run_jax(case: WrongUse) -> Outcome | None:
    """What jax says of it; None if there is no counterpart."""
    import jax
    from jax import lax
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir

    if case.jax is None:
        return None
    names = {"cj": jax, "lax": lax, "np": np, "jnp": jax.numpy, "Primitive": Primitive, "ad": ad,
             "batching": batching, "mlir": mlir, "ShapedArray": jax.core.ShapedArray}
    jax.clear_caches()  # params that only compare equal, such as (0,) and (0.0,), would find each other's entry
    with jax.enable_x64(True):
        return run_code(case.jax, names)
