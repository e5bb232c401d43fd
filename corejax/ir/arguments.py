"""Checks of what transformations take besides a jaxpr: a flag, or a batch axis, for each input or output."""

from __future__ import annotations

from collections.abc import Sequence, Sized

from corejax.base.errors import CorejaxTypeError, CorejaxValueError, kind_of
from corejax.base.source import here
from corejax.kernel.jaxpr import ClosedJaxpr, Jaxpr


def check_jaxpr(what: str, jaxpr: object) -> None:
    """Raise unless it is a `Jaxpr`, without constants."""
    if type(jaxpr) is Jaxpr and not jaxpr.constvars:
        return
    closed = type(jaxpr) is ClosedJaxpr or type(jaxpr) is Jaxpr
    raise CorejaxTypeError(
        f"{what}: the program must be a Jaxpr without constants", where=here(), wanted="a Jaxpr",
        got="a jaxpr with constants" if type(jaxpr) is Jaxpr else kind_of(jaxpr),
        todo="turn its constants into operands: corejax.ir.consts_to_operands" if closed else "pass the jaxpr first")


def check_each(what: str, name: str, entries: Sized, wanted: int, each: str) -> None:
    """Raise unless there is one entry for each input or output."""
    if len(entries) != wanted:
        raise CorejaxValueError(f"{what}: {name} must have one entry for each {each}", got=len(entries), wanted=wanted,
                                where=here(), todo="give them in the order of the jaxpr")


def for_each_output(what: str, jaxpr: Jaxpr, flags: bool | Sequence[bool]) -> tuple[bool, ...]:
    """A flag for each output of the jaxpr, from a sequence of them or a single one for all."""
    check_jaxpr(what, jaxpr)
    return (flags,) * len(jaxpr.outvars) if isinstance(flags, bool) else tuple(flags)
