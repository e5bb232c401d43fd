"""A line that says how far a loop is: the loop computes the same, and nothing is shown where there is no terminal."""

from __future__ import annotations

import io
import math
import sys
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.base import _jaxlib
from corejax.errors import CorejaxError, CorejaxTypeError, CorejaxValueError
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


class Clock:
    """The time, which goes on when a loop says so."""

    def __init__(self) -> None:
        self.now = 1_000_000_000

    def monotonic_ns(self) -> int:
        return self.now

    def step(self, seconds: float) -> None:
        """A step of a program takes so long."""
        def go_on(_: Any) -> None:
            self.now += round(1e9 * seconds)
        cj.debug.callback(go_on, 0, ordered=True)


@pytest.fixture
def clock(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(_lines, "time", found)
    monkeypatch.setattr(_lines, "_PAUSE", 0.05)
    return found


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """After how many steps Python is called."""
    found: list[int] = []
    show = _lines.Line.show

    def counted(line: _lines.Line, loop: Any, done: Any, going: Any = None) -> Any:
        found.append(int(done))
        return show(line, loop, done, going)

    monkeypatch.setattr(_lines.Line, "show", counted)
    return found


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
@pytest.mark.parametrize(("n", "every"), [(1, None), (7, 3), (8, 4), (103, None), (6, 10), (5, 1), (2500, None),
                                          (2503, None)])
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


@pytest.mark.parametrize("inner", [None, "rows"])
def test_loops_in_loops_and_their_derivatives(terminal: Terminal, inner: str | None) -> None:
    def total(x: Any, outer: Any, inner: Any) -> Any:
        return outer.fori_loop(0, 5, lambda i, x: inner.scan(
            lambda c, t: (lax.sin(c) + t, None), x, np.arange(4.0))[0] + i, x)

    bar = progress(label="rounds")
    other = bar if inner is None else progress(label=inner)
    for run in (lambda f: f, cj.jit, cj.grad, lambda f: cj.jit(cj.grad(f)), lambda f: cj.grad(cj.checkpoint(f))):
        same(run(lambda x: total(x, bar, other))(0.3), run(lambda x: total(x, lax, lax))(0.3))
    assert "rounds [########################] 100%  5 of 5" in terminal.pictures()[-1] and not _lines._shown


def test_derivatives_of_what_is_closed_over(terminal: Terminal) -> None:
    def total(w: Any, scan: Any, n: int) -> Any:
        return scan(lambda c, t: (lax.sin(c) * w + t, c), 0.5, np.linspace(0.0, 1.0, n))[0]

    slope = cj.jit(cj.grad(total), static_argnums=(1, 2))
    same(slope(1.3, progress().scan, 11), slope(1.3, lax.scan, 11))
    np.testing.assert_allclose(slope(1.3, progress().scan, 2500), slope(1.3, lax.scan, 2500), rtol=1e-13)  # by parts


def test_several_threads_share_a_line(terminal: Terminal) -> None:
    bar = progress(label="threads")
    loop = cj.jit(lambda x: bar.scan(lambda c, t: (lax.sin(c) + t, c), x, np.arange(3000.0)))
    plain = cj.jit(lambda x: lax.scan(lambda c, t: (lax.sin(c) + t, c), x, np.arange(3000.0)))
    found: dict[float, Any] = {}
    threads = [threading.Thread(target=lambda x=x: found.update({x: [loop(x) for _ in range(5)]}))
               for x in (0.1, 0.2, 0.3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for x, results in found.items():
        for result in results:
            same(result, plain(x))
    assert 3 == len(found) and 15 == sum("3,000 of 3,000" in picture for picture in terminal.pictures())
    assert not _lines._shown


def test_a_shorter_line_is_drawn_over_a_longer_one(terminal: Terminal) -> None:
    longer, shorter = progress(label="a long label"), progress(label="b")
    cj.jit(lambda x: longer.fori_loop(0, 2, lambda i, x: shorter.fori_loop(0, 2, lambda i, x: x + i, x), x))(0)
    rows = [row for row in terminal.getvalue().split("\n") if row]
    for row in rows:
        shown = ""
        for part in row.split("\r"):
            shown = part + shown[len(part):]
        assert 1 == shown.count("[")


@pytest.mark.parametrize("wrong", [
    lambda scan: scan(lambda c, x: (c, x), 0.0, (np.arange(3.0), np.arange(4.0))),
    lambda scan: scan(lambda c, x: (c, x), 0.0, np.arange(4.0), length=5),
    lambda scan: scan(lambda c, x: (c, x), 0.0, np.float64(1.0)),
    lambda scan: scan(lambda c, x: (c, x), 0.0),
    lambda scan: scan(lambda c, x: c, 0.0, np.arange(4.0)),
    lambda scan: scan(3, 0.0, np.arange(4.0))])
def test_wrong_arguments_are_refused_as_by_scan(terminal: Terminal, wrong: Any) -> None:
    with pytest.raises(CorejaxError) as expected:
        wrong(lax.scan)
    with pytest.raises(type(expected.value)) as found:
        wrong(progress().scan)
    assert str(expected.value).split("where")[0] == str(found.value).split("where")[0]


@pytest.mark.parametrize(("low", "high"), [(0, 10), (3, 10), (5, 5), (7, 2), (-4, 300), (0.0, 2.5),
                                           (0, 2503)])
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
    steps = f"{math.ceil(high - low):,}"
    assert (high <= low) or f"100%  {steps} of {steps}" in terminal.pictures()[-1]


@pytest.mark.parametrize(("low", "high"), [
    (np.int8(-100), np.int8(100)), (np.uint8(100), np.uint8(98)), (np.uint64(100), np.uint64(98)),
    (np.uint8(250), np.uint8(255)), (np.int64(-2**62), np.int64(-2**62 + 3))])
def test_bounds_whose_difference_is_no_number_of_their_type(terminal: Terminal, low: Any, high: Any) -> None:
    def last(loops: Any) -> Any:
        return cj.jit(lambda a, b: loops.fori_loop(a, b, lambda i, x: (x[0] + 1, i), (0, a)))(low, high)

    same(last(progress()), last(lax))


@pytest.mark.parametrize("wrong", [
    lambda loops: loops.while_loop(lambda x: x, lambda x: x - 1, 3.0),
    lambda loops: loops.while_loop(lambda x: x < 3, lambda x: x + 1, np.zeros(2)),
    lambda loops: loops.while_loop(None, lambda x: x + 1, 0.0),
    lambda loops: loops.while_loop(lambda x: (x < 3, x < 3), lambda x: x + 1, 0.0),
    lambda loops: loops.fori_loop(False, True, lambda i, x: x + 1, 0),
    lambda loops: loops.fori_loop(0, np.array([3]), lambda i, x: x + 1, 0),
    lambda loops: loops.fori_loop(0, 3, None, 0)])
def test_what_is_no_loop_is_refused_as_by_lax(terminal: Terminal, wrong: Any) -> None:
    with pytest.raises(CorejaxError) as theirs:
        wrong(lax)
    with pytest.raises(CorejaxError) as ours:
        wrong(progress())
    assert str(ours.value) == str(theirs.value)


def looped(bar: progress, kind: str, n: int, step: Any) -> Any:
    """n steps in a compiled loop."""
    def body(x: Any) -> Any:
        step()
        return x * 0.5 + 1.0

    if kind == "scan":
        return cj.jit(lambda x: bar.scan(lambda x, _: (body(x), None), x, None, n)[0])(1.0)
    if kind == "fori_loop":
        return cj.jit(lambda x: bar.fori_loop(0, n, lambda i, x: body(x), x))(1.0)
    return cj.jit(lambda x: bar.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, body(s[1])), (0, x))[1])(1.0)


@pytest.mark.parametrize(("kind", "most"), [("scan", 2), ("fori_loop", 2), ("while_loop", 4)])
def test_a_million_cheap_steps_call_python_a_few_times_and_draw_once(
        terminal: Terminal, clock: Clock, calls: list[int], kind: str, most: int) -> None:
    looped(progress(), kind, 10**6, lambda: None)
    assert len(calls) <= most and 10**6 == calls[-1]
    assert 1 == len(terminal.pictures()) and terminal.getvalue().endswith("\n")


@pytest.mark.parametrize(("kind", "apart"), [("scan", 2), ("fori_loop", 2), ("while_loop", 1)])
def test_slow_steps_are_shown_as_they_come(terminal: Terminal, clock: Clock, calls: list[int], kind: str, apart: int
                                           ) -> None:
    looped(progress(), kind, 2000, lambda: clock.step(1.0))
    assert [*range(apart, 2001, apart)] == calls and len(calls) == len(terminal.pictures())


@pytest.mark.parametrize("kind", ["scan", "fori_loop", "while_loop"])
def test_steps_that_become_slow_are_shown_soon_and_fast_ones_ten_times_a_second(
        terminal: Terminal, clock: Clock, calls: list[int], kind: str) -> None:
    done: list[int] = []

    def slow_later(_: Any) -> None:
        done.append(0)
        clock.now += 1_000 if len(done) < 5 else 1_000_000_000 if len(done) < 400 else 10_000_000

    looped(progress(), kind, 800, lambda: cj.debug.callback(slow_later, 0, ordered=True))
    assert [1, 101, 102, 103] == calls[:4] and {10} == {*np.diff(calls[-30:-1]).tolist()}


def test_a_given_number_of_steps_lies_between_two_pictures(terminal: Terminal, clock: Clock) -> None:
    for kind in ("scan", "fori_loop", "while_loop"):
        looped(progress(every=3), kind, 10, lambda: clock.step(0.1))
    counts = [picture.partition(" ")[0] if "%" not in picture else picture.partition("%  ")[2].partition(" ")[0]
              for picture in terminal.pictures()]
    assert ["3", "6", "9", "10"] * 3 == counts


@pytest.mark.parametrize("n", [1, 7, 1000, 1009, 10_000, 100_000, 123_456, 999_983, 10**6, 10**7])
def test_parts_are_small_and_not_too_many(n: int) -> None:
    size = progress()._size(n)
    assert 1 <= size <= 10_000 and min(n, 100) <= n // size <= 2000 * max(1, n // 10**7)
    assert n == 1 or n % size == 0 or n in (1009, 999_983)  # which are prime


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
