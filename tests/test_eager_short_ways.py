"""Evaluation has a short way for what it met before: it gives what the long way gives, errors included."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import Array, EvalTrace, ShapedArray, StagingTrace, Trace, context
from corejax.errors import CorejaxError, CorejaxOverflowError, CorejaxTypeError, LeakedTracerError, RuleError
from corejax.packs import families
from corejax.plugin import define, extend, factors, hookimpl, not_differentiable, provide

DTYPES = ["bool", "int8", "uint8", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]


def twice(fun: Callable[..., Any], *args: Any) -> Any:
    """What a function gives the second time, which is what it gave the first time."""
    cj.clear_caches()
    first, second = fun(*args), fun(*args)
    assert (first.aval, type(first)) == (second.aval, type(second))
    np.testing.assert_array_equal(np.asarray(first), np.asarray(second))
    assert not np.asarray(second).flags.writeable
    return second


def raised(fun: Callable[..., Any], *args: Any) -> list[str]:
    """The class and message of what a function raises, and what it got, three times over."""
    found = []
    for _ in range(3):
        with pytest.raises(CorejaxError) as caught:
            fun(*args)
        found.append(f"{type(caught.value).__name__}: {caught.value.message}; got {caught.value.got}")
    return found


def made(impl: Callable[..., Any], **options: Any) -> Any:
    """A function of one operand that evaluates by `impl`."""
    options = {"jvp": not_differentiable("it is a test's"), **options}
    return define(families.unary("short", impl, hlo="negate", dtypes="iufc", doc="A test's.", **options))


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (2, 0)], ids=str)
@pytest.mark.parametrize("name", DTYPES)
def test_operators_and_functions_give_what_numpy_gives_the_first_time_and_the_second(name, shape) -> None:
    dtype = ShapedArray((), name).dtype
    x = np.array(np.arange(np.prod(shape, dtype=int)).reshape(shape) % 3 + 1).astype(dtype)
    y = np.array(x[..., ::-1] if shape else x).astype(dtype)
    a, b = lax.copy(x), lax.copy(y)
    for ours, theirs in ((lambda p, q: p + q, np.add), (lambda p, q: p * q, np.multiply),
                         (lambda p, q: p == q, np.equal)):
        found = twice(ours, a, b)
        expected = theirs(x, y)
        assert (expected.shape, expected.dtype, False) == (found.shape, found.dtype, found.weak_type)
        np.testing.assert_array_equal(expected, np.asarray(found))
    if name != "bool":
        found = twice(lax.neg, a)
        np.testing.assert_array_equal(np.negative(x), np.asarray(found))
        assert (dtype, shape) == (found.dtype, found.shape)


@pytest.mark.parametrize("x", [np.arange(3.0), np.float32(2), np.arange(3), np.array(2.0)], ids=repr)
def test_python_scalars_stay_weak_on_either_side_and_ndarrays_may_come_first(x) -> None:
    a = lax.copy(x)
    for fun in (lambda a: a + 2, lambda a: 2 + a, lambda a: 2 - a, lambda a: a - True):
        found = twice(fun, a)
        assert (a.dtype, False) == (found.dtype, found.weak_type)
        np.testing.assert_array_equal(np.asarray(fun(x)), np.asarray(found))
    assert ShapedArray((), a.dtype, True) is twice(lambda: families.weak_scalar(2, a.dtype) + 3).aval
    if x.shape:
        left = twice(lambda: x + a)
        assert type(left) is Array
        np.testing.assert_array_equal(x + x, np.asarray(left))


def test_number_that_does_not_fit_is_refused_each_time() -> None:
    x = lax.copy(np.arange(3, dtype=np.int8))
    assert 1 == len(set(raised(lambda: x + 300)))
    with pytest.raises(CorejaxOverflowError):
        x + 300


def test_operands_of_two_types_are_told_from_two_of_one_type() -> None:
    x, s = lax.copy(np.arange(3.0)), lax.copy(np.float64(2))
    for _ in range(3):
        assert [(3,), (3,), (3,), ()] == [(p + q).shape for p, q in ((x, x), (x, s), (s, x), (s, s))]
        assert 1 == len(set(raised(lambda: lax.add(x, lax.copy(np.arange(4.0))))))
        assert 1 == len(set(raised(lambda: lax.add(x, lax.copy(np.arange(3))))))


def test_wrong_number_of_operands_is_refused_after_the_right_one_too() -> None:
    x = lax.copy(np.arange(3.0))
    for function, wrong in ((lax.add, "bind_one"), (lax.sin, "bind_two")):
        operands = (x, x)[: 1 + (wrong == "bind_one")]
        function(*operands), function(*operands)
        bind = getattr(function.primitive, wrong)
        (message,) = set(raised(bind, *((x,) if wrong == "bind_one" else (x, x))))
        assert "operand" in message


@pytest.mark.parametrize("under", ["evaluation", "grad", "jvp", "vmap", "make_jaxpr"])
def test_missing_param_is_named_under_every_transformation(under) -> None:
    def fun(x: Any) -> Any:
        return lax.integer_pow.primitive.bind_one(x)

    x = np.arange(3.0)
    call = {"evaluation": lambda: fun(x), "grad": lambda: cj.grad(lambda x: fun(x).sum())(x),
            "jvp": lambda: cj.jvp(fun, (x,), (x,)), "vmap": lambda: cj.vmap(fun)(x),
            "make_jaxpr": lambda: cj.make_jaxpr(fun)(x)}[under]
    assert {"CorejaxTypeError"} == {message.partition(":")[0] for message in raised(call)}
    assert all("needs the param 'y'" in message for message in raised(call))


def test_no_result_shares_memory_with_an_ndarray_of_the_user() -> None:
    for value in (np.array(2.0), np.arange(3.0)):
        x = value.copy()
        a, same = lax.copy(x), made(lambda x: x)(x)
        total = lax.add(x, x)
        x[...] = -1
        for found in (a, same):
            np.testing.assert_array_equal(value, np.asarray(found))
        np.testing.assert_array_equal(2 * value, np.asarray(total))


def test_subclasses_of_ndarray_are_operands_and_never_results() -> None:
    x = np.arange(4.0).reshape(2, 2)
    for odd in (x.view(np.matrix), x.view(type("Mine", (np.ndarray,), {}))):
        found = twice(lax.mul, odd, odd)
        np.testing.assert_array_equal(x * x, np.asarray(found))
        assert np.ndarray is type(np.asarray(found))
    mine = made(lambda x: x.view(type("Mine", (np.ndarray,), {})))
    assert np.ndarray is type(np.asarray(twice(mine, lax.copy(x))))
    assert 1 == len(set(raised(made(lambda x: np.ma.masked_array(x)), lax.copy(x))))


def test_result_of_another_type_is_refused_though_earlier_ones_were_right() -> None:
    answers: list[Callable[[Any], Any]] = []
    fun = made(lambda x: answers.pop()(x))
    good = lambda x: -x
    for x in (lax.copy(np.arange(3.0)), lax.copy(np.float64(2))):
        for wrong in (lambda x: x.astype(np.float32), lambda x: x[..., None], lambda x: None, lambda x: [x],
                      lambda x: np.array(None, object)):
            answers[:] = [wrong, good, good]
            np.testing.assert_array_equal(-np.asarray(x), np.asarray(fun(x)))
            np.testing.assert_array_equal(-np.asarray(x), np.asarray(fun(x)))
            with pytest.raises(RuleError, match="short.impl"):
                fun(x)


def test_impl_that_writes_to_its_operand_is_named_each_time() -> None:
    def writes(x: Any) -> Any:
        x += 1
        return x

    for x in (np.arange(3.0), lax.copy(np.arange(3.0)), lax.copy(np.arange(3.0)) + 0.5):
        before = np.array(x)
        fun = made(writes)
        assert ["writes to its operands"] * 3 == [m.partition("): ")[2].partition(";")[0] for m in raised(fun, x)]
        np.testing.assert_array_equal(before, np.asarray(x))


def test_impl_that_fails_may_work_again() -> None:
    fails = []

    def impl(x: Any) -> Any:
        if fails:
            raise KeyError("no such thing")
        return -x

    fun, x = made(impl), lax.copy(np.arange(3.0))
    for fails[:] in ([], [1], [1], []):
        if fails:
            with pytest.raises(KeyError, match="no such thing"):
                fun(x)
        else:
            np.testing.assert_array_equal([0, -1, -2], np.asarray(fun(x)))


def test_impl_may_evaluate_primitives_itself() -> None:
    fun = made(lambda x: np.asarray(lax.sin(x) + lax.cos(x) * 2.0))
    for x in (np.arange(3.0), np.float64(2)):
        np.testing.assert_allclose(np.sin(x) + 2 * np.cos(x), np.asarray(twice(fun, lax.copy(x))))


def test_wrapper_around_an_impl_sees_every_call() -> None:
    seen = []

    class Watch:
        @hookimpl(wrapper=True)
        def impl(self, args: Any) -> Any:
            seen.append(len(args))
            out = yield
            return out

    fun = made(np.negative)
    extend(fun, Watch(), replace=True)
    x = lax.copy(np.arange(3.0))
    for _ in range(3):
        np.testing.assert_array_equal([0, -1, -2], np.asarray(fun(x)))
    assert [1, 1, 1] == seen


@pytest.mark.parametrize("mixed", [False, True], ids=["derived", "mixed in"])
@pytest.mark.parametrize("base", [EvalTrace, StagingTrace], ids=lambda kind: kind.__name__)
def test_trace_that_has_only_a_process_of_its_own_is_asked_for_everything(base, mixed) -> None:
    seen = []

    class Watch(Trace if mixed else base):
        def process(self, primitive: Any, args: Any, params: Any) -> Any:
            seen.append(primitive.name)
            return super().process(primitive, args, params)

    class Watching(*((Watch, base) if mixed else (Watch,))):
        pass

    trace = Watching() if base is EvalTrace else Watching(context.trace)
    x = lax.copy(np.arange(3.0)) if base is EvalTrace else trace.new_arg(ShapedArray((3,), np.float64))
    context.trace, before = trace, context.trace
    try:
        -lax.sin(x * 2.0 + x)
        seen.clear()
        -lax.sin(x * 2.0 + x)
    finally:
        context.trace = before
    assert ["mul", "add", "sin", "neg"] == list(dict.fromkeys(seen))


def test_floating_point_events_stay_quiet_and_the_callers_settings_stand() -> None:
    x = lax.copy(np.array([1e308, 0.0]))
    zero = lax.copy(np.float64(0))
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for _ in range(3):
            np.testing.assert_array_equal([np.inf, 0], np.asarray(x * 10.0))
            assert np.isnan(float(zero / zero)) and np.isinf(float(1.0 / zero))
        with pytest.raises(FloatingPointError):
            np.float64(1) / np.float64(0)


def test_arrays_on_a_device_and_deleted_ones_go_the_long_way() -> None:
    x = np.arange(3.0)
    host, device = lax.copy(x), cj.device_put(x)
    for _ in range(3):
        for total in (host + device, device + host, device + device):
            np.testing.assert_array_equal(x + x, np.asarray(total))
    gone = lax.copy(x)
    gone.delete()
    assert 1 == len(set(raised(lambda: gone + host))) and 1 == len(set(raised(lax.sin, gone)))


def test_threads_evaluate_side_by_side() -> None:
    x = np.linspace(0.1, 0.9, 50)
    wrong, start = [], threading.Barrier(6)

    def work(k: int) -> None:
        a = lax.copy(x + k)
        start.wait()
        for i in range(300):
            if i % 50 == 0 and k == 0:
                cj.clear_caches()
            found = np.asarray(a * a + a - 1.0)
            if not np.array_equal(found, (x + k) * (x + k) + (x + k) - 1.0):
                wrong.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == wrong


def test_role_that_is_replaced_for_a_while_is_asked_at_once() -> None:
    x = lax.copy(np.arange(3.0))
    x + x
    with provide({"operators.add": lambda x, y: "sum", "operators.neg": lambda x: "minus"}):
        assert ("sum", "minus") == (x + x, -x)
    np.testing.assert_array_equal([0, 2, 4], np.asarray(x + x))


# Gradients

def by_differences(fun: Callable[[Any], Any], x: np.ndarray) -> np.ndarray:
    """The gradient of a function of an array."""
    found = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[i] = 1e-6
        found[i] = (float(fun(x + step)) - float(fun(x - step))) / 2e-6
    return found


CHAINS = {
    "one operand twice": lambda x: (x * x - x / (x + 2.0)).sum(),
    "scalar beside array": lambda x: ((x.sum() * np.arange(1.0, 4.0)) + x * x.sum()).sum(),
    "array beside scalar": lambda x: (np.arange(1.0, 4.0) / x.sum() - lax.sin(x) * 2.0).sum(),
    "constant first": lambda x: (3.0 - x + 2.0 / x - (1.0 - x) ** 2).sum(),
    "value decides": lambda x: (x * 2.0 if x.sum() > 0 else x).sum(),
    "comparison": lambda x: lax.select(x > 1.0, x * x, lax.exp(-x)).sum(),
    "linear": lambda x: (-x + x.reshape((3, 1)).reshape((3,)) * 4.0).sum(),
    "extremes": lambda x: (lax.max(x, 1.1 - x) * lax.tanh(x)).sum(),
}


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("shape", [(3,), ()], ids=str)
def test_gradient_is_the_quotient_of_differences(name, shape) -> None:
    fun = CHAINS[name]
    x = np.array([0.6, 1.3, 2.1])
    if not shape:
        x, fun = np.array(0.6), lambda s: CHAINS[name](s * np.array([1.0, 2.0, 3.0]))
    expected = by_differences(fun, x)
    for found in (cj.grad(fun)(x), cj.grad(fun)(x), cj.grad(lambda x: cj.vjp(fun, x)[0])(x)):
        assert (x.dtype, x.shape) == (found.dtype, found.shape)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6, atol=1e-7)


def test_gradients_nest_and_close_over_each_others_values() -> None:
    def fun(x: Any) -> Any:
        return cj.grad(lambda y: lax.sin(y) * x * y + y * y * 3.0)(x * 2.0) * x

    x = 0.7
    u = 2 * x
    value = lambda x: (np.cos(2 * x) * 2 * x * x + np.sin(2 * x) * x + 12 * x) * x
    np.testing.assert_allclose(float(fun(x)), value(x))
    np.testing.assert_allclose(float(cj.grad(fun)(x)), (value(x + 1e-6) - value(x - 1e-6)) / 2e-6, rtol=1e-7)
    hessian = cj.grad(cj.grad(lambda x: lax.sin(x) * x))
    np.testing.assert_allclose(float(hessian(u)), 2 * np.cos(u) - u * np.sin(u), rtol=1e-12)


@pytest.mark.parametrize(("factor", "words"), [
    (lambda out, x: out.astype(np.float32), "got f32[3]"), (lambda out, x: "slope", "got str 'slope'"),
    (lambda out, x: np.ones(7), "got f64[7]")], ids=["dtype", "no array", "shape"])
def test_bad_factor_is_named_each_time(factor, words) -> None:
    fun = made(np.negative, jvp=factors(factor))
    x = lax.copy(np.arange(3.0))
    fun(x)
    for message in raised(cj.grad(lambda x: fun(x).sum()), x):
        assert message.startswith("RuleError: short.jvp") and words in message


def test_raw_factor_is_copied_and_a_factor_of_rank_0_spreads() -> None:
    raw = np.array([2.0, 3.0, 4.0])
    fun = made(lambda x: x * raw, jvp=factors(lambda out, x: raw))
    _, pull = cj.vjp(fun, lax.copy(np.ones(3)))
    expected = raw.copy()
    raw[:] = -1
    np.testing.assert_array_equal(expected, np.asarray(pull(np.ones(3))[0]))
    half = made(lambda x: x / 2, jvp=factors(lambda out, x: np.float64(0.5)))
    np.testing.assert_array_equal([0.5] * 3, np.asarray(cj.grad(lambda x: half(x).sum())(np.ones(3))))


def test_factor_that_keeps_a_traced_value_for_later_is_told_of() -> None:
    kept: list[Any] = []
    cj.grad(lambda x: (kept.append(x), x)[1])(1.0)
    with pytest.raises(LeakedTracerError):
        kept[0] + 1.0
    with pytest.raises(LeakedTracerError):
        lax.sin(kept[0])
    with pytest.raises(LeakedTracerError):
        lax.add(np.ones(()), kept[0])


def test_programs_show_one_operand_and_two_as_before() -> None:
    jaxpr = cj.make_jaxpr(lambda x, y: lax.sin(x) * y + 2.0)(1.0, np.ones(()))
    assert ["sin", "mul", "add"] == [eqn.primitive.name for eqn in jaxpr.jaxpr.eqns]
    assert {__file__} == {eqn.source[0].co_filename for eqn in jaxpr.jaxpr.eqns}
    assert 3 == len({id(eqn.params) for eqn in jaxpr.jaxpr.eqns})
    with pytest.raises(CorejaxTypeError, match="add: operand 1"):
        cj.make_jaxpr(lambda x: lax.add.primitive.bind_two(x, object()))(1.0)
