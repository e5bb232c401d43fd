"""Windowed reductions beside jax: values, types, derivatives of first and second order in both modes, and maps."""

from __future__ import annotations

import operator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax import lax
from random_windows import Windows, apart, random_windows, with_ties

jax = pytest.importorskip("jax")
windowed = pytest.importorskip("jax._src.lax.windowed_reductions")

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

QUICK, ALL = 5, 260

DTYPES: tuple[Any, ...] = ("int8", "uint8", "int32", "int64", "uint16", "float16", ml_dtypes.bfloat16, "float32",
                           "float64", "complex64", "complex128", "bool")
OPERATIONS = ("add", "max", "min", "mul", "or", "pair", "lambda max")


def seeds(count: int = ALL) -> list[Any]:
    return [*range(QUICK), *[pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(QUICK, count)]]


def least(dtype: Any, sign: int) -> Any:
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.bool_(sign > 0)
    limits = np.iinfo(dtype) if kind in "iu" else None
    return np.asarray((limits.max if sign > 0 else limits.min) if limits else sign * np.inf, dtype)[()]


def reduction(name: str, dtype: Any, w: Windows) -> Any:
    """The reduction on either library's lax, as a function of arrays."""
    one = np.dtype(dtype).type

    def call(L: Any, x: Any) -> Any:
        args = {"add": (one(0), L.add), "max": (least(dtype, -1), L.max), "min": (least(dtype, 1), L.min),
                "mul": (one(1), L.mul), "or": (one(0), L.bitwise_or),
                "lambda max": (least(dtype, -1), lambda x, y: L.max(x, y))}
        if name == "pair":
            def step(a: Any, b: Any) -> Any:
                first = L.ge(a[0], b[0])
                return L.select(first, a[0], b[0]), L.select(first, a[1], b[1])
            return L.reduce_window((x, L.neg(x)), (least(dtype, -1), one(0)), step, *w.args)
        return (L.reduce_window(x, *args[name], *w.args),)
    return call


def same(got: Any, wanted: Any, exact: bool = True) -> None:
    assert (wanted.shape, wanted.dtype, wanted.weak_type) == (got.shape, got.dtype, got.aval.weak_type)
    kind = np.complex128 if wanted.dtype.kind == "c" else wanted.dtype if wanted.dtype.kind in "iub" else np.float64
    have, want = np.asarray(got).astype(kind), np.asarray(wanted).astype(kind)
    if exact:
        assert_array_equal(have, want)
    else:
        wide = {2: 2e-2, 4: 1e-5, 8: 1e-5 if wanted.dtype.kind == "c" else 1e-12}.get(wanted.dtype.itemsize, 1e-12)
        assert_allclose(have, want, rtol=wide, atol=wide)


@pytest.mark.parametrize("seed", seeds())
def test_values_and_types_are_those_of_jax(seed: int) -> None:
    rng = np.random.default_rng(seed)
    name = OPERATIONS[seed % len(OPERATIONS)]
    kinds = {"or": "iub", "pair": "iuf", "add": "iufc", "mul": "iufc"}.get(name, "biufc")
    dtype = rng.choice([i for i, d in enumerate(DTYPES) if (np.dtype(d).kind if d is not ml_dtypes.bfloat16 else "f")
                        in kinds])
    w = random_windows(rng)
    x = with_ties(rng, DTYPES[dtype], w.shape)
    f = reduction(name, DTYPES[dtype], w)
    with jax.enable_x64(True):
        wanted = jax.jit(lambda x: f(jax.lax, x))(x)
    for call in (lambda x: f(lax, x), cj.jit(lambda x: f(lax, x))):
        for got, want in zip(call(x), wanted, strict=True):
            same(got, want, name not in ("add", "mul"))


@pytest.mark.parametrize("seed", seeds())
def test_derivatives_of_both_orders_are_those_of_jax(seed: int) -> None:
    rng = np.random.default_rng(seed)
    name = ("add", "max", "min")[seed % 3]
    w = random_windows(rng)
    if name != "add" and not isinstance(w.padding, str) and min(min(pair) for pair in w.padding) < 0:
        w = Windows(w.shape, w.sizes, w.strides, "VALID", w.base, w.dilation)  # jax fails over negative padding
    x, tied = apart(rng, w.shape), rng.integers(-3, 4, w.shape) / 2
    direction, f = rng.standard_normal(w.shape), reduction(name, "float64", w)
    count = int(np.prod(f(lax, x)[0].shape))
    weights = rng.standard_normal(count)

    def loss(L: Any) -> Any:
        return lambda x: (L.tanh(f(L, x)[0]).reshape(-1) * weights).sum()

    transposable = name == "add" or all(d == 1 for d in w.dilation)
    ways: list[Any] = [lambda m: lambda x, v: m.jvp(loss(m.lax), (x,), (v,)),
                       lambda m: lambda x, v: m.jvp(lambda x: m.jvp(loss(m.lax), (x,), (v,))[1], (x,), (v,))]
    if transposable:
        ways += [lambda m: lambda x, v: m.grad(loss(m.lax))(x),
                 lambda m: lambda x, v: m.jvp(m.grad(loss(m.lax)), (x,), (v,)),
                 lambda m: lambda x, v: m.grad(lambda x: (m.grad(loss(m.lax))(x) * v).sum())(x)]
    for i, way in enumerate(ways):
        # Which of several that tie has its tangent taken depends on how XLA nests loops; gradients go to the first.
        at = tied if i == 2 else x
        with jax.enable_x64(True):
            wanted = jax.tree.leaves(jax.jit(way(jax))(at, direction))
        mine = way(cj)
        got = (mine if (seed + i) % 2 else cj.jit(mine))(at, direction)
        for have, want in zip(jax.tree.leaves(got, is_leaf=lambda x: isinstance(x, cj.Array)), wanted, strict=True):
            assert_allclose(np.asarray(have), np.asarray(want), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("seed", seeds(160))
def test_maps_over_every_axis_are_those_of_jax(seed: int) -> None:
    rng = np.random.default_rng(seed)
    name = ("add", "max", "mul", "pair")[seed % 4]
    w = random_windows(rng)
    axis = int(rng.integers(len(w.shape) + 1))
    size = int(rng.choice([0, 1, 3]))
    x = rng.standard_normal((*w.shape[:axis], size, *w.shape[axis:])).astype(np.float32)
    f = reduction(name, "float32", w)
    with jax.enable_x64(True):
        wanted = jax.jit(jax.vmap(lambda x: f(jax.lax, x), in_axes=axis, out_axes=axis))(x)
    mapped = cj.vmap(lambda x: f(lax, x), in_axes=axis, out_axes=axis)
    for got, want in zip((mapped if seed % 2 else cj.jit(mapped))(x), wanted, strict=True):
        same(got, want, name not in ("add", "mul"))


@pytest.mark.parametrize("seed", seeds(160))
def test_maps_of_gradients_and_gradients_of_maps_are_those_of_jax(seed: int) -> None:
    rng = np.random.default_rng(seed)
    name = ("max", "add", "min")[seed % 3]
    w = random_windows(rng, dilated=name == "add")
    if not isinstance(w.padding, str) and min(min(pair) for pair in w.padding) < 0:
        w = Windows(w.shape, w.sizes, w.strides, "SAME", w.base, w.dilation)
    x = rng.integers(-3, 4, (2, *w.shape)) / 2
    f = reduction(name, "float64", w)
    ways = (lambda m: m.vmap(m.grad(lambda x: (f(m.lax, x)[0] ** 2).sum())),
            lambda m: m.grad(lambda x: (m.vmap(lambda x: f(m.lax, x)[0])(x) ** 2).sum()))
    for way in ways:
        with jax.enable_x64(True):
            wanted = jax.jit(way(jax))(x)
        assert_allclose(np.asarray(cj.jit(way(cj))(x)), np.asarray(wanted), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", seeds(200))
def test_what_is_selected_is_what_jax_selects(seed: int) -> None:
    """Both primitives by themselves: ties, infinities, all floats, and windows that aren't taken apart."""
    rng = np.random.default_rng(seed)
    w = random_windows(rng, dilated=bool(seed % 2), text=False)
    w = Windows(w.shape, w.sizes, w.strides, tuple((max(low, 0), max(high, 0)) for low, high in w.padding), w.base,
                w.dilation)
    dtype = ("float64", "float32", "float16", ml_dtypes.bfloat16)[seed // 2 % 4]
    x = with_ties(rng, dtype, w.shape)
    name = "ge_p" if rng.integers(2) else "le_p"
    if seed % 2:
        if sum([size > 1 for size in w.sizes]) > 1:  # which of several that tie depends on how XLA nests loops
            x = apart(rng, w.shape).astype(dtype)
        t = rng.standard_normal(w.shape).astype(dtype)
        with jax.enable_x64(True):
            wanted = jax.jit(lambda t, x: jax.lax.select_and_gather_add_p.bind(
                t, x, select_prim=getattr(jax.lax, name), **w.params))(t, x)
        for call in (lambda f: f, cj.jit):
            got = call(lambda t, x: lax.select_and_gather_add_p.bind(t, x, select_prim=getattr(lax, name), **w.params))
            same(got(t, x), wanted)
        return
    params = {"window_dimensions": w.sizes, "window_strides": w.strides, "padding": w.padding}
    source = rng.standard_normal(lax.reduce_window_shape_tuple(w.shape, *params.values())).astype(dtype)
    if not source.size or not x.size:
        return
    with jax.enable_x64(True):
        wanted = jax.jit(lambda s, x: jax.lax.select_and_scatter_add_p.bind(
            s, x, select_prim=getattr(jax.lax, name), **params))(source, x)
    for call in (lambda f: f, cj.jit):
        got = call(lambda s, x: lax.select_and_scatter_add_p.bind(s, x, select_prim=getattr(lax, name), **params))
        same(got(source, x), wanted, dtype in ("float64", "float32"))


@pytest.mark.parametrize("seed", seeds(60))
def test_select_and_scatter_is_that_of_jax(seed: int) -> None:
    rng = np.random.default_rng(seed)
    w = random_windows(rng, dilated=False, text=False)
    padding = ((0, 0),) * len(w.shape)
    shape = tuple(max(n, size) for n, size in zip(w.shape, w.sizes, strict=True))
    x = rng.integers(-3, 4, shape).astype(np.float32)
    source = rng.standard_normal(lax.reduce_window_shape_tuple(shape, w.sizes, w.strides, padding)).astype(np.float32)
    select, scatter, init = (("ge", "add", 0.5), ("lt", "mul", 2.0), ("gt", "max", -9.0))[seed % 3]
    with jax.enable_x64(True):
        wanted = jax.jit(lambda x, s: windowed._select_and_scatter(
            x, getattr(jax.lax, select), w.sizes, w.strides, padding, s, np.float32(init), getattr(jax.lax, scatter)))(
                x, source)
    got = lax.select_and_scatter(x, getattr(lax, select), w.sizes, w.strides, padding, source, init,
                                 getattr(lax, scatter))
    same(got, wanted, False)


@pytest.mark.parametrize("seed", seeds(120))
def test_forward_mode_of_any_function_is_that_of_jax(seed: int) -> None:
    rng = np.random.default_rng(seed)
    w = random_windows(rng)
    x, direction = rng.uniform(0.5, 1.5, w.shape), rng.standard_normal(w.shape)
    functions = ((lambda L: L.mul, 1.0), (lambda L: lambda a, b: L.sqrt(a * a + b * b + 0.0), 0.0),
                 (lambda L: lambda a, b: operator.add(a, b) + 0.3 * a * b, 0.0))
    make, init = functions[seed % 3]
    with jax.enable_x64(True):
        wanted = jax.jit(lambda x, v: jax.jvp(lambda x: jax.lax.reduce_window(x, init, make(jax.lax), *w.args), (x,),
                                              (v,)))(x, direction)
    got = cj.jvp(lambda x: lax.reduce_window(x, init, make(lax), *w.args), (x,), (direction,))
    for have, want in zip(got, wanted, strict=True):
        assert_allclose(np.asarray(have), np.asarray(want), rtol=1e-10, atol=1e-12)


def test_programs_name_the_same_primitives_as_those_of_jax() -> None:
    def names(m: Any, f: Any, dtype: Any) -> list[str]:
        jaxpr = m.make_jaxpr(f)(np.ones((4, 4), dtype))
        return [eqn.primitive.name for eqn in jaxpr.eqns]

    calls: list[Any] = [
        lambda L: (0.0, L.add), lambda L: (0, L.add), lambda L: (1.0, L.add), lambda L: (-np.inf, L.max),
        lambda L: (0.0, L.max), lambda L: (np.inf, L.min), lambda L: (1.0, L.mul),
        lambda L: (-np.inf, lambda x, y: L.max(x, y))]
    with jax.enable_x64(True):
        for call in calls:
            wanted, got = [names(m, lambda x, m=m, call=call: m.lax.reduce_window(x, *call(m.lax), (2, 2)),
                                  np.float64)
                           for m in (jax, cj)]
            assert wanted == got
        assert names(cj, lambda x: lax.reduce_window(x, 0.0, operator.add, (2, 2)), np.float32) == ["reduce_window_sum"]
