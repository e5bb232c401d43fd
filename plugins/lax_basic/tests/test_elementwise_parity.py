"""Elementwise primitives value by value against jax.lax, on awkward values of every dtype; only where jax is installed.

Two differences are meant. NumPy keeps subnormal numbers, which compiled programs flush to zero, so none are used here;
and which of max(0.0, -0.0) is returned is left open.
"""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

import corejax as cj
from corejax import lax

jax = pytest.importorskip("jax")
jlax = jax.lax

UNARY = ("neg sin cos tan tanh asin acos atan sinh cosh exp log log1p expm1 sqrt rsqrt logistic abs sign floor ceil "
         "round square bitwise_not real imag is_finite acosh asinh atanh cbrt exp2 clz population_count").split()
BINARY = ("add sub mul div rem atan2 pow max min eq ne lt le gt ge bitwise_and bitwise_or bitwise_xor shift_left "
          "shift_right_arithmetic shift_right_logical complex nextafter mulhi").split()
DTYPES = ["bool", "int8", "uint8", "int32", "uint64", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
          "complex128"]
#: What corejax takes and jax.lax doesn't, and the reverse.
BEYOND = {("pow", kind) for kind in "iu"}
MISSING = {(name, "c") for name in ("atan2", "max", "min")}
#: Where jax is too far off: it multiplies by log(2) in the narrow dtype. test_accuracy.py has the true values.
INACCURATE = {("exp2", "float16"), ("exp2", "bfloat16")}
TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 3e-6, "complex64": 1e-5, "float64": 1e-13,
             "complex128": 1e-12}


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, name) if name == "bfloat16" else name)


def values(name):
    dtype = dtype_of(name)
    if dtype.kind == "b":
        return np.array([True, False])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        small = [0, 1, 2, 3, 5, 7] + ([-1, -2, -3, -7] if dtype.kind == "i" else [])
        return np.array([*small, info.max, info.max - 1, info.min, info.min + 1], dtype)
    if dtype.kind == "c":
        parts = [0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 0.1]
        return np.array([complex(a, b) for a, b in itertools.product(parts, parts)], dtype)
    return np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, -3.7, 0.1, 30.0, -30.0, 1e-3, np.inf, -np.inf,
                     np.nan, 1e4, 1e30, -1e30]).astype(dtype)


def agree(got, wanted, signs=True):
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert (wanted.dtype, wanted.shape) == (got.dtype, got.shape)
    if wanted.dtype.kind in "biu":
        np.testing.assert_array_equal(got, wanted)
        return
    tolerance = TOLERANCE[wanted.dtype.name]
    if wanted.dtype.kind == "c":
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)
        return
    got, wanted = got.astype("float64"), wanted.astype("float64")
    tiny = 1e-37 if tolerance > 1e-10 else 1e-300
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tiny)
    if signs:
        zero = (got == 0) & (wanted == 0)
        np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(wanted[zero]))


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True), np.errstate(all="ignore"):
        yield


def operands(name, dtype):
    x = values(dtype)
    return (x,) if name in UNARY else (np.repeat(x, len(x)), np.tile(x, len(x)))


# One program for all dtypes: each by itself would be compiled twice, by jax and by corejax.
@pytest.mark.sample(30)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", UNARY + BINARY)
def test_values_agree_with_jax_and_what_it_refuses_is_refused(name):
    ours, theirs, taken = getattr(lax, name), getattr(jlax, name), {}
    for dtype in DTYPES:
        args, kind = operands(name, dtype), "f" if dtype == "bfloat16" else dtype_of(dtype).kind
        try:
            jax.eval_shape(theirs, *args)
        except TypeError:
            if (name, kind) not in BEYOND:
                with pytest.raises(TypeError, match="is not supported|is that narrow"):
                    ours(*args)
        else:
            if (name, kind) not in MISSING and (name, dtype) not in INACCURATE:
                taken[dtype] = args
    wanted = jax.jit(lambda taken: {dtype: theirs(*args) for dtype, args in taken.items()})(taken)
    compiled = cj.jit(lambda taken: {dtype: ours(*args) for dtype, args in taken.items()})(taken)
    for dtype, args in taken.items():
        agree(ours(*args), wanted[dtype], signs=name not in ("max", "min"))
        agree(compiled[dtype], wanted[dtype])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("old", DTYPES)
def test_conversions_agree_with_jax(old):
    x, news = values(old), [*DTYPES, "float8_e4m3fn", "float8_e5m2"]
    if x.dtype.kind == "f":
        x = np.concatenate([x, np.array([127.5, 128, 255.9, 256, -128.9, -129, 2.0**31, -2.0**31, 2.0**32, 2.0**63,
                                         1.85e19, 65504, 65520, 3.39e38]).astype(x.dtype)])
    real = x.real.astype(old) if dtype_of(old).kind == "c" else x

    def each(convert, dtype_of_new):
        # jax.lax looks at the real part only where it makes booleans; NumPy and corejax at the whole number
        return lambda x, real: {new: convert(real if new == "bool" else x, dtype_of_new(new)) for new in news}

    wanted = jax.jit(each(jlax.convert_element_type, lambda new: getattr(ml_dtypes, new, new)))(x, real)
    ours = each(lax.convert_element_type, lambda new: new)
    for found in (ours(x, real), cj.jit(ours)(x, real)):
        for new, got in found.items():
            assert np.asarray(wanted[new]).dtype == got.dtype
            np.testing.assert_array_equal(
                np.asarray(got).astype("complex128"), np.asarray(wanted[new]).astype("complex128"), err_msg=new)


DERIVATIVES = (
    "sin cos tan tanh asin acos atan sinh cosh exp log log1p expm1 sqrt rsqrt logistic abs sign floor ceil round "
    "square max min pow atan2 rem div mul add sub acosh asinh atanh cbrt exp2").split()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_agree_with_jax_also_at_ties_and_singular_points(name):
    x = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.5, 3.0])
    args = (x,)
    if name in BINARY:
        args = (np.repeat(x, len(x)), np.tile(x, len(x)))
    for i in range(len(args)):
        got = cj.grad(lambda *xs: getattr(lax, name)(*xs).sum(), argnums=i)(*args)
        wanted = jax.grad(lambda *xs: getattr(jlax, name)(*xs).sum(), argnums=i)(*args)
        if name == "acosh":  # jax has a derivative below 1, where there is no value
            wanted = np.where(x < 1, np.nan, wanted)
        np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=1e-10, err_msg=str(args))


def test_select_and_clamp_agree_with_jax():
    x, which = np.arange(4.0), np.array([0, 3, -1, 1], np.int32)
    agree(lax.select_n(which, x, -x, 2 * x), jlax.select_n(which, x, -x, 2 * x))
    crossed = (np.full(4, 2.0), x, np.full(4, 1.0))
    agree(lax.clamp(*crossed), jlax.clamp(*crossed))
    for bounds in ((0.5, 2.5), (1.0, 2.0)):
        args = (np.full(4, bounds[0]), x, np.full(4, bounds[1]))
        for i in range(3):
            dots = tuple(np.ones(4) if k == i else np.zeros(4) for k in range(3))
            agree(cj.jvp(lax.clamp, args, dots)[1], jax.jvp(jlax.clamp, args, dots)[1])


@pytest.mark.parametrize("y", [-3, -1, 0, 1, 2, 3, 5])
def test_integer_powers_agree_with_jax(y):
    x = np.array([0.0, -0.0, 1.5, -2.0, np.inf, np.nan])
    agree(lax.integer_pow(x, y), jlax.integer_pow(x, y))
    agree(cj.jit(lambda x: lax.integer_pow(x, y))(x), jlax.integer_pow(x, y))
    agree(cj.jvp(lambda x: lax.integer_pow(x, y), (x,), (np.ones(6),))[1],
          jax.jvp(lambda x: jlax.integer_pow(x, y), (x,), (np.ones(6),))[1])
