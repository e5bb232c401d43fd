"""What arrays and tracers have in common in Python's eyes: operators and methods.

The table below holds Python's own operator names. Each operator asks the role `operators.NAME` when it is used; so
does every attribute that is not a plain one (`x.sum`, `x.T`, `x.at`). Which primitive answers is the packs' business.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from corejax.errors import CorejaxAttributeError, CorejaxError, CorejaxTypeError
from corejax.plugin.roles import operators
from corejax.source import here

UNARY = ("neg", "pos", "abs", "invert")
BINARY = ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv", "mod", "rmod",
          "divmod", "rdivmod", "pow", "rpow", "matmul", "rmatmul", "and", "rand", "or", "ror", "xor", "rxor",
          "lshift", "rlshift", "rshift", "rrshift", "eq", "ne", "lt", "le", "gt", "ge", "getitem")


class DataModel:
    """Operators and methods by role. Subclasses have an `aval`."""

    __slots__ = ()
    __array_priority__ = 1000.0  # ndarray + x asks x.__radd__ instead of looping over x's elements

    def __getattr__(self, name: str) -> Any:
        # An unset slot lands here too: private names are never roles.
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            function = getattr(operators, name)
        except CorejaxError as error:
            raise CorejaxAttributeError(f"arrays have no attribute {name!r}", where=here(), todo=error.todo) from error
        return function(self) if getattr(function, "is_property", False) else partial(function, self)

    def __round__(self, ndigits: int | None = None) -> Any:
        return operators.round(self, ndigits or 0)

    def __hash__(self) -> int:
        raise CorejaxTypeError(
            f"a {type(self).__name__} can't be hashed", got=str(self.aval), where=here(),
            todo="its equality is elementwise: use id(x), or hash a tuple made with x.tolist()")

    def __setitem__(self, index: Any, value: Any) -> None:
        raise CorejaxTypeError("arrays are immutable", got=f"x[{index!r}] = ...", where=here(),
                               todo="write x = x.at[index].set(value)")


def _unary(name: str) -> Callable[[Any], Any]:
    def method(self: Any) -> Any:
        return getattr(operators, name)(self)
    return method


def _binary(name: str) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        return getattr(operators, name)(self, other)
    return method


for _make, _names in ((_unary, UNARY), (_binary, BINARY)):
    for _name in _names:
        _method = _make(_name)
        _method.__name__, _method.__qualname__ = f"__{_name}__", f"DataModel.__{_name}__"
        setattr(DataModel, f"__{_name}__", _method)
