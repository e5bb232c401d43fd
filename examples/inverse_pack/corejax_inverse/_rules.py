"""Inverses as declarations: for each operand, how it follows from the result and the other operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from corejax.core import Primitive, ShapedArray, aval_of, dtypes, here
from corejax.errors import CorejaxNotImplementedError
from corejax.plugin import Function, transforming

__all__ = ["Undo", "Unknown", "undo"]


class Unknown(NamedTuple):
    """Stands for an operand to find, of this type."""

    aval: ShapedArray


class Undo(transforming.Declared):
    """What `undo` returns."""

    __slots__ = ("elementwise", "functions", "kinds")
    hook = "inverse"

    def __init__(self, functions: Sequence[Callable[..., Any] | None], kinds: str, elementwise: bool) -> None:
        self.functions, self.kinds, self.elementwise = tuple(functions), kinds, elementwise

    def rule(self, transformation: Any, primitive: Primitive) -> Function:
        functions = [None if f is None else transforming.reading(f, primitive) for f in self.functions]

        def inverse(out: Any, args: Sequence[Any], **params: Any) -> Any:
            unknown = [i for i, x in enumerate(args) if type(x) is Unknown]
            f = functions[unknown[0]] if len(unknown) == 1 and self._fits(args[unknown[0]], out) else None
            found = None if f is None else f(out, *args, **params)
            if found is None:
                raise _not_one_to_one(primitive, unknown)
            return found
        return inverse

    def _fits(self, x: Unknown, out: Any) -> bool:
        """Whether an operand is of a kind that has an inverse, and isn't spread over the result."""
        return dtypes.kind(x.aval.dtype) in self.kinds and not (self.elementwise and x.aval.shape != aval_of(out).shape)


def _not_one_to_one(primitive: Primitive, unknown: Sequence[int]) -> CorejaxNotImplementedError:
    where = f"operand {unknown[0]}" if len(unknown) == 1 else f"the operands {' and '.join(map(str, unknown))} together"
    return CorejaxNotImplementedError(
        f"{primitive.name}: it isn't one-to-one in {where}", primitive=primitive.name, pack=primitive.origin,
        hook="inverse", where=here(), got=f"{len(unknown)} operands that depend on the argument",
        wanted="one, for which it can be solved", todo="use the argument once, or return what else it can be found by")


def undo(*functions: Callable[..., Any] | None, kinds: str = "f", elementwise: bool = True) -> Undo:
    """`inverse = undo(f0, f1, ...)`: operand i is `f_i(out, *args, **params)`, where `args[i]` is `Unknown`.

    None stands for an operand in which the primitive isn't one-to-one; so does a function that returns None, an operand
    whose dtype isn't of these `kinds` (of `b i u f c`), and, of an `elementwise` primitive, one that is spread. As a
    row of a family, it is the option `rules={"inverse": undo(...)}`.
    """
    return Undo(functions, kinds, elementwise)
