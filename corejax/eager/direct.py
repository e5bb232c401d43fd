"""Functions of several primitives that NumPy computes at once, where nothing is transformed and all is in host memory.

    @directly(np.ptp)
    def ptp(a, axis=None):
        return operators.max(a, axis) - operators.min(a, axis)

The decorated function is what it means. NumPy's function is only a faster way to the same: it is taken from the second
call on with operands of the same types, and what it returns must have the types that the decorated function returned.
Whatever it raises, and whatever it doesn't take, goes to the decorated function.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, TypeVar

import numpy as np

from corejax.arrays.array import Array
from corejax.arrays.storage import as_scalar
from corejax.base import dtypes
from corejax.base.avals import ShapedArray
from corejax.base.config import config
from corejax.base.tracebacks import as_entry, guarded, trim
from corejax.eager.evaluate import EvalTrace
from corejax.kernel.context import context

F = TypeVar("F", bound=Callable[..., Any])

#: The results' types for each signature; None where NumPy's function can't be used.
Results = dict[Any, ShapedArray | tuple[ShapedArray, ...] | None]

_new = object.__new__
_ndarray = np.ndarray
_NEW: Any = object()
_MOST = 4096  # signatures that are remembered, for each function
_LONGEST = 32  # of lists and tuples of operands, whose types are all in the key


def directly(numpy_function: Callable[..., Any], arrays: int = 1) -> Callable[[F], F]:
    """A decorator: `numpy_function` may compute the same for arrays in host memory.

    The first `arrays` positional arguments are operands: arrays, numbers, or lists and tuples of these. What is passed
    after them, or by keyword, is static. The shapes and dtypes of results may depend on the types of operands and on
    what is static, never on values.

    >>> from corejax import lax
    >>> @directly(lambda x, y: np.hypot(x, y), arrays=2)
    ... def hypot(x, y):
    ...     return lax.sqrt(x * x + y * y)
    >>> side = lax.add(np.array([3.0]), 0.0)
    >>> hypot(side, 4.0), hypot(side, 4.0)
    (Array([5.], dtype=float64), Array([5.], dtype=float64))
    """
    def decorate(function: F) -> F:
        return update_wrapper(_direct(numpy_function, arrays, function), function)  # type: ignore[return-value]
    return decorate


def _direct(numpy_function: Callable[..., Any], count: int, function: Callable[..., Any]) -> Callable[..., Any]:
    results: Results = {}
    general = guarded(function)

    @as_entry
    def call(*args: Any, **kwargs: Any) -> Any:
        trace = context.trace
        key: Any = None
        if type(trace) is EvalTrace and len(args) >= count:
            try:
                if count == 1 and type(args[0]) is Array:  # in place, since this is most calls
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
                if expected is not _NEW:
                    if expected is None:
                        raise _Misfit
                    out = trace.run(numpy_function, *data, **kwargs)
                    if type(expected) is ShapedArray:
                        return _boxed(out, expected)
                    return tuple([_boxed(o, aval) for o, aval in zip(out, expected, strict=True)])
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


class _Misfit(Exception):
    """Operands or results that the direct way isn't for."""


def _operands(args: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    """The types of operands, as part of a key, and their values for NumPy."""
    types, data = [], []
    for x in args:
        kind = type(x)
        if kind is Array:
            data.append(x._host)
            types.append(x.aval)
        elif kind in dtypes.PYTHON_SCALARS:
            data.append(x)
            types.append(kind)
        elif (kind is list or kind is tuple) and len(x) <= _LONGEST:
            inner_types, inner_data = _operands(x)
            data.append(inner_data)
            types.append((kind, inner_types))
        else:
            raise _Misfit
    return tuple(types), data


def _boxed(out: Any, expected: ShapedArray) -> Array:
    if type(out) is _ndarray:
        if out.dtype is not expected.dtype or out.shape != expected.shape:
            raise _Misfit
        if expected.shape:
            out.setflags(0)  # type: ignore[call-arg,arg-type]  # read-only: faster by position
        else:
            out = as_scalar(out)
    elif type(out) is not expected.dtype.type or expected.shape:
        raise _Misfit
    array: Array = _new(Array)
    array.aval = expected
    array._host = out
    return array


def _types_of(found: Any) -> ShapedArray | tuple[ShapedArray, ...] | None:
    """The types of results, which a compiled program may have made; None for anything but arrays."""
    if type(found) is Array:
        return found.aval
    if type(found) is tuple:
        types = [_types_of(one) for one in found]
        if types and all([type(one) is ShapedArray for one in types]):
            return tuple(types)  # type: ignore[arg-type]
    return None
