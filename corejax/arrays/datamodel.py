"""The operators and methods that arrays and tracers share.

The table below has Python's own operator names. Each operator calls the role `operators.NAME` when it is used; so does
every attribute that isn't a plain one (`x.sum`, `x.T`, `x.at`). It is up to the packs which primitive that applies.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import update_wrapper
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from corejax.base.avals import ShapedArray
from corejax.base.errors import (
    CorejaxAttributeError,
    CorejaxError,
    CorejaxNotImplementedError,
    CorejaxTypeError,
    suggestion,
)
from corejax.base.source import here
from corejax.base.standins import replaced
from corejax.base.tracebacks import as_entry, calls_users, public, trim
from corejax.installed import groups, registry
from corejax.installed.roles import operators, roles

if TYPE_CHECKING:
    from corejax.arrays.array import Array

UNARY = ("neg", "pos", "abs", "invert")
BINARY = ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv", "mod", "rmod",
          "divmod", "rdivmod", "pow", "rpow", "matmul", "rmatmul", "and", "rand", "or", "ror", "xor", "rxor",
          "lshift", "rlshift", "rshift", "rrshift", "eq", "ne", "lt", "le", "gt", "ge", "getitem")
#: The names of Python's operators, for each of which there is a role.
PYTHON_OPERATORS = frozenset([*UNARY, *BINARY])

#: Attributes that are often looked up without being there, so refusing them must be quick.
OFTEN_ABSENT = frozenset(["_host", "_buffer", "__array_struct__", "__array_interface__", "__dlpack_c_exchange_api__"])

#: What only concrete arrays have.
_ABSENT = frozenset(["device", "devices", "to_device", "is_ready", "block_until_ready", "delete", "is_deleted",
                     "addressable_shards", "global_shards", "addressable_data", "is_fully_addressable",
                     "is_fully_replicated", "__dlpack__", "__dlpack_device__"])


class ArrayType(type):
    """The class of `Array`: traced values pass for instances of it, and it has the methods that packs provide."""

    @public
    def __call__(cls, *_: Any, **__: Any) -> Any:
        raise CorejaxTypeError("an Array can't be made by calling its class", got="Array(...)",
                               wanted="a function that returns arrays", where=here(),
                               todo="use cj.device_put(x), or any function of cj.lax on a NumPy array")

    def __instancecheck__(cls, x: object) -> bool:
        # Not called for direct instances of the class.
        return isinstance(x, DataModel)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, DataModel)

    def __getattr__(cls, name: str) -> Any:
        if not name.startswith("_"):
            _take_methods()
            for kind in cls.__mro__:
                if name in vars(kind):
                    return getattr(cls, name)
        raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")

    def __dir__(cls) -> list[str]:
        _take_methods()
        return sorted(super().__dir__())


class DataModel:
    """Operators and methods, looked up by role. Subclasses have an `aval`."""

    __slots__ = ()
    __array_priority__ = 1000.0  # ndarray + x asks x.__radd__ instead of looping over x's elements
    aval: ShapedArray

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return self.aval.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return self.aval.size * self.aval.dtype.itemsize

    if not TYPE_CHECKING:  # type checkers read corejax.arrays.methods instead
        def __getattr__(self, name: str) -> Any:
            if name in OFTEN_ABSENT:
                raise AttributeError(name)
            if name.startswith("_") and name not in _ABSENT:  # private names are never roles
                try:
                    raise AttributeError(f"{type(self).__name__!r} object has no {name!r}")
                except AttributeError as error:
                    error.__traceback__ = None
                    raise
            if name in _ABSENT:
                raise _absent(self, name)
            try:
                _take_methods()
                return _method_of(name, type(self)).__get__(self)
            except Exception as error:
                trim(error)
                raise

    def __dir__(self) -> list[str]:
        _take_methods()
        return sorted(super().__dir__())

    if TYPE_CHECKING:  # what the loop below adds, for type checkers; a test keeps the two equal
        def __neg__(self) -> Array: ...
        def __pos__(self) -> Array: ...
        def __abs__(self) -> Array: ...
        def __invert__(self) -> Array: ...
        def __add__(self, other: ArrayLike, /) -> Array: ...
        def __radd__(self, other: ArrayLike, /) -> Array: ...
        def __sub__(self, other: ArrayLike, /) -> Array: ...
        def __rsub__(self, other: ArrayLike, /) -> Array: ...
        def __mul__(self, other: ArrayLike, /) -> Array: ...
        def __rmul__(self, other: ArrayLike, /) -> Array: ...
        def __truediv__(self, other: ArrayLike, /) -> Array: ...
        def __rtruediv__(self, other: ArrayLike, /) -> Array: ...
        def __floordiv__(self, other: ArrayLike, /) -> Array: ...
        def __rfloordiv__(self, other: ArrayLike, /) -> Array: ...
        def __mod__(self, other: ArrayLike, /) -> Array: ...
        def __rmod__(self, other: ArrayLike, /) -> Array: ...
        def __divmod__(self, other: ArrayLike, /) -> tuple[Array, Array]: ...
        def __rdivmod__(self, other: ArrayLike, /) -> tuple[Array, Array]: ...
        def __pow__(self, other: ArrayLike, /) -> Array: ...
        def __rpow__(self, other: ArrayLike, /) -> Array: ...
        def __matmul__(self, other: ArrayLike, /) -> Array: ...
        def __rmatmul__(self, other: ArrayLike, /) -> Array: ...
        def __and__(self, other: ArrayLike, /) -> Array: ...
        def __rand__(self, other: ArrayLike, /) -> Array: ...
        def __or__(self, other: ArrayLike, /) -> Array: ...
        def __ror__(self, other: ArrayLike, /) -> Array: ...
        def __xor__(self, other: ArrayLike, /) -> Array: ...
        def __rxor__(self, other: ArrayLike, /) -> Array: ...
        def __lshift__(self, other: ArrayLike, /) -> Array: ...
        def __rlshift__(self, other: ArrayLike, /) -> Array: ...
        def __rshift__(self, other: ArrayLike, /) -> Array: ...
        def __rrshift__(self, other: ArrayLike, /) -> Array: ...
        def __eq__(self, other: object, /) -> Array: ...  # type: ignore[override]
        def __ne__(self, other: object, /) -> Array: ...  # type: ignore[override]
        def __lt__(self, other: ArrayLike, /) -> Array: ...
        def __le__(self, other: ArrayLike, /) -> Array: ...
        def __gt__(self, other: ArrayLike, /) -> Array: ...
        def __ge__(self, other: ArrayLike, /) -> Array: ...
        def __getitem__(self, index: Any, /) -> Array: ...

    def __contains__(self, value: Any) -> bool:
        equal = self == value
        return equal if type(equal) is bool else bool(equal.any())

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    @public
    def __reduce__(self) -> Any:
        raise CorejaxTypeError("a traced value can't be pickled", got=str(self.aval), wanted="an array", where=here(),
                               todo="return it from the transformed function, and pickle the result")

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """How IPython shows it: with its lines aligned, also inside containers."""
        first, *others = repr(self).splitlines()
        printer.text(first)
        for line in others:
            printer.break_()
            printer.text(line)

    @public
    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        """The functions of the array API standard, by which other libraries compute with any array."""
        found: ModuleType = roles.array_namespace(api_version)
        return found

    @public
    def __round__(self, ndigits: int | None = None) -> Any:
        return operators.round(self, ndigits or 0)

    @public
    def __hash__(self) -> int:
        raise CorejaxTypeError(
            "arrays can't be hashed", got=str(self.aval), wanted="a value whose == is True or False", where=here(),
            todo="their equality is elementwise: use id(x), or hash a tuple made with x.tolist()")

    @public
    def __setitem__(self, index: object, value: object) -> None:
        at = f"x.at[{_written(index)}].set(value)"
        raise CorejaxTypeError("arrays are immutable", got=f"x[{_written(index)}] = value", wanted=at, where=here(),
                               todo=f"write x = {at}; there are also add, multiply, min and others")

    @public
    def __delitem__(self, index: Any) -> None:
        raise CorejaxTypeError("arrays are immutable", got=f"del x[{_written(index)}]", where=here(),
                               wanted="an array of the elements to keep",
                               todo="index the elements to keep, as in x[keep], or join them with lax.concatenate")


#: The operands of an array's operators: arrays, traced or NumPy's, and numbers.
ArrayLike: TypeAlias = DataModel | np.ndarray | np.generic | complex | float | int


def _absent(x: Any, name: str) -> CorejaxAttributeError:
    return CorejaxAttributeError(f"a traced value has no {name!r}", got=f"x.{name} of a traced {x.aval}",
                                 wanted="an array", where=here(),
                                 todo="do this outside of the transformed function, with what it returns; or, if it "
                                      "is differentiated, with lax.stop_gradient(x), if the value alone is wanted")


def _written(index: object) -> str:
    """An index as it is written between brackets."""
    if isinstance(index, tuple) and index:
        return ", ".join(map(_written, index))
    if isinstance(index, slice):
        parts = ["" if part is None else _written(part) for part in (index.start, index.stop, index.step)]
        return ":".join(parts if parts[2] else parts[:2])
    return "..." if index is Ellipsis else "index" if hasattr(index, "shape") else f"{index!r:.40}"


#: The roles that were looked up already: a subscription costs half as much as `getattr`.
_filled = operators.__dict__


# Methods

class _Late:
    """Stands for an attribute of arrays that a pack provides, until it is first used and its pack imported."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, x: object, kind: type) -> Any:
        try:
            found = _method_of(self.name, kind)
            setattr(DataModel, self.name, found)
            return found.__get__(x, kind)
        except Exception as error:
            trim(error)
            raise


def _take_methods() -> None:
    """Give the class an attribute for each method that packs provide. Done when packs are first needed."""
    if "__getattr__" not in vars(ArrayType):
        return
    for role in registry.installed().names(groups.ROLES):
        prefix, _, name = role.partition(".")
        if prefix == "operators" and name not in PYTHON_OPERATORS and name not in vars(DataModel):
            setattr(DataModel, name, _Late(name))
    # NumPy looks up its protocols in the class of each operand, and `__getattr__` on the metaclass slows that down.
    with suppress(AttributeError):  # another thread did it first
        del ArrayType.__getattr__


def _method_of(name: str, kind: type) -> Any:
    """The function that fills a role, as a method or a property of a class of arrays."""
    try:
        if name in PYTHON_OPERATORS:
            raise registry.unknown(groups.ROLES, name)
        function: Any = getattr(operators, name)
    except CorejaxError as error:
        todo = _instead(name, kind) if isinstance(error, CorejaxNotImplementedError) else error.todo
        raise CorejaxAttributeError(f"arrays have no attribute {name!r}", got=f"x.{name}", where=here(), todo=todo,
                                    wanted="a method that an installed pack provides: dir(x) lists them") from error

    @calls_users
    def method(self: object, /, *args: Any, **kwargs: Any) -> Any:
        try:
            return (_filled[name] if name in _filled else getattr(operators, name))(self, *args, **kwargs)
        except Exception as error:
            again = replaced(error, (args, kwargs))
            if again is None:
                trim(error)
                raise
        return method(self, *again[0], **again[1])

    update_wrapper(method, function)
    method.__qualname__ = f"Array.{name}"
    return property(method) if getattr(function, "is_property", False) else method


def _instead(name: str, kind: type) -> str:
    near = suggestion(name, [known for known in dir(kind) if not known.startswith("_")])
    hint = registry.install_hint(f"operators.{name}", (groups.ROLES,))
    return f"{near} otherwise {hint}" if near else hint


# Operators

def _load(name: str) -> Callable[..., Any]:
    _take_methods()
    return getattr(operators, name)  # type: ignore[no-any-return]


def _unary(name: str) -> Callable[[Any], Any]:
    def method(self: object) -> Any:
        try:
            return (_filled[name] if name in _filled else _load(name))(self)
        except Exception as error:
            trim(error)
            raise
    return method


def _binary(name: str) -> Callable[[Any, Any], Any]:
    def method(self: object, other: object) -> Any:
        try:
            return (_filled[name] if name in _filled else _load(name))(self, other)
        except Exception as error:
            trim(error)
            raise
    return method


for _make, _names in ((_unary, UNARY), (_binary, BINARY)):
    for _name in _names:
        _method = as_entry(_make(_name))
        _method.__name__, _method.__qualname__ = f"__{_name}__", f"DataModel.__{_name}__"
        setattr(DataModel, f"__{_name}__", _method)
