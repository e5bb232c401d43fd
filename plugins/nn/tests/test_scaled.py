"""Products of numbers with scales, given or found: values, bounds of their errors, derivatives, and wrong uses."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
import corejax.numpy as jnp
from corejax import nn
from refusals import assert_refused

RNG = np.random.default_rng(0)
FLOAT4, E4M3, E5M2, E8M0, BFLOAT16 = [np.dtype(each) for each in (
    ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e8m0fnu,
    ml_dtypes.bfloat16)]
DTYPES = [np.dtype(each) for each in (E4M3, E5M2, "float16", BFLOAT16, "float32", "float64", "int8")]
MATRIX = ((1,), (0,)), ((), ())
BATCHED = ((2,), (2,)), ((0,), (0,))
MXFP8, NVFP4 = [nn.get_scaled_dot_general_config(mode) for mode in ("mxfp8", "nvfp4")]
every_mode = pytest.mark.parametrize("mode", ["mxfp8", "nvfp4"])


def same(function):
    return function


def draw_all(seed):
    """Operands and scales of a random shape and random dtypes, small enough that products of them are exact."""
    rng = np.random.default_rng(seed)
    batch, rows, columns, a, b = rng.integers(1, 4, 5)
    size = a * b * rng.integers(1, 5)
    counts = [size // rng.choice([1, a, b, a * b, size]) for _ in range(2)]
    operands = [rng.integers(-7, 8, (batch, n, size)).astype(rng.choice(DTYPES)) for n in (rows, columns)]
    scales = [(2.0 ** rng.integers(-3, 3, (batch, n, count))).astype(rng.choice([E8M0, E4M3, "float32", "float64"]))
              for n, count in zip((rows, columns), counts, strict=True)]
    return *operands, *scales


def whole(data, scales):
    """In NumPy: what data and scales stand for."""
    return data.astype(np.float32) * scales.astype(np.float32).repeat(data.shape[-1] // scales.shape[-1], -1)


def product(lhs, rhs, lhs_scales, rhs_scales):
    """In NumPy: the product of numbers with scales."""
    return np.einsum("bmk,bnk->bmn", whole(lhs, lhs_scales), whole(rhs, rhs_scales))


# Numbers that have scales

@pytest.mark.parametrize("seed", [
    pytest.param(seed, marks=() if seed < 40 else pytest.mark.exhaustive) for seed in range(400)])
def test_products_are_those_of_numpy(seed):
    args = draw_all(seed)
    preferred = [np.dtype(np.float32), BFLOAT16, np.dtype(np.float16), np.dtype(np.float64)][seed % 4]
    wanted = product(*args).astype(preferred)
    options = {} if seed % 8 == 0 else {"preferred_element_type": preferred}
    wrap = cj.jit if seed % 3 == 0 else same
    found = wrap(lambda *args: nn.scaled_matmul(*args, **options))(*args)
    assert preferred == found.dtype
    assert_array_equal(wanted, found)


@pytest.mark.parametrize("dtype", [E4M3, BFLOAT16, "float16", "float64"])
def test_products_are_computed_in_float32(dtype):
    ones = np.ones((1, 1, 1))
    lhs, rhs = [np.array([[each]], dtype) for each in ([1, 2.0 ** -6, -1], [256, 2.0 ** -6, 256])]
    assert 2.0 ** -12 == nn.scaled_matmul(lhs, rhs, ones, ones).item()
    assert 0 == nn.scaled_matmul(lhs, np.ones((1, 1, 3)), ones, ones + 2.0 ** -30).item() - 2.0 ** -6


def test_blocks_of_lhs_and_of_rhs_may_differ_in_size():
    lhs, rhs = RNG.integers(-4, 5, (2, 3, 12)), RNG.integers(-4, 5, (2, 5, 12))
    scales = np.array([[1.0, 4.0]] * 3), np.array([[1.0, 2.0, 0.5]] * 5)
    scales = [np.stack([x, x]) for x in scales]
    assert_array_equal(product(lhs, rhs, *scales), nn.scaled_matmul(lhs, rhs, *scales))


def test_numpy_s_arrays_of_float4_are_taken():
    lhs, rhs = np.array([[[0.5, -6.0, 1.5, 3.0]]]).astype(FLOAT4), np.ones((1, 1, 4), FLOAT4)
    assert -2.0 == nn.scaled_matmul(lhs, rhs, np.ones((1, 1, 2), E4M3), np.full((1, 1, 1), 2.0, E4M3)).item()


def test_products_are_mapped_and_differentiated():
    lhs, rhs, lhs_scales, rhs_scales = args = [RNG.standard_normal(shape).astype(np.float32) for shape in (
        (4, 2, 3, 6), (4, 2, 5, 6), (4, 2, 3, 2), (4, 2, 5, 3))]
    out = cj.vmap(nn.scaled_matmul)(*args)
    assert_allclose(out, np.stack([product(*each) for each in zip(*args, strict=True)]), rtol=1e-5, atol=1e-5)
    one = [x[0] for x in args]
    bars = cj.grad(lambda *args: nn.scaled_matmul(*args).sum(), argnums=(0, 1, 2, 3))(*one)
    left = whole(rhs[0], rhs_scales[0]).sum(1, keepdims=True)
    assert_allclose(bars[0], lhs_scales[0].repeat(3, -1) * left, rtol=1e-5, atol=1e-5)
    assert_allclose(bars[2], (lhs[0] * left).reshape(2, 3, 2, 3).sum(-1), rtol=1e-5, atol=1e-5)
    assert_allclose(bars[3], (rhs[0] * whole(lhs[0], lhs_scales[0]).sum(1, keepdims=True)).reshape(2, 5, 3, 2).sum(-1),
                    rtol=1e-5, atol=1e-5)
    assert cj.grad(lambda x: nn.scaled_matmul(x, rhs[0], *one[2:]).sum())(one[0].astype(np.float16)).dtype == "float16"


@pytest.mark.parametrize("wrap", [same, cj.jit])
def test_products_of_nothing(wrap):
    call = wrap(nn.scaled_matmul)
    for batch, rows, columns, size, count in ((0, 2, 3, 4, 2), (2, 0, 3, 4, 1), (2, 3, 0, 4, 4), (2, 3, 1, 0, 0),
                                              (2, 3, 1, 0, 2)):
        args = [np.ones(shape, E4M3) for shape in ((batch, rows, size), (batch, columns, size), (batch, rows, count),
                                                   (batch, columns, count))]
        assert_array_equal(np.zeros((batch, rows, columns), np.float32), call(*args))


# Numbers that get scales

def rounded(x, mode, block_size=None, data_type=None, global_scale=1.0, factor=1):
    """In NumPy: what rows of numbers are rounded to, block by block; and multiplied by a factor."""
    block_size = block_size or {"mxfp8": 32, "nvfp4": 16}[mode]
    data_type = data_type or {"mxfp8": E4M3, "nvfp4": FLOAT4}[mode]
    limit = float(ml_dtypes.finfo(data_type).max)
    x = x.astype(np.float32)
    out = np.zeros(x.shape, np.float32)
    for i in np.ndindex(x.shape[:-1]):
        for start in range(0, x.shape[-1], block_size):
            block = x[i][start:start + block_size] / np.float32(global_scale)
            most = np.abs(block).max()
            scale = 2.0 ** np.ceil(np.log2(most / limit, dtype=float)) if mode == "mxfp8" else np.float32(
                min(most / np.float32(limit), 448)).astype(E4M3).astype(np.float32)
            if scale:
                out[i][start:start + block_size] = (block / np.float32(scale)).clip(-limit, limit).astype(
                    data_type).astype(np.float32) * np.float32(scale)
    return out * np.float32(factor) * np.float32(global_scale)


def drawn_product(seed):
    """Operands of a random rank and dtype, dimension numbers, and the operands as `[B, M, K]` and `[B, N, K]`."""
    rng = np.random.default_rng(seed)
    letters = [*"bcmnopjk"]
    rng.shuffle(letters)
    batch, left, right, summed = [letters[2 * i:2 * i + rng.integers(0, 3)] for i in range(4)]
    sizes = {letter: int(rng.integers(1, 4)) for letter in letters} | {letter: int(rng.integers(1, 9))
                                                                       for letter in summed}
    orders = [list(rng.permutation([*batch, *kept, *summed])) for kept in (left, right)]
    pairs = [[tuple([order.index(letter) for letter in group]) for order in orders] for group in (summed, batch)]
    dtype = [np.dtype("float32"), BFLOAT16, np.dtype("float16"), np.dtype("float64")][seed % 4]
    operands = [(rng.standard_normal([sizes[letter] for letter in order]) * 10.0 ** rng.integers(-2, 3)).astype(dtype)
                for order in orders]
    summed = sorted(summed, key=orders[0].index)
    groups = [(batch, sorted(kept, key=order.index), summed)
              for kept, order in zip((left, right), orders, strict=True)]
    stacked = [np.transpose(x, [order.index(letter) for group in each for letter in group]).reshape(
        [int(np.prod([sizes[letter] for letter in group])) for group in each])
               for x, order, each in zip(operands, orders, groups, strict=True)]
    return operands, pairs, stacked


@every_mode
@pytest.mark.parametrize("seed", [
    pytest.param(seed, marks=() if seed < 24 else pytest.mark.exhaustive) for seed in range(200)])
def test_rounded_products_are_those_of_numpy(seed, mode):
    (lhs, rhs), numbers, stacked = drawn_product(seed)
    preferred = [np.dtype(np.float32), BFLOAT16, np.dtype(np.float16)][seed % 3]
    global_scales = [10.0 ** (seed % 5 - 3), 0.25] if mode == "nvfp4" else [1.0, 1.0]
    configs = [nn.get_scaled_dot_general_config(mode, np.float32(scale)) for scale in (*global_scales, 1.0)]
    left, right = [rounded(x, mode, global_scale=scale) for x, scale in zip(stacked, global_scales, strict=True)]
    wanted = np.einsum("bmk,bnk->bmn", left, right)
    shape = cj.eval_shape(lambda x, y: cj.lax.dot_general(x, y, numbers), lhs, rhs).shape
    wrap = cj.jit if seed % 2 else same
    found = wrap(lambda x, y: nn.scaled_dot_general(x, y, numbers, preferred, configs))(lhs, rhs)
    assert (shape, preferred) == (found.shape, found.dtype)
    atol = 1e-5 * np.einsum("bmk,bnk->bmn", abs(left), abs(right)).max(initial=1e-30)
    rtol = float(ml_dtypes.finfo(preferred).eps)
    with np.errstate(over="ignore"):
        assert_allclose(np.asarray(found, np.float32), wanted.reshape(shape).astype(preferred).astype(np.float32),
                        rtol=rtol, atol=atol)


@pytest.mark.parametrize("size", [1, 5, 16, 33, 256])
@pytest.mark.parametrize(("mode", "relative", "of_largest", "absolute"), [
    ("mxfp8", 2.0 ** -4, 2.0 ** -10 / 224, 0.0),  # half of the last bit; half of the least number, times a scale
    ("nvfp4", 2.0 ** -2 + 2.0 ** -4, 0.25 / 5.6, 6 * 2.0 ** -10)])  # and rounded scales, which cut numbers off
def test_errors_are_those_of_the_format(mode, relative, of_largest, absolute, size):
    x, y = RNG.standard_normal((6, size)) * 10.0 ** RNG.integers(-3, 2, (6, 1)), RNG.standard_normal((size, 7))
    config = nn.get_scaled_dot_general_config(mode, 1 / 64)
    found = np.asarray(nn.scaled_dot_general(x, y, MATRIX, configs=[config] * 3), float)
    x_error, y_error = [relative * abs(a) + of_largest * abs(a).max(axis, keepdims=True) + absolute / 64
                        for a, axis in ((x, 1), (y, 0))]
    bound = x_error @ abs(y) + abs(x) @ y_error + x_error @ y_error
    assert (abs(found - x @ y) <= bound + 1e-6 * abs(x) @ abs(y)).all()


@every_mode
@pytest.mark.parametrize("seed", [
    pytest.param(seed, marks=() if seed < 4 else pytest.mark.exhaustive) for seed in range(100)])
def test_numbers_are_rounded_as_numpy_does_whether_compiled_or_not(seed, mode):
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal((20, 50)) * 10.0 ** rng.integers(-4, 5, (20, 1))).astype(DTYPES[2 + seed % 4])
    config = replace(nn.get_scaled_dot_general_config(mode, np.float32([0.1, 1.0, 3.0][seed % 3])),
                     block_size=[7, 16, 32, 50][seed % 4])
    one = replace(config, global_scale=None if mode == "mxfp8" else 1.0)
    pick = np.eye(50, dtype=np.float32) * {"mxfp8": 448, "nvfp4": 6}[mode]  # of which the scales are 1

    def call(x):
        return nn.scaled_dot_general(x, pick, MATRIX, configs=[config, one, one])

    wanted = rounded(x, mode, config.block_size, global_scale=config.global_scale or 1.0, factor=pick.max())
    assert_array_equal(wanted, call(x))
    assert_array_equal(wanted, cj.jit(call)(x))


@every_mode
def test_numbers_of_the_format_are_exact(mode):
    numbers = np.arange(256 if mode == "mxfp8" else 16).astype(np.uint8).view(E4M3 if mode == "mxfp8" else FLOAT4)
    values = numbers.astype(np.float32)
    values = values[np.isfinite(values)]
    most = np.abs(values).max()
    x = np.stack([np.full_like(values, most), values], 1)  # so that the scale is 1
    config = replace(nn.get_scaled_dot_general_config(mode), block_size=2)
    out = nn.scaled_dot_general(x, np.array([[0.0], [most]]), MATRIX, configs=[config] * 3)
    assert_array_equal(values * most, out[:, 0])


@every_mode
@pytest.mark.parametrize("wrap", [same, cj.jit])
def test_blocks_of_zeros_and_of_tiny_numbers_are_finite(mode, wrap):
    x = np.zeros((5, 64), np.float32)
    x[1, :3] = 1e-40
    x[2, :3] = 1e-37
    x[3] = 1e-12
    x[4, 32:] = 6.0
    call = wrap(lambda x: nn.scaled_dot_general(x, np.full((64, 2), 6.0), MATRIX, configs=[
        nn.get_scaled_dot_general_config(mode)] * 3))
    assert_allclose([0, 0, 0, 0, 32 * 36], call(x)[:, 0], atol=1e-9)


def test_global_scales_of_zeros_may_be_zero():
    config = nn.get_scaled_dot_general_config("nvfp4", 0.0)
    out = nn.scaled_dot_general(np.zeros((2, 20)), np.ones((20, 3)), MATRIX, configs=[config, NVFP4, NVFP4])
    assert_array_equal(np.zeros((2, 3)), out)


@every_mode
@pytest.mark.parametrize("wrap", [same, cj.jit])
def test_what_is_not_finite_makes_its_rows_nan(mode, wrap):
    x = np.full((3, 64), 6, np.float32)
    x[0, 5], x[1, 40] = np.inf, np.nan
    config = nn.get_scaled_dot_general_config(mode)
    out = wrap(lambda x: nn.scaled_dot_general(x, np.full((64, 1), 6.0), MATRIX, configs=[config] * 3))(x)
    assert np.isnan(out[1, 0])
    assert 64 * 36 == out[2, 0]
    assert mode == "nvfp4" or np.isnan(out[0, 0])  # by nvfp4, numbers that are too large are cut off


def test_without_configurations_this_is_dot_general():
    x, y = RNG.standard_normal((2, 3)), RNG.standard_normal((3, 4))
    found = nn.scaled_dot_general(x, y, MATRIX)
    assert "float32" == found.dtype
    assert_array_equal(cj.lax.dot_general(x, y, MATRIX, preferred_element_type=np.float32), found)
    with pytest.warns(DeprecationWarning, match="isn't used any more"):
        assert_array_equal(found, nn.scaled_dot_general(x, y, MATRIX, implementation="cudnn"))


def test_configurations_can_be_changed():
    x, y = RNG.standard_normal((3, 20)), RNG.standard_normal((4, 20))
    config = replace(MXFP8, block_size=5, data_type=jnp.float8_e5m2, infer_only=True)
    configs = config, replace(NVFP4, block_size=4), config
    found = nn.scaled_dot_general(x, y, (((-1,), (-1,)), ((), ())), configs=configs)
    assert_allclose(found, rounded(x, "mxfp8", 5, E5M2) @ rounded(y, "nvfp4", 4).T, rtol=1e-5, atol=1e-5)
    assert {MXFP8, replace(MXFP8)} == {MXFP8}


# Derivatives

@every_mode
@pytest.mark.parametrize("dtype", ["float32", "float64", BFLOAT16])
@pytest.mark.parametrize("wrap", [same, cj.jit])
def test_gradients_are_those_without_rounding_or_rounded_products(mode, dtype, wrap):
    x, y = [RNG.standard_normal(shape).astype(dtype) for shape in ((2, 5, 40), (2, 33, 40))]
    config = nn.get_scaled_dot_general_config(mode, np.float32(0.01))
    out_bar = RNG.standard_normal((2, 5, 33)).astype(np.float32)
    call = wrap(lambda x, y, out_bar: cj.vjp(lambda x, y: nn.scaled_dot_general(x, y, BATCHED, configs=[config] * 3),
                                             x, y)[1](out_bar))
    x_bar, y_bar = call(x, y, out_bar)
    assert (x.dtype, y.dtype) == (x_bar.dtype, y_bar.dtype)

    def near(a):
        return rounded(a, "mxfp8") if mode == "mxfp8" else a.astype(np.float32)

    wanted = [np.einsum("bmn,bkn->bmk", near(out_bar), near(np.swapaxes(y, 1, 2))),
              np.einsum("bnm,bkm->bnk", near(np.swapaxes(out_bar, 1, 2)), near(np.swapaxes(x, 1, 2)))]
    tolerance = 1e-2 if dtype == BFLOAT16 else 1e-5
    for found, each in zip((x_bar, y_bar), wanted, strict=True):
        assert_allclose(np.asarray(found, np.float32), each, rtol=tolerance, atol=tolerance)


def test_gradients_are_zero_where_numbers_are_cut_off():
    scale = np.float32(2.0 ** -10)  # so that numbers up to 2.625 fit
    config = nn.get_scaled_dot_general_config("nvfp4", np.array([scale]))
    x, y = np.array([[1.0, -3.0, 2.625, 2.626]]), np.array([[5.0], [1.0], [1.0], [1.0]])
    x_bar, y_bar = cj.grad(lambda x, y: nn.scaled_dot_general(x, y, MATRIX, configs=[config] * 3).sum(), (0, 1))(x, y)
    assert_array_equal([[5, 0, 1, 0]], x_bar)
    assert_array_equal(np.float32([[0], [-3], [2.625], [2.626]]), y_bar)


def test_global_scales_may_be_traced_and_have_derivatives_of_zero():
    x, y = RNG.standard_normal((3, 32)), RNG.standard_normal((32, 2))

    def total(x, y, scale):
        config = nn.get_scaled_dot_general_config("nvfp4", scale)
        return nn.scaled_dot_general(x, y, MATRIX, configs=[config] * 3).sum()

    scale = np.abs(x).max() / 2688
    assert 0 == cj.jit(cj.grad(total, argnums=2))(x, y, scale)
    several = cj.vmap(total, in_axes=(None, None, 0))(x, y, np.array([scale, 2 * scale, 1.0]))
    assert_allclose(several, [total(x, y, each) for each in (scale, 2 * scale, 1.0)], rtol=1e-6)


@every_mode
def test_rounded_products_are_mapped(mode):
    x, y = RNG.standard_normal((3, 4, 40)), RNG.standard_normal((3, 40, 5))
    config = nn.get_scaled_dot_general_config(mode)

    def call(x, y):
        return nn.scaled_dot_general(x, y, MATRIX, configs=[config] * 3)

    def slope(x, y):
        return cj.grad(lambda x: (call(x, y) ** 2).sum())(x)

    for function in (call, slope):
        wanted = np.stack([function(a, b) for a, b in zip(x, y, strict=True)])
        assert_allclose(cj.vmap(function)(x, y), wanted, rtol=1e-6, atol=1e-5)
        assert_allclose(cj.vmap(function, in_axes=(0, None))(x, y[0])[1], function(x[1], y[0]), rtol=1e-6, atol=1e-5)


@every_mode
def test_second_derivatives_are_as_straight_as_first_ones(mode):
    x, y = RNG.standard_normal((3, 32)), RNG.standard_normal((32, 2))
    config = nn.get_scaled_dot_general_config(mode)

    def total(x):
        return (nn.scaled_dot_general(x, y, MATRIX, configs=[config] * 3) ** 2).sum() / 2

    found = cj.grad(lambda x: cj.grad(total)(x)[0, 3])(x)
    assert_allclose(found[0], y @ y[3], rtol=0.2, atol=0.2)
    assert_array_equal(found[1:], np.zeros((2, 32)))


@every_mode
def test_rounded_products_of_nothing(mode):
    config = nn.get_scaled_dot_general_config(mode)
    for left, right in (((0, 3), (3, 2)), ((2, 0), (0, 3)), ((2, 3), (3, 0)), ((0, 0), (0, 0))):
        x, y = np.ones(left, np.float32), np.ones(right, np.float32)
        out, pull = cj.vjp(lambda x, y: nn.scaled_dot_general(x, y, MATRIX, configs=[config] * 3), x, y)
        assert_array_equal(x @ y, out)
        assert [left, right] == [each.shape for each in pull(out)]


# Wrong uses

def general(x=(2, 3), y=(3, 4), numbers=MATRIX, preferred=np.float32, configs=(MXFP8,) * 3, dtype=float):
    return lambda: nn.scaled_dot_general(np.ones(x, dtype), np.ones(y), numbers, preferred, configs)


def matmul(*shapes, dtype=float, **options):
    return lambda: nn.scaled_matmul(*[np.ones(shape, dtype) for shape in shapes], **options)


def changed(**changes):
    return general(configs=(MXFP8, MXFP8, replace(MXFP8, **changes)))


ONE = (1, 1, 1)
WRONG = {
    "text": (lambda: nn.scaled_matmul("a", np.ones(ONE), np.ones(ONE), np.ones(ONE)), TypeError, "isn't an array"),
    "complex numbers": (matmul(*[ONE] * 4, dtype=complex), TypeError, "takes real numbers"),
    "two axes": (matmul((1, 1), ONE, ONE, ONE), ValueError, "must have 3 axes"),
    "scales of two axes": (matmul(ONE, ONE, ONE, (1, 1)), ValueError, "must have 3 axes"),
    "other batches": (matmul((2, 1, 1), ONE, (2, 1, 1), ONE), ValueError, "operands don't fit together"),
    "other sizes": (matmul(ONE, (1, 1, 2), ONE, ONE), ValueError, "operands don't fit together"),
    "scales of other rows": (matmul((1, 2, 4), (1, 3, 4), (1, 3, 1), (1, 3, 1)), ValueError, "lhs_scales don't fit"),
    "scales of other batches": (matmul(ONE, ONE, ONE, (2, 1, 1)), ValueError, "rhs_scales don't fit rhs"),
    "broken blocks": (matmul((1, 2, 4), (1, 3, 4), (1, 2, 3), (1, 3, 2)), ValueError, "3 scales for 4 numbers"),
    "no scales": (matmul((1, 2, 4), (1, 3, 4), (1, 2, 2), (1, 3, 0)), ValueError, "rows of rhs can't be cut"),
    "a result of integers": (matmul(*[ONE] * 4, preferred_element_type=int), TypeError, "can't have this dtype"),
    "a result of nonsense": (matmul(*[ONE] * 4, preferred_element_type="wrong"), TypeError, "is not a dtype"),
    "an unknown mode": (lambda: nn.get_scaled_dot_general_config("mxfp4"), ValueError, "'mxfp8' or 'nvfp4'"),
    "a mode that isn't text": (lambda: nn.get_scaled_dot_general_config(["nvfp4"]), ValueError, "no such mode"),
    "a configuration with an unknown mode": (changed(mode="int8"), ValueError, "no such mode"),
    "complex operands": (general(dtype=complex), TypeError, "takes real numbers"),
    "a wide result": (general(preferred=float), TypeError, "float32, bfloat16, float16"),
    "two configurations": (general(configs=(MXFP8, MXFP8)), TypeError, "2 of them"),
    "one configuration": (general(configs=MXFP8), TypeError, "takes three configurations"),
    "modes for configurations": (general(configs=["mxfp8"] * 3), TypeError, "isn't a configuration"),
    "empty blocks": (changed(block_size=0), ValueError, "blocks can't be empty"),
    "a broken block": (changed(block_size=1.5), TypeError, "block_size must be an integer"),
    "wide data": (changed(data_type="float32"), TypeError, "data_type can't be this"),
    "data of nonsense": (changed(data_type=[1]), TypeError, "data_type can't be this"),
    "other scales": (changed(scale_type=E4M3), TypeError, "float8_e8m0fnu"),
    "a global scale of mxfp8": (changed(global_scale=2.0), ValueError, "the global scale is None"),
    "no global scale": (general(configs=[replace(NVFP4, global_scale=None)] * 3), ValueError,
                        "the global scale is a number"),
    "global scales": (general(configs=[replace(NVFP4, global_scale=np.ones(2))] * 3), ValueError, "must be one number"),
    "a global scale of text": (general(configs=[replace(NVFP4, global_scale="a")] * 3), TypeError, "isn't an array"),
    "no dimension numbers": (general(numbers=None), TypeError, "has the wrong form"),
    "dimension numbers without batches": (general(numbers=((1,), (0,))), TypeError, "has the wrong form"),
    "a missing axis": (general(numbers=(((2,), (0,)), ((), ()))), ValueError, "axis 2 is out of bounds"),
    "an axis twice": (general(numbers=(((1,), (0,)), ((1,), (1,)))), ValueError, "an axis appears twice"),
    "a broken axis": (general(numbers=(((1.5,), (0,)), ((), ()))), TypeError, "integer"),
    "an axis of another size": (general(numbers=(((0,), (0,)), ((), ()))), ValueError, "differ in number or size"),
    "axes of one operand": (general(numbers=(((1,), ()), ((), ()))), ValueError, "differ in number or size"),
    "forward mode": (lambda: cj.jvp(lambda x: nn.scaled_dot_general(x, x, MATRIX, configs=[MXFP8] * 3),
                                    (np.ones((2, 2)),), (np.ones((2, 2)),)), TypeError,
                     "scaled_dot_general has no rule for forward mode"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_uses_are_told(case):
    assert_refused(*WRONG[case])
