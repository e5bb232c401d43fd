"""Where an array's value is kept, and how to read it: what `Array` and the compile path know of its two slots.

`_host` holds an ndarray (or, of rank 0, perhaps a NumPy scalar), `_buffer` a buffer of the runtime; one is unset.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax import _jaxlib
from corejax.errors import CorejaxError, CorejaxRuntimeError, CorejaxTypeError, CorejaxValueError
from corejax.source import here
from corejax.xla import client

#: DLPack's numbers for kinds of memory.
DLPACK_CPU, DLPACK_CUDA, DLPACK_PINNED = 1, 2, 3


class _Deleted:
    """Stands in for the buffer of an array that was deleted."""

    def is_deleted(self) -> bool:
        return True


DELETED = _Deleted()


def is_on_device(array: Any) -> bool:
    """Is its storage a buffer of the runtime?"""
    return not hasattr(array, "_host")


def live(array: Any) -> Any:
    """Its buffer, unless it was deleted."""
    if array._buffer.is_deleted():
        raise deleted_error(array)
    return array._buffer


def deleted_error(array: Any) -> CorejaxRuntimeError:
    """The error for an array whose memory is gone."""
    return CorejaxRuntimeError("the array was deleted, or donated to a compiled function", got=str(array.aval),
                               where=here(), todo="don't use an array after delete() or after donating it")


def runtime_error(error: Exception) -> CorejaxError:
    """A failure of the runtime as an error of corejax."""
    return CorejaxRuntimeError("the runtime failed to run a compiled program", got=str(error), where=here())


def to_numpy(array: Any) -> Any:
    """Its value as a read-only ndarray that shares its memory where possible; waits until it is computed."""
    if is_on_device(array):
        client.check_not_forked()
        try:
            return _jaxlib.buffer_to_numpy(live(array), array.aval.shape, array.aval.dtype)
        except _jaxlib.RuntimeFailure as error:
            raise runtime_error(error) from error
    host = array._host
    view = host.view() if type(host) is np.ndarray else np.asarray(host)
    view.flags.writeable = False
    return view


def scalar(array: Any, wanted: str, todo: str = "index it first") -> Any:
    if array.aval.shape and array.aval.size != 1:
        raise CorejaxValueError(f"{wanted} needs an array of one element", got=str(array.aval), where=here(), todo=todo)
    if array.aval.shape and wanted != "bool(x)":
        raise CorejaxTypeError(f"{wanted} needs a scalar", got=str(array.aval), where=here(),
                               todo="take its element with x.item()")
    return to_numpy(array).item()
