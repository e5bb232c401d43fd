"""No dead and no duplicated work: programs have no more equations after a transformation than jax gives them.

What jax gives is on record, so that the comparison needs no jax; `python tests/test_equation_counts.py`, run where jax
is installed, records it anew. Equations of programs within programs are counted where they stand. A call that is only
a call (`xla_call` here, `jit` there) counts for what is in it.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

import corejax as cj
from corejax.ir import dce, typecheck
from counted_programs import PROGRAMS, Counted, transformed

RECORD = Path(__file__).with_name("jax_equation_counts.json")
RECORDED = json.loads(RECORD.read_text()) if RECORD.exists() else {}
CASES = [pytest.param(program, mode, id=f"{program}, {mode}") for program in PROGRAMS for mode in program.modes]
_CALLS = ("xla_call", "jit", "pjit")


def programs_within(value: Any) -> list[Any]:
    """The jaxprs in a param: itself, in a tuple, or closed over constants."""
    value = getattr(value, "jaxpr", value)
    if hasattr(value, "eqns"):
        return [value]
    return [jaxpr for item in value for jaxpr in programs_within(item)] if isinstance(value, (tuple, list)) else []


def count(jaxpr: Any) -> int:
    """The number of equations, of either library's jaxpr."""
    total, todo = 0, [jaxpr]
    while todo:
        for eqn in todo.pop().eqns:
            total += eqn.primitive.name not in _CALLS
            todo += [inner for value in eqn.params.values() for inner in programs_within(value)]
    return total


def ours(program: Counted, mode: str) -> tuple[int, int]:
    """How many equations, and how many of them are needed."""
    fun, args = transformed(program, mode, cj, cj.lax)
    jaxpr = cj.make_jaxpr(fun)(*args).jaxpr
    typecheck(jaxpr)
    return count(jaxpr), count(dce(jaxpr, (True,) * len(jaxpr.outvars))[0])


def of_jax(program: Counted, mode: str) -> tuple[int, int]:
    jax = importlib.import_module("jax")
    dce_jaxpr = importlib.import_module("jax.interpreters.partial_eval").dce_jaxpr
    fun, args = transformed(program, mode, jax, jax.lax)
    jaxpr = jax.make_jaxpr(fun)(*args).jaxpr
    return count(jaxpr), count(dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))[0])


@pytest.mark.parametrize(("program", "mode"), CASES)
def test_a_transformed_program_has_no_more_equations_than_jax_records(program: Counted, mode: str) -> None:
    (total, needed), (most, most_needed) = ours(program, mode), RECORDED[program.name][mode]
    assert total <= most, "equations"
    assert needed <= most_needed, "equations that are needed"


def test_at_least_fifteen_programs_are_counted_in_each_kind_of_transformation() -> None:
    assert len(PROGRAMS) >= 15
    for mode in ("grad", "vmap", "jvp", "vmap of grad", "grad of grad"):
        assert len([program for program in PROGRAMS if mode in program.modes]) >= 15, mode


def test_counting_goes_into_programs_within_programs() -> None:
    def fun(x: Any) -> Any:
        return cj.lax.scan(lambda c, _: (cj.lax.sin(cj.jit(cj.lax.cos)(c)), None), x, None, length=3)[0]

    assert 3 == count(cj.make_jaxpr(fun)(1.0).jaxpr)  # scan, sin and cos, but not the call


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_parity_of_equation_counts_with_jax(program: Counted) -> None:
    pytest.importorskip("jax")
    table = {mode: (ours(program, mode), of_jax(program, mode)) for mode in program.modes}
    print(f"\n{program}: equations here and in jax (needed ones in parentheses)")
    for mode, (here, there) in table.items():
        print(f"  {mode:15} {here[0]:4} ({here[1]:4})   {there[0]:4} ({there[1]:4})")
    assert RECORDED[program.name] == {mode: [*there] for mode, (_, there) in table.items()}, "the record is old"
    assert all([h <= t for here, there in table.values() for h, t in zip(here, there, strict=True)])


if __name__ == "__main__":
    counts = {program.name: {mode: of_jax(program, mode) for mode in program.modes} for program in PROGRAMS}
    lines = [f'  "{name}": {json.dumps(modes)}' for name, modes in counts.items()]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")
