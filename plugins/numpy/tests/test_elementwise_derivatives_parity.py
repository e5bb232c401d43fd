"""Derivatives of functions of elements beside jax's, in both modes and to order 2, at the points that people hit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from elementwise_points import many

jax = pytest.importorskip("jax")


POINTS = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 0.3, 2.7, -2.7, 1.5, 2.5, 30.0, -30.0, 1e-3, np.inf, -np.inf,
                   np.nan])
_SOME = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -2.5, np.inf, -np.inf, np.nan])
PAIRS = tuple([x.ravel() for x in np.meshgrid(_SOME, _SOME, indexing="ij")])

DIFFERENTIATED = """abs fabs sqrt cbrt exp exp2 expm1 log log1p log2 log10 sin cos tan arcsin arccos arctan sinh
    cosh tanh arcsinh arccosh arctanh square reciprocal sinc i0 nan_to_num sign negative positive
    deg2rad rad2deg floor ceil trunc rint modf frexp angle""".split()
OF_TWO = """add subtract multiply divide power float_power maximum minimum fmax fmin arctan2 hypot logaddexp logaddexp2
    heaviside copysign remainder fmod floor_divide divmod""".split()

Points = Callable[..., Any]

#: Where values or derivatives aren't jax's, and why.
OTHERS: dict[str, tuple[Points, str]] = {
    "arccosh": (lambda x: (x < 1) | np.isinf(x), "NaN outside of the domain; 0 at infinity"),
    "arctanh": (lambda x: abs(x) > 1, "NaN outside of the domain"),
    "i0": (lambda x: x == 0, "the second derivative at 0 is 0.5, there 0"),
    "modf": (lambda x: np.isinf(x), "no fraction of infinities, as in NumPy; there NaN"),
    "copysign": (lambda x, y: (np.signbit(x) & (x == 0)) | np.isnan(x), "-0.0 and some NaNs have a sign"),
    "heaviside": (lambda x, y: np.isnan(x), "constant wherever it isn't 0"),
    "hypot": (lambda x, y: (abs(x) == abs(y)) | np.isinf(x + y) | np.isnan(x + y),
              "smooth where both are equal, 0 at 0, 0 or 1 at infinity: there, half of a kink, 0.5, NaN"),
    **dict.fromkeys(("remainder", "divmod"), (
        lambda x, y: (y == 0) | np.isnan(y), "NaN where the remainder is NaN; there 1, or infinities")),
    "logaddexp": (lambda x, y: np.isinf(x) | np.isinf(y), "0 or 1 beside infinities; there exp of the other, or NaN"),
    "logaddexp2": (lambda x, y: np.isinf(x) | np.isinf(y), "0 or 1 beside infinities; there exp2 of the other, or NaN"),
}


def _orders(namespace: Any, gradient: Any, forward: Any, names: list[str], operands: Any) -> Any:
    """For each result of each function: its value, derivatives, second ones, and the first ones in forward mode."""
    def of_one(f: Callable[..., Any]) -> list[Any]:
        places = range(len(operands))

        def total(*xs: Any) -> Any:
            return namespace.sum(f(*xs))
        slopes = [gradient(total, i) for i in places]
        sums = [lambda *xs, slope=slope: namespace.sum(slope(*xs)) for slope in slopes]
        ones = tuple([namespace.ones(x.shape) for x in operands])
        zeros = tuple([namespace.zeros(x.shape) for x in operands])
        pushed = [forward(f, operands, tuple([ones[j] if i == j else zeros[j] for j in places]))[1] for i in places]
        return [f(*operands), *[slope(*operands) for slope in slopes],
                *[gradient(sums[i], j)(*operands) for i in places for j in places], *pushed]
    found = {}
    for name in names:
        f = getattr(namespace, name)
        results = {"modf": (0, 1), "divmod": (0, 1), "frexp": (0,)}.get(name)
        found[name] = [of_one(f)] if results is None else [of_one(lambda *xs, f=f, k=k: f(*xs)[k]) for k in results]
    return found


def _differing(names: list[str], found: Any, wanted: Any, points: tuple[np.ndarray, ...]) -> list[str]:
    wrong = []
    for name in names:
        fine = OTHERS[name][0](*points) if name in OTHERS else np.zeros(points[0].shape, bool)
        for ours, theirs in zip(found[name], wanted[name], strict=True):
            for part, (a, b) in enumerate(zip(ours, theirs, strict=True)):
                a, b = np.asarray(a), np.asarray(b)
                assert b.dtype == a.dtype
                bad = ~np.isclose(a, b, rtol=1e-9, atol=1e-12, equal_nan=True) & ~fine
                wrong += [f"{name}{tuple([float(p[i]) for p in points])}, part {part}: {a[i]}, not {b[i]}"
                          for i in np.flatnonzero(bad)[:3]]
    return wrong


every = pytest.mark.parametrize(("names", "points"), [(DIFFERENTIATED, (POINTS,)), (OF_TWO, PAIRS)], ids=["one", "two"])


@every
def test_derivatives_are_those_of_jax(names: list[str], points: tuple[np.ndarray, ...]) -> None:
    wanted = jax.jit(lambda *xs: _orders(jax.numpy, jax.grad, jax.jvp, names, xs))(*points)
    found = _orders(jnp, cj.grad, cj.jvp, names, tuple([cj.lax.copy(x) for x in points]))
    assert [] == _differing(names, found, wanted, points)


@pytest.mark.exhaustive
@every
def test_compiled_derivatives_are_the_same(names: list[str], points: tuple[np.ndarray, ...]) -> None:
    found = _orders(jnp, cj.grad, cj.jvp, names, tuple([cj.lax.copy(x) for x in points]))
    compiled = cj.jit(lambda *xs: _orders(jnp, cj.grad, cj.jvp, names, xs))(*points)
    assert [] == _differing(names, compiled, found, points)


def test_derivatives_where_jax_has_others() -> None:
    def second(f: Callable[[Any], Any], x: float) -> Any:
        return cj.grad(cj.grad(f))(x)
    assert (0.0, 0.5) == (cj.grad(jnp.i0)(0.0), second(jnp.i0, 0.0))
    np.testing.assert_allclose(second(jnp.sinc, 0.0), -np.pi ** 2 / 3)
    for x in (0.149, 0.151):  # on both sides of where the series ends
        series = -np.pi ** 2 / 3 + np.pi ** 4 * x ** 2 / 10 - np.pi ** 6 * x ** 4 / 168 + np.pi ** 8 * x ** 6 / 6480
        np.testing.assert_allclose(second(jnp.sinc, x), series, rtol=1e-6)
    assert (0.0, 0.0) == cj.grad(jnp.hypot, (0, 1))(0.0, 0.0)
    np.testing.assert_allclose(cj.grad(jnp.hypot, (0, 1))(-2.0, 2.0), (-0.5 ** 0.5, 0.5 ** 0.5))
    assert (0.0, 1.0) == cj.grad(jnp.logaddexp, (0, 1))(3.0, np.inf) == cj.grad(jnp.logaddexp, (0, 1))(-np.inf, 3.0)
    assert (0.5, 0.5) == cj.grad(jnp.logaddexp2, (0, 1))(3.0, 3.0)
    assert np.isfinite(cj.grad(jnp.logaddexp, (0, 1))(-np.inf, -np.inf)).all()


BATCHED = ["add", "arctan2", "copysign", "divide", "divmod", "float_power", "fmax", "gcd", "heaviside", "hypot", "lcm",
           "ldexp", "logaddexp", "nextafter", "power", "remainder", "right_shift", "equal"]


@pytest.mark.parametrize("in_axes", [(1, 1), (2, 0), (None, 1), (-1, None)])
def test_mapping_over_any_axis_is_mapping_over_the_first(in_axes: tuple[Any, ...]) -> None:
    whole = np.arange(1, 28).reshape(3, 3, 3)
    integers = ("gcd", "lcm", "right_shift")
    for name in BATCHED:
        f, x = getattr(jnp, name), whole if name in integers else whole / 4 - 3
        y = whole[::-1] % 5 + 1 if name in (*integers, "ldexp") else whole[::-1] / 5 - 2.1
        found = cj.vmap(f, in_axes)(x, y)
        first = [z if axis is None else np.moveaxis(z, axis, 0) for z, axis in zip((x, y), in_axes, strict=True)]
        rows = [f(*[z if axis is None else z[i] for z, axis in zip(first, in_axes, strict=True)]) for i in range(3)]
        for k, out in enumerate(many(found)):
            np.testing.assert_allclose(out, np.stack([np.asarray(many(row)[k]) for row in rows]), rtol=1e-12)
