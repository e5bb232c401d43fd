"""Functions of several primitives that NumPy computes at once, where nothing is transformed and all is in host memory.

    @directly(np.ptp)
    def ptp(a, axis=None):
        return operators.max(a, axis) - operators.min(a, axis)

The decorated function is what it means. NumPy's function is only a faster way to the same: it is taken from the second
call on with operands of the same types, and what it returns must have the types that the decorated function returned.
Where it once hasn't, it isn't asked again. For what it doesn't take it raises `NotDirectly`: that goes to the decorated
function, as it does with whatever else NumPy raises.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, TypeAlias, TypeVar

import numpy as np

from corejax.arrays.array import Array
from corejax.arrays.storage import as_scalar
from corejax.base import dtypes
from corejax.base.avals import ShapedArray, known_aval
from corejax.base.config import config
from corejax.base.tracebacks import as_entry, guarded, trim
from corejax.eager.evaluate import EvalTrace
from corejax.kernel.context import context

F = TypeVar("F", bound=Callable[..., Any])

#: Of one result its type; of several, what makes a tuple or list of them, and their types. None if it is neither.
Types: TypeAlias = "ShapedArray | tuple[Callable[[list[Any]], Any], list[ShapedArray]] | None"

#: The results' types for each signature; None where NumPy's function can't be used.
Results = dict[Any, Types]

_new = object.__new__
_ndarray = np.ndarray
_NEW: Any = object()
_MOST = 4096  # signatures that are remembered, for each function
_LONGEST = 32  # of lists and tuples of operands, whose types are all in the key


def directly(numpy_function: Callable[..., Any], arrays: int = 1, sizes_vary: bool = False) -> Callable[[F], F]:
    """A decorator: `numpy_function` may compute the same for arrays in host memory.

    The first `arrays` positional arguments are operands: arrays, numbers, None, or lists and tuples of these. What is
    passed after them, or by keyword, is static. The number, ranks and dtypes of results depend on the types of operands
    and on what is static, never on values; and so do the shapes, unless `sizes_vary`.

    >>> from corejax import lax
    >>> @directly(lambda x, y: np.hypot(x, y), arrays=2)
    ... def hypot(x, y):
    ...     return lax.sqrt(x * x + y * y)
    >>> side = lax.add(np.array([3.0]), 0.0)
    >>> hypot(side, 4.0), hypot(side, 4.0)
    (Array([5.], dtype=float64), Array([5.], dtype=float64))
    """
    def decorate(function: F) -> F:
        boxed = _boxed_of_any_size if sizes_vary else _boxed
        return update_wrapper(_direct(numpy_function, arrays, function, boxed), function)  # type: ignore[return-value]
    return decorate


def _direct(numpy_function: Callable[..., Any], count: int, function: Callable[..., Any],
            boxed: Callable[[Any, ShapedArray], Array]) -> Callable[..., Any]:
    results: Results = {}
    general = guarded(function)

    @as_entry
    def call(*args: Any, **kwargs: Any) -> Any:
        trace = context.trace
        key: Any = None
        if type(trace) is EvalTrace:
            try:
                if count == 1 and args and type(args[0]) is Array:  # in place, since this is most calls
                    x = args[0]
                    types: Any = x.aval
                    data: Any = (x._host,)
                else:
                    types, data = _operands(args[:count])
                key = types, config.default_bits
                if len(args) > count:
                    static = args[count:]
                    key = (*key, static, *map(type, static))
                    data = (*data, *static)
                if kwargs:
                    key = (*key, *kwargs.items(), *map(type, kwargs.values()))
                expected = results.get(key, _NEW)
                if expected is None:
                    key = None
                elif expected is not _NEW:
                    out = trace.run(numpy_function, *data, **kwargs)
                    if type(expected) is ShapedArray:
                        return boxed(out, expected)
                    make, avals = expected
                    return make([boxed(o, aval) for o, aval in zip(out, avals, strict=True)])
            except _OtherType:
                results[key], key = None, None
            except Exception:  # the general function does it, or reports what is wrong
                key = None
        try:
            found = general(*args, **kwargs)
        except Exception as error:
            trim(error)
            raise
        if key is not None:
            if len(results) >= _MOST:
                results.clear()
            results[key] = _types_of(found)
        return found
    return call


class NotDirectly(Exception):
    """Raised by the function that is given to `directly`: what it was called with is for the decorated function."""


class _OtherType(Exception):
    """A result of NumPy's that doesn't have the expected type."""


def _operands(args: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    """The types of operands, as part of a key, and their values for NumPy.

    Of an integer of Python's, the bits are part of the key, since it depends on them which dtypes can hold it.
    """
    types, data = [], []
    for x in args:
        kind = type(x)
        if kind is Array:
            data.append(x._host)
            types.append(x.aval)
        elif kind in dtypes.PYTHON_SCALARS or x is None:
            data.append(x)
            types.append(kind if kind is not int or 0 <= x < 128 else (x < 0, (~x if x < 0 else x).bit_length()))
        elif (kind is list or kind is tuple) and len(x) <= _LONGEST:
            inner_types, inner_data = _operands(x)
            data.append(inner_data)
            types.append((kind, inner_types))
        else:
            raise NotDirectly
    return tuple(types), data


def _boxed(out: Any, expected: ShapedArray) -> Array:
    if type(out) is _ndarray:
        if out.dtype is not expected.dtype or out.shape != expected.shape:
            raise _OtherType
        if expected.shape:
            out.setflags(0)  # type: ignore[call-arg,arg-type]  # read-only: faster by position
        else:
            out = as_scalar(out)
    elif type(out) is not expected.dtype.type or expected.shape:
        raise _OtherType
    array: Array = _new(Array)
    array.aval = expected
    array._host = out
    return array


def _boxed_of_any_size(out: Any, expected: ShapedArray) -> Array:
    """The same for a result with the dtype and the number of axes that are expected, but perhaps of another shape."""
    shape = out.shape
    if shape != expected.shape:
        if len(shape) != len(expected.shape):
            raise _OtherType
        aval = None if expected.weak_type else known_aval((shape, expected.dtype))
        expected = ShapedArray(shape, expected.dtype, expected.weak_type) if aval is None else aval
    return _boxed(out, expected)


def _types_of(found: Any) -> Types:
    """The types of results, which a compiled program may have made."""
    kind: Any = type(found)
    if kind is Array:
        return found.aval  # type: ignore[no-any-return]
    if issubclass(kind, tuple) or kind is list:
        avals = [x.aval for x in found if type(x) is Array]
        if avals and len(avals) == len(found):
            return getattr(kind, "_make", kind), avals
    return None
