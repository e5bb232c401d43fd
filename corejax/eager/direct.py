"""Functions of several primitives that NumPy computes at once, where nothing is transformed and all is in host memory.

    @directly(np.ptp)
    def ptp(a, axis=None):
        return operators.max(a, axis) - operators.min(a, axis)

The decorated function is what it means, and says what types results have. Where NumPy's function gives these types, its
result is the result: on the first call as on later ones, and of lists and ndarrays as of the arrays made of them. What
it doesn't take, for which it raises `NotDirectly` or anything else, the decorated function computes. So the bits of a
result depend on the values and types of operands: not on what was called before, in which thread, or in which form
operands were passed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from corejax.arrays.array import Array, new_array
from corejax.arrays.storage import as_scalar, is_in_order
from corejax.base import dtypes
from corejax.base.avals import ShapedArray, known_aval
from corejax.base.caches import also_clear
from corejax.base.config import config
from corejax.base.known_trees import OTHER
from corejax.base.late import late
from corejax.base.tracebacks import as_entry, guarded, trim
from corejax.eager.evaluate import EvalTrace
from corejax.eager.watched import is_watched
from corejax.kernel.context import context
from corejax.kernel.numpy_calls import from_array_like

if TYPE_CHECKING:
    from corejax.eager import whole as whole_functions
else:
    whole_functions = late("corejax.eager.whole", keep=True)  # the compiler, which host arrays don't need

F = TypeVar("F", bound=Callable[..., Any])

#: Of one result its type; of several, what makes a tuple or list of them, and their types. None if it is neither.
Types: TypeAlias = "ShapedArray | tuple[Callable[[list[Any]], Any], list[ShapedArray]] | None"


class _Results(dict[Any, Types]):
    """The results' types for each signature; None where NumPy's function gives other types."""

    __slots__ = ("__weakref__",)
    __hash__ = object.__hash__  # type: ignore[assignment]  # each is one of the caches


_ndarray = np.ndarray
_NEW: Any = object()
_MOST = 4096  # signatures that are remembered, for each function
_LONGEST = 32  # of sequences of operands, whose types are all in the key


def directly(numpy_function: Callable[..., Any], arrays: int = 1, sizes_vary: bool = False, sequences: int = 0,
             whole: bool = False) -> Callable[[F], F]:
    """A decorator: `numpy_function` computes the same for arrays in host memory.

    The first `arrays` arguments are operands: arrays, numbers, or None. Lists and tuples are arrays, too, but on this
    many levels `sequences` of operands. Other arguments are static. The number, ranks and dtypes of results depend on
    the types of operands and on what is static, never on values; and so do the shapes, unless `sizes_vary`.

    NumPy's function gets ndarrays, NumPy's scalars and Python's. It may round in its own way: then its bits are what
    eager calls give, and the decorated function's are what traced ones do.

    If the function is `whole`, it is one compiled program for arrays on a device, instead of one for each operation. It
    must not ask whether it is traced, nor treat particular numbers in a way of their own.

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
        call = _direct(numpy_function, arrays, sequences, function, boxed, whole)
        return update_wrapper(call, function)  # type: ignore[return-value]
    return decorate


def _direct(numpy_function: Callable[..., Any], count: int, sequences: int, function: Callable[..., Any],
            boxed: Callable[[Any, ShapedArray], Array], whole: bool) -> Callable[..., Any]:
    results = _Results()
    also_clear(results)
    general, parameters = guarded(function), _Parameters(function, count)
    operands = len(parameters.names)

    def again(trace: EvalTrace, error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The key, expected types and NumPy's result, where something static has no hash, or within NumPy's function.

        That runs without NumPy's warnings already; the context for it can't be entered twice.
        """
        inside = _was_entered(error)
        if not (inside or isinstance(error, TypeError) and not _have_hashes((args[count:], *kwargs.values()))):
            return None, None, _NEW
        try:
            types, data = _operands(args[:count], sequences)
            frozen, static, options = _with_values(args[count:], kwargs)
            key = types, config.default_bits, frozen
            expected = results.get(key, _NEW)
            run: Any = numpy_function if inside else partial(trace.run, numpy_function)
            return key, expected, run(*data, *static, **options) if expected is not None else _NEW
        except Exception as other:
            return again(trace, other, args, kwargs) if _was_entered(other) and not inside else (None, None, _NEW)

    @as_entry
    def call(*args: Any, **kwargs: Any) -> Any:
        trace = context.trace
        out, on_device = _NEW, False
        if type(trace) is EvalTrace or is_watched(trace):
            if kwargs and len(args) < operands:
                args, kwargs = parameters.in_place(args, kwargs)
            try:
                if count == 1 and args and type(args[0]) is Array:  # in place, since this is most calls
                    x = args[0]
                    types: Any = x.aval
                    data: Any = (x._host,)
                elif count == 2 and len(args) > 1 and type(x := args[0]) is Array is type(y := args[1]) and not (
                        x.aval.weak_type or y.aval.weak_type):
                    types = x.aval, y.aval
                    data = x._host, y._host
                else:
                    types, data = _operands(args[:count], sequences)
                key: Any = types, config.default_bits
                if len(args) > count:
                    static = args[count:]
                    key = (*key, static, *map(type, static))
                    data = (*data, *static)
                if kwargs:
                    key = (*key, *kwargs.items(), *map(type, kwargs.values()))
                expected = results.get(key, _NEW)
                if expected is not None:
                    out = trace.run(numpy_function, *data, **kwargs)
                    if type(expected) is ShapedArray:
                        return boxed(out, expected)
            except _OtherType:
                expected = _NEW
            except Exception as error:  # the general function does it, or reports what is wrong
                if whole and error.args == ("_host",):  # which an array on a device doesn't have
                    on_device = True
                else:
                    key, expected, out = again(trace, error, args, kwargs)
            if out is not _NEW and expected is not _NEW:
                try:
                    return _boxed_all(boxed, out, expected)
                except _OtherType:
                    pass
        try:
            found = whole_functions.apply_whole(function, args, kwargs, count) if on_device else OTHER
            if found is OTHER:
                found = general(*args, **kwargs)
        except Exception as error:
            trim(error)
            raise
        if out is _NEW:
            return found
        types = _types_of(found)
        try:
            found = _boxed_all(boxed, out, types)
        except _OtherType:
            types = None
        if key not in results:
            if len(results) >= _MOST:
                results.clear()
            results[key] = types
        return found
    return call


class NotDirectly(Exception):
    """Raised by the function that is given to `directly`: what it was called with is for the decorated function."""


class _OtherType(Exception):
    """A result of NumPy's that doesn't have the expected type."""


class _Parameters:
    """The names and defaults of the parameters that are operands."""

    def __init__(self, function: Callable[..., Any], count: int) -> None:
        code = getattr(function, "__code__", None)
        every = () if code is None else code.co_varnames[:code.co_argcount]
        defaults = getattr(function, "__defaults__", None) or ()
        self.names: tuple[str, ...] = every[:count]
        self._by_position = 0 if code is None else code.co_posonlyargcount
        self._defaults = dict(zip(every[len(every) - len(defaults):], defaults, strict=True))

    def in_place(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The same call, with operands in their places; unchanged if one is missing, which Python reports."""
        named = [i for i, name in enumerate(self.names) if i >= max(len(args), self._by_position) and name in kwargs]
        between = self.names[len(args):named[-1] + 1] if named else ()
        if not all([name in kwargs or name in self._defaults for name in between]):
            return args, kwargs
        rest = {name: value for name, value in kwargs.items() if name not in between}
        return (*args, *[kwargs[name] if name in kwargs else self._defaults[name] for name in between]), rest


def _operands(args: tuple[Any, ...], sequences: int) -> tuple[Any, list[Any]]:
    """The types of operands, as part of a key, and their values for NumPy.

    Of an integer of Python's, the bits are part of the key, since it depends on them which dtypes can hold it. A weak
    array of rank 0 is one of Python's numbers, too, as which NumPy brings it together with others.
    """
    types: list[Any] = []
    data: list[Any] = []
    weak = True
    for x in args:
        kind = type(x)
        if kind is Array:
            aval = x.aval
            if not aval.weak_type or aval.shape or aval.dtype is not dtypes.default_dtype(dtypes.kind(aval.dtype)):
                data.append(x._host)
                weak = False
            else:
                data.append(x._host.item())
            types.append(aval)
        elif kind in dtypes.PYTHON_SCALARS or x is None:
            data.append(x)
            types.append(kind if kind is not int or 0 <= x < 128 else (x < 0, (~x if x < 0 else x).bit_length()))
        elif sequences and (kind is list or kind is tuple):
            if len(x) > _LONGEST:
                raise NotDirectly
            inner_types, inner_data = _operands(x, sequences - 1)
            data.append(inner_data)
            types.append((kind, inner_types))
            weak = False
        else:
            array = from_array_like(x)
            data.append(array._host)
            types.append((kind, array.aval))
            weak = False
    if weak and config.default_bits == 32:  # where nothing says otherwise, NumPy takes 64 bits
        data = [x if x is None else dtypes.default_dtype(dtypes.kind(np.dtype(type(x)))).type(x) for x in data]
    return tuple(types), data


def _with_values(static: tuple[Any, ...], options: dict[str, Any]
                 ) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Static arguments some of which have no hash: as part of a key, and for NumPy, to which lists are tuples."""
    key, values = _frozen((static, tuple(options.values())))
    return (key, *options), values[0], dict(zip(options, values[1], strict=True))


def _frozen(x: Any) -> tuple[Any, Any]:
    kind = type(x)
    if kind is Array:
        return x.aval, x._host
    if kind is _ndarray:
        array = from_array_like(x)
        return (kind, array.aval), array._host
    if kind is list or kind is tuple:
        keys, values = zip(*map(_frozen, x), strict=True) if x else ((), ())
        return (kind, keys), values
    return (kind, x), x


def _have_hashes(x: object) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


def _was_entered(error: Exception) -> bool:
    """Whether it says that NumPy's warnings are off already: something that runs without them calls this."""
    at = error.__traceback__
    return (type(error) is RuntimeError and at is not None and at.tb_next is None
            and str(error).startswith("cannot enter context"))


def _boxed(out: Any, expected: ShapedArray) -> Array:
    array: Array = new_array()
    array.aval = expected
    if type(out) is _ndarray:
        if out.dtype is not expected.dtype or out.shape != expected.shape:
            raise _OtherType
        if not expected.shape:
            array._host = as_scalar(out)
            return array
        out.setflags(0)  # type: ignore[call-arg,arg-type]  # read-only: faster by position
        if not (out.flags.c_contiguous and (out.base is None or is_in_order(out))):
            array._view = out
            return array
    elif type(out) is not expected.dtype.type or expected.shape:
        raise _OtherType
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


def _boxed_all(boxed: Callable[[Any, ShapedArray], Array], outs: Any, expected: Any) -> Any:
    """What NumPy's function returned, one result or several, as arrays of these types."""
    if type(expected) is ShapedArray:
        return boxed(outs, expected)
    if expected is None or not isinstance(outs, (tuple, list)):
        raise _OtherType
    make, avals = expected
    if len(outs) != len(avals):
        raise _OtherType
    return make([boxed(out, aval) for out, aval in zip(outs, avals, strict=True)])


def _types_of(found: Any) -> Types:
    """The types of results, which a compiled program may have made; None if NumPy doesn't compute some of them."""
    kind: Any = type(found)
    if kind is Array:
        return found.aval if found.aval.dtype not in dtypes.PACKED else None
    if issubclass(kind, tuple) or kind is list:
        avals = [x.aval for x in found if type(x) is Array and x.aval.dtype not in dtypes.PACKED]
        if avals and len(avals) == len(found):
            return getattr(kind, "_make", kind), avals
    return None
