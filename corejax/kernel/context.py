"""The thread's context: which trace is current. The bottom trace, which evaluates, is handed in from above."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from corejax.base.errors import CorejaxTypeError
from corejax.base.source import here
from corejax.base.tracebacks import public
from corejax.kernel.trace import Context, Trace

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
