"""Convolutions beside loops, scipy, differences and each other; conventions that no law of the kit covers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from conv_cases import Case, by_definition, random_case
from corejax import lax

QUICK, ALL = 60, 600


def seeds(quick: int = QUICK, count: int = ALL) -> list[Any]:
    return [*range(quick), *[pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(quick, count)]]


@pytest.mark.parametrize("seed", seeds())
def test_values_are_those_of_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = random_case(rng)
    x, y = rng.integers(-4, 5, case.lhs), rng.integers(-4, 5, case.rhs)
    if seed % 3:
        x, y = x.astype(float), y.astype(float)
    wanted = by_definition(case, x, y)
    for call in (case.of(lax), *([cj.jit(case.of(lax))] if seed % 10 == 0 else [])):
        found = call(x, y)
        assert (wanted.shape, wanted.dtype) == (found.shape, found.dtype)
        assert_array_equal(found, wanted)


@pytest.mark.parametrize("seed", seeds(20, 300))
def test_cotangents_are_those_of_differences_and_of_products(seed: int) -> None:
    """It is bilinear: <ct, f(v, y)> = <x_bar, v>, and <ct, f(x, w)> = <y_bar, w>, by the definition's f."""
    rng = np.random.default_rng(10_000 + seed)
    case = random_case(rng)
    x, v, y, w = [rng.integers(-3, 4, shape).astype(float) for shape in (case.lhs, case.lhs, case.rhs, case.rhs)]
    out, pullback = cj.vjp(case.of(lax), x, y)
    ct = rng.integers(-3, 4, out.shape).astype(float)
    x_bar, y_bar = pullback(ct)
    assert (x.shape, y.shape) == (x_bar.shape, y_bar.shape)
    assert (ct * by_definition(case, v, y)).sum() == (np.asarray(x_bar) * v).sum()
    assert (ct * by_definition(case, x, w)).sum() == (np.asarray(y_bar) * w).sum()


@pytest.mark.parametrize("kind", ["feature_group_count", "batch_group_count"])
def test_second_derivatives_by_each_pair_of_operands(kind: str) -> None:
    rng = np.random.default_rng(0)
    features, batch = (4, 2) if kind.startswith("feature") else (2, 4)
    case = Case((), (), (2,), [(1, 2)], {"rhs_dilation": (2,), "lhs_dilation": (3,), kind: 2})
    x, y = rng.standard_normal((batch, features, 4)), rng.standard_normal((4, 2, 3))

    def loss(x: Any, y: Any) -> Any:
        return lax.sin(case.of(lax)(x, y)).sum()
    step, slopes = 1e-6, cj.grad(loss, argnums=(0, 1))
    for ways in ((rng.standard_normal(x.shape), np.zeros(y.shape)), (np.zeros(x.shape), rng.standard_normal(y.shape))):
        ends = [slopes(x + sign * step * ways[0], y + sign * step * ways[1]) for sign in (1, -1)]
        _, second = cj.jvp(slopes, (x, y), ways)
        for found, high, low in zip(second, *ends, strict=True):
            assert_allclose(found, (np.asarray(high) - np.asarray(low)) / (2 * step), rtol=1e-6, atol=1e-7)


def test_a_convolution_in_the_sense_of_mathematics_reverses_the_window() -> None:
    signal = pytest.importorskip("scipy.signal")
    rng = np.random.default_rng(0)
    for shape, window in (((7,), (3,)), ((5, 6), (2, 3)), ((4, 3, 5), (2, 2, 3))):
        x, y = rng.standard_normal(shape), rng.standard_normal(window)
        full = [(k - 1, k - 1) for k in window]
        ones = (1,) * len(shape)
        for mode, padding in (("full", full), ("valid", "VALID")):
            found = lax.conv(x[None, None], y[None, None], ones, padding)[0, 0]
            assert_allclose(found, signal.correlate(x, y, mode), rtol=1e-12, atol=1e-12)
        turned = lax.conv(x[None, None], np.flip(y)[None, None], ones, full)[0, 0]
        assert_allclose(turned, signal.convolve(x, y), rtol=1e-12, atol=1e-12)
    x, y = rng.standard_normal(7), rng.standard_normal(3)
    found = lax.conv_general_dilated(x[None, None], np.flip(y)[None, None], (3,), [(2, 2)], (2,))[0, 0]
    assert_allclose(found, signal.upfirdn(y, x, up=2, down=3)[:found.size], rtol=1e-12, atol=1e-12)


def test_same_pads_for_as_many_results_as_strides_fit() -> None:
    x, y = np.arange(1.0, 6.0).reshape(1, 1, 5), np.array([[[1.0, 10.0]]])
    assert [21.0, 32.0, 43.0, 54.0, 5.0] == lax.conv(x, y, (1,), "SAME").ravel().tolist()
    assert [10.0, 21.0, 32.0, 43.0, 54.0] == lax.conv(x, y, (1,), "SAME_LOWER").ravel().tolist()
    assert [21.0, 43.0, 5.0] == lax.conv(x, y, (2,), "same").ravel().tolist()
    assert [31.0, 42.0, 53.0, 4.0, 5.0] == np.asarray(
        lax.conv_with_general_padding(x, y, (1,), [(0, 2)], None, (2,))).ravel().tolist()


@pytest.mark.parametrize("axes", [(0, 0), (1, None), (None, 2)])
@pytest.mark.parametrize("groups", [{}, {"feature_group_count": 2}, {"batch_group_count": 2}])
def test_maps_of_gradients_are_gradients_of_maps(groups: dict[str, int], axes: tuple[Any, Any]) -> None:
    rng = np.random.default_rng(1)
    ins = 2 if "feature_group_count" in groups else 4
    shapes = ((2, 4, 5), (4, ins, 2))
    x, y = [rng.standard_normal(shape if axis is None else (*shape[:axis], 3, *shape[axis:]))
            for shape, axis in zip(shapes, axes, strict=True)]

    def loss(x: Any, y: Any) -> Any:
        return lax.sin(lax.conv_general_dilated(x, y, (2,), "SAME", **groups)).sum()
    each = cj.vmap(cj.grad(loss, argnums=(0, 1)), in_axes=axes)(x, y)
    whole = cj.jit(cj.grad(lambda x, y: cj.vmap(loss, in_axes=axes)(x, y).sum(), argnums=(0, 1)))(x, y)
    for rows, total, axis in zip(each, whole, axes, strict=True):
        rows = np.asarray(rows)
        assert_allclose(rows.sum(0) if axis is None else np.moveaxis(rows, 0, axis), total, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", ml_dtypes.bfloat16, "complex64"])
def test_groups_in_compiled_programs_are_those_of_numpy_in_each_dtype(dtype: Any) -> None:
    rng = np.random.default_rng(2)
    for batch, ins, options in ((2, 1, {"feature_group_count": 3}), (3, 2, {"batch_group_count": 3}),
                                (6, 2, {"batch_group_count": 3})):
        x = rng.integers(0, 3, (batch, ins * options.get("feature_group_count", 1), 6)).astype(dtype)
        y = rng.integers(0, 3, (3 if batch == 3 else 6, ins, 2)).astype(dtype)

        def call(x: Any, y: Any, options: Any = options) -> Any:
            return lax.conv_general_dilated(x, y, (2,), [(1, -1)], (2,), (3,), **options)
        found, wanted = cj.jit(call)(x, y), call(x, y)
        assert (x.dtype, x.dtype) == (found.dtype, wanted.dtype)
        assert_array_equal(np.asarray(found).astype(complex), np.asarray(wanted).astype(complex))


def test_integers_wrap_and_booleans_are_joined() -> None:
    x, y = np.full((1, 1, 3), 100, np.int8), np.ones((1, 1, 3), np.int8)
    wide = {"preferred_element_type": "int32"}
    for convolve in (lax.conv, cj.jit(lax.conv, static_argnums=(2, 3), static_argnames="preferred_element_type")):
        assert [44] == np.asarray(convolve(x, y, (1,), "VALID")).ravel().tolist()
        assert [300] == np.asarray(convolve(x, y, (1,), "VALID", **wide)).ravel().tolist()
        assert [True] == np.asarray(convolve(x > 0, y > 0, (1,), "VALID")).ravel().tolist()


def test_narrow_floats_are_added_up_as_wider_ones() -> None:
    x, y = np.ones((1, 1, 4096), ml_dtypes.bfloat16), np.ones((1, 1, 4096), ml_dtypes.bfloat16)
    assert 4096.0 == float(lax.conv(x, y, (1,), "VALID").ravel()[0])
    depthwise = cj.jit(lambda x, y: lax.conv_general_dilated(x, y, (1,), "VALID", feature_group_count=2))
    tiny = np.array([256.0] + [1.0] * 16).astype(ml_dtypes.bfloat16)
    found = depthwise(np.stack([tiny, tiny])[None], np.ones((2, 1, 17), ml_dtypes.bfloat16))
    assert [272.0, 272.0] == np.asarray(found).astype(float).ravel().tolist()


@pytest.mark.parametrize("kind", ["feature_group_count", "batch_group_count"])
def test_groups_do_not_see_the_nans_of_others(kind: str) -> None:
    x, y = np.ones((3, 3, 6)), np.ones((3, 1 if kind.startswith("feature") else 3, 2))
    x[(slice(None), 1) if kind.startswith("feature") else 1] = np.nan

    def call(x: Any, y: Any) -> Any:
        return lax.conv_general_dilated(x, y, (1,), "VALID", **{kind: 3})
    for either in (call, cj.jit(call)):
        found = np.isnan(np.asarray(either(x, y)))
        assert [False, True, False] == found.all((0, 2)).tolist() == found.any((0, 2)).tolist()


def test_large_batches_are_the_same_in_parts() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((70, 8, 30, 30)), rng.standard_normal((4, 8, 5, 5))
    assert_allclose(lax.conv(x, y, (1, 1), "SAME"), cj.jit(lambda x, y: lax.conv(x, y, (1, 1), "SAME"))(x, y),
                    rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("padding", ["SAME", "VALID", [(1, 2), (0, 1)]])
@pytest.mark.parametrize("consistent", [True, False])
def test_transposed_convolutions_are_cotangents(padding: Any, consistent: bool) -> None:
    if not isinstance(padding, str) and not consistent:
        pytest.skip("pairs are then those of the transposed convolution")
    rng, words = np.random.default_rng(4), ("NHWC", "HWIO", "NHWC")
    images, y = rng.standard_normal((2, 7, 8, 3)), rng.standard_normal((3, 5, 3, 4))
    out, pullback = cj.vjp(lambda x: lax.conv_general_dilated(x, y, (1, 1), padding, dimension_numbers=words), images)
    ct = rng.standard_normal(out.shape)
    found = lax.conv_transpose(ct, y, (1, 1), padding, transpose_kernel=True, use_consistent_padding=consistent)
    assert_allclose(found, pullback(ct)[0], rtol=1e-12, atol=1e-12)


def test_patches_are_what_windows_see() -> None:
    x = np.random.default_rng(5).standard_normal((2, 3, 5, 6))
    found = np.asarray(lax.conv_general_dilated_patches(x, (2, 3), (1, 2), "VALID"))
    seen = sliding_window_view(x, (2, 3), axis=(2, 3))[:, :, :, ::2]
    assert_allclose(found, np.moveaxis(seen, (4, 5), (2, 3)).reshape(2, 18, 4, 2), rtol=1e-12)


def test_windows_at_each_place_that_are_equal_are_one_window() -> None:
    rng = np.random.default_rng(6)
    x, y = rng.standard_normal((2, 5, 6, 3)), rng.standard_normal((2, 3, 3, 4))
    words = ("NHWC", "HWIO", "NHWC")
    wanted = lax.conv_general_dilated(x, y, (1, 2), "SAME", dimension_numbers=words)
    own = np.moveaxis(y, 2, 0).reshape(18, 4)
    spread = np.broadcast_to(own, (*wanted.shape[1:3], 18, 4))
    found = lax.conv_general_dilated_local(x, spread, (1, 2), "SAME", (2, 3), dimension_numbers=words)
    assert_allclose(found, wanted, rtol=1e-11, atol=1e-12)


def test_a_program_shows_the_params_as_they_are() -> None:
    program = str(cj.make_jaxpr(lambda x, y: lax.conv(x, y, (2,), "SAME", "highest"))(np.ones((1, 1, 5)),
                                                                                     np.ones((1, 1, 2))))
    for text in ("padding=((0, 1),)", "precision=('HIGHEST', 'HIGHEST')", "window_strides=(2,)",
                 "dimension_numbers=((0, 1, 2), (0, 1, 2), (0, 1, 2))", "feature_group_count=1", "rhs_dilation=(1,)"):
        assert text in program


def test_groups_lower_to_what_the_cpu_is_fast_at() -> None:
    def text(x: Any, y: Any, **groups: int) -> str:
        return cj.jit(lambda x, y: lax.conv_general_dilated(x, y, (1,), "SAME", **groups)).lower(x, y).as_text()
    assert "stablehlo.convolution" not in text(np.ones((2, 4, 8)), np.ones((4, 1, 3)), feature_group_count=4)
    grouped = text(np.ones((4, 2, 8)), np.ones((4, 2, 3)), batch_group_count=2)
    assert "feature_group_count = 2" in grouped
    assert "batch_group_count = 1" in grouped


@pytest.mark.parametrize("precision", ["highest", lax.Precision.HIGHEST, ("highest", lax.Precision.HIGHEST),
                                       (lax.Precision.HIGHEST, "float32")])
def test_levels_of_precision_have_many_names(precision: Any) -> None:
    f = cj.make_jaxpr(lambda x: lax.conv(x, x, (1,), "VALID", precision))(np.ones((1, 1, 2)))
    assert ("HIGHEST", "HIGHEST") == f.jaxpr.eqns[0].params["precision"]


def test_padding_that_no_window_sees_takes_no_memory() -> None:
    x, w = np.ones((1, 2, 7)), np.ones((2, 2, 3))
    out = lax.conv_general_dilated(x, w, (1 << 40,), [(1 << 41, 0)])
    assert [0.0, 0.0, 6.0] == np.asarray(out)[0, 0].tolist()
