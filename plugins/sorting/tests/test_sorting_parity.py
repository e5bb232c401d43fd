"""Sorting beside jax: types, values, derivatives of first and second order, and maps, on random parameters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax import lax

jax = pytest.importorskip("jax")
_jax = pytest.importorskip("jaxlib")._jax

pytestmark = pytest.mark.filterwarnings("ignore:overflow")

QUICK, ALL = 30, 600

DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
          ml_dtypes.bfloat16, "float32", "float64", "complex64", "complex128", ml_dtypes.float8_e4m3fn)
SIZES = (1, 2, 3, 5, 0, 7, 40, 300)
FUNCTIONS = ("sort", "sort_together", "sort_key_val", "top_k", "approx_max_k", "approx_min_k", "approx_partly")


@dataclass(frozen=True)
class Case:
    """A call: the function, its operands, and how it is called on either library's lax."""

    name: str
    operands: tuple[np.ndarray, ...]
    dimension: int
    options: dict[str, Any]

    def of(self, lax: Any) -> Any:
        def call(*xs: Any) -> tuple[Any, ...]:
            if self.name == "sort":
                return (lax.sort(xs[0], self.dimension, **self.options),)
            if self.name == "sort_together":
                return tuple(lax.sort(xs, self.dimension, **self.options))
            if self.name == "sort_key_val":
                return tuple(lax.sort_key_val(*xs, self.dimension, **self.options))
            if self.name == "top_k":
                return tuple(lax.top_k(*xs, axis=self.dimension, **self.options))
            function = lax.approx_max_k if self.name == "approx_partly" else getattr(lax, self.name)
            return tuple(function(*xs, reduction_dimension=self.dimension, **self.options))
        return call


def operand(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...], nans: bool = True) -> np.ndarray:
    """Numbers with ties, and floats with zeros of both signs, NaNs and infinities."""
    dtype = np.dtype(dtype)
    x = rng.integers(-5, 6, shape).astype(np.float64) / 2
    if rng.integers(2):
        x += rng.standard_normal(shape)
    if dtype.kind == "c":
        x = x + 1j * rng.integers(-2, 3, shape)
    if dtype.kind in "biu":
        return (x * 100).astype(np.int64).astype(dtype)
    for value in (0.0, -0.0, np.inf, -np.inf, np.nan)[:5 if nans else 4]:
        x[rng.random(shape) < 0.06] = value
    return x.astype(dtype)


def random_case(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    name = FUNCTIONS[seed % len(FUNCTIONS)]
    ndim = int(rng.integers(1, 4))
    shape = [int(rng.choice(SIZES[:6])) for _ in range(ndim)]
    at = int(rng.integers(ndim))
    shape[at] = int(rng.choice(SIZES))
    dimension = at - ndim * int(rng.integers(2))
    kinds = DTYPES if name.startswith("sort") else [d for d in DTYPES if np.dtype(d).kind != "c"]
    if name == "sort":
        stable = bool(rng.integers(2))
        return Case(name, (operand(rng, rng.choice(kinds), shape),), dimension, {"is_stable": stable})
    if name in ("sort_together", "sort_key_val"):
        count = 2 if name == "sort_key_val" else int(rng.integers(1, 5))
        xs = tuple(operand(rng, kinds[rng.integers(len(kinds))], shape) for _ in range(count))
        return Case(name, xs, dimension, {} if count == 2 and name == "sort_key_val" else {
            "num_keys": int(rng.integers(1, count + 1))})
    if name == "top_k":
        return Case(name, (operand(rng, kinds[rng.integers(len(kinds))], shape),), dimension,
                    {"k": int(rng.integers(shape[at] + 1))})
    shape[at] = max(shape[at], 1)
    floats = ["float16", ml_dtypes.bfloat16, "float32", "float64"]
    # without ties: XLA approximates equal elements, and NaNs, in no order that is specified
    size = int(np.prod(shape))
    x = (rng.permutation(size).reshape(shape) - size / 3).astype(floats[rng.integers(4 if size < 256 else 2) + (
        0 if size < 256 else 2)])
    options: dict[str, Any] = {"k": int(rng.integers(1, shape[at] + 1)), "recall_target": float(rng.uniform(0.1, 1.0))}
    if name == "approx_partly":
        options |= {"aggregate_to_topk": False, "reduction_input_size_override": int(rng.choice([-1, shape[at] * 3]))}
    return Case(name, (x,), dimension, options)


def seeds() -> list[Any]:
    return [*range(QUICK), *[pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(QUICK, ALL)]]


def same(got: Any, wanted: Any, case: Case) -> None:
    """The same type, weak or not, and values; zeros with the same signs, if the sort is stable in JAX too."""
    assert (wanted.shape, wanted.dtype, wanted.weak_type) == (got.shape, got.dtype, got.aval.weak_type)
    kind = np.complex128 if wanted.dtype.kind == "c" else np.float64 if wanted.dtype.kind not in "iub" else wanted.dtype
    have, want = np.asarray(got).astype(kind), np.asarray(wanted).astype(kind)
    assert_array_equal(have, want)
    if have.dtype.kind == "f" and case.options.get("is_stable", True):
        zeros = want == 0
        assert_array_equal(np.signbit(have[zeros]), np.signbit(want[zeros]))


@pytest.mark.parametrize("seed", seeds())
def test_values_and_types_are_those_of_jax(seed: int) -> None:
    case = random_case(seed)
    with jax.enable_x64(True):
        wanted = jax.jit(case.of(jax.lax))(*case.operands)
        for call in (case.of(lax), cj.jit(case.of(lax))):
            for got, want in zip(call(*case.operands), wanted, strict=True):
                same(got, want, case)


@pytest.mark.parametrize("seed", seeds())
def test_derivatives_are_those_of_jax(seed: int) -> None:
    case = random_case(seed)
    rng = np.random.default_rng(seed)
    shape = case.operands[0].shape
    xs = [(rng.permutation(int(np.prod(shape))).reshape(shape) - 2.3) * 0.3 for _ in case.operands]
    weights, directions = rng.standard_normal(100_000), [rng.standard_normal(shape) for _ in xs]

    def second(module: Any) -> Any:
        def loss(*xs: Any) -> Any:
            total: Any = 0.0
            for i, out in enumerate(case.of(module.lax)(*xs)):
                if out.dtype == np.float64:
                    total = total + (module.lax.sin(out) * weights[i:i + out.size].reshape(out.shape)).sum()
            return total
        slope = module.grad(loss, argnums=tuple(range(len(xs))))
        return lambda xs, directions: module.jvp(slope, tuple(xs), tuple(directions))

    with jax.enable_x64(True):
        wanted = jax.jit(second(jax))(xs, directions)
        got = second(cj)(xs, directions) if seed % 2 else cj.jit(second(cj))(xs, directions)
        for mine, others in zip(got, wanted, strict=True):
            for have, want in zip(mine, others, strict=True):
                assert (want.shape, want.dtype) == (have.shape, have.dtype)
                assert_allclose(np.asarray(have), np.asarray(want), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("seed", seeds())
def test_maps_over_every_axis_are_those_of_jax(seed: int) -> None:
    case = random_case(seed)
    if case.options.get("aggregate_to_topk") is False and case.operands[0].shape[case.dimension] > 128:
        pytest.skip("how many partial results there are depends on the number of axes, also on those mapped over")
    count = 2
    for axis in range(case.operands[0].ndim + 1) if seed >= QUICK else [seed % (case.operands[0].ndim + 1)]:
        axes = tuple([None if i and (seed + i) % 3 == 0 else axis for i in range(len(case.operands))])
        xs = [x if at is None else np.stack([x, np.flip(x)][:count], at)
              for x, at in zip(case.operands, axes, strict=True)]
        with jax.enable_x64(True):
            wanted = jax.jit(jax.vmap(case.of(jax.lax), in_axes=axes, out_axes=axis))(*xs)
            mapped = cj.vmap(case.of(lax), in_axes=axes, out_axes=axis)
            for got, want in zip((mapped if seed % 2 else cj.jit(mapped))(*xs), wanted, strict=True):
                same(got, want, case)


def test_weak_types_are_those_of_jax() -> None:
    functions = {
        "sort": lambda L, x: L.sort(x), "together": lambda L, x: L.sort((x, np.zeros(3), x)),
        "top_k": lambda L, x: L.top_k(x, 2), "max": lambda L, x: L.approx_max_k(x, 2),
        "min": lambda L, x: L.approx_min_k(x, 2)}
    with jax.enable_x64(True):
        for name, f in functions.items():
            mine = cj.make_jaxpr(lambda x, f=f: f(lax, lax.broadcast(x, (3,))))(1.0).jaxpr.outvars
            others = jax.make_jaxpr(lambda x, f=f: f(jax.lax, jax.lax.broadcast(x, (3,))))(1.0).jaxpr.outvars
            assert [v.aval.weak_type for v in others] == [v.aval.weak_type for v in mine], name


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_the_order_of_special_values_is_that_of_jax(dtype: str) -> None:
    x = np.array([1.0, np.nan, -0.0, 0.0, -np.nan, np.inf, -np.inf, -0.0, 0.0, np.nan, -1.0] * 30, dtype)
    for size in (11, 330):
        part = x[:size]
        with jax.enable_x64(True):
            places = jax.lax.sort((part, np.arange(size)))[1]
            best = jax.lax.top_k(part, 9)[1]
        for call in (lax.sort, cj.jit(lax.sort)):
            assert_array_equal(call((part, np.arange(size)))[1], places)
        for call in (lax.top_k, cj.jit(lax.top_k, static_argnums=1)):
            assert_array_equal(call(part, 9)[1], best)


def test_how_many_partial_results_there_are_is_what_xla_says() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        size, ndim = int(10 ** rng.uniform(0, 6)), int(rng.integers(1, 3))
        k, recall = int(rng.integers(1, min(size, 200) + 1)), float(rng.choice([0.05, 0.5, 0.9, 0.95, 0.99, 1.0]))
        whole = int(rng.choice([-1, size, 5 * size]))
        wanted = _jax.approx_top_k_reduction_output_size(size, ndim, k, recall, False, whole)[0]
        given = cj.core.ShapedArray((size, 2)[:ndim], np.dtype("float32"))
        found = cj.make_jaxpr(partial(lax.approx_max_k, k=k, reduction_dimension=0, recall_target=recall,
                                      reduction_input_size_override=whole, aggregate_to_topk=False))(given)
        assert min(wanted, size) == found.jaxpr.outvars[0].aval.shape[0], (size, ndim, k, recall, whole)
