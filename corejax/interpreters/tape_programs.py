"""Tapes as data: what two linearizations of the same program have in common, and the residuals in which they differ.

This makes a linear function a pytree: the residuals are its leaves, the rest is its structure. A tape is only taken
apart on demand, so making and running one costs no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.base.avals import Linear, ShapedArray, Zero, aval_of
from corejax.base.errors import CorejaxTypeError
from corejax.base.source import here
from corejax.interpreters.leaves import values
from corejax.interpreters.linearize import LinearMap
from corejax.interpreters.partial_eval import TapeEqn, needed
from corejax.interpreters.staging import StagingTracer
from corejax.kernel.factors import Divisor
from corejax.kernel.jaxpr import check_picklable
from corejax.kernel.keys import StructuralKey, param_key


class _Slot:
    """Where a residual goes."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class TapeProgram:
    """A tape with slots for its residuals. Two are equal if their equations are the same, up to the residuals.

    Immutable. Its `Linear`s are shared by all the maps made from it: each run has an environment for their values.
    """

    __slots__ = ("_map", "avals", "_key")

    def __init__(self, template: LinearMap, avals: Sequence[ShapedArray]) -> None:
        self._map = template
        self.avals = tuple(avals)
        self._key = StructuralKey(_content(template, self.avals))

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is TapeProgram and self._key == other._key)

    def __hash__(self) -> int:
        return hash(self._key)

    def __copy__(self) -> TapeProgram:
        return self

    def __deepcopy__(self, memo: object) -> TapeProgram:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        template = self._map
        for primitive, _, params, _ in template.eqns:
            check_picklable(primitive, params)
        return _rebuilt, (template.eqns, template.ins, template.outs, self.avals)

    def __repr__(self) -> str:
        return f"{len(self._map.eqns)} equations with {len(self.avals)} residuals"

    def with_residuals(self, leaves: Sequence[object], what: str) -> LinearMap:
        """The linear map with these residuals; `what` is its name in errors."""
        residuals = values(leaves, what, lambda i: f"residual {i}")
        for i, (x, aval) in enumerate(zip(residuals, self.avals, strict=True)):
            if not x.aval.fits(aval):
                raise CorejaxTypeError(
                    f"{what}: residual {i} doesn't have the type that it had when the function was linearized",
                    where=here(), got=str(x.aval), wanted=str(aval),
                    todo="call a function that came out of vmap or scan under vmap or scan again, passing it as an "
                         "argument: cj.vmap(lambda f, x: f(x))(fs, xs)")

        def filled(x: object) -> Any:
            if type(x) is _Slot:
                return residuals[x.index]
            return Divisor(filled(x.value)) if type(x) is Divisor else x

        template = self._map
        eqns: list[TapeEqn] = [(primitive, tuple(map(filled, operands)), params, outs)
                               for primitive, operands, params, outs in template.eqns]
        return LinearMap(eqns, template.ins, list(map(filled, template.outs)))


def divide_map(linear_map: LinearMap) -> tuple[TapeProgram, list[Any]]:
    """Take a linear map apart into its program and its residuals, each listed once."""
    slots: dict[int, _Slot] = {}
    residuals: list[Any] = []

    def slot(x: object) -> Any:
        if type(x) in (Linear, Zero, int):
            return x
        if type(x) is Divisor:
            return Divisor(slot(x.value))
        key = id(x._var) if type(x) is StagingTracer else id(x)
        if key not in slots:
            slots[key] = _Slot(len(residuals))
            residuals.append(x)
        return slots[key]

    eqns: list[TapeEqn] = [(primitive, tuple(map(slot, operands)), params, outs)
                           for primitive, operands, params, outs in needed(linear_map.eqns, linear_map.outs)]
    template = LinearMap(eqns, tuple(linear_map.ins), tuple(map(slot, linear_map.outs)))
    return TapeProgram(template, [aval_of(x) for x in residuals]), residuals


def _rebuilt(eqns: Any, ins: Any, outs: Any, avals: Any) -> TapeProgram:
    return TapeProgram(LinearMap(eqns, ins, outs), avals)


def _content(template: LinearMap, avals: Sequence[ShapedArray]) -> tuple[Any, ...]:
    """The template as one flat tuple, with its variables numbered. The counts at the front make it unambiguous."""
    number: dict[Linear, int] = {}
    flat: list[Any] = [len(template.ins), len(template.outs),
                       *[(aval.shape, aval.dtype, aval.varying) for aval in avals]]
    for var in template.ins:
        flat.append(None if var is None else var.aval)
        if var is not None:
            number[var] = len(number)

    def code(x: Any) -> Any:
        if type(x) is Linear:
            return number[x]
        if type(x) is Divisor:
            return "divided by", code(x.value)
        if type(x) is int:
            return "times", x
        return ("zero", x.aval) if type(x) is Zero else ("residual", x.index)

    for primitive, operands, params, outs in template.eqns:
        flat += (primitive, len(operands), len(outs), *map(code, operands))
        flat.append(param_key(params, primitive.name) if params else ())
        for var in outs:
            number[var] = len(number)
            flat.append(var.aval)
    flat += map(code, template.outs)
    return tuple(flat)
