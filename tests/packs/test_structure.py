"""Shapes, creation, joining and slicing, against NumPy and their own laws."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from structure_checks import assert_array_equal, check_all, check_compiled, check_derivatives, check_value, check_vmap

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxError, CorejaxIndexError, CorejaxOverflowError, CorejaxTypeError, CorejaxValueError

RNG = np.random.default_rng(0)


def arr(*shape: int) -> Any:
    return RNG.standard_normal(shape)


@pytest.mark.parametrize(("sizes", "shape", "dims"), [
    ((), (), ()), ((), (2, 3), ()), ((3,), (2, 3), (1,)), ((3,), (3, 2), (0,)), ((1, 3), (2, 4, 3), (0, 2)),
    ((2, 1), (2, 5), (0, 1)), ((0,), (2, 0), (1,)), ((1,), (0,), (0,)), ((2, 3), (2, 3), (0, 1))])
def test_broadcast_in_dim(sizes: Any, shape: Any, dims: Any) -> None:
    x = arr(*sizes)
    spread = [1] * len(shape)
    for size, d in zip(sizes, dims, strict=True):
        spread[d] = size
    check_all(lambda x: lax.broadcast_in_dim(x, shape, dims), [x], np.broadcast_to(x.reshape(spread), shape))


@pytest.mark.parametrize(("sizes", "new"), [((), (1, 1)), ((6,), (2, 3)), ((2, 3), (3, 2)), ((1,), ()),
                                            ((0, 3), (2, 0)),
                                            ((2, 3, 4), (4, 6))])
def test_reshape(sizes: Any, new: Any) -> None:
    x = arr(*sizes)
    check_all(lambda x: lax.reshape(x, new), [x], x.reshape(new))


def test_reshape_takes_axes_in_another_order_first() -> None:
    x = arr(2, 3)
    check_all(lambda x: lax.reshape(x, (6,), (1, 0)), [x], x.T.reshape(6))


@pytest.mark.parametrize(("sizes", "dims"), [((1,), (0,)), ((1, 3, 1), (0, -1)), ((1, 0), (0,)), ((2, 3), ()),
                                             ((2, 1, 3), 1)])
def test_squeeze(sizes: Any, dims: Any) -> None:
    x = arr(*sizes)
    check_all(lambda x: lax.squeeze(x, dims), [x], np.squeeze(x, dims))


@pytest.mark.parametrize(("sizes", "dims"), [((), (0,)), ((3,), (0, -1)), ((2, 3), (1,)), ((0,), (1,)), ((2,), ())])
def test_expand_dims(sizes: Any, dims: Any) -> None:
    x = arr(*sizes)
    check_all(lambda x: lax.expand_dims(x, dims), [x], np.expand_dims(x, dims))


@pytest.mark.parametrize(("sizes", "order"), [((), ()), ((3,), (0,)), ((2, 3), (1, 0)), ((2, 3, 4), (2, 0, 1)),
                                              ((2, 3, 4), (0, 2, 1)), ((0, 2), (1, 0))])
def test_transpose(sizes: Any, order: Any) -> None:
    x = arr(*sizes)
    check_all(lambda x: lax.transpose(x, order), [x], x.transpose(order))


@pytest.mark.parametrize(("sizes", "dims"), [((3,), (0,)), ((2, 3), (0, 1)), ((2, 3, 4), (1,)), ((0, 2), (0,)),
                                             ((), ())])
def test_rev(sizes: Any, dims: Any) -> None:
    x = arr(*sizes)
    check_all(lambda x: lax.rev(x, dims), [x], np.flip(x, dims))


def test_broadcast_and_collapse() -> None:
    x = arr(2, 3, 4)
    y = arr(3)
    check_all(lambda y: lax.broadcast(y, (2,)), [y], np.broadcast_to(y, (2, 3)))
    check_all(lambda x: lax.collapse(x, 1, 3), [x], x.reshape(2, 12))


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
    check_derivatives(lambda v: lax.full((2, 3), v), [np.float64(3.0)])
    check_vmap(lambda v: lax.full((2, 3), v), [np.float64(3.0)])


def test_full_like_follows_its_model() -> None:
    x = np.zeros((2, 3), np.float32)
    check_value(lambda x: lax.full_like(x, 7), [x], np.full((2, 3), 7, np.float32))
    check_value(lambda x: lax.full_like(x, 7, np.int32, (2,)), [x], np.full((2,), 7, np.int32))


@pytest.mark.parametrize(("shapes", "axis"), [([(2,)], 0), ([(2,), (3,)], 0), ([(2, 1), (2, 3), (2, 0)], 1),
                                              ([(1, 2), (4, 2)], -2), ([(0,), (0,)], 0)])
def test_concatenate(shapes: Any, axis: int) -> None:
    xs = [arr(*shape) for shape in shapes]
    check_all(lambda *xs: lax.concatenate(xs, axis), xs, np.concatenate(xs, axis))


def test_stack_and_split() -> None:
    x, y = arr(3), arr(3)
    check_all(lambda x, y: lax.stack([x, y], -1), [x, y], np.stack([x, y], -1))
    z = arr(2, 5)
    check_all(lambda z: lax.split(z, (2, 3), 1)[1], [z], z[:, 2:])


def _padded(x: Any, value: float, config: Any) -> Any:
    """By its definition: spread, then pad or cut."""
    for axis, (lo, hi, interior) in enumerate(config):
        n = x.shape[axis]
        x = np.moveaxis(x, axis, 0)
        wide = np.full((n + max(n - 1, 0) * interior, *x.shape[1:]), value)
        wide[::interior + 1] = x
        wide = np.concatenate([np.full((max(lo, 0), *x.shape[1:]), value), wide[max(-lo, 0):]])
        wide = np.concatenate([wide, np.full((hi, *x.shape[1:]), value)]) if hi >= 0 else wide[:hi]
        x = np.moveaxis(wide, 0, axis)
    return x


@pytest.mark.parametrize(("sizes", "config"), [
    ((3,), ((1, 2, 0),)), ((3,), ((0, 0, 2),)), ((4,), ((-1, -2, 0),)), ((), ()), ((2, 3), ((1, 0, 1), (-1, 2, 2))),
    ((0,), ((1, 1, 3),)), ((5,), ((-3, 1, 1),)), ((3,), ((-2, -2, 1),)), ((3,), ((0, 0, 0),)), ((2,), ((-1, 3, 2),))])
def test_pad(sizes: Any, config: Any) -> None:
    x, value = arr(*sizes), np.float64(1.5)
    check_all(lambda x, v: lax.pad(x, v, config), [x, value], _padded(x, 1.5, config))


@pytest.mark.parametrize(("sizes", "start", "limit", "strides"), [
    ((5,), (1,), (4,), None), ((5,), (0,), (5,), (2,)), ((5,), (1,), (5,), (3,)), ((3, 4), (1, 0), (3, 2), None),
    ((3, 4), (0, 1), (3, 4), (2, 2)), ((3,), (2,), (2,), None), ((), (), (), None), ((4,), (1,), (1,), (2,))])
def test_slice(sizes: Any, start: Any, limit: Any, strides: Any) -> None:
    x = arr(*sizes)
    steps = strides or (1,) * len(sizes)
    check_all(lambda x: lax.slice(x, start, limit, strides), [x], x[tuple(map(slice, start, limit, steps))])


def test_slices_along_one_axis() -> None:
    x = arr(4, 5)
    check_all(lambda x: lax.slice_in_dim(x, 1, -1, 2, axis=1), [x], x[:, 1:-1:2])
    check_all(lambda x: lax.index_in_dim(x, -1, axis=0), [x], x[-1:])
    check_all(lambda x: lax.index_in_dim(x, 2, axis=1, keepdims=False), [x], x[:, 2])


@pytest.mark.parametrize(("sizes", "starts", "wanted"), [((5,), (1,), (3,)), ((5,), (4,), (3,)),
                                                         ((3, 4), (1, 2), (2, 1)),
                                                         ((3, 4), (0, 7), (3, 0)), ((5,), (-2,), (2,)), ((), (), ())])
def test_dynamic_slice(sizes: Any, starts: Any, wanted: Any) -> None:
    x = arr(*sizes)
    first = [min(max(s + n * (s < 0), 0), n - w) for s, n, w in zip(starts, sizes, wanted, strict=True)]
    expected = x[tuple([slice(f, f + w) for f, w in zip(first, wanted, strict=True)])]
    check_all(lambda x, *starts: lax.dynamic_slice(x, starts, wanted), [x, *map(np.int32, starts)], expected)
    check_value(lambda x: lax.dynamic_slice(x, starts, wanted), [x], expected)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64])
def test_dynamic_slice_takes_any_integer_dtype(dtype: Any) -> None:
    x = arr(300)
    check_value(lambda x, i: lax.dynamic_slice(x, (i,), (2,)), [x, dtype(100)], x[100:102])
    if np.dtype(dtype).kind == "i":
        check_value(lambda x, i: lax.dynamic_slice(x, (i,), (2,)), [x, dtype(-100)], x[200:202])


def test_dynamic_slice_takes_starts_as_one_array() -> None:
    x = arr(4, 5)
    check_value(lambda x, i: lax.dynamic_slice(x, i, (2, 2)), [x, np.array([1, 2])], x[1:3, 2:4])


@pytest.mark.parametrize(("sizes", "part", "starts"), [((5,), (3,), (1,)), ((5,), (3,), (4,)), ((5,), (0,), (2,)),
                                                       ((3, 4), (2, 1), (1, 2)), ((3, 4), (3, 4), (0, 5)),
                                                       ((), (), ())])
def test_dynamic_update_slice(sizes: Any, part: Any, starts: Any) -> None:
    x, new = arr(*sizes), arr(*part)
    expected = x.copy()
    first = [min(max(s, 0), n - w) for s, n, w in zip(starts, sizes, part, strict=True)]
    expected[tuple([slice(f, f + w) for f, w in zip(first, part, strict=True)])] = new
    check_all(lambda x, new, *starts: lax.dynamic_update_slice(x, new, starts),
              [x, new, *map(np.int32, starts)], expected)


def test_dynamic_slices_along_one_axis() -> None:
    x, i = arr(4, 5), np.int32(1)
    check_all(lambda x, i: lax.dynamic_slice_in_dim(x, i, 2, axis=1), [x, i], x[:, 1:3])
    check_all(lambda x, i: lax.dynamic_index_in_dim(x, i, 1, keepdims=False), [x, i], x[:, 1])
    new, expected = arr(4), x.copy()
    expected[:, 1] = new
    check_all(lambda x, new, i: lax.dynamic_update_index_in_dim(x, new, i, 1), [x, new, i], expected)
    check_all(lambda x, new, i: lax.dynamic_update_slice_in_dim(x, new, i, 1), [x, new[:, None], i], expected)


def test_copy_keeps_derivatives_and_stop_gradient_stops_them() -> None:
    x = arr(3)
    check_all(lax.copy, [x], x)
    check_value(lax.stop_gradient, [x], x)
    check_vmap(lax.stop_gradient, [x])
    _, dot = cj.jvp(lambda x: lax.mul(lax.stop_gradient(x), x), (x,), (np.ones(3),))
    assert_array_equal(np.asarray(dot), x)
    assert_array_equal(np.asarray(cj.vjp(lax.stop_gradient, x)[1](np.ones(3))[0]), np.zeros(3))


def test_results_do_not_share_memory_with_ndarrays() -> None:
    x = np.arange(6.0)
    outs = [lax.reshape(x, (2, 3)), lax.slice(x, (1,), (3,)), lax.rev(x, (0,)), lax.stop_gradient(x)]
    before = [np.array(o) for o in outs]
    x[:] = -1
    for out, expected in zip(outs, before, strict=True):
        assert_array_equal(np.asarray(out), expected)


@pytest.mark.parametrize("dtype", [np.int32, np.bool_, np.uint8, np.complex64, ml_dtypes.bfloat16, np.float16])
def test_every_dtype_can_be_rearranged(dtype: Any) -> None:
    x = np.arange(6).reshape(2, 3).astype(dtype)
    for fun in (lambda x: lax.transpose(x, (1, 0)), lambda x: lax.rev(x, (1,)), lambda x: lax.concatenate([x, x], 0),
                lambda x: lax.pad(x, np.zeros((), dtype), ((1, 0, 1), (0, -1, 0))), lambda x: lax.reshape(x, (3, 2)),
                lambda x: lax.broadcast_in_dim(x, (2, 2, 3), (1, 2)), lambda x: lax.slice(x, (0, 1), (2, 3)),
                lambda x: lax.dynamic_slice(x, (np.int32(1), np.int32(1)), (1, 2)), lax.copy):
        check_compiled(fun, [x])


def test_weak_types_pass_through() -> None:
    x = lax.full((2, 3), 1.0)
    outs = [lax.transpose(x, (1, 0)), lax.reshape(x, (6,)), lax.rev(x, (0,)), lax.concatenate([x, x], 0),
            lax.slice(x, (0, 0), (1, 1)), lax.expand_dims(x, (0,))]
    assert all(o.aval.weak_type for o in outs)
    assert not lax.concatenate([x, np.ones((2, 3))], 0).aval.weak_type


V, M = np.ones(3), np.ones((2, 3))


@pytest.mark.parametrize(("call", "kind", "text"), [
    (lambda: lax.broadcast_in_dim(V, (4,), (0,)), CorejaxTypeError, "broadcast_in_dim: .*does not spread"),
    (lambda: lax.broadcast_in_dim(M, (3, 2), (1, 0)), CorejaxTypeError, "broadcast_in_dim: .*strictly|place"),
    (lambda: lax.reshape(V, (4,)), CorejaxTypeError, "reshape: .*3 elements"),
    (lambda: lax.reshape(V, (-1,)), CorejaxTypeError, "reshape: .*no size"),
    (lambda: lax.reshape(V, (3.0,)), CorejaxTypeError, "reshape: .*no integer"),
    (lambda: lax.squeeze(M, (0,)), CorejaxTypeError, "squeeze: .*size 1"),
    (lambda: lax.squeeze(M, (2,)), CorejaxIndexError, "squeeze: axis 2 is out of bounds"),
    (lambda: lax.expand_dims(V, (5,)), CorejaxIndexError, "expand_dims: axis 5"),
    (lambda: lax.expand_dims(V, (0, 0)), CorejaxTypeError, "expand_dims: an axis appears twice"),
    (lambda: lax.transpose(M, (0, 0)), CorejaxTypeError, "transpose: permutation"),
    (lambda: lax.rev(M, (2,)), CorejaxIndexError, "rev: axis 2"),
    (lambda: lax.iota(bool, 3), CorejaxTypeError, "iota: .*bool"),
    (lambda: lax.iota(np.int32, -3), CorejaxTypeError, "iota: .*no size"),
    (lambda: lax.full((2,), V), CorejaxTypeError, "full: .*no scalar"),
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
    (lambda: lax.dynamic_slice(V, (0, 0), (1,)), CorejaxTypeError, "dynamic_slice: .*one start index"),
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
