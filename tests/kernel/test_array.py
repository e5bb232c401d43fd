"""`Array`: what it is, where it lives, what it becomes."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import weakref

import ml_dtypes
import numpy as np
import pytest
from xla_toys import Build, mul

from corejax.arrays.array import Array, as_array, device_get, device_put, from_dlpack
from corejax.arrays.storage import is_on_device, to_numpy
from corejax.base import dtypes
from corejax.base.avals import ShapedArray
from corejax.errors import CorejaxError
from corejax.xla.cache.compile import compile_jaxpr

DTYPES = [np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.float16,
          np.float32, np.float64, np.complex64, np.complex128, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn]


@pytest.fixture(params=["host", "device"])
def place(request):
    return (lambda x: as_array(x, copy=True)) if request.param == "host" else device_put


def test_as_array_keeps_the_value_and_the_type_of_whatever_is_an_array():
    for value, expected in ((True, "~bool[]"), (1, "~i64[]"), (1.5, "~f64[]"), (1j, "~c128[]"),
                            (np.float32(1), "f32[]"), (np.zeros((2, 3), np.int8), "i8[2,3]"),
                            (ml_dtypes.bfloat16(2), "bf16[]")):
        array = as_array(value, copy=False)
        assert expected == str(array.aval)
        assert value == array.tolist() if array.ndim == 0 else True


def test_big_endian_data_is_turned_round():
    array = as_array(np.arange(3, dtype=">f4"), copy=False)
    assert [0.0, 1.0, 2.0] == array.tolist()
    assert np.asarray(device_put(array)).dtype.isnative
    assert [0.0, 1.0, 2.0] == device_put(np.arange(3, dtype=">f4")).tolist()


@pytest.mark.parametrize("value", ["text", b"bytes", None, object(), [1, 2], np.array(["a"]), np.array([object()]),
                                   np.array("2020-01-01", "M8[D]"), np.zeros(2, np.longdouble)])
def test_what_is_no_array_is_refused(value):
    with pytest.raises(CorejaxError) as info:
        as_array(value, copy=False)
    assert isinstance(info.value, TypeError)


def test_masked_array_is_refused_because_it_would_lose_its_mask():
    with pytest.raises(TypeError, match="mask"):
        as_array(np.ma.array([1, 2], mask=[True, False]), copy=False)


def test_python_integer_out_of_range_is_an_overflow():
    with pytest.raises(OverflowError, match="doesn't fit i64"):
        as_array(2**70, copy=False)


def test_copy_decides_whether_memory_is_shared():
    raw = np.arange(3.0)
    shared, own = as_array(raw, copy=False), as_array(raw, copy=True)
    raw[0] = 9
    assert [9.0, 1.0, 2.0] == shared.tolist()
    assert [0.0, 1.0, 2.0] == own.tolist()


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 3)], ids=str)
def test_every_dtype_travels_to_the_device_and_back(dtype, shape):
    host = (np.arange(np.prod(shape, dtype=int)).reshape(shape) + 1).astype(dtype)
    array = device_put(host)
    assert is_on_device(array)
    assert host.dtype == np.asarray(array).dtype
    np.testing.assert_array_equal(host, device_get(array))


def test_strided_and_read_only_data_travel():
    base = np.arange(12.0).reshape(3, 4)
    for host in (base.T, base[::-1, ::2], np.broadcast_to(np.float64(3), (2, 2))):
        np.testing.assert_array_equal(host, device_put(host))


def test_device_put_of_a_raw_ndarray_does_not_see_later_writes():
    raw = np.empty(1024 + 8)
    raw = raw[(-raw.ctypes.data % 64) // 8:][:1024]
    raw[:] = 1
    array = device_put(raw)
    raw[:] = 2
    assert 1024.0 == np.asarray(array).sum()


def test_shape_dtype_and_sizes(place):
    x = place(np.zeros((2, 3), np.float32))
    assert ((2, 3), np.float32, 2, 6, False, 24, 4) == (
        x.shape, x.dtype, x.ndim, x.size, x.weak_type, x.nbytes, x.itemsize)
    assert 2 == len(x)


def test_numpy_sees_a_read_only_view(place):
    x = place(np.arange(4.0))
    view = np.asarray(x)
    assert not view.flags.writeable
    assert np.shares_memory(view, np.asarray(x))
    assert np.array(x).flags.writeable
    assert np.float32 == np.asarray(x, np.float32).dtype
    with pytest.raises(ValueError, match="change of dtype needs a copy"):
        np.asarray(x, np.float32, copy=False)


def test_numpy_functions_take_arrays(place):
    np.testing.assert_allclose(np.sin(np.arange(3.0)), np.sin(place(np.arange(3.0))))


def test_a_view_outlives_its_array(place):
    view = np.asarray(place(np.arange(1000.0)))
    assert 499500.0 == view.sum()


def test_dlpack_shares_memory_only_if_asked_to_and_read_only(place):
    x = place(np.arange(4.0))
    out = np.from_dlpack(x)
    out[0] = 9.0
    assert [0.0, 1.0, 2.0, 3.0] == x.tolist()
    assert (1, 0) == x.__dlpack_device__()
    if np.__version__ >= "2.1":  # older versions have no `copy`
        shared = np.from_dlpack(x, copy=False)
        assert np.shares_memory(shared, np.asarray(x)) and not shared.flags.writeable


def test_dlpack_of_the_first_version_gets_a_copy_of_its_own(place):
    class Old:
        def __init__(self, x):
            self.x = x

        def __dlpack__(self, stream=None):
            return self.x.__dlpack__(stream=stream)

        def __dlpack_device__(self):
            return self.x.__dlpack_device__()

    x = place(np.arange(4.0))
    out = np.from_dlpack(Old(x))
    assert not np.shares_memory(out, np.asarray(x))
    np.testing.assert_array_equal(np.asarray(x), out)


@pytest.mark.parametrize("value", [np.array([0.926, -1.428]), np.array([[1 + 1j]]), np.array([1], "i4")], ids=str)
def test_dtypes_that_were_pickled_become_numpys_own(value):
    sent = pickle.loads(pickle.dumps(value))
    assert 0 == sent.dtype.isbuiltin
    unpickled = pickle.loads(pickle.dumps(as_array(value, copy=True)))
    for array in (as_array(sent, copy=True), as_array(sent, copy=False), unpickled):
        assert array.dtype is array._host.dtype is value.dtype
        np.testing.assert_array_equal(value, array)


def test_memory_of_a_file_is_copied_where_it_outlives_the_call(tmp_path):
    mapped = np.memmap(tmp_path / "numbers", dtype="f8", mode="w+", shape=(2,))
    copied, shared = as_array(mapped, copy=True), as_array(mapped, copy=False)
    mapped[:] = 3.0
    assert [0.0, 0.0] == copied.tolist()
    assert [3.0, 3.0] == shared.tolist()


def test_from_dlpack_shares_the_memory_of_its_source():
    raw = np.arange(4.0)
    assert np.shares_memory(raw, np.asarray(from_dlpack(raw)))
    with pytest.raises(TypeError, match="no __dlpack__"):
        from_dlpack([1, 2])


def test_representation_shows_value_dtype_and_weakness(place):
    assert "Array([1., 2.], dtype=float32)" == repr(place(np.array([1, 2], np.float32)))
    assert "Array(2.0, dtype=float64, weak_type=True)" == repr(as_array(2.0, copy=False)).replace("2.,", "2.0,")
    assert "[1. 2.]" == str(place(np.array([1, 2], np.float32)))
    assert "2.50" == f"{place(np.float64(2.5)):.2f}"


def test_scalars_convert_to_python(place):
    x = place(np.int32(3))
    assert (3, 3.0, 3 + 0j, True, 3) == (int(x), float(x), complex(x), bool(x), x.item())
    assert "d" == "abcdef"[x]
    assert [[1, 2]] == place(np.array([[1, 2]])).tolist()
    assert 2 == place(np.array([[1, 2]])).item(1)


@pytest.mark.parametrize("convert, kind, text", [
    (bool, ValueError, "one element"), (int, TypeError, "one element"), (float, TypeError, "one element"),
    (lambda x: [0, 1][x], TypeError, "integer scalar"), (lambda x: x.item(), ValueError, "one element"),
    (lambda x: hash(x), TypeError, "can't be hashed")])
def test_conversions_that_have_no_meaning_are_refused(place, convert, kind, text):
    with pytest.raises(kind, match=text) as info:
        convert(place(np.zeros(2)))
    assert isinstance(info.value, CorejaxError)


def test_float_scalar_is_no_index(place):
    with pytest.raises(TypeError, match="integer scalar"):
        [0, 1][place(np.float64(1))]


def test_scalar_has_neither_length_nor_iterator(place):
    with pytest.raises(TypeError, match="no length"):
        len(place(np.float64(1)))
    with pytest.raises(TypeError, match="iterated"):
        iter(place(np.float64(1)))


def test_iteration_gives_arrays():
    rows = list(as_array(np.arange(4.0).reshape(2, 2), copy=True))
    assert [[0.0, 1.0], [2.0, 3.0]] == [row.tolist() for row in rows]
    assert all(type(row) is Array for row in rows)


def test_pickle_and_copies_keep_value_and_type(place):
    for host in (np.arange(3.0), np.ones(2, ml_dtypes.bfloat16)):
        x = place(host)
        again = pickle.loads(pickle.dumps(x))
        assert x.aval is again.aval
        np.testing.assert_array_equal(host, again)
    assert as_array(1.0, copy=True).aval is pickle.loads(pickle.dumps(as_array(1.0, copy=True))).aval
    assert copy.copy(x) is x


def test_a_deep_copy_lives_on_when_the_original_is_deleted(place):
    for host in (np.arange(3.0), np.ones(2, ml_dtypes.bfloat16), np.float32(2.5), np.zeros((0, 3), np.int8)):
        x = place(host)
        twin, again = copy.deepcopy([x, x])
        assert twin is again is not x
        assert (x.aval, is_on_device(x)) == (twin.aval, is_on_device(twin))
        x.delete()
        np.testing.assert_array_equal(host, twin)
        with pytest.raises(CorejaxError, match="deleted"):
            copy.deepcopy(x)


def test_weak_references_work(place):
    x = place(np.zeros(2))
    ref = weakref.ref(x)
    assert ref() is x
    del x
    assert ref() is None


def test_arrays_are_immutable(place):
    x = place(np.zeros(2))
    with pytest.raises(TypeError, match=r"\.at\["):
        x[0] = 1
    with pytest.raises(AttributeError):
        x.shape = (1, 2)
    with pytest.raises(AttributeError):
        x.anything = 1


def test_class_is_no_constructor():
    with pytest.raises(TypeError, match="can't be made by calling"):
        Array(np.zeros(2))


def test_deleted_arrays_say_so(place):
    x = place(np.zeros(2))
    assert not x.is_deleted()
    x.delete()
    x.delete()
    assert x.is_deleted()
    assert "Array(deleted, f64[2])" == repr(x)
    for use in (np.asarray, lambda x: x.tolist(), device_put, lambda x: x.block_until_ready()):
        with pytest.raises(CorejaxError, match="deleted"):
            use(x)


def test_ready_and_devices(place):
    x = place(np.zeros(2))
    assert x.block_until_ready() is x
    assert x.is_ready()
    assert {x.device} == x.devices()
    assert "cpu" == x.device.platform


def test_float0_stays_on_the_host():
    zero = np.zeros((2,), dtypes.float0)
    array = Array.from_host(zero, ShapedArray((2,), dtypes.float0))
    assert device_put(array) is array
    assert "float0" in repr(array)


def test_unknown_device_is_refused():
    with pytest.raises(ValueError, match="not a device"):
        device_put(np.zeros(2), "abacus")


def test_rank_0_storage_may_be_a_numpy_scalar():
    x = Array.from_host(np.float64(2.5), ShapedArray((), np.float64))
    assert isinstance(np.asarray(x), np.ndarray)
    assert 2.5 == float(device_put(x))
    assert "Array(2.5, dtype=float64)" == repr(x)


def test_host_arrays_need_no_jaxlib():
    program = ("import sys, numpy as np; from corejax.arrays.array import as_array;"
               "x = as_array(np.arange(3.), copy=True);"
               "repr(x), np.asarray(x), list(x), x.tolist();"
               "assert not [m for m in sys.modules if m.startswith(('jax', 'pluggy'))], sys.modules.keys()")
    subprocess.run([sys.executable, "-c", program], check=True)


def test_to_numpy_shares_device_memory():
    x = device_put(np.arange(100.0))
    assert np.shares_memory(to_numpy(x), to_numpy(x))


@pytest.mark.parametrize("dtype", [np.float64, ml_dtypes.bfloat16])
def test_a_view_keeps_its_memory_when_the_array_is_donated_or_deleted(dtype):
    aval = ShapedArray((1 << 12,), dtype)
    b = Build(aval)
    e = compile_jaxpr(b.returns(b(mul, b.invars[0], np.array(3, dtype))), donated=(0,))
    donated, deleted = (device_put(np.ones(1 << 12, dtype)) for _ in range(2))
    views = np.asarray(donated), np.asarray(deleted)
    assert 3 == float(np.asarray(e([donated])[0])[0])
    deleted.delete()
    for _ in range(20):
        device_put(np.zeros(1 << 12, dtype)).block_until_ready()
    for view in views:
        np.testing.assert_array_equal(np.ones(1 << 12, dtype), view)
