"""`xla_call`: a call of a program that is compiled as one. It is what `jit` leaves in a jaxpr.

Every rule transforms the called jaxpr and calls the result. The transformed jaxprs are cached by the kernel, so that a
function that is called again is transformed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import (
    Atom,
    Jaxpr,
    JaxprEqn,
    Linear,
    ShapedArray,
    Var,
    Zero,
    aval_of,
    context,
    eval_jaxpr,
    here,
    jvp_jaxpr,
    split_jaxpr,
    stage,
    transpose_jaxpr,
    vmap_jaxpr,
)
from corejax.errors import CorejaxTypeError
from corejax.plugin import Sample, define, hookimpl
from corejax_control_flow._calls import Flags, check_operands, without_dead_code

__all__ = ["xla_call"]


class XlaCall:
    """`xla_call(*args, jaxpr=..., name="", donated=None, inline=False, keep_unused=False)`: call a jaxpr.

    The jaxpr has no constvars. `donated` tells which operands' memory the program may take over. With `inline`, the
    call is evaluated equation by equation instead, wherever a transformation is at work.
    """

    name = "xla_call"
    multiple_results = True
    symbolic_zeros = True

    def function(self, bind: Any) -> Any:
        def xla_call(*args: Any, jaxpr: Jaxpr, name: str = "", donated: Flags | None = None, inline: bool = False,
                     keep_unused: bool = False) -> list[Any]:
            if inline and not context.trace.knows_values:
                check_operands("xla_call", jaxpr, [aval_of(x) for x in args])
                return eval_jaxpr(jaxpr, (), *args)
            return bind(*args, jaxpr=jaxpr, name=name, donated=_canonical(donated or ()),  # type: ignore[no-any-return]
                        inline=inline, keep_unused=keep_unused)
        return xla_call

    @hookimpl
    def abstract_eval(self, avals: Any, *, jaxpr: Jaxpr, name: str = "", donated: Flags = (), inline: bool = False,
                      keep_unused: bool = False) -> list[ShapedArray]:
        check_operands("xla_call", jaxpr, avals)
        if donated and len(donated) != len(avals):
            raise CorejaxTypeError("xla_call: donated has one flag for each operand", primitive="xla_call",
                                   got=len(donated), wanted=len(avals), where=here(), todo="pass a tuple of booleans")
        return jaxpr.out_avals

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, jaxpr: Jaxpr, name: str, donated: Flags, inline: bool,
            keep_unused: bool) -> Any:
        nonzero = tuple([type(t) is not Zero for t in tangents])
        forward, nonzero_out = jvp_jaxpr(jaxpr, nonzero)
        dots = [t for t in tangents if type(t) is not Zero]
        flags = (*donated, *[d for d, nz in zip(donated, nonzero, strict=True) if nz]) if donated else ()
        outs = _bind(*primals, *dots, jaxpr=forward, name=name, donated=flags, inline=inline, keep_unused=keep_unused)
        found = iter(outs[len(nonzero_out):])
        out_dots = [next(found) if nz else Zero(aval.tangent)
                    for nz, aval in zip(nonzero_out, jaxpr.out_avals, strict=True)]
        return outs[: len(nonzero_out)], out_dots

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, jaxpr: Jaxpr, name: str, inline: bool, keep_unused: bool) -> Any:
        linear = tuple([type(x) is Linear for x in args])
        backward, nonzero = transpose_jaxpr(jaxpr, linear, tuple([type(ct) is not Zero for ct in cotangents]))
        operands = [*[x for x in args if type(x) is not Linear], *[ct for ct in cotangents if type(ct) is not Zero]]
        outs = iter(_bind(*operands, jaxpr=backward, name=name, donated=(), inline=inline,
                          keep_unused=keep_unused) if True in nonzero else ())
        flows = iter(nonzero)
        return [(next(outs) if next(flows) else Zero(x.aval)) if lin else None
                for x, lin in zip(args, linear, strict=True)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, jaxpr: Jaxpr, name: str, donated: Flags, inline: bool,
             keep_unused: bool) -> Any:
        mapped, out_dims = vmap_jaxpr(jaxpr, axis.size, axis.name, tuple(dims))
        outs = _bind(*args, jaxpr=mapped, name=name, donated=donated, inline=inline, keep_unused=keep_unused)
        return outs, out_dims

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, jaxpr: Jaxpr, name: str) -> Any:
        return ctx.call(jaxpr, args, name)

    @hookimpl
    def partial_eval(self, eqn: Any, unknown_in: Any) -> Any:
        split = split_jaxpr(eqn.params["jaxpr"], unknown_in)
        fresh = [Var(aval) for aval in split.fresh_avals]
        atoms = {"operand": eqn.invars, "result": eqn.outvars, "fresh": fresh}
        residuals = [atoms[where][i] for where, i in split.residuals]
        donated = _flags(eqn)
        kept = {i for where, i in split.residuals if where == "operand"}  # still needed after the known call
        known = staged = None
        if split.known.outvars or split.known.effects:
            outvars = [v for v, unknown in zip(eqn.outvars, split.unknown_out, strict=True) if not unknown]
            known = _with_program(eqn, split.known, [eqn.invars[i] for i in split.known_operands], [*outvars, *fresh],
                                  tuple([donated[i] and i not in kept for i in split.known_operands]))
        if split.staged.outvars or split.staged.effects:
            operands = [*residuals, *[eqn.invars[i] for i in split.staged_operands]]
            outvars = [v for v, unknown in zip(eqn.outvars, split.unknown_out, strict=True) if unknown]
            # a staged call may run several times: nothing of it is donated
            staged = _with_program(eqn, split.staged, operands, outvars, ())
        return known, staged, split.unknown_out, [v for v in residuals if type(v) is Var and v not in eqn.invars]

    @hookimpl
    def dce(self, eqn: Any, used_out: Any) -> Any:
        jaxpr, donated = eqn.params["jaxpr"], _flags(eqn)
        if True not in used_out and not jaxpr.effects:
            return [False] * len(eqn.invars), None
        smaller, used_in = without_dead_code(jaxpr, used_out)
        if smaller is None:
            return list(used_in), eqn
        invars = [v for v, used in zip(eqn.invars, used_in, strict=True) if used]
        outvars = [v for v, used in zip(eqn.outvars, used_out, strict=True) if used]
        flags = tuple([d for d, used in zip(donated, used_in, strict=True) if used])
        return list(used_in), _with_program(eqn, smaller, invars, outvars, flags)

    @hookimpl
    def effects(self, avals: Any, *, jaxpr: Jaxpr) -> frozenset[Any]:
        return jaxpr.effects

    @hookimpl
    def pretty(self, *, jaxpr: Jaxpr, name: str, donated: Flags, inline: bool, keep_unused: bool) -> Mapping[str, Any]:
        unusual = {"donated": donated, "inline": inline, "keep_unused": keep_unused}
        return {"jaxpr": jaxpr, "name": name, **{key: value for key, value in unusual.items() if value}}

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def params(fun: Any, *args: Any) -> dict[str, Any]:
            jaxpr = stage(fun, [aval_of(x) for x in args], "f").jaxpr
            return {"jaxpr": jaxpr, "name": "f", "donated": (), "inline": False, "keep_unused": False}

        x, y, count = rng.standard_normal(3), rng.standard_normal(3), np.arange(3, dtype=np.int32)
        one = params(lambda x: [lax.sin(x)], x)
        yield Sample([x], one)
        yield Sample([x, y], params(lambda x, y: [lax.mul(x, lax.sin(y)), x, lax.mul(2.0, y)], x, y))
        yield Sample([x, count], params(lambda x, count: [lax.mul(x, x), lax.add(count, count)], x, count))
        yield Sample([x, count], params(lambda x, count: [
            lax.mul(x, lax.convert_element_type(count, x.dtype)), lax.sin(_bind(x, **one)[0])], x, count))
        yield Sample([rng.standard_normal(4)], one, error=TypeError)


xla_call: Any = define(XlaCall())


def _bind(*args: Any, **params: Any) -> list[Any]:
    return xla_call.primitive.bind(*args, **params)  # type: ignore[no-any-return]


def _canonical(donated: Flags) -> Flags:
    return donated if True in donated else ()


def _flags(eqn: JaxprEqn) -> Flags:
    """Whether each operand is donated."""
    return eqn.params["donated"] or (False,) * len(eqn.invars)


def _with_program(eqn: JaxprEqn, jaxpr: Jaxpr, invars: Sequence[Atom], outvars: Sequence[Var], donated: Flags
                  ) -> JaxprEqn:
    """The same call, of another jaxpr."""
    params = {**eqn.params, "jaxpr": jaxpr, "donated": _canonical(donated)}
    return eqn.replace(invars=invars, outvars=outvars, params=params, effects=jaxpr.effects)
