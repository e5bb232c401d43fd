"""Stacking, cutting, tiling and comparing in the total order beside jax: values, types, programs and derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax import lax

jax = pytest.importorskip("jax")

QUICK, ALL = 5, 150

DTYPES = ("bool", "int8", "uint16", "int32", "uint64", "float16", ml_dtypes.bfloat16, "float32", "float64")
SPECIAL = (0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.0, -1.0, 5e-324, -1e-45, 3.5)


def seeds() -> list[Any]:
    return [*range(QUICK), *[pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(QUICK, ALL)]]


@pytest.mark.parametrize("seed", seeds())
@pytest.mark.filterwarnings("ignore:invalid value")
def test_comparisons_in_the_total_order_are_those_of_jax(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtype = np.dtype(DTYPES[seed % len(DTYPES)])
    name = ("eq_to", "lt_to", "le_to")[seed // len(DTYPES) % 3]
    shape = [(4, 11), (7,), (), (0, 3)][seed % 4]
    draws = [rng.choice(SPECIAL if dtype.kind not in "biu" else range(-3, 4), shape) for _ in range(2)]
    x, y = [np.asarray(d).astype(np.int64 if dtype.kind in "biu" else np.float64).astype(dtype) for d in draws]
    with jax.enable_x64(True):
        wanted = jax.jit(getattr(jax.lax, f"{name}_p").bind)(x, y)
    for call in (getattr(lax, name), cj.jit(getattr(lax, name)), cj.vmap(getattr(lax, name)) if shape else cj.jit(
            getattr(lax, f"{name}_p").bind)):
        assert_array_equal(call(x, y), wanted)


def drawn(seed: int) -> tuple[Callable[[Any], Callable[..., Any]], list[np.ndarray]]:
    """A function, made from either library's lax, and its operands."""
    rng = np.random.default_rng(seed)
    shape = tuple([int(n) for n in rng.choice((1, 2, 3, 0), rng.integers(1, 4), p=(0.3, 0.3, 0.3, 0.1))])
    axis = int(rng.integers(-len(shape), len(shape)))
    x = rng.standard_normal(shape)
    match seed % 5:
        case 0:
            at, count = int(rng.integers(-len(shape) - 1, len(shape) + 1)), int(rng.integers(1, 4))
            return lambda L: lambda *xs: L.stack(xs, at), [x * k for k in range(1, count + 1)]
        case 1:
            return lambda L: lambda x: L.unstack(x, axis), [x]
        case 2:
            reps = tuple([int(n) for n in rng.integers(0, 4, len(shape))])
            return lambda L: lambda x: L.tile(x, reps), [x]
        case 3:
            cuts = [0, *sorted(rng.integers(0, shape[axis] + 1, 2).tolist()), shape[axis]]
            return lambda L: lambda x: L.split(x, tuple([int(n) for n in np.diff(cuts)]), axis), [x]
        case _:
            n = max(shape[0], 1)
            x = rng.standard_normal((n, *shape[1:]))
            places = rng.integers(-1, n + 1, (3, 1)).astype(np.int32)
            return lambda L: lambda x, y: L.scatter_sub(x, places, y, L.ScatterDimensionNumbers(
                tuple(range(1, x.ndim)), (0,), (0,)), mode="drop"), [x, rng.standard_normal((3, *shape[1:]))]


def results(outs: Any) -> list[Any]:
    return [*outs] if isinstance(outs, (tuple, list)) else [outs]


@pytest.mark.parametrize("seed", seeds())
def test_values_derivatives_and_maps_are_those_of_jax(seed: int) -> None:
    function, xs = drawn(seed)
    weights = np.random.default_rng(seed).standard_normal(500)

    def loss(m: Any) -> Any:
        def total(*xs: Any) -> Any:
            outs = results(function(m.lax)(*xs))
            return sum([(m.lax.sin(out) * np.resize(weights, out.shape)).sum() for out in outs], 0.0 * xs[0].sum())
        return total

    argnums = tuple(range(len(xs)))
    with jax.enable_x64(True):
        computed = []
        for m in (jax, cj):
            slope = m.grad(loss(m), argnums=argnums)
            last = [np.stack([x, 2 * x], -1) for x in xs]
            mapped = m.vmap(function(m.lax), in_axes=-1)
            computed.append([
                *results(function(m.lax)(*xs)), *results(m.jit(function(m.lax))(*xs)), *slope(*xs),
                *m.jvp(slope, tuple(xs), tuple(xs))[1], *results(mapped(*last)), *results(m.jit(mapped)(*last))])
    for have, want in zip(computed[1], computed[0], strict=True):
        assert (want.shape, want.dtype) == (have.shape, have.dtype)
        assert_allclose(np.asarray(have), np.asarray(want), rtol=1e-12, atol=1e-13)


def test_programs_have_the_primitives_that_they_have_in_jax() -> None:
    def program(m: Any) -> list[str]:
        def f(x: Any) -> Any:
            a, b = m.lax.unstack(x)
            first, _ = m.lax.split(m.lax.tile(a, (2,)), (1, 5))
            values, _ = m.lax.approx_max_k(m.lax.stack([a, b], 1), 1)
            return first, values, m.lax.approx_min_k(b, 2)[0]
        return [eqn.primitive.name for eqn in m.make_jaxpr(f)(np.ones((2, 3), np.float32)).jaxpr.eqns]

    assert program(jax) == program(cj)
