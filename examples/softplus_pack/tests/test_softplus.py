"""Values and derivatives compared with those of softplus. test_softplus_rules.py checks the rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax_softplus import softplus

POINTS = np.array([-1000.0, -2.0, -0.5, 0.0, 0.5, 2.0, 1000.0])


def value(x: Any) -> Any:
    """Softplus with NumPy."""
    return np.logaddexp(x, 0.0)


def slope(x: Any) -> Any:
    """The derivative, the logistic function, without overflow."""
    return np.exp(-np.logaddexp(0.0, -x))


def test_it_is_found_by_its_entry_point() -> None:
    assert cj.lax.softplus is softplus
    assert "softplus" in dir(cj.lax)


def test_it_is_one_equation_of_a_jaxpr() -> None:
    (eqn,) = cj.make_jaxpr(softplus)(1.0).eqns
    assert eqn.primitive is softplus.primitive


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_eager_and_compiled_agree_with_numpy(dtype: Any) -> None:
    points = POINTS.astype(dtype)
    tolerance = 1e-15 if dtype is np.float64 else 1e-6
    for out in (softplus(points), cj.jit(softplus)(points)):
        assert out.dtype == dtype
        np.testing.assert_allclose(out, value(points), rtol=tolerance)


def test_derivative_at_zero_is_one_half() -> None:
    assert cj.grad(softplus)(0.0) == 0.5


def test_jvp_is_the_logistic_function_times_the_tangent() -> None:
    out, out_dot = cj.jvp(softplus, (POINTS,), (np.full_like(POINTS, 3.0),))
    np.testing.assert_allclose(out, value(POINTS))
    np.testing.assert_allclose(out_dot, 3.0 * slope(POINTS), rtol=1e-12)


def test_second_derivative() -> None:
    curvature = cj.vmap(cj.grad(cj.grad(softplus)))(POINTS)
    np.testing.assert_allclose(curvature, slope(POINTS) * (1 - slope(POINTS)), rtol=1e-12, atol=1e-300)


def test_it_refuses_what_has_no_exponential() -> None:
    with pytest.raises(TypeError):
        softplus(np.array([True]))
