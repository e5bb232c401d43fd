"""`Array`: one immutable class for every concrete array, in host memory or on a device.

A value stays where it is: an array made from NumPy data holds an ndarray (or, for rank 0, perhaps a NumPy scalar) until
something puts it on a device; the result of a compiled program holds the runtime's buffer. Exactly one of the slots
`_host` and `_buffer` is filled. Reading the wrong one raises AttributeError, by which fast paths tell the two apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.arrays import devices, exchange
from corejax.arrays.datamodel import OFTEN_ABSENT, ArrayType, DataModel
from corejax.arrays.methods import Methods
from corejax.arrays.storage import (
    DELETED,
    Host,
    Stored,
    as_scalar,
    buffer_of,
    check_has_value,
    element,
    home_of,
    host_in_order,
    in_order,
    is_in_order,
    is_on_device,
    is_readable,
    live,
    numbers,
    put_in_order,
    read_only,
    scalar,
    scalar_error,
    to_numpy,
)
from corejax.base import dtypes, elements, ending
from corejax.base.avals import ShapedArray, aval_of, is_foreign
from corejax.base.errors import CorejaxError, CorejaxIndexError, CorejaxTypeError, CorejaxValueError
from corejax.base.holders import is_holder
from corejax.base.late import late
from corejax.base.source import here
from corejax.base.tracebacks import as_entry, public, trim

if TYPE_CHECKING:
    from corejax.arrays import shardings, shards
    from corejax.arrays.devices import Buffer, Device
    from corejax.arrays.shardings import Sharding
    from corejax.arrays.shards import Shard
else:
    shardings = late("corejax.arrays.shardings", keep=True)
    shards = late("corejax.arrays.shards", keep=True)



def _conversion(convert: Callable[[Any], Any], todo: str) -> Callable[[Any], Any]:
    wanted = f"{convert.__name__}(x)"

    @as_entry
    def method(self: Array) -> Any:
        try:
            return convert(scalar(self, wanted, todo))
        except Exception as error:
            trim(error)
            raise
    return method


@public
class Array(Stored, DataModel, Methods, metaclass=ArrayType):
    """An immutable array, the result of a computation or of `cj.device_put`.

    Traced values, which may have a type but no value yet, are instances too: `isinstance(x, Array)` holds for them.
    `type(x) is Array` doesn't, nor does `corejax.core.is_concrete(x)`.
    """

    __slots__ = ("aval", "__weakref__")
    aval: ShapedArray

    @staticmethod
    def from_host(host: Host, aval: ShapedArray) -> Array:
        """Wrap an ndarray of exactly this type, which nobody else will write to; no copy, no check."""
        self: Array = new_array()
        self.aval = aval
        if aval.dtype in dtypes.PACKED:
            self._view = host
        else:
            self._host = host
        return self

    @staticmethod
    def from_view(host: Host, aval: ShapedArray) -> Array:
        """The same, of an ndarray that may be in another order than row-major."""
        self: Array = new_array()
        self.aval = aval
        if (type(host) is not np.ndarray or is_in_order(host)) and aval.dtype not in dtypes.PACKED:
            self._host = host
        else:
            self._view = host
        return self

    if not TYPE_CHECKING:
        @as_entry
        def __getattr__(self, name: str) -> Any:
            if name == "_host":
                try:
                    buffer_of(self)
                except AttributeError:
                    return put_in_order(self)
                raise AttributeError(name)
            if name in OFTEN_ABSENT:  # `trim` would take six times as long
                raise AttributeError(name)
            try:
                return DataModel.__getattr__(self, name)
            except Exception as error:
                trim(error)
                raise

    @staticmethod
    def from_device(buffer: Buffer, aval: ShapedArray) -> Array:
        """Wrap a buffer of the runtime of exactly this type; no copy, no check."""
        self: Array = new_array()
        self.aval = aval
        self._buffer = buffer
        return self

    # What it is

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return len(self.aval.shape)

    @property
    def size(self) -> int:
        return self.aval.size

    @property
    def weak_type(self) -> bool:
        """Whether its dtype comes from Python scalars only."""
        return self.aval.weak_type

    # Where it is

    @property
    @public
    def device(self) -> Device | Sharding:
        """The device that it is on, or its sharding if on several; for one in host memory, the default device."""
        sharding = self.sharding
        return sharding.flat_devices[0] if type(sharding) is shardings.SingleDeviceSharding else sharding

    @property
    @public
    def sharding(self) -> Sharding:
        """How it is divided among devices; in host memory, it counts as on the default device."""
        found: Sharding = home_of(self).user_sharding
        return found

    def devices(self) -> set[Device]:
        """The devices that it is on."""
        return set(self.sharding.device_set)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all of its devices belong to this process."""
        return self.sharding.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each of its devices holds all of it."""
        return self.sharding.is_fully_replicated

    @property
    @public
    def addressable_shards(self) -> list[Shard]:
        """Its parts on the devices of this process, in the order of its sharding."""
        return shards.shards_of(self, Array.from_device)

    @property
    @public
    def global_shards(self) -> list[Shard]:
        """Its parts on all devices; those of other processes come without data."""
        return shards.shards_of(self, Array.from_device, everywhere=True)

    @public
    def addressable_data(self, index: int) -> Array:
        """The part on one of this process's devices, by its position in `addressable_shards`."""
        held = shards.shards_of(self, Array.from_device)
        try:
            return held[index].data  # type: ignore[return-value]
        except (IndexError, TypeError) as error:
            raise CorejaxIndexError(f"{self.aval} has no such shard", got=repr(index)[:80], where=here(),
                                    wanted=f"an integer from 0 to {len(held) - 1}",
                                    todo="look at x.addressable_shards") from error

    @as_entry
    def block_until_ready(self) -> Array:
        """Wait until it is computed; an error of the computation is raised here."""
        try:
            try:
                buffer = self._buffer
            except AttributeError:  # in host memory
                return self
            devices.runtime.check_not_forked()
            try:
                buffer.block_until_ready()
            except Exception as error:
                live(self)  # raises our own error if it was deleted
                raise devices.runtime.runtime_error(error) from error
            return self
        except Exception as error:
            trim(error)
            raise

    def is_ready(self) -> bool:
        """Whether it has been computed, so that reading it won't block."""
        return bool(live(self).is_ready()) if is_on_device(self) else True

    def delete(self) -> None:
        """Release its memory, once no view needs it; using the array afterwards is an error."""
        # The buffer is dropped, not deleted: the runtime aborts the process if NumPy still uses a deleted one.
        on_device = is_on_device(self)
        self._buffer = DELETED
        if not on_device:
            for slot in ("_host", "_view"):
                with suppress(AttributeError):  # it is in the other
                    delattr(self, slot)

    def is_deleted(self) -> bool:
        """Whether it was deleted, or donated to a computation."""
        return bool(self._buffer.is_deleted()) if is_on_device(self) else False

    # As other types

    @as_entry
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        try:
            view = numbers(self, "np.asarray(x)")
            if dtype is None or np.dtype(dtype) == view.dtype:
                return view.copy() if copy else view
            if copy is False:
                raise CorejaxValueError("a change of dtype needs a copy", got=f"dtype={np.dtype(dtype)}, copy=False",
                                        wanted=f"dtype={view.dtype} or copy=True", where=here())
            return view.astype(dtype)
        except Exception as error:
            trim(error)
            raise

    def __dlpack__(self, *, stream: object = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        return exchange.to_dlpack(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return exchange.device_of(self)

    @public
    def to_device(self, device: object, /, *, stream: object = None) -> Array:
        """The array on a device, like `cj.device_put`."""
        if stream is not None:
            raise CorejaxValueError("to_device doesn't support streams", got=f"stream={stream!r}"[:80],
                                    wanted="stream=None",
                                    where=here(), todo="leave it out: the runtime orders its work by itself")
        return device_put(self, device)

    def item(self, *index: int) -> Any:
        """One element as a Python scalar: the only one, or the one at `index`."""
        return element(self, index)

    def tolist(self) -> Any:
        """Its elements as nested lists of Python scalars."""
        return numbers(self, "x.tolist()").tolist()

    __bool__ = _conversion(bool, "write x.any(), x.all(), or index it first")
    __int__ = _conversion(int, "index it first")
    __float__ = _conversion(float, "index it first")
    __complex__ = _conversion(complex, "index it first")

    def __index__(self) -> int:
        if self.aval.shape or not dtypes.is_integer(self.aval.dtype):
            raise CorejaxTypeError("only an integer scalar can be an index or a size", got=str(self.aval),
                                   wanted="i64[], or another integer dtype", where=here(), todo="take int(x)")
        return int(to_numpy(self))

    def __len__(self) -> int:
        if not self.aval.shape:
            raise scalar_error(self, "has no length")
        return self.aval.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.aval.shape:
            raise scalar_error(self, "can't be iterated over")
        row = ShapedArray(self.aval.shape[1:], self.aval.dtype, self.aval.weak_type)
        host = None if is_on_device(self) else host_in_order(self)
        if host is not None:
            rows = np.asarray(host)
            return iter([Array.from_host(rows[i, ...], row) for i in range(len(self))])
        home = home_of(self)
        if live(self).platform() != "cpu" or type(home.user_sharding) is not shardings.SingleDeviceSharding:
            return iter([self[i] for i in range(len(self))])
        rows = to_numpy(self)
        return iter([Array.from_device(home.put_copy(row, rows[i, ...]), row) for i in range(len(self))])

    def __format__(self, spec: str) -> str:
        is_number = not self.aval.shape and elements.find(self.aval.dtype) is None and is_readable(self)
        try:
            return format(to_numpy(self)[()] if is_number else str(self), spec)
        except ValueError as error:
            raise CorejaxValueError(f"an array of type {self.aval} can't be formatted as {spec!r}", got=repr(spec),
                                    wanted="a format for numbers" if is_number else "a format for text", where=here(),
                                    todo="check the format" if is_number else "format its elements one by one"
                                    ) from error

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.aval.weak_type else ""
        if self.is_deleted():
            return f"Array(deleted, {self.aval})"
        if not is_readable(self):
            return shards.described(self, Array.from_device, weak)
        text = _text(self, separator=", ", prefix="Array(")
        shape = f", shape={self.shape}" if not self.aval.size and self.aval.ndim > 1 else ""
        return f"Array({text}{shape}, dtype={dtypes.long_name(self.aval.dtype)}{weak})"

    def __str__(self) -> str:
        return repr(self) if self.is_deleted() or not is_readable(self) else _text(self)

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (np.array(to_numpy(self)), self.aval.weak_type)

    def __deepcopy__(self, memo: object) -> Array:
        # A separate array, since the original may be deleted, or donated to a program.
        if not is_on_device(self):
            return Array.from_host(host_in_order(self), self.aval)
        return Array.from_device(home_of(self).put_copy(self.aval, to_numpy(self)), self.aval)


#: Makes an array whose slots are empty: what calling its class would do. `object.__new__` takes half as long again.
new_array: Callable[[], Array] = type.__call__.__get__(Array)


def _text(array: Array, **layout: Any) -> str:
    """The elements as NumPy prints them; those of packs as these say."""
    host, element = to_numpy(array), elements.find(array.aval.dtype)
    if element is not None:
        layout["formatter"] = {"void": lambda one: element.text(one.view(element.dtype)[element.name])}
        host = host.view(np.dtype((np.void, element.dtype.itemsize)))  # NumPy prints structured ones its own way
    elif not layout:
        return str(host)
    return np.array2string(host, **layout)


def _restore(host: np.ndarray, weak_type: bool) -> Array:
    """Unpickle an array: it is in host memory."""
    aval = ShapedArray(host.shape, host.dtype, weak_type)
    return Array.from_host(host.view(aval.dtype), aval)


def is_concrete(x: object) -> bool:
    """Whether its elements are known: it is an `Array`, NumPy array or scalar, or Python number, not a traced value.

    >>> is_concrete(as_array(2.5, copy=False)), is_concrete(2.5), is_concrete(None)
    (True, True, False)
    """
    return type(x) is Array or isinstance(x, (np.ndarray, np.generic, int, float, complex))


def as_array(value: object, *, copy: bool) -> Array:
    """Convert an array or number to an `Array`; without `copy`, an ndarray's memory may be shared.

    >>> as_array(2.5, copy=False)
    Array(2.5, dtype=float64, weak_type=True)
    """
    if type(value) is Array:
        return value
    aval = aval_of(value)
    if type(value) is np.ndarray and value.dtype is aval.dtype:
        if not aval.shape:
            return Array.from_host(as_scalar(value), aval)
        return Array.from_host(read_only(value.copy()) if copy else in_order(value), aval)
    if type(value) in dtypes.PYTHON_SCALARS:
        return Array.from_host(dtypes.number(value, aval.dtype), aval)  # type: ignore[arg-type]
    if is_holder(value):
        raise value.not_an_array()  # type: ignore[attr-defined]
    check_has_value(value, aval)
    number = dtypes.plain_scalar(value)
    if number is not None:
        return as_array(number, copy=copy)
    if is_foreign(value):
        return _of_another_library(value, aval, copy)
    host = np.asarray(value)
    if host.dtype.num != aval.dtype.num or not host.dtype.isnative:
        # Swapped bytes, or another name of the same type: the runtime would misread such memory.
        host = host.astype(aval.dtype, order="C")
    elif host.dtype is not aval.dtype:
        host = host.view(aval.dtype)  # a dtype that was pickled isn't NumPy's own: NumPy calls it an added one
    if not aval.shape:
        return Array.from_host(as_scalar(host), aval)
    is_shared = host is value or host.base is not None
    return Array.from_host(host.copy() if copy and is_shared else in_order(host), aval)


def _of_another_library(value: Any, aval: ShapedArray, copy: bool) -> Array:
    """The array of another library as an `Array`."""
    try:
        host = exchange.from_dlpack(value)
    except CorejaxError:
        raise
    except Exception as error:  # it was deleted, or is traced by its library
        raise CorejaxTypeError(f"the elements of this {type(value).__name__} can't be read",
                               got=f"{type(error).__name__}: {error}"[:200], where=here(),
                               wanted="an array that shares its memory by DLPack",
                               todo="call corejax's transformations around corejax's functions") from error
    return _of_shared(read_only(host.copy()) if copy else host, aval)


def device_put(x: object, device: object = None) -> Array:
    """Put an array on a device (the default one, or one of `devices()`), or on several by a sharding."""
    array = as_array(x, copy=False)
    if device is None and is_on_device(array):
        live(array)  # raises if it was deleted
        return array
    if isinstance(device, shardings.Sharding):
        device.shard_shape(array.aval.shape)  # raises if it doesn't fit
    home = devices.runtime.home_for(device, array.aval.stored.ndim)
    if isinstance(device, shardings.Sharding) and not device.is_fully_addressable and (
            not is_on_device(array) or home_of(array).user_sharding.is_fully_addressable):
        devices.runtime.check_equal("device_put: the values", array, device.flat_devices)
    if is_on_device(array):
        here = home_of(array)
        if here is home:
            return array
        if here.user_sharding.is_equivalent_to(home.user_sharding, array.aval.ndim):
            # The same place; but it may have moved, and may no longer.
            return Array.from_device(home.assemble(array.aval, here.shards(live(array))), array.aval)
        there: Array | None = devices.mover.moved(array, here, home)
        if there is not None:
            return there
        # What was divided has been put together in memory of its own.
        put = home.put_copy if here.user_sharding.is_fully_replicated else home.put_shared
        return Array.from_device(put(array.aval, to_numpy(array)), array.aval)
    if array.aval.dtype == dtypes.float0:
        return array
    # A raw ndarray may change later; the storage of an Array doesn't.
    put = home.put_shared if array is x else home.put_copy
    return Array.from_device(put(array.aval, to_numpy(array)), array.aval)


def device_get(x: object) -> Any:
    """The array as a read-only ndarray in host memory; elements of packs' own types as an array there."""
    array = as_array(x, copy=False)
    if elements.find(array.aval.dtype) is None and array.aval.dtype != dtypes.float0:
        return numbers(array, "cj.device_get(x)")
    host = to_numpy(array)
    return Array.from_view(host, array.aval) if array.aval.shape else Array.from_host(host, array.aval)


def from_dlpack(x: object) -> Array:
    """An array that shares the memory of any object with `__dlpack__`: treat that object as read-only from now on."""
    if type(x) is Array:
        return x
    host = exchange.from_dlpack(x)
    return _of_shared(host, aval_of(host))


def _of_shared(host: np.ndarray, aval: ShapedArray) -> Array:
    return Array.from_view(host, aval) if aval.shape else Array.from_host(as_scalar(host), aval)


ending.doors(Array, "block_until_ready")
ending.freeing_takes_part(Array)
