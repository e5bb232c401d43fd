"""NumPy functions called with traced values, through NumPy's protocols: `np.sin(x)`, `np.add(a, x)`, `a + x`,
`np.sum(x)`.

The meaning of each is looked up in this order: Python's operators, for the ufuncs that correspond to one; functions
that only need types; the tables of the roles `numpy_ufunc` and `numpy_function`, which map NumPy's function objects to
functions of the same arguments and which every pack may add to; and array methods, for functions that ndarray has as
methods. For any other function, the error names it: converting the operands would lose a derivative, or fail.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from corejax.arrays.array import Array, as_array
from corejax.arrays.datamodel import DataModel
from corejax.base import dtypes
from corejax.base.avals import aval_of
from corejax.base.config import config
from corejax.base.errors import CorejaxError, CorejaxTypeError, kind_of
from corejax.base.miscalls import is_miscall
from corejax.base.source import expression, here, place_here
from corejax.base.tracebacks import as_entry, trim
from corejax.installed import groups, registry
from corejax.installed.roles import operators, roles

Function = Callable[..., Any]

#: The ufuncs that are Python operators: the role for an array on the left, and for an array on the right only.
_BINARY = {
    np.add: ("add", "radd"), np.subtract: ("sub", "rsub"), np.multiply: ("mul", "rmul"),
    np.true_divide: ("truediv", "rtruediv"), np.floor_divide: ("floordiv", "rfloordiv"),
    np.remainder: ("mod", "rmod"), np.divmod: ("divmod", "rdivmod"), np.power: ("pow", "rpow"),
    np.matmul: ("matmul", "rmatmul"), np.bitwise_and: ("and", "rand"), np.bitwise_or: ("or", "ror"),
    np.bitwise_xor: ("xor", "rxor"), np.left_shift: ("lshift", "rlshift"), np.right_shift: ("rshift", "rrshift"),
    np.equal: ("eq", "eq"), np.not_equal: ("ne", "ne"), np.less: ("lt", "gt"), np.less_equal: ("le", "ge"),
    np.greater: ("gt", "lt"), np.greater_equal: ("ge", "le"),
}
_UNARY = {np.negative: "neg", np.positive: "pos", np.absolute: "abs", np.invert: "invert"}

_SYMBOLS = {np.add: "+", np.subtract: "-", np.multiply: "*", np.true_divide: "/", np.floor_divide: "//",
            np.remainder: "%", np.power: "**", np.matmul: "@", np.bitwise_and: "&", np.bitwise_or: "|",
            np.bitwise_xor: "^", np.left_shift: "<<", np.right_shift: ">>"}

#: Keyword arguments of ufuncs that have no effect with these values.
_PLAIN = {"where": True, "dtype": None, "casting": "same_kind", "order": "K", "subok": True, "signature": None}


# The protocols

@as_entry
def array_ufunc(self: object, ufunc: object, method: str, /, *inputs: Any, **kwargs: Any) -> Any:
    """NumPy's protocol for ufuncs, as a method of traced values."""
    try:
        if type(inputs[0]) is np.ndarray and not kwargs and method == "__call__" and ufunc in _BINARY:
            return getattr(operators, _BINARY[ufunc][1])(inputs[1], inputs[0])  # a + x, without a detour
        return _ufunc(ufunc, method, inputs, kwargs)
    except Exception as error:
        trim(error)
        raise


@as_entry
def array_function(self: object, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """NumPy's protocol for its other functions, as a method of traced values."""
    try:
        return _function(function, types, args, kwargs)
    except Exception as error:
        trim(error)
        raise


# Ufuncs

def _ufunc(function: object, method: str, inputs: tuple[object, ...], kwargs: dict[str, Any]) -> Any:
    if not all([_is_ours(type(x), "__array_ufunc__") for x in inputs]):
        return NotImplemented
    if "out" in kwargs:
        raise _refused_out(function, method, inputs, kwargs["out"])
    if kwargs:
        kwargs = {name: value for name, value in kwargs.items() if name not in _PLAIN or value is not _PLAIN[name]}
    if method == "__call__":
        inputs = tuple([from_array_like(x) if isinstance(x, (list, tuple)) else x for x in inputs])
        if not kwargs:
            if function in _BINARY:
                return _operator(function, *inputs)
            if function in _UNARY:
                return getattr(operators, _UNARY[function])(*inputs)
    else:
        function = getattr(function, method)
    found = roles.numpy_ufunc.get(function)  # type: ignore[attr-defined]
    if found is None and method == "at":
        raise _not_written(_name(function), _types(inputs))
    if found is None:
        raise _refused(function, groups.NUMPY_UFUNC, inputs)
    return _call(found, function, inputs, kwargs)


def _operator(function: Any, x: object, y: object) -> Any:
    forward, reflected = _BINARY[function]
    out = getattr(operators, forward)(x, y) if isinstance(x, DataModel) else getattr(operators, reflected)(y, x)
    if out is NotImplemented:
        other = y if isinstance(x, DataModel) else x
        raise CorejaxTypeError(f"{_name(function)} takes arrays", got=kind_of(other), where=here(),
                               wanted="arrays and numbers", todo="convert it to an array first")
    return out


def _refused_out(function: object, method: str, inputs: Sequence[object], out: Sequence[object]) -> CorejaxTypeError:
    """The error for a call that would write its result to an array."""
    if method == "__call__" and function in _SYMBOLS and len(inputs) == 2 and out[0] is inputs[0]:
        symbol = _SYMBOLS[function]
        return CorejaxTypeError(
            f"a {symbol}= x would write a traced value into the ndarray a", got=_types(inputs),
            wanted=f"a = a {symbol} x, which makes a new array", where=here(), todo=f"write a = a {symbol} x")
    return _not_written(_name(function, method), _types(inputs))


def _not_written(name: str, got: str) -> CorejaxTypeError:
    called = expression(place_here())
    if called and name.rpartition(".")[2] not in called:  # within another NumPy function
        name = f"{called}: {name}"
    return CorejaxTypeError(f"{name} would write a traced value into an ndarray", got=got, where=here(),
                            wanted="a new array as the result",
                            todo="omit out=... and use what it returns; for elements, x.at[index].set(values)")


# Functions

def _function(func: Any, types: Sequence[type], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if not all([_is_ours(kind, "__array_function__") for kind in types]):
        return NotImplemented
    if func in _OF_TYPES:
        return _OF_TYPES[func](*args, **kwargs)
    if func in _WRITING:
        raise _not_written(_name(func), _types(args))
    if "out" in kwargs:
        if kwargs["out"] is not None:
            raise _not_written(_name(func), _types(args))
        kwargs = {name: value for name, value in kwargs.items() if name != "out"}
    found = roles.numpy_function.get(func)  # type: ignore[attr-defined]
    if found is None:
        found, args, kwargs = _array_method(func, args, kwargs)
    if found is None and not _is_traced([*args, *kwargs.values()]):
        return func(*args, **kwargs)  # np.zeros(3, like=x), which arrives without the `like`
    if found is None:
        raise _refused(func, groups.NUMPY_FUNCTION, [*args, *kwargs.values()])
    return _call(found, func, args, kwargs)


def _array_method(func: object, args: tuple[object, ...], kwargs: dict[str, Any]
                  ) -> tuple[Function | None, tuple[Any, ...], dict[str, Any]]:
    """The array method for a NumPy function that ndarray has as a method, with its arguments; else None."""
    name = _METHODS.get(func)
    if name is None:
        return None, args, kwargs
    if not args and "a" in kwargs:
        args, kwargs = (kwargs["a"],), {key: value for key, value in kwargs.items() if key != "a"}
    role = f"operators.{name}"
    if not args or not (name in vars(operators) or registry.installed().providers(groups.ROLES, role)):
        return None, args, kwargs
    return getattr(operators, name), (from_array_like(args[0]), *args[1:]), kwargs


#: The NumPy functions that ndarray has as methods, with their names.
_METHODS = {getattr(np, name): name for name in dir(np.ndarray) if not name.startswith("_") and hasattr(np, name)}


# Shared by both

def from_array_like(x: object) -> Any:
    """Anything that NumPy accepts as an array, as one of ours: traced if it is, or if an element of a nested list is.

    >>> from_array_like([[1, 2], (3, 4)])
    Array([[1, 2],
           [3, 4]], dtype=int64)
    """
    if isinstance(x, DataModel):
        return x
    if not isinstance(x, (list, tuple)):
        return as_array(x, copy=True)
    if _is_traced(x):
        return roles.stack([from_array_like(part) for part in x])
    host = np.asarray(x)
    narrow = config.default_bits == 32 and host.dtype.kind in "ifc" and _are_numbers(x)
    return as_array(host.astype(dtypes.default_dtype(host.dtype.kind)) if narrow else host, copy=False)


def _are_numbers(x: object) -> bool:
    """Whether there are only Python's numbers, and integers of the default dtype."""
    if isinstance(x, (list, tuple)):
        return all(map(_are_numbers, x))
    return type(x) in dtypes.PYTHON_SCALARS and (type(x) is not int or -2 ** 31 <= x < 2 ** 31)


def _is_traced(x: object) -> bool:
    return any(map(_is_traced, x)) if isinstance(x, (list, tuple)) else isinstance(x, DataModel)


def _is_ours(kind: type, protocol: str) -> bool:
    """Whether a type leaves the protocol to us, having none of its own."""
    own = getattr(kind, protocol, None)
    return own is None or own is getattr(np.ndarray, protocol) or issubclass(kind, DataModel)


def _call(found: Function, function: object, args: Sequence[object], kwargs: Mapping[str, object]) -> Any:
    try:
        return found(*args, **kwargs)
    except TypeError as error:
        if isinstance(error, CorejaxError) and not is_miscall(error):
            raise
        try:
            known = inspect.signature(found)
            known.bind(*args, **kwargs)
        except ValueError:  # a function written in C without a signature
            raise error from None
        except TypeError as misfit:
            plain = [parameter.replace(annotation=parameter.empty) for parameter in known.parameters.values()]
            known = known.replace(parameters=plain, return_annotation=known.empty)
            raise CorejaxTypeError(
                f"{_name(function)} doesn't take these arguments for traced values", got=str(misfit), where=here(),
                wanted=f"arguments for {_name(function)}{known}",
                todo="leave them out, or write it with cj.lax, operators and array methods") from None
        raise


def _refused(function: object, role: str, args: Sequence[object]) -> CorejaxTypeError:
    """The error for a function that no pack provides."""
    return CorejaxTypeError(
        f"{_name(function)} has no counterpart for traced values", got=_types(args), where=here(),
        wanted=f"a function that a pack provides, by the role {role} ({registry.packs_in_use()})",
        todo="write it with cj.lax, operators and array methods; or, where x is differentiated but not compiled or "
             "mapped, call it with lax.stop_gradient(x), if the value alone is wanted")


def _name(function: Any, method: str = "__call__") -> str:
    """A NumPy function as it is written in code; `np.add.reduce` for a ufunc's method."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, np.ufunc):
        return f"{_name(owner)}.{function.__name__}"
    name = getattr(function, "__name__", str(function))
    module = "numpy" if getattr(np, name, None) is function else getattr(function, "__module__", None) or ""
    where = module.replace("numpy", "np", 1) + "." if module else ""
    return f"{where}{name}" if method == "__call__" else f"{where}{name}.{method}"


def _types(args: Sequence[object]) -> str:
    """The types of arrays among arguments."""
    found = [x for arg in args for x in (arg if isinstance(arg, (list, tuple)) else (arg,))]
    shown = [_type(x) for x in found if not isinstance(x, (str, type(None)))]
    return ", ".join(shown[:4]) + (", ..." if len(shown) > 4 else "")


def _type(x: object) -> str:
    if isinstance(x, DataModel):
        return str(x.aval) if type(x) is Array else f"a traced {x.aval}"
    return str(aval_of(x)) if isinstance(x, (np.ndarray, np.generic)) and x.dtype in dtypes.ALL else kind_of(x)


# Functions that only need types

def _size(a: Any, axis: Any = None) -> int:
    return int(a.aval.size if axis is None else np.size(np.broadcast_to(False, a.aval.shape), axis))


def _stand_in(x: object) -> Any:
    """An argument for a function that only needs types, with a dtype in place of a traced value."""
    return x.aval.dtype if isinstance(x, DataModel) else x


_OF_TYPES: dict[Any, Function] = {
    np.shape: lambda a: a.aval.shape,
    np.ndim: lambda a: a.aval.ndim,
    np.size: _size,
    np.result_type: lambda *args: np.result_type(*map(_stand_in, args)),
    np.can_cast: lambda from_, to, casting="safe": np.can_cast(_stand_in(from_), _stand_in(to), casting),
    np.common_type: lambda *arrays: np.common_type(*[np.empty(0, _stand_in(x)) if isinstance(x, DataModel) else x
                                                     for x in arrays]),
    np.iscomplexobj: lambda x: x.aval.dtype.kind == "c",
    np.isrealobj: lambda x: x.aval.dtype.kind != "c",
    np.array_repr: lambda arr, *_, **__: repr(arr),
    np.array_str: lambda a, *_, **__: str(a),
    np.array2string: lambda a, *_, **__: str(a),
}

#: Functions that write into their first argument.
_WRITING = frozenset([np.copyto, np.put, np.place, np.putmask, np.put_along_axis, np.fill_diagonal])
