"""The same programs in several processes and in one that has as many devices: each device has the same in the end."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from programs import ROUNDED, TABLE, Fact
from together import together

SCRIPT = Path(__file__).with_name("programs.py")


@cache
def in_processes(processes: int, devices: int, split: int) -> list[dict[str, Any]]:
    """What each process has found out; `split` is how many there are on the side with several."""
    outcomes = together(SCRIPT, processes, devices, seconds=300, environment={"SPLIT": str(split)})
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


@pytest.mark.parametrize(("processes", "devices"), [
    (2, 2), *[pytest.param(n, d, marks=pytest.mark.exhaustive) for n, d in ((4, 1), (2, 1), (2, 4))]])
@pytest.mark.parametrize("name", TABLE)
def test_each_device_has_the_same_as_in_one_process(processes: int, devices: int, name: str) -> None:
    (wanted,), found = in_processes(1, processes * devices, processes), in_processes(processes, devices, processes)
    assert not isinstance(wanted[name], str), wanted[name]
    for outcome in found:
        assert not isinstance(outcome[name], str), outcome[name]
    assert {len(wanted[name])} == {len(each[name]) for each in found}
    for i, one in enumerate(wanted[name]):
        compare(one, [each[name][i] for each in found], name in ROUNDED)
