"""A line that says how far a loop is: the loop computes the same, and nothing is shown where there is no terminal."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.base import _jaxlib
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax_callbacks import _lines, progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def pictures(self) -> list[str]:
        """What the line has shown, one after the other, without what only makes room."""
        return [text.strip() for text in self.getvalue().replace("\n", "\r").split("\r") if text.strip()]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    shown = Terminal()  # not in place of sys.stderr, which pytest replaces once more before a test begins
    monkeypatch.setattr(_lines, "sys", SimpleNamespace(stderr=shown, stdout=shown))
    monkeypatch.setattr(_lines, "_PAUSE", 0.0)
    monkeypatch.setenv("COLUMNS", "120")
    return shown


def same(found: Any, wanted: Any) -> None:
    """Equal bits, dtypes, weak types and structure."""
    for x, y in zip(cj.tree.leaves(found), cj.tree.leaves(wanted), strict=True):
        assert (cj.typeof(x), np.asarray(x).tobytes()) == (cj.typeof(y), np.asarray(y).tobytes())
    assert cj.tree.structure(found) == cj.tree.structure(wanted)


def step(carry: Any, x: Any) -> Any:
    a, b = carry
    return (lax.sin(a) + x["u"], b + 1), {"a": a * 2.0, "row": x["v"] * a}


def slices(n: int) -> Any:
    return {"u": np.linspace(0.0, 1.0, n), "v": np.arange(2.0 * n).reshape(n, 2)}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("n", "every"), [(1, None), (7, 3), (8, 4), (103, None), (6, 10), (5, 1)])
def test_scan_computes_what_it_does_without(terminal: Terminal, n: int, every: int | None, reverse: bool) -> None:
    bar = progress(every=every, label="steps")
    wanted = lax.scan(step, (1.0, 0), slices(n), reverse=reverse)
    same(bar.scan(step, (1.0, 0), slices(n), reverse=reverse), wanted)
    same(cj.jit(lambda c, xs: bar.scan(step, c, xs, reverse=reverse))((1.0, 0), slices(n)), wanted)
    assert f"100%  {n:,} of {n:,}" in terminal.pictures()[-1] and terminal.getvalue().endswith("\n")
    assert all(picture.startswith("steps [") for picture in terminal.pictures())


def test_counted_scans_and_their_derivatives(terminal: Terminal) -> None:
    def total(x: Any, scan: Any) -> Any:
        return scan(lambda c, _: (lax.sin(c) * 1.5, None), x, None, length=11)[0]

    bar = progress(every=4)
    for run, x in ((cj.grad, 0.7), (cj.jacfwd, 0.7), (lambda f: cj.jit(cj.grad(f)), 0.7),
                   (lambda f: cj.vmap(cj.grad(f)), np.arange(3.0))):
        same(run(lambda x: total(x, bar.scan))(x), run(lambda x: total(x, lax.scan))(x))
    assert "11 of 11" in terminal.pictures()[-1]


@pytest.mark.parametrize(("low", "high"), [(0, 10), (3, 10), (5, 5), (7, 2), (-4, 300)])
def test_fori_loop_computes_what_it_does_without(terminal: Terminal, low: int, high: int) -> None:
    def body(i: Any, x: Any) -> Any:
        return x * 0.5 + i, i

    def plain(x: Any) -> Any:
        return lax.fori_loop(low, high, lambda i, s: body(i, s[0]), (x, low))

    bar = progress(every=4)
    same(bar.fori_loop(low, high, lambda i, s: body(i, s[0]), (1.0, low)), plain(1.0))
    traced = cj.jit(lambda low, high: bar.fori_loop(low, high, lambda i, s: body(i, s[0]), (1.0, low)))
    same(traced(low, high), cj.jit(lambda low, high: lax.fori_loop(low, high, lambda i, s: body(i, s[0]), (1.0, low)))(
        low, high))
    assert (high <= low) or f"100%  {high - low} of {high - low}" in terminal.pictures()[-1]


def test_while_loop_computes_what_it_does_without_and_asks_as_often(terminal: Terminal) -> None:
    asked: list[float] = []

    def going(x: Any) -> Any:
        cj.debug.callback(lambda x: asked.append(float(x)), x, ordered=True)
        return x < 40.0

    for bar in (progress(label="growth"), progress(every=3)):
        for run in (lambda loop: loop(going, lambda x: x + 1.5, 0.0),
                    lambda loop: cj.jit(lambda x: loop(going, lambda x: x + 1.5, x))(0.0)):
            asked.clear()
            wanted = run(lax.while_loop)
            often = list(asked)
            asked.clear()
            same(run(bar.while_loop), wanted)
            assert often == asked
    assert "27 steps" in terminal.pictures()[-1]


def test_a_batch_shows_one_line(terminal: Terminal) -> None:
    bar = progress(every=2)
    found = cj.vmap(lambda x: bar.fori_loop(0, 6, lambda i, x: x + i, x))(np.arange(3.0))
    same(found, cj.vmap(lambda x: lax.fori_loop(0, 6, lambda i, x: x + i, x))(np.arange(3.0)))
    assert ["2 of 6", "4 of 6", "6 of 6"] == [picture.partition("%  ")[2].partition(",")[0]
                                              for picture in terminal.pictures()]


def test_what_is_printed_stands_above_the_line(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", terminal)

    def body(i: Any, x: Any) -> Any:
        cj.debug.print("at {}", i, ordered=True)
        return x + i

    cj.jit(lambda x: progress(every=2).fori_loop(0, 4, body, x))(0)
    lines = [line.split("\r")[-1].strip() for line in terminal.getvalue().split("\n")]
    assert ["at 0", "at 1", "at 2", "at 3"] == lines[:4] and "100%" in lines[4] and [""] == lines[5:]


def test_nothing_is_shown_nor_added_without_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    bar = progress(label="hidden")

    def text(loops: Any) -> str:
        return str(cj.make_jaxpr(lambda x: (loops.scan(lambda c, x: (c + x, c), x, np.arange(3.0)),
                                            loops.fori_loop(0, 3, lambda i, x: x + i, x),
                                            loops.while_loop(lambda x: x < 3.0, lambda x: x + 1.0, x)))(1.0))

    assert text(lax) == text(bar)
    bar.fori_loop(0, 3, lambda i, x: x + i, 0)
    assert ("", "") == capfd.readouterr()


def test_a_closed_terminal_stops_no_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    loop = cj.jit(lambda x: progress(every=1).fori_loop(0, 3, lambda i, x: x + i, x))
    assert 3 == loop(0)
    shown.close()
    assert 3 == loop(0)


@pytest.mark.parametrize(("options", "error"), [
    ({"every": 0}, CorejaxValueError), ({"every": 2.5}, CorejaxValueError), ({"every": True}, CorejaxValueError),
    ({"label": 3}, CorejaxTypeError)])
def test_options_that_mean_nothing_are_refused(options: Any, error: type) -> None:
    with pytest.raises(error, match="progress: "):
        progress(**options)


def test_rates_and_durations_are_for_people() -> None:
    assert ["30.0 a minute", "4.5 a second", "1,234 a second"] == [*map(_lines._rate, (0.5, 4.5, 1234.0))]
    assert ["0.5 s", "12 s", "2 min 5 s", "1 h 1 min"] == [*map(_lines._duration, (0.5, 12.0, 125.0, 3690.0))]


def test_a_loop_that_comes_again_is_compiled_once(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    bar, compiled = progress(every=2), []
    compile_module = _jaxlib.compile_module
    monkeypatch.setattr(_jaxlib, "compile_module", lambda *args: compiled.append(1) or compile_module(*args))

    def loops(k: int) -> None:
        assert 6 + k == bar.fori_loop(0, 4, lambda i, x: x + i, k)
        assert 5 == bar.while_loop(lambda x: x < 5, lambda x: x + 1, 0)

    loops(0)
    first = len(compiled)
    loops(1)
    assert 0 < first == len(compiled)
