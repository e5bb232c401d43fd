"""What `make test` leaves of tests with many cases, and says that it left out."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import left_out
from exhaustive import by_turns, leave_samples


@dataclass
class Spec:
    params: dict[str, Any]


@dataclass
class Case:
    """As much of a case of a test as is looked at."""

    name: str
    callspec: Spec
    marks: list[Any] = field(default_factory=list)
    sample: int | None = None
    parent: Any = None
    originalname: str = "test"

    @property
    def nodeid(self) -> str:
        return self.name

    def get_closest_marker(self, name: str) -> Any:
        if name == "exhaustive":
            return name in self.marks
        return None if self.sample is None else type("Marker", (), {"args": (self.sample,)})

    def add_marker(self, mark: Any) -> None:
        self.marks.append(mark.name)


def cases(sample: int | None) -> list[Case]:
    file = Case("file", Spec({}))
    return [Case(f"test[{i}-{j}]", Spec({"x": i, "y": j}), sample=sample, parent=file)
            for i, j in product(range(6), range(9))]


def test_a_sample_has_each_value_of_each_argument() -> None:
    kept = by_turns(cases(9))[:9]  # as few as there can be
    assert {*range(6)} == {case.callspec.params["x"] for case in kept}
    assert {*range(9)} == {case.callspec.params["y"] for case in kept}


def test_a_value_of_another_type_is_another_value() -> None:
    values = [1, 1.0, True, [1], len]
    each = [Case(f"test[{i}-{j}]", Spec({"x": i, "y": y})) for i in range(3) for j, y in enumerate(values)]
    assert {*map(id, values)} == {id(case.callspec.params["y"]) for case in by_turns(each)[:5]}


@pytest.mark.parametrize("y", [1, [1]], ids=str)
@pytest.mark.parametrize("x", ["a", len])
def test_pytest_says_which_values_a_case_has(request: pytest.FixtureRequest, x: Any, y: Any) -> None:
    assert {"x": x, "y": y} == request.node.callspec.params


def test_it_is_the_same_in_whatever_order_tests_are_collected() -> None:
    assert [case.name for case in by_turns(cases(9))] == [case.name for case in by_turns(cases(9)[::-1])]


def test_what_is_not_in_it_is_exhaustive() -> None:
    marked, unmarked = cases(10), cases(None)
    leave_samples([*marked, *unmarked])
    assert [["exhaustive"]] * 44 == [case.marks for case in marked if case.marks]
    assert not any([case.marks for case in unmarked])


def test_it_is_of_cases_that_are_not_exhaustive_by_themselves() -> None:
    found = cases(10)
    for case in found[:30]:
        case.marks.append("exhaustive")
    leave_samples(found)
    assert [["exhaustive"]] * 30 == [case.marks for case in found[:30]]
    assert 10 == len([case for case in found if not case.marks])


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_what_is_left_out_is_told_with_or_without_workers(workers: tuple[str, ...]) -> None:
    here = Path(__file__).resolve()
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not exhaustive", "-k", "many_cases", *workers, str(here)]
    done = subprocess.run(command, cwd=here.parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert f"7 tests were left out as exhaustive, which `make test-all` runs:\n   7  tests/{here.name}::" \
        "test_one_of_many_cases" in done.stdout


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", range(9))
def test_one_of_many_cases(case: int) -> None:
    assert case in range(9)


def test_the_longest_lists_are_told_first_and_the_others_counted() -> None:
    told = left_out.lines({f"test_{i}": i for i in range(1, 21)})
    assert told[:2] == ["210 tests were left out as exhaustive, which `make test-all` runs:", "  20  test_20"]
    assert told[-1] == "  36  of 8 others" and len(told) == left_out.MOST + 2
