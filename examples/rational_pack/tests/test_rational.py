"""Rational numbers against Python's fractions, under every transformation."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax_rational import rational, rational_add, rational_less, rational_mul, rational_parts, rational_to_float

RNG = np.random.default_rng(0)
TOP, BOTTOM = RNG.integers(-30, 31, (2, 40)), RNG.integers(1, 31, (2, 40))
X, Y = (rational(top, bottom) for top, bottom in zip(TOP, BOTTOM))
XS, YS = ([Fraction(int(t), int(b)) for t, b in zip(top, bottom)] for top, bottom in zip(TOP, BOTTOM))


def fractions(x: Any) -> list[Fraction]:
    """An array as Python's fractions; that it is in lowest terms is part of the comparison."""
    pairs = np.asarray(rational_parts(x)).reshape(-1, 2).tolist()
    found = [Fraction(*pair) for pair in pairs]
    assert pairs == [[f.numerator, f.denominator] for f in found]
    return found


@pytest.mark.parametrize("run", [lambda f: f, cj.jit, cj.vmap, lambda f: cj.jit(cj.vmap(f))],
                         ids=["eager", "jit", "vmap", "jit of vmap"])
def test_sums_and_products_are_those_of_fractions(run: Any) -> None:
    assert fractions(run(rational_add)(X, Y)) == [x + y for x, y in zip(XS, YS)]
    assert fractions(run(rational_mul)(X, Y)) == [x * y for x, y in zip(XS, YS)]
    assert np.asarray(run(rational_less)(X, Y)).tolist() == [x < y for x, y in zip(XS, YS)]


def test_a_loop_sums_a_series() -> None:
    def total(terms: Any) -> Any:
        return lax.scan(lambda c, x: (rational_add(c, x), c), rational(0), terms)

    terms = rational(np.ones(12, int), np.arange(1, 13))
    for run in (total, cj.jit(total)):
        last, before = run(terms)
        assert fractions(last) == [sum(Fraction(1, n) for n in range(1, 13))]
        assert fractions(before[2]) == [Fraction(3, 2)]


def test_they_go_through_conditions_and_indexing() -> None:
    def largest(x: Any) -> Any:
        def larger(i: Any, best: Any) -> Any:
            return lax.cond(rational_less(best, x[i]), lambda: x[i], lambda: best)
        return lax.fori_loop(1, 40, larger, x[0])

    assert fractions(largest(X)) == fractions(cj.jit(largest)(X)) == [max(XS)]
    assert fractions(X.reshape(8, 5).T[1:3, ::-1]) == (
        [XS[i] for i in np.arange(40).reshape(8, 5).T[1:3, ::-1].ravel()])
    assert fractions(X.at[3].set(Y[0]))[3] == YS[0]


def test_they_print() -> None:
    assert "Array([1/2, -3, 0], dtype=rational)" == repr(rational([1, 6, 0], [2, -2, 5]))
    assert "{ lambda ; a:rational[40] b:rational[40]. let c:rational[40] = rational_add a b in (c,) }" == str(
        cj.make_jaxpr(rational_add)(X, Y))


def test_floats_have_derivatives_beside_them() -> None:
    assert cj.grad(lambda s: (s * rational_to_float(X)).sum())(2.0) == pytest.approx(float(sum(XS)))


@pytest.mark.parametrize("wrong", [
    lambda: X + Y, lambda: lax.sin(X), lambda: X.sum(), lambda: np.asarray(X), lambda: X.__dlpack__(),
    lambda: X < Y, lambda: float(X[0]), lambda: X.astype("float64"),
    lambda: X.at[0].add(Y[0])])
def test_what_is_for_numbers_refuses_them_by_name(wrong: Any) -> None:
    with pytest.raises(cj.CorejaxError, match="rational") as caught:
        wrong()
    assert "rational_add" in str(caught.value)
