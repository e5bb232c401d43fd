"""What references are made of: a value, the trace that it belongs to, and how it is read and replaced.

A reference belongs to the trace under which it was made, its home, and holds a value of that trace: so it is read and
written in Python, when a function is traced, and nothing of that ends up in the program but what is computed. Inside
of a program that is traced later (the body of a loop, say), it is a variable, read and written by equations. Where
that program is bound, these become operands and results (`_programs`, `_carriers`).
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from corejax.core import Trace, aval_of, belongs, context, here, tracing
from corejax.errors import CorejaxError, CorejaxValueError
from corejax.plugin import HeldError, Holder, roles
from corejax_references._primitives import differentiated, get_p, mapped, set_p

__all__ = ["Cell", "bound_around", "is_shared", "mapped_here", "read", "replace", "twice", "variable_of"]


class Cell(Holder):
    """Holds an array, of type `aval.inner_aval`."""

    __slots__ = ("_aval", "_ended", "_home", "_shown", "_value", "_variable", "__weakref__")

    _aval: Any
    _home: Trace | None
    """The trace to which what it holds belongs; None at the bottom, in every thread."""
    _value: Any
    """What it holds, unless that is read by an equation or a rule."""
    _variable: Any
    """What stands for it there: a variable of a program, or a tracer of `vmap` or `jvp`. None if it has a value."""
    _ended: str
    """What ended it, in words."""
    _shown: weakref.WeakSet[Trace]
    """Where functions are being mapped or differentiated that got it as an argument."""

    def __init__(self, aval: Any, home: Trace | None, value: Any = None, variable: Any = None) -> None:
        self._aval, self._home, self._value, self._variable, self._ended = aval, home, value, variable, ""
        self._shown = weakref.WeakSet()

    @property
    def aval(self) -> Any:  # type: ignore[override]
        """The type of the reference."""
        return self._aval

    @property
    def is_traced(self) -> bool:  # type: ignore[override]
        """Whether it only exists while a function is traced."""
        return self._home is not None

    @property
    def is_usable(self) -> bool:  # type: ignore[override]
        """Whether a function that runs now could read or write it."""
        try:
            _home(self)
        except CorejaxError:
            return False
        return True

    def not_an_array(self) -> HeldError:
        error = HeldError("a reference stands where an array must be", got=f"a reference, {self._aval}", where=here(),
                          wanted="an array", todo="read what it holds: ref[...]")
        error.holder = self
        return error

    def given_twice(self) -> CorejaxError:
        return twice(self, "passed to a function twice")


def twice(ref: Cell, how: str) -> CorejaxValueError:
    """The error for a reference that would have two names in a program."""
    return CorejaxValueError(f"the same reference is {how}", got=f"a reference, {ref.aval}", where=here(),
                             wanted="one way to each reference, so that the order of what is read and written is clear",
                             todo="pass it once, or only close over it; or pass a new reference to a copy: "
                                  "cj.new_ref(ref[...])")


def _home(ref: Cell) -> tuple[Cell, Trace, list[Trace], Trace | None]:
    """The reference, or what stands in for it; the trace that this belongs to; those in between; and, if there is one,
    the innermost program that is being traced among these, in which case the third are the traces around that.
    """
    if ref._ended:
        raise CorejaxValueError(f"this reference was {ref._ended}", got=f"a reference, {ref.aval}", where=here(),
                                wanted="a reference that still exists",
                                todo="use what freeze returned, or make another one by cj.new_ref")
    trace: Trace | None = context.trace
    passed: list[Trace] = []
    program: Trace | None = None
    between: list[Trace] = []
    while trace is not None and trace is not ref._home and (trace.parent is not None or ref._home is not None):
        ref = trace.stand_ins.get(id(ref), ref)
        if trace in ref._shown:
            raise twice(ref, "both closed over by a function and passed to it")
        passed.append(trace)
        if trace.stages and program is None:
            program, between = trace, passed[:-1]
        trace = trace.parent
    if trace is None or not trace.live:
        raise CorejaxValueError(
            "a reference is used outside of the function that it was made in", got=f"a reference, {ref.aval}, of a "
            "function that was traced, mapped or differentiated", where=here(),
            wanted="references of this function, or of those around it",
            todo="return what it holds, ref[...]; or make the reference outside, and pass it or close over it")
    return ref, trace, passed if program is None else between, program


def _here(ref: Cell) -> tuple[Cell, Trace, list[Trace]]:
    """What stands for a reference under the current trace; the trace that this belongs to; and those in between."""
    ref, home, between, program = _home(ref)
    if program is None:
        return ref, home, between
    variable = program.of_type(ref, ref._aval)  # type: ignore[attr-defined]
    return Cell(ref._aval, program, variable=variable), program, between


def variable_of(ref: Cell) -> Any:
    """The variable that stands for a reference in the program that is being traced; None if it was made there."""
    return _here(ref)[0]._variable


def bound_around(primitive: Any, args: Sequence[Any], params: Mapping[str, Any]) -> list[Any]:
    """What a primitive gives under the trace around the current one, of which no operand is."""
    trace = context.trace
    assert trace.parent is not None  # as it doesn't know values
    args = [trace.stand_ins.get(id(x), x) for x in args]
    with tracing(trace.parent):
        return primitive.bind(*args, **params)  # type: ignore[no-any-return]


def is_shared(ref: Cell) -> bool:
    """Whether all elements of a batch have this reference in common, in the function that runs now."""
    return any([trace.is_mapping for trace in _home(ref)[2]])


def mapped_here(args: Sequence[Any]) -> list[Any] | None:
    """What stands for operands that include references where a function is being mapped that got them as arguments.

    None where any of them isn't mapped, or no derivative may be taken.
    """
    trace = context.trace
    if not (trace.is_mapping and trace.may_differentiate):
        return None
    found = [x._variable if isinstance(x, Cell) and x._home is trace else x for x in args]
    return None if any([isinstance(x, Cell) or x is None for x in found]) else found


def read(ref: Any) -> Any:
    own, home, _ = _here(ref)
    if own._variable is None:
        return own._value
    with tracing(home):
        return get_p.bind(own._variable)


def replace(ref: Cell, x: Any) -> None:
    """Let a reference hold this array, which is of its type."""
    own, home, between = _here(ref)
    for trace in between:
        if trace.is_mapping:
            raise mapped(ref)
        x = trace.stand_ins.get(id(x), x)
    if not belongs(x, home):
        raise differentiated(ref)
    with tracing(home):
        aval = own._aval
        if aval_of(x) is not aval.inner_aval:
            x = roles.convert(x, aval.dtype, aval.weak_type)
        if own._variable is None:
            own._value = x
        else:
            set_p.bind(own._variable, x)
