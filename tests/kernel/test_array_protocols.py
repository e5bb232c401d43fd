"""`Array` beside other libraries: DLPack, pickles, NumPy's protocols, IPython; what has no memory; many threads."""

from __future__ import annotations

import collections
import copy
import ctypes
import gc
import pickle
import re
import threading
import weakref

import ml_dtypes
import numpy as np
import pytest

from corejax.arrays.array import Array, as_array, device_put, from_dlpack
from corejax.arrays.storage import is_on_device, to_numpy
from corejax.base import dtypes
from corejax.base.avals import ShapedArray
from corejax.errors import CorejaxError
from corejax.installed.roles import provide
from corejax.interpreters.staging import stage

SMALL = [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
PLAIN = [np.bool_, np.int8, np.uint16, np.int32, np.uint64, np.float16, np.float64, np.complex64]
VALUES = {"": np.float64(2.5), "3": np.arange(3.0), "2,0": np.zeros((2, 0), np.int8), "T": np.arange(6).reshape(2, 3).T,
          "backward": np.arange(8.0)[::-2], "spread": np.broadcast_to(np.float32(3), (2, 2)),
          "inner": np.arange(24).reshape(2, 3, 4)[:, 1:, ::2]}


@pytest.fixture(params=["host", "device"])
def place(request):
    return (lambda x: as_array(x, copy=False)) if request.param == "host" else device_put


class Consumer:
    """Hands out what an array exports, asked for in one way, and remembers how it was asked."""

    def __init__(self, x, **keywords):
        self.x, self.keywords = x, keywords

    def __dlpack__(self, **_):
        return self.x.__dlpack__(**self.keywords)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


# DLPack, out

@pytest.mark.parametrize("dtype", PLAIN, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 3)], ids=str)
def test_numpy_takes_every_dtype_of_its_own(place, dtype, shape):
    host = (np.arange(np.prod(shape, dtype=int)).reshape(shape) + 1).astype(dtype)
    x = place(host)
    for shared, keywords in ((False, {}), (True, {"copy": False})):
        out = np.from_dlpack(Consumer(x, max_version=(1, 0), **keywords))
        np.testing.assert_array_equal(host, out)
        assert (host.dtype, not shared) == (out.dtype, out.flags.writeable)
        assert shared == np.may_share_memory(out, to_numpy(x)) or not out.size or not out.ndim


@pytest.mark.parametrize("name", VALUES)
def test_memory_of_any_layout_is_exported(place, name):
    x = place(VALUES[name])
    for keywords in ({}, {"max_version": (1, 0)}, {"max_version": (1, 3), "dl_device": (1, 0)}, {"copy": True},
                     {"max_version": (0, 8)}, {"max_version": (1, 0), "copy": True}):
        np.testing.assert_array_equal(VALUES[name], np.from_dlpack(Consumer(x, **keywords)))


def test_what_may_be_written_to_is_a_copy(place):
    x = place(np.arange(4.0))
    for keywords in ({}, {"max_version": (0, 8)}, {"max_version": (1, 0)}, {"max_version": (1, 0), "copy": True},
                     {"max_version": (1, 1), "dl_device": (1, 0), "copy": None}):
        out = np.from_dlpack(Consumer(x, **keywords))
        assert not np.shares_memory(out, to_numpy(x))
    shared = np.from_dlpack(Consumer(x, max_version=(1, 0), copy=False))
    assert np.shares_memory(shared, to_numpy(x))
    assert not shared.flags.writeable


def written_to(capsule, name):
    """Write to memory as torch does, which asks for version 1.0 and doesn't look at the flags."""
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    start = pointer_of(capsule, name)
    if name == b"dltensor_versioned":  # version, manager_ctx, deleter, flags
        start += 8 + 8 + 8 + 8
    ctypes.memset(ctypes.c_void_p.from_address(start).value, 0xFF, 8)


@pytest.mark.parametrize("keywords", [
    {}, {"max_version": (1, 0)}, {"max_version": (1, 0), "dl_device": (1, 0), "copy": None},
    {"max_version": (1, 0), "copy": True}])
@pytest.mark.parametrize("dtype", [np.float64, np.int32, ml_dtypes.bfloat16])
def test_consumers_that_write_whatever_the_flags_say_change_no_array(place, dtype, keywords):
    host = np.arange(1.0, 9.0).astype(dtype)
    x = place(host.copy())
    parts = [x, *x.addressable_shards[:1]]
    before = np.asarray(x).copy()
    for each in (x, parts[1].data):
        capsule = each.__dlpack__(**keywords)
        versioned = "max_version" in keywords and dtype is not ml_dtypes.bfloat16
        written_to(capsule, b"dltensor_versioned" if versioned else b"dltensor")
    np.testing.assert_array_equal(before, np.asarray(x))
    np.testing.assert_array_equal(host, np.asarray(x))


def test_protocols_of_numpy_make_no_copies_and_their_memory_cannot_be_written_to(place):
    x = place(as_array(np.arange(4.0), copy=True))
    for view in (np.asarray(x), np.array(x, copy=False), np.asarray(memoryview(np.asarray(x)))):
        assert np.shares_memory(view, to_numpy(x))
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 9.0
        with pytest.raises(ValueError, match="WRITEABLE"):
            view.flags.writeable = True


def test_exports_that_would_break_a_promise_are_buffer_errors(place):
    x = place(np.arange(4.0))
    for keywords, text in (({"copy": False}, "could write"), ({"copy": False, "max_version": (0, 8)}, "could write"),
                           ({"dl_device": (2, 0)}, "DLPack device"), ({"dl_device": (1, 1)}, "DLPack device")):
        with pytest.raises(BufferError, match=text) as info:
            x.__dlpack__(**keywords)
        assert isinstance(info.value, CorejaxError)
        assert None not in (info.value.got, info.value.wanted, info.value.where, info.value.todo)
    with pytest.raises(ValueError, match="no streams"):
        x.__dlpack__(stream=1, max_version=(1, 0))
    with pytest.raises(BufferError, match="no such dtype"):
        Array.from_host(np.zeros(2, dtypes.float0), ShapedArray((2,), dtypes.float0)).__dlpack__(max_version=(1, 0))
    backward = Array.from_host(np.arange(4.0)[::-1], ShapedArray((4,), np.float64))
    with pytest.raises(BufferError, match="backward"):
        backward.__dlpack__(max_version=(1, 0), copy=False)


@pytest.mark.parametrize("dtype", SMALL, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 2)], ids=str)
def test_small_floats_go_out_and_come_back(place, dtype, shape):
    host = np.ones(shape, dtype)
    back = from_dlpack(Consumer(place(host)))
    assert (host.dtype, host.shape) == (back.dtype, back.shape)
    np.testing.assert_array_equal(host, back)
    with pytest.raises(BufferError, match="could write"):
        place(host).__dlpack__(max_version=(1, 0), copy=False)


def test_exported_memory_outlives_the_array_in_any_order_of_letting_go(place):
    for dtype in (np.float64, ml_dtypes.bfloat16):
        expected = np.arange(1000).astype(dtype)
        x = place(expected.copy())
        ref = weakref.ref(x)
        shared = {"max_version": (1, 0), "copy": False}
        held = [Consumer(x, **shared) if dtype is np.float64 else Consumer(x) for _ in range(2)]
        first, second = [from_dlpack(c) for c in held]
        del held
        x.delete()
        del x
        gc.collect()
        assert ref() is None
        np.testing.assert_array_equal(expected, first)
        view = np.asarray(first)
        del first
        gc.collect()
        for _ in range(5):
            device_put(np.zeros(1000, dtype)).block_until_ready()
        np.testing.assert_array_equal(expected, view)
        np.testing.assert_array_equal(expected, second)


def test_a_capsule_that_nobody_takes_is_let_go():
    class Memory(np.ndarray):
        pass

    raw = Memory((1000,))
    ref = weakref.ref(raw)
    x = Array.from_host(raw, ShapedArray((1000,), np.float64))
    capsule = x.__dlpack__(max_version=(1, 0), copy=False)
    del x, raw
    gc.collect()
    assert ref() is not None
    del capsule
    gc.collect()
    assert ref() is None


# DLPack, in

def test_what_comes_in_shares_memory_keeps_it_alive_and_is_not_written_to():
    raw = np.arange(4.0)
    x = from_dlpack(raw)
    view = np.asarray(x)
    assert np.shares_memory(raw, view)
    assert not view.flags.writeable
    assert not np.from_dlpack(Consumer(x, max_version=(1, 0), copy=False)).flags.writeable
    assert raw.flags.writeable
    del raw
    gc.collect()
    assert [0.0, 1.0, 2.0, 3.0] == x.tolist()
    assert from_dlpack(x) is x


@pytest.mark.parametrize("name", VALUES)
def test_memory_of_any_layout_comes_in(name):
    np.testing.assert_array_equal(VALUES[name], from_dlpack(np.asarray(VALUES[name])))


def test_what_is_no_array_of_the_host_is_refused():
    class Elsewhere:
        def __dlpack__(self, **_):
            raise AssertionError("nobody may ask")

        def __dlpack_device__(self):
            return 2, 0

    class Broken:
        def __dlpack__(self, **_):
            raise BufferError("it asks for gradients")

        def __dlpack_device__(self):
            return 1, 0

    for value, text in ((Elsewhere(), "memory of the host"), (Broken(), "can't take"), ([1.0], "no __dlpack__")):
        with pytest.raises(CorejaxError, match=text) as info:
            from_dlpack(value)
        assert None not in (info.value.got, info.value.wanted, info.value.where, info.value.todo)


def test_torch_gets_copies_and_its_tensors_are_shared(place):
    torch = pytest.importorskip("torch")
    for dtype in (np.float32, np.int64, np.bool_, np.complex64, ml_dtypes.bfloat16):
        host = np.arange(6).reshape(2, 3).astype(dtype)
        x = place(host)
        tensor = torch.from_dlpack(x)
        assert (tuple(host.shape), x.tolist()) == (tuple(tensor.shape), tensor.tolist())
        tensor.zero_()
        np.testing.assert_array_equal(host, np.asarray(x))
        tensor = torch.from_dlpack(x)
        back = from_dlpack(tensor)
        assert (host.dtype, tensor.data_ptr()) == (back.dtype, to_numpy(back).ctypes.data)
        strided = torch.arange(12).reshape(3, 4).to(tensor.dtype).T[1:]
        np.testing.assert_array_equal(np.array(strided.tolist()), np.asarray(from_dlpack(strided)).astype(complex))
        del tensor, x
        gc.collect()
        np.testing.assert_array_equal(host, back)
    np.testing.assert_array_equal([3, 2, 1, 0], torch.from_dlpack(as_array(np.arange(4)[::-1], copy=False)))
    with pytest.raises(TypeError, match="can't take this object"):
        from_dlpack(torch.ones(2, requires_grad=True))


# Pickles and copies

@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("name", VALUES)
def test_pickles_of_any_layout_and_protocol(place, name, protocol):
    x = place(VALUES[name])
    again = pickle.loads(pickle.dumps(x, protocol))
    assert (Array, x.aval) == (type(again), again.aval)
    np.testing.assert_array_equal(VALUES[name], again)


@pytest.mark.parametrize("dtype", [*PLAIN, *SMALL], ids=lambda d: np.dtype(d).name)
def test_pickles_of_any_dtype_weak_or_not(dtype):
    for shape in ((), (2,), (0,)):
        for weak in (False, True):
            x = Array.from_host(np.ones(shape, dtype), ShapedArray(shape, dtype, weak))
            for again in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
                assert x.aval is again.aval
                np.testing.assert_array_equal(np.ones(shape, dtype), again)


def test_pickles_beside_other_data_and_by_buffers_out_of_band():
    x, buffers = as_array(np.arange(1000.0), copy=True), []
    data = pickle.dumps({"x": x, "again": x}, 5, buffer_callback=buffers.append)
    assert len(data) < 1000 and len(buffers) == 1
    back = pickle.loads(data, buffers=buffers)
    assert back["x"] is back["again"]
    np.testing.assert_array_equal(x, back["x"])


# NumPy's protocols

def test_functions_of_numpy_take_arrays_and_give_ndarrays(place):
    x, raw = place(np.arange(3.0)), np.arange(3.0)
    assert type(np.sin(x)) is np.ndarray
    assert type(np.add(raw, x)) is np.ndarray
    np.testing.assert_array_equal([0, 1, 2, 0, 1, 2], np.concatenate([x, x]))
    np.testing.assert_array_equal(np.array([raw, raw]), np.array([x, x]))
    assert np.asarray(x, copy=True).flags.writeable
    assert object == np.asarray(x, object).dtype
    np.testing.assert_array_equal([0, 2, 4], np.add(raw, x, out=raw))


def test_arrays_are_no_keys_and_no_members_of_sets(place):
    x = place(np.arange(3.0))
    for use in (hash, lambda x: {x}, lambda x: {x: 1}, lambda x: collections.Counter([x])):
        with pytest.raises(TypeError, match="can't be hashed"):
            use(x)
    assert 1 == len({id(x)})
    assert x in weakref.WeakValueDictionary(x=x).values()  # found by identity


def test_ipython_shows_all_lines_and_indents_them(place):
    class Printer:
        def __init__(self):
            self.parts = []

        def text(self, text):
            self.parts.append(text)

        def break_(self):
            self.parts.append("BREAK")

    printer = Printer()
    place(np.zeros((2, 2)))._repr_pretty_(printer, False)
    assert ["Array([[0., 0.],", "BREAK", "       [0., 0.]], dtype=float64)"] == printer.parts
    for name in ("_repr_html_", "_repr_png_", "_ipython_display_", "_ipython_canary_method_should_not_exist_"):
        assert not hasattr(place(np.zeros(2)), name)


def test_attributes_of_the_array_standard(place):
    x = place(np.zeros((2, 3), np.float32))
    for name in ("dtype", "device", "ndim", "shape", "size", "__dlpack__", "__dlpack_device__", "to_device"):
        assert getattr(x, name) is not None
    moved = x.to_device(x.device)
    assert is_on_device(moved)
    np.testing.assert_array_equal(x, moved)
    with pytest.raises(ValueError, match="streams"):
        x.to_device(x.device, stream=1)
    with pytest.raises(ValueError, match="not a device"):
        x.to_device("abacus")


def test_a_pack_provides_the_functions_of_the_array_standard(place):
    def look(x):
        assert (np, None) == x.__array_namespace__()
        assert (np, "2024.12") == x.__array_namespace__(api_version="2024.12")
        return [x]

    x = place(np.zeros((2, 3), np.float32))
    with provide(array_namespace=lambda api_version: (np, api_version)):
        look(x)
        stage(look, [x.aval])


def test_without_that_pack_the_error_names_what_brings_it(place):
    x = place(np.zeros(2))
    with pytest.raises(NotImplementedError, match="array_namespace") as info:
        x.__array_namespace__()
    assert re.search(r"corejax(\[std\]|-numpy)", info.value.todo)  # or what excludes it


# What has no memory

def used(x):
    """Every way to use an array's value, by name."""
    return {
        "asarray": lambda: np.asarray(x), "array": lambda: np.array(x), "copy": lambda: copy.deepcopy(x),
        "pickle": lambda: pickle.dumps(x), "dlpack": lambda: np.from_dlpack(x), "tolist": x.tolist, "item": x.item,
        "item at": lambda: x.item(0), "float": lambda: float(x), "int": lambda: int(x), "bool": lambda: bool(x),
        "complex": lambda: complex(x), "format": lambda: f"{x:.2f}", "put": lambda: device_put(x),
        "sin": lambda: np.sin(x), "dlpack in": lambda: from_dlpack(Consumer(x))}


@pytest.mark.parametrize("name", used(as_array(1.0, copy=True)))
def test_deleted_arrays_are_refused_wherever_their_value_is_needed(place, name):
    x = place(np.float64(3.0))
    used(x)[name]()
    x.delete()
    with pytest.raises(CorejaxError, match="deleted") as info:
        used(x)[name]()
    assert None not in (info.value.got, info.value.wanted, info.value.where, info.value.todo)


def test_deleted_arrays_still_have_a_type(place):
    x = place(np.zeros((2, 3), np.float32))
    x.delete()
    assert ((2, 3), np.float32, 2, 6, 24, 4, 2, False) == (
        x.shape, x.dtype, x.ndim, x.size, x.nbytes, x.itemsize, len(x), x.weak_type)
    assert "Array(deleted, f32[2,3])" == repr(x) == str(x)
    with pytest.raises(CorejaxError, match="deleted"):
        iter(x)
    with pytest.raises(TypeError, match="can't be hashed"):
        hash(x)
    for ask in (lambda: x.device, x.devices, x.is_ready, x.block_until_ready, x.__dlpack_device__):
        with pytest.raises(CorejaxError, match="deleted"):
            ask()
    assert weakref.ref(x)() is x


def test_traced_values_have_a_type_and_no_memory():
    def look(x):
        assert ((2, 3), np.float32, 2, 6, 24, 4, 2) == (
            x.shape, x.dtype, x.ndim, x.size, x.nbytes, x.itemsize, len(x))
        assert copy.copy(x) is x and copy.deepcopy(x) is x and copy.deepcopy([x])[0] is x
        for name in ("device", "devices", "to_device", "is_ready", "block_until_ready", "delete", "is_deleted",
                     "__dlpack__", "__dlpack_device__"):
            assert not hasattr(x, name)
            with pytest.raises(AttributeError, match=f"a traced value has no '{name}'") as info:
                getattr(x, name)
            assert "f32[2,3]" in info.value.got
        uses = used(x)
        for name in ("asarray", "array", "tolist", "item", "sin", "pickle", "float", "int", "bool", "complex", "put",
                     "format"):
            with pytest.raises((CorejaxError, TypeError)) as info:
                uses[name]()
        with pytest.raises(TypeError, match="can't be hashed"):
            hash(x)
        assert weakref.ref(x)() is x
        return [x]

    stage(look, [ShapedArray((2, 3), np.float32)])


# Elements and rows

@pytest.mark.parametrize("dtype", [*PLAIN, *SMALL], ids=lambda d: np.dtype(d).name)
def test_rows_are_arrays_where_the_array_is(place, dtype):
    for host in (np.arange(6).reshape(2, 3).astype(dtype), np.ones(3, dtype), np.ones((2, 0), dtype), np.ones((0, 2))):
        x = place(host)
        rows = list(x)
        assert len(host) == len(rows)
        for row, expected in zip(rows, host, strict=True):
            assert (Array, is_on_device(x), x.dtype, expected.shape) == (
                type(row), is_on_device(row), row.dtype, row.shape)
            np.testing.assert_array_equal(expected, row)


def test_rows_of_weak_arrays_are_weak():
    x = Array.from_host(np.ones(2), ShapedArray((2,), np.float64, True))
    assert [True, True] == [row.weak_type for row in x]


# Many threads

def test_many_threads_read_while_one_deletes(place):
    wrong = []

    def read(arrays):
        for x in arrays:
            for use in (np.asarray, lambda x: x.tolist(), repr, list, copy.deepcopy, pickle.dumps, np.from_dlpack):
                try:
                    use(x)
                except CorejaxError as error:
                    if "deleted" not in str(error):
                        wrong.append(error)
                except BaseException as error:
                    wrong.append(error)

    arrays = [place(np.arange(5.0)) for _ in range(60)]
    threads = [threading.Thread(target=read, args=(arrays,)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for x in arrays:
        x.delete()
    for thread in threads:
        thread.join()
    assert [] == wrong
