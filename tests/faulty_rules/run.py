"""Runs a faulty rule, and keeps what comes of it: an error, or a result that is compared with the right one."""

from __future__ import annotations

import linecache
import re
import sys
import types
import warnings
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from .case import Cell

#: The file that programs seem to stand in.
FILE = "model.py"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a program raised: its class, the bases of that, the text, notes, and the parts of an error of corejax.

    `kind` is "right" or "wrong" if it raised nothing, for its result.
    """

    kind: str
    classes: tuple[str, ...] = ()
    message: str = ""
    notes: tuple[str, ...] = ()
    parts: dict[str, str | None] = field(default_factory=dict)

    @property
    def first_line(self) -> str:
        return next((line.strip() for line in self.message.splitlines() if line.strip()), "")

    @property
    def silent(self) -> bool:
        """Was nothing said, though the result is wrong?"""
        return self.kind == "wrong"


PARTS = ("primitive", "hook", "pack", "got", "wanted", "where", "todo")


def names() -> dict[str, Any]:
    """What programs find without importing it."""
    import corejax as cj
    from corejax.core import JaxprEqn, ShapedArray, Var, dtypes
    from corejax.ir import typecheck
    from corejax.plugin import Linear, Zero, define, factors, hookimpl, over, partials, roles

    return {"cj": cj, "lax": cj.lax, "np": np, "ShapedArray": ShapedArray, "Zero": Zero, "Linear": Linear,
            "define": define, "factors": factors, "hookimpl": hookimpl, "partials": partials, "over": over,
            "roles": roles, "dtypes": dtypes, "typecheck": typecheck, "Var": Var, "JaxprEqn": JaxprEqn}


def execute(code: str, given: dict[str, Any]) -> Any:
    """Run a program as the module `model`: its `result`, or the exception it raises."""
    module = types.ModuleType("model")
    module.__dict__.update(given, __file__=FILE)
    linecache.cache[FILE] = (len(code), None, code.splitlines(True), FILE)
    program = compile(code, FILE, "exec", dont_inherit=True)
    sys.modules["model"] = module
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(program, module.__dict__)
    except Exception as error:
        return error
    finally:
        del sys.modules["model"]
    return module.__dict__["result"]


@cache
def run(cell: Cell) -> Outcome:
    """What comes of a faulty rule."""
    found = _plain(execute(cell.code, names()))
    if not isinstance(found, Exception):
        right = right_result(cell.right_code)
        same = type(found) is type(right) and (
            found == right if isinstance(right, str) else found[1:] == right[1:] and np.array_equal(found[0], right[0]))
        return Outcome("right" if same else "wrong", message=repr(found))
    parts = {name: None if getattr(found, name, None) is None else str(getattr(found, name)) for name in PARTS}
    return Outcome(type(found).__name__, tuple(c.__name__ for c in type(found).__mro__), str(found),
                   tuple(getattr(found, "__notes__", ())), parts)


@cache
def right_result(code: str) -> Any:
    """The result of a program without a fault."""
    result = _plain(execute(code, names()))
    if isinstance(result, Exception):
        raise AssertionError(f"the program without the fault fails:\n{code}") from result
    return result


def _plain(result: Any) -> Any:
    """A result as data: text, or elements, dtype and weak type."""
    if isinstance(result, (Exception, str)):
        return result
    try:
        return np.asarray(result), str(result.dtype), result.weak_type
    except Exception as error:  # a result that can't even be looked at: who gets it has no hint of the cause
        return ("unreadable", type(error).__name__)


@cache
def found_by_the_kit(cell: Cell) -> bool:
    """Does the check that the fault names find it?"""
    from corejax.plugin import Sample
    from corejax.testing import ConformanceError, check_primitive

    primitive, x = execute(cell.primitive_code, names())
    try:
        check_primitive(primitive, [Sample([x])], checks=[cell.fault.check])
    except ConformanceError as error:
        return any(failure.hook == cell.fault.hook for failure in error.failures)
    return False


def lines_of_use(cell: Cell) -> set[int]:
    """The lines of a program that an error may name: where the primitive is applied, and where the result is asked."""
    if cell.fault.check:  # an equation of the rule may be named
        return set(range(1, len(cell.code.splitlines()) + 1))
    used = re.compile(r"twice\(|^result = ")
    return {number for number, line in enumerate(cell.code.splitlines(), 1) if used.search(line)}


def complaints(cell: Cell, outcome: Outcome) -> list[str]:
    """What is missing from the answer to a fault; nothing if all is as it should be."""
    expected = cell.expected
    if expected == "unseen":
        seen = [] if outcome.kind in ("right", "wrong") else [f"is seen here: {outcome.message}"]
        return seen if found_by_the_kit(cell) else [*seen, f"the check {cell.fault.check!r} doesn't find it"]
    if expected == "harmless":
        return [] if outcome.kind == "right" else [f"{outcome.kind}: {outcome.message}"]
    if outcome.kind in ("right", "wrong"):
        return [f"nothing is raised, and the result is {outcome.kind}"]
    fault = cell.fault
    hooks = (fault.hook, *fault.named)
    if expected == "note":
        found = [] if fault.raises in outcome.classes else [f"{outcome.kind} instead of {fault.raises}"]
        notes = [note for note in outcome.notes if any(f"twice.{hook}" in note for hook in hooks)]
        return found + ([] if len(notes) == 1 else [f"notes: {outcome.notes}; {outcome.message}"])
    found = [] if "CorejaxError" in outcome.classes else [f"{outcome.kind} is no CorejaxError: {outcome.message}"]
    found += [f"it has no {part}" for part in PARTS if not outcome.parts.get(part)]
    if outcome.parts.get("hook") not in hooks or not any(f"twice.{hook}" in outcome.first_line for hook in hooks):
        found.append(f"it doesn't name the hook: {outcome.parts.get('hook')}; {outcome.first_line}")
    line = re.match(rf"{re.escape(FILE)}:(\d+)", outcome.parts.get("where") or "")
    if line is None or int(line[1]) not in lines_of_use(cell):
        found.append(f"it names the place {outcome.parts.get('where')}, not one of {sorted(lines_of_use(cell))}")
    return found
