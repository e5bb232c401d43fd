"""Broken packs: each fault in a process with distributions made up for it, and a look at everything else after it."""

from __future__ import annotations

from typing import Any

import pytest

from test_faults import AGAIN
from tests.faults.plugin_faults import FAULTS
from tests.faults.plugin_faults.fault import Fault
from tests.faults.plugin_faults.run import RECORD, outcomes, warnings_of
from tests.faults.speech import unfit

every_fault = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.title)


def outcome(fault: Fault) -> dict[str, Any]:
    found: dict[str, Any] = outcomes()[fault.title]
    return found


def test_there_are_many_of_as_many_packs() -> None:
    assert len(FAULTS) >= 80
    packs = [(pack.name, pack.version) for fault in FAULTS for pack in fault.packs]
    assert len(set(packs)) == len(packs)


@every_fault
def test_it_comes_to_the_expected_error_or_value(fault: Fault) -> None:
    first = outcome(fault)["first"]
    assert fault.error == first["error"], first["message"]
    said = first["printed"] + first["message"]
    assert [] == [word for word in fault.words if word not in said], said
    assert fault.cause is None or fault.cause == first["cause"]


@every_fault
def test_nothing_but_errors_and_interrupts_reaches_the_host(fault: Fault) -> None:
    assert outcome(fault)["first"]["host"] and outcome(fault)["second"]["host"]


@every_fault
def test_the_second_use_gives_the_same_error_with_the_same_cause_or_works(fault: Fault) -> None:
    first, second = outcome(fault)["first"], outcome(fault)["second"]
    if fault.again == "same":
        for part in ("error", "message", "printed", "cause"):
            assert first[part] == second[part]
        assert first["error"] != "PackError" or first["identity"] == second["identity"]
    else:
        assert None is second["error"], second["message"]
        assert fault.again == second["message"].splitlines()[-1]


@every_fault
def test_it_is_reported_by_at_most_one_warning(fault: Fault) -> None:
    warned = warnings_of(fault, outcome(fault))
    assert (1 if fault.warned else 0) == len(warned), warned
    assert [] == [word for word in fault.warned if word not in warned[0]], warned


@every_fault
def test_nothing_is_half_registered(fault: Fault) -> None:
    found = outcome(fault)
    if fault.error == "PackError":
        assert [] == found["kept"]
    if fault.error is not None and fault.again == "same" and not fault.group.startswith("Hooks"):
        assert [] == found["frozen"]


def test_primitives_that_work_are_registered() -> None:
    assert ["interrupted"] == outcomes()["Importing: KeyboardInterrupt"]["frozen"]
    assert ["corejax.primitives interrupted"] == outcomes()["Importing: KeyboardInterrupt"]["kept"]


@every_fault
def test_other_packs_work_and_transform_after_it(fault: Fault) -> None:
    assert 2.0 == outcome(fault)["beside"]
    assert [2.0, 1.0] == outcome(fault)["good"]


@every_fault
def test_the_other_modules_are_as_before(fault: Fault) -> None:
    assert [] == outcome(fault)["changed"]
    assert [] == outcome(fault)["strangers"]


@every_fault
def test_no_module_of_a_pack_that_was_not_imported_stays(fault: Fault) -> None:
    assert sorted(fault.left) == outcome(fault)["left"]


@every_fault
def test_the_command_line_works_after_it_and_says_what_is_broken(fault: Fault) -> None:
    found = outcome(fault)
    status, listed = found["plugins"]
    assert 0 == status == found["explained_good"]
    if found["left"] == [] and fault.error == "PackError" and fault.cause is not None:
        assert any(f"{pack.name}: broken: " in listed for pack in fault.packs), listed
    if fault.warned and "left out: its metadata" in fault.warned[0]:
        assert f"{fault.packs[0].name}: broken: " in listed
    if fault.explain is not None:
        status, said = found["explained"]
        assert found["first"]["message"].splitlines()[0] in said
        assert "CAN'T BE USED" in said


@every_fault
def test_what_it_says_is_for_people(fault: Fault) -> None:
    text = "\n".join([outcome(fault)["first"]["message"], *warnings_of(fault, outcome(fault))])
    assert [] == unfit(text), text
    assert "/probe.py" not in text and "corejax/plugin/" not in text, text


@every_fault
def test_it_is_answered_as_recorded(fault: Fault) -> None:
    assert RECORD.recorded().get(fault.title) == RECORD.now(fault), AGAIN
