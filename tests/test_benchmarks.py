"""The benchmark's page and plots say what was measured; and the examples compute what jax computes with their text."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import corejax as cj
from imports import ROOT

MODULES = ("__main__", "against", "growth", "measure", "plot", "public", "public_arguments", "real", "report",
           "rivals", "rows")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The modules of benchmarks/, which is no installed package."""
    monkeypatch.syspath_prepend(str(ROOT))
    yield SimpleNamespace(**{name.strip("_"): import_module(f"benchmarks.{name}") for name in MODULES})


@pytest.fixture
def found(bench: Any) -> Any:
    """What a run may have found: a target met, one missed, a figure without one, and something that grows."""
    timing = bench.measure.Timing
    added = {"corejax": timing(2e-6, 1.9e-6, 2.1e-6, 25), "jax": timing(9e-6, 8e-6, 1e-5, 25),
             "autograd": timing(1e-6, 1e-6, 1e-6, 25)}
    rows = [bench.rows.Row("eager `add`", added, {"jax": 5, "autograd": 0.25}),
            bench.rows.Row("memory", {"corejax": timing.exact(2000), "jax": timing.exact(5000)}, unit="B")]
    grown = bench.growth.Series("make_jaxpr", "equations", {"corejax": {10: timing(1e-4, 1e-4, 1e-4, 5),
                                                                       1000: timing(4e-3, 4e-3, 4e-3, 5)},
                                                            "jax": {10: timing(5e-4, 5e-4, 5e-4, 5)}})
    return bench.report.Report("some cores.", bench.measure.Effort(), {"Some": {"some.add": rows}},
                               {"growth.trace": [grown]}, {"calls.device": "ValueError: no"})


def test_page_says_which_targets_are_met_and_what_could_not_be_measured(bench: Any, found: Any) -> None:
    page = bench.report.markdown(found)
    assert "1 of 2 targets are met. These are not:\n\n- `some.add`, eager `add`, beside jax: 4.5, wanted 5\n" in page
    assert "- `calls.device` could not be measured: ValueError: no" in page
    assert "| eager `add` | 2 µs [1.9 to 2.1] | jax | 9 µs [8 to 10] | 4.5 | 5 | **no** |" in page
    assert "|  |  | autograd | 1 µs [1 to 1] | 0.5 | 0.25 | yes |" in page
    assert "| memory | 2 kB | jax | 5 kB | 2.5 |  |  |" in page
    assert "| make_jaxpr | corejax | 10 µs | 4 µs |\n|  | jax | 50 µs |  |" in page


def test_revisions_are_compared_by_the_ratios_of_pairs(bench: Any) -> None:
    def reports(*medians: float) -> list[Any]:
        rows = [[bench.rows.Row("eager `add`", {"corejax": bench.measure.Timing.exact(median)})] for median in medians]
        return [bench.report.Report("", bench.measure.Effort(), {"Some": {"some.add": each}}) for each in rows]

    slow, = bench.against.compared(reports(2.0, 4.4, 2.1, 2.2, 2.0, 4.0), reports(1.0, 2.0, 1.0, 1.0, 1.0, 2.0))
    assert (2.05, 2.0, 2.2, "**slower**") == (slow.median, slow.low, slow.high, slow.verdict)
    equal, = bench.against.compared(reports(1.0, 1.1, 0.9), reports(1.0, 1.0, 1.0))
    assert (1.0, "") == (equal.median, equal.verdict)
    assert "slower by more than 3%: some.add." in bench.against.table([slow])
    assert (2, 8) == bench.against.interval(range(1, 10))


def test_a_rival_is_compared_within_each_process(bench: Any, found: Any) -> None:
    memory, add = bench.against.compared([found] * 6, [found] * 6, "jax")
    assert ("eager `add`", 2e-6, 9e-6, 2 / 9) == (add.what, add.here, add.there, add.median)
    assert 0.4 == memory.median and "| 2 µs | 9 µs | 0.222 | 0.222 to 0.222 | faster |" in bench.against.table([add])


def test_figures_are_read_back_as_they_were_written(bench: Any, found: Any) -> None:
    assert found == bench.report.from_json(bench.report.as_json(found))


def test_plot_of_ratios_is_svg_that_rings_what_misses_its_target(bench: Any, found: Any) -> None:
    drawing = ElementTree.fromstring(bench.plot.ratios(found))
    styles = [each.get("class") for each in drawing.iter() if each.get("class")]
    assert "svg" == drawing.tag.removeprefix(SVG)
    legend, here = 1, 1
    assert legend + here == styles.count("miss")
    assert legend + 2 == styles.count("target")
    assert "eager add" in [each.text for each in drawing.iter(f"{SVG}text")]
    # further to the right is faster
    at = {float(each.get("cx")) for each in drawing.iter(f"{SVG}circle") if each.get("class") == "jax"}
    assert 3 == len(at)
    assert "prefers-color-scheme: dark" in bench.plot.ratios(found)


def test_plot_of_growth_has_a_line_for_each_library(bench: Any, found: Any) -> None:
    drawing = ElementTree.fromstring(bench.plot.growth(found))
    lines = {each.get("class"): each.get("points") for each in drawing.iter(f"{SVG}polyline")}
    assert ["line corejax", "line jax"] == list(lines)
    (x0, y0), (x1, y1) = (map(float, point.split(",")) for point in lines["line corejax"].split())
    assert x0 < x1 and y0 > y1


def test_names_choose_rows_and_whole_sections(bench: Any) -> None:
    everything = bench.main.names()
    assert len(everything) == len(set(everything)) > 60
    assert everything == bench.main.chosen([])
    chosen = bench.main.chosen(["memory", "calls.numpy"])
    assert ["calls.numpy", "memory.trace", "memory.trace_grad", "memory.loop"] == chosen
    with pytest.raises(SystemExit, match="nothing is called calls.nothing"):
        bench.main.chosen(["calls.nothing"])


def test_row_that_fails_is_reported_and_passed_over(bench: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def broken(rivals: Any, effort: Any) -> Any:
        yield bench.rows.Row("first", {})
        raise RuntimeError("out of luck")

    monkeypatch.setattr(bench.rivals, "installed", dict)
    monkeypatch.setitem(bench.main.SECTIONS, "start", ("Start", {"import": broken}))
    found = bench.main.measure(["start.import"], bench.main.QUICK)
    assert {"start.import": "RuntimeError: out of luck"} == found.failures
    assert ["first"] == [row.what for row in found.sections["Start"]["start.import"]]
    assert "start.import" in capsys.readouterr().err


def test_new_figures_take_the_place_of_old_ones_of_the_same_machine(bench: Any, found: Any) -> None:
    row = bench.rows.Row("new", {})
    new = bench.report.Report(found.setting, found.effort, {"Some": {"some.add": [row]}}, {}, {"some.sub": "Error: no"})
    joined = bench.main.joined(found, new)
    assert {"Some": {"some.add": [row]}} == joined.sections
    assert ["calls.device", "some.sub"] == list(joined.failures)
    with pytest.raises(SystemExit, match="of another machine"):
        bench.main.joined(found, bench.report.Report("other cores.", found.effort))


@pytest.mark.exhaustive
def test_everyone_takes_a_turn_at_being_the_first(bench: Any) -> None:
    made: list[str] = []

    def make(name: str) -> Any:
        made.append(name)
        return None if name == "missing" else bench.measure.Task(lambda _: None)

    timings = bench.measure.measured(make, ["one", "missing", "two"], bench.measure.Effort(4, 2, 1.0))
    assert ["one", "two"] == list(timings)
    assert ["one", "missing", "two", "two", "one"] == made
    assert 4 == timings["one"].count


@pytest.mark.parametrize("name", ["mlp_training", "logistic_hessian", "n_body_gradient", "mandelbrot",
                                  "attention_gradient", "greeks"])
def test_example_computes_what_jax_computes_with_its_text(bench: Any, name: str) -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    made = getattr(bench.real, name)
    ours, theirs = made("corejax"), made("jax")
    found, expected = cj.jit(ours[0])(*ours[1]), jax.jit(theirs[0])(*theirs[1])
    for x, y in zip(cj.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-8, atol=1e-10)


def test_what_is_timed_of_every_public_function_is_said(bench: Any) -> None:
    assert [] == bench.public.untold()
    named = [*bench.public_arguments.ARGUMENTS, *" ".join(bench.public_arguments.NOT_TIMED.values()).split()]
    assert len(named) == len(set(named)) and set(named) <= set(bench.public.public_names())
    reasons = {**bench.public_arguments.REASONS, **bench.public_arguments.REASONS_COMPILED}
    assert set(reasons) <= set(bench.public_arguments.ARGUMENTS)


@pytest.mark.parametrize("how", ["eager", "compiled"])
def test_public_functions_take_the_arguments_with_which_they_are_timed(bench: Any, how: str) -> None:
    """A sample of them, in the smallest size; numpy's own functions are tried, too."""
    for name in [*bench.public_arguments.ARGUMENTS][::12]:
        arguments = bench.public_arguments.ARGUMENTS[name](bench.public.sizes_of(name)[0])
        if not (how == "compiled" and name in bench.public_arguments.EAGER_ONLY):
            bench.public.call(cj, name, arguments, how)()


def test_the_page_of_public_functions_names_what_is_slower(bench: Any) -> None:
    found = [bench.public.Found("lax.sin", 8, how, 2.0, jax, 1.0, ratio, low, high)
             for how, jax, ratio, low, high in (("eager", 1.0, 0.5, 0.4, 0.6), ("compiled", 1.7, 0.85, 0.8, 0.95))]
    page = bench.public.page(found, [("lax.cos, eager, 8", "ValueError: no")], 1.0)
    assert "| lax.sin | 8 | eager | 2.0 µs | 1.0 µs | 0.50 | 0.40 to 0.60 |" in page
    assert "\nlax.sin,0.50,,,0.85,,,0.50,,\n" in bench.public.table(found)
    assert "1 functions, 2 rows in 1 minutes; 0 of them at least as fast as JAX's, 1 wholly below 0.9." in page
    assert "- ValueError: no: `lax.cos, eager, 8`" in page


def test_the_quick_comparison_takes_rows_that_there_are(bench: Any) -> None:
    assert 20 == len(set(bench.against.QUICK)) and set(bench.against.QUICK) <= set(bench.main.names())
