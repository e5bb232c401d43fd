"""The thread's context: which trace is current. The bottom one evaluates."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from corejax.errors import CorejaxTypeError
from corejax.interpreters.evaluate import EvalTrace
from corejax.interpreters.trace import Context, Trace
from corejax.source import here
from corejax.tracebacks import public

#: Where no transformation is at work, the current trace is the thread's own `EvalTrace`.
context = Context(EvalTrace)


@contextmanager
def tracing(trace: Trace) -> Iterator[None]:
    """Make `trace` the current one within the block; the previous one is back afterwards, whatever happens.

    The interpreters' own inner loops write the same try/finally out by hand: see docs/decisions.
    """
    previous = context.trace
    context.trace = trace
    try:
        yield
    finally:
        context.trace = previous


@public
def named_scope(name: str) -> AbstractContextManager[None]:
    """Equations traced in the block belong to the scope `name`, which the lowered program shows."""
    if not isinstance(name, str):
        raise CorejaxTypeError("a scope has a name", got=repr(name)[:80], wanted="a string", where=here(),
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
