"""Indexing arrays that are just being computed with takes short ways: their results are those of the long one."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import corejax as cj
from corejax.errors import CorejaxError, CorejaxIndexError, CorejaxRuntimeError, CorejaxTypeError
from corejax_lax_basic import _in_memory, gathering, scattering
from random_indices import data, host, hosts, random_indexing, seeds

OPERATIONS = ["set", "add", "subtract", "multiply", "divide", "min", "max", "power"]
DTYPES = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16, np.int8, np.int64, np.uint8, np.uint64, np.bool_,
          np.complex64]


@pytest.fixture
def long_way(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Does something without the short ways: its result, or its error."""
    def run(use: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(_in_memory, "read", lambda *_: None)
            patch.setattr(_in_memory, "changed", lambda *_: None)
            patch.setattr(gathering, "rows_of", lambda *_, **__: None)
            patch.setattr(scattering, "rows_of", lambda *_, **__: None)
            return outcome(use)
    return run


def outcome(use: Any) -> Any:
    try:
        return use()
    except CorejaxError as error:
        return error


def assert_same(expected: Any, got: Any) -> None:
    """The same error; or the same type, place and bits."""
    if isinstance(expected, Exception) or isinstance(got, Exception):
        assert (type(expected), str(expected)) == (type(got), str(got))
        return
    assert (expected.aval, expected.device) == (got.aval, got.device)
    assert np.asarray(expected).tobytes() == np.asarray(got).tobytes()


def numbers_of(rng: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Numbers of a dtype, among them those at which arithmetic is special."""
    x = data(rng, shape) * 3
    if np.dtype(dtype).kind not in "biu":
        x = np.where(rng.random(shape) < 0.2, rng.choice([np.nan, np.inf, -0.0, 6e4], shape), x)
        return x.astype(dtype)
    return np.abs(x * 20).astype(dtype)


@pytest.mark.filterwarnings("ignore:.*converted to:FutureWarning")
@pytest.mark.parametrize("seed", seeds(200))
def test_every_update_has_the_bits_of_the_long_way(seed: int, long_way: Any) -> None:
    rng = np.random.default_rng(seed)
    case = random_indexing(rng, **[{}, {"outside": True}, {"valid": False}][seed % 3])
    dtype, operation = DTYPES[seed % len(DTYPES)], OPERATIONS[int(rng.integers(len(OPERATIONS)))]
    x = host(numbers_of(rng, case.shape, dtype))
    try:
        shape = np.asarray(x)[case.index()].shape
    except IndexError:
        shape = (2,)
    new = numbers_of(rng, shape, dtype)
    index = case.index(hosts(case.numbers)) if seed % 2 else case.index()
    for v in (new, host(new), new.ravel()[:1], 1, 2.5, True, np.float32(1.5), new[None], np.ones(7, dtype)):
        def use(v: Any = v) -> Any:
            return getattr(x.at[index], operation)(v)
        assert_same(long_way(use), outcome(use))


@pytest.mark.parametrize("seed", seeds(120))
def test_every_part_has_the_bits_of_the_long_way(seed: int, long_way: Any) -> None:
    rng = np.random.default_rng(seed)
    case = random_indexing(rng, **[{}, {"outside": True}, {"valid": False}][seed % 3])
    x = host(numbers_of(rng, case.shape, DTYPES[seed % len(DTYPES)]))
    index = case.index(hosts(case.numbers)) if seed % 2 else case.index()
    for use in (lambda: x[index], lambda: x.at[index].get()):
        assert_same(long_way(use), outcome(use))


@pytest.mark.filterwarnings("ignore:.*converted to:FutureWarning")
@pytest.mark.parametrize("seed", seeds(60))
def test_modes_have_the_bits_of_the_long_way(seed: int, long_way: Any) -> None:
    rng = np.random.default_rng(seed)
    case, mode = random_indexing(rng, outside=True), ["clip", "fill", "drop", None][seed % 4]
    x = host(numbers_of(rng, case.shape, DTYPES[seed % len(DTYPES)]))
    index = case.index(hosts(case.numbers)) if seed % 3 else case.index()
    for use in (lambda: x.at[index].get(mode=mode), lambda: x.at[index].set(1, mode=mode),
                lambda: x.at[index].add(1, mode=mode), lambda: x.at[index].max(1, mode=mode)):
        assert_same(long_way(use), outcome(use))


@pytest.mark.parametrize("seed", seeds(24))
def test_what_is_on_a_device_stays_there(seed: int, long_way: Any) -> None:
    rng = np.random.default_rng(seed)
    case, dtype = random_indexing(rng), [np.float64, np.int8, ml_dtypes.bfloat16][seed % 3]
    x = numbers_of(rng, case.shape, dtype)
    x = np.where(np.isfinite(x.astype(float)), x, np.ones((), dtype))  # compilers may tell one NaN from another
    device, index = cj.device_put(x), case.index([cj.device_put(n) for n in case.numbers] if seed % 2 else None)
    device.block_until_ready()
    for use in (lambda x: x[index], lambda x: x.at[index].set(3), lambda x: x.at[index].add(cj.device_put(x.at[index]
                .get()))):
        got = use(device)
        assert not hasattr(got, "_host") or not got.size
        assert_array_equal(np.asarray(long_way(lambda: use(host(x)))), np.asarray(got))  # noqa: B023


def test_a_host_array_at_a_place_computed_on_a_device_is_read_and_written_there() -> None:
    x, i = host(np.arange(3.0)), cj.device_put(np.array([2, 9]))
    for got, expected in ((x[i], [2, 2]), (x.at[i].set(5.0), [0, 1, 5])):
        assert not hasattr(got, "_host")
        assert_array_equal(np.asarray(got), expected)


@pytest.mark.parametrize("put", [host, cj.device_put])
def test_unsigned_indices_beyond_the_signed_ones_never_count_from_the_end(put: Any) -> None:
    x, i = put(np.arange(5.0)), np.array([2**64 - 2], np.uint64)
    for computed in (host(i), cj.device_put(i)):
        assert_array_equal(np.asarray(x[computed]), [4])
        assert_array_equal(np.asarray(x.at[computed].set(9.0)), np.arange(5))
    for static in (i, i[0], [2**64 - 2]):
        for use in (lambda: x[static], lambda: x.at[static].set(9.0)):  # noqa: B023
            with pytest.raises(CorejaxIndexError, match="index 18446744073709551614 is out of bounds"):
                use()


@pytest.mark.parametrize("put", [host, cj.device_put])
def test_the_last_of_several_that_are_set_wins(put: Any) -> None:
    x, v = put(np.zeros(4)), np.arange(1.0, 7.0)
    i = np.array([1, 1, 3, 1, 3, 0])
    assert_array_equal(np.asarray(x.at[i].set(v)), [6, 4, 0, 5])
    assert_array_equal(np.asarray(x.at[i[::-1]].set(v[::-1])), [6, 1, 0, 3])
    two = np.asfortranarray(i.reshape(2, 3))
    assert_array_equal(np.asarray(x.at[two].set(v.reshape(2, 3))), [6, 4, 0, 5])


@pytest.mark.parametrize("index", [(slice(None), [0, 1]), (..., np.array([0, 1])), ([0, 1],), (0, [0, 1]), ([1, 1], 0)])
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 2, 2), (1, 1), (1, 2), (3, 1), (2,), ()], ids=str)
def test_values_of_more_axes_than_the_part_never_reach_numpy(index: Any, shape: tuple[int, ...], long_way: Any) -> None:
    x, v = host(np.arange(12.0).reshape(3, 4)), np.full(shape, 2.0)
    for use in (lambda: x.at[index].add(v), lambda: x.at[index].multiply(host(v)), lambda: x.at[index].set(v)):
        assert_same(long_way(use), outcome(use))


def test_results_are_read_only_and_share_no_memory_with_operands() -> None:
    x, v = host(np.zeros(3)), np.ones(3)
    out = x.at[:].set(v)
    v[0] = 7.0
    assert_array_equal(np.asarray(out), [1, 1, 1])
    assert_array_equal(np.asarray(x), [0, 0, 0])
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(out)[0] = 1.0


def test_overflows_and_invalid_sums_are_silent(recwarn: pytest.WarningsRecorder) -> None:
    x, i = host(np.array([3e38, np.inf], np.float32)), host(np.array([127, 1], np.int8))
    assert np.isinf(np.asarray(x.at[0].add(np.float32(3e38))))[0]
    assert np.isnan(np.asarray(x.at[np.array([1])].add(np.float32(-np.inf))))[1]
    assert_array_equal(np.asarray(i.at[0].add(1)), [-128, 1])
    assert not recwarn.list


def test_weak_types_are_those_of_the_long_way(long_way: Any) -> None:
    weak = cj.lax.full((3,), 1.0)
    assert weak.weak_type
    for v in (2.0, 2, np.float64(2.0), cj.lax.full((), 2.0)):
        for index in (slice(None), 1, np.array([0, 1, 1]), slice(2, 2)):
            for use in (lambda: weak.at[index].set(v), lambda: weak.at[index].add(v), lambda: weak[index]):  # noqa: B023
                assert_same(long_way(use), outcome(use))
    assert weak.at[1].add(2.0).weak_type
    assert not weak.at[1].add(np.float64(2.0)).weak_type


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_subclasses_of_ndarray_take_the_long_way(long_way: Any) -> None:
    x, matrix = host(np.arange(6.0).reshape(2, 3)), np.matrix([[1.0, 2.0, 3.0]])
    masked = np.ma.masked_array([1.0, 2.0, 3.0], [True, False, False])
    for use in (lambda: x.at[0].set(matrix), lambda: x.at[0].set(masked), lambda: x.at[np.matrix([[1]])].set(1.0)):
        assert_same(long_way(use), outcome(use))


def test_tracers_within_an_array_that_is_none_are_transformed() -> None:
    x = host(np.arange(3.0))
    assert_array_equal(np.asarray(cj.jvp(lambda v: x.at[1].set(v), (2.0,), (5.0,))[1]), [0, 5, 0])
    assert_array_equal(np.asarray(cj.grad(lambda v: x.at[np.array([1, 1])].add(v).sum())(2.0)), 2.0)
    assert_array_equal(np.asarray(cj.vmap(lambda i: x.at[i].add(1.0))(np.array([0, 2]))), [[1, 1, 2], [0, 1, 3]])
    assert_array_equal(np.asarray(cj.jit(lambda i: x.at[i].add(1.0))(1)), [0, 2, 2])
    assert len(cj.make_jaxpr(lambda v: x.at[1].set(1.0))(2.0).eqns) <= 2


def test_errors_name_the_line_and_deleted_arrays() -> None:
    x = host(np.arange(3.0))
    with pytest.raises(CorejaxIndexError, match="index 3 is out of bounds") as caught:
        x.at[3].set(1.0)
    assert __file__ in str(caught.value.where)
    with pytest.raises(CorejaxTypeError, match="doesn't broadcast"):
        x.at[:2].add(np.ones(3))
    gone = cj.device_put(np.arange(3.0))
    gone.delete()
    for use in (lambda: gone[1], lambda: gone.at[1].set(1.0)):
        with pytest.raises(CorejaxRuntimeError, match="deleted"):
            use()


@pytest.mark.parametrize("index", ["float0", b"float0", np.str_("float0"), ["float0"], np.array(["float0"]), [0.0]])
def test_names_of_fields_are_no_indices(index: Any, long_way: Any) -> None:
    x = host(np.zeros((3, 2), cj.float0))
    assert_same(long_way(lambda: x[index]), outcome(lambda: x[index]))
    assert isinstance(outcome(lambda: x[index]), CorejaxError)


def test_sums_and_products_of_booleans_are_theirs(long_way: Any) -> None:
    x = host(np.array([True, False]))
    for index in (0, slice(None), np.array([True, False])):
        for operation in ("add", "multiply"):
            def use(index: Any = index, operation: str = operation) -> Any:
                return getattr(x.at[index], operation)(operation == "add")
            assert [operation == "add", type(index) is slice and operation == "add"] == use().tolist()
            assert_same(long_way(use), outcome(use))
