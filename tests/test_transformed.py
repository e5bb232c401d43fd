"""Which rules transformations have for which primitives: the table is what is installed."""

from __future__ import annotations

from tests import transformed


def test_the_table_of_primitives_by_transformation_is_up_to_date() -> None:
    assert transformed.TABLE.read_text() == transformed.text(), "python -m tests.transformed --write"


def test_no_primitive_lacks_a_series_without_a_reason() -> None:
    assert {"declared", "derived", "absent"} >= {*transformed.totals(transformed.TABLE.read_text())["jet"]}
