"""How checks go through primitives that carry programs: each program is checkified, and takes and returns the state.

Where a primitive asks for functions whose types mustn't change, as those with derivatives of their own do, the program
is run for its results as it is, and once more for its checks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import (
    Jaxpr,
    JaxprEqn,
    NamedAxis,
    PartitionSpec,
    ShapedArray,
    Zero,
    aval_of,
    binding,
    jvp_flat,
    stage_closed,
    subjaxprs,
)
from corejax.errors import CorejaxNotImplementedError
from corejax.ir import reorder_invars
from corejax.plugin import carrying, custom_jvp
from corejax_checkify._automatic import bound, check_nan, of_nan
from corejax_checkify._following import (
    RULES,
    Kinds,
    Plan,
    Rule,
    Walk,
    checked,
    entered,
    kinds_of,
    sites_of,
    state_avals,
    unchecked,
    unknown_carrier,
    without_checks,
)
from corejax_checkify._sites import Site, Sites
from corejax_checkify.checking import CHECK
from corejax_checkify.failures import Errors

__all__: list[str] = []

_FLOW, _COLLECTIVES = "corejax-control-flow", "corejax-collectives"


def _inside(eqn: JaxprEqn, errors: Errors) -> Sites:
    """The sites of all programs that an equation carries."""
    return tuple([site for jaxpr in subjaxprs(eqn.params) for site in sites_of(jaxpr, errors)])


def _carries(pack: str, *names: str) -> Callable[[Callable[[Walk, JaxprEqn, Sequence[Any]], Any]], Any]:
    """Register how these primitives are evaluated in a walk."""
    def register(run: Callable[[Walk, JaxprEqn, Sequence[Any]], Any]) -> Any:
        for name in names:
            RULES[pack, name] = Rule(_inside, run)
        return run
    return register


# Calls

def _flags(flags: Any, state: Sequence[Any]) -> Any:
    """Flags of operands, for a state before them too: False for each."""
    return (*[False] * len(state), *flags) if isinstance(flags, tuple) and flags else flags


@_carries(_FLOW, "xla_call", "checkpoint_call")
def _call(walk: Walk, eqn: JaxprEqn, args: Sequence[Any]) -> list[Any]:
    jaxpr = eqn.params["jaxpr"]
    kinds = kinds_of(walk.plan, jaxpr)
    state = walk.flat(kinds)
    params = {**eqn.params, "jaxpr": checked(jaxpr, walk.plan, kinds)}
    for name in ("donated", "prevent_cse"):
        if name in params:
            params[name] = _flags(params[name], state)
    return walk.take(kinds, eqn.primitive.bind(*state, *args, **params))


@_carries(_FLOW, "composite_call")
def _opened(walk: Walk, eqn: JaxprEqn, args: Sequence[Any]) -> list[Any]:
    """A composite has the operands that its name promises, so one with checks is only what it is composed of."""
    return walk.run(eqn.params["jaxpr"], args)


@_carries(_FLOW, "cond", "platform_dependent")
def _one_of(walk: Walk, eqn: JaxprEqn, args: Sequence[Any]) -> list[Any]:
    branches = eqn.params["branches"]
    n = len(args) - len(branches[0].invars)  # the index of a conditional
    kinds = kinds_of(walk.plan, *branches)
    programs = tuple([checked(branch, walk.plan, kinds) for branch in branches])
    outs = eqn.primitive.bind(*args[:n], *walk.flat(kinds), *args[n:], **{**eqn.params, "branches": programs})
    return walk.take(kinds, outs)


@_carries(_FLOW, "custom_fwd_call")
def _fwd(walk: Walk, eqn: JaxprEqn, args: Sequence[Any]) -> list[Any]:
    programs = {name: eqn.params[name] for name in ("fwd", "primal")}
    kinds = kinds_of(walk.plan, *programs.values())
    programs = {name: checked(jaxpr, walk.plan, kinds) for name, jaxpr in programs.items()}
    return walk.take(kinds, eqn.primitive.bind(*walk.flat(kinds), *args, **{**eqn.params, **programs}))


# Loops

def _consts_first(jaxpr: Jaxpr, n_state: int, n_consts: int) -> Jaxpr:
    """A checkified step, with its constants before the state."""
    n = len(jaxpr.invars)
    return reorder_invars(jaxpr, [*range(n_state, n_state + n_consts), *range(n_state), *range(n_state + n_consts, n)])


@_carries(_FLOW, "scan", "counted_scan", "checkpointed_scan")
def _scan(walk: Walk, eqn: JaxprEqn, args: Sequence[Any]) -> list[Any]:
    params = eqn.params
    jaxpr, n_consts = params["jaxpr"], params["num_consts"]
    n = len(args) - len(jaxpr.invars)  # the number of steps of a counted loop
    kinds = kinds_of(walk.plan, jaxpr)
    state = walk.flat(kinds)
    body = _consts_first(checked(jaxpr, walk.plan, kinds), len(state), n_consts)
    first = n + n_consts
    outs = eqn.primitive.bind(*args[:first], *state, *args[first:], **{
        **params, "jaxpr": body, "num_carry": params["num_carry"] + len(state)})
    return walk.take(kinds, outs)


@_carries(_FLOW, "segmented_scan")
def _segmented(walk: Walk, eqn: JaxprEqn, args: Sequence[Any]) -> list[Any]:
    """Steps that wait for tangents: the loops that they are."""
    return walk.run(_decomposed(eqn), args)


def _decomposed(eqn: JaxprEqn) -> Jaxpr:
    decompose = eqn.primitive.decompose
    assert decompose is not None  # its pack gives it
    return stage_closed(lambda *xs: decompose(xs, **eqn.params), [x.aval for x in eqn.invars], eqn.primitive.name)


@_carries(_FLOW, "while_loop", "bounded_while_loop")
def _while(walk: Walk, eqn: JaxprEqn, args: Sequence[Any]) -> list[Any]:
    params, plan = eqn.params, walk.plan
    is_bounded = "length" in params
    step, count = ("jaxpr", "num_consts") if is_bounded else ("body_jaxpr", "body_nconsts")
    cond, body, n_cond, n_body = params["cond_jaxpr"], params[step], params["cond_nconsts"], params[count]
    n_carry = len(cond.invars) - n_cond
    if cond.out_avals[0].shape:
        raise _batched(eqn, [*sites_of(cond, plan.errors), *sites_of(body, plan.errors)])
    cond_consts, consts, carry = args[:n_cond], args[n_cond:n_cond + n_body], args[n_cond + n_body:]
    asks = CHECK in cond.effects or bool(sites_of(cond, plan.errors))
    kinds = kinds_of(plan, cond, body)
    if asks:  # the condition makes checks, which only a step can keep
        (goes_on,) = walk.run(cond, [*cond_consts, *carry])
        program = _step_and_condition(body, cond, plan, kinds, n_cond, n_body)
        consts, more = [*cond_consts, *consts], [carrying.varied(goes_on, plan.axes)]
        cond_consts, n_cond = [], 0
    else:
        program, more = checked(body, plan, kinds), []
    state = walk.flat(kinds)
    program = _consts_first(program, len(state), len(consts))
    state_and_more = [*state_avals(plan, kinds), *[carrying.along(cond.out_avals[0], plan.axes) for _ in more]]
    condition = _condition(cond, tuple(state_and_more), n_cond, asks, n_carry)
    new = {"cond_jaxpr": condition, step: program, "cond_nconsts": n_cond, count: len(consts)}
    if is_bounded:
        new["num_carry"] = params["num_carry"] + len(state_and_more)
    outs = eqn.primitive.bind(*cond_consts, *consts, *state, *more, *carry, **{**params, **new})
    taken = outs[:1] if is_bounded else []
    rest = walk.take(kinds, outs[len(taken):])
    return [*taken, *rest[len(more):]]


@carrying.remembered
def _step_and_condition(body: Jaxpr, cond: Jaxpr, plan: Plan, kinds: Kinds, n_cond: int, n_body: int) -> Jaxpr:
    """(state, constants of the condition and the step, whether it goes on, carry) -> (state, whether, carry, ...)."""
    n_consts, n_carry = n_cond + n_body, len(body.invars) - n_body

    def step(*xs: Any) -> list[Any]:
        walk, rest = entered(plan, kinds, xs)
        outs = walk.run(body, [*rest[n_cond:n_consts], *rest[n_consts + 1:]])
        (goes_on,) = walk.run(cond, [*rest[:n_cond], *outs[:n_carry]])
        return [*walk.flat(kinds), carrying.varied(goes_on, plan.axes), *outs]

    avals = [*state_avals(plan, kinds), *cond.in_avals[:n_cond], *body.in_avals[:n_body],
             carrying.along(cond.out_avals[0], plan.axes), *body.in_avals[n_body:]]
    return stage_closed(step, avals, body.name)


@carrying.remembered
def _condition(cond: Jaxpr, more: tuple[ShapedArray, ...], n_consts: int, asks: bool, n_carry: int) -> Jaxpr:
    """The condition for a carry that begins with the state; if the step has asked it, only what it said."""
    carry = cond.in_avals[len(cond.invars) - n_carry:]

    def fun(*xs: Any) -> list[Any]:
        if asks:
            return [xs[len(more) - 1]]
        return without_checks(cond, [*xs[:n_consts], *xs[n_consts + len(more):]])
    return stage_closed(fun, [*([] if asks else cond.in_avals[:n_consts]), *more, *carry], cond.name)


def _batched(eqn: JaxprEqn, sites: Sequence[Site]) -> CorejaxNotImplementedError:
    return CorejaxNotImplementedError(
        f"checkify: the elements of a batch leave this {eqn.primitive.name} at different steps, and what is computed "
        "for those that have left can't be told from what counts", primitive=eqn.primitive.name,
        got="checkify of vmap of a loop" + (f", with a check of {sites[0].text!r}" if sites else ""),
        wanted="vmap of checkify of the loop", todo="call cj.vmap(checkify.checkify(f))(xs)")


# Derivatives and maps of the user's

def _stripped(eqn: JaxprEqn) -> dict[str, Any]:
    """The params, with programs without the user's checks."""
    return {name: unchecked(value) if isinstance(value, Jaxpr) else value for name, value in eqn.params.items()}


def _check_twice(eqn: JaxprEqn) -> None:
    """Raise if evaluating an equation twice, for its results and for its checks, is seen."""
    others = [effect for jaxpr in subjaxprs(eqn.params) for effect in jaxpr.effects if effect != CHECK]
    if others:
        raise CorejaxNotImplementedError(
            f"checkify: {eqn.primitive.name} carries a program with checks, which is evaluated once for its results "
            "and once for its checks, so another effect would happen twice", primitive=eqn.primitive.name,
            got=f"the effects {', '.join(sorted(map(str, others)))}", wanted="checks alone",
            todo="take the effect out of the function that it is given, or check what it returns")


@_carries(_FLOW, "custom_call")
def _custom(walk: Walk, eqn: JaxprEqn, args: Sequence[Any]) -> list[Any]:
    """A function with rules for its derivative: its state has none, and its results keep theirs."""
    jaxpr, plan = eqn.params["jaxpr"], walk.plan
    kinds = kinds_of(plan, jaxpr)
    program, params = checked(jaxpr, plan, kinds), _stripped(eqn)
    n = len(walk.flat(kinds))

    @custom_jvp
    def call(*xs: Any) -> Any:
        return tuple(carrying.run(program, xs))

    def rule(primals: Any, tangents: Any) -> Any:
        _check_twice(eqn)
        xs, dots = primals[n:], tangents[n:]
        nonzero = carrying.nonzero(dots)

        nonzero_out: list[carrying.Flags] = []

        def forward(*ys: Any) -> Any:
            given = carrying.with_zeros(ys[len(xs):], nonzero, [aval_of(x).tangent for x in xs])
            outs, found = jvp_flat(lambda *zs: eqn.primitive.bind(*zs, **params), ys[:len(xs)], given)
            nonzero_out.append(carrying.nonzero(found))
            return outs, carrying.without_zeros(found)

        derived = carrying.stage_call(forward, (*xs, *carrying.without_zeros(dots)), "checkify")
        outs, found = derived.unflatten(without_checks(derived.jaxpr, derived.operands))
        out_dots = carrying.with_zeros(found, nonzero_out[-1], [aval_of(x).tangent for x in outs])
        state = carrying.run(program, [*primals[:n], *[lax.stop_gradient(x) for x in xs]])[:n]
        return (*state, *outs), (*[Zero(aval_of(x).tangent) for x in state], *out_dots)

    call.defjvp(rule, symbolic_zeros=True)
    return walk.take(kinds, call(*walk.flat(kinds), *args))


@_carries(_FLOW, "custom_vmap_call", "linear_call")
def _beside(walk: Walk, eqn: JaxprEqn, args: Sequence[Any]) -> list[Any]:
    """A call with rules of another kind: its results, and beside them its checks."""
    return _twice(walk, eqn, args, eqn.params["jaxpr"])


def _twice(walk: Walk, eqn: JaxprEqn, args: Sequence[Any], jaxpr: Jaxpr) -> list[Any]:
    _check_twice(eqn)
    outs = eqn.primitive.bind(*args, **_stripped(eqn))
    if sites_of(jaxpr, walk.plan.errors):
        walk.run(jaxpr, [lax.stop_gradient(x) for x in args])
    return list(outs)


def _of_solve(eqn: JaxprEqn, errors: Errors) -> Sites:
    return sites_of(eqn.params["solve"], errors) + of_nan(eqn, errors)


def _solved(walk: Walk, eqn: JaxprEqn, args: Sequence[Any]) -> list[Any]:
    """A solution whose derivative is that of an equation: the checks are those of how it is found."""
    outs = _twice(walk, eqn, args, eqn.params["solve"])
    check_nan(walk, eqn, outs)
    return outs


for _name in ("custom_root", "custom_linear_solve"):
    RULES[_FLOW, _name] = Rule(_of_solve, _solved)


# Functions that combine elements: of these operations, the results are checked

def _combined(walk: Walk, eqn: JaxprEqn, args: Sequence[Any]) -> Any:
    for jaxpr in subjaxprs(eqn.params):
        if CHECK in jaxpr.effects:
            raise unknown_carrier(eqn, sites_of(jaxpr, walk.plan.errors), "it may combine elements in any order")
    outs = bound(eqn, args)
    check_nan(walk, eqn, outs)
    return outs if eqn.primitive.multiple_results else outs[0]


for _pack, _name in (("corejax-reductions", "reduce"), ("corejax-windows", "reduce_window"),
                     ("corejax-windows", "select_and_scatter")):
    RULES[_pack, _name] = Rule(of_nan, _combined)


# Devices

@_carries(_COLLECTIVES, "shard_map")
def _shard_map(walk: Walk, eqn: JaxprEqn, args: Sequence[Any]) -> list[Any]:
    """Each device goes on with the state by itself; the first device of which a check failed counts."""
    params, plan = eqn.params, walk.plan
    axes: tuple[NamedAxis, ...] = params["axes"]
    names = tuple([axis.name for axis in axes])
    tracked = frozenset([axis.name for axis in axes if axis.tracked])
    kinds = kinds_of(plan, params["jaxpr"])
    state = walk.flat(kinds)
    with binding(axes):
        program = _of_device(params["jaxpr"], plan, kinds, tracked)
    whole, divided = PartitionSpec(), PartitionSpec(names) if names else PartitionSpec(None)
    outs = eqn.primitive.bind(*state, *args, **{
        **params, "jaxpr": program, "in_specs": (*[whole] * len(state), *params["in_specs"]),
        "out_specs": (*[divided] * len(state), *params["out_specs"])})
    return walk.take(kinds, [*_first_of(outs[:len(state)]), *outs[len(state):]])


@carrying.remembered
def _of_device(jaxpr: Jaxpr, plan: Plan, kinds: Kinds, tracked: frozenset[Any]) -> Jaxpr:
    """The program of each device: its state, of which each device returns its own, has an axis more."""
    within = plan._replace(axes=plan.axes | tracked)
    n = len(state_avals(plan, kinds))

    def fun(*xs: Any) -> list[Any]:
        walk, args = entered(within, kinds, [*[carrying.varied(x, within.axes) for x in xs[:n]], *xs[n:]])
        outs = walk.run(jaxpr, args)
        return [*[lax.expand_dims(x, (0,)) for x in walk.flat(kinds)], *outs]
    return stage_closed(fun, [*state_avals(plan, kinds), *jaxpr.in_avals], jaxpr.name)


def _first_of(state: Sequence[Any]) -> list[Any]:
    """Of states along an axis, the first in which something has failed."""
    at = lax.argmax(lax.ne(state[0], np.int32(0)), 0, np.int32)
    return [lax.dynamic_index_in_dim(x, at, 0, keepdims=False) for x in state]


@_carries(_COLLECTIVES, "xla_pmap")
def _pmap(walk: Walk, eqn: JaxprEqn, args: Sequence[Any]) -> list[Any]:
    params, plan = eqn.params, walk.plan
    kinds = kinds_of(plan, params["call_jaxpr"])
    state = walk.flat(kinds)
    with binding((NamedAxis(params["axis_name"], params["axis_size"], None),)):
        program = checked(params["call_jaxpr"], plan, kinds)
    n = len(state)
    outs = eqn.primitive.bind(*state, *args, **{
        **params, "call_jaxpr": program, "donated_invars": _flags(params["donated_invars"], state),
        "in_axes": (*[None] * n, *params["in_axes"]), "out_axes": (*[0] * n, *params["out_axes"])})
    return walk.take(kinds, [*_first_of(outs[:n]), *outs[n:]])
