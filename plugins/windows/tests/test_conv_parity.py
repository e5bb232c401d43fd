"""Convolutions beside jax: types, values, derivatives of first and second order, and maps, on random parameters."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_allclose

import corejax as cj
from conv_cases import Case, random_case, words
from corejax import lax
from corejax.errors import CorejaxError

jax = pytest.importorskip("jax")

QUICK, ALL = 6, 130

DTYPES = ("bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "float16", ml_dtypes.bfloat16, "float32",
          "float64", "complex64", "complex128")
PREFERRED = {"b": ["int8", "float32"], "i": ["int32", "int64", "float64"], "u": ["uint32", "int64", "float64"],
             "f": ["float32", "float64"], "c": ["complex128"]}


def seeds() -> list[Any]:
    return [*range(QUICK), *[pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(QUICK, ALL)]]


def whole(rng: np.random.Generator, shape: Any, dtype: Any) -> np.ndarray:
    """Small integers, of which sums of products are exact in every dtype."""
    x = rng.integers(-2, 3, shape).astype(np.float64)
    return (x + 1j * rng.integers(-2, 3, shape)).astype(dtype) if np.dtype(dtype).kind == "c" else np.abs(x).astype(
        dtype) if np.dtype(dtype).kind in "bu" else x.astype(dtype)


def same(got: Any, wanted: Any) -> None:
    assert (wanted.shape, wanted.dtype, wanted.weak_type) == (got.shape, got.dtype, got.aval.weak_type)
    kind = np.complex128 if wanted.dtype.kind == "c" else np.float64
    assert_allclose(np.asarray(got).astype(kind), np.asarray(wanted).astype(kind), rtol=1e-11, atol=1e-12)


def of_jax(f: Any, *xs: Any) -> Any:
    with jax.enable_x64(True):
        return jax.jit(f)(*xs)


@pytest.mark.parametrize("seed", seeds())
def test_values_and_types_are_those_of_jax(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case, dtype = random_case(rng), np.dtype(DTYPES[seed % len(DTYPES)])
    x, y = whole(rng, case.lhs, dtype), whole(rng, case.rhs, dtype)
    options: dict[str, Any] = {"precision": [None, "highest", ("high", "default")][seed % 3]}
    kind = cj.core.dtypes.kind(dtype)
    wide = [d for d in PREFERRED[kind] if np.dtype(d).itemsize >= dtype.itemsize]
    if seed % 4 == 0 and wide:
        options["preferred_element_type"] = wide[seed % len(wide)]
    wanted = of_jax(case.of(jax.lax, **options), x, y)
    same(case.of(lax, **options)(x, y), wanted)
    same(cj.jit(case.of(lax, **options))(x, y), wanted)


@pytest.mark.parametrize("seed", seeds())
def test_derivatives_are_those_of_jax(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    case = random_case(rng)
    xs = [rng.standard_normal(case.lhs), rng.standard_normal(case.rhs)]
    ways = [rng.standard_normal(case.lhs), rng.standard_normal(case.rhs)]
    if seed % 5 == 0:
        xs = [x + 1j * way[..., ::-1] for x, way in zip(xs, ways, strict=True)]
        ways = [way.astype(complex) for way in ways]

    def both(module: Any) -> Any:
        def loss(*xs: Any) -> Any:
            out = case.of(module.lax)(*xs)
            return module.lax.sin(out.real if seed % 5 == 0 else out).sum()
        return lambda *xs: module.jvp(module.grad(loss, argnums=(0, 1)), xs, tuple(ways))

    if 0 in case.rhs or 0 in case.lhs:
        pytest.skip("jax has no derivatives where there are no elements")
    try:
        wanted = of_jax(both(jax), *xs)
    except Exception as error:  # windows of which nothing is left after transposing
        pytest.skip(f"jax: {error}"[:100])
    got = both(cj)(*xs) if seed % 2 else cj.jit(both(cj))(*xs)
    for mine, others in zip(got, wanted, strict=True):
        for have, want in zip(mine, others, strict=True):
            same(have, want)


@pytest.mark.parametrize("seed", seeds())
def test_maps_are_those_of_jax(seed: int) -> None:
    rng = np.random.default_rng(2000 + seed)
    case = random_case(rng)
    axes = [(0, 0), (0, None), (None, 0)][seed % 3]
    axes = tuple([None if axis is None else int(rng.integers(len(case.lhs) + 1)) for axis in axes])
    out_axis, count = int(rng.integers(len(case.lhs) + 1)), int(rng.choice([0, 1, 2, 3]))
    xs = [rng.integers(-3, 4, shape if axis is None else (*shape[:axis], count, *shape[axis:])).astype(float)
          for shape, axis in zip((case.lhs, case.rhs), axes, strict=True)]
    wanted = of_jax(jax.vmap(case.of(jax.lax), in_axes=axes, out_axes=out_axis), *xs)
    mapped = cj.vmap(case.of(lax), in_axes=axes, out_axes=out_axis)
    same(mapped(*xs), wanted)
    if seed % 2:
        same(cj.jit(mapped)(*xs), wanted)


def transposed(rng: np.random.Generator) -> tuple[Any, ...]:
    count = int(rng.choice([0, 1, 2, 3]))
    sizes, window = [int(n) for n in rng.integers(1, 6, count)], [int(n) for n in rng.integers(1, 5, count)]
    named = [None, words(rng, count)][rng.integers(2)]
    batch, features, outs = [int(n) for n in rng.integers(1, 4, 3)]
    swapped = bool(rng.integers(2))
    placed = named or {0: ("NC", "IO", "NC"), 1: ("NHC", "HIO", "NHC"), 2: ("NHWC", "HWIO", "NHWC"),
                       3: ("NHWDC", "HWDIO", "NHWDC")}[count]
    space = [letter for letter in placed[1] if letter not in "OI"]
    lhs = dict(zip(["N", "C", *space], [batch, features, *sizes], strict=True))
    pair = (features, outs) if swapped else (outs, features)
    rhs = dict(zip(["O", "I", *space], [*pair, *window], strict=True))
    padding: Any = [str(rng.choice(["SAME", "VALID"])), [(int(rng.integers(0, 3)), int(rng.integers(-1, 3)))
                                                         for _ in range(count)]][rng.integers(2)]
    options = {"strides": [int(n) for n in rng.integers(1, 4, count)], "padding": padding, "dimension_numbers": named,
               "rhs_dilation": [None, [int(n) for n in rng.integers(1, 3, count)]][rng.integers(2)],
               "transpose_kernel": swapped, "use_consistent_padding": bool(rng.integers(2))}
    return rng.standard_normal([lhs[c] for c in placed[0]]), rng.standard_normal([rhs[c] for c in placed[1]]), options


@pytest.mark.parametrize("seed", seeds())
def test_transposed_convolutions_are_those_of_jax(seed: int) -> None:
    x, y, options = transposed(np.random.default_rng(3000 + seed))
    try:
        wanted = of_jax(lambda x, y: jax.lax.conv_transpose(x, y, **options), x, y)
    except Exception as problem:  # padding that removes more than there is
        with pytest.raises(CorejaxError):
            lax.conv_transpose(x, y, **options)
        assert "egative padding" in str(problem)
        return
    same(lax.conv_transpose(x, y, **options), wanted)


@pytest.mark.parametrize("seed", seeds())
def test_patches_and_windows_at_each_place_are_those_of_jax(seed: int) -> None:
    rng = np.random.default_rng(4000 + seed)
    case = random_case(rng, zeros=False)
    numbers = case.numbers()
    window, features = [case.rhs[d] for d in numbers[1][2:]], case.lhs[numbers[0][1]]
    options = {name: value for name, value in case.options.items() if not name.endswith("_count")}
    options["precision"] = [None, "highest"][seed % 2] if seed % 3 else None
    x = rng.integers(-3, 4, case.lhs).astype(["float64", "float32", "int32"][seed % 3])

    def patches(lax: Any) -> Any:
        plain = {**options, "precision": options["precision"] and lax.Precision.HIGHEST}
        return lambda x: lax.conv_general_dilated_patches(x, window, case.strides, case.padding, **plain)
    wanted = of_jax(patches(jax.lax), x)
    same(patches(lax)(x), wanted)
    if 0 in wanted.shape:
        return
    sizes = {"O": 2, "I": features * int(np.prod(window, dtype=int)),
             **{d: wanted.shape[o] for d, o in zip(numbers[1][2:], numbers[2][2:], strict=True)}}
    y = rng.integers(-3, 4, [sizes["O" if d == numbers[1][0] else "I" if d == numbers[1][1] else d]
                             for d in range(x.ndim)]).astype(x.dtype)

    def local(lax: Any) -> Any:
        return lambda x, y: lax.conv_general_dilated_local(x, y, case.strides, case.padding, window, **options)
    wanted = of_jax(local(jax.lax), x, y)
    same(local(lax)(x, y), wanted)
    same(cj.jit(local(lax))(x, y), wanted)


@pytest.mark.parametrize("seed", seeds())
def test_shapes_and_dimension_numbers_are_those_of_jax(seed: int) -> None:
    rng = np.random.default_rng(5000 + seed)
    case: Case = random_case(rng, zeros=False)
    named = case.options["dimension_numbers"] or words(rng, len(case.lhs) - 2)
    pads = case.padding if not isinstance(case.padding, str) else case.padding.upper()
    assert jax.lax.conv_general_permutations(named) == lax.conv_general_permutations(named)
    assert tuple(jax.lax.conv_dimension_numbers(case.lhs, case.rhs, named)) == tuple(
        lax.conv_dimension_numbers(case.lhs, case.rhs, named))
    for name in ("conv_general_shape_tuple", "conv_transpose_shape_tuple"):
        if name.startswith("conv_transpose") and pads == "SAME_LOWER":
            continue
        try:
            wanted = getattr(jax.lax, name)(case.lhs, case.rhs, case.strides, pads, named)
        except ValueError:
            with pytest.raises(CorejaxError):
                getattr(lax, name)(case.lhs, case.rhs, case.strides, pads, named)
            continue
        assert tuple(map(int, wanted)) == getattr(lax, name)(case.lhs, case.rhs, case.strides, pads, named)


def test_weak_types_are_those_of_jax() -> None:
    def weak(module: Any) -> Any:
        def f(x: Any) -> Any:
            window = module.lax.broadcast(x, (1, 1, 2))
            return (module.lax.conv(window, window, (1,), "VALID"),
                    module.lax.conv(window, np.ones((1, 1, 2)), (1,), "VALID"))
        return f
    with jax.enable_x64(True):
        others = [v.aval.weak_type for v in jax.make_jaxpr(weak(jax))(1.0).jaxpr.outvars]
    assert others == [v.aval.weak_type for v in cj.make_jaxpr(weak(cj))(1.0).jaxpr.outvars]


@pytest.mark.parametrize("groups", [1, 2])
def test_programs_lower_to_the_operations_of_jax(groups: int) -> None:
    x, y = np.ones((2, 8, 8, 4), np.float32), np.ones((3, 3, 4 // groups, 6), np.float32)

    def slopes(module: Any) -> Any:
        def loss(x: Any, y: Any) -> Any:
            return module.lax.conv_general_dilated(x, y, (2, 1), "SAME", feature_group_count=groups,
                                                   dimension_numbers=("NHWC", "HWIO", "NHWC")).sum()
        return module.jit(module.value_and_grad(loss, argnums=(0, 1) if groups == 1 else 0))

    def operations(text: str) -> list[str]:
        lines = [line for line in text.splitlines() if "stablehlo.convolution" in line]
        return sorted([line[line.index("dim_numbers"):].replace(
            ", precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]", "")
            for line in lines])
    wanted = operations(slopes(jax).lower(x, y).as_text())
    assert wanted
    assert wanted == operations(slopes(cj).lower(x, y).as_text())
