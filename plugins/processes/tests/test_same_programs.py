"""The same programs in several processes and in one that has as many devices: each device has the same in the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from programs import ROUNDED, TABLE, THOROUGH, Fact
from together import together

SCRIPT = Path(__file__).with_name("programs.py")


def in_processes(which: str, processes: int, devices: int, split: int) -> list[dict[str, Any]]:
    """What each process has found out; `split` is how many there are on the side with several."""
    outcomes = together(SCRIPT, processes, devices, [which], seconds=300, environment={"SPLIT": str(split)})
    for i, outcome in enumerate(outcomes):
        assert 0 == outcome.code, f"process {i}, after {outcome.out[-300:]}:\n{outcome.error[-5000:]}"
    return [outcome.results for outcome in outcomes]


def merged(found: list[Any]) -> Any:
    """What all processes together know of a result."""
    if isinstance(found[0], Fact):
        parts = {device: part for fact in found for device, part in fact.parts.items()}
        assert sum([len(fact.parts) for fact in found]) == len(parts)
        assert 1 == len({fact[:4] for fact in found}), [fact[:4] for fact in found]
        return found[0]._replace(parts=dict(sorted(parts.items())))
    return found


def compare(wanted: Any, found: list[Any], is_rounded: bool) -> None:
    if isinstance(wanted, Fact):
        whole = merged(found)
        assert wanted[:4] == whole[:4]
        assert wanted.parts.keys() == whole.parts.keys()
        for device, (where, part) in wanted.parts.items():
            there, other = whole.parts[device]
            assert (where, part.dtype, part.shape) == (there, other.dtype, other.shape)
            if is_rounded:
                np.testing.assert_allclose(part, other, rtol=1e-12, atol=1e-12)
            else:
                assert part.tobytes() == other.tobytes(), (part, other)
        return
    for each in found:
        if isinstance(wanted, np.ndarray):
            assert (wanted.dtype, wanted.shape, wanted.tobytes()) == (each.dtype, each.shape, each.tobytes())
        else:
            assert type(wanted) is type(each) and wanted == each


@pytest.mark.parametrize(("processes", "devices", "which"), [
    pytest.param(processes, devices, which, marks=[] if (processes, devices, which) == (2, 2, "quick")
                 else pytest.mark.exhaustive)
    for processes, devices in ((2, 2), (4, 1), (2, 1), (2, 4)) for which in ("quick", "thorough")])
def test_each_device_has_the_same_as_in_one_process(processes: int, devices: int, which: str) -> None:
    wanted, = in_processes(which, 1, processes * devices, processes)  # all at once: a start of processes takes long
    found = in_processes(which, processes, devices, processes)
    assert {name for name in TABLE if (name in THOROUGH) == (which == "thorough")} == wanted.keys()
    problems = {}
    for name in wanted:
        try:
            compare_all(name, wanted[name], [each[name] for each in found])
        except AssertionError as error:
            problems[name] = str(error)
    assert {} == problems, "\n\n".join(f"{name}: {problem}" for name, problem in problems.items())


def compare_all(name: str, wanted: Any, found: list[Any]) -> None:
    for outcome in (wanted, *found):
        assert not isinstance(outcome, str), outcome
    assert {len(wanted)} == {len(outcome) for outcome in found}
    for i, one in enumerate(wanted):
        compare(one, [outcome[i] for outcome in found], name in ROUNDED)
