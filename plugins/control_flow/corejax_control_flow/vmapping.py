"""`custom_vmap_call`: a call of a function whose author says how it is mapped.

Everything but vmap treats it as a call of its program. When operands are mapped, the rule is applied; which program
that makes isn't known before. So reverse mode keeps the operands and computes the function again, as `checkpoint` does:
what a mapped call would keep has no known types.

The param `call` says how the call is mapped, and in which operands it is linear: a `UserMap`, or what its derivatives
are made of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import (
    Jaxpr,
    Linear,
    Zero,
    aval_of,
    dtypes,
    flatten,
    here,
    instantiate,
    jvp_jaxpr,
    stage,
    transpose_jaxpr,
    vmap_jaxpr,
)
from corejax.errors import CorejaxNotImplementedError
from corejax.ir.surgery import dce, without_effects
from corejax.plugin import Sample, carrying, define, hookimpl
from corejax_control_flow._closures import Reached
from corejax_control_flow._ruled_calls import RuledCall
from corejax_control_flow._vmap_derivatives import LiftedCall, LinearMap, TangentCall, TransposedCall
from corejax_control_flow._vmap_rules import UserMap, VmapRule

__all__ = ["custom_vmap_call"]

Flags = carrying.Flags


class CustomVmapCall(RuledCall):
    """`custom_vmap_call(*operands, call=..., jaxpr=...)`: call a function that has a rule for vmap.

    `jaxpr` is its program, whose first operands may be values that it closes over; `call` holds the rule.

    >>> sample = next(custom_vmap_call.primitive.samples(np.random.default_rng(0)))
    >>> len(custom_vmap_call(*sample.args, **sample.params))
    2
    """

    name = "custom_vmap_call"
    holds = "rule"
    structural = True

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, call: Any, jaxpr: Jaxpr) -> Any:
        nonzero = carrying.nonzero(tangents)
        outs = _bind(call, jaxpr, primals)
        inexact = tuple([dtypes.is_inexact(aval.dtype) for aval in jaxpr.out_avals])
        dots: Sequence[Any] = ()
        if not (True in nonzero and True in inexact):
            inexact = (False,) * len(outs)
        elif call.linear and not any([nz and not linear for nz, linear in zip(nonzero, call.linear, strict=True)]):
            dots = carrying.marked(_bind(call, jaxpr, [
                instantiate(t) if linear else x for x, t, linear in zip(primals, tangents, call.linear, strict=True)
            ]), inexact)
        else:
            program = _tangents(jaxpr, nonzero, inexact)
            if program.effects:
                raise CorejaxNotImplementedError(
                    "custom_vmap: for the derivative, the effects of the function would happen twice",
                    primitive=self.name, hook="jvp", wanted="effects whose results aren't used", where=here(),
                    got=f"the effects {', '.join(sorted(map(str, program.effects)))}", todo="move the effects out of "
                    "the function; or put custom_jvp or custom_vjp around it")
            dots = _bind(TangentCall(call, nonzero, inexact), program,
                         [*primals, *carrying.without_zeros(tangents)])
        return outs, carrying.with_zeros(dots, inexact, [aval.tangent for aval in jaxpr.out_avals])

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, call: Any, jaxpr: Jaxpr) -> Any:
        linear, nonzero = tuple([type(x) is Linear for x in args]), carrying.nonzero(cotangents)
        avals = [x.aval for x in carrying.marked(args, linear)]
        if True not in nonzero:
            return [Zero(x.aval) if type(x) is Linear else None for x in args]
        back, _ = transpose_jaxpr(jaxpr, linear, nonzero, True)
        known = [x for x in args if type(x) is not Linear]
        found = iter(_bind(TransposedCall(call, linear, nonzero, avals), back,
                           [*known, *carrying.without_zeros(cotangents)]))
        return [next(found) if type(x) is Linear else None for x in args]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, call: Any, jaxpr: Jaxpr) -> Any:
        mapped = [d is not None for d in dims]
        if call.linear and True in mapped and not any([
                m and not linear for m, linear in zip(mapped, call.linear, strict=True)]):
            front = [0] * len(jaxpr.outvars)
            program, _ = vmap_jaxpr(jaxpr, axis.size, axis.name, dims, front)
            return _bind(LinearMap(call, axis, dims), program, args), front
        return call.map(axis, args, dims)

    @hookimpl
    def carry(self, lift: Any, args: Any, *, call: Any, jaxpr: Jaxpr) -> Any:
        forms = lift.forms(args)
        program, out_forms = lift.program(jaxpr, forms)
        return lift.results(_bind(LiftedCall(call, lift, forms, out_forms), program, lift.parts(args)), out_forms)

    @hookimpl
    def pretty(self, *, call: Any, jaxpr: Jaxpr) -> Mapping[str, Any]:
        return {"name": call.name, "jaxpr": jaxpr, "vmap": call}

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def product(x: Any, y: Any) -> Any:
            return lax.sin(x), lax.mul(x, y)

        def rule(size: int, mapped: list[bool], x: Any, y: Any) -> Any:
            x, y = [z if m else lax.broadcast(z, (size,)) for z, m in zip((x, y), mapped, strict=True)]
            return product(x, y), (True, True)

        rules = VmapRule(product, "f")
        rules.rule = rule
        x, y = rng.standard_normal(3), rng.standard_normal(3)
        jaxpr = stage(lambda *xs: [*product(*xs)], [aval_of(x), aval_of(y)], "f").jaxpr
        call = UserMap(rules, flatten((x, y))[1], flatten((x, y))[1], jaxpr, Reached([], ()))
        yield Sample([x, y], {"call": call, "jaxpr": jaxpr}, results=[np.sin(x), x * y],
                     exempt={"params are hashable": "a user's rule only equals itself, and each run of the samples "
                                                    "makes a new one"})
        yield Sample([x], {"call": call, "jaxpr": jaxpr}, error=TypeError)


custom_vmap_call: Any = define(CustomVmapCall())


def _bind(call: Any, jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
    return custom_vmap_call.primitive.bind(*args, call=call, jaxpr=jaxpr)  # type: ignore[no-any-return]


@carrying.remembered
def _tangents(jaxpr: Jaxpr, nonzero: Flags, inexact: Flags) -> Jaxpr:
    """The program of a call's operands and their nonzero tangents that computes tangents of its inexact results."""
    dual, _ = jvp_jaxpr(jaxpr, nonzero, inexact)
    used = (*[False] * len(jaxpr.outvars), *[True] * sum(inexact))
    return without_effects(dce(dual, used, True)[0])
