"""`x[index]` and `x.at[index]`, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxIndexError, CorejaxTypeError, CorejaxValueError
from corejax_lax_basic.indexing import at, getitem
from value_checks import check_value

X = np.random.default_rng(0).standard_normal((3, 4, 5))

BASIC: list[Any] = [
    0, -1, (1, 2), (1, 2, 3), (0, -1, -2), slice(1, None), slice(None, None, -1), slice(2, None, -2), slice(5, 9),
    (slice(None), 1), (Ellipsis, 1), (1, Ellipsis, 2), Ellipsis, None, (None, 1), (Ellipsis, None), (1, None, 2),
    (slice(None), None, slice(1, 4, 2)), (slice(-2, None), slice(None, None, 3), -1), (), (slice(0, 0), 1),
    (slice(None, None, -3), Ellipsis, slice(4, 1, -2)), (None, None, 0, None), np.int8(2), (np.uint64(1), np.array(2)),
    (slice(np.int32(1), None),)]
ADVANCED: list[Any] = [
    [0, 2], np.array([[0, 1], [2, -1]]), (slice(None), [1, 1, 0]), ([0, 1], [2, 3]), ([0, 1], slice(None), [2, 3]),
    (slice(None), [0, 1], [2, 3]), ([[0], [1]], [2, 3, 0]), (0, slice(None), [1, 2]), (0, [1, 2]),
    ([0, 2], Ellipsis, 1), (0, Ellipsis, 1, [0, 1]), (None, 1, [0, 1], Ellipsis, 2), ([0, 1], 1, 2, Ellipsis),
    (None, [0, 1]), ([0, 1], None, [0, 1]), (slice(1, None), [0, 1], slice(None, None, -2)), X[..., 0] > 0, X > 0,
    (slice(None), X[0] > 0), X[:, 0, 0] > 9, (X[:, 0, 0] > 0, slice(None), 1), [], np.zeros((0, 2), int),
    True, False, (True, 1), (None, False), (np.zeros(3, bool), 0), (Ellipsis, [1, 2]), ([1, -1], 2, slice(3, 0, -2))]


@pytest.mark.parametrize("index", BASIC + ADVANCED, ids=repr)
def test_reading_equals_numpy(index: Any) -> None:
    check_value(lambda x: getitem(x, index), [X], X[index])


def test_a_basic_index_is_a_slice_and_no_gather() -> None:
    names = {eqn.primitive.name for eqn in cj.make_jaxpr(lambda x: getitem(x, (0, slice(None, None, -2))))(X).eqns}
    assert names == {"slice", "rev", "squeeze"}
    assert not cj.make_jaxpr(lambda x: getitem(x, (Ellipsis, slice(0, 5))))(X).eqns


@pytest.mark.parametrize("index", [1, -1, 7, -9])
def test_a_traced_integer_is_clamped_when_read(index: int) -> None:
    for shaped in (lambda x, i: getitem(x, i), lambda x, i: getitem(x, (slice(1, None), i, None))):
        for dtype in (np.int8, np.int32, np.int64):
            n = 3 if shaped(X, np.int32(0)).shape == X.shape[1:] else 4
            clamped = min(max(index + n if index < 0 else index, 0), n - 1)
            out = cj.jit(shaped)(X, dtype(index))
            assert_array_equal(np.asarray(out), np.asarray(shaped(X, clamped)))


def test_traced_integers_together() -> None:
    def read(x: Any, i: Any, j: Any) -> Any:
        return getitem(x, (i, slice(None, None, 2), j))
    jitted = cj.jit(read)
    for i, j in ((0, 0), (2, -1), (-2, 4)):
        assert_array_equal(np.asarray(jitted(X, i, j)), X[i, ::2, j])
        assert_array_equal(np.asarray(jitted(X, np.int32(i), np.int64(j))), X[i, ::2, j])


@pytest.mark.parametrize("index", [ADVANCED[i] for i in (0, 1, 2, 3, 4, 5, 6, 9)], ids=repr)
def test_traced_index_arrays_equal_static_ones(index: Any) -> None:
    parts = index if isinstance(index, tuple) else (index,)
    arrays = [np.asarray(p) for p in parts if isinstance(p, (list, np.ndarray))]

    def read(x: Any, *arrays: Any) -> Any:
        rest = iter(arrays)
        return getitem(x, tuple([next(rest) if isinstance(p, (list, np.ndarray)) else p for p in parts]))

    assert_array_equal(np.asarray(cj.jit(read)(X, *arrays)), X[index])


def _as_written(index: Any, x: Any, value: Any, operation: str) -> Any:
    expected = x.copy()
    if operation == "set":
        expected[index] = value
    else:
        ufunc = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum, "subtract": np.subtract}
        ufunc[operation].at(expected, index, value)
    return expected


@pytest.mark.sample(120)
@pytest.mark.parametrize("operation", ["set", "add", "multiply", "min", "max", "subtract"])
@pytest.mark.parametrize("index", BASIC + ADVANCED, ids=repr)
def test_writing_equals_numpy(index: Any, operation: str) -> None:
    if any(part is None for part in (index if isinstance(index, tuple) else (index,))) and operation != "set":
        plain: Any = X[index]  # np.ufunc.at has no new axes
        if operation == "add" and plain.size:
            out = np.asarray(at(X)[index].add(1.5))
            assert_allclose(out.sum() - X.sum(), 1.5 * plain.size)
        return
    value = np.random.default_rng(1).standard_normal(X[index].shape[-1:])
    out = getattr(at(X)[index], operation)(value)
    assert_allclose(np.asarray(out), _as_written(index, X, value, operation), rtol=1e-12)
    if operation in ("set", "add"):
        check_value(lambda x: getattr(at(x)[index], operation)(2), [X], _as_written(index, X, 2.0, operation))


def test_repeated_places_count_each_time_when_added_and_once_when_set() -> None:
    x, i = np.zeros(3), np.array([1, 1, 2])
    assert_array_equal(np.asarray(at(x)[i].add(1.0)), [0, 2, 1])
    v = np.array([1.0, 2.0, 3.0])
    ct = np.array([3.0, 5.0, 7.0])
    x_bar, v_bar = cj.vjp(lambda x, v: at(x)[i].add(v), x, v)[1](ct)
    assert_array_equal(np.asarray(x_bar), ct)
    assert_array_equal(np.asarray(v_bar), [5, 5, 7])
    for write in (lambda x, v: at(x)[i].set(v), lambda x, v: cj.jit(lambda i: at(x)[i].set(v))(i)):
        out, pullback = cj.vjp(write, x, v)
        assert_array_equal(np.asarray(out), [0, 2, 3])
        x_bar, v_bar = pullback(ct)
        assert_array_equal(np.asarray(x_bar), [3, 0, 0])
        assert_array_equal(np.asarray(v_bar), [0, 5, 7])


def test_traced_places_out_of_bounds_are_left_out_when_written() -> None:
    write = cj.jit(lambda x, i, v: at(x)[i].set(v))
    x = np.zeros(3)
    assert_array_equal(np.asarray(write(x, 1, 5.0)), [0, 5, 0])
    assert_array_equal(np.asarray(write(x, -1, 5.0)), [0, 0, 5])
    assert_array_equal(np.asarray(write(x, 3, 5.0)), x)
    assert_array_equal(np.asarray(write(x, -4, 5.0)), x)
    assert_array_equal(np.asarray(write(x, np.array([0, 9]), 5.0)), [5, 0, 0])
    clipped = cj.jit(lambda x, i, v: at(x)[i].set(v, mode="clip"))
    assert_array_equal(np.asarray(clipped(x, np.array([0, 9]), 5.0)), [5, 0, 5])


def test_modes_of_get() -> None:
    read = cj.jit(lambda x, i: at(x)[i].get(mode="fill", fill_value=-1.0))
    x = np.arange(3.0)
    assert_array_equal(np.asarray(read(x, np.array([0, 9, -1]))), [0, -1, 2])
    assert np.isnan(np.asarray(cj.jit(lambda x, i: at(x)[i].get(mode="fill"))(x, 9)))
    assert_array_equal(np.asarray(cj.jit(lambda x, i: at(x)[i].get(mode="clip"))(x, np.array([0, 9]))), [0, 2])
    with pytest.raises(CorejaxValueError, match="unknown mode"):
        cj.jit(lambda x, i: at(x)[i].get(mode="wrap"))(x, np.array([0]))


def test_a_mode_treats_static_and_computed_indices_alike() -> None:
    x = np.arange(3.0)
    for i in (9, -9, np.array([9, 0, -9]), [0, 9], np.uint64(2**63), 2**70):
        for mode, expected in (("clip", x[np.clip(np.array(i, float), -3, 2).astype(int)]),
                               ("fill", np.where(np.abs(np.array(i, float)) > 3, np.nan, 0.0))):
            assert_array_equal(np.asarray(at(x)[i].get(mode=mode)), expected)
        assert_array_equal(np.asarray(at(x)[i].set(7.0, mode="drop"))[1:], x[1:])
        with pytest.raises(CorejaxIndexError, match="out of bounds"):
            at(x)[i].get(mode="promise_in_bounds")
    assert_array_equal(np.asarray(at(x)[np.array([2, 9])].apply(lax.exp, mode="drop")), [0, 1, np.exp(2.0)])


def test_negative_indices_wrap_unless_told_otherwise() -> None:
    x, i = np.arange(3.0), np.array([-1, 1])
    assert_array_equal(np.asarray(at(x)[i].get(mode="fill", fill_value=-5.0, wrap_negative_indices=False)), [-5, 1])
    assert_array_equal(np.asarray(cj.jit(lambda x, i: at(x)[i].set(9.0, wrap_negative_indices=False))(x, i)), [0, 9, 2])
    assert_array_equal(np.asarray(at(x)[i].add(9.0, mode="clip", wrap_negative_indices=False)), [9, 10, 2])


def test_lists_of_traced_integers_of_any_depth() -> None:
    read = cj.jit(lambda x, i, j: (getitem(x, [i, 0]), getitem(x, [[i, 1], [j, i]]), getitem(x, ([i, 0], slice(2)))))
    for found, index in zip(read(X, 2, 1), ([2, 0], [[2, 1], [1, 2]], ([2, 0], slice(2))), strict=True):
        assert_array_equal(np.asarray(found), X[np.array(index) if index == [[2, 1], [1, 2]] else index])
    mask = [cj.device_put(True), False, True]
    assert_array_equal(np.asarray(getitem(X, mask)), X[[True, False, True]])
    mixed = [cj.device_put(True), 2]
    for x in (X, cj.device_put(X)):
        assert_array_equal(np.asarray(getitem(x, mixed)), X[[True, 2]])
        with pytest.raises(CorejaxTypeError, match="integers or booleans"):
            getitem(x, [cj.device_put(1.5), 0])


def test_unsigned_indices_beyond_the_signed_ones_are_out_of_bounds() -> None:
    x = np.arange(3.0)
    for dtype in (np.uint8, np.uint16, np.uint32, np.uint64):
        i = np.array([np.iinfo(dtype).max, 1], dtype)
        assert_array_equal(np.asarray(cj.jit(lambda x, i: getitem(x, i))(x, i)), [2, 1])
        assert_array_equal(np.asarray(cj.jit(lambda x, i: at(x)[i].set(9.0))(x, i)), [0, 9, 2])


def test_empty_axes_are_read_from_only_where_something_stands_for_them() -> None:
    x = np.zeros((0, 2))
    i = cj.device_put(np.array([1, 0]))
    assert_array_equal(np.asarray(at(x)[i].get(mode="fill", fill_value=4.0)), np.full((2, 2), 4.0))
    assert (0, 2) == at(x)[i].set(1.0).shape == getitem(x, np.zeros(0, int)).shape
    with pytest.raises(CorejaxIndexError, match="axis 0 is empty"):
        getitem(x, i)


def test_divide_power_and_apply() -> None:
    x = np.arange(1.0, 5.0)
    assert_allclose(np.asarray(at(x)[1:3].divide(2.0)), [1, 1, 1.5, 4])
    assert_allclose(np.asarray(at(x)[1:3].power(2.0)), [1, 4, 9, 4])
    assert_allclose(np.asarray(at(x)[1:3].apply(lax.neg)), [1, -2, -3, 4])
    assert [0.5, 2.0, 3.0] == at(np.arange(1, 4))[0].divide(2).tolist()
    assert_allclose(np.asarray(at(x)[np.array([0, 0])].apply(lax.neg)), [1, 2, 3, 4])


@pytest.mark.parametrize("index", [
    [1, 1], [1, -3, 2, 1], [0, 9, 0, 9], (slice(None), [1, 1, 0]), ([0, 1, 0], slice(1, 3)), ([0, 0], [1, 1])])
def test_a_function_is_applied_as_often_as_a_place_is_named(index):
    x = np.arange(1.0, 5.0) if isinstance(index, list) else np.arange(1.0, 7.0).reshape(2, 3)
    index = index if isinstance(index, tuple) else (index,)
    index = tuple([np.array(i) if isinstance(i, list) else i for i in index])
    wanted = x.copy()
    named = np.zeros(x.shape, int)
    inside = tuple([i[i < n] if isinstance(i, np.ndarray) else i for i, n in zip(index, x.shape, strict=False)])
    np.add.at(named, inside, 1)
    for _ in range(named.max()):
        wanted[named > 0] = wanted[named > 0] * 10 + 1
        named -= 1
    arrays = [i for i in index if isinstance(i, np.ndarray)]

    def applied(x, *arrays):
        rest = iter(arrays)
        at_ = x.at[tuple([next(rest) if isinstance(i, np.ndarray) else i for i in index])]
        return at_.apply(lambda v: v * 10 + 1, mode="drop")

    assert_allclose(np.asarray(applied(cj.device_put(x), *arrays)), wanted)
    assert_allclose(np.asarray(cj.jit(applied)(x, *arrays)), wanted)
    assert_allclose(np.asarray(cj.jit(lambda x: applied(x, *arrays))(x)), wanted)
    assert_allclose(np.asarray(cj.vmap(applied, in_axes=(0, *[None] * len(arrays)))(x[None], *arrays))[0], wanted)


def test_a_traced_integer_that_is_mapped_is_written_where_each_says() -> None:
    x, v, i = np.arange(12.0).reshape(3, 4), np.full(4, 6.5), np.array([2, 0, -1])
    for operation in ("set", "add", "multiply", "max"):
        out = cj.vmap(lambda i: getattr(at(x)[i], operation)(v))(i)  # noqa: B023
        assert_array_equal(np.asarray(out), np.stack(
            [np.maximum(x, _as_written(k, x * 0, v, "set")) if operation == "max" else _as_written(k, x, v, operation)
             for k in i]))


def test_the_array_stays_as_it_is() -> None:
    x = cj.device_put(X)
    at(x)[0].set(0.0)
    assert_array_equal(np.asarray(x), X)


def test_dtype_of_the_array_decides() -> None:
    x = np.arange(3, dtype=np.int8)
    assert at(x)[0].set(5).dtype == np.int8
    with pytest.warns(FutureWarning, match="converted to float32"):
        assert at(x.astype(np.float32))[0].add(np.float64(1.5)).dtype == np.float32
    with pytest.warns(FutureWarning, match="converted to int8"):
        assert [1, 1, 2] == at(x)[0].set(1.5).tolist()


@pytest.mark.parametrize(("index", "kind", "text"), [
    (3, CorejaxIndexError, "index 3 is out of bounds for axis 0 of size 3"), (-4, CorejaxIndexError, "index -4 is out"),
    ((0, 0, 0, 0), CorejaxIndexError, "too many indices"), ((Ellipsis, Ellipsis), CorejaxIndexError, "one ellipsis"),
    ([0, 3], CorejaxIndexError, "index 3 is out of bounds"), (1.0, CorejaxTypeError, "indexed by a float"),
    (np.array([0.5]), CorejaxTypeError, "integers or booleans"), ("a", CorejaxTypeError, "indexed by a str"),
    (np.array([True, False]), CorejaxIndexError, "a mask doesn't fit"),
    (([0, 1], [0, 1, 2]), CorejaxIndexError, "broadcast"),
    (slice(0, 1.5), CorejaxTypeError, "bounds of a slice must be integers"),
    (slice(None, None, 0), CorejaxValueError, "zero"),
    ([[0], [1, 2]], CorejaxTypeError, "list"), (np.array(["a"]), CorejaxTypeError, "integers or booleans")], ids=repr)
def test_a_wrong_index_is_refused(index: Any, kind: Any, text: str) -> None:
    for use in (lambda x: getitem(x, index), lambda x: at(x)[index].set(0.0), cj.jit(lambda x: getitem(x, index))):
        with pytest.raises(kind, match=text) as caught:
            use(X)
        assert caught.value.todo is not None


def test_traced_masks_and_bounds_say_what_to_use() -> None:
    with pytest.raises(CorejaxTypeError, match="values of the mask") as caught:
        cj.jit(lambda x, m: getitem(x, m))(X, X > 0)
    assert "lax.select" in caught.value.todo
    with pytest.raises(CorejaxTypeError, match="bounds of a slice are traced") as caught:
        cj.jit(lambda x, i: getitem(x, slice(i, None)))(X, 1)
    assert "dynamic_slice_in_dim" in caught.value.todo
    with pytest.raises(CorejaxTypeError, match="doesn't broadcast"):
        at(X)[0].set(np.ones(7))


def test_operators_reach_the_same_functions() -> None:
    x = cj.device_put(X)
    assert_array_equal(np.asarray(x[0, ::2]), X[0, ::2])
    assert_array_equal(np.asarray(x.at[0].set(1.0)), _as_written(0, X, 1.0, "set"))
    assert_array_equal(np.asarray(cj.jit(lambda x: x[:, 1].T)(x)), X[:, 1].T)


shapes = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4)


@st.composite
def indexed(draw: Any) -> tuple[Any, Any]:
    shape = draw(shapes)
    basic = hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True)
    advanced = hnp.integer_array_indices(shape, result_shape=hnp.array_shapes(min_dims=0, max_dims=2, max_side=3))
    x = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    return x, draw(st.one_of(basic, advanced))


@st.composite
def mixed(draw: Any) -> tuple[Any, Any]:
    """Any entry for each axis: integers, slices, arrays that broadcast; with new axes and an ellipsis between."""
    shape = draw(shapes)
    common = draw(hnp.array_shapes(min_dims=1, max_dims=2, max_side=3))
    entries: list[Any] = []
    for n in shape:
        entries.append(draw(st.one_of(
            st.integers(-n, n - 1), st.slices(n), hnp.arrays(np.int64, common, elements=st.integers(-n, n - 1)),
            hnp.arrays(np.int64, common[-1:], elements=st.integers(-n, n - 1)))))
    for extra in draw(st.lists(st.sampled_from([None, Ellipsis]), max_size=2, unique=True)):
        entries.insert(draw(st.integers(0, len(entries))), extra)
    return np.arange(np.prod(shape), dtype=np.float64).reshape(shape), tuple(entries)


@settings(max_examples=150, deadline=None)
@given(st.one_of(indexed(), mixed()))
def test_any_index_reads_and_writes_as_numpy_does(case: tuple[Any, Any]) -> None:
    x, index = case
    expected = x[index]
    assert_array_equal(np.asarray(getitem(x, index)), expected)
    value = np.arange(expected.size, dtype=np.float64).reshape(expected.shape) - 7.0
    written = x.copy()
    written[index] = value
    assert_array_equal(np.asarray(at(x)[index].set(value)), written)
    # the transpose of reading is adding
    back = np.asarray(cj.vjp(lambda x: getitem(x, index), x)[1](value)[0])
    summed = np.zeros_like(x)
    np.add.at(summed.reshape(-1), np.arange(x.size).reshape(x.shape)[index], value)
    assert_array_equal(back, summed)
