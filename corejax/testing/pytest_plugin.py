"""The kit in pytest: a test for each primitive and check, by a command-line option or by a line in a test file.

The module `corejax_pytest`, which pytest always loads, defines the options and the marker; this one is loaded on use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from corejax.base.errors import CorejaxError
from corejax.testing.report import ConformanceError, Outcome
from corejax.testing.running import chosen_checks, outcome_of, primitives_of
from corejax.testing.specification import HAS_SAMPLES

if TYPE_CHECKING:
    from pathlib import Path

#: The name of the property for exemptions in a test's report, which are listed at the end.
EXEMPTION = "corejax exemption"

Record = Callable[[str, object], None]


def pack_tests(pack: str, *, full: bool = False) -> Callable[..., None]:
    """A pytest test, parametrized over the primitives of an installed pack and the checks: assign it to a `test_...`.

    >>> test_rules = pack_tests("corejax-reductions")

    `full` adds the slow checks.
    """
    names = primitives_of(pack)
    cases = [pytest.param(name, check, id=f"{name}: {check}") for name in names for check in check_names(full)]

    @pytest.mark.corejax
    @pytest.mark.parametrize(("primitive", "check"), cases)
    def test(primitive: str, check: str, record_property: Record) -> None:
        run(primitive, check, full, record_property)
    return test


def check_names(full: bool) -> list[str]:
    """The names of all checks of a mode."""
    return [HAS_SAMPLES, *[check.name for check in chosen_checks(full)]]


def run(primitive: str, check: str, full: bool, record: Record) -> None:
    """Run a check, and report the outcome to pytest; a failure has the kit's text, without frames."""
    try:
        outcome = outcome_of(primitive, check, full)
    except CorejaxError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
    for reason in outcome.exempt:
        record(EXEMPTION, f"{primitive}: {check}: {reason}")
    if outcome.failures:
        pytest.fail(str(ConformanceError(outcome.failures)), pytrace=False)
    if outcome.status != "held":
        pytest.skip(f"{outcome.status}: {'; '.join(reasons_of(outcome))}")


def reasons_of(outcome: Outcome) -> Sequence[str]:
    """Why a check hasn't been run on any sample."""
    return outcome.exempt or outcome.not_applicable or ("no sample is for it",)


class Packs:
    """The pytest plugin that adds the tests of some packs to a session."""

    def __init__(self, packs: Sequence[str], full: bool) -> None:
        try:
            self.primitives = {pack: primitives_of(pack) for pack in packs}
        except CorejaxError as error:
            raise pytest.UsageError(str(error)) from None
        self.full = full

    @pytest.hookimpl(tryfirst=True)  # before tests are chosen by -k and -m
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Add the tests."""
        for pack in self.primitives:
            node: Any = PackNode.from_parent(session, name=pack, nodeid=pack, plugin=self)
            items.extend(session.genitems(node))


class PackNode(pytest.Collector):
    """The tests of a pack."""

    def __init__(self, plugin: Packs, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.plugin = plugin

    def collect(self) -> Iterator[pytest.Collector]:
        """The primitives."""
        for name in self.plugin.primitives[self.name]:
            yield PrimitiveNode.from_parent(self, name=name)


class PrimitiveNode(pytest.Collector):
    """The tests of a primitive."""

    parent: PackNode

    def collect(self) -> Iterator[pytest.Item]:
        """The checks."""
        for name in check_names(self.parent.plugin.full):
            yield CheckItem.from_parent(self, name=name)


class CheckItem(pytest.Item):
    """A check of a primitive."""

    parent: PrimitiveNode

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.add_marker(pytest.mark.corejax)

    def runtest(self) -> None:
        """Run it."""
        run(self.parent.name, self.name, self.parent.parent.plugin.full,
            lambda name, value: self.user_properties.append((name, value)))

    def reportinfo(self) -> tuple[Path, None, str]:
        """The id as a heading."""
        return self.path, None, self.nodeid
