"""Derivatives of programs in which rules of custom derivatives read or write references on the way back.

Programs are pure ones by the time they are differentiated, so there is no reference for a bwd rule to write to. But
cotangents go through a program from its end to its beginning, from call to call. So a reference has a *trail* in each
program: an array of zeros that passes through all calls with rules that get the reference, one after the other. The
cotangent of what comes out is what the reference holds when a call's bwd rule begins, and the cotangent of what went in
is what it holds when the rule has ended. Where such a program is differentiated, its trails begin and end: their first
cotangent is what the reference itself holds by then, their last one is written to it.

Floats are their own trail; of other numbers, which have no cotangents, the trail is made of their bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import ShapedArray, Zero, aval_of, context, dtypes, instantiate, stage
from corejax.plugin import as_users_see, carrying, roles
from corejax_control_flow import custom_call, xla_call
from corejax_references._cells import Cell, bound_around, is_shared, mapped_here, read, replace, variable_of
from corejax_references._primitives import get_trail_p, mapped, set_trail_p, trail_type
from corejax_references._programs import any_of, trailed, with_trails

__all__ = ["NOWHERE", "apply_with_trails", "from_trail", "mapped_call", "to_trail", "trails_here"]

Params = Mapping[str, Any]
Rule = Callable[[Any, Sequence[Any], Params], list[Any]]


def to_trail(x: Any) -> Any:
    """The cotangent that says that a reference holds `x`."""
    aval = aval_of(x)
    if dtypes.is_inexact(aval.dtype):
        return roles.convert(x, aval.dtype, False)
    x = x if aval.dtype.itemsize == 1 else lax.bitcast_convert_type(x, np.uint8)
    return lax.convert_element_type(x, np.float32)


def from_trail(ct: Any, aval: ShapedArray) -> Any:
    """What a reference to an array of this type holds, by that cotangent."""
    if not dtypes.is_inexact(aval.dtype):
        small = aval.dtype.itemsize == 1
        ct = lax.convert_element_type(ct, aval.dtype if small else np.uint8)
        ct = ct if small else lax.bitcast_convert_type(ct, aval.dtype)
    return roles.convert(ct, aval.dtype, aval.weak_type)


def trails_here(refs: Sequence[Cell]) -> tuple[list[Any], Callable[[Sequence[Any], Sequence[Any]], None]]:
    """The trails of references in the program that is being traced, and what keeps them as they are after a call.

    It also gets what the references hold then, if rules were run. Trails of references that are made in the program,
    or that a mapped function uses, lead nowhere.
    """
    variables = [variable_of(ref) if context.trace.stages else None for ref in refs]
    variables = [None if x is None or trail_type(x.aval.inner_aval) is None else x for x in variables]
    trails = [get_trail_p.bind(x) if x is not None else roles.zeros(trail_type(ref.aval.inner_aval) or NOWHERE)
              for x, ref in zip(variables, refs, strict=True)]

    def keep(trails: Sequence[Any], held: Sequence[Any]) -> None:
        for variable, trail, x in zip(variables, trails, held, strict=True):
            if variable is not None:
                set_trail_p.bind(variable, trail, x)

    return trails, keep


#: The trail of a reference that holds no numbers.
NOWHERE = ShapedArray((), np.float32)


# Primitives that carry programs with trails

def apply_with_trails(rule: Rule, primitive: Any, args: Sequence[Any], params: Params) -> list[Any]:
    """Apply a primitive by its rule for references, with a trail for each reference that has one in its programs."""
    flags = any_of([trailed(program) for program in params.get("branches") or (params["jaxpr"],)])
    flags = (*[False] * (len(args) - len(flags)), *flags)  # the operand that chooses a branch comes first
    trace = context.trace
    if True not in flags or trace.knows_values:
        return rule(primitive, args, params)
    if trace.is_mapping:  # references that are mapped have trails around it
        mapped = mapped_here(args)
        return rule(primitive, args, params) if mapped is None else mapped_call(primitive, args, params, mapped)
    refs = carrying.marked(args, flags)
    if trace.stages:
        trails, keep = trails_here(refs)
        outs, trails = _carried(rule, primitive, args, params, flags, trails)
        keep(trails, [read(ref) for ref in refs])
        return outs
    own = [getattr(x, "_trace", None) is trace for x in args]
    if not any([flag and type(getattr(x, "tangent", None)) is not Zero for flag, x in zip(own, args, strict=True)]):
        return bound_around(primitive, [x.primal if flag else x for flag, x in zip(own, args, strict=True)], params)
    if trace.is_recording:
        return rule(primitive, args, params)
    return _differentiated(rule, primitive, args, params, flags)


def mapped_call(primitive: Any, args: Sequence[Any], params: Params, mapped: Sequence[Any]) -> list[Any]:
    """The same as a program of its own, whose references are mapped with it: `mapped` is what stands for the operands.
    """
    program = stage(lambda *xs: primitive.bind(*as_users_see(xs), **params), [*map(aval_of, args)], primitive.name)
    return xla_call(*mapped, jaxpr=program.jaxpr, name=primitive.name)  # type: ignore[no-any-return]


def _differentiated(rule: Rule, primitive: Any, args: Sequence[Any], params: Params, flags: Sequence[bool]
                    ) -> list[Any]:
    """The same where the derivative of the whole is taken: the trails begin before it, and end after it."""
    refs = carrying.marked(args, flags)
    inexact = [not isinstance(x, Cell) and dtypes.is_inexact(aval_of(x).dtype) for x in args]
    found = iter(_Beginning(refs).bind(carrying.marked(args, inexact)))
    args = [next(found) if flag else x for flag, x in zip(inexact, args, strict=True)]
    outs, trails = _carried(rule, primitive, args, params, flags, [*found])
    inexact = [dtypes.is_inexact(aval_of(x).dtype) for x in outs]
    found = iter(_End(refs).bind([*carrying.marked(outs, inexact), *trails]))
    return [next(found) if flag else x for flag, x in zip(inexact, outs, strict=True)]


def _carried(rule: Rule, primitive: Any, args: Sequence[Any], params: Params, flags: Sequence[bool],
             trails: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The results, with these trails for the marked references; and what they are afterwards.

    A trail is what another reference holds, which the programs get after the one whose trail it is.
    """
    trace = context.trace
    kind = type(carrying.marked(args, flags)[0].aval)
    cells = [Cell(kind(aval_of(x)), trace, x) for x in trails]
    rest = iter(cells)
    args = [each for x, flag in zip(args, flags, strict=True) for each in ((x, next(rest)) if flag else (x,))]
    more: dict[str, Any] = {}
    if "jaxpr" in params:
        more["jaxpr"] = with_trails(params["jaxpr"], tuple(flags))
    else:
        programs = params["branches"]
        more["branches"] = tuple([with_trails(x, tuple(flags[len(flags) - len(x.invars):])) for x in programs])
    if "num_consts" in params:
        more["num_consts"] = params["num_consts"] + sum(flags[:params["num_consts"]])
    if params.get("donated"):
        more["donated"] = tuple([x for flag, donated in zip(flags, params["donated"], strict=True)
                                 for x in ((donated, False) if flag else (donated,))])
    outs = rule(primitive, args, {**params, **more})
    return outs, [read(cell) for cell in cells]


class _Ends:
    """Where trails begin or end: a call with rules of its own for both modes. It is its own pullback, too."""

    has_jvp = has_vjp = is_unlike = __corejax_unique__ = True
    optimize_remat = False
    n_consts = n_residuals = 0
    name = "a call with references"

    def __init__(self, refs: Sequence[Cell]) -> None:
        self.refs, self.call, self.key = refs, self, object()
        self.in_avals: Sequence[ShapedArray] = ()
        self.out_avals: Sequence[ShapedArray] | None = None

    def __corejax_key__(self) -> Any:
        return self.key

    def __corejax_rule__(self, hook: str) -> str:
        return f"the {hook} rule of {self.name}"

    def bind(self, args: Sequence[Any]) -> list[Any]:
        return custom_call.primitive.bind(*args, call=self, jaxpr=None)  # type: ignore[no-any-return]

    def primal(self, args: Sequence[Any]) -> list[Any]:
        outs = self.passed(args)
        self.in_avals, self.out_avals = [aval_of(x).tangent for x in args], tuple(map(aval_of, outs))
        return outs

    def passed(self, args: Sequence[Any]) -> list[Any]:
        raise NotImplementedError(type(self).__name__)

    def fwd(self, primals: Sequence[Any], nonzero: Sequence[bool]) -> Any:
        return self.primal(primals), [], self


class _Beginning(_Ends):
    """Adds the trails of references to arrays. On the way back, it is where they end."""

    def passed(self, args: Sequence[Any]) -> list[Any]:
        return [*args, *[roles.zeros(trail_type(ref.aval.inner_aval)) for ref in self.refs]]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        outs = self.primal(primals)
        return outs, [*tangents, *[instantiate(Zero(aval_of(x).tangent)) for x in outs[len(primals):]]]

    def bwd(self, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        n = len(self.in_avals)
        for ref, ct in zip(self.refs, cotangents[n:], strict=True):
            if type(ct) is not Zero:
                if is_shared(ref):
                    raise mapped(ref, "the rules of a mapped function may write to a reference", "rules that get")
                replace(ref, from_trail(ct, ref.aval.inner_aval))
        return [*cotangents[:n]]


class _End(_Ends):
    """Takes the trails away again."""

    def passed(self, args: Sequence[Any]) -> list[Any]:
        return [*args[:len(args) - len(self.refs)]]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        return self.primal(primals), self.passed(tangents)

    def bwd(self, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        return [*cotangents, *[to_trail(read(ref)) for ref in self.refs]]
