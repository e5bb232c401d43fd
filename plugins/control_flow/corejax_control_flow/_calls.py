"""What primitives share that call a jaxpr: checking its operands, and leaving out what nobody uses."""

from __future__ import annotations

from collections.abc import Sequence

from corejax.core import Jaxpr, ShapedArray, WeakCache, here
from corejax.errors import CorejaxTypeError
from corejax.ir.surgery import dce

Flags = tuple[bool, ...]


def check_operands(primitive: str, jaxpr: Jaxpr, avals: Sequence[ShapedArray]) -> None:
    """Refuse operands that are not those of the called jaxpr."""
    wanted = jaxpr.in_avals
    if len(avals) != len(wanted) or not all([a.matches(w) for a, w in zip(avals, wanted, strict=True)]):
        raise CorejaxTypeError(f"{primitive}: the operands don't fit the called jaxpr", primitive=primitive,
                               got=", ".join(map(str, avals)) or "no operands", where=here(),
                               wanted=", ".join(map(str, wanted)) or "no operands",
                               todo="pass one operand of the right type for each input of the jaxpr")


def without_dead_code(jaxpr: Jaxpr, used_out: Sequence[bool]) -> tuple[Jaxpr | None, Flags]:
    """The jaxpr for some of its outputs, and which inputs these need; the jaxpr is None if nothing is dead."""
    return _without_dead_code(jaxpr, tuple(used_out))


def _prune(jaxpr: Jaxpr, used_out: Flags) -> tuple[Jaxpr | None, Flags]:
    smaller, used_in = dce(jaxpr, used_out)
    return (None if smaller is jaxpr else smaller), used_in


_without_dead_code = WeakCache(_prune)
