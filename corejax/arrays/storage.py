"""Where an array's value is stored, and how to read it.

`_host` holds an ndarray (or, for rank 0, perhaps a NumPy scalar), `_buffer` a buffer of the runtime; one is unset. The
elements of `_host` are one after the other in memory, in row-major order: NumPy's loops over others round otherwise,
and equal values shall have equal results. What moves elements without computing leaves an ndarray in another order, in
the slot `_view`, until something computes with it: reading `_host` then copies it there. Of elements of less than a
byte, with which NumPy shall not compute, `_host` can't be read: they are in `_view`, in any order.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from corejax.arrays import devices
from corejax.arrays.datamodel import DataModel
from corejax.base import _jaxlib, elements
from corejax.base.avals import Linear, ShapedArray, is_masked
from corejax.base.dtypes import PACKED, is_complex
from corejax.base.errors import (
    ConcretizationError,
    CorejaxIndexError,
    CorejaxRuntimeError,
    CorejaxTypeError,
    CorejaxValueError,
)
from corejax.base.source import here

if TYPE_CHECKING:
    from corejax.arrays.array import Array
    from corejax.arrays.devices import Buffer, Home


#: A value in host memory; for rank 0, perhaps a NumPy scalar.
Host: TypeAlias = np.ndarray | np.generic


class Stored:
    """The slots for an array's value. Exactly one of them is filled."""

    __slots__ = ("_host", "_buffer", "_view")
    _host: Host
    _view: Host
    _buffer: Buffer


# For an unset slot, this takes half as long as `array._host`, since arrays look up missing attributes in packs.
host_of = vars(Stored)["_host"].__get__
buffer_of = vars(Stored)["_buffer"].__get__
_view_of = vars(Stored)["_view"].__get__


class _Deleted:
    """Takes the place of a deleted array's buffer."""

    def is_deleted(self) -> bool:
        return True


DELETED = cast("Buffer", _Deleted())


def is_on_device(array: object) -> bool:
    """Whether the array is stored in a buffer of the runtime."""
    try:
        buffer_of(array)
    except AttributeError:
        return False
    return True


def host_in_any_order(array: object) -> Host | None:
    """The value of an array in host memory, perhaps in another order than row-major; None for one on a device."""
    try:
        return host_of(array)  # type: ignore[no-any-return]
    except AttributeError:
        return None if is_on_device(array) else _host_of_view(array)


def _host_of_view(array: object) -> Host | None:
    for slot in (_view_of, host_of):  # another thread may put it in order in between
        try:
            return slot(array)  # type: ignore[no-any-return]
        except AttributeError:
            pass
    return None


def put_in_order(array: Stored) -> Host:
    """Fill the slot `_host` of a view; raises AttributeError for an array on a device, or of less than a byte each."""
    found = host_in_any_order(array)
    if found is None or found.dtype in PACKED:
        raise AttributeError("_host")
    if type(found) is np.ndarray and not is_in_order(found):
        array._host = found = read_only(found.copy())
        with suppress(AttributeError):
            del array._view
    return found


def host_in_order(array: Stored) -> Host:
    """The value of an array in host memory, of any dtype, in row-major order."""
    try:
        return array._host
    except AttributeError:
        found = host_in_any_order(array)
    if found is None:
        raise AttributeError("_host")
    return in_order(found) if type(found) is np.ndarray else found


def live(array: Array) -> Buffer:
    """The array's buffer; raises if it was deleted."""
    buffer = array._buffer  # read once: another thread may delete the array in between
    if buffer.is_deleted():
        raise deleted_error(array)
    return buffer


def home_of(array: Array) -> Home:
    """Where an array is: the default device if it is in host memory."""
    runtime = devices.runtime
    return runtime.home_of(live(array)._sharding) if is_on_device(array) else runtime.home_for(None, array.aval.ndim)


def is_readable(array: Array) -> bool:
    """Whether this process has all of its elements, rather than only those of its own devices."""
    return not is_on_device(array) or home_of(array).is_readable


def is_common(array: Array) -> bool:
    """Whether every process with a part of it has all of it: the same answer in all of them, unlike `is_readable`."""
    return not is_on_device(array) or home_of(array).is_common


def deleted_error(array: Array) -> CorejaxRuntimeError:
    """The error for an array that was deleted."""
    return CorejaxRuntimeError("the array was deleted, or donated to a compiled function", got=str(array.aval),
                               wanted="an array that still has its memory", where=here(),
                               todo="use the result instead, pass a copy, or leave the argument out of donate_argnums")


def read_only(host: np.ndarray) -> np.ndarray:
    """The same ndarray, made read-only."""
    host.setflags(0)  # type: ignore[call-arg,arg-type]  # write=False, at half the price
    return host


def is_in_order(host: np.ndarray) -> bool:
    """Whether the elements are one after the other in memory, in row-major order.

    NumPy computes with others in loops of another kind, whose last bits differ. By its flag, an array of one element is
    in any order, though its steps may be backward.
    """
    flags = host.flags
    return flags.c_contiguous and (host.base is None or flags.aligned and (
        not host.ndim or host.strides[-1] == host.itemsize))


def in_order(host: np.ndarray) -> np.ndarray:
    """The same ndarray, or a copy in row-major order."""
    return host if is_in_order(host) else host.copy()


def as_scalar(host: np.ndarray) -> Host:
    """An ndarray of rank 0 as a NumPy scalar, which is immutable and takes half the time to compute with."""
    return host if host.dtype.type is np.void else host[()]


def to_numpy(array: Array) -> np.ndarray:
    """Its value as a read-only ndarray that shares its memory where possible; waits until it is computed."""
    host = host_in_any_order(array)
    if host is None:  # it is on a device, or another thread has just deleted it
        devices.runtime.check_not_forked()
        try:
            return from_buffer(live(array), array.aval)
        except _jaxlib.RuntimeFailure as error:
            raise devices.runtime.runtime_error(error) from error
    view = host.view() if type(host) is np.ndarray else np.asarray(host)
    view.flags.writeable = False
    return view


def from_buffer(buffer: Buffer, aval: ShapedArray) -> np.ndarray:
    """The value of a buffer that holds an array of this type."""
    stored = aval.stored
    host = devices.runtime.home_of(buffer._sharding).read(buffer, stored)
    return host if stored is aval else elements.to_host(host, aval.dtype)


def numbers(array: Array, what: str) -> np.ndarray:
    """Its value for somebody outside, who gets numbers only."""
    if elements.find(array.aval.dtype) is not None:
        raise elements.refused(array.aval.dtype, what)
    return to_numpy(array)


def check_has_value(value: object, aval: ShapedArray) -> None:
    """Raise for a value that has an array's type but no elements, or more than its elements (such as a mask)."""
    if type(value) is Linear:
        raise CorejaxTypeError("the transposed function isn't linear: it needs a value where there is only a type",
                               got=f"a product, or another function, of several operands that vary: {aval}",
                               wanted="a function that is linear in its arguments, all together", where=here(),
                               todo="linearize it first (cj.vjp), or close over what it is not linear in")
    if isinstance(value, DataModel):
        raise ConcretizationError("an array is needed here, not a traced value", got=f"a traced {aval}",
                                  wanted="an array", where=here(), todo="do this outside of the transformed function")
    if is_masked(value):
        raise CorejaxTypeError("a masked array would lose its mask", got=str(aval), wanted="an ndarray", where=here(),
                               todo="fill it with value.filled(...), and keep its mask as another array")


def scalar_error(array: DataModel, verb: str) -> CorejaxTypeError:
    """The error for a scalar that is used as if it had axes."""
    return CorejaxTypeError(f"a scalar {verb}", got=str(array.aval), wanted="at least one axis", where=here(),
                            todo="use it as it is, or give it an axis: x[None]")


def scalar(array: Array, wanted: str, todo: str = "index it first") -> Any:
    """The array's only element as a Python scalar, for `bool(x)`, `int(x)`, `float(x)` or `complex(x)`."""
    aval = array.aval
    if wanted == "bool(x)":
        if aval.shape and aval.size != 1:
            raise CorejaxValueError(f"{wanted} needs an array of one element", got=str(aval), wanted="bool[]",
                                    where=here(), todo=todo)
    elif aval.shape:
        more = f", or take its element with x.item() and write {wanted.replace('x', 'x.item()')}"
        raise CorejaxTypeError(f"{wanted} needs a scalar: one element, without axes", got=str(aval),
                               wanted="shape ()", where=here(), todo=todo + (more if aval.size == 1 else ""))
    elif wanted in ("int(x)", "float(x)") and is_complex(aval.dtype):
        raise CorejaxTypeError(f"{wanted} needs a real number", got=str(aval), wanted="no complex dtype",
                               where=here(), todo="take x.real, x.imag or abs(x) first")
    return numbers(array, wanted).item()


def element(array: Array, index: tuple[Any, ...]) -> Any:
    """The array's only element, or the one at `index`, as a Python scalar."""
    if not index and array.aval.size != 1:
        raise CorejaxValueError("only an array of one element is a scalar", got=str(array.aval), where=here(),
                                wanted="one element", todo="index it first, or use x.tolist()")
    host = numbers(array, "x.item()")
    try:
        return host.item(*index)
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        raise CorejaxIndexError(f"x.item: there is no such element of {array.aval}", where=here(),
                                got=", ".join(map(repr, index))[:80], wanted="an index for each axis, or one of all",
                                todo="pass integers within the shape") from error
