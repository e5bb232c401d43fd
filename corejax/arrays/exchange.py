"""DLPack: memory for other libraries, and of theirs.

An array never changes. The protocol has a flag for memory that is read-only, which consumers don't heed: what torch
makes of it is a tensor that can be written to. So memory of the host, devices that compute there included, is exported
as a copy unless the caller says `copy=False`, and with it that nobody writes. Memory of other devices is exported
itself, as by other libraries: whoever takes it must not write to it. It lives until its last user is gone, even if the
array is deleted.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.arrays import devices
from corejax.arrays.storage import home_of, is_on_device, live, read_only, to_numpy
from corejax.base import _jaxlib, dtypes, elements
from corejax.base.errors import CorejaxError, CorejaxTypeError, CorejaxValueError, kind_of
from corejax.base.source import here

if TYPE_CHECKING:
    from corejax.arrays.array import Array

#: DLPack's codes for kinds of memory.
CPU, CUDA, PINNED = 1, 2, 3


class CorejaxBufferError(CorejaxError, BufferError):
    """Memory that can't be shared as asked for."""


# Exporting

def device_of(array: Array) -> tuple[int, int]:
    """DLPack's codes for the device that an array is on."""
    if not is_on_device(array) or live(array).platform() == "cpu":
        return CPU, 0
    return CUDA, home_of(array).device.local_hardware_id


def to_dlpack(array: Array, stream: object, max_version: tuple[int, int] | None, dl_device: tuple[int, int] | None,
              copy: bool | None) -> Any:
    """A capsule for an array's memory, or for a copy of it."""
    if elements.find(array.aval.dtype) is not None:
        raise _refused(array, "DLPack has no such dtype", "elements of a pack's own", "numbers or booleans",
                       elements.refused(array.aval.dtype, "DLPack").todo or "")
    if dtypes.bits_of(array.aval.dtype) < 8:
        raise _refused(array, "DLPack has no such dtype", f"{dtypes.bits_of(array.aval.dtype)} bits each",
                       "elements of at least a byte", "convert it first: x.astype('int8')")
    kind, number = device_of(array)
    if dl_device is not None and tuple(dl_device) not in ((kind, number), (CPU, 0)):
        raise _refused(array, f"it can't be exported to the DLPack device {tuple(dl_device)}", f"dl_device={dl_device}",
                       f"{(kind, number)}, where it lives, or {(CPU, 0)}, the host", "move it with cj.device_put first")
    if kind != CPU and len(array.devices()) > 1:
        raise _refused(array, "it is divided among several devices", str(array.sharding), "an array on one device",
                       "move it to one with cj.device_put, or export the parts: [s.data for s in x.addressable_shards]")
    if kind != CPU and (dl_device is None or tuple(dl_device) == (kind, number)):
        array.block_until_ready()
        buffer = home_of(array).put_copy(array.aval, to_numpy(array)) if copy else live(array)
        return _jaxlib.buffer_to_dlpack(buffer, stream)
    if stream is not None:
        raise CorejaxValueError("host memory has no streams", got=f"stream={stream!r}"[:80], where=here(),
                                wanted="stream=None", todo="leave it out")
    if copy is False and kind != CPU:
        raise _refused(array, "its memory isn't the host's", f"copy=False, dl_device={dl_device}", "a copy",
                       "allow a copy, or leave out dl_device")
    return _of_host(array, max_version, copy)


def _of_host(array: Array, max_version: tuple[int, int] | None, copy: bool | None) -> Any:
    view, dtype = to_numpy(array), array.aval.dtype
    if dtype == dtypes.float0:
        raise _refused(array, "DLPack has no such dtype", str(array.aval), "numbers or booleans",
                       "make an array of another dtype")
    ours = dtype.isbuiltin != 1  # the small floats, which NumPy doesn't export
    old = max_version is None or tuple(max_version) < (1, 0)  # without the flag
    if copy is False:
        if old or ours:
            raise _refused(array, "without a copy its consumer could write to it",
                           f"copy=False, max_version={max_version}", "max_version=(1, 0), and a dtype of NumPy's own",
                           "allow a copy")
        if any([step < 0 for step in view.strides]):  # other libraries don't support negative strides
            raise _refused(array, "its elements are stored backward", "copy=False", "steps forward", "allow a copy")
        return view.__dlpack__(max_version=max_version)
    if ours:
        home = devices.runtime.home_for(devices.runtime.devices("cpu")[0], array.aval.ndim)
        return _jaxlib.buffer_to_dlpack(home.put_copy(array.aval, view), None)
    own = view.copy()
    return own.__dlpack__() if old else own.__dlpack__(max_version=max_version)


def _refused(array: Array, problem: str, got: str, wanted: str, todo: str) -> CorejaxBufferError:
    return CorejaxBufferError(f"x.__dlpack__: {problem}", got=f"{array.aval}, {got}", wanted=wanted, where=here(),
                              todo=todo)


# Importing

class _Tensor(ctypes.Structure):
    """The beginning of a capsule in version 1 of the protocol."""

    _fields_ = (("data", ctypes.c_void_p), ("kind", ctypes.c_int32), ("number", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64))


class _Memory:
    """The memory of a capsule in a form that NumPy can read. This keeps the capsule, and so the memory, alive."""

    __slots__ = ("__array_interface__", "capsule")

    def __init__(self, capsule: object, tensor: _Tensor) -> None:
        self.capsule = capsule
        size = tensor.bits // 8
        strides = tuple([size * tensor.strides[d] for d in range(tensor.ndim)]) if tensor.strides else None
        self.__array_interface__ = {
            "version": 3, "shape": tuple(tensor.shape[:tensor.ndim]), "typestr": f"<u{size}", "strides": strides,
            "data": (tensor.data + tensor.offset, True)}


#: The small floats, by DLPack's codes.
_SMALL = {4: "bfloat16", 7: "float8_e3m4", 8: "float8_e4m3", 9: "float8_e4m3b11fnuz", 10: "float8_e4m3fn",
          11: "float8_e4m3fnuz", 12: "float8_e5m2", 13: "float8_e5m2fnuz", 14: "float8_e8m0fnu"}

_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)


def from_dlpack(x: object) -> Any:
    """The memory of any object with `__dlpack__`, as a read-only ndarray."""
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise CorejaxTypeError(f"{kind_of(x)} has no __dlpack__", got=f"{x!r:.80}", where=here(),
                               wanted="an array of a library that supports DLPack", todo="use cj.device_put(x)")
    kind, _ = x.__dlpack_device__()
    if kind not in (CPU, PINNED):
        raise CorejaxValueError("from_dlpack takes host memory only", got=f"a DLPack device of kind {int(kind)}",
                                wanted="memory of the host", where=here(), todo="copy it to the host first")
    try:
        return read_only(np.from_dlpack(x).view())
    except (BufferError, RuntimeError, TypeError) as error:
        found = _small_floats(x)
        if found is None:
            raise CorejaxTypeError("from_dlpack can't take this object", got=f"{kind_of(x)}: {error}"[:200],
                                   wanted="an array of a dtype that corejax has", where=here(),
                                   todo="convert it first, or detach it from what records it") from error
        return found


def _small_floats(x: Any) -> Any:
    """An array of a dtype that NumPy doesn't import, if it is one of ours."""
    try:
        capsule = x.__dlpack__()
        tensor = _Tensor.from_address(_pointer_of(capsule, b"dltensor"))
        dtype = dtypes.canonical(_SMALL[tensor.code])
    except Exception:  # whatever went wrong, NumPy's error is used
        return None
    if 0 in tensor.shape[:tensor.ndim]:
        return np.empty(tuple(tensor.shape[:tensor.ndim]), dtype)
    return np.asarray(_Memory(capsule, tensor)).view(dtype)
