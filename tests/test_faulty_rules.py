"""Rules that are wrong: none is silent, each is named, wherever it runs."""

from __future__ import annotations

import pytest

from corejax.plugin import Sample
from corejax.testing import check_primitive
from tests.faults.faulty_rules import CELLS, FAULTS, jax_rules
from tests.faults.faulty_rules.case import Cell, Fault
from tests.faults.faulty_rules.run import complaints, found_by_the_kit, names, result_of, run
from tests.faults.speech import unfit

every_fault = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.title)


def test_each_cell_has_its_own_name() -> None:
    assert len(CELLS) == len({cell.title for cell in CELLS})


@pytest.mark.sample(200)
@every_fault
def test_fault_is_named_wherever_it_runs_in_words_for_people(fault: Fault) -> None:
    amiss = {cell.title: complaints(cell, run(cell)) for cell in fault.cells}
    assert {} == {title: found for title, found in amiss.items() if found}
    assert [] == unfit(run(fault.cells[0]).message)


@pytest.mark.parametrize("cell", [cell for cell in CELLS if cell.expected == "unseen"], ids=lambda cell: cell.title)
def test_what_no_trace_shows_is_found_by_the_conformance_kit(cell: Cell) -> None:
    assert found_by_the_kit(cell)


def test_the_kit_finds_nothing_in_the_same_primitive_without_a_fault() -> None:
    for cell in {cell.fault: cell for cell in CELLS if cell.expected == "unseen"}.values():
        primitive, x = result_of(cell.right_primitive_code, names())
        check_primitive(primitive, [Sample([x])], checks=[cell.fault.check])


def test_each_counterpart_is_recorded() -> None:
    assert sorted({(fault.title, context) for fault, context in jax_rules.compared()}) == sorted(
        (title, context) for title, answers in jax_rules.recorded().items() for context in answers)


@pytest.mark.parametrize("hook", jax_rules.COMPARED)
def test_parity_jax_does_what_is_recorded(hook: str) -> None:
    jax = pytest.importorskip("jax")
    if jax.__version__ != jax_rules.VERSION:
        pytest.skip(f"answers were recorded of jax {jax_rules.VERSION}")
    now = {(fault.title, context): jax_rules.answer(fault, context) for fault, context in jax_rules.compared()
           if fault.hook == hook}
    assert now == {(title, context): answer for title, answers in jax_rules.recorded().items()
                   for context, answer in answers.items() if title.startswith(f"{hook}: ")}
