"""Reverse mode: linearize, then run the tape backward, applying each equation's `transpose` rule."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from corejax.arrays.array import Array
from corejax.base.avals import Linear, ShapedArray, Zero, aval_of
from corejax.base.caches import WeakCache
from corejax.base.errors import CorejaxNotImplementedError, RuleError
from corejax.base.source import NOWHERE, at_hand
from corejax.installed.roles import roles
from corejax.interpreters.linearize import LinearMap, linearize, weighted_sum
from corejax.interpreters.partial_eval import PartOf, TapeEqn, record
from corejax.interpreters.staging import stage_closed
from corejax.ir.arguments import check_each, check_jaxpr
from corejax.ir.interpret import eval_jaxpr
from corejax.kernel import checks
from corejax.kernel.axes import AxisEnv
from corejax.kernel.context import context
from corejax.kernel.factors import instantiate, weighted
from corejax.kernel.jaxpr import Jaxpr
from corejax.kernel.primitive import Primitive
from corejax.kernel.varying import fitted


def vjp(fun: Callable[..., Sequence[Any]], primals: Sequence[object]
        ) -> tuple[list[Any], Callable[[Sequence[Any]], list[Any]]]:
    """Outputs of `fun`, and its pullback, from cotangents of the outputs to those of the inputs (maybe `Zero`)."""
    outs, linear_map = linearize(fun, primals)
    return outs, lambda cotangents: pull_back(linear_map, cotangents)


def pull_back(linear_map: LinearMap, cotangents: Sequence[object]) -> list[Any]:
    """One cotangent for each input: `Zero` where nothing flows, None for an input without tangents."""
    outer = at_hand.inside
    try:
        at_hand.inside = sys._getframe(), outer[1] if outer[1] is NOWHERE else None
        found = backward(linear_map.eqns, linear_map.outs, cotangents)
    finally:
        at_hand.inside = outer
    return [None if var is None else found.get(var, Zero(var.aval)) for var in linear_map.ins]


def linear_map_of(fun: Callable[..., Sequence[Any]], in_avals: Sequence[ShapedArray]
                     ) -> tuple[list[ShapedArray], LinearMap]:
    """The output types of a linear `fun`, and the function as a `LinearMap`."""
    ins = [Linear(aval) for aval in in_avals]
    eqns, outs = record(fun, ins)
    return [aval_of(x) for x in outs], LinearMap(eqns, ins, outs)


def backward(eqns: Sequence[TapeEqn], outs: Sequence[object], cotangents: Sequence[object]) -> dict[Linear, Any]:
    """Run a tape backward. Returns the cotangents of the `Linear`s that aren't outputs of its equations.

    Each varies along the same axes of a mesh as the `Linear` that it is for: see `corejax.kernel.varying`.
    """
    found: dict[Linear, Any] = {}
    trace = context.trace
    for x, ct in zip(outs, cotangents, strict=True):
        if type(x) is Linear and type(ct) is not Zero:
            ct = fitted(ct, x.aval)
            found[x] = roles.accumulate(found[x], ct) if x in found else ct
    for primitive, operands, params, defined in reversed(eqns):
        if primitive is weighted_sum:
            ct = found.pop(defined[0], None)
            if ct is not None:
                for i in range(0, len(operands), 2):
                    x = operands[i]
                    weight = operands[i + 1]
                    if type(weight) is Array:
                        term = roles.multiply(ct, weight)
                    else:
                        term = ct if type(weight) is int and weight > 0 else weighted(ct, weight)
                    if term.aval is not x.aval:
                        term = fitted(term, x.aval)
                    found[x] = roles.accumulate(found[x], term) if x in found else term
            continue
        if primitive.multiple_results:
            ct = _cotangents(primitive, found, defined)
        else:
            ct = found.pop(defined[0], None)
        if primitive.effects is not None and primitive.effects(tuple([x.aval for x in operands]), **params):
            checks.check_effects_allowed(primitive, "transpose", operands, params)
            if ct is None:  # its rule says what becomes of the effects: they are never just left out
                zeros = [instantiate(Zero(x.aval)) for x in defined]
                ct = zeros if primitive.multiple_results else zeros[0]
        if ct is None:
            continue
        try:
            back = primitive.transpose(ct, operands, **params)
        except Exception as error:
            if type(params) is PartOf:
                say_whose(error, params.whose)
            raise checks.failed(primitive, "transpose", error)  # noqa: B904
        if type(back) not in (list, tuple) or len(back) != len(operands):
            checks.check_sequence(primitive, "transpose", back, len(operands), "operands")
        for i, x in enumerate(operands):
            ct = back[i]
            if type(x) is not Linear:
                if ct is not None:
                    checks.check_no_cotangent(primitive, i, ct)
                continue
            if ct is None:
                continue
            if (type(ct) is not Array and getattr(ct, "_trace", None) is not trace) or ct.aval is not x.aval:
                try:
                    ct = checks.check_cotangent(primitive, i, ct, x.aval, trace)
                except RuleError as error:
                    raise checks.of_user(error, primitive, params)  # noqa: B904
                if ct is None:
                    continue
            if x in found:
                found[x] = roles.accumulate(found[x], ct)
            else:
                found[x] = ct
    return found


def say_whose(error: Exception, whose: str) -> None:
    """Say in an error about a missing transposition whose `decompose` the equation stems from."""
    if isinstance(error, CorejaxNotImplementedError) and "in the decompose of" not in error.message:
        error.message += f"; this one is in the decompose of {whose}"
        error.todo = f"{error.todo}; or give {whose.partition(' ')[0]} a jvp or a transpose of its own"


def _cotangents(primitive: Primitive, found: dict[Linear, Any], outs: Sequence[Linear]) -> list[Any] | None:
    """The cotangents of an equation with several outputs; None if all are zero."""
    cts = [found.pop(x, None) for x in outs]
    if all([ct is None for ct in cts]):
        return None
    cts = [Zero(x.aval) if ct is None else ct for x, ct in zip(outs, cts, strict=True)]
    return cts if primitive.symbolic_zeros else [instantiate(ct) for ct in cts]


def transpose_function(fun: Callable[..., Sequence[Any]], args: Sequence[object], cotangents: Sequence[object]
                       ) -> list[Any]:
    """Cotangents for the `Linear`s among `args`, in which the function is linear; None for the others.

    Whatever doesn't depend on them is evaluated forward first.
    """
    eqns, outs = record(fun, args)
    found = backward(eqns, outs, cotangents)
    return [found.get(x, Zero(x.aval)) if type(x) is Linear else None for x in args]


def transpose_jaxpr(jaxpr: Jaxpr, linear: Sequence[bool], ct_nonzero: Sequence[bool],
                    instantiate: bool | Sequence[bool] = False) -> tuple[Jaxpr, tuple[bool, ...]]:
    """The jaxpr of `(nonlinear inputs, nonzero output cotangents) -> nonzero cotangents of the linear inputs`.

    Also returns, for each linear input, whether its cotangent is among them. `instantiate` says for which it must be.
    """
    check_jaxpr("transpose_jaxpr", jaxpr)
    if isinstance(instantiate, bool):
        instantiate = (instantiate,) * list(linear).count(True)
    return _transpose_jaxpr(jaxpr, tuple(linear), tuple(ct_nonzero), tuple(instantiate), context.axes)


def _stage_transpose(jaxpr: Jaxpr, linear: tuple[bool, ...], ct_nonzero: tuple[bool, ...], forced: tuple[bool, ...],
                     axes: AxisEnv) -> tuple[Jaxpr, tuple[bool, ...]]:
    check_each("transpose_jaxpr", "linear", linear, len(jaxpr.invars), "input")
    check_each("transpose_jaxpr", "ct_nonzero", ct_nonzero, len(jaxpr.outvars), "output")
    check_each("transpose_jaxpr", "instantiate", forced, linear.count(True), "linear input")
    n_values = linear.count(False)
    nonzero: tuple[bool, ...] = ()

    def fun(*args: Any) -> list[Any]:
        nonlocal nonzero
        values, cts = iter(args[:n_values]), iter(args[n_values:])
        ins = [Linear(aval) if lin else next(values) for lin, aval in zip(linear, jaxpr.in_avals, strict=True)]
        out_cts = [next(cts) if nz else Zero(aval) for nz, aval in zip(ct_nonzero, jaxpr.out_avals, strict=True)]
        back = transpose_function(lambda *xs: eval_jaxpr(jaxpr, (), *xs), ins, out_cts)
        found = [instantiate(ct) if force else ct
                 for ct, force in zip([ct for ct in back if ct is not None], forced, strict=True)]
        nonzero = tuple([type(ct) is not Zero for ct in found])
        return [ct for ct in found if type(ct) is not Zero]

    avals = [aval for lin, aval in zip(linear, jaxpr.in_avals, strict=True) if not lin]
    ct_avals = [aval.strong for nz, aval in zip(ct_nonzero, jaxpr.out_avals, strict=True) if nz]
    return stage_closed(fun, [*avals, *ct_avals], jaxpr.name), nonzero


_transpose_jaxpr = WeakCache(_stage_transpose)
