"""Integer division: no program ends the process, and what is known not to be zero costs nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import corejax as cj
from corejax import lax

pytestmark = pytest.mark.usefixtures("usual_code")

PROGRAMS = Path(__file__).with_name("integer_divisions.py")
X, Y = np.array([-7, 8, 9], np.int32), np.array([2, 3, 0], np.int32)


def lowered(f, *args):
    return cj.jit(f).lower(*args).as_text()


def test_no_division_of_constants_ends_the_process():
    done = subprocess.run([sys.executable, str(PROGRAMS)], capture_output=True, text=True)
    assert (0, "done") == (done.returncode, done.stdout.split("\n")[-2]), done.stdout[-80:] + done.stderr[-2000:]


@pytest.mark.parametrize("f", [
    lambda x: x // 7, lambda x: lax.rem(x, -3), lambda x: lax.div(x, np.array([1, 2, 3], np.int32)),
    lambda x: lax.div(x, lax.full((3,), 5, np.int32)), lambda x: x.astype(float) / 0,
    lambda x: lax.rem(x.astype(np.float32), x.astype(np.float32))])
def test_a_divisor_that_cant_be_an_integer_zero_is_not_kept_from_the_compiler(f):
    assert "optimization_barrier" not in lowered(f, X)


@pytest.mark.parametrize("f", [lambda x, y: lax.div(x, y), lambda x, y: lax.rem(x, np.array([1, 0, 3], np.int32)),
                               lambda x, y: lax.div(x, 0), cj.vmap(lax.div)])
def test_a_barrier_before_an_integer_division_is_gone_in_the_compiled_program(f):
    assert "optimization_barrier" in lowered(f, X, Y)
    compiled = cj.jit(f).lower(X, Y).compile().as_text()
    assert "barrier" not in compiled and (" divide(" in compiled or " remainder(" in compiled or " select(" in compiled)


def test_integers_divided_by_zero_and_the_lowest_by_minus_one_have_values():
    low, by = np.array([-2 ** 31, -2 ** 31, 5, -5], np.int32), np.array([-1, 0, 0, 0], np.int32)
    for divide, wanted in ((lax.div, [-2 ** 31, -1, -1, -1]), (lax.rem, [0, -2 ** 31, 5, -5])):
        assert wanted == divide(low, by).tolist() == cj.jit(divide)(low, by).tolist()
