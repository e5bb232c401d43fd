"""Running results along an axis, linear recurrences and associative scans: values, special points, sizes, programs."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax import lax
from corejax.ir import count_eqns
from exhaustive import exhaustive_unless

UFUNCS = {"cumsum": np.add, "cumprod": np.multiply, "cummax": np.maximum, "cummin": np.minimum,
          "cumlogsumexp": np.logaddexp}
INF, NAN = np.inf, np.nan


def both_ways(fun, *args) -> list[np.ndarray]:
    """The result evaluated eagerly, and compiled, with NumPy's type."""
    eager, compiled = fun(*args), cj.jit(fun)(*args)
    assert (eager.shape, eager.dtype, eager.weak_type) == (compiled.shape, compiled.dtype, compiled.weak_type)
    return [np.asarray(eager), np.asarray(compiled)]


CASES = [(name, dtype, reverse) for name in UFUNCS for dtype in (np.float64, np.complex128, np.float32, np.int16)
         for reverse in (False, True) if name != "cumlogsumexp" or dtype in (np.float64, np.float32)]


@pytest.mark.parametrize("case", exhaustive_unless(
    lambda case: (case[1] is np.float64) == case[2] and case[1] is not np.float32, CASES), ids=str)
def test_running_results_agree_with_numpy_along_every_axis(case):
    name, dtype, reverse = case
    rng = np.random.default_rng(3)
    for shape in [(20,), (5, 3, 9), (1, 1), (0, 2)]:
        x = (rng.standard_normal(shape) * 2).astype(dtype)
        if np.dtype(dtype).kind == "c":
            x = x + 1j * rng.permutation(x.ravel()).reshape(shape)
        for axis in range(-1, len(shape)):
            flipped = np.flip(x, axis) if reverse else x
            wanted = UFUNCS[name].accumulate(flipped, axis, dtype)
            wanted = np.flip(wanted, axis) if reverse else wanted
            for got in both_ways(lambda x: getattr(lax, name)(x, axis, reverse), x):  # noqa: B023
                assert_allclose(got, wanted, rtol=1e-4 if dtype == np.float32 else 1e-11, strict=True)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
@pytest.mark.parametrize("name", UFUNCS)
def test_narrow_floats_accumulate_in_float32(name, dtype):
    x = (np.random.default_rng(0).random(50) * 0.2 + 0.9).astype(dtype)
    wanted = UFUNCS[name].accumulate(x.astype(np.float32)).astype(dtype)
    for got in both_ways(getattr(lax, name), x):
        assert got.dtype == dtype
        assert_allclose(got.astype(float), wanted.astype(float), rtol=2e-2 if dtype == ml_dtypes.bfloat16 else 2e-3)


@pytest.mark.parametrize(("name", "wanted"), [
    ("cummax", [1.0, 3.0, NAN, NAN]), ("cummin", [1.0, 1.0, NAN, NAN]), ("cumsum", [1.0, 4.0, NAN, NAN])])
@pytest.mark.parametrize("repeats", [1, 10])
def test_nan_stays(name, wanted, repeats):
    x = np.array([[1.0, 3.0, NAN, 0.0]] * repeats).T
    for got in both_ways(getattr(lax, name), x):
        assert_array_equal(got, np.array([wanted] * repeats).T)


def test_sums_and_products_of_a_single_negative_zero_keep_its_sign():
    for x in (np.array([-0.0]), np.full((3, 2), -0.0), np.full((3, 20), -0.0)):
        for got in both_ways(lax.cumsum, x):
            assert np.signbit(got).all()


@pytest.mark.parametrize("zeros", [(), (0,), (2,), (1, 3), (0, 1, 2, 3)])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_products_differentiate_at_zeros_to_second_order(zeros, reverse):
    x = np.array([1.5, -2.0, 0.5, 3.0])
    x[[*zeros]] = 0.0
    order = range(4)[::-1] if reverse else range(4)
    upto = {i: [*order][:k + 1] for k, i in enumerate(order)}

    def others(i, *without):
        return np.prod([x[j] for j in upto[i] if j not in without]) if set(without) <= {*upto[i]} else 0.0

    def product(x):
        return lax.cumprod(x, 0, reverse)

    first = [[others(i, j) for j in range(4)] for i in range(4)]
    second = [[[0.0 if j == k else others(i, j, k) for k in range(4)] for j in range(4)] for i in range(4)]
    for jacobian in (cj.jacfwd, cj.jacrev):
        assert_allclose(jacobian(product)(x), first, rtol=1e-12)
        assert_allclose(jacobian(cj.jacrev(product))(x), second, rtol=1e-12)


def test_the_logarithm_of_sums_and_its_derivative_are_stable():
    x = np.array([-INF, 1000.0, -INF, 1001.0, -1000.0])
    for got in both_ways(lax.cumlogsumexp, x):
        assert_allclose(got, [-INF, 1000.0, 1000.0, 1001.3132616875182, 1001.3132616875182])
    e = 1 / (1 + np.e)
    assert_allclose(cj.jacrev(lax.cumlogsumexp)(x), [
        [1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 1, 0, 0, 0], [0, e, 0, 1 - e, 0], [0, e, 0, 1 - e, 0]], atol=1e-12)
    assert_allclose(cj.jacfwd(lax.cumlogsumexp)(np.array([INF, 1.0])), [[1, 0], [1, 0]])
    hessian = cj.hessian(lambda x: lax.cumlogsumexp(x)[-1])(x)
    assert_allclose(hessian[1], [0, e * (1 - e), 0, -e * (1 - e), 0], atol=1e-12)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", [(1,), (6,), (3, 20), (2, 3, 9), (0, 2)])
def test_recurrences_are_what_they_say(shape, reverse):
    rng = np.random.default_rng(5)
    a, x = rng.standard_normal((2, *shape))
    for axis in range(len(shape)):
        wanted = np.zeros(shape)
        rows, factors, terms = [np.moveaxis(y, axis, 0) for y in (wanted, a, x)]
        order = [*range(shape[axis])][::-1 if reverse else 1]
        for k, i in enumerate(order):
            rows[i] = terms[i] + (factors[i] * rows[order[k - 1]] if k else 0)
        for got in both_ways(lambda a, x: lax.linear_recurrence(a, x, axis, reverse), a, x):  # noqa: B023
            assert_allclose(got, wanted, rtol=1e-12)


@pytest.mark.parametrize("of", ["cumsum", "cumprod", "cummax", "cumlogsumexp", "linear_recurrence"])
def test_windows_give_what_loops_give(of, monkeypatch):
    """On other platforms than the CPU, the whole axis is one window."""
    monkeypatch.setattr("corejax_reductions.cumulative._platform", lambda ctx: "another")
    rng = np.random.default_rng(8)
    for shape, axis, reverse, dtype in [((3, 20), 1, True, np.float64), ((4, 2, 9), 0, False, np.float16)]:
        xs = rng.standard_normal((2 if of == "linear_recurrence" else 1, *shape)).astype(dtype)

        def windows(*xs):
            return getattr(lax, of)(*xs, axis, reverse)  # noqa: B023

        assert_allclose(np.asarray(cj.jit(windows)(*xs)), np.asarray(windows(*xs)), atol=1e-12,
                        rtol=1e-10 if dtype is np.float64 else 1e-2)


def program_of(fun, size) -> int:
    return count_eqns(cj.make_jaxpr(fun)(np.ones(size)).jaxpr)


@pytest.mark.parametrize("name", UFUNCS)
def test_programs_do_not_grow_with_the_axis(name):
    function = getattr(lax, name)
    texts = [len(cj.jit(function).lower(np.ones(n)).as_text()) for n in (100, 100_000)]
    assert abs(texts[0] - texts[1]) < 100
    if name not in ("cummax", "cummin"):  # their derivatives at ties are those of a tree
        grad = cj.grad(lambda x: function(x).sum())
        assert program_of(grad, 10) == program_of(grad, 10_000)


# associative_scan

@pytest.mark.sample(8)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 6, 7, 8, 13, 32, 33])
def test_a_scan_keeps_the_order_of_a_function_that_does_not_commute(size, reverse):
    m = np.random.default_rng(0).standard_normal((2, size, 3, 3))

    def product(a, b):
        return np.matmul(a, b)

    got = lax.associative_scan(lambda a, b: {"m": product(a["m"], b["m"])}, {"m": cj.device_put(m)}, reverse, axis=1)
    wanted = m.copy()
    order = [*range(size)][::-1 if reverse else 1]
    for before, i in zip(order, order[1:], strict=False):
        wanted[:, i] = wanted[:, before] @ wanted[:, i]
    assert_allclose(got["m"], wanted, rtol=1e-9, atol=1e-12, strict=False)


def test_a_scan_is_of_all_dtypes_and_keeps_them_whole():
    flags = np.array([True, False, True, True, False])
    assert lax.associative_scan(lax.bitwise_xor, flags).tolist() == [True, True, False, True, True]
    got = lax.associative_scan(lambda a, b: b, np.array([-0.0, 0.0, NAN, -0.0, -INF]))
    assert np.signbit(got).tolist() == [True, False, False, True, True]
    pair = lax.associative_scan(lambda a, b: (a[0] | b[0], a[1] + b[1]), (np.arange(3), np.ones(3, np.float16)))
    assert [(x.dtype, x.tolist()) for x in pair] == [(np.int64, [0, 1, 3]), (np.float16, [1.0, 2.0, 3.0])]


def test_a_scan_takes_a_function_that_closes_over_what_is_transformed():
    def total(s):
        return lax.associative_scan(lambda a, b: a + s * b, np.ones(5))[-1]
    assert_allclose(cj.grad(total)(1.0), cj.jit(cj.grad(total))(1.0))
    assert cj.vmap(total)(np.array([0.0, 1.0])).tolist() == [1.0, 5.0]


def test_the_program_of_a_scan_has_some_equations_for_each_doubling():
    sizes = [program_of(lambda x: lax.associative_scan(lax.add, x), 2 ** k) for k in (4, 5, 6, 7)]
    assert len({*np.diff(sizes)}) == 1
    assert np.diff(sizes)[0] <= 12


def test_derivatives_of_a_scan_go_through_the_function():
    x = np.array([1.0, 0.0, 3.0, 2.0])

    def of_scan(x: Any) -> Any:
        return lax.associative_scan(lax.mul, x)
    assert_allclose(cj.jacrev(of_scan)(x), cj.jacfwd(lax.cumprod)(x))
    assert_allclose(cj.jacfwd(cj.jacrev(of_scan))(x), cj.jacrev(cj.jacfwd(lax.cumprod))(x))


@pytest.mark.parametrize("name, combine", [
    ("condition", lambda x, y: lax.cond(x < y, lambda: x + y, lambda: y + x)),
    ("choice", lambda x, y: lax.switch((x > y).astype(np.int32), [lambda: x + y, lambda: y + x])),
    ("loop", lambda x, y: lax.while_loop(lambda pair: pair[1] < 1, lambda pair: (pair[0] + y, pair[1] + 1), (x, 0))[0]),
    ("call", cj.jit(lambda x, y: lax.switch((x > y).astype(np.int32), [lambda: x + y, lambda: y + x]))),
], ids=lambda value: value if isinstance(value, str) else "")
def test_a_reduction_may_be_by_a_function_with_programs_inside(name, combine):
    x = np.random.default_rng(1).standard_normal((3, 4))
    for axes in [(0,), (0, 1)]:
        for got in both_ways(lambda x: lax.reduce(x, 0.0, combine, axes), x):  # noqa: B023
            assert_allclose(got, x.sum(axes), rtol=1e-12)
    mapped = cj.jit(cj.vmap(lambda x: lax.reduce(x, 0.0, combine, (0,))))
    assert_allclose(np.asarray(mapped(x)), x.sum(1), rtol=1e-12)


@pytest.mark.parametrize("start", [300, -1])
def test_a_start_that_the_operand_cannot_hold_is_refused(start):
    with pytest.raises(OverflowError, match="doesn't fit ~u8"):
        lax.reduce(np.ones(3, np.uint8), start, lax.add, (0,))


def test_a_start_for_elements_that_are_no_numbers_is_refused():
    tokens = lax.broadcast_in_dim(lax.create_token(), (3,), ())
    with pytest.raises(TypeError, match="initial values must have the dtypes of the operands"):
        lax.reduce(tokens, 0, lambda x, y: x, (0,))
