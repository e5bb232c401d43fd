"""Functions that NumPy computes at once: where it is asked, and that nobody can tell but by the clock."""

from __future__ import annotations

import threading
import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import ShapedArray
from corejax.plugin import define, directly, hookimpl, operators


class Counted:
    """A function, and how often NumPy's way to the same was taken."""

    def __init__(self, numpy_function: Any, function: Any, arrays: int = 1, sequences: int = 0) -> None:
        self.count = 0

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            return numpy_function(*args, **kwargs)

        self.counting = counted
        self.call = directly(counted, arrays, sequences=sequences)(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)


@pytest.fixture
def total() -> Counted:
    return Counted(np.sum, lambda a, axis=None, keepdims=False: operators.sum(cj.core.from_array_like(a), axis,
                                                                             keepdims=keepdims))


X = lax.add(np.arange(6.0).reshape(2, 3), 0.0)


def test_numpy_is_asked_from_the_first_call_on(total: Counted) -> None:
    assert [15.0, 15.0, 15.0] == [float(total(X)) for _ in range(3)]
    assert 3 == total.count


def test_the_first_call_gives_what_later_ones_give() -> None:
    rounded = Counted(lambda x: np.exp2(x * 0.1), lambda x: lax.exp(lax.mul(x, 0.1 * np.log(2.0))))
    before = [rounded.call(X).tolist() for _ in range(2)]
    cj.clear_caches()
    after = [rounded.call(X).tolist() for _ in range(2)]
    assert [np.exp2(np.asarray(X) * 0.1).tolist()] * 4 == before + after
    assert before[0] != cj.jit(rounded)(X).tolist()
    assert 4 == rounded.count


def test_each_type_and_each_static_argument_is_seen_once(total: Counted) -> None:
    for a in (X, lax.convert_element_type(X, np.int8), X[0]):
        for more in ({}, {"axis": 0}, {"axis": -1, "keepdims": True}):
            first, second = total(a, **more), total(a, **more)
            assert first.aval is second.aval
            np.testing.assert_array_equal(first, second)
    assert [3.0, 12.0] == total(X, 1).tolist() == total(X, 1).tolist()
    assert 20 == total.count


@pytest.mark.parametrize("operand", [np.ones(3), [1.0, 2.0], 2.0, True, np.float32(2), cj.device_put(np.ones(3))])
def test_any_operand_gives_the_same_twice(total: Counted, operand: Any) -> None:
    first, second = total(operand), total(operand)
    assert first.aval is second.aval
    assert float(first) == float(second)


def test_traced_values_take_the_general_way(total: Counted) -> None:
    total(X), total(X)
    before = total.count
    assert 15.0 == cj.jit(total)(X)
    np.testing.assert_array_equal(np.ones((2, 3)), cj.grad(total)(X))
    np.testing.assert_array_equal([3.0, 12.0], cj.vmap(total)(X))
    assert "reduce_sum" in str(cj.make_jaxpr(lambda: total(X))())
    assert before == total.count


def test_a_result_of_another_type_is_not_taken() -> None:
    mean = Counted(lambda a: np.float32(np.mean(a)), lambda a: operators.mean(a))
    assert mean(X).dtype == mean(X).dtype == np.float64
    assert 1 == mean.count


def test_numpy_is_not_asked_again_where_it_gave_another_type() -> None:
    mean = Counted(lambda a: np.float32(np.mean(a)), lambda a: operators.mean(a))
    assert [2.5] * 4 == [float(mean(X)) for _ in range(4)]
    assert 1 == mean.count
    narrow = lax.convert_element_type(X, np.float32)
    assert [2.5] * 3 == [float(mean(narrow)) for _ in range(3)]
    assert 4 == mean.count


def test_sizes_of_results_may_depend_on_values_if_that_is_said() -> None:
    def places(x: Any) -> Any:
        return tuple([cj.core.from_array_like(p) for p in np.asarray(x).nonzero()])
    fixed, free = Counted(np.nonzero, places), Counted(np.nonzero, places)
    free.call = directly(free.counting, sizes_vary=True)(places)
    for function in (fixed, free):
        found = [function(lax.gt(X, bound)) for bound in (2.0, 4.0, -1.0, 9.0)]
        assert [3, 1, 6, 0] == [len(rows) for rows, _ in found]
        assert all([type(x) is cj.Array and x.aval is cj.core.ShapedArray(x.shape, np.int64)
                    for pair in found for x in pair])
    assert (4, 4) == (fixed.count, free.count)


def test_which_way_is_taken_does_not_depend_on_what_was_called_before() -> None:
    """Even of a function whose results have sizes that vary, though that wasn't said."""
    def both(x: Any) -> Any:
        return cj.core.from_array_like(np.asarray(x)[np.asarray(x) > 1.0] * 2.0)
    for order in ((X, X[0], X[1]), (X[1], X[0], X)):
        doubled = Counted(lambda x: (x + np.float64(1e-16))[x > 1.0] * 2.0, both)
        assert [[4.0, 6.0, 8.0, 10.0], [4.0], [6.0, 8.0, 10.0]] == [
            doubled(x).tolist() for x in sorted(order, key=lambda x: (-x.ndim, float(x.ravel()[0])))]
        assert 3 == doubled.count


def test_what_numpy_refuses_is_reported_by_the_general_function(total: Counted) -> None:
    total(X, 0)
    for _ in range(2):
        with pytest.raises(IndexError, match="axis 7 is out of bounds"):
            total(X, 7)
        with pytest.raises(TypeError, match="got an unexpected keyword"):
            total(X, colour=1)


def test_types_follow_the_setting_of_default_bits(total: Counted) -> None:
    flags = lax.gt(X, 2.0)
    assert np.int64 == total(flags).dtype == total(flags).dtype
    with cj.config(default_bits=32):
        assert np.int32 == total(flags).dtype == total(flags).dtype
    assert np.int64 == total(flags).dtype


def test_results_are_read_only_and_of_rank_zero_are_scalars() -> None:
    flip = Counted(np.flip, lambda a: lax.rev(a, (0,)))
    flip(X)
    out = flip(X)
    assert not np.asarray(out).flags.writeable
    assert X.tolist() == flip(out).tolist()


def test_results_in_column_major_order_are_put_in_order() -> None:
    @directly(lambda x: x.T * 2.0)
    def turned(x: Any) -> Any:
        return lax.transpose(x, (1, 0)) * 2.0

    class Turned:
        """The same, of a primitive."""
        name = "turned"

        @hookimpl
        def impl(self, args: Any) -> Any:
            return args[0].T * 2.0

        @hookimpl
        def abstract_eval(self, avals: Any) -> Any:
            (x,) = avals
            return ShapedArray(x.shape[::-1], x.dtype)

    x = np.random.default_rng(0).normal(size=(40, 30))
    in_order = lax.copy((x.T * 2.0).copy())
    for found in (turned(x), define(Turned())(x)):
        assert found._host.flags.c_contiguous
        assert in_order.sum().item() == found.sum().item()


def test_several_operands_and_several_results() -> None:
    both = Counted(lambda x, y: (np.minimum(x, y), np.maximum(x, y)), lambda x, y: (lax.min(x, y), lax.max(x, y)), 2)
    assert both(X, 2.0)[0].aval is both(X, 2.0)[0].aval
    assert 2 == both.count
    assert type(both(X, 2.0)) is tuple
    join = Counted(np.concatenate, lambda xs: lax.concatenate(list(xs), 0), sequences=1)
    assert join([X, X]).tolist() == join([X, X]).tolist()
    assert (4, 3) == join((X, X)).shape
    assert 3 == join.count


class Pair(NamedTuple):
    """What a function returns."""

    least: Any
    largest: Any


@pytest.mark.parametrize("make", [tuple, list, Pair._make])
def test_several_results_are_in_what_the_function_returns(make: Any) -> None:
    ends = Counted(lambda x, y: [np.minimum(x, y), np.maximum(x, y)], lambda x, y: make([lax.min(x, y), lax.max(x, y)]),
                   2)
    first, second = ends(X, 2.0), ends(X, 2.0)
    assert type(first) is type(second)
    assert [x.tolist() for x in first] == [x.tolist() for x in second]
    assert 2 == ends.count


def test_none_among_operands_is_passed_on() -> None:
    limited = Counted(lambda x, low, high: np.clip(x, low, high), lambda x, low, high: operators.clip(x, low, high), 3)
    assert limited(X, None, 2.0).tolist() == limited(X, None, 2.0).tolist()
    assert 2 == limited.count


def test_integers_that_a_dtype_cannot_hold_are_other_operands() -> None:
    small = lax.convert_element_type(X, np.uint8)
    less = Counted(np.less, lambda x, y: lax.lt(x, y), 2)
    assert [True] * 3 == [bool(less(small, 200)[0, 0]) for _ in range(3)]
    for too_much in (256, -1):
        with pytest.raises(OverflowError, match=f"{too_much} doesn't fit"):
            less(small, too_much)


def test_a_python_number_is_known_by_its_kind_not_its_value() -> None:
    power = Counted(np.power, lambda x, y: operators.pow(x, y), 2)
    assert [power(X, y).tolist() for y in (2, 3, 2.0)] == [(np.asarray(X) ** y).tolist() for y in (2, 3, 2.0)]
    assert 3 == power.count


def test_neither_numpys_warnings_nor_its_settings_come_through() -> None:
    root = Counted(np.sqrt, lambda x: lax.sqrt(x))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            assert np.isnan(root(lax.neg(X))[0, 1])
    with np.errstate(all="raise"):
        root(lax.neg(X))


def test_calls_within_calls_and_from_many_threads() -> None:
    inner = Counted(np.sum, lambda a: operators.sum(a))
    outer = Counted(lambda a: np.asarray(inner(X)), lambda a: inner(a))
    assert 15.0 == outer(X) == outer(X) == outer(X)
    found: list[float] = []
    threads = [threading.Thread(target=lambda: found.extend([float(inner(X)) for _ in range(200)])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {15.0} == set(found)
    assert 800 == len(found)


# Operators, which NumPy brings together

_SIGNED = [0.0, -0.0, 1.0, -1.0, 0.5, 7.5, -2.0, np.inf, -np.inf, np.nan, 1e300, 1e16]


def _both_ways(monkeypatch: pytest.MonkeyPatch, function: Any, *operands: Any) -> tuple[list[Any], list[Any]]:
    """The results by the general function, and by NumPy's."""
    from corejax.eager import direct

    def found() -> list[Any]:
        out = function(*operands)
        return list(out) if type(out) is tuple else [out]
    with monkeypatch.context() as patch:
        patch.setattr(direct, "EvalTrace", type(None))
        general = found()
    found()
    return general, found()


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "eq", "lt", "ge"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int32", "uint8", "bool"])
def test_operators_give_the_same_bits_either_way(monkeypatch: pytest.MonkeyPatch, name: str, dtype: str) -> None:
    operate = getattr(operators, name)
    if name == "sub" and dtype == "bool":
        pytest.skip("booleans have no difference")
    with np.errstate(all="ignore"):
        values = np.array(_SIGNED if "float" in dtype else [0, 1, 2, 3, 7, 250]).astype(dtype)
    x = cj.core.from_array_like(values)
    for y in (lax.reshape(x, (values.size, 1)), 2, 0.5, True, cj.core.from_array_like(np.array([3, -2, 0])[:, None])):
        general, direct = _both_ways(monkeypatch, operate, x, y)
        for one, other in zip(general, direct, strict=True):
            assert one.aval is other.aval
            np.testing.assert_array_equal(one, other)
            if one.dtype.kind == "f":
                here = ~np.isnan(np.asarray(one))
                np.testing.assert_array_equal(np.signbit(one)[here], np.signbit(other)[here])


def test_large_quotients_are_rounded_down_as_they_are_without_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    y = rng.uniform(0.1, 10.0, 500)
    operands = [cj.core.from_array_like(part) for part in (y * rng.uniform(2.0**50, 2.0**53, 500), y)]
    general, direct = _both_ways(monkeypatch, operators.floordiv, *operands)
    np.testing.assert_array_equal(general[0], direct[0])


def test_integers_divided_by_zero_are_xlas() -> None:
    x, zero = (cj.core.from_array_like(np.array(part)) for part in ([7, 0, -7], [0, 0, 0]))
    for _ in range(2):
        assert cj.jit(operators.floordiv)(x, zero).tolist() == operators.floordiv(x, zero).tolist()
        assert cj.jit(operators.mod)(x, zero).tolist() == operators.mod(x, zero).tolist()


def test_it_has_the_name_signature_and_docstring_of_the_function() -> None:
    @directly(np.sum)
    def summed(values: Any, axis: int | None = None) -> Any:
        """The sum."""
        return operators.sum(values, axis)

    import inspect
    assert ("summed", "The sum.", ["values", "axis"]) == (
        summed.__name__, summed.__doc__, [*inspect.signature(summed).parameters])
    assert 15.0 == summed(values=X) == summed(values=X)
