"""The kit in pytest: a test for each primitive and check, by a command-line option or by a line in a test file.

The module `corejax_pytest`, which pytest always loads, defines the options and the marker; this one is loaded on use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from corejax.errors import CorejaxError
from corejax_testing.effort import NO_COUNTEREXAMPLE, Search, Searched, effort_of
from corejax_testing.packs import RULES_ARE_USED, Contents, Subject, contents_of, hooks_of
from corejax_testing.report import ConformanceError, Outcome, by_provider
from corejax_testing.running import check_hypothesis, chosen_checks, laws_for, outcome_of
from corejax_testing.specification import HAS_SAMPLES

if TYPE_CHECKING:
    from pathlib import Path

#: The names of the properties of a test's report that are listed at the end: exemptions, and who provides which hook.
EXEMPTION, PROVIDERS = "corejax exemption", "corejax providers"

#: Where a test that `pack_tests` made keeps what it is about.
ATTRIBUTE = "corejax_pack_tests"

Record = Callable[[str, object], None]


def pack_tests(pack: str, *, full: bool = False, search: Searched = False) -> Callable[..., None]:
    """A pytest test, parametrized over the primitives and the checks: assign it to a `test_...`.

    >>> test_rules = pack_tests("corejax-reductions")

    The primitives are those that an installed pack provides, and those that it has rules for. `full` adds the slow
    checks, `search` a search for counterexamples: True, or a `Search` that says how much to try. So do the options
    `--corejax-full` and `--corejax-search` of pytest, for all such tests.
    """
    wanted = PackTests(contents_of(pack), pack, Mode(full, effort_of(search)))
    if wanted.mode.effort:
        check_hypothesis()

    @pytest.mark.corejax
    def test(subject: Subject | Outcome, check: str, corejax_mode: Mode, record_property: Record) -> None:
        run(subject, check, corejax_mode, record_property)
    setattr(test, ATTRIBUTE, wanted)
    return test


class PackTests(NamedTuple):
    """What a test that `pack_tests` made is about. Which tests it becomes depends on the options of the session."""

    contents: Contents
    pack: str
    mode: Mode

    def parametrize(self, metafunc: pytest.Metafunc, full: bool, search: Mapping[str, Any] | None) -> None:
        """Make a test of each primitive and check: of what the file and the options ask for, all."""
        asked = asked_by_options(full, search)
        effort = self.mode.effort and asked.effort and replace(self.mode.effort, **search or {})
        mode = Mode(self.mode.full or asked.full, effort or self.mode.effort or asked.effort)
        whole = self.contents.outcome(self.pack)
        cases = [pytest.param(whole, "", mode, id=f"{self.pack}: {RULES_ARE_USED}")] if whole else []
        cases += [pytest.param(subject, check, mode, id=f"{subject.name}: {check}")
                  for subject in self.contents.subjects for check in check_names(subject, mode)]
        metafunc.parametrize(("subject", "check", "corejax_mode"), cases)


class Mode(NamedTuple):
    """What is run for each primitive: the slow checks or not, and how long a search, if any."""

    full: bool
    effort: Search | None


def asked_by_options(full: bool, search: Mapping[str, Any] | None) -> Mode:
    """The mode that options of pytest ask for: `search` has the fields of a `Search`, or is None if there is none."""
    try:
        mode = Mode(full, None if search is None else Search(**search))
        if mode.effort:
            check_hypothesis()
    except CorejaxError as error:
        raise pytest.UsageError(str(error)) from None
    return mode


def check_names(subject: Subject, mode: Mode) -> list[str]:
    """The names of all checks of a mode for a primitive."""
    laws = laws_for(subject)
    if laws is not None:
        return [RULES_ARE_USED, *laws, *[NO_COUNTEREXAMPLE] * bool(mode.effort)]
    return [*[RULES_ARE_USED] * bool(subject.slots), HAS_SAMPLES,
            *[check.name for check in chosen_checks(mode.full)], *[NO_COUNTEREXAMPLE] * bool(mode.effort)]


def run(subject: Subject | Outcome, check: str, mode: Mode, record: Record) -> None:
    """Run a check, and report the outcome to pytest; a failure has the kit's text, without frames."""
    if isinstance(subject, Outcome):
        return _tell(subject)
    try:
        outcome = outcome_of(subject, check, mode.full, mode.effort)
        if check == RULES_ARE_USED and not subject.transformations:
            with subject.chosen():
                shown = by_provider(hooks_of(subject.primitive))
            record(PROVIDERS, f"{subject.name} {'; '.join(shown)}")
    except CorejaxError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
    for reason in outcome.exempt:
        record(EXEMPTION, f"{outcome.primitive}: {check}: {reason}")
    _tell(outcome)


def _tell(outcome: Outcome) -> None:
    if outcome.failures:
        pytest.fail(str(ConformanceError(outcome.failures)), pytrace=False)
    if outcome.status != "held":
        pytest.skip(f"{outcome.status}: {'; '.join(reasons_of(outcome))}")


def reasons_of(outcome: Outcome) -> Sequence[str]:
    """Why a check hasn't been run on any sample."""
    return outcome.exempt or outcome.not_applicable or ("no sample is for it",)


class Packs:
    """The pytest plugin that adds the tests of some packs to a session."""

    def __init__(self, packs: Sequence[str], mode: Mode) -> None:
        self.mode = mode
        try:
            self.contents = {pack: contents_of(pack) for pack in packs}
        except CorejaxError as error:
            raise pytest.UsageError(str(error)) from None

    @pytest.hookimpl(tryfirst=True)  # before tests are chosen by -k and -m
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Add the tests."""
        for pack in self.contents:
            node: Any = PackNode.from_parent(session, name=pack, nodeid=pack, plugin=self)
            items.extend(session.genitems(node))


class PackNode(pytest.Collector):
    """The tests of a pack."""

    def __init__(self, plugin: Packs, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.plugin = plugin

    def collect(self) -> Iterator[pytest.Collector | pytest.Item]:
        """The primitives, and first the pack itself if it has nothing else, or a rule that is for nothing."""
        contents = self.plugin.contents[self.name]
        whole = contents.outcome(self.name)
        if whole is not None:
            yield CheckItem.from_parent(self, name=RULES_ARE_USED, subject=whole, mode=self.plugin.mode)
        for subject in contents.subjects:
            yield PrimitiveNode.from_parent(self, name=subject.name, subject=subject)


class PrimitiveNode(pytest.Collector):
    """The tests of a primitive."""

    parent: PackNode

    def __init__(self, subject: Subject, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.subject = subject

    def collect(self) -> Iterator[pytest.Item]:
        """The checks."""
        mode = self.parent.plugin.mode
        for name in check_names(self.subject, mode):
            yield CheckItem.from_parent(self, name=name, subject=self.subject, mode=mode)


class CheckItem(pytest.Item):
    """A check of a primitive, or what is known of a pack."""

    def __init__(self, subject: Subject | Outcome, mode: Mode, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.subject, self.mode = subject, mode
        self.add_marker(pytest.mark.corejax)

    def runtest(self) -> None:
        """Run it."""
        run(self.subject, self.name, self.mode, lambda name, value: self.user_properties.append((name, value)))

    def reportinfo(self) -> tuple[Path, None, str]:
        """The id as a heading."""
        return self.path, None, self.nodeid
