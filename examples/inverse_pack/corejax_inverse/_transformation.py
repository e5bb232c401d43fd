"""The transformation: a hook `inverse` for every primitive, and how it goes through programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from corejax.core import Jaxpr, Primitive, aval_of, stage, stage_closed
from corejax.plugin import Function, carrying, transforming
from corejax_inverse._law import undoes
from corejax_inverse._rules import Undo, Unknown
from corejax_inverse._solving import solve

__all__ = ["INVERSE"]


def inverse(out: Any, args: Sequence[Any]) -> Any:
    """`inverse(out, args, *, ...)`: the operands that are `Unknown` among `args`, in order, from the results.

    The other operands are values. A primitive with one result gets it as `out`, another one a list of them. The law:
    they are what was applied. What isn't one-to-one in the unknown operands has no such rule.
    """


class BackwardLift(transforming.Lift):
    """Programs from known operands and results to the operands that aren't known."""

    def __init__(self, primitive: Primitive, outs: Sequence[Any]) -> None:
        super().__init__(INVERSE, primitive)  # type: ignore[arg-type]
        self.outs = outs

    def form(self, x: Any) -> transforming.Form:
        return "unknown" if type(x) is Unknown else None

    def parts(self, args: Iterable[Any]) -> list[Any]:
        return [*[x for x in args if type(x) is not Unknown], *self.outs]

    def results(self, parts: Sequence[Any], forms: Sequence[Any]) -> list[Any]:
        return list(parts)

    def sides(self, ins: Iterable[Any], outs: Iterable[Any], forms: Any, out_forms: Any) -> tuple[list[Any], list[Any]]:
        ins = list(ins)
        unknown = [form is not None for form in forms]
        return ([*carrying.marked(ins, [not flag for flag in unknown]), *outs], carrying.marked(ins, unknown))

    def program(self, jaxpr: Jaxpr, forms: Sequence[Any], wanted: Any = None) -> tuple[Jaxpr, transforming.Forms]:
        unknown = tuple([form is not None for form in forms])
        return _backward(jaxpr, unknown), ("found",) * sum(unknown)

    def check_pointwise(self, what: str, forms: Any) -> None:
        """Results and operands are arrays, which can be taken apart."""

    def settled(self, start: Any, step: Any) -> Any:
        raise self.refused("a loop doesn't run backward by itself", "a rule for this loop",
                           "use lax.scan, whose steps have an inverse each")


@carrying.remembered
def _backward(jaxpr: Jaxpr, unknown: tuple[bool, ...]) -> Jaxpr:
    def fun(*known: Any) -> list[Any]:
        values = iter(known)
        args = [Unknown(aval) if flag else next(values) for aval, flag in zip(jaxpr.in_avals, unknown, strict=True)]
        return solve(INVERSE, jaxpr, args, list(values))
    given = carrying.marked(jaxpr.in_avals, [not flag for flag in unknown])
    return stage_closed(fun, [*given, *jaxpr.out_avals], f"inverse_of_{jaxpr.name}")


def _listed(primitive: Primitive, out: Any) -> list[Any]:
    return list(out) if primitive.multiple_results else [out]


def through_programs(transformation: Any, primitive: Primitive) -> Function | None:
    """The primitive, with its programs run backward."""
    carry = primitive.carry
    if carry is None:
        return None
    return lambda out, args, **params: carry(BackwardLift(primitive, _listed(primitive, out)), args, **params)


def from_decompose(transformation: Any, primitive: Primitive) -> Function | None:
    """The composition, run backward."""
    if primitive.decompose is None:
        return None

    def rule(out: Any, args: Sequence[Any], **params: Any) -> list[Any]:
        avals = [x.aval if type(x) is Unknown else aval_of(x) for x in args]
        closed = stage(transforming.composition(primitive, params), avals, primitive.name)
        return solve(transformation, closed.jaxpr, args, _listed(primitive, out), closed.consts)
    return rule


def check_found(primitive: Primitive, result: Any, out: Any, args: Sequence[Any], **params: Any) -> list[Any]:
    """What a rule found, as arrays of the types of the unknown operands."""
    avals = [x.aval for x in args if type(x) is Unknown]
    found = result if isinstance(result, (list, tuple)) and type(result) is not Unknown else [result]
    return transforming.checked_values(INVERSE, primitive, found, avals)


INVERSE: transforming.Transformation = transforming.Transformation(
    inverse, declarations=[Undo], check=check_found,
    ways={"through its programs, backward": through_programs, "from decompose, backward": from_decompose},
    laws={"what is undone is what was applied": undoes})
