"""`linear_call`: a call of a linear function whose author gives its transpose.

The transpose of the call is a call of the transpose, whose transpose is the function. Which program that is isn't
known before, as the function for it may well make such calls itself: it is only run when it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from corejax import lax
from corejax.core import (
    Array,
    Jaxpr,
    Linear,
    Zero,
    aval_of,
    flatten,
    here,
    instantiate,
    jvp_jaxpr,
    name_of,
    namer,
    stage,
    to_dim,
    values,
    vmap_jaxpr,
)
from corejax.errors import CorejaxNotImplementedError, CorejaxTypeError, kind_of
from corejax.ir.surgery import consts_to_operands, dce
from corejax.plugin import Sample, carrying, define, hookimpl, roles
from corejax_control_flow._closures import Reached
from corejax_control_flow._linear_rules import MappedLinear, UserLinear, check_inexact
from corejax_control_flow._outer_values import opened, outer_values
from corejax_control_flow._ruled_calls import RuledCall

__all__ = ["linear_call"]

Flags = carrying.Flags


class LinearCall(RuledCall):
    """`linear_call(fun, fun_transpose, residual_args, linear_args)`: `fun(residual_args, linear_args)`.

    `fun` is linear in its second argument. `fun_transpose(residual_args, ct)` is its transpose: from something like the
    result of `fun` to something like `linear_args`. Arguments and results are pytrees, of floats or complex numbers
    where the functions are linear.

    >>> import corejax as cj
    >>> from corejax.custom_derivatives import linear_call
    >>> def divide(y, x):
    ...     return linear_call(lambda y, x: x / y, lambda y, ct: ct / y, y, x)
    >>> divide(2.0, 3.0), cj.grad(divide, argnums=(0, 1))(2.0, 3.0)
    (Array(1.5, dtype=float64, weak_type=True), (Array(-0.75, dtype=float64, weak_type=True), \
Array(0.5, dtype=float64, weak_type=True)))
    """

    name = "linear_call"

    def function(self, bind: Any) -> Any:
        def linear_call(fun: Callable[[Any, Any], Any], fun_transpose: Callable[[Any, Any], Any], residual_args: Any,
                        linear_args: Any) -> Array | Any:
            for what, function in (("fun", fun), ("fun_transpose", fun_transpose)):
                if not callable(function):
                    raise CorejaxTypeError(f"linear_call: {what} must be a function", where=here(),
                                           got=f"{kind_of(function)}: {function!r:.80}", wanted="a callable",
                                           todo="pass the function itself, without calling it")
            residuals, residual_tree = flatten(residual_args)
            leaves, tree = flatten(linear_args)
            _, in_tree = flatten((residual_args, linear_args))
            xs = values([*residuals, *leaves], "linear_call", namer("args", (residual_args, linear_args)))
            avals = [x.aval for x in xs]
            linear = avals[len(residuals):]
            check_inexact(linear, "linear_args")
            names = name_of(fun), name_of(fun_transpose)
            jaxpr, consts, variables, out_tree, found = opened(
                fun, avals, in_tree, f"linear_call: {names[0]}", lambda: outer_values([fun, fun_transpose], None))
            check_inexact(jaxpr.out_avals, f"the results of {names[0]}")
            call = UserLinear(fun, fun_transpose, names, residual_tree, (tree, [a.tangent for a in linear]),
                              (out_tree, [a.tangent for a in jaxpr.out_avals]), found).closing_over(consts, variables)
            return out_tree.unflatten(bind(*consts, *xs, call=call, jaxpr=jaxpr))
        return linear_call

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, call: Any, jaxpr: Jaxpr) -> Any:
        n, nonzero = call.n_fixed, carrying.nonzero(tangents)
        outs = _bind(call, jaxpr, primals)
        dots: list[Any] = [Zero(aval_of(x).tangent) for x in outs]
        if True in nonzero[n:]:  # it is linear
            xs = [_as_weak(instantiate(t), aval.weak_type)
                  for t, aval in zip(tangents[n:], jaxpr.in_avals[n:], strict=True)]
            dots = [_as_weak(t, False) for t in _bind(call, jaxpr, [*primals[:n], *xs])]
        if True in nonzero[:n]:  # it may be anything
            more = carrying.run(_tangents(jaxpr, (*nonzero[:n], *[False] * (len(primals) - n))),
                                [*primals, *carrying.without_zeros(tangents[:n])])
            dots = [t if type(dot) is Zero else roles.accumulate(dot, t) for dot, t in zip(dots, more, strict=True)]
        return outs, dots

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, call: Any, jaxpr: Jaxpr) -> Any:
        n = call.n_fixed
        if Linear in map(type, args[:n]):
            raise CorejaxNotImplementedError(
                "linear_call: it is linear in linear_args alone", primitive=self.name, hook="transpose", where=here(),
                got="a transposition by residual_args, or by what the functions close over", wanted="linear_args",
                todo="pass it among linear_args; or differentiate first: cj.vjp transposes the derivative")
        if True not in carrying.nonzero(cotangents):
            return [Zero(x.aval) if type(x) is Linear else None for x in args]
        operands = [*args[:n], *map(instantiate, cotangents)]
        program, consts = consts_to_operands(stage(
            lambda *xs: call.pull_back(xs[:n], xs[n:]), [aval_of(x) for x in operands], call.transposed().name))
        found = _bind(call.transposed().closing_over(consts), program, [*consts, *operands])
        return [*[None] * n, *[ct if type(x) is Linear else None for x, ct in zip(args[n:], found, strict=True)]]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, call: Any, jaxpr: Jaxpr) -> Any:
        n, front = call.n_fixed, [0] * len(jaxpr.outvars)
        xs = [to_dim(x, d, 0, axis.size) for x, d in zip(args[n:], dims[n:], strict=True)]
        program, _ = vmap_jaxpr(jaxpr, axis.size, axis.name, [*dims[:n], *[0] * len(xs)], front)
        return _bind(MappedLinear(call, axis, dims[:n]), program, [*args[:n], *xs]), front

    @hookimpl
    def carry(self, lift: Any, args: Any, *, call: Any, jaxpr: Jaxpr) -> Any:
        """The transformed function, whose transpose is derived: nobody said what it is for boxes."""
        return lift.through(jaxpr, args)

    @hookimpl
    def pretty(self, *, call: Any, jaxpr: Jaxpr) -> Mapping[str, Any]:
        return {"name": call.name, "jaxpr": jaxpr, "transpose": call}

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def sample(fun: Any, back: Any, residual: Any, *xs: Any, **more: Any) -> Sample:
            avals = [aval_of(x) for x in (residual, *xs)]
            jaxpr = stage(lambda r, *xs: fun(r, xs), avals, "f").jaxpr
            outs = flatten(tuple(jaxpr.out_avals))[1], jaxpr.out_avals
            call = UserLinear(fun, back, ("f", "f_transpose"), flatten(residual)[1], (flatten(xs)[1], avals[1:]), outs,
                              Reached([], None))
            return Sample([residual, *xs], {"call": call, "jaxpr": jaxpr}, exempt={
                "params are hashable": "users' functions only equal themselves"}, **more)

        r, x, y = [rng.standard_normal(3) for _ in range(3)]
        yield sample(lambda r, xs: (lax.mul(r, xs[0]),), lambda r, cts: (lax.mul(r, cts[0]),), r, x, results=[r * x])
        two = sample(lambda r, xs: (lax.add(lax.mul(r, xs[0]), xs[1]), lax.neg(xs[1])),
                     lambda r, cts: (lax.mul(r, cts[0]), lax.sub(cts[0], cts[1])), r, x, y, results=[r * x + y, -y])
        yield two
        yield Sample([r, x], two.params, error=TypeError)


linear_call: Any = define(LinearCall())


def _bind(call: Any, jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
    return linear_call.primitive.bind(*args, call=call, jaxpr=jaxpr)  # type: ignore[no-any-return]


def _as_weak(x: Any, weak_type: bool) -> Any:
    aval = aval_of(x)
    return x if aval.weak_type is weak_type else roles.convert(x, aval.dtype, weak_type)


@carrying.remembered
def _tangents(jaxpr: Jaxpr, nonzero: Flags) -> Jaxpr:
    """The program of a call's operands and their nonzero tangents that computes the results' tangents."""
    dual, _ = jvp_jaxpr(jaxpr, nonzero, True)
    return dce(dual, (*[False] * len(jaxpr.outvars), *[True] * len(jaxpr.outvars)), True)[0]
