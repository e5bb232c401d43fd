"""The types of values, and two placeholders that carry only a type.

>>> import numpy as np
>>> aval_of(np.zeros((2, 3), np.float32)), aval_of(1.5)
(f32[2,3], ~f64[])

Avals are interned: two equal avals are the same object, so `is` compares them and hashing one costs nothing. This makes
the caches of abstract evaluation and of eager evaluation fast.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Hashable, Iterable
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from corejax.base import dtypes, elements
from corejax.base.caches import BoundedCache
from corejax.base.config import config
from corejax.base.errors import CorejaxAttributeError, CorejaxError, CorejaxOverflowError, CorejaxTypeError
from corejax.base.source import here
from corejax.base.standins import StandIn, stands_for_array

_interned: weakref.WeakValueDictionary[tuple[Any, ...], ShapedArray] = weakref.WeakValueDictionary()
_intern_lock = threading.RLock()

_MOST = 2 ** 63 - 1

_NOWHERE: frozenset[Hashable] = frozenset()

# Making an aval takes microseconds, finding a known one a tenth of that.
_of_numpy: BoundedCache[tuple[tuple[int, ...], np.dtype], ShapedArray] = BoundedCache(4096)
_of_scalar: BoundedCache[tuple[str, int], ShapedArray] = BoundedCache(64)
known_aval = _of_numpy._entries.get  # by (shape, dtype) of NumPy arrays: for paths where the cost of a call matters


class ShapedArray:
    """The type of an array: shape, dtype, and whether the dtype comes from Python scalars only (`weak_type`).

    In a program that each device of a mesh runs, `varying` names the axes of the mesh along which the value differs
    from device to device, as far as this is tracked. Along the others it is the same: it is invariant.

    >>> aval = ShapedArray((3,), "float64", varying=("x",))
    >>> aval, aval.update(shape=()), aval.invariant
    (f64[3]{x}, f64[]{x}, f64[3])
    """

    __slots__ = ("shape", "dtype", "weak_type", "varying", "tangent", "__weakref__")
    shape: tuple[int, ...]
    dtype: np.dtype
    weak_type: bool
    varying: frozenset[Hashable]
    tangent: ShapedArray
    """The type of tangents and cotangents: the same if inexact, else float0; never weak."""

    def __new__(cls, shape: Iterable[int], dtype: object, weak_type: bool = False,
                varying: Iterable[Hashable] = _NOWHERE) -> ShapedArray:
        """The shape is a sequence of integers, the dtype anything that names one."""
        if type(shape) is not tuple or set(map(type, shape)) - {int}:
            shape = _canonical_shape(shape)
        if varying:
            return cls._intern(cls, shape, dtypes.canonical(dtype), bool(weak_type), frozenset(varying))
        return cls._intern(cls, shape, dtypes.canonical(dtype), bool(weak_type))

    @staticmethod
    def _intern(cls: type[ShapedArray], *fields: Any) -> ShapedArray:
        key = (cls, *fields)
        found = _interned.get(key)
        if found is not None:
            return found
        with _intern_lock:
            found = _interned.get(key)
            if found is None:
                found = object.__new__(cls)
                found._fill(*fields)
                _interned[key] = found
            return found

    def __setattr__(self, name: str, value: Any) -> None:
        raise CorejaxAttributeError("a type can't be changed: it is the type of every value that has it", where=here(),
                                    got=f"{self}.{name} = {value!r}"[:80], wanted="a type of its own",
                                    todo="make a new one: aval.update(shape=...)")

    def _fill(self, shape: tuple[int, ...], dtype: np.dtype, weak_type: bool, varying: frozenset[Hashable] = _NOWHERE
              ) -> None:
        if shape and (min(shape) < 0 or max(*shape, prod(shape) * dtype.itemsize) > _MOST):
            raise _impossible(shape)
        for name, value in (("shape", shape), ("dtype", dtype), ("weak_type", weak_type), ("varying", varying)):
            object.__setattr__(self, name, value)
        tangent_dtype = dtype if dtypes.is_inexact(dtype) else dtypes.float0
        own = tangent_dtype is dtype and not weak_type
        object.__setattr__(self, "tangent", self if own else
                           ShapedArray(shape, tangent_dtype, varying=varying))

    @property
    def stored(self) -> ShapedArray:
        """The type that represents it on a device: the same for most numbers.

        float0 doesn't exist there, and is bool. Integers of less than a byte are bytes: compilers take them, but not
        all of their programs are right.
        """
        dtype = self.dtype
        return self if dtype.type is not np.void and dtype not in dtypes.PACKED else _stored(self)

    @property
    def invariant(self) -> ShapedArray:
        """The type of a value that is the same on every device, and else of this type."""
        return ShapedArray(self.shape, self.dtype, self.weak_type) if self.varying else self

    @property
    def strong(self) -> ShapedArray:
        """The same type, never weak: that of a cotangent where a linear function, maybe of integers, is transposed."""
        return self.update(weak_type=False) if self.weak_type else self

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    def update(self, **fields: Any) -> ShapedArray:
        """The same type with these fields replaced: `aval.update(shape=(3,))`."""
        return type(self)(**{"shape": self.shape, "dtype": self.dtype, "weak_type": self.weak_type,
                             "varying": self.varying, **fields})

    def matches(self, other: ShapedArray) -> bool:
        """Whether the types are equal, ignoring `weak_type` and `varying`."""
        return self is other or (self.shape == other.shape and self.dtype == other.dtype)

    def fits(self, wanted: ShapedArray) -> bool:
        """Whether a value of this type may stand where one of type `wanted` is expected, ignoring `weak_type`.

        One that is the same along an axis may stand for one that varies along it, but not the other way round.

        >>> invariant, varying = ShapedArray((), "float64"), ShapedArray((), "float64", varying=("x",))
        >>> invariant.fits(varying), varying.fits(invariant)
        (True, False)
        """
        return self is wanted or (self.shape == wanted.shape and self.dtype == wanted.dtype
                                  and self.varying <= wanted.varying)

    def __reduce__(self) -> tuple[object, ...]:
        fields = self.shape, self.dtype, self.weak_type
        return type(self), (*fields, self.varying) if self.varying else fields

    def __copy__(self) -> ShapedArray:
        return self

    def __deepcopy__(self, memo: object) -> ShapedArray:
        return self

    def __repr__(self) -> str:
        weak = "~" if self.weak_type else ""
        axes = f"{{{','.join(sorted(map(str, self.varying)))}}}" if self.varying else ""
        return f"{weak}{dtypes.short_name(self.dtype)}[{','.join(map(str, self.shape))}]{axes}"


class Zero:
    """A tangent or cotangent known to be zero: just a type, without an array."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)
    weak_type = property(lambda self: self.aval.weak_type)

    @staticmethod
    def from_primal_value(value: object) -> Zero:
        """The zero tangent of this value."""
        return Zero(aval_of(value).tangent)

    def __repr__(self) -> str:
        return f"Zero({self.aval})"


class Linear:
    """Stands for an operand that a transpose rule transposes with respect to: it has a type but no value."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)

    def __repr__(self) -> str:
        return f"Linear({self.aval})"


@lru_cache(maxsize=1024)
def _stored(aval: ShapedArray) -> ShapedArray:
    element = elements.find(aval.dtype)
    if element is None:
        return ShapedArray(aval.shape, dtypes.PACKED.get(aval.dtype, dtypes.bool_), varying=aval.varying)
    return ShapedArray((*aval.shape, *element.trailing), element.physical, varying=aval.varying)


def _canonical_shape(shape: Iterable[Any]) -> tuple[int, ...]:
    try:
        canonical = tuple(int(size.__index__()) for size in shape)
    except (TypeError, AttributeError) as error:
        raise CorejaxTypeError("a shape must hold integers", got=shape, wanted="a sequence of integers", where=here(),
                               todo="shapes are static: take them from x.shape, not from values") from error
    return canonical


def _impossible(shape: tuple[int, ...]) -> CorejaxError:
    if min(shape) < 0:
        return CorejaxTypeError("a shape can't hold negative sizes", got=shape, wanted="sizes of 0 or more",
                                where=here(), todo="for a size that follows from the others, write x.reshape(-1, ...)")
    return CorejaxOverflowError("an array of this shape has more bytes than can be counted", got=shape, where=here(),
                                wanted=f"at most {_MOST} bytes", todo="use a smaller shape")


def scalar_aval(kind: str) -> ShapedArray:
    """The weak type of a Python scalar of this kind."""
    key = kind, config.default_bits
    return _of_scalar.get(key) or _of_scalar.put(key, ShapedArray((), dtypes.default_dtype(kind), True))


def _of_ndarray(value: Any) -> ShapedArray:
    key = value.shape, value.dtype
    return known_aval(key) or _of_numpy.put(key, ShapedArray(*key))


def is_masked(value: object) -> bool:
    """Whether it is an array with a mask. Only subclasses are compared: naming theirs imports a large module."""
    return isinstance(value, np.ndarray) and type(value) is not np.ndarray and isinstance(value, np.ma.MaskedArray)


def is_foreign(value: object) -> bool:
    """Whether it is an array of a library other than NumPy, which shares its memory by DLPack, or stands for an array.

    The second kind has a method `__jax_array__`, see `corejax.base.standins`.
    """
    if isinstance(value, (np.ndarray, np.generic)) or isinstance(getattr(value, "aval", None), ShapedArray):
        return False
    return hasattr(value, "__dlpack__") or stands_for_array(value)


def _of_foreign(value: Any) -> ShapedArray:
    """The type of an array of another library, without touching its elements if its attributes say what it is."""
    if stands_for_array(value):
        raise StandIn(value)
    try:
        shape, dtype = tuple(value.shape), str(value.dtype).rpartition(".")[2]  # torch.float32
    except (AttributeError, TypeError):
        return aval_of(np.from_dlpack(value))
    return ShapedArray(shape, dtypes.canonical(dtype), getattr(value, "weak_type", False) is True)


def aval_of(value: object) -> ShapedArray:
    """The type of a value; raises if it isn't an array, a scalar, a tracer, or an array of another library.

    For an object that only stands for an array, that is a `StandIn`: the entry that got the object handles it.
    """
    if type(value) is np.ndarray:
        return known_aval((value.shape, value.dtype)) or _of_ndarray(value)
    aval = getattr(value, "aval", None)
    if isinstance(aval, ShapedArray):
        return aval
    kind = dtypes.PYTHON_SCALARS.get(type(value))
    if kind is not None:
        return scalar_aval(kind)
    if isinstance(value, (np.ndarray, np.generic)):
        return _of_ndarray(value)
    number = dtypes.plain_scalar(value)
    if number is not None:
        return scalar_aval(dtypes.PYTHON_SCALARS[type(number)])
    if is_foreign(value):
        return _of_foreign(value)
    raise CorejaxTypeError(f"a value of type {type(value).__name__} is not an array", got=repr(value)[:80],
                           wanted="an array, a NumPy scalar, or a bool, int, float or complex", where=here(),
                           todo="convert it with numpy.asarray, or pass its array parts as a pytree")
