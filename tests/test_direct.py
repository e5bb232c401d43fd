"""Functions that NumPy computes at once: where it is asked, and that nobody can tell but by the clock."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.plugin import directly, operators


class Counted:
    """A function, and how often NumPy's way to the same was taken."""

    def __init__(self, numpy_function: Any, function: Any, arrays: int = 1) -> None:
        self.count = 0

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            return numpy_function(*args, **kwargs)

        self.call = directly(counted, arrays)(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)


@pytest.fixture
def total() -> Counted:
    return Counted(np.sum, lambda a, axis=None, keepdims=False: operators.sum(cj.core.from_array_like(a), axis,
                                                                             keepdims=keepdims))


X = lax.add(np.arange(6.0).reshape(2, 3), 0.0)


def test_numpy_is_asked_from_the_second_call_on(total: Counted) -> None:
    assert [15.0, 15.0, 15.0] == [float(total(X)) for _ in range(3)]
    assert 2 == total.count


def test_each_type_and_each_static_argument_is_seen_once(total: Counted) -> None:
    for a in (X, lax.convert_element_type(X, np.int8), X[0]):
        for more in ({}, {"axis": 0}, {"axis": -1, "keepdims": True}):
            first, second = total(a, **more), total(a, **more)
            assert first.aval is second.aval
            np.testing.assert_array_equal(first, second)
    assert [3.0, 12.0] == total(X, 1).tolist() == total(X, 1).tolist()
    assert 10 == total.count


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


def test_several_operands_and_several_results() -> None:
    both = Counted(lambda x, y: (np.minimum(x, y), np.maximum(x, y)), lambda x, y: (lax.min(x, y), lax.max(x, y)), 2)
    assert both(X, 2.0)[0].aval is both(X, 2.0)[0].aval
    assert 1 == both.count
    assert type(both(X, 2.0)) is tuple
    join = Counted(np.concatenate, lambda xs: lax.concatenate(list(xs), 0))
    assert join([X, X]).tolist() == join([X, X]).tolist()
    assert (4, 3) == join((X, X)).shape
    assert 1 == join.count


def test_a_python_number_is_known_by_its_kind_not_its_value() -> None:
    power = Counted(np.power, lambda x, y: operators.pow(x, y), 2)
    assert [power(X, y).tolist() for y in (2, 3, 2.0)] == [(np.asarray(X) ** y).tolist() for y in (2, 3, 2.0)]
    assert 1 == power.count


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


def test_it_has_the_name_signature_and_docstring_of_the_function() -> None:
    @directly(np.sum)
    def summed(values: Any, axis: int | None = None) -> Any:
        """The sum."""
        return operators.sum(values, axis)

    import inspect
    assert ("summed", "The sum.", ["values", "axis"]) == (
        summed.__name__, summed.__doc__, [*inspect.signature(summed).parameters])
    assert 15.0 == summed(values=X) == summed(values=X)
