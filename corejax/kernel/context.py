"""The thread's context: which trace is current. The bottom trace, which evaluates, is handed in from above."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from corejax.base.errors import CorejaxNameError, CorejaxTypeError
from corejax.base.source import here
from corejax.base.tracebacks import public
from corejax.kernel.trace import Context, Trace

if TYPE_CHECKING:
    from corejax.kernel.axes import AxisEnv, NamedAxis

context = Context()


def stand_on(bottom: Callable[[], Trace]) -> None:
    """Make every thread start with a trace made by `bottom`: the one that computes."""
    Context.bottom = staticmethod(bottom)
    context.trace = bottom()


@contextmanager
def tracing(trace: Trace) -> Iterator[None]:
    """Make `trace` the current one within the block; the previous one is restored afterwards, whatever happens.

    The interpreters' own inner loops write out the same try/finally by hand: see docs/decisions.
    """
    previous = context.trace
    context.trace = trace
    try:
        yield
    finally:
        context.trace = previous


@contextmanager
def binding(axes: AxisEnv) -> Iterator[None]:
    """Name these axes within the block, inside of those that are named already."""
    previous = context.axes
    context.axes = (*previous, *axes)
    try:
        yield
    finally:
        context.axes = previous


def bound_axis(name: Hashable, what: str) -> NamedAxis:
    """The innermost axis of this name; raises if an enclosing map has none. `what` says who asks, for the error."""
    axes: AxisEnv = context.axes
    axis: NamedAxis
    for axis in reversed(axes):
        if type(axis.name) is type(name) and axis.name == name:
            return axis
    bound = ", ".join([f"{axis.name!r} of size {axis.size}" for axis in axes])
    raise CorejaxNameError(f"{what}: no axis is called {name!r} here", got=repr(name)[:80], where=here(),
                           wanted=f"one of the axes named here: {bound}" if bound else "an axis that a map has named",
                           todo="call it in a function that is mapped with this axis_name: by cj.vmap, cj.pmap or "
                                "cj.shard_map")


@public
def named_scope(name: str) -> AbstractContextManager[None]:
    """Put equations traced in the block into the scope `name`, which is shown in the lowered program."""
    if not isinstance(name, str):
        raise CorejaxTypeError("a scope needs a name", got=repr(name)[:80], wanted="a string", where=here(),
                               todo="write with cj.named_scope('encoder'):")
    return _in_scope(name)


@contextmanager
def _in_scope(name: str) -> Iterator[None]:
    previous = context.names
    context.names = (*previous, name)
    try:
        yield
    finally:
        context.names = previous
