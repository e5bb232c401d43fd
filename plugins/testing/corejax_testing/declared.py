"""Checks of a plugin's declarations: zero derivatives, linearity, types, params."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax import jvp, make_jaxpr, vjp
from corejax.core import Array, ShapedArray, Zero, aval_of, dtypes, jvp_flat
from corejax.errors import CorejaxError, CorejaxNotImplementedError, RuleError
from corejax.ir import subjaxprs
from corejax.plugin import HOOKS, NotDifferentiable, NotLinear, Partials
from corejax_testing.case import Case
from corejax_testing.check import check
from corejax_testing.comparing import host, off, ulps_apart, worst
from corejax_testing.report import NotApplicable

# Derivatives

@check("jvp", decisive=True)
def a_zero_derivative_is_of_a_constant(case: Case) -> None:
    """If a tangent is known to be zero, the function is constant nearby: zero doesn't mean "not differentiable"."""
    if not case.doubles:
        raise NotApplicable("no operand is float64 or complex128")
    if isinstance(case.declared("jvp"), NotDifferentiable):
        raise NotApplicable("it is declared not differentiable")
    args = case.drawn()  # away from points where it jumps
    for i in case.doubles:
        function = case.function_of([i], args)
        x = args[i]
        try:
            outs, dots = jvp_flat(function, [_array(x)], [_array(case.direction(x))])
        except CorejaxError as error:
            if isinstance(error, RuleError):
                raise
            raise NotApplicable("its derivative is refused") from error
        for k, (out, dot) in enumerate(zip(outs, dots, strict=True)):
            if type(dot) is Zero and dtypes.is_inexact(aval_of(out).dtype):
                _check_constant(case, function, i, k, host(x))
        _check_float0(case, outs, dots)


def _check_constant(case: Case, function: Callable[..., list[Any]], i: int, k: int, x: np.ndarray) -> None:
    out = host(function(x)[k])  # not jvp's, which may be rounded otherwise
    for size in (1e-6, -1e-6, 1e-4):
        moved = host(function(x + size * case.direction(x))[k])
        distance = ulps_apart(out, moved)
        if distance.size and float(distance.max()) > 0 and off(out, moved, 0.0, case.atol):
            raise case.fail("jvp", f"the derivative of result {k} by operand {i} is declared zero, but it changes",
                            got=f"{worst(out, moved, distance)}, {abs(size):g} away", wanted="the same value nearby",
                            todo="write the derivative; None in partials, and Zero, say that it is constant. "
                                 "If there is none at all, declare not_differentiable(reason)")


def _check_float0(case: Case, outs: Sequence[object], dots: Sequence[object]) -> None:
    for k, (out, dot) in enumerate(zip(outs, dots, strict=True)):
        wanted = aval_of(out).tangent
        if not dtypes.is_inexact(aval_of(out).dtype) and (type(dot) is not Zero or dot.aval != wanted):
            raise case.fail("jvp", f"the tangent of result {k}, which is of integers, is not Zero({wanted})",
                            got=dot, wanted=f"Zero({wanted})", todo="return Zero(out.aval.tangent)")


@check("jvp")
def integers_have_no_tangents(case: Case) -> None:
    """Integer operands have float0 tangents and get float0 cotangents, even beside floating operands."""
    integers = [i for i, aval in enumerate(case.avals) if not dtypes.is_inexact(aval.dtype)]
    if not integers or isinstance(case.declared("jvp"), NotDifferentiable):
        raise NotApplicable("no operand is of integers" if not integers else "it is declared not differentiable")
    positions = [i for i in range(len(case.args)) if i not in case.refused]
    integers = [k for k, i in enumerate(positions) if i in integers]
    args, function = [case.args[i] for i in positions], case.function_of(positions)
    dots = [np.zeros(aval_of(x).shape, dtypes.float0) if k in integers else case.direction(x)
            for k, x in enumerate(args)]
    jvp(function, args, dots)
    try:
        outs, pullback = vjp(function, *args)
        back = pullback([_cotangent(case, out) for out in outs])
    except CorejaxNotImplementedError:
        return  # there is no reverse mode to check; other checks ask whether it may be missing
    for k in integers:
        if aval_of(back[k]).dtype != dtypes.float0:
            i = positions[k]
            raise case.fail("transpose", f"operand {i} of integers gets a cotangent", got=str(aval_of(back[k])),
                            wanted=str(case.avals[i].tangent), todo="return None for it")


# Linearity

@check("jvp")
def declared_linear_operands_are_linear(case: Case) -> None:
    """f(a x + b y) = a f(x) + b f(y) in all operands that `linear` names, or in one whose partial is `itself`."""
    linear, alone = case.primitive.linear, case.primitive.linear_in
    if not linear and not alone:
        raise NotApplicable("it declares no linear operands")
    for declared in [linear] if linear else [(i,) for i in sorted(alone)]:
        positions = [i for i in declared if i < len(case.args)]
        if not set(positions) <= set(case.doubles):
            raise NotApplicable("a linear operand is not float64 or complex128")
        _check_linear_in(case, positions, "`linear` names" if linear else "have `itself` among the partials")


def _check_linear_in(case: Case, positions: Sequence[int], declared: str) -> None:
    function = case.function_of(positions)
    xs, ys = [[case.direction(case.args[i]) for i in positions] for _ in range(2)]
    a, b = 1.7, -0.6
    both = function(*[a * x + b * y for x, y in zip(xs, ys, strict=True)])
    for k, (out, fx, fy) in enumerate(zip(both, function(*xs), function(*ys), strict=True)):
        inexact = dtypes.is_inexact(aval_of(out).dtype)
        problem = off(a * host(fx) + b * host(fy), host(out), 1e-9, case.atol) if inexact else None
        if problem:
            raise case.fail("jvp", f"result {k} is not linear in the operands {tuple(positions)} that {declared}",
                            got=f"f(a x + b y) is {problem}", wanted="a f(x) + b f(y)",
                            todo="name only operands in which it is linear jointly, or write jvp")


@check("transpose")
def what_is_not_linear_is_never_transposed(case: Case) -> None:
    """Reverse mode never asks for a transpose that is declared missing."""
    declared = case.declared("transpose")
    if not isinstance(declared, NotLinear) or not case.inexact:
        raise NotApplicable("it declares no transpose to be missing" if case.inexact else "no operand has a derivative")
    if isinstance(case.declared("jvp"), NotDifferentiable):
        raise NotApplicable("it is declared not differentiable")
    outs, pullback = vjp(case.function_of(case.inexact), *[case.args[i] for i in case.inexact])
    try:
        pullback([_cotangent(case, out) for out in outs])
    except CorejaxError as error:
        if error.primitive != case.primitive.name:
            raise
        raise case.fail("transpose", "it is declared not linear, and its own derivative needs its transpose",
                        got=error.message, wanted="a transpose, as jvp binds the primitive to a tangent",
                        todo="write transpose, or write jvp with other functions") from error


# Types and params

@check("abstract_eval")
def abstract_eval_depends_on_types_alone(case: Case) -> None:
    """Called again, it returns equal types; staging the primitive gives one equation with these types."""
    wanted = case.out_avals
    avals = case.avals
    for given in (avals, list(avals), [ShapedArray(a.shape, a.dtype, a.weak_type) for a in avals]):
        again = case.primitive.abstract_eval(given, **case.params)
        again = list(again) if case.primitive.multiple_results else [again]
        if again != wanted:
            raise case.fail("abstract_eval", "it gives different types when called again", got=again, wanted=wanted,
                            todo="use nothing but avals and params: no counter, no random numbers, no settings")

    def applied(*args: Any) -> list[Any]:
        case.primitive.abstract_eval(avals, **case.params)  # not `infer`, which is cached
        return case.apply(*args)

    closed = make_jaxpr(applied)(*case.args)
    if closed.out_avals != wanted:
        raise case.fail("abstract_eval", "staging gives different types", got=closed.out_avals, wanted=wanted,
                        todo="use nothing but avals and params")
    extra = [eqn.primitive.name for eqn in closed.eqns if eqn.primitive is not case.primitive]
    if extra:
        raise case.fail("abstract_eval", "it applies primitives while it is staged", got=", ".join(extra),
                        wanted="one equation", todo="compute with shapes and dtypes only, by Python and NumPy")


@check("abstract_eval")
def every_param_is_read(case: Case) -> None:
    """Each param that abstract_eval names is read by some hook: a param without any effect would be a trap."""
    if not case.params:
        raise NotApplicable("it has no params")
    if any(True for _ in subjaxprs(case.params)) or case.primitive.open_params:
        raise NotApplicable("its params are those of a program")
    plugin = case.primitive.plugin
    hooks: list[Any] = [getattr(plugin, hook, None) for hook in HOOKS]
    partials = [f for rule in hooks if isinstance(rule, Partials) for f in rule.functions if f is not None]
    rules = [rule for rule in [*hooks, *partials] if callable(rule)]
    unread = [name for name in case.primitive.params if not any([_reads(rule, name) for rule in rules])]
    if unread:
        raise case.fail("abstract_eval", f"no hook reads the param {unread[0]!r}", got=", ".join(sorted(unread)),
                        wanted="params that matter", todo="take it out of abstract_eval's arguments, or use it")


def _reads(rule: Any, name: str) -> bool:
    """Whether a rule's code reads this keyword argument. True if it accepts any."""
    code = getattr(getattr(rule, "__func__", rule), "__code__", None)
    if code is None or code.co_flags & inspect.CO_VARKEYWORDS:
        return True
    return any([name in str(step.argval) and "STORE" not in step.opname and step.opname != "MAKE_CELL"
                for step in dis.get_instructions(code) if isinstance(step.argval, (str, tuple))])


def _cotangent(case: Case, out: Any) -> Any:
    return case.direction(out) if dtypes.is_inexact(aval_of(out).dtype) else np.zeros(out.shape, dtypes.float0)


def _array(x: object) -> Array:
    aval = aval_of(x)
    return Array.from_host(np.array(host(x)), aval)
