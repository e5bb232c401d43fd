"""Native functions without a compiler: handlers of XLA's FFI that are Python functions behind C function pointers."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import jaxlib
import numpy as np

_HEADER = (Path(jaxlib.__file__).parent / "include/xla/ffi/api/c_api.h").read_text()
_VERSION = [int(re.search(rf"#define XLA_FFI_API_{part} (\d+)", _HEADER)[1]) for part in ("MAJOR", "MINOR")]  # type: ignore[index]

_size, _pointer = ctypes.c_size_t, ctypes.c_void_p


class _Metadata(ctypes.Structure):
    _fields_ = [("size", _size), ("version_size", _size), ("extension", _pointer), ("major", ctypes.c_int),
                ("minor", ctypes.c_int), ("traits", ctypes.c_uint32), ("state", ctypes.c_int64)]


class _Extension(ctypes.Structure):
    _fields_ = [("size", _size), ("kind", ctypes.c_int), ("next", _pointer), ("metadata", ctypes.POINTER(_Metadata))]


class _Buffer(ctypes.Structure):
    _fields_ = [("size", _size), ("extension", _pointer), ("dtype", ctypes.c_int), ("data", _pointer),
                ("rank", ctypes.c_int64), ("dims", ctypes.POINTER(ctypes.c_int64))]

    def array(self) -> Any:
        shape = tuple(self.dims[: self.rank])
        return np.ctypeslib.as_array(ctypes.cast(self.data, ctypes.POINTER(ctypes.c_double)), shape)


class _Buffers(ctypes.Structure):
    _fields_ = [("size", _size), ("extension", _pointer), ("count", ctypes.c_int64), ("kinds", _pointer),
                ("buffers", ctypes.POINTER(ctypes.POINTER(_Buffer)))]


class _Frame(ctypes.Structure):
    _fields_ = [("size", _size), ("extension", ctypes.POINTER(_Extension)), ("api", _pointer), ("context", _pointer),
                ("stage", ctypes.c_int), ("operands", _Buffers), ("results", _Buffers)]


_Handler = ctypes.CFUNCTYPE(_pointer, ctypes.POINTER(_Frame))
_kept: list[Any] = []

_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, (_pointer, ctypes.c_char_p, _pointer)


def times(factor: float, name: bytes | None = b"xla._CUSTOM_CALL_TARGET") -> Any:
    """A capsule, called `name`, of a function that multiplies a float64 array by a number."""
    def call(frame: Any) -> None:
        asked = frame[0].extension
        if asked:  # what version of the interface it was made for
            asked[0].metadata[0].major, asked[0].metadata[0].minor = _VERSION
        else:
            result = frame[0].results.buffers[0][0].array()
            result[...] = frame[0].operands.buffers[0][0].array() * factor

    handler = _Handler(call)
    _kept.extend((handler, name))
    return _new(ctypes.cast(handler, _pointer), name, None)
