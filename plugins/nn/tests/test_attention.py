"""dot_product_attention: values and derivatives of any order, block by block, with the memory of a few blocks."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from attention_cases import drawn, plainly
from corejax import lax, nn
from corejax_nn import _blocks
from refusals import assert_refused

RNG = np.random.default_rng(0)
CALLS = [pytest.param(seed, marks=() if seed < 4 else pytest.mark.exhaustive) for seed in range(200)]


@pytest.fixture
def small_blocks(monkeypatch, request):
    """Blocks of a few queries, of some batches, and keys in parts."""
    rng = np.random.default_rng(request.node.callspec.params.get("seed", 0))
    for name, most in (("QUERIES", 6), ("MANY", 300), ("FEW", 2), ("PARTS", 5)):
        monkeypatch.setattr(_blocks, name, int(rng.integers(1, most)))
    cj.clear_caches()
    yield
    cj.clear_caches()


def agree(found, wanted):
    assert len(found) == len(wanted)
    for x, y in zip(found, wanted, strict=True):
        assert_allclose(x, y, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("seed", CALLS)
def test_blocks_agree_with_all_scores_at_once(seed, small_blocks):
    arrays, options, weights = drawn(seed)
    every = tuple(range(len(arrays)))
    rng = np.random.default_rng(seed)
    dots = [rng.standard_normal(x.shape) for x in arrays]
    functions = [lambda *xs: nn.dot_product_attention(*xs, **options), lambda *xs: plainly(*xs, **options)]

    def slopes(function):
        return cj.grad(lambda *xs: (function(*xs) * weights).sum(), every)

    def slopes_of_slopes(function):
        def along(*xs):
            return sum([(x * x_dot).sum() for x, x_dot in zip(slopes(function)(*xs), dots, strict=True)])
        return cj.grad(along, every)

    agree(*[[function(*arrays)] for function in functions])
    agree(*[cj.jvp(function, arrays, dots) for function in functions])
    agree(*[slopes(function)(*arrays) for function in functions])
    agree(*[cj.jit(slopes_of_slopes(function))(*arrays) for function in functions])
    agree(*[cj.jvp(slopes(function), arrays, dots)[1] for function in functions])


@pytest.mark.parametrize("seed", CALLS)
def test_mapped_attentions_are_those_of_slices(seed):
    arrays, options, weights = drawn(seed)
    rng = np.random.default_rng(seed)
    axes = [int(rng.integers(0, x.ndim + 1)) if rng.random() < 0.7 else None for x in arrays]
    axes[seed % len(axes)] = 0
    stacked = [x if axis is None else np.stack([x, x * 0.5, x + 0.1], axis)
               for x, axis in zip(arrays, axes, strict=True)]
    every = tuple(range(len(arrays)))

    def loss(*xs):
        return (nn.dot_product_attention(*xs, **options) * weights).sum()

    def both(*xs):
        value, slopes = cj.value_and_grad(loss, every)(*xs)
        return [value, *slopes]

    slices = [both(*[x if axis is None else np.take(x, i, axis) for x, axis in zip(stacked, axes, strict=True)])
              for i in range(3)]
    agree(cj.vmap(both, tuple(axes))(*stacked), [np.stack(parts) for parts in zip(*slices, strict=True)])


@pytest.mark.parametrize("which", ["query", "key", "value", "bias"])
def test_only_what_is_differentiated_is_computed(which):
    query, key, value = RNG.standard_normal((3, 1, 5, 2, 3))
    operands = {"query": query, "key": key, "value": value, "bias": RNG.standard_normal((1, 1, 5, 5))}

    def slope(x):
        return cj.grad(lambda x: (nn.dot_product_attention(**{**operands, which: x}) ** 2).sum())(x)

    (eqn,) = [eqn for eqn in cj.make_jaxpr(slope)(operands[which]).eqns if eqn.primitive.name == "nn_attention_back"]
    assert (which,) == eqn.params["wrt"] and [operands[which].shape] == [v.aval.shape for v in eqn.outvars]
    wanted = cj.grad(lambda x: (plainly(**{**operands, which: x}) ** 2).sum())(operands[which])
    assert_allclose(slope(operands[which]), wanted, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("order", "most"), [(1, 300e6), (2, 400e6)])
def test_memory_is_that_of_some_blocks(order, most):
    x = cj.ShapeDtypeStruct((1, 8192, 8, 64), np.float32)

    def loss(query, key, value):
        return (nn.dot_product_attention(query, key, value) ** 2).sum()

    slopes = cj.grad(loss, (0, 1, 2))
    if order == 2:
        def program(*xs):
            return cj.jvp(slopes, xs, xs)[1]
    else:
        program = slopes
    memory = cj.jit(program).lower(x, x, x).compile().memory_analysis()
    assert memory.temp_size_in_bytes < most  # the scores alone are 2,147 MB


def test_parts_of_a_causal_attention_are_compared_with_the_keys_that_they_see():
    x = cj.ShapeDtypeStruct((1, 2048, 1, 8), np.float64)

    def keys_compared(**options):
        text = cj.jit(lambda *xs: nn.dot_product_attention(*xs, **options)).lower(x, x, x).as_text()
        return {int(keys) for keys in re.findall(r"dot_general.*-> tensor<1x\d+x(\d+)xf64>", text)} - {8}

    assert {2048} == keys_compared()
    assert {512, 1024, 1536, 2048} == keys_compared(is_causal=True)
    assert {512 + 10, 512 + 20} == keys_compared(local_window_size=10)


# Rows for which nothing counts, and infinities

def test_queries_for_which_nothing_counts_find_zero_with_derivatives():
    query, key, value = RNG.standard_normal((3, 2, 4, 1, 3))
    mask = np.ones((2, 1, 4, 4), bool)
    mask[0, 0, 1] = False

    def find(query, key, value, bias=None):
        return nn.dot_product_attention(query, key, value, bias, mask=mask,
                                        key_value_seq_lengths=np.array([4, 0], np.int32), return_residual=True)

    found, logs = find(query, key, value)
    assert_array_equal(found[0, 1], 0)
    assert_array_equal(found[1], 0)
    assert_array_equal(logs[1], -np.inf)
    slopes = cj.grad(lambda *xs: (find(*xs)[0] ** 2).sum(), (0, 1, 2))(query, key, value)
    assert all([np.isfinite(x).all() for x in slopes])
    assert not np.any(slopes[0][0, 1]) and not np.any(slopes[0][1]) and np.any(slopes[0][0, 0])


def test_a_bias_of_minus_infinity_masks():
    query, key, value = RNG.standard_normal((3, 1, 4, 1, 3))
    mask = np.tril(np.ones((4, 4), bool), -1)[None, None]  # the first query sees nothing
    bias = np.where(mask, 0, -np.inf)

    def loss(masked):
        options = {"bias": bias} if masked == "bias" else {"mask": mask}
        return lambda *xs: (nn.dot_product_attention(*xs, **options) ** 2).sum()

    found = [cj.value_and_grad(loss(masked), (0, 1, 2))(query, key, value) for masked in ("bias", "mask")]
    assert_allclose(found[0][0], found[1][0], rtol=1e-14)
    agree(found[0][1], found[1][1])


@pytest.mark.parametrize("size", [1e2, 1e4])
def test_large_scores_neither_overflow_nor_lose_the_largest(size):
    query = size * np.eye(3)[None, :, None]
    found = nn.dot_product_attention(query, query, query, scale=1.0)
    assert_allclose(found, query, rtol=1e-12)
    assert np.isfinite(cj.grad(lambda x: nn.dot_product_attention(x, x, x).sum())(query)).all()


# Results and options

def test_the_residual_is_the_logarithm_of_the_sum_of_powers_with_its_derivative():
    query, key, value = RNG.standard_normal((3, 5, 2, 3))

    def logs(query, key):
        return nn.dot_product_attention(query, key, value, scale=0.5, return_residual=True)[1]

    def plain(query, key):
        return nn.logsumexp(0.5 * cj.numpy.einsum("tnh,snh->tns", query, key), axis=-1)

    assert_allclose(logs(query, key), plain(query, key), rtol=1e-12)
    agree(*[cj.grad(lambda *xs, f=f: (f(*xs) ** 2).sum(), (0, 1))(query, key) for f in (logs, plain)])


def test_results_have_the_shapes_and_dtypes_of_queries():
    for dtype in ("float32", "bfloat16", "float16", "float64", "float8_e4m3fn"):
        x = cj.numpy.asarray(RNG.standard_normal((4, 2, 3)), dtype)
        found, logs = nn.dot_product_attention(x, x, x, return_residual=True)
        assert (found.shape, found.dtype, logs.shape, logs.dtype) == (x.shape, x.dtype, (4, 2), x.dtype)
    assert (3, 0, 2, 4) == nn.dot_product_attention(np.ones((3, 0, 2, 4)), *np.ones((2, 3, 5, 1, 4))).shape
    without_keys = nn.dot_product_attention(np.ones((1, 2, 1, 1)), *np.ones((2, 1, 0, 1, 1)))
    assert_array_equal(without_keys, np.zeros((1, 2, 1, 1)))
    assert np.float64 == nn.dot_product_attention(*np.ones((3, 1, 2, 1, 1), int)).dtype


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_narrow_floats_are_summed_in_float32(dtype):
    wide = RNG.standard_normal((3, 1, 700, 2, 16))
    narrow = [cj.numpy.asarray(x, dtype) for x in wide]
    rounded = [np.asarray(x, np.float64) for x in narrow]
    unit = float(cj.dtypes.finfo(dtype).eps)

    def slopes(xs):
        return cj.grad(lambda *xs: (nn.dot_product_attention(*xs) * 3).sum(), (0, 1, 2))(*xs)

    assert_allclose(np.asarray(nn.dot_product_attention(*narrow), np.float64), nn.dot_product_attention(*rounded),
                    atol=2 * unit)
    for x, y in zip(slopes(narrow), slopes(rounded), strict=True):
        assert_allclose(np.asarray(x, np.float64), y, atol=8 * unit * (1 + np.abs(y).max()))


@pytest.mark.parametrize(("dtype", "of_bias"), [
    ("float64", "float32"), ("float32", "float64"), ("bfloat16", "float32")])
def test_a_bias_may_have_another_dtype(dtype, of_bias, small_blocks):
    query, key, value = [cj.numpy.asarray(x, dtype) for x in RNG.standard_normal((3, 2, 9, 2, 3))]
    bias = cj.numpy.asarray(RNG.standard_normal((1, 2, 1, 9)), of_bias)
    slope = cj.grad(lambda bias: (nn.dot_product_attention(query, key, value, bias) ** 2).sum())
    found, wanted = slope(bias), slope(bias.astype(dtype))
    assert bias.dtype == found.dtype
    rounded = 0.05 if "bfloat16" == dtype else 1e-5  # of the bias, in the narrower dtype
    assert_allclose(np.asarray(found, float), np.asarray(wanted, float), rtol=rounded, atol=rounded / 5)


def test_a_window_may_be_wider_than_all_keys():
    x = RNG.standard_normal((4, 1, 3))
    wanted = nn.dot_product_attention(x, x, x, is_causal=True)
    assert_array_equal(wanted, nn.dot_product_attention(x, x, x, local_window_size=(2 ** 40, 0)))


def test_a_scale_may_be_traced_and_differentiated():
    query, key, value = RNG.standard_normal((3, 4, 1, 3))

    def loss(scale):
        return (nn.dot_product_attention(query, key, value, scale=scale) ** 2).sum()

    assert_allclose(cj.jit(loss)(0.3), loss(0.3), rtol=1e-12)
    slope = (loss(0.3 + 1e-6) - loss(0.3 - 1e-6)) / 2e-6
    assert_allclose(cj.grad(loss)(0.3), slope, rtol=1e-7)


def test_the_same_call_gives_the_same_bits_in_and_out_of_a_program():
    query, key, value = RNG.standard_normal((3, 2, 70, 4, 8)).astype(np.float32)

    def find(*xs):
        return nn.dot_product_attention(*xs, is_causal=True)

    first = find(query, key, value)
    for again in (find, cj.jit(find), cj.jit(find)):
        assert_array_equal(first, again(query, key, value))


ANOTHER_PROGRAM = """
import numpy as np, corejax as cj
from corejax import lax, nn
from corejax.plugin import extend, hookimpl

class Sevens:
    @hookimpl
    def xla_translation(self, ctx, args):
        return [ctx.lower(lambda aval=aval: lax.full(aval.shape, 7.0, aval.dtype)) for aval in ctx.avals_out]

extend("nn_attention", Sevens(), replace=True)
x = np.ones((1, 2, 1, 1))
print(cj.jit(nn.dot_product_attention)(x, x, x).ravel().tolist())
"""


def test_another_program_can_take_the_place_of_the_blocks():
    process = subprocess.run([sys.executable, "-c", ANOTHER_PROGRAM], capture_output=True, text=True, check=True)
    assert "[7.0, 7.0]" == process.stdout.strip()


# Wrong uses

X = np.ones((2, 3, 4, 5))
call = nn.dot_product_attention

WRONG = {
    "no axes": (lambda: call(1.0, X, X), ValueError, "must have axes for batches"),
    "two axes": (lambda: call(*np.ones((3, 4, 5))), ValueError, "must have axes for batches"),
    "five axes": (lambda: call(X[None], X, X), ValueError, "must have axes for batches"),
    "value longer than key": (lambda: call(X, X, np.ones((2, 4, 4, 5))), ValueError, "don't fit each other"),
    "sizes differ": (lambda: call(X, X[..., :4], X[..., :4]), ValueError, "don't fit each other"),
    "batches differ": (lambda: call(X, X[:1], X[:1]), ValueError, "don't fit each other"),
    "heads don't divide": (lambda: call(X, X[:, :, :3], X[:, :, :3]), ValueError, "can't be divided among"),
    "dtypes differ": (lambda: call(X, X.astype(np.float32), X), TypeError, "must have one dtype"),
    "complex": (lambda: call(X + 1j, X, X), TypeError, "takes real numbers"),
    "text": (lambda: call("query", X, X), TypeError, "isn't an array of numbers"),
    "a mask of numbers": (lambda: call(X, X, X, mask=np.ones((2, 4, 3, 3))), TypeError, "mask has another dtype"),
    "a mask for other keys": (lambda: call(X, X, X, mask=np.ones((2, 4, 3, 2), bool)), ValueError, "mask doesn't fit"),
    "a mask of five axes": (lambda: call(X, X, X, mask=np.ones((1, 2, 4, 3, 3), bool)), ValueError, "mask doesn't fit"),
    "a bias for other heads": (lambda: call(X, X, X, np.ones((2, 3, 3, 3))), ValueError, "bias doesn't fit"),
    "a complex bias": (lambda: call(X, X, X, np.ones((3, 3)) * 1j), TypeError, "takes real numbers"),
    "lengths of floats": (lambda: call(X, X, X, query_seq_lengths=np.ones(2)), ValueError,
                          "query_seq_lengths must have an integer for each batch"),
    "one length": (lambda: call(X, X, X, key_value_seq_lengths=3), ValueError,
                   "key_value_seq_lengths must have an integer for each batch"),
    "three numbers of a window": (lambda: call(X, X, X, local_window_size=(1, 2, 3)), TypeError, "one number, or two"),
    "a window of floats": (lambda: call(X, X, X, local_window_size=1.5), TypeError, "must be an integer"),
    "a window of True": (lambda: call(X, X, X, local_window_size=True), TypeError, "one number, or two"),
    "several scales": (lambda: call(X, X, X, scale=np.ones(4)), ValueError, "the scale must be one number"),
    "a scale of text": (lambda: call(X, X, X, scale="1"), TypeError, "isn't an array of numbers"),
    "an implementation": (lambda: call(X, X, X, implementation="flash"), ValueError, "there is no such implementation"),
    "is_causal of text": (lambda: call(X, X, X, is_causal="yes"), TypeError, "is_causal must be"),
    "is_causal traced": (lambda: cj.jit(lambda c: call(X, X, X, is_causal=c))(True), TypeError, "is_causal must be"),
    "return_residual of a number": (lambda: call(X, X, X, return_residual=2), TypeError, "return_residual must be"),
    "names of extras": (lambda: lax.nn_attention(X, X, X, X, scale=1.0, is_causal=False, window=None, extras=("b",)),
                        ValueError, "extras must name the operands"),
    "names of derivatives": (lambda: lax.nn_attention_back(
        X, X, X, X, X[..., 0], X, X[..., 0], scale=1.0, is_causal=False, window=None, extras=(), wrt=("mask",)),
        ValueError, "wrt must name operands that have derivatives"),
    "results of another attention": (lambda: lax.nn_attention_back(
        X, X, X, X[:, :2], X[..., 0], X, X[..., 0], scale=1.0, is_causal=False, window=None, extras=(), wrt=("key",)),
        TypeError, "out has another type"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_uses_are_told(case):
    assert_refused(*WRONG[case])
