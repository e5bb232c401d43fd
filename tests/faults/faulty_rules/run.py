"""Runs a faulty rule, and keeps what comes of it: an error, or a result that is compared with the right one."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..programs import PARTS, Outcome, execute, outcome_of
from ..record import Record
from . import FAULTS
from .case import Cell, Fault


def names() -> dict[str, Any]:
    """What programs find without importing it."""
    import corejax as cj
    from corejax.core import JaxprEqn, ShapedArray, Var, dtypes
    from corejax.ir import typecheck
    from corejax.plugin import Linear, Zero, define, factors, hookimpl, over, partials, roles

    return {"cj": cj, "lax": cj.lax, "np": np, "ShapedArray": ShapedArray, "Zero": Zero, "Linear": Linear,
            "define": define, "factors": factors, "hookimpl": hookimpl, "partials": partials, "over": over,
            "roles": roles, "dtypes": dtypes, "typecheck": typecheck, "Var": Var, "JaxprEqn": JaxprEqn}


def result_of(code: str, given: dict[str, Any]) -> Any:
    """The `result` of a program, or the exception that it raises."""
    found = execute(code, given)
    return found if isinstance(found, Exception) else found["result"]


@cache
def run(cell: Cell) -> Outcome:
    """What comes of a faulty rule."""
    found = _plain(result_of(cell.code, names()))
    if not isinstance(found, Exception):
        right = right_result(cell.right_code)
        same = type(found) is type(right) and (
            found == right if isinstance(right, str) else found[1:] == right[1:] and np.array_equal(found[0], right[0]))
        return Outcome("right" if same else "wrong", message=repr(found))
    return outcome_of(found)


@cache
def right_result(code: str) -> Any:
    """The result of a program without a fault."""
    result = _plain(result_of(code, names()))
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

    primitive, x = result_of(cell.primitive_code, names())
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
    if not outcome.is_at([*lines_of_use(cell)]):
        found.append(f"it names the place {outcome.parts.get('where')}, not one of {sorted(lines_of_use(cell))}")
    return found


def answer(fault: Fault) -> str:
    """The first line of the error, or the exception with its note; and where only the kit sees the fault."""
    found = run(next((cell for cell in fault.cells if cell.expected != "unseen"), fault.cells[0]))
    if fault.caught == "harmless":
        return "no effect"
    text = f"{fault.raises}, with the note: {found.notes[0]}" if fault.caught == "note" else found.first_line
    if not fault.unseen:
        return text
    unseen = f"in {', '.join(fault.unseen)}: the kit's check '{fault.check}'"
    return unseen if set(fault.unseen) == set(fault.contexts) else f"{text}; {unseen}"


RECORD = Record(str(Path(__file__).parent), FAULTS, answer)
