"""NumPy's functions of traced values give what NumPy gives, under every transformation, with derivatives."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxError, CorejaxTypeError

V = np.array([0.3, -1.2, 0.8, 0.05])
W = np.array([1.5, 0.25, -2.0, 0.75])
P = np.array([0.3, 1.2, 0.8, 2.5])
U = np.array([0.3, -0.2, 0.8, 0.1])
M = np.linspace(-1.0, 2.0, 12).reshape(3, 4) ** 2 - 0.7
S = np.arange(9.0).reshape(3, 3) / 4 - 0.9
T = np.linspace(-2.0, 1.0, 24).reshape(2, 3, 4)
SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 1.0])

#: Functions of one traced array, with the array. Those with derivatives are differentiated too.
SMOOTH = {
    **{name: (getattr(np, name), U) for name in (
        "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arctanh", "cbrt", "exp",
        "exp2",
        "expm1", "log1p", "square", "negative", "positive", "deg2rad", "rad2deg", "degrees", "radians", "conj")},
    **{name: (getattr(np, name), P) for name in ("log", "log2", "log10", "sqrt", "reciprocal", "fabs", "absolute")},
    "power by an integer": (lambda x: np.power(x, 3), V), "power": (lambda x: np.power(x, W), P),
    "power of a scalar": (lambda x: np.power(2.0, x), V), "float_power": (lambda x: np.float_power(x, 2), P),
    "hypot": (lambda x: np.hypot(x, W), V), "arctan2": (lambda x: np.arctan2(x, W), V),
    "logaddexp": (lambda x: np.logaddexp(x, W), V), "maximum": (lambda x: np.maximum(x, W), V),
    "minimum": (lambda x: np.minimum(0.5, x), V), "fmax": (lambda x: np.fmax(x, W), V),
    "fmin": (lambda x: np.fmin(W, x), V), "fmod": (lambda x: np.fmod(x, W), U),
    "matmul": (lambda x: np.matmul(M, x), V), "vecdot": (lambda x: np.vecdot(M, x), V),
    "add.reduce": (np.add.reduce, M), "multiply.reduce": (lambda x: np.multiply.reduce(x, axis=1), M),
    "maximum.reduce": (lambda x: np.maximum.reduce(x, axis=None), M), "add.accumulate": (np.add.accumulate, M),
    "multiply.accumulate": (lambda x: np.multiply.accumulate(x, axis=1), M),
    "maximum.accumulate": (np.maximum.accumulate, M), "minimum.accumulate": (lambda x: np.minimum.accumulate(x, -1), M),
    "logaddexp.accumulate": (np.logaddexp.accumulate, V),
    "logaddexp.accumulate of integers": (lambda x: np.logaddexp.accumulate(np.where(x > 0, 2, 1), -1), M),
    "logaddexp.accumulate as floats": (lambda x: np.logaddexp.accumulate(x > 0, 0, float), M),
    "multiply.outer": (lambda x: np.multiply.outer(W, x), V), "subtract.outer": (lambda x: np.subtract.outer(x, S), V),
    "maximum.outer": (lambda x: np.maximum.outer(x, W), V),
    "where": (lambda x: np.where(W > 0, x, 2.0), V), "where broadcast": (lambda x: np.where(M > 0, x, M), V),
    "where by numbers": (lambda x: np.where([1, 0, 2, 0], x, x * x), V),
    "select": (lambda x: np.select([W > 1, W > 0], [x, x * 2], 3.0), V), "clip": (lambda x: np.clip(x, -0.5, 0.5), V),
    "clip by keywords": (lambda x: np.clip(x, a_min=None, a_max=W), V),
    "concatenate": (lambda x: np.concatenate([x, W, x]), V), "concat": (lambda x: np.concat((x, [1, 2])), V),
    "concatenate flat": (lambda x: np.concatenate([x, V], axis=None), M),
    "stack": (lambda x: np.stack([x, W], axis=-1), V), "stack of scalars": (lambda x: np.stack([x[0], 1.0, x[2]]), V),
    "vstack": (lambda x: np.vstack([x, W]), V), "hstack": (lambda x: np.hstack([x, W]), V),
    "hstack of matrices": (lambda x: np.hstack([x, M]), M), "dstack": (lambda x: np.dstack([x, W]), V),
    "column_stack": (lambda x: np.column_stack([x, W]), V), "append": (lambda x: np.append(x, [[1.0]]), V),
    "atleast_1d": (lambda x: np.atleast_1d(x.sum()), V), "atleast_2d": (np.atleast_2d, V),
    "atleast_3d": (np.atleast_3d, V), "atleast_3d of a matrix": (np.atleast_3d, M),
    "reshape": (lambda x: np.reshape(x, (2, -1)), V), "ravel": (np.ravel, M), "squeeze": (np.squeeze, M[None]),
    "transpose": (lambda x: np.transpose(x, axes=(2, 0, 1)), T), "swapaxes": (lambda x: np.swapaxes(x, 0, 2), T),
    "permute_dims": (lambda x: np.permute_dims(x, (1, 0, 2)), T), "matrix_transpose": (np.matrix_transpose, T),
    "moveaxis": (lambda x: np.moveaxis(x, 0, -1), T), "moveaxis of two": (lambda x: np.moveaxis(x, (0, 2), (1, 0)), T),
    "expand_dims": (lambda x: np.expand_dims(x, (0, -1)), V), "broadcast_to": (lambda x: np.broadcast_to(x, (2, 4)), V),
    "broadcast_arrays": (lambda x: np.broadcast_arrays(x, M)[0], V),
    "meshgrid": (lambda x: np.stack(np.meshgrid(x, W[:3])), V),
    "meshgrid ij": (lambda x: np.meshgrid(W, x, indexing="ij", sparse=True)[1], V),
    "flip": (np.flip, M), "flipud": (np.flipud, M), "fliplr": (np.fliplr, M), "roll": (lambda x: np.roll(x, -1), M),
    "roll of two": (lambda x: np.roll(x, (1, 5), (0, 1)), M), "split": (lambda x: np.split(x, 2)[1], V),
    "array_split": (lambda x: np.array_split(x, 3)[0], V), "split at": (lambda x: np.split(x, [1, 3], axis=1)[1], M),
    "hsplit": (lambda x: np.hsplit(x, 2)[0], M), "vsplit": (lambda x: np.vsplit(x, 3)[2], M),
    "rollaxis": (lambda x: np.rollaxis(x, 2, 1), T), "rollaxis from behind": (lambda x: np.rollaxis(x, 0, -1), T),
    "rollaxis to the end": (lambda x: np.rollaxis(x, 0, 3), T),
    "dsplit": (lambda x: np.dsplit(x, 2)[1], T), "trapezoid": (lambda x: np.trapezoid(x, dx=0.5), M),
    "trapezoid of places": (lambda x: np.trapezoid(M, x, axis=0), V[:3]),
    "tile": (lambda x: np.tile(x, (2, 1, 3)), M), "repeat": (lambda x: np.repeat(x, 2, axis=1), M),
    "repeat by counts": (lambda x: np.repeat(x, [0, 1, 3, 1]), V),
    "take": (lambda x: np.take(x, [2, 0, -1], axis=1), M),
    "take flat": (lambda x: np.take(x, [[5, 1]]), M), "diff": (lambda x: np.diff(x, n=2), M),
    "dot": (lambda x: np.dot(x, W), V), "dot on the right": (lambda x: np.dot(M, x), V),
    "dot of tensors": (lambda x: np.dot(x, M.T), T), "inner": (lambda x: np.inner(T, x), V),
    "vdot": (lambda x: np.vdot(M, x), M), "outer": (lambda x: np.outer(M, x), V),
    "tensordot": (lambda x: np.tensordot(x, M, axes=((1, 2), (0, 1))), T),
    "tensordot by a number": (lambda x: np.tensordot(M, x, 1), V), "kron": (lambda x: np.kron(x, S), M),
    "einsum": (lambda x: np.einsum("ij,j->i", M, x), V), "einsum implicit": (lambda x: np.einsum("ij,jk", S, x), M),
    "einsum of three": (lambda x: np.einsum("i,ij,j->j", W[:3], M, x), V),
    "einsum trace": (lambda x: np.einsum("ii", x), S), "einsum diagonal": (lambda x: np.einsum("ii->i", x), S),
    "einsum ellipsis": (lambda x: np.einsum("...j,kj->...k", x, M), T),
    "einsum batch": (lambda x: np.einsum("bij,bkj->bik", x, T), T), "einsum sum": (lambda x: np.einsum("ij->", x), M),
    "einsum of ones": (lambda x: np.einsum("ij,ij->ij", x, M[:1]), M), "einsum optimized": (
        lambda x: np.einsum("ij,kj->ik", x, M, optimize=True), M),
    "einsum of ones, ellipsis": (lambda x: np.einsum("...i,...i->...", x, M[:1]), T),
    "einsum diagonal of ones": (lambda x: np.einsum("ii,i->i", x[:1, :1], W), M),
    "einsum of sizes 1 alone": (lambda x: np.einsum("ij,kj->jki", x[:1, :1], np.ones((2, 1))), M),
    "tril of a vector": (np.tril, V), "triu of a vector": (lambda x: np.triu(x, -1), V),
    "average by its own weights": (lambda x: np.average(x, weights=x * x), V),
    "einsum transpose": (lambda x: np.einsum("ijk->kij", x), T), "trace": (lambda x: np.trace(x, offset=1), M),
    "diagonal": (lambda x: np.diagonal(x, -1), M), "diagonal of axes": (lambda x: np.diagonal(x, 0, 0, 2), T),
    "diag": (lambda x: np.diag(x, 1), V), "diag of a matrix": (np.diag, M), "tril": (np.tril, M),
    "triu": (lambda x: np.triu(x, 1), T), "linspace": (lambda x: np.linspace(x[0], x, 5), V),
    "linspace open": (lambda x: np.linspace(0, x[2], 4, endpoint=False), V),
    "real": (np.real, V), "copy": (np.copy, V), "nan_to_num": (np.nan_to_num, V), "sinc": (np.sinc, V + 0.1),
    "polyval": (lambda x: np.polyval(W, x), V), "polyval of coefficients": (lambda x: np.polyval(x, 1.5), V),
    "sum": (lambda x: np.sum(x, axis=0), M), "sum by keyword": (lambda x: np.sum(a=x, keepdims=True), M),
    "prod": (np.prod, P), "mean": (lambda x: np.mean(x, axis=(0, 2)), T), "var": (lambda x: np.var(x, ddof=1), M),
    "std": (lambda x: np.std(x, axis=1), M), "max": (lambda x: np.max(x, axis=1), M), "amax": (np.amax, M),
    "amin": (lambda x: np.amin(x, 0, keepdims=True), M), "min": (np.min, V), "ptp": (lambda x: np.ptp(x, axis=0), M),
    "cumsum": (lambda x: np.cumsum(x, axis=1), M), "cumprod": (lambda x: np.cumprod(x, axis=1), M),
    "nancumsum": (np.nancumsum, V), "nancumprod": (np.nancumprod, V),
    "cumulative_sum": (lambda x: np.cumulative_sum(x, axis=1, include_initial=True), M),
    "cumulative_prod": (lambda x: np.cumulative_prod(x, include_initial=True), V),
    "average": (lambda x: np.average(x, axis=1), M),
    "average by weights": (lambda x: np.average(x, axis=1, weights=P), M),
    "sum where": (lambda x: np.sum(x, where=M > 0), M), "nansum": (np.nansum, V), "nanmean": (np.nanmean, V),
    "norm": (np.linalg.norm, V + 2.0), "norm fro": (np.linalg.norm, M), "norm rows": (
        lambda x: np.linalg.norm(x, axis=1), M), "norm 1": (lambda x: np.linalg.norm(x, 1), W),
    "norm inf": (lambda x: np.linalg.norm(x, np.inf), W), "norm 3": (lambda x: np.linalg.norm(x, 3), P),
    "norm of a matrix 1": (lambda x: np.linalg.norm(x, 1), M),
    "norm of a matrix inf": (lambda x: np.linalg.norm(x, np.inf, keepdims=True), M + 0.01),
    "vector_norm": (lambda x: np.linalg.vector_norm(x, axis=0, ord=2), M + 2.0),
    "matrix_norm": (np.linalg.matrix_norm, T), "linalg.outer": (lambda x: np.linalg.outer(x, W), V),
    "linalg.trace": (np.linalg.trace, S), "linalg.vecdot": (lambda x: np.linalg.vecdot(x, M, axis=0), M),
    "ndarray + x": (lambda x: W + x, V), "ndarray - x": (lambda x: M - x, V), "ndarray * x": (lambda x: W * x, V),
    "ndarray / x": (lambda x: W / x, P), "ndarray ** x": (lambda x: P ** x, V), "ndarray @ x": (lambda x: M @ x, V),
    "np.float64 * x": (lambda x: np.float64(2) * x, V), "x / np.float64": (lambda x: x / np.float64(3), V),
    "np.float64 ** x": (lambda x: np.float64(2) ** x, V), "divmod": (lambda x: np.stack(divmod(W, x)), P + 0.1),
    "ndarray % x": (lambda x: W % x, P + 0.1),
}
if hasattr(np, "matvec"):
    SMOOTH |= {"matvec": (lambda x: np.matvec(T, x), V), "vecmat": (lambda x: np.vecmat(x, T), V[:3])}

#: The same for functions without derivatives, or at points where they have none.
OTHERS = {
    **{f"{name} of {x.dtype}": (getattr(np, name), x) for name in ("isnan", "isfinite", "isinf", "logical_not", "sign",
                                                                   "floor", "ceil", "trunc", "rint", "square", "fabs")
       for x in (SPECIAL, np.arange(3), np.arange(3, dtype=np.uint8)) if (name, x.dtype.kind) not in (("fabs", "u"),)},
    **{name: ((lambda f: lambda x: f(x, W))(getattr(np, name)), V) for name in (
        "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or",
        "logical_xor", "floor_divide")},
    **{f"reflected {name}": ((lambda f: lambda x: f(W, x))(getattr(np, name)), P) for name in (
        "less", "less_equal", "greater", "greater_equal", "subtract", "true_divide", "remainder", "floor_divide")},
    **{f"{name} of integers": ((lambda f: lambda x: f(x, np.array([1, 2, 3])))(getattr(np, name)), np.array([6, 5, 4]))
       for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "fmod", "power", "maximum",
                    "fmin", "add", "remainder", "arctan2", "hypot")},
    **{f"{name}.reduce": (getattr(np, name).reduce, x) for name in ("bitwise_and", "bitwise_or", "bitwise_xor",
                                                                    "logical_xor")
       for x in (np.array([[6, 3], [5, 0], [12, 1]]),)},
    "maximum.accumulate of booleans": (np.maximum.accumulate, np.array([False, True, False])),
    "invert": (np.invert, np.array([1, -5])), "fmod by zero": (lambda x: np.fmod(x, 0), np.array([6, -5])),
    **{f"{name} of {dtype}": (getattr(np, name), np.array([0, 1], dtype)) for name in ("sin", "exp", "sqrt", "log1p")
       for dtype in (np.int64, np.int32, np.int8, np.uint8, np.float32, np.float16, bool)},
    "logaddexp of infinities": (lambda x: np.logaddexp(x, np.array([-np.inf, np.inf, 1.0])),
                                np.array([-np.inf, np.inf, -np.inf])),
    "hypot of special values": (lambda x: np.hypot(x, SPECIAL[::-1]), SPECIAL),
    "maximum of nan": (lambda x: np.maximum(x, 0.5), SPECIAL), "fmax of nan": (lambda x: np.fmax(0.5, x), SPECIAL),
    "argmax": (lambda x: np.argmax(x, axis=1), M), "argmin": (np.argmin, M), "any": (np.any, M > 1), "all": (
        lambda x: np.all(x, axis=0), M > 0), "count_nonzero": (np.count_nonzero, V), "around": (
        lambda x: np.around(x, 1), V), "round": (lambda x: np.round(x, decimals=1), V), "fix": (np.fix, V * 3),
    "isclose": (lambda x: np.isclose(x, [0.3, np.nan, 0.8, 1e-9]), V), "allclose": (lambda x: np.allclose(x, V), V),
    "isclose nan": (lambda x: np.isclose(x, SPECIAL, equal_nan=True), SPECIAL),
    "array_equal": (lambda x: np.array_equal(x, V), V), "array_equal nan": (
        lambda x: np.array_equal(SPECIAL, x, equal_nan=True), SPECIAL),
    "nan_to_num of infinities": (lambda x: np.nan_to_num(x, nan=np.inf, posinf=2.0), SPECIAL),
    "linspace of integers": (lambda x: np.linspace(x[1], 0.0, 4, dtype=int), V * 2),
    "isposinf": (np.isposinf, SPECIAL), "isneginf": (np.isneginf, SPECIAL), "nan_to_num": (np.nan_to_num, SPECIAL),
    "zeros_like": (np.zeros_like, M), "ones_like": (lambda x: np.ones_like(x, dtype=int), M),
    "full_like": (lambda x: np.full_like(x, 2.7), np.arange(3)), "empty_like": (lambda x: np.empty_like(x) * 0, M),
    "zeros_like of a shape": (lambda x: np.zeros_like(x, shape=(2, 2)), V), "imag": (np.imag, V),
    "iscomplex": (np.iscomplex, V), "angle": (np.angle, W), "angle in degrees": (lambda z: np.angle(z, deg=True),
                                                                                  np.array([1 + 1j, -2j])),
    "conj of complex": (np.conj, np.array([1 + 2j])), "abs of complex": (np.abs, np.array([3 + 4j])),
    "vdot of complex": (lambda z: np.vdot(z, z * 1j), np.array([1 + 2j, 3.0])),
    "norm of complex": (np.linalg.norm, np.array([1 + 2j, 3.0])), "real of complex": (np.real, np.array([1 + 2j])),
    "exp of complex": (np.exp, np.array([1 + 2j])), "isfinite of complex": (np.isfinite, np.array([1 + 2j, np.inf])),
    "sum of int8": (np.sum, np.array([100, 100], np.int8)), "diff of booleans": (np.diff, np.array([True, False])),
    "where of integers": (lambda x: np.where(x > 1, x, 0), np.arange(3, dtype=np.int16)),
    "stack of dtypes": (lambda x: np.stack([x, np.arange(3)]), np.ones(3, np.float32)),
    "norm 0": (lambda x: np.linalg.norm(x, 0), V), "add.reduce of int8": (np.add.reduce, np.array([100, 100], np.int8)),
    "tril of booleans": (np.tril, S > 0), "triu of int8": (np.triu, np.ones((2, 3), np.int8)),
    "einsum of booleans": (lambda x: np.einsum("ij,ij->j", x, M > 0), M > 1),
    "einsum of booleans alone": (lambda x: np.einsum("ij->i", x), M > 1),
    "average of uint8": (lambda x: np.average(x, weights=x), np.array([0, 200, 255], np.uint8)),
    "var of too few": (lambda x: np.var(x, axis=0, ddof=4), M), "var of nothing": (
        lambda x: np.var(x, axis=0, ddof=1), np.zeros((0, 2))),
    "split at places beyond": (lambda x: np.stack([part.sum() for part in np.split(x, [3, 2, 9])]), V),
    "split from behind": (lambda x: np.split(x, [1, -1], axis=-1)[1], M), "diff of too few": (
        lambda x: np.diff(x, n=5), V), "diff of nothing": (np.diff, np.zeros((2, 0))),
    "logical_or.reduce": (lambda x: np.logical_or.reduce(x, axis=1), M > 1),
    "float32 + x": (lambda x: np.float32(2) + x, np.ones(2, np.float16)),
    "ndarray < x": (lambda x: W < x, V), "ndarray == x": (lambda x: W == x, V), "ndarray // x": (lambda x: W // x, P),
    "np.float64 < x": (lambda x: np.float64(0.2) < x, V), "ndarray & x": (lambda x: np.array([6, 3]) & x,
                                                                           np.array([5, 1])),
    "ndarray << x": (lambda x: np.array([6, 3]) << x, np.array([5, 1])),
}
CASES = {f"smooth {name}": case for name, case in SMOOTH.items()} | OTHERS

#: An integer with an inexact number, or narrow integers alone: dtypes by the kernel's promotion, not NumPy's.
OWN_DTYPES = ("stack of dtypes", "float32 + x", "average of uint8")


@pytest.mark.sample(150)
@pytest.mark.filterwarnings("ignore:Degrees of freedom")
@pytest.mark.parametrize("name", CASES)
def test_values_are_numpys(name):
    function, x = CASES[name]
    with np.errstate(all="ignore"):
        wanted = np.asarray(function(x))
    for transformed in (cj.jit(function), lambda x: cj.vmap(function)(x[None])[0],
                        lambda x: cj.jvp(function, (x,), (np.ones(x.shape, cj.float0) if x.dtype.kind in "biu" else
                                                          np.ones_like(x),))[0]):
        got = transformed(x)
        if x.dtype.kind in "biu" and x.dtype.itemsize < 8 and wanted.dtype.kind == "f":
            assert got.dtype in (np.float32, np.float64, wanted.dtype)  # jax's dtypes, NumPy's if nothing is traced
        elif name not in OWN_DTYPES:
            assert wanted.dtype == got.dtype
        assert wanted.shape == got.shape
        single = got.dtype.itemsize <= 4 and got.dtype.kind in "fc"
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=2e-3 if np.float16 in (got.dtype, wanted.dtype) else
                                   1e-6 if single else 1e-13, atol=1e-15)


@pytest.mark.sample(80)
@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_agree_with_differences(name):
    function, x = SMOOTH[name]
    direction = np.cos(np.arange(x.size) * 1.7 + 0.4).reshape(x.shape)
    step = 1e-6
    wanted = (np.asarray(function(x + step * direction)) - np.asarray(function(x - step * direction))) / (2 * step)
    if name == "clip":  # the points are none of its kinks, and neither are they of the others'
        assert not np.any(np.abs(x) == 0.5)
    got = cj.jvp(function, (x,), (direction,))[1]
    np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-7, atol=2e-8)
    weights = np.sin(np.arange(wanted.size) + 1.0).reshape(wanted.shape)
    wanted = (weights * wanted).sum()
    for grad in (cj.grad(lambda x: (function(x) * weights).sum()), cj.jit(cj.grad(
            lambda x: (function(x) * weights).sum()))):
        np.testing.assert_allclose((np.asarray(grad(x)) * direction).sum(), wanted, rtol=1e-7, atol=2e-7)


def test_sinc_has_all_its_derivatives_at_zero_and_beside_it():
    near = np.array([0.0, 1e-9, -1e-5, 0.1499, 0.1501])
    second = cj.vmap(cj.grad(cj.grad(np.sinc)))(near)
    series = [sum((-1) ** n * np.pi ** (2 * n) * 2 * n * (2 * n - 1) * x ** (2 * n - 2) / math.factorial(2 * n + 1)
                  for n in range(1, 15)) for x in near]
    np.testing.assert_allclose(np.asarray(second), series, rtol=1e-11)
    fourth = cj.grad(cj.grad(cj.grad(cj.grad(np.sinc))))(0.0)
    np.testing.assert_allclose(np.pi ** 4 / 5, float(fourth), rtol=1e-13)
    np.testing.assert_allclose(np.asarray(cj.jit(np.sinc)(near)), np.sinc(near), rtol=1e-15)


def test_the_largest_bfloat16_replaces_infinity():
    x = np.array([np.inf, np.nan, -np.inf], ml_dtypes.bfloat16)
    largest = float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)
    assert [largest, 0.0, -largest] == np.asarray(cj.jit(np.nan_to_num)(x)).astype(float).tolist()


def test_the_functions_of_types_need_no_value():
    seen = []

    def look(x):
        seen.append((np.shape(x), np.ndim(x), np.size(x), np.size(x, 0), np.result_type(x, np.float64),
                     np.iscomplexobj(x), np.isrealobj(x), np.can_cast(x, np.float64), np.common_type(x)))
        return x.sum()

    x = np.ones((2, 3), np.float32)
    cj.jit(look)(x)
    cj.grad(look)(x)
    cj.vmap(look)(x[None])
    assert [((2, 3), 2, 6, 2, np.float64, False, True, True, np.float32)] * 3 == seen


NESTED = {
    "jit of grad": lambda f: cj.jit(cj.grad(f)), "grad of jit": lambda f: cj.grad(cj.jit(f)),
    "vmap of grad": lambda f: lambda x: cj.vmap(cj.grad(f))(x[None])[0],
    "grad of vmap": lambda f: cj.grad(lambda x: cj.vmap(f)(x[None])[0]),
    "linearize": lambda f: lambda x: cj.vmap(cj.linearize(f, x)[1])(np.eye(x.size)),
    "grad of scan": lambda f: cj.grad(lambda x: lax.scan(lambda c, _: (c + f(x), None), 0.0, None, length=2)[0] / 2.0),
    "grad of cond": lambda f: cj.grad(lambda x: cj.jit(lambda p, x: lax.cond(p, f, lambda x: x.sum(), x))(True, x)),
    "grad of checkpoint": lambda f: cj.grad(cj.checkpoint(f)),
}


@pytest.mark.parametrize("nesting", NESTED)
def test_numpys_functions_work_under_transformations_of_any_depth(nesting):
    def loss(x):
        rows = np.stack([np.sin(x) * W, np.where(x > 0, x, np.exp(x))])
        return np.sum(np.square(rows) / (1.0 + np.linalg.norm(x)), axis=None) + np.mean(W @ np.outer(W, x))

    eps = 1e-6
    wanted = [(loss(V + eps * e) - loss(V - eps * e)) / (2 * eps) for e in np.eye(4)]
    np.testing.assert_allclose(np.asarray(NESTED[nesting](loss)(V)), wanted, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name, function", [
    ("logaddexp", lambda x: np.logaddexp(x, [0.0, -0.5, 1.0])), ("hypot", lambda x: np.hypot(x, [1.0, -2.0, 0.5])),
    ("arctan2", lambda x: np.arctan2(x, [1.0, -2.0, 0.5])), ("sinc", np.sinc), ("exp2", np.exp2),
    ("norm", lambda x: np.linalg.norm(x + 2.0)), ("var", np.var), ("einsum", lambda x: np.einsum("i,j,i", x, x, x)),
])
@pytest.mark.parametrize("x", [np.array([0.2, 0.7, 1.4]), np.array([1.0, 2.0, -0.5]), np.array([0.0, -0.5, 1.0])])
def test_second_derivatives_agree_with_differences(name, function, x):
    """The operands of logaddexp and hypot, or their sizes, are equal at some of these points."""
    if name == "sinc":
        x = x + 0.3  # at 0 its parts are chosen by a condition
    direction, step = np.array([0.8, -0.4, 1.3]), 1e-5
    slope = cj.grad(lambda x: np.sum(function(x)))
    wanted = (np.asarray(slope(x + step * direction)) - np.asarray(slope(x - step * direction))) / (2 * step)
    np.testing.assert_allclose(np.asarray(cj.jvp(slope, (x,), (direction,))[1]), wanted, rtol=1e-7, atol=1e-8)


def test_the_derivative_of_hypot_at_the_origin_is_zero():
    assert (0.0, 0.0) == tuple(map(float, cj.grad(np.hypot, argnums=(0, 1))(0.0, 0.0)))


def test_arrays_like_a_traced_value():
    seen = []

    def look(x):
        seen.append([np.zeros(2, like=x), np.arange(3, like=x), np.full((), 2.0, like=x)])
        return np.array([x[0], 2.0 * x[1]], like=x).sum() + np.asarray(x, dtype=np.float32, like=x).sum()

    assert [2.0, 3.0, 1.0, 1.0] == cj.grad(look)(V).tolist()
    assert [cj.Array] * 3 == [type(x) for x in seen[0]]


@pytest.mark.parametrize("call", [np.unique, np.nonzero, np.where, np.argwhere, np.flatnonzero])
@pytest.mark.parametrize("transformation", [cj.jit, cj.vmap])
def test_sizes_that_depend_on_unknown_values_are_refused(transformation, call):
    with pytest.raises(CorejaxError, match="size="):
        transformation(lambda x: call(x))(V[None])


def test_a_linear_function_of_numpys_is_transposed():
    assert W.tolist() == cj.linear_transpose(lambda x: np.sum(W * np.roll(np.roll(x, 1), -1)), V)(1.0)[0].tolist()


def test_scalars_of_numpys_are_added_to_in_place():
    def loss(x):
        total = np.float64(1.0)
        total += x[0]
        total *= np.float32(2.0)
        return total

    assert [2.0, 0.0, 0.0, 0.0] == cj.grad(loss)(V).tolist()


def test_plain_arrays_stay_numpys():
    x = cj.device_put(V)
    assert isinstance(np.sin(x), np.ndarray) and isinstance(np.stack([x, x]), np.ndarray)
    assert type(x + V) is type(V + x) is cj.Array
    assert not hasattr(cj.Array, "__array_ufunc__") and not hasattr(cj.Array, "__array_function__")


def test_under_a_gradient_values_without_a_derivative_stay_numpys():
    def loss(x):
        assert isinstance(np.sin(lax.stop_gradient(x)), np.ndarray)
        return (x * np.sin(lax.stop_gradient(x))).sum()

    np.testing.assert_allclose(cj.grad(loss)(V), np.sin(V))


@pytest.mark.parametrize("written, call", [
    ("inv", lambda x: np.linalg.inv(x)), ("np.add.at", lambda x: np.add.at(W, [0], x)),
    ("np.nditer", lambda x: np.nditer(x)), ("np.savez_compressed", lambda x: np.savez_compressed("x.npz", x)),
    ("np.add.at", lambda x: np.add.at(x, [0], 1.0)), ("np.copyto", lambda x: np.copyto(W, x)),
    ("np.put", lambda x: np.put(W, [0], x)), ("np.fill_diagonal", lambda x: np.fill_diagonal(S, x[0])),
    ("np.asarray", lambda x: np.asarray(x)),
    ("np.sin", lambda x: np.sin(x, out=np.zeros(4))), ("np.stack", lambda x: np.stack([x, x], out=np.zeros((2, 4)))),
    ("sin", lambda x: np.sin(x, where=W > 0)), ("add", lambda x: np.add(x, W, where=W > 0)),
    ("np.add", lambda x: np.add(x, W, dtype=np.float32)),
    ("a += x", lambda x: in_place(np.ones(4), x)), ("np.divmod", lambda x: divmod("a", x) or np.divmod(x, "a")),
    ("np.full", lambda x: np.full(4, x)), ("einsum", lambda x: np.einsum("i->ij", x)),
    ("einsum", lambda x: np.einsum("i->ii", x)), ("split", lambda x: np.split(x, 2, axis=5)[0]),
    ("select", lambda x: np.select([W > 0], [x, x])), ("meshgrid", lambda x: np.meshgrid(x, x, indexing="yx")[0]),
    ("split", lambda x: np.dsplit(x, 2)), ("tril", lambda x: np.tril(x[0])),
    ("einsum", lambda x: np.einsum("...->", x)), ("einsum", lambda x: np.einsum("i,i", x, V[:3])),
])
@pytest.mark.parametrize("transformation", [cj.jit, cj.grad, cj.vmap])
def test_what_has_no_counterpart_is_refused_by_name(transformation, written, call):
    x = V[None] if transformation is cj.vmap else V
    with pytest.raises((CorejaxError, TypeError)) as caught:
        transformation(lambda x: np.sum(call(x)))(x)
    if written not in ("np.divmod", "np.full", "np.nditer"):
        assert isinstance(caught.value, CorejaxError)
        assert written in str(caught.value).replace("x.std", "np.std")
        assert "test_numpy_functions.py" in caught.value.where


def in_place(a, x):
    a += x
    return a


def test_adding_in_place_says_what_to_write():
    with pytest.raises(CorejaxTypeError, match=r"(?s)a \+= x.*write a = a \+ x"):
        cj.grad(lambda x: in_place(np.ones(4), x).sum())(V)


class Foreign:
    """A class with protocols of its own."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return "theirs"

    def __array_function__(self, function, types, args, kwargs):
        return "theirs"


def test_other_classes_with_these_protocols_have_their_say():
    seen = []

    def look(x):
        seen.extend([np.add(x, Foreign()), np.add(Foreign(), x), np.concatenate([x, Foreign()])])
        return x.sum()

    cj.jit(look)(V)
    assert ["theirs"] * 3 == seen


def test_subclasses_of_ndarray_leave_it_to_the_traced_value():
    class Mine(np.ndarray):
        pass

    assert (V + W).tolist() == cj.jit(lambda x: W.view(Mine) + x)(V).tolist()
    assert np.stack([V, W]).tolist() == cj.jit(lambda x: np.stack([x, W.view(Mine)]))(V).tolist()
