"""Loaded by pytest wherever the conformance kit is installed: its options. The kit itself is loaded on use.

This isn't part of the kit's package, since importing a module of a package imports the package.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def pytest_addoption(parser: Any) -> None:
    """Add the options."""
    group = parser.getgroup("corejax", "corejax: the rules of packs")
    group.addoption("--corejax-pack", action="append", default=[], metavar="NAME", dest="corejax_packs",
                    help="add a test for each primitive of this installed pack and check of the conformance kit; "
                         "may be repeated")
    group.addoption("--corejax-full", action="store_true",
                    help="run the slow checks, too: of packs that options name, and those of pack_tests in test files")
    group.addoption("--corejax-search", action="store_true",
                    help="search for inputs that break a law, too, which needs hypothesis")
    for name, kind, what in (("examples", int, "try at most N inputs for each primitive"),
                             ("seconds", float, "search for at most N seconds for each primitive"),
                             ("seed", int, "search among other inputs than with another seed")):
        group.addoption(f"--corejax-search-{name}", type=kind, metavar="N", help=what)


def pytest_configure(config: Any) -> None:
    """Add the marker, and the tests of the requested packs."""
    config.addinivalue_line("markers", "corejax: a check of a primitive by the conformance kit of corejax")
    packs, search = list(dict.fromkeys(config.option.corejax_packs)), _search(config.option)
    if not packs and search is None:
        return
    kit = import_module("corejax_testing.pytest_plugin")
    asked = kit.asked_by_options(config.option.corejax_full, search)
    if packs:
        config.pluginmanager.register(kit.Packs(packs, asked), "corejax_packs")


def pytest_generate_tests(metafunc: Any) -> None:
    """Make the tests of what `corejax.testing.pack_tests` returned, now that the options are known."""
    wanted = getattr(metafunc.function, "corejax_pack_tests", None)
    if wanted is not None:
        options = metafunc.config.option
        wanted.parametrize(metafunc, options.corejax_full, _search(options))


def _search(options: Any) -> dict[str, Any] | None:
    """How much to search, as given by options, each of which asks for a search; None without any."""
    given = {"max_examples": options.corejax_search_examples, "seconds": options.corejax_search_seconds,
             "seed": options.corejax_search_seed}
    given = {name: value for name, value in given.items() if value is not None}
    return given if given or options.corejax_search else None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """List the exemptions, with their reasons, and who provides the rules of which primitive."""
    stats = terminalreporter.stats
    reports = [report for status in ("passed", "failed", "skipped") for report in stats.get(status, ())]
    told = [pair for report in reports if getattr(report, "when", "") == "call" for pair in report.user_properties]
    for title, key in (("exemptions of the conformance kit", "corejax exemption"),
                       ("rules of several packs, as they were checked", "corejax providers")):
        lines = dict.fromkeys([text for name, text in told if name == key])
        if lines:
            terminalreporter.section(title)
            for text in lines:
                terminalreporter.line(text)
