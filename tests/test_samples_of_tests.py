"""What `make test` leaves of tests with many cases."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any

from exhaustive import by_turns, leave_samples


@dataclass
class Spec:
    indices: dict[str, int]


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
    kept = by_turns(cases(20))[:20]
    assert {*range(6)} == {case.callspec.indices["x"] for case in kept}
    assert {*range(9)} == {case.callspec.indices["y"] for case in kept}


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
