"""Series of every installed primitive are the derivatives that nested jvp gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from corejax.core import subjaxprs
from series_of_samples import by_jets, by_nesting, curve, functions, last_by_one_jvp, primitives, samples

#: Whose gradients are rounded, so that they aren't linear.
ROUNDED = {"reduce_precision"}

#: Whose rules run loops, which become twice as large with each order.
LOOPS = {"cholesky_update"}


def _close(wanted: list[Any], got: list[Any], xs: list[Any]) -> None:
    narrow = any([_is_narrow(np.asarray(x).dtype) for x in xs])
    for w, g in zip(wanted, got, strict=True):
        assert (w.dtype, w.shape) == (g.dtype, g.shape)
        rtol = 0.25 if narrow or _is_narrow(w.dtype) else 1e-8
        w, g = w.astype(complex), g.astype(complex)
        size = max(1.0, np.abs(np.where(np.isfinite(w), w, 0.0)).max(initial=0.0))
        np.testing.assert_allclose(g, w, rtol=rtol, atol=rtol * size)


def _is_narrow(dtype: np.dtype) -> bool:
    return dtype.itemsize < 8 or dtype == np.complex64


def _is_regular(xs: list[Any]) -> bool:
    """Whether a curve through these begins there: 0 times infinity is NaN, and -0 + 0 is 0."""
    arrays = [np.asarray(x).astype(complex) for x in xs]
    return all([np.isfinite(x).all() and not np.signbit(x.real[x == 0]).any() for x in arrays])


def _check(name: str, order: int, few: int | None) -> None:
    rng = np.random.default_rng(1)
    for primitive, sample in list(samples(name))[:few]:
        function, xs = functions(primitive, sample)
        if not _is_regular(xs):
            continue
        curves = [curve(rng, x, order) for x in xs]
        try:
            wanted = by_nesting(function, xs, curves)
        except Exception as error:
            with pytest.raises(type(error)):
                by_jets(function, xs, curves)
            continue
        for of_order, by_jet in zip(wanted, by_jets(function, xs, curves), strict=True):
            _close(of_order, by_jet, xs)


@pytest.mark.parametrize("name", primitives())
def test_the_first_sample_of_each_primitive_has_its_second_derivative(name: str) -> None:
    if name not in ROUNDED:
        _check(name, 2, 1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", primitives())
def test_all_samples_have_derivatives_up_to_the_third(name: str) -> None:
    if name not in ROUNDED:
        _check(name, 3, None)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", primitives())
def test_each_order_is_the_derivative_of_the_one_before(name: str) -> None:
    rng = np.random.default_rng(2)
    for primitive, sample in list(samples(name))[:1]:
        if name in ROUNDED | LOOPS or next(iter(subjaxprs(sample.params)), None) is not None:
            continue
        function, xs = functions(primitive, sample)
        curves = [curve(rng, x, 6) for x in xs]
        for order in range(4, 7):
            shorter = [terms[:order] for terms in curves]
            try:
                wanted = last_by_one_jvp(function, xs, shorter)
            except Exception as error:
                with pytest.raises(type(error)):
                    by_jets(function, xs, shorter)
                break
            _close(wanted, by_jets(function, xs, shorter)[-1], xs)
