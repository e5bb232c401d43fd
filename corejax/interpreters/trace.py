"""Traces and tracers: the two ideas that every interpreter is made of.

A `Trace` is an interpreter at work: `process` says what applying a primitive means to it. A `Tracer` is a value that
it boxed. Each thread has one current trace; a trace that interprets a primitive does so by binding other primitives
with its *parent* current. So interpreters nest by context, and no levels are compared.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from corejax.avals import ShapedArray
from corejax.datamodel import DataModel
from corejax.errors import ConcretizationError, CorejaxTypeError, LeakedTracerError
from corejax.source import here
from corejax.xla.array import Array, as_array


class Trace:
    """An interpreter at work. `live` until its transformation has returned; its tracers must not be used later."""

    __slots__ = ("parent", "live", "__weakref__")
    parent: Any
    """The trace that was current when this one began, under which its rules run; None at the bottom."""
    live: bool

    def __init__(self, parent: Trace | None = None) -> None:
        self.parent = parent
        self.live = True

    def process(self, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Apply the primitive: its result, or the list of its results if it has several."""
        raise NotImplementedError(type(self).__name__)


class Context(threading.local):
    """What a thread is doing: the current trace, the axes that enclosing vmaps named, the names of open scopes."""

    def __init__(self, base: Callable[[], Trace]) -> None:
        self.trace = base()
        self.axes: tuple[tuple[Any, int], ...] = ()
        self.names: tuple[str, ...] = ()


class Tracer(DataModel):
    """A value boxed by a trace. To the user, an array whose elements can't be looked at."""

    __slots__ = ("_trace", "aval", "__weakref__")
    _trace: Trace
    aval: ShapedArray

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)
    weak_type = property(lambda self: self.aval.weak_type)

    def concrete(self, wanted: str) -> Any:
        """The value behind it, for `wanted` (a phrase for the error); interpreters that know it override this."""
        raise ConcretizationError(
            f"{wanted} needs the value of an array of which only the type is known here", got=repr(self),
            wanted="a concrete value", where=here(),
            todo="for control flow use lax.cond, lax.select or lax.while_loop; mark arguments that are no data with "
                 "static_argnums; or do this outside of the transformed function")

    def __bool__(self) -> bool:
        return bool(self.concrete("bool(x), as in `if x:`,"))

    def __int__(self) -> int:
        return int(self.concrete("int(x)"))

    def __float__(self) -> float:
        return float(self.concrete("float(x)"))

    def __complex__(self) -> complex:
        return complex(self.concrete("complex(x)"))

    def __index__(self) -> int:
        return self.concrete("an index or a shape").__index__()  # type: ignore[no-any-return]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.concrete("conversion to a NumPy array").__array__(dtype, copy)

    def item(self) -> Any:
        """The element of an array of size 1 as a Python scalar."""
        return self.concrete("x.item()").item()

    def tolist(self) -> Any:
        """The elements as nested lists."""
        return self.concrete("x.tolist()").tolist()

    def __len__(self) -> int:
        if not self.aval.shape:
            raise CorejaxTypeError("a scalar has no length", got=str(self.aval), where=here())
        return self.aval.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])  # type: ignore[index]

    def __repr__(self) -> str:
        return f"{type(self).__name__}<{self.aval}>"


def as_value(x: Any) -> Any:
    """`x` if it is an `Array` or a tracer, else an `Array` of its own: what rules return may be raw NumPy."""
    return x if type(x) is Array or isinstance(x, Tracer) else as_array(x, copy=True)


def leak_error(tracer: Tracer, doing: str) -> LeakedTracerError:
    """The error for a tracer that turns up where it has no meaning."""
    if tracer._trace.live:
        return LeakedTracerError(
            f"{doing}: a traced value reached code that runs outside of its transformation", got=repr(tracer),
            where=here(), todo="pass it as an argument instead of closing over it")
    return LeakedTracerError(
        f"{doing}: a traced value is used after the function that made it was transformed", got=repr(tracer),
        wanted="a value that was returned from the transformed function", where=here(),
        todo="return the value from the function instead of storing it in a global, an attribute or a list")
