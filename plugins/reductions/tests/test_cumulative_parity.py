"""Running results, reductions by a function, scans and positions beside those of jax.lax, on random parameters.

Values, shapes, dtypes, weak types; gradients of order 1 and 2; batches along every axis. Sizes 0 and 1 are among the
parameters, and so are ties and zeros.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax import lax

jax = pytest.importorskip("jax")

RUNNING = ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
SHAPES = ((5,), (1,), (0,), (3, 4), (4, 1), (2, 0), (2, 3, 2))
DTYPES = ("float64", "float32", "float16", "bfloat16", "int32", "uint8", "complex64")


@pytest.fixture(autouse=True)
def _x64():
    with jax.enable_x64(True):
        yield


class Case(NamedTuple):
    """A function of one array, for either `lax`, and the array."""

    name: str
    function: Any
    x: Any
    smooth: bool  # whether it has derivatives


def running(rng: np.random.Generator) -> Case:
    """A running result along a random axis."""
    name, shape = str(rng.choice(RUNNING)), SHAPES[rng.integers(len(SHAPES))]
    dtype = str(rng.choice(DTYPES[:4] if name == "cumlogsumexp" else DTYPES))
    axis, reverse = int(rng.integers(len(shape))), bool(rng.integers(2))
    return Case(f"{name}[{axis} {reverse}] {dtype}{shape}", lambda L, x: getattr(L, name)(x, axis, reverse),
                elements(rng, shape, dtype), dtype == "float64")


#: Functions of two elements, what they leave unchanged, and whether jax reduces by them with a primitive of its own.
COMPUTATIONS: dict[str, tuple[Any, Any]] = {
    "add": (lambda L: L.add, 0.0), "mul": (lambda L: L.mul, 1.0), "max": (lambda L: L.max, -np.inf),
    "min": (lambda L: L.min, np.inf), "sum": (lambda L: lambda x, y: x + y, 0.0),
    "hypotenuse": (lambda L: lambda x, y: L.sqrt(x * x + y * y + 1e-300), 0.0),
    "either": (lambda L: lambda x, y: x + y - x * y, 0.0), "last": (lambda L: lambda x, y: L.max(x, y), -np.inf),
}


def reduced(rng: np.random.Generator) -> Case:
    """A reduction of random axes by a function."""
    name, shape = str(rng.choice([*COMPUTATIONS])), SHAPES[rng.integers(len(SHAPES))]
    dtype = str(rng.choice(["float64", "float64", "float32"]))
    axes = tuple([d for d in range(len(shape)) if rng.integers(2)])
    make, init = COMPUTATIONS[name]
    start = np.asarray(init, dtype)
    return Case(f"reduce {name}{axes} {dtype}{shape}", lambda L, x: L.reduce(x, start, make(L), axes),
                np.abs(elements(rng, shape, dtype)) + np.asarray(0.5, dtype), dtype == "float64")


def of_two(rng: np.random.Generator) -> Case:
    """A reduction of two arrays at once: a product of complex numbers given by their parts."""
    shape = SHAPES[rng.integers(len(SHAPES))]
    axes = (int(rng.integers(len(shape))),)

    def product(x: Any, y: Any) -> Any:
        return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]

    def both(L: Any, x: Any) -> Any:
        re, im = L.reduce((x, L.sin(x)), (np.float64(1), np.float64(0)), product, axes)
        return re * 2.0 + im
    return Case(f"reduce two{axes} {shape}", both, elements(rng, shape, "float64"), True)


def scanned(rng: np.random.Generator) -> Case:
    """A scan of a function that doesn't commute."""
    shape = SHAPES[rng.integers(len(SHAPES))]
    axis, reverse = int(rng.integers(len(shape))), bool(rng.integers(2))

    def affine(one: Any, other: Any) -> Any:
        return one[0] * other[0], other[0] * one[1] + other[1]

    def scan(L: Any, x: Any) -> Any:
        return L.associative_scan(affine, (L.cos(x), x), reverse=reverse, axis=axis)[1]
    return Case(f"associative_scan[{axis} {reverse}] {shape}", scan, elements(rng, shape, "float64"), True)


def position(rng: np.random.Generator) -> Case:
    """A position, with ties and NaN."""
    name, shape = str(rng.choice(["argmax", "argmin"])), [s for s in SHAPES if 0 not in s][rng.integers(5)]
    dtype, index = str(rng.choice(["float64", "int32", "bool"])), str(rng.choice(["int8", "uint32", "int64"]))
    axis = int(rng.integers(len(shape)))
    x = elements(rng, shape, dtype)
    if dtype == "float64":
        x[rng.random(shape) < 0.2] = np.nan
    return Case(f"{name}[{axis} {index}] {dtype}{shape}", lambda L, x: getattr(L, name)(x, axis, np.dtype(index)), x,
                False)


def bits(rng: np.random.Generator) -> Case:
    """Exclusive or."""
    shape = SHAPES[rng.integers(len(SHAPES))]
    axes, dtype = tuple([d for d in range(len(shape)) if rng.integers(2)]), str(rng.choice(["bool", "uint8", "int64"]))
    return Case(f"reduce_xor{axes} {dtype}{shape}", lambda L, x: L.reduce_xor(x, axes), elements(rng, shape, dtype),
                False)


def elements(rng: np.random.Generator, shape: Any, dtype: str) -> Any:
    """Halves from -2 to 2: some tie, and some are zero."""
    x = rng.integers(-4, 5, shape) / 2
    if dtype == "complex64":
        x = x + 1j * rng.integers(-4, 5, shape) / 2
    return np.abs(x * 2).astype(dtype) if dtype == "uint8" else x.astype(jax.numpy.dtype(dtype))


KINDS = (running, running, reduced, of_two, scanned, position, bits)


def cases(seed: int, count: int) -> list[Case]:
    """Random cases, in turn of every kind."""
    rng = np.random.default_rng(seed)
    return [KINDS[i % len(KINDS)](rng) for i in range(count)]


def compare(case: Case) -> None:
    """Both libraries give the same."""
    name, function, x, smooth = case

    def ours(x: Any) -> Any:
        return function(lax, x)

    def theirs(x: Any) -> Any:
        return function(jax.lax, x)

    tolerance = {"float32": 1e-5, "complex64": 1e-5, "float16": 4e-3, "bfloat16": 4e-2}.get(str(x.dtype), 1e-10)
    wanted = theirs(jax.numpy.asarray(x))
    assert_same(ours(x), wanted, tolerance, name)
    assert_same(cj.jit(ours)(x), wanted, tolerance, name)
    for axis in range(x.ndim + 1):
        batch = np.stack([x, x[::-1]], axis)
        assert_same(cj.vmap(ours, axis)(batch), jax.vmap(theirs, axis)(jax.numpy.asarray(batch)), tolerance, name)
    if smooth:
        ct = np.cos(np.arange(wanted.size)).reshape(wanted.shape)
        v = np.sin(np.arange(x.size) + 1.0).reshape(x.shape)

        def gradient(of: Any, library: Any) -> Any:
            return lambda x: library.vjp(of, x)[1](ct)[0]

        first, second = gradient(ours, cj), gradient(theirs, jax)
        got, wanted = cj.jvp(first, (x,), (v,)), jax.jvp(second, (jax.numpy.asarray(x),), (jax.numpy.asarray(v),))
        for mine, other in zip(got, wanted, strict=True):
            assert_same(mine, other, 1e-8, name)


def assert_same(got: Any, wanted: Any, tolerance: float, name: str) -> None:
    """The same type and the same values."""
    weak = getattr(wanted, "weak_type", False)  # what passes through jax unchanged may be an ndarray
    assert (got.shape, got.dtype, got.weak_type) == (wanted.shape, wanted.dtype, weak), name
    if got.dtype.kind in "biu":
        assert_array_equal(np.asarray(got), np.asarray(wanted), err_msg=name)
    else:
        wide = complex if got.dtype.kind == "c" else float
        assert_allclose(np.asarray(got).astype(wide), np.asarray(wanted).astype(wide), rtol=tolerance,
                        atol=tolerance, err_msg=name)


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", range(len(KINDS)), ids=[kind.__name__ for kind in KINDS])
def test_a_few_random_calls_are_in_parity_with_jax(kind):
    for case in cases(1, 2 * len(KINDS))[kind::len(KINDS)]:
        compare(case)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(2, 34))
def test_many_random_calls_are_in_parity_with_jax(seed):
    for case in cases(seed, 4 * len(KINDS)):
        compare(case)


@pytest.mark.parametrize("name", RUNNING)
def test_weak_types_are_in_parity_with_jax(name):
    ours = getattr(lax, name)(lax.broadcast(1.0, (3,)))
    theirs = getattr(jax.lax, name)(jax.lax.broadcast(1.0, (3,)))
    assert (ours.dtype, ours.weak_type) == (theirs.dtype, theirs.weak_type)


@pytest.mark.parametrize("init", [0.0, np.float64(0)])
@pytest.mark.parametrize("operand", [1.0, np.float64(1), np.ones(2)])
@pytest.mark.parametrize("computation", ["add", "other"])
def test_weak_types_of_reductions_are_in_parity_with_jax(computation, operand, init):
    def types(L: Any) -> Any:
        function = L.add if computation == "add" else lambda x, y: x + y + x * y
        out = L.reduce(operand, init, function, (0,) if np.ndim(operand) else ())
        return out.dtype, out.shape, out.weak_type
    assert types(lax) == types(jax.lax)


@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_ties_share_the_derivative_in_parity_with_jax(name):
    for size in (3, 6):
        x = np.ones(size)
        assert_array_equal(np.asarray(cj.jacrev(getattr(lax, name))(x)), jax.jacobian(getattr(jax.lax, name))(x))
