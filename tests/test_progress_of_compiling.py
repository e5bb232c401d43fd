"""Compiling that takes long says so on a terminal, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pty = pytest.importorskip("pty")

CODE = """
import time
import corejax as cj
from corejax.base import _jaxlib
from corejax.xla.cache import progress
progress.LONG = progress.EACH = 0.1
compile_module = _jaxlib.compile_module
def slow(*args):
    time.sleep({seconds})
    {then}
    return compile_module(*args)
_jaxlib.compile_module = slow
def training_step(x):
    return x + 1.0
{before}
try:
    print(cj.jit(training_step)(1.0))
except ZeroDivisionError:
    print("failed")
"""


def shown(seconds: float = 0.6, before: str = "", then: str = "", terminal: bool = True) -> str:
    """What a process writes to its terminal, or to its standard error."""
    code = CODE.format(seconds=seconds, before=before, then=then)
    if not terminal:
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", code], stderr=theirs, stdout=subprocess.PIPE, text=True)
    os.close(theirs)
    text = b""
    while True:
        try:
            text += os.read(ours, 1024)
        except OSError:  # the other end is closed
            break
        if process.poll() is not None and not text:
            break
    assert 0 == process.wait() and process.stdout is not None
    assert process.stdout.read() in ("2.0\n", "failed\n")
    process.stdout.close()
    os.close(ours)
    return text.decode()


def test_a_terminal_is_told_until_it_is_done() -> None:
    text = shown()
    assert "\rcompiling training_step: 0 s" in text and text.endswith("\r")
    assert "" == text.rpartition("\r")[2] and not text.split("\r")[-2].strip()  # the line is empty again


def test_a_failure_leaves_no_line() -> None:
    text = shown(then="raise ZeroDivisionError")
    assert "compiling training_step" in text and not text.split("\r")[-2].strip()


@pytest.mark.parametrize("how", [
    {"terminal": False}, {"seconds": 0.0}, {"before": "cj.config.progress = False"},
    {"before": "import sys; sys.stderr.close()"}, {"before": "import sys; sys.stderr = None"}], ids=str)
def test_nothing_is_said(how: dict) -> None:
    assert "" == shown(**how)
