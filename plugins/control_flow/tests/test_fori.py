"""`fori_loop`: a scan between known bounds, a while loop between others; the index; and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import corejax as cj
from corejax import lax
from corejax.core import aval_of
from corejax.ir import typecheck

X = np.array([0.3, -0.7, 1.1])


def names(jaxpr):
    return [eqn.primitive.name for eqn in jaxpr.eqns]


def by_hand(lower, upper, body, val):
    for i in range(lower, upper):
        val = body(i, val)
    return val


def body(i, val):
    x, total = val
    return x * 1.1 + 0.1 * i, total + x.sum() * i


def total_of(lower, upper, x):
    return lax.fori_loop(lower, upper, body, (x, 0.0))


def assert_same(got, wanted):
    got, wanted = cj.tree.flatten(got), cj.tree.flatten(wanted)
    assert wanted[1] == got[1]
    for x, y in zip(got[0], wanted[0], strict=True):
        assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-12, atol=1e-14)


# Values

@pytest.mark.parametrize("bounds", [(0, 0), (0, 1), (0, 4), (2, 5), (-3, 2), (5, 2)])
def test_it_is_a_python_loop_over_a_range(bounds):
    wanted = by_hand(*bounds, body, (X, 0.0))
    assert_same(total_of(*bounds, X), wanted)
    assert_same(cj.jit(total_of, static_argnums=(0, 1))(*bounds, X), wanted)
    assert_same(cj.jit(total_of)(*bounds, X), wanted)
    assert_same(cj.jit(total_of, static_argnums=0)(*bounds, X), wanted)


def test_between_known_bounds_it_is_a_scan_and_else_a_while_loop():
    assert ["scan"] == names(cj.make_jaxpr(lambda x: total_of(0, 4, x))(X).jaxpr)
    assert ["scan"] == names(cj.make_jaxpr(lambda x: total_of(np.int8(0), cj.device_put(np.int8(4)), x))(X).jaxpr)
    for closed in (cj.make_jaxpr(lambda n, x: total_of(0, n, x))(4, X), cj.make_jaxpr(total_of)(0, 4, X)):
        typecheck(closed.jaxpr)
        (loop,) = closed.jaxpr.eqns
        assert "while_loop" == loop.primitive.name
        assert ["lt"] == names(loop.params["cond_jaxpr"])


def test_bounds_need_not_be_carried():
    (loop,) = cj.make_jaxpr(lambda n, x: total_of(0, n, x))(4, X).jaxpr.eqns
    assert 3 == len(loop.outvars)


def test_the_body_is_traced_once_however_long_the_loop_is():
    calls = []

    def count(i, n):
        calls.append(1)
        return n + i

    assert sum(range(100_000)) == lax.fori_loop(0, 100_000, count, 0)
    assert 1 == len(calls)
    assert sum(range(100_000)) == cj.jit(lambda n: lax.fori_loop(0, n, count, 0))(100_000)
    assert 2 == len(calls)


# The index

@pytest.mark.parametrize(("lower", "upper", "known", "traced"), [
    (0, 3, "~i64[]", "~i64[]"), (np.int32(0), np.int32(3), "~i64[]", "i32[]"), (0, np.int32(3), "~i64[]", "i32[]"),
    (np.int32(0), 3, "~i64[]", "i32[]"), (np.uint8(0), np.uint8(3), "~i64[]", "u8[]")])
def test_the_type_of_the_index(lower, upper, known, traced):
    def index_of(call):
        seen = []
        call(lambda lower, upper: lax.fori_loop(lower, upper, lambda i, val: (seen.append(str(aval_of(i))), val)[1], 1.0
                                                ))(lower, upper)
        return seen

    assert [known] == index_of(lambda f: f)
    assert [traced] == index_of(cj.jit)


def test_one_traced_bound_and_one_python_integer_meet():
    def f(n):
        return lax.fori_loop(1, n, lambda i, val: val * i, 1)

    for dtype in (np.int8, np.int32, np.int64):
        assert 24 == cj.jit(f)(dtype(5))


def test_a_weak_index_does_not_change_the_dtype_of_what_is_computed():
    out = cj.jit(lambda n, x: lax.fori_loop(0, n, lambda i, x: x * i + 1, x))(3, np.float32(2.0))
    assert (np.float32, 5.0) == (out.dtype, out)


def test_a_python_scalar_takes_the_dtype_that_the_loop_computes():
    out = lax.fori_loop(0, 3, lambda i, val: val + np.float32(0.5), 0)
    assert (np.float32, 1.5) == (out.dtype, out)


def test_counting_up_to_the_greatest_integer_ends():
    assert 27 == cj.jit(lambda n: lax.fori_loop(np.int8(100), n, lambda i, k: k + 1, 0))(np.int8(127))


# Derivatives

def test_bounds_stay_known_under_transformations_of_values():
    def power(x, n):
        return lax.fori_loop(0, n, lambda i, val: val * x, 1.0)

    assert 12.0 == cj.grad(power)(2.0, 3)
    assert [12.0, 27.0] == cj.vmap(cj.grad(lambda x: power(x, 3)))(np.array([2.0, 3.0])).tolist()
    assert 12.0 == cj.jit(cj.grad(power), static_argnums=1)(2.0, 3)


def test_between_computed_bounds_it_has_forward_mode_only():
    def power(x, n):
        return lax.fori_loop(0, n, lambda i, val: val * x, 1.0)

    assert 12.0 == cj.jit(lambda x, n: cj.jvp(lambda x: power(x, n), (x,), (1.0,))[1])(2.0, 3)
    with pytest.raises(NotImplementedError, match="fori_loop between Python integers"):
        cj.jit(cj.grad(power))(2.0, 3)


def test_indices_of_arrays_are_differentiated_through():
    def f(xs):
        return lax.fori_loop(0, 3, lambda i, acc: acc * 0.5 + lax.sin(xs[i]), 0.0)

    wanted = np.cos(X) * np.array([0.25, 0.5, 1.0])
    assert_allclose(np.asarray(cj.grad(f)(X)), wanted, rtol=1e-12)


# Batching

def test_it_maps_over_bounds():
    ns = np.array([0, 3, 1, 5])
    got = cj.vmap(lambda n, x: lax.fori_loop(0, n, lambda i, v: v * 2.0 + i, x), in_axes=(0, None))(ns, X)
    assert_allclose(np.asarray(got), np.stack([by_hand(0, n, lambda i, v: v * 2.0 + i, X) for n in ns]), rtol=1e-12)
    got = cj.vmap(lambda m: lax.fori_loop(m, 4, lambda i, v: v + i, 0))(ns)
    assert [6, 3, 6, 0] == got.tolist()


# Unrolling

@pytest.mark.parametrize(("unroll", "calls"), [(1, 1), (2, 3), (3, 5), (8, 5), (True, 5), (False, 1), (None, 1)])
def test_unrolled_or_not_it_computes_the_same(unroll, calls):
    f = cj.jit(lambda x: lax.fori_loop(0, 5, lambda i, v: lax.sin(v) + i, x, unroll=unroll))
    assert_allclose(np.asarray(f(X)), by_hand(0, 5, lambda i, v: np.sin(v) + i, X), rtol=1e-12)
    assert calls == f.lower(X).as_text().count("call @")


@pytest.mark.parametrize("unroll", [1, False, None])
def test_a_loop_with_computed_bounds_may_be_told_not_to_unroll(unroll):
    assert 10 == cj.jit(lambda n: lax.fori_loop(0, n, lambda i, k: k + i, 0, unroll=unroll))(5)


# Wrong uses

@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: cj.jit(lambda n: lax.fori_loop(0, n, lambda i, k: k, 0, unroll=2))(5), ValueError, "computed bounds"),
    (lambda: lax.fori_loop(0, 3, lambda i, k: k, 0, unroll=-1), ValueError, "unroll is negative"),
    (lambda: lax.fori_loop(0, 3, lambda i, k: k, 0, unroll=1.5), TypeError, "unroll must be an integer"),
    (lambda: lax.fori_loop(0, 3, 1.0, 0), TypeError, "fori_loop: the body must be a function"),
    (lambda: lax.fori_loop(0, True, lambda i, k: k, 0), TypeError, "upper must be a single integer"),
    (lambda: lax.fori_loop("0", 3, lambda i, k: k, 0), TypeError, "lower is a str"),
    (lambda: lax.fori_loop(0j, 3.0, lambda i, k: k, 0), TypeError, r"lower must be a single integer(.|\n)*0j"),
    (lambda: lax.fori_loop(0, 3.0, lambda i, k: k, 0), TypeError, "the bounds differ in dtype"),
    (lambda: lax.fori_loop(0, 3, lambda i, k: (k, k), 0), TypeError, r"init_val(.|\n)*a tuple of 2"),
    (lambda: lax.fori_loop(0, 3, lambda i, v: {**v, "b": i + 0.5}, {"a": 1.0, "b": np.int32(0)}), TypeError,
     r"~f64\[\] for init_val\['b'\](.|\n)*i32\[\] for init_val\['b'\]"),
    (lambda: cj.jit(lambda n: lax.fori_loop(np.int32(0), n, lambda i, k: k, 0))(np.int64(3)), TypeError,
     r"differ in dtype(.|\n)*i32\[\] and i64\[\]"),
    (lambda: lax.fori_loop(np.int8(0), 300, lambda i, k: k, 0), None, ""),
    (lambda: cj.jit(lambda n: lax.fori_loop(n, 300, lambda i, k: k, 0))(np.int8(0)), OverflowError, "300"),
])
def test_wrong_arguments_are_refused_by_name(call, error, words):
    if error is None:
        call()
    else:
        with pytest.raises(error, match=words):
            call()


def test_bounds_may_be_floats():
    for f in (lambda n: lax.fori_loop(0.5, n, lambda i, c: c + i, 0.0), cj.jit(
            lambda n: lax.fori_loop(0.5, n, lambda i, c: c + i, 0.0))):
        assert 0.5 + 1.5 + 2.5 == f(3.0)
    assert (12.0, 13.0) == cj.jvp(lambda x: lax.fori_loop(0.0, 3.0, lambda i, c: c * x + i, 1.0), (2.0,), (1.0,))


def test_known_float_bounds_that_are_whole_numbers_count_as_integers():
    for lower, upper in ((0.0, 3.0), (np.float32(0), np.float32(3)), (np.float64(0), cj.device_put(3.0))):
        total = lax.fori_loop(lower, upper, lambda i, c: c + i, 0)
        assert (3, np.int64) == (total.item(), total.dtype)
    rows = lax.sin(np.arange(4.0))
    assert rows[:3].sum() == lax.fori_loop(0.0, 3.0, lambda i, c: c + rows[i], 0.0)
    assert 12.0 == cj.grad(lambda x: lax.fori_loop(0.0, 3.0, lambda i, c: c * x, 1.0))(2.0)


def test_flags_and_sizes_may_be_those_of_numpy():
    x = np.arange(4.0)
    for options in ({"length": np.int64(4)}, {"length": np.array(4)}, {"reverse": np.bool_(False)},
                    {"unroll": np.int32(2)}, {"unroll": np.bool_(True)}):
        assert 6.0 == lax.scan(lambda c, x: (c + x, None), 0.0, x, **options)[0]
    for unroll in (np.bool_(True), np.int64(2)):
        assert 6 == lax.fori_loop(np.int8(0), np.int8(4), lambda i, c: c + i, 0, unroll=unroll)
    assert 2 == lax.switch(np.uint8(1), [lambda: 1, lambda: 2])
