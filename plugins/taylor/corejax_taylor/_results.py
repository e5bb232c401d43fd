"""Checks of what jvp rules return when they run on series: their results would be combined without another look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.core import Primitive, ShapedArray, here
from corejax.errors import RuleError

__all__: list[str] = []


def checked_pair(primitive: Primitive, result: Any) -> tuple[Sequence[Any], Sequence[Any]]:
    """The results and their tangents, as many of each."""
    if type(result) not in (tuple, list) or len(result) != 2:
        raise _wrong(primitive, "didn't return a pair", f"{result!r:.80}", "(output, output tangent)",
                     "return both, the output first")
    out, dot = result
    if not primitive.multiple_results:
        return [out], [dot]
    for x, what in ((out, "outputs"), (dot, "output tangents")):
        if not isinstance(x, (tuple, list)) or len(x) != len(out):
            raise _wrong(primitive, f"returned the wrong number of {what}", f"{x!r:.80}", "a sequence of each",
                         f"return one entry for each of the {what}")
    return out, dot


def check_tangent(primitive: Primitive, found: ShapedArray, wanted: ShapedArray) -> None:
    """Raise unless a tangent is of its result's type. It may be weak, and vary along fewer axes of a mesh."""
    if not found.matches(wanted):
        raise _wrong(primitive, f"returned tangent {found}, wanted {wanted} as its primal", found, wanted,
                     "return a tangent of the primal's shape and dtype; for integers and zeros, Zero(aval.tangent)")


def _wrong(primitive: Primitive, problem: str, got: object, wanted: object, todo: str) -> RuleError:
    pack = primitive.providers.get("jvp", primitive.origin)
    pack = primitive.origin if pack == "derived" else pack
    return RuleError(f"{primitive.name}.jvp ({pack}): {problem}", primitive=primitive.name, hook="jvp", pack=pack,
                     got=got, wanted=wanted, where=here(), todo=todo)
