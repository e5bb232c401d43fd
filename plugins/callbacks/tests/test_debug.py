"""Printing, logging and breakpoints."""

from __future__ import annotations

import io
import logging
import os
import pty
import re
import select
import subprocess
import sys
import textwrap
import time
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxError, CorejaxRuntimeError, CorejaxTypeError, CorejaxValueError

MODES = pytest.mark.parametrize("mode", [lambda f: f, cj.jit], ids=["eager", "jit"])


@MODES
def test_values_are_printed_as_the_format_says(mode: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any, y: Any) -> Any:
        cj.debug.print("{} {x:.2f} {y} {what!r} {{}} {:>{width}d} {y.shape} {y[1]} {.shape}", x, 7, y, x=x, y=y,
                       what="text", width=5)
        cj.debug.print("no places")  # which may come first
        return x

    mode(f)(1.5, np.arange(3))
    assert ["1.5 1.50 [0 1 2] 'text' {}     7 (3,) 1 (3,)", "no places"] == sorted(capsys.readouterr().out.splitlines())


@MODES
@pytest.mark.parametrize(("fmt", "said"), [
    ("{", "can't be used"), ("{} {}", "no argument 1"), ("{y}", "no argument 'y'"), ("{:d}", "can't be used"),
    ("{!x}", "can't be used"), ("{0} {}", "numbers some places"), ("{.nothing}", "can't be used"), (3, "must be text"),
    ("nothing", "no place for argument 0"), ("{:{w}}", "no argument 'w'")])
def test_formats_are_checked_at_once(mode: Any, fmt: Any, said: str) -> None:
    for show in (cj.debug.print, cj.debug.log):
        with pytest.raises(CorejaxError, match=said) as caught:
            mode(lambda x: show(fmt, x))(1.5)  # noqa: B023
        assert __file__ in str(caught.value.where)


def test_a_format_for_one_number_is_not_for_arrays() -> None:
    with pytest.raises(CorejaxValueError, match=r"'\.2f' is a format for one number"):
        cj.debug.print("{:.2f}", np.ones(3))
    with pytest.raises(CorejaxError, match="there are arguments"):
        cj.debug.print(None, 3)


@MODES
def test_without_the_check_it_fails_when_the_program_runs(mode: Any) -> None:
    with pytest.raises(IndexError):
        mode(lambda x: cj.debug.print("{} {}", x, skip_format_check=True))(1.0)


def test_numpys_options_are_those_of_the_call(capsys: pytest.CaptureFixture[str]) -> None:
    with np.printoptions(precision=2):
        f = cj.jit(lambda x: cj.debug.print("{}", x))
        f(np.array([1.23456]))
    f(np.array([1.23456]))
    assert "[1.23]\n[1.23]\n" == capsys.readouterr().out


def test_printing_under_transformations(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        cj.debug.print("x = {}", x)
        return lax.sin(x)

    def step(x: Any, i: Any) -> Any:
        cj.debug.print("step {}: {:.1f}", i, x, ordered=True)
        return x * 2, None

    for run in (lambda: f(2.0), lambda: cj.jit(cj.grad(f))(2.0), lambda: cj.grad(cj.checkpoint(f))(2.0),
                lambda: cj.jit(cj.hessian(f))(2.0)):
        run()
        assert "x = 2.0\n" == capsys.readouterr().out
    cj.jit(cj.vmap(f))(np.arange(3.0))
    assert ["x = 0.0", "x = 1.0", "x = 2.0"] == sorted(capsys.readouterr().out.splitlines())
    cj.jit(cj.grad(lambda x: lax.scan(step, x, np.arange(3))[0]))(1.0)
    assert ["step 0: 1.0", "step 1: 2.0", "step 2: 4.0"] == capsys.readouterr().out.splitlines()


def test_forms_with_options_first(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[Any] = []
    cj.debug.print(ordered=True)("x = {}", 3)
    cj.debug.callback(ordered=True)(seen.append, 4)
    assert "x = 3\n" == capsys.readouterr().out and [4] == seen


def test_logging(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "corejax.debug"):
        cj.jit(lambda x: cj.debug.log("x = {}", x))(2.0)
    assert ["x = 2.0"] == [record.getMessage() for record in caplog.records]


# Breakpoints

def asked(f: Any, commands: str, *args: Any) -> str:
    out = io.StringIO()
    f(io.StringIO(commands), out, *args)
    return out.getvalue()


@MODES
def test_a_prompt_knows_the_variables(mode: Any) -> None:
    def outer(stdin: Any, stdout: Any, x: Any) -> Any:
        factor = 3

        def inner(x: Any) -> Any:
            y = {"twice": x * 2, "name": "text"}
            cj.debug.breakpoint(stdin=stdin, stdout=stdout)
            return y["twice"] + factor
        return mode(inner)(x)

    out = asked(outer, "p x\np y\nx + 1\np nothing\nu\np factor\nd\nd\nw\nl\nargs\npp y\nh\nh p\n\nc\n",
                cj.device_put(1.5))
    for said in (f"Stopped in inner, {__file__}:", "Array(1.5, dtype=float64)", "'twice': Array(3., dtype=float64)",
                 "'name': 'text'", "Array(2.5, dtype=float64)", "NameError: name 'nothing' is not defined",
                 "In outer, ", "(cjdb) 3\n", "this is the innermost frame", "inner()", "->", "cj.debug.breakpoint(",
                 "x = Array(1.5", "Documented commands", "p EXPRESSION"):
        assert said in out, (said, out)


def test_a_prompt_for_each_element_and_none_of_the_tangents() -> None:
    def f(stdin: Any, stdout: Any) -> Any:
        def g(x: Any) -> Any:
            cj.debug.breakpoint(stdin=stdin, stdout=stdout, num_frames=1)
            return lax.sin(x)
        return cj.jit(cj.vmap(cj.grad(g)))(np.arange(2.0))

    out = asked(f, "p x\nc\np x\nc\n")
    assert ["Array(0., dtype=float64)", "Array(1., dtype=float64)"] == re.findall(r"Array\(.*\)", out)


def test_quit_interrupts_and_the_end_of_input_goes_on() -> None:
    def f(stdin: Any, stdout: Any) -> Any:
        return cj.jit(lambda x: (cj.debug.breakpoint(stdin=stdin, stdout=stdout), x)[1])(1.0)

    with pytest.raises(KeyboardInterrupt):
        asked(f, "q\n")
    assert "Stopped in" in asked(f, "")


def test_without_a_terminal_a_breakpoint_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(CorejaxRuntimeError, match="no terminal to ask"):
        cj.jit(lambda x: cj.debug.breakpoint())(1.0)
    for options in ({"backend": "web"}, {"num_frames": "all"}, {"stdin": io.StringIO()}, {"filter_frames": 2}):
        with pytest.raises((CorejaxValueError, CorejaxTypeError)):
            cj.debug.breakpoint(**options)  # type: ignore[arg-type]


def test_in_a_terminal_it_asks(tmp_path: Any) -> None:
    (tmp_path / "program.py").write_text(textwrap.dedent("""
        import corejax as cj
        def f(x):
            y = x * 2
            cj.debug.breakpoint(ordered=True)
            return y + 1
        print("result", cj.jit(f)(20.5))
    """))
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, str(tmp_path / "program.py")], stdin=theirs, stdout=theirs,
                               stderr=theirs, close_fds=True)
    os.close(theirs)
    said, answers, end = "", ["p y\n", "c\n"], time.monotonic() + 60
    while time.monotonic() < end and "result 42.0" not in said:
        if select.select([ours], [], [], 0.2)[0]:
            said += os.read(ours, 4096).decode()
        if answers and said.count("(cjdb)") == 3 - len(answers):
            os.write(ours, answers.pop(0).encode())
    process.wait(30)
    os.close(ours)
    assert "Stopped in f, " in said and "Array(41., dtype=float64)" in said and "result 42.0" in said, said
