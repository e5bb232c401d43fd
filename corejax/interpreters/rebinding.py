"""Rebinding: run a Python function with other values in place of the tracers that it closes over.

A rule that a user wrote as a Python function may run later than where it was defined: while a program is transformed
that was traced before, or on the way back. By then, what it closes over has become an operand like any other: it may
be batched, be a variable of another program, or have a tangent. The function still holds the tracer that was there
when it was defined, so operands of primitives are looked up before anybody sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from corejax.base import trees
from corejax.kernel.context import context
from corejax.kernel.jaxpr import Params
from corejax.kernel.primitive import Primitive
from corejax.kernel.trace import Trace, Tracer


class RebindingTrace(Trace):
    """Replaces operands that have a stand-in, and leaves everything to its parent."""

    __slots__ = ("stand_ins",)
    is_transparent = True
    parent: Trace

    def __init__(self, parent: Trace, stand_ins: dict[int, Any]) -> None:
        super().__init__(parent)
        self.stand_ins = stand_ins

    @property
    def is_recording(self) -> bool:  # type: ignore[override]
        return self.parent.is_recording

    def process(self, primitive: Primitive, args: Sequence[object], params: Params) -> Any:
        stand_ins = self.stand_ins
        args = [stand_ins.get(id(x), x) if isinstance(x, Tracer) else x for x in args]
        context.trace = self.parent
        try:
            return self.parent.process(primitive, args, params)
        finally:
            context.trace = self


def rebound(fun: Callable[[], Any], tracers: Iterable[object], values: Iterable[Any]) -> Any:
    """The pytree that `fun` returns, with these values wherever it uses one of the tracers (None stands for nothing).

    Who calls keeps the tracers alive: they are known by their ids.
    """
    stand_ins = {id(x): value for x, value in zip(tracers, values, strict=True) if x is not None}
    caller = context.trace
    context.trace = trace = RebindingTrace(caller, stand_ins)
    try:
        out = fun()
    finally:
        context.trace = caller
        trace.live = False
    leaves, tree = trees.flatten(out)
    if stand_ins.keys().isdisjoint(map(id, leaves)):
        return out
    return tree.unflatten([stand_ins.get(id(x), x) for x in leaves])
