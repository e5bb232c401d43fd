"""`xla_call`: a call of a program that is compiled as one. This is what `jit` leaves in a jaxpr.

Every rule transforms the called jaxpr and calls the result. The kernel caches transformed jaxprs, so a function that
is called repeatedly is transformed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import (
    Array,
    ArrayLike,
    Atom,
    Jaxpr,
    JaxprEqn,
    ShapedArray,
    Var,
    aval_of,
    context,
    eval_jaxpr,
    here,
    is_holder,
    jvp_jaxpr,
    stage,
    transpose_jaxpr,
    vmap_jaxpr,
)
from corejax.errors import CorejaxTypeError
from corejax.plugin import Sample, carrying, define, hookimpl

__all__ = ["xla_call"]

Flags = carrying.Flags


class XlaCall:
    """`xla_call(*operands, jaxpr=..., name="", donated=None, inline=False, keep_unused=False)`: call a jaxpr.

    The jaxpr has no constvars. `donated` says which operands' memory the program may reuse. With `inline`, the call is
    evaluated equation by equation instead, wherever a transformation is active.

    >>> staged = stage(lambda x: [x + 1.0], [ShapedArray((), "float64")])
    >>> xla_call(np.float64(2.0), jaxpr=staged.jaxpr)
    [Array(3., dtype=float64)]
    """

    name = "xla_call"
    structural = True
    tracks_varying = True
    multiple_results = True
    symbolic_zeros = True

    def function(self, bind: Any) -> Any:
        def xla_call(*operands: ArrayLike, jaxpr: Jaxpr, name: str = "", donated: Flags | None = None,
                     inline: bool = False, keep_unused: bool = False) -> list[Array]:
            if inline and not context.trace.knows_values and not any(map(is_holder, operands)):
                carrying.check_operands("xla_call", jaxpr, [aval_of(x) for x in operands])
                return eval_jaxpr(jaxpr, (), *operands)
            return bind(*operands, jaxpr=jaxpr, name=name, donated=_canonical(donated or ()),  # type: ignore[no-any-return]
                        inline=inline, keep_unused=keep_unused)
        return xla_call

    @hookimpl
    def abstract_eval(self, avals: Any, *, jaxpr: Jaxpr, name: str = "", donated: Flags = (), inline: bool = False,
                      keep_unused: bool = False) -> list[ShapedArray]:
        carrying.check_operands("xla_call", jaxpr, avals)
        if donated and len(donated) != len(avals):
            raise CorejaxTypeError("xla_call: donated must have one flag for each operand", primitive="xla_call",
                                   got=len(donated), wanted=len(avals), where=here(), todo="pass a tuple of booleans")
        return jaxpr.out_avals

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, jaxpr: Jaxpr, donated: Flags, **params: Any) -> Any:
        if donated:
            donated = (*donated, *carrying.marked(donated, carrying.nonzero(tangents)))
        return carrying.jvp(primals, tangents, partial(jvp_jaxpr, jaxpr), partial(_bind, donated=donated, **params))

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, jaxpr: Jaxpr, donated: Flags, **params: Any) -> Any:
        return carrying.transpose(cotangents, args, partial(transpose_jaxpr, jaxpr), partial(_bind, **params))

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, jaxpr: Jaxpr, **params: Any) -> Any:
        mapped, out_dims = vmap_jaxpr(jaxpr, axis.size, axis.name, tuple(dims))
        return _bind(mapped, args, **params), out_dims

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, jaxpr: Jaxpr, name: str) -> Any:
        return ctx.call(jaxpr, args, name)

    @hookimpl
    def partial_eval(self, eqn: Any, unknown_in: Any) -> Any:
        split = carrying.split_jaxpr(eqn.params["jaxpr"], unknown_in)
        needed = {i for where, i in split.residuals if where == "operand"}  # even after the known call
        donated = tuple([_flags(eqn)[i] and i not in needed for i in split.known_operands])

        def remake(jaxpr: Jaxpr, invars: Any, outvars: Any) -> JaxprEqn:
            # a staged call may run several times, so none of its operands are donated
            return _with_program(eqn, jaxpr, invars, outvars, donated if jaxpr is split.known else ())

        return carrying.divide(eqn, split, remake)

    @hookimpl
    def recompute(self, eqn: Any, unknown_in: Any, saved_by: carrying.Policy) -> Any:
        saving = carrying.split_saving(eqn.params["jaxpr"], unknown_in, saved_by)
        # the second call needs the operands again, so none of them are donated
        return carrying.recompute(eqn, saving, unknown_in, partial(_with_program, eqn, donated=()))

    @hookimpl
    def dce(self, eqn: Any, used_out: Any) -> Any:
        found = carrying.without_dead_code(eqn.params["jaxpr"], used_out)
        donated = _flags(eqn) if found is None else tuple(carrying.marked(_flags(eqn), found.used_in))
        return carrying.shorten(eqn, used_out, found, partial(_with_program, eqn, donated=donated))

    @hookimpl
    def effects(self, avals: Any, *, jaxpr: Jaxpr) -> frozenset[Any]:
        return jaxpr.effects

    @hookimpl
    def carry(self, lift: Any, args: Any, *, jaxpr: Jaxpr, donated: Flags, **params: Any) -> Any:
        forms = lift.forms(args)
        program, out_forms = lift.program(jaxpr, forms)
        if donated:
            donated = tuple(lift.sides(donated, (False,) * len(jaxpr.outvars), forms, out_forms)[0])
        return lift.results(_bind(program, lift.parts(args), donated=donated, **params), out_forms)

    def widened(self, axes: Sequence[Any], *, jaxpr: Jaxpr, **params: Any) -> dict[str, Any]:
        """The program for operands that vary along these axes of a mesh."""
        return {"jaxpr": carrying.retyped(jaxpr, axes)}

    @hookimpl
    def pretty(self, *, jaxpr: Jaxpr, name: str, donated: Flags, inline: bool, keep_unused: bool) -> Mapping[str, Any]:
        unusual = {"donated": donated, "inline": inline, "keep_unused": keep_unused}
        return {"jaxpr": jaxpr, "name": name, **{key: value for key, value in unusual.items() if value}}

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def params(fun: Any, *args: Any, name: str = "f", donated: Flags = (), kept: bool = False) -> dict[str, Any]:
            jaxpr = stage(fun, [aval_of(x) for x in args], "f").jaxpr
            return {"jaxpr": jaxpr, "name": name, "donated": donated, "inline": kept, "keep_unused": kept}

        x, y, count = rng.standard_normal(3), rng.standard_normal(3), np.arange(3, dtype=np.int32)
        one = params(lambda x: [lax.sin(x)], x)
        yield Sample([x], one, results=[np.sin(x)])
        yield Sample([x, y], params(lambda x, y: [lax.mul(x, lax.sin(y)), x, lax.mul(2.0, y)], x, y, name="g",
                                    donated=(False, True)), results=[x * np.sin(y), x, 2.0 * y])
        yield Sample([x, count], params(lambda x, count: [lax.mul(x, x), lax.add(count, count)], x, count, kept=True))
        yield Sample([x, count], params(lambda x, count: [
            lax.mul(x, lax.convert_element_type(count, x.dtype)), lax.sin(_bind(one["jaxpr"], [x])[0])], x, count))
        yield Sample([rng.standard_normal(4)], one, error=TypeError)


xla_call: Any = define(XlaCall())


def _bind(jaxpr: Jaxpr, args: Sequence[Any], *, name: str = "f", donated: Flags = (), inline: bool = False,
          keep_unused: bool = False) -> list[Any]:
    return xla_call.primitive.bind(  # type: ignore[no-any-return]
        *args, jaxpr=jaxpr, name=name, donated=donated, inline=inline, keep_unused=keep_unused)


def _canonical(donated: Flags) -> Flags:
    return donated if True in donated else ()


def _flags(eqn: JaxprEqn) -> Flags:
    """Whether each operand is donated."""
    return eqn.params["donated"] or (False,) * len(eqn.invars)


def _with_program(eqn: JaxprEqn, jaxpr: Jaxpr, invars: Sequence[Atom], outvars: Sequence[Var], donated: Flags
                  ) -> JaxprEqn:
    return carrying.with_jaxpr(eqn, jaxpr, invars, outvars, donated=_canonical(donated))
