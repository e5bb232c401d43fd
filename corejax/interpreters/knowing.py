"""Knowing: what doesn't depend on traced values is computed at once, whatever transformation is at work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from corejax.interpreters.batching import are_about
from corejax.kernel.context import context
from corejax.kernel.jaxpr import Params
from corejax.kernel.primitive import Primitive
from corejax.kernel.trace import Trace, Tracer


class KnowingTrace(Trace):
    """Leaves whatever has a traced operand to its parent, and evaluates the rest at the bottom."""

    __slots__ = ("bottom",)
    is_transparent = True
    parent: Trace

    def __init__(self, parent: Trace) -> None:
        super().__init__(parent)
        self.bottom = parent
        while self.bottom.parent is not None:
            self.bottom = self.bottom.parent

    @property
    def is_recording(self) -> bool:  # type: ignore[override]
        return self.parent.is_recording

    def process(self, primitive: Primitive, args: Sequence[object], params: Params) -> Any:
        trace = self.parent if self._is_unknown(args, params) else self.bottom
        context.trace = trace
        try:
            return trace.process(primitive, args, params)
        finally:
            context.trace = self

    def _is_unknown(self, args: Sequence[object], params: Params) -> bool:
        """Whether an operand is traced, or the result depends on a position along an axis that a map has named."""
        return any([isinstance(x, Tracer) for x in args]) or any([
            are_about(params, axis.name) for axis in context.axes])


@contextmanager
def knowing() -> Iterator[None]:
    """Within the block, evaluate at once what can be."""
    previous = context.trace
    if previous.parent is None:  # it is anyway
        yield
        return
    context.trace = trace = KnowingTrace(previous)
    try:
        yield
    finally:
        context.trace = previous
        trace.live = False
