"""Traces and tracers: the two concepts that every interpreter consists of.

A `Trace` is an interpreter at work: its `process` defines what applying a primitive does. A `Tracer` is a value that it
boxed. Each thread has one current trace; a trace interprets a primitive by binding other primitives with its *parent*
current. So interpreters nest by context, and no levels are compared.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from corejax.arrays.array import Array, as_array
from corejax.arrays.datamodel import DataModel
from corejax.arrays.storage import as_scalar, in_order, read_only, scalar_error
from corejax.base.avals import ShapedArray, aval_of
from corejax.base.errors import ConcretizationError, CorejaxTypeError, LeakedTracerError, LostDerivativeError
from corejax.base.holders import is_holder
from corejax.base.source import Location, describe, expression, here, is_subscript, location, place_here
from corejax.base.tracebacks import as_entry, public, trim
from corejax.kernel import numpy_calls

if TYPE_CHECKING:
    from corejax.kernel.axes import AxisEnv
    from corejax.kernel.jaxpr import Params
    from corejax.kernel.primitive import Primitive

class Trace:
    """An interpreter at work. `live` until its transformation has returned; its tracers must not be used later.

    A rule that depends on the current trace asks `context.trace` about its abilities, never for its class:

    - `knows_values`: it computes immediately, with arrays;
    - `is_mapping`: its values have one more axis than they show;
    - `is_recording`: whatever depends on unknown values is put off, to be run or transposed later;
    - `is_staging`: what is bound ends up in a jaxpr, its own or that of a trace around it;
    - `may_differentiate`: what is bound could be differentiated, by it or by a trace around it, now or later;
    - `is_supposing`: tangents known to be zero are taken for unknown ones, to see what becomes of them, so whatever
      can't have a tangent says so now rather than when that is needed.
    """

    __slots__ = ("parent", "live", "begun", "knows_values", "forgets", "__weakref__")
    is_mapping: ClassVar[bool] = False
    is_recording: ClassVar[bool] = False
    stages: ClassVar[bool] = False
    """Whether it turns what is bound into equations of a jaxpr. `is_staging` considers the traces around it too."""
    supposes: bool = False
    """The same for `is_supposing`."""
    is_transparent: ClassVar[bool] = False
    """Whether it only exchanges operands and has no values of its own: those of its parent are its, too."""
    stand_ins: Mapping[int, Any] = {}
    """The values, by id, of tracers that don't belong to it or to traces around it but may be used as if they did."""
    parent: Trace | None
    """The trace that was current when this one started, under which its rules run; None at the bottom."""
    live: bool
    knows_values: bool
    forgets: bool
    """Whether it drops equations that are unique once it has ended: its tracers may live longer, and keep these alive.
    """
    begun: Location
    """Where in the user's code it started, for errors about tracers that outlive it."""

    def __init__(self, parent: Trace | None = None) -> None:
        self.parent = parent
        self.live = True
        self.begun = None if parent is None else location(anywhere=True)
        self.forgets = False
        self.knows_values = False  # read at every index into an array: a slot takes half as long

    def __init_subclass__(cls) -> None:
        """A subclass's `process` also applies to one or two operands, unless it defines ways for these as well."""
        def place(name: str) -> int:
            return next(i for i, kind in enumerate(cls.__mro__) if name in vars(kind))

        for name in ("process_one", "process_two"):
            if place("process") < place(name):
                setattr(cls, name, vars(Trace)[name])

    def process(self, primitive: Primitive, args: Sequence[Any], params: Params) -> Any:
        """Apply the primitive: its result, or the list of its results if it has several."""
        raise NotImplementedError(type(self).__name__)

    def process_one(self, primitive: Primitive, x: object) -> Any:
        """`process` for one operand and no params: a trace may have a shortcut for that, with the same result."""
        if primitive.params:
            primitive.check_params({})
        return self.process(primitive, (x,), {})

    def process_two(self, primitive: Primitive, x: object, y: object, alike: ShapedArray | None = None) -> Any:
        """The same for two operands, both of the type `alike` if that is given."""
        if primitive.params:
            primitive.check_params({})
        return self.process(primitive, (x, y), {})

    def rule_operand(self, primitive: Primitive, i: int, x: object) -> Value:
        """The i-th operand of a primitive as its rules get it: an `Array` or a tracer. An error names the operand."""
        if type(x) is Array or isinstance(x, Tracer):
            return x
        try:
            return self.held(x)
        except CorejaxTypeError as error:
            raise operand_error(primitive, i, error) from None

    def held(self, x: object) -> Array:
        """What was passed in an array's place, as an `Array` that doesn't change when the user writes to an ndarray."""
        return as_array(x, copy=True) if self.parent is None else self.parent.held(x)

    def origin(self, tracer: Tracer) -> Location:
        """Where in the user's code this trace boxed a value, if known."""
        return None

    @property
    def is_staging(self) -> bool:
        trace: Trace | None = self
        while trace is not None:
            if trace.stages:
                return True
            trace = trace.parent
        return False

    @property
    def may_differentiate(self) -> bool:
        trace: Trace | None = self
        while trace is not None:
            if not (trace.knows_values or trace.is_mapping or trace.is_transparent):
                return True
            trace = trace.parent
        return False

    @property
    def is_supposing(self) -> bool:
        trace: Trace | None = self
        while trace is not None:
            if trace.supposes:
                return True
            trace = trace.parent
        return False


class Context(threading.local):
    """What a thread is doing: the current trace, the axes named by enclosing maps, the names of open scopes.

    `spmd`: along which axes of a mesh that axis is divided along which a vmap rule maps now.
    """

    bottom: ClassVar[Callable[[], Trace]]
    """Makes a thread's first trace."""
    trace: Trace
    axes: AxisEnv
    spmd: Hashable

    def __init__(self) -> None:
        if hasattr(Context, "bottom"):
            self.trace = Context.bottom()
        self.axes = ()
        self.spmd = None
        self.names: tuple[str, ...] = ()


@public
class Tracer(DataModel):
    """A value boxed by a trace. To the user, an array whose elements can't be looked at."""

    __slots__ = ("_trace", "aval", "__weakref__")
    _trace: Trace
    aval: ShapedArray
    _in_words = "a traced array"

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)
    weak_type = property(lambda self: self.aval.weak_type)

    def peek(self, wanted: str) -> Any:
        """The value behind it, to make a decision or to show it; `wanted` is a phrase for the error.

        Interpreters that know values override this, and `concrete` too if a value that leaves them loses something.
        """
        return self.concrete(wanted)

    def concrete(self, wanted: str) -> Any:
        """The value behind it, to be given away: to NumPy, to Python, to another library."""
        if not self._trace.live:
            raise leak_error(self, wanted)
        place = place_here() if wanted == _TO_NUMPY else None
        called, doing = expression(place), "an ndarray's index" if is_subscript(place) else wanted
        raise ConcretizationError(
            (f"{called}: " if called else "")
            + f"{wanted} needs the value of an array, but only its type is known here", got=history(self),
            wanted="a concrete value", where=here(), todo=next(
                (todo for start, todo in _INSTEAD.items() if doing.startswith(start)), _INSTEAD["else"]))

    @as_entry
    def __bool__(self) -> bool:
        try:
            return bool(self.peek("bool(x), as in `if x:`,"))
        except Exception as error:
            trim(error)
            raise

    # Integers are given away: they have no derivative, and that of rounding to one is zero.

    def __int__(self) -> int:
        return int(self.peek("int(x)"))

    def __trunc__(self) -> int:
        return math.trunc(float(self.peek("math.trunc(x)")))

    def __floor__(self) -> int:
        return math.floor(float(self.peek("math.floor(x)")))

    def __ceil__(self) -> int:
        return math.ceil(float(self.peek("math.ceil(x)")))

    def __index__(self) -> int:
        return self.peek("an index or a shape").__index__()  # type: ignore[no-any-return]

    def __float__(self) -> float:
        return float(self.concrete("float(x)"))

    def __complex__(self) -> complex:
        return complex(self.concrete("complex(x)"))

    # NumPy functions called with traced values. Arrays have no such methods: they leave those calls to NumPy.
    __array_ufunc__ = numpy_calls.array_ufunc
    __array_function__ = numpy_calls.array_function

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Any:
        return self.concrete(_TO_NUMPY).__array__(dtype, copy)

    def __format__(self, spec: str) -> str:
        return format(self.peek("a format as in f\"{x:.2f}\"").item(), spec) if spec else str(self)

    def item(self, *index: int) -> Any:
        """One element as a Python scalar: the only one, or the one at `index`."""
        return self.concrete("x.item()").item(*index)

    def tolist(self) -> Any:
        """The elements as nested lists."""
        return self.concrete("x.tolist()").tolist()

    def __len__(self) -> int:
        if not self.aval.shape:
            raise scalar_error(self, "can't be iterated over, and has no length")
        return self.aval.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def __repr__(self) -> str:
        return f"{type(self).__name__}<{self.aval}>"


_TO_NUMPY = "conversion to a NumPy array"

#: What to do instead of asking for a value, by how the phrase for the error starts.
_INSTEAD = {
    "bool": "use lax.cond, lax.select or lax.while_loop, which decide when the program runs; or mark the argument as "
            "static (static_argnums), if it isn't data",
    "an index or a shape": "sizes, axes and Python's indices are known when a function is traced: mark the argument as "
                           "static (static_argnums), take them from x.shape, or index a cj array instead of a list",
    "an ndarray's index": "index an array of corejax, which takes traced indices: cj.device_put(a)[i]; for one with "
                          "other elements, cj.device_put(a).at[i].set(value)",
    "conversion to a NumPy": "keep working with x itself: cj.lax, operators, methods, and the NumPy functions "
                             "that packs provide; join traced values with np.stack or np.concatenate",
    "a format": "return it and print it outside of the transformed function; {x} without a format shows its type",
    "else": "keep working with the array itself, using cj.lax and operators; or do this outside of the "
            "transformed function",
}


#: What interpreters compute with: an array, or a tracer.
Value: TypeAlias = Array | Tracer


def forget_when_done(tracer: Tracer) -> None:
    """Let nothing be reached from this tracer, once its transformation has ended, but traces that have ended, too.

    For a tracer that equations refer to, by a Python function among their params. They would keep themselves alive.
    """
    trace: Trace | None = tracer._trace
    while trace is not None and not trace.forgets:
        trace.forgets = True
        trace = trace.parent


def as_value(x: object) -> Value:
    """`x` if it is an `Array` or a tracer, else a new `Array`: rules may return raw NumPy arrays."""
    return x if type(x) is Array or isinstance(x, Tracer) or is_holder(x) else as_array(x, copy=True)  # type: ignore[return-value]


def belongs(x: object, trace: Trace | None) -> bool:
    """Whether a value is valid under `trace`: not a tracer, or a tracer of this trace or of one around it.

    Traces first test inline whether a tracer is their own, since a call costs more than two `is` tests.
    """
    if not isinstance(x, Tracer):
        return True
    while trace is not None:
        if trace is x._trace:
            return x._trace.live
        if id(x) in trace.stand_ins:
            return True
        trace = trace.parent
    return False


def check_belongs(x: Any, trace: Trace, doing: str) -> None:
    """Raise if a value isn't valid under `trace`."""
    if not belongs(x, trace):
        raise leak_error(x, doing)


def as_operand(primitive: Primitive, i: int, x: object) -> Array:
    """The i-th operand of a primitive as an `Array`, which may share its memory. An error names the operand."""
    try:
        # A view, so that no impl writes to the user's memory, and a returned operand isn't the user's own array.
        if type(x) is np.ndarray:
            aval = aval_of(x)
            if x.dtype is aval.dtype:
                if x.size == 1 or not x.flags.carray:  # else, it is in order
                    x = in_order(x)
                return Array.from_host(read_only(x.view()) if aval.shape else as_scalar(x), aval)
        return as_array(read_only(x.view()) if isinstance(x, np.ndarray) else x, copy=False)
    except CorejaxTypeError as error:
        raise operand_error(primitive, i, error) from None


def operand_error(primitive: Primitive, i: int, error: CorejaxTypeError) -> CorejaxTypeError:
    """An error about a value, turned into one about the i-th operand of a primitive."""
    if type(error) is not CorejaxTypeError or error.primitive is not None:
        return error
    return CorejaxTypeError(f"{primitive.name}: operand {i}: {error.message}", primitive=primitive.name,
                            got=error.got, wanted=error.wanted, where=here(), todo=error.todo)


def derivative_error(tracer: Tracer, wanted: str) -> LostDerivativeError:
    """The error for giving away a value that is being differentiated; `wanted` says what for."""
    called = expression(place_here())
    return LostDerivativeError(
        ("" if called in (None, wanted) else f"{called}: ") + f"{wanted} would lose the derivative of x",
        got=history(tracer).replace("traced", "differentiated", 1), where=here(),
        wanted="functions that can be differentiated: cj.lax, operators, array methods, and the NumPy functions "
               "that packs provide",
        todo="use these instead (np.stack makes an array from several values); or, if the value alone is wanted, "
             "lax.stop_gradient(x), which is a plain array here. print(x) and f\"{x:.3f}\" show the value")


def leak_error(tracer: Tracer, doing: str) -> LeakedTracerError:
    """The error for a tracer that turns up where it isn't valid."""
    if tracer._trace.live:
        return LeakedTracerError(
            f"{doing}: a traced value reached code that runs outside of its transformation", got=history(tracer),
            wanted="a value of this transformation, or of one around it", where=here(),
            todo="pass it as an argument instead of closing over it")
    return LeakedTracerError(
        f"{doing}: a traced value is used after the transformation that made it ended", got=history(tracer),
        wanted="a value that was returned from the transformed function", where=here(),
        todo="return the value from the function instead of storing it in a global, an attribute or a list")


def history(tracer: Tracer) -> str:
    """A tracer, with where it was made if that is known."""
    trace = tracer._trace
    made, begun = describe(trace.origin(tracer)), describe(trace.begun)
    return (f"a traced {tracer.aval}" + (f", made at {made}" if made else "")
            + (f", in the transformation called at {begun}" if begun else ""))
