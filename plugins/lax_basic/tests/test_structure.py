"""Shapes, creation, joining and slicing as functions: what they compute, how they take arguments, what they refuse."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax import lax
from corejax.base import _jaxlib
from corejax.errors import (
    CorejaxAxisError,
    CorejaxError,
    CorejaxIndexError,
    CorejaxOverflowError,
    CorejaxTypeError,
    CorejaxValueError,
)
from value_checks import check_value

RNG = np.random.default_rng(0)


def arr(*shape: int) -> Any:
    return RNG.standard_normal(shape)


def test_shapes_are_changed_as_numpy_does_it() -> None:
    x, y = arr(1, 3, 1), arr(2, 3, 4)
    check_value(lambda y: lax.broadcast_in_dim(y, (2, 2, 3, 4), (1, 2, 3)), [y], np.broadcast_to(y, (2, 2, 3, 4)))
    check_value(lambda y: lax.broadcast(y, (2,)), [y], np.broadcast_to(y, (2, 2, 3, 4)))
    check_value(lambda y: lax.reshape(y, (4, 6)), [y], y.reshape(4, 6))
    check_value(lambda y: lax.reshape(y, (8, 3), (0, 2, 1)), [y], y.transpose(0, 2, 1).reshape(8, 3))
    check_value(lambda y: lax.collapse(y, 1, 3), [y], y.reshape(2, 12))
    check_value(lambda x: lax.squeeze(x, (0, -1)), [x], np.squeeze(x))
    check_value(lambda x: lax.squeeze(x, 2), [x], np.squeeze(x, 2))
    check_value(lambda y: lax.transpose(y, (2, 0, 1)), [y], y.transpose(2, 0, 1))
    check_value(lambda y: lax.rev(y, (0, 2)), [y], np.flip(y, (0, 2)))


def test_a_vector_is_put_in_place_before_it_is_repeated() -> None:
    weights, x = np.linspace(0.1, 1.0, 32), arr(1000, 32)

    def weighted(x: Any) -> Any:
        return weights * (lax.exp(x) / 2.5)

    lowered = cj.jit(cj.vmap(weighted)).lower(x)
    text, compiled = lowered.as_text(), lowered.compile()
    assert "(tensor<32xf64>) -> tensor<1x32xf64>" in text and "(tensor<1x32xf64>) -> tensor<1000x32xf64>" in text
    if _jaxlib.version.startswith("0.10."):  # of those releases it is known what they make of it
        assert 1 == compiled.as_text().count(" multiply(")
    assert_allclose(compiled(x), weights * (np.exp(x) / 2.5), rtol=1e-14)


@pytest.mark.parametrize(("sizes", "dims"), [((), (0,)), ((3,), (0, -1)), ((2, 3), (1,)), ((0,), (1,)), ((2,), ())])
def test_expand_dims(sizes: Any, dims: Any) -> None:
    x = arr(*sizes)
    check_value(lambda x: lax.expand_dims(x, dims), [x], np.expand_dims(x, dims))


@pytest.mark.parametrize("dtype", [np.int8, np.uint32, np.float32, np.float64, np.complex64, ml_dtypes.bfloat16])
def test_iota(dtype: Any) -> None:
    check_value(lambda: lax.iota(dtype, 5), [], np.arange(5).astype(dtype))
    check_value(lambda: lax.broadcasted_iota(dtype, (2, 3), 0), [],
                np.broadcast_to(np.arange(2)[:, None], (2, 3)).astype(dtype))
    check_value(lambda: lax.broadcasted_iota(dtype, (2, 3), -1), [],
                np.broadcast_to(np.arange(3), (2, 3)).astype(dtype))


def test_iota_wraps_round_in_a_narrow_dtype() -> None:
    check_value(lambda: lax.iota(np.int8, 200), [], np.arange(200).astype(np.int8))


def test_full_has_the_type_it_is_asked_for() -> None:
    check_value(lambda: lax.full((2, 3), 7, np.float32), [], np.full((2, 3), 7, np.float32))
    check_value(lambda: lax.full((2,), 1, bool), [], np.full((2,), True))
    check_value(lambda: lax.full((), 2.5), [], np.float64(2.5))
    assert lax.full((2,), 1.0).aval.weak_type
    assert not lax.full((2,), 1.0, np.float64).aval.weak_type
    check_value(lambda v: lax.full((2, 3), v), [np.float64(3.0)], np.full((2, 3), 3.0))


def test_full_like_follows_its_model() -> None:
    x = np.zeros((2, 3), np.float32)
    check_value(lambda x: lax.full_like(x, 7), [x], np.full((2, 3), 7, np.float32))
    check_value(lambda x: lax.full_like(x, 7, np.int32, (2,)), [x], np.full((2,), 7, np.int32))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint16", "complex64"])
def test_full_like_has_the_weak_type_of_its_model(dtype: str) -> None:
    weak = cj.core.ShapedArray((2,), np.dtype(dtype), True)
    assert [weak] == cj.make_jaxpr(lambda x: lax.full_like(x, 1))(weak).out_avals


def test_arrays_are_joined_split_and_padded() -> None:
    x, y, z = arr(2, 3), arr(2, 3), arr(2, 5)
    check_value(lambda x, z: lax.concatenate([x, z], -1), [x, z], np.concatenate([x, z], -1))
    check_value(lambda x, y: lax.stack([x, y], -1), [x, y], np.stack([x, y], -1))
    check_value(lambda z: lax.split(z, (2, 3), 1)[1], [z], z[:, 2:])
    expected = np.full((3, 6), 1.5)
    expected[:2, 1:6:2] = x
    check_value(lambda x: lax.pad(x, 1.5, ((0, 1, 0), (1, 0, 1))), [x], expected)
    check_value(lambda x: lax.pad(x, 1.5, ((-1, 0, 0), (0, -2, 1))), [x], [[x[1, 0], 1.5, x[1, 1]]])


def test_slices() -> None:
    x = arr(4, 5)
    check_value(lambda x: lax.slice(x, (1, 0), (4, 5), (1, 2)), [x], x[1:4, ::2])
    check_value(lambda x: lax.slice_in_dim(x, 1, -1, 2, axis=1), [x], x[:, 1:-1:2])
    check_value(lambda x: lax.index_in_dim(x, -1, axis=0), [x], x[-1:])
    check_value(lambda x: lax.index_in_dim(x, 2, axis=1, keepdims=False), [x], x[:, 2])


def test_dynamic_slices_count_from_the_end_and_are_moved_inside() -> None:
    x, new = arr(4, 5), arr(2, 3)
    for starts, first in (((1, 0), (1, 0)), ((-2, -4), (2, 1)), ((9, 3), (2, 2)), ((-9, -1), (0, 2))):
        part = slice(first[0], first[0] + 2), slice(first[1], first[1] + 3)
        check_value(lambda x, *starts: lax.dynamic_slice(x, starts, (2, 3)), [x, *map(np.int32, starts)], x[part])
        check_value(lambda x: lax.dynamic_slice(x, starts, (2, 3)), [x], x[part])  # noqa: B023
        expected = x.copy()
        expected[part] = new
        check_value(lambda x, new, *starts: lax.dynamic_update_slice(x, new, starts),
                    [x, new, *map(np.int32, starts)], expected)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64])
def test_dynamic_slice_takes_any_integer_dtype(dtype: Any) -> None:
    x = arr(300)
    check_value(lambda x, i: lax.dynamic_slice(x, (i,), (2,)), [x, dtype(100)], x[100:102])
    if np.dtype(dtype).kind == "i":
        check_value(lambda x, i: lax.dynamic_slice(x, (i,), (2,)), [x, dtype(-100)], x[200:202])


def test_dynamic_slice_takes_starts_as_one_array() -> None:
    x = arr(4, 5)
    check_value(lambda x, i: lax.dynamic_slice(x, i, (2, 2)), [x, np.array([1, 2])], x[1:3, 2:4])


def test_dynamic_slices_along_one_axis() -> None:
    x, i = arr(4, 5), np.int32(1)
    check_value(lambda x, i: lax.dynamic_slice_in_dim(x, i, 2, axis=1), [x, i], x[:, 1:3])
    check_value(lambda x, i: lax.dynamic_index_in_dim(x, i, 1, keepdims=False), [x, i], x[:, 1])
    new, expected = arr(4), x.copy()
    expected[:, 1] = new
    check_value(lambda x, new, i: lax.dynamic_update_index_in_dim(x, new, i, 1), [x, new, i], expected)
    check_value(lambda x, new, i: lax.dynamic_update_slice_in_dim(x, new, i, 1), [x, new[:, None], i], expected)


def test_copy_keeps_derivatives_and_stop_gradient_stops_them() -> None:
    x = arr(3)
    check_value(lax.copy, [x], x)
    check_value(lax.stop_gradient, [x], x)
    assert_array_equal(np.ones(3), np.asarray(cj.grad(lambda x: lax.copy(x).sum())(x)))
    _, dot = cj.jvp(lambda x: lax.mul(lax.stop_gradient(x), x), (x,), (np.ones(3),))
    assert_array_equal(np.asarray(dot), x)
    assert_array_equal(np.asarray(cj.vjp(lax.stop_gradient, x)[1](np.ones(3))[0]), np.zeros(3))


def test_weak_types_pass_through() -> None:
    x = lax.full((2, 3), 1.0)
    outs = [lax.transpose(x, (1, 0)), lax.reshape(x, (6,)), lax.rev(x, (0,)), lax.concatenate([x, x], 0),
            lax.slice(x, (0, 0), (1, 1)), lax.expand_dims(x, (0,))]
    assert all(o.aval.weak_type for o in outs)
    assert not lax.concatenate([x, np.ones((2, 3))], 0).aval.weak_type


V, M = np.ones(3), np.ones((2, 3))


@pytest.mark.parametrize(("call", "kind", "text"), [
    (lambda: lax.broadcast_in_dim(V, (4,), (0,)), CorejaxTypeError, "broadcast_in_dim: .*can't be broadcast"),
    (lambda: lax.broadcast_in_dim(M, (3, 2), (1, 0)), CorejaxTypeError, "broadcast_in_dim: .*strictly|place"),
    (lambda: lax.reshape(V, (4,)), CorejaxTypeError, "reshape: .*3 elements"),
    (lambda: lax.reshape(V, (-1,)), CorejaxTypeError, "reshape: .*isn't a size"),
    (lambda: lax.reshape(V, (3.0,)), CorejaxTypeError, "reshape: .*must be an integer"),
    (lambda: lax.squeeze(M, (0,)), CorejaxTypeError, "squeeze: .*size 1"),
    (lambda: lax.squeeze(M, (2,)), CorejaxIndexError, "squeeze: axis 2 is out of bounds"),
    (lambda: lax.expand_dims(V, (5,)), CorejaxIndexError, "expand_dims: axis 5"),
    (lambda: lax.expand_dims(V, (0, 0)), CorejaxAxisError, "expand_dims: an axis appears twice"),
    (lambda: lax.transpose(M, (0, 0)), CorejaxTypeError, "transpose: permutation"),
    (lambda: lax.rev(M, (2,)), CorejaxIndexError, "rev: axis 2"),
    (lambda: lax.iota(bool, 3), CorejaxTypeError, "iota: .*bool"),
    (lambda: lax.iota(np.int32, -3), CorejaxTypeError, "iota: .*isn't a size"),
    (lambda: lax.full((2,), V), CorejaxTypeError, "full: .*must be a scalar"),
    (lambda: lax.full((2,), 300, np.int8), CorejaxOverflowError, "300 doesn't fit i8"),
    (lambda: lax.concatenate([], 0), CorejaxValueError, "concatenate: .*nothing"),
    (lambda: lax.concatenate([V, M], 0), CorejaxTypeError, "concatenate: operands differ in an axis"),
    (lambda: lax.concatenate([V, V.astype(np.float32)], 0), CorejaxTypeError, "concatenate: operands differ in dtype"),
    (lambda: lax.concatenate([V], 1), CorejaxIndexError, "concatenate: axis 1"),
    (lambda: lax.pad(V, np.float32(0), ((0, 0, 0),)), CorejaxTypeError, "pad: operands differ in dtype"),
    (lambda: lax.pad(V, 0.0, ((0, 0),)), CorejaxTypeError, "pad: padding_config"),
    (lambda: lax.pad(V, 0.0, ((-4, 0, 0),)), CorejaxTypeError, "pad: negative padding"),
    (lambda: lax.slice(V, (0,), (4,)), CorejaxTypeError, "slice: .*out of its bounds"),
    (lambda: lax.slice(V, (0, 0), (1, 1)), CorejaxTypeError, "slice: .*1 axes"),
    (lambda: lax.index_in_dim(V, 3), CorejaxIndexError, "index 3 is out of bounds"),
    (lambda: lax.dynamic_slice(V, (0,), (4,)), CorejaxTypeError, "dynamic_slice: slice_sizes"),
    (lambda: lax.dynamic_slice(V, (np.float64(0),), (1,)), CorejaxTypeError, "dynamic_slice: start indices"),
    (lambda: lax.dynamic_slice(V, (0, 0), (1,)), CorejaxTypeError, "dynamic_slice: .*a start index"),
    (lambda: lax.dynamic_update_slice(V, np.ones(4), (0,)), CorejaxTypeError, "dynamic_update_slice: .*does not fit"),
    (lambda: lax.split(V, (1, 1)), CorejaxTypeError, "split: .*add up"),
])
def test_wrong_use_is_refused_by_name(call: Any, kind: type[CorejaxError], text: str) -> None:
    for attempt in (call, cj.jit(call)):
        with pytest.raises(kind, match=text) as caught:
            attempt()
        assert caught.value.got is not None
        assert caught.value.wanted is not None
        assert caught.value.todo is not None


JOINED = """
import numpy as np, corejax as cj
from corejax import lax
for sizes in [(3, 0), (0, 3), (3, 0, 3), (0, 0), (3, 3)]:
    parts = [np.ones(size) for size in sizes]
    for i in range(sum(sizes) + 1):
        assert (0,) == cj.jit(lambda *x: lax.slice(lax.concatenate(x, 0), (i,), (i,)))(*parts).shape
"""


def test_empty_slices_of_joined_parts_are_empty():
    """XLA ends the process for those of parts of which one is empty."""
    done = subprocess.run([sys.executable, "-c", JOINED], capture_output=True, text=True)
    assert 0 == done.returncode, done.stderr[-400:]
