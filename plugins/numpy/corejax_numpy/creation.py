"""Arrays of given elements: from lists and numbers, of one value, from memory, files and texts."""

# mypy: no-warn-return-any

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, DTypeLike, Tracer, aval_of, dtypes, from_array_like, from_dlpack as shared
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import NotDirectly, directly, operators, public, refused, shaping
from corejax_numpy._asked import checked_order, placed, shape as sizes_of
from corejax_numpy._nested import of_nested
from corejax_numpy._values import constant, spread

__all__ = ["array", "asarray", "copy", "empty", "empty_like", "from_dlpack", "frombuffer", "fromfile", "fromiter",
           "fromstring", "full", "full_like", "ones", "ones_like", "zeros", "zeros_like"]


# From what there is

@public
def array(object: Any, dtype: DTypeLike | None = None, copy: bool | None = True, order: str | None = "K",
          ndmin: int = 0, *, device: Any = None, out_sharding: Any = None, subok: bool = False) -> Array:
    """Anything array-like as an array: a number, nested lists of numbers and arrays, arrays of other libraries.

    >>> array([[1, 2], [3, 4.5]])
    Array([[1. , 2. ],
           [3. , 4.5]], dtype=float64)
    """
    found = _of("array", object, dtype, order, copy)
    missing = shaping.as_int("array", "ndmin", ndmin) - found.ndim
    if missing > 0:
        found = operators.reshape(found, (*[1] * missing, *found.shape))
    return placed("array", found, device, out_sharding)


@public
def asarray(a: Any, dtype: DTypeLike | None = None, order: str | None = None, *, copy: bool | None = None,
            device: Any = None, out_sharding: Any = None) -> Array:
    """Anything array-like as an array; an array is returned as it is.

    >>> asarray([1, 2], dtype=jnp.float32)
    Array([1., 2.], dtype=float32)
    """
    if type(a) is Array and dtype is None and order is None and not copy and device is None and out_sharding is None:
        return a
    return placed("asarray", _of("asarray", a, dtype, order, copy), device, out_sharding)


def _of(name: str, x: Any, dtype: DTypeLike | None, order: str | None, copy: bool | None) -> Array:
    if order is not None:
        checked_order(name, order)
    wanted = None if dtype is None else dtypes.canonical(dtype)
    if isinstance(x, (list, tuple, range)):
        return of_nested(name, x, wanted)
    if isinstance(x, Array):
        found = x if wanted is None else _converted(name, x, wanted, copy)
        # whoever asks for a copy may donate one of the two; a value in a program isn't donated
        return operators.copy(found) if copy and found is x and type(x) is Array else found
    if type(x) in dtypes.PYTHON_SCALARS:
        return from_array_like(x) if wanted is None else constant(name, x, wanted)
    found = from_array_like(_readable(name, x))
    return found if wanted is None else _converted(name, found, wanted, copy)


def _readable(name: str, x: Any) -> Any:
    """The value, or the ndarray that it is converted to by its own methods."""
    if isinstance(x, (np.ndarray, np.generic)) or hasattr(x, "__dlpack__") or hasattr(x, "aval"):
        return x
    if isinstance(x, (str, bytes, dict, set)) or x is None:
        raise refused(name, f"a {type(x).__name__} is not an array", got=repr(x)[:80],
                      wanted="numbers, nested lists of numbers, or arrays", todo="pass the numbers in it")
    if hasattr(x, "__array__") or isinstance(x, (memoryview, bytearray)) or type(x).__module__ == "array":
        return np.asarray(x)
    return x


def _converted(name: str, x: Any, dtype: np.dtype, copy: bool | None) -> Any:
    if copy is False and x.dtype != dtype:
        raise refused(name, "a change of dtype needs a copy", got=f"{x.aval}, copy=False", kind=CorejaxValueError,
                      wanted=f"dtype={x.dtype} or copy=None", todo="allow a copy")
    return operators.astype(x, dtype)


@public
def copy(a: Any, order: str | None = "K", subok: bool = False) -> Array:
    """The same elements in new memory.

    >>> copy(jnp.ones(2))
    Array([1., 1.], dtype=float64)
    """
    checked_order("copy", order)
    return operators.copy(from_array_like(a))


# Of one value

def _numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's function, for the default order and device."""
    return lambda shape, dtype=float, *, device=None: function(shape, dtype or float)


@directly(_numbers(np.zeros), arrays=0)
def zeros(shape: Any, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: Any = None,
          order: str = "C") -> Array:
    """An array of zeros; the shape may be an integer.

    >>> zeros(3), zeros((1, 2), int)
    (Array([0., 0., 0.], dtype=float64), Array([[0, 0]], dtype=int64))
    """
    return _filled("zeros", shape, 0, dtype, device, out_sharding, order)


@directly(_numbers(np.ones), arrays=0)
def ones(shape: Any, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: Any = None,
         order: str = "C") -> Array:
    """An array of ones; the shape may be an integer.

    >>> ones(3)
    Array([1., 1., 1.], dtype=float64)
    """
    return _filled("ones", shape, 1, dtype, device, out_sharding, order)


@directly(_numbers(np.zeros), arrays=0)
def empty(shape: Any, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: Any = None,
          order: str = "C") -> Array:
    """An array whose elements don't matter: zeros.

    >>> empty((2, 3)).shape
    (2, 3)
    """
    return _filled("empty", shape, 0, dtype, device, out_sharding, order)


def _filled(name: str, shape: Any, value: int, dtype: DTypeLike | None, device: Any, out_sharding: Any, order: Any
            ) -> Array:
    checked_order(name, order)
    wanted = dtypes.default_dtype("f") if dtype is None else dtypes.canonical(dtype)
    return placed(name, lax.full(sizes_of(name, shape), value, wanted), device, out_sharding)


def _full(shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    if dtype is not None and type(fill_value) is not int and np.dtype(dtype).kind not in "fc":
        raise NotDirectly  # NumPy converts NaN in another way
    return np.full(shape, fill_value, dtype)


@directly(_full, arrays=0)
def full(shape: Any, fill_value: Any, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: Any = None,
         order: str = "C") -> Array:
    """An array filled with a value, which is broadcast; of the value's dtype by default.

    >>> full(2, 7), full((2, 2), [1.0, 2.0])
    (Array([7, 7], dtype=int64, weak_type=True), Array([[1., 2.],
           [1., 2.]], dtype=float64))
    """
    checked_order("full", order)
    return placed("full", _fill("full", sizes_of("full", shape), fill_value, dtype), device, out_sharding)


def _fill(name: str, sizes: tuple[int, ...], value: Any, dtype: DTypeLike | None) -> Any:
    value = _of(name, value, dtype, None, None) if dtype is not None or isinstance(value, (list, tuple)) else value
    return spread(name, value, sizes) if np.ndim(value) else lax.full(sizes, value)


def _alike(function: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's function of a shape and a dtype, for those of an array."""
    return lambda a, dtype=None, shape=None: function(a.shape if shape is None else shape,
                                                      a.dtype if dtype is None else dtype)


@directly(_alike(np.zeros))
def zeros_like(a: Any, dtype: DTypeLike | None = None, shape: Any = None, *, device: Any = None,
               out_sharding: Any = None, order: str = "K", subok: bool = True) -> Array:
    """Zeros in the shape and dtype of an array.

    >>> zeros_like(jnp.array([1, 2]))
    Array([0, 0], dtype=int64)
    """
    return _like("zeros_like", a, 0, dtype, shape, device, out_sharding, order)


@directly(_alike(np.ones))
def ones_like(a: Any, dtype: DTypeLike | None = None, shape: Any = None, *, device: Any = None,
              out_sharding: Any = None, order: str = "K", subok: bool = True) -> Array:
    """Ones in the shape and dtype of an array.

    >>> ones_like(jnp.array([1, 2]), dtype=float)
    Array([1., 1.], dtype=float64)
    """
    return _like("ones_like", a, 1, dtype, shape, device, out_sharding, order)


@directly(_alike(np.zeros))
def empty_like(prototype: Any, dtype: DTypeLike | None = None, shape: Any = None, *, device: Any = None,
               out_sharding: Any = None, order: str = "K", subok: bool = True) -> Array:
    """Zeros in the shape and dtype of an array: their values don't matter.

    >>> empty_like(jnp.array([1, 2]), shape=3).shape
    (3,)
    """
    return _like("empty_like", prototype, 0, dtype, shape, device, out_sharding, order)


def _filled_alike(a: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Any:
    wanted = a.dtype if dtype is None else np.dtype(dtype)
    if np.result_type(wanted, fill_value) != wanted:
        raise NotDirectly  # NumPy converts NaN in another way
    return np.full(a.shape if shape is None else shape, fill_value, wanted)


@directly(_filled_alike, arrays=2)
def full_like(a: Any, fill_value: Any, dtype: DTypeLike | None = None, shape: Any = None, *, device: Any = None,
              out_sharding: Any = None, order: str = "K", subok: bool = True) -> Array:
    """An array filled with a value, in the shape and dtype of another.

    >>> full_like(jnp.array([1.0, 2.0]), 7)
    Array([7., 7.], dtype=float64)
    """
    return _like("full_like", a, fill_value, dtype, shape, device, out_sharding, order)


def _like(name: str, a: Any, value: Any, dtype: DTypeLike | None, shape: Any, device: Any, out_sharding: Any,
          order: Any) -> Array:
    checked_order(name, order)
    if isinstance(a, (list, tuple)):
        a = from_array_like(a)
    duck = not isinstance(a, Array) and hasattr(a, "shape") and hasattr(a, "dtype")  # may have no elements
    sizes = sizes_of(name, shape) if shape is not None else tuple(a.shape) if duck else aval_of(a).shape
    if dtype is None and not duck and aval_of(a).weak_type:
        own = aval_of(a).dtype
        if np.ndim(value):
            filled = spread(name, operators.astype(from_array_like(value), own), sizes)
        else:
            filled = lax.full(sizes, constant(name, value, own))
        filled = lax.convert_element_type.primitive.bind(filled, new_dtype=own, weak_type=True)
    else:
        filled = _fill(name, sizes, value, dtype if dtype is not None else a.dtype if duck else aval_of(a).dtype)
    return placed(name, filled, device, out_sharding)


# From memory, files and texts

@public
def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """The array of another library, in the same memory unless `copy=True`: treat it as read-only from then on.

    >>> from_dlpack(np.array([1.0, 2.0]))
    Array([1., 2.], dtype=float64)
    """
    if isinstance(x, Array):
        found: Any = x
    elif not hasattr(x, "__dlpack__"):
        raise refused("from_dlpack", f"a {type(x).__name__} doesn't share its memory", got=repr(x)[:80],
                      wanted="an object with __dlpack__", todo="use jnp.asarray")
    else:
        found = shared(x)
    return placed("from_dlpack", operators.copy(found) if copy else found, device)


def _read(name: str, dtype: DTypeLike, read: Callable[[np.dtype], np.ndarray]) -> Array:
    wanted = dtypes.canonical(dtype)
    try:
        return from_array_like(read(wanted))
    except (ValueError, TypeError, OSError) as error:
        raise refused(name, "the elements can't be read", got=str(error), wanted=f"elements of dtype {wanted.name}",
                      kind=CorejaxValueError, todo="check the dtype, the count and the offset") from error


def _no_tracer(name: str, x: Any) -> Any:
    if isinstance(x, Tracer):
        raise refused(name, "it reads memory, which a traced value doesn't have", got=str(aval_of(x)),
                      wanted="something that holds its elements", todo="use x.view(dtype) for another dtype")
    return x


@public
def frombuffer(buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> Array:
    """The elements that memory holds, such as that of `bytes`.

    >>> frombuffer(b"abc", dtype=jnp.uint8)
    Array([97, 98, 99], dtype=uint8)
    """
    return _read("frombuffer", dtype, lambda d: np.frombuffer(_no_tracer("frombuffer", buffer), d, count, offset))


@public
def fromfile(file: Any, dtype: DTypeLike = float, count: int = -1, sep: str = "", offset: int = 0) -> Array:
    """The elements that a file holds, in binary form or, with `sep`, as text.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "numbers"
    >>> path.write_text("1 2.5")
    5
    >>> fromfile(path, sep=" ")
    Array([1. , 2.5], dtype=float64)
    """
    return _read("fromfile", dtype, lambda d: np.fromfile(file, d, count, sep, offset))


@public
def fromiter(iter: Iterable[Any], dtype: DTypeLike | None = None, count: int = -1) -> Array:
    """The numbers that an iterable gives.

    >>> fromiter((n * n for n in range(3)), dtype=int)
    Array([0, 1, 4], dtype=int64)
    """
    wanted = dtypes.default_dtype("f") if dtype is None else dtype
    return _read("fromiter", wanted, lambda d: np.fromiter(_no_tracer("fromiter", iter), d, count))


@public
def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """The numbers in a text, which `sep` separates.

    >>> fromstring("1, 2", dtype=int, sep=",")
    Array([1, 2], dtype=int64)
    """
    if not sep:
        raise refused("fromstring", "only texts are read", got=f"sep={sep!r}", wanted="the separator of the numbers",
                      todo="use jnp.frombuffer for binary data", kind=CorejaxTypeError)
    return _read("fromstring", dtype, lambda d: np.fromstring(string, d, count, sep=sep))
