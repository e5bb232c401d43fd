"""Checks of split programs and of nested ones: dead code, known parts, checkpoints, loops."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax import checkpoint, jit, jvp, linearize, vjp
from corejax.core import dtypes, partial_eval_jaxpr
from corejax.errors import CorejaxKeyError, CorejaxNotImplementedError
from corejax.ir import consts_to_operands, dce_closed, eval_jaxpr, jaxpr_as_fun
from corejax.plugin import carrying, roles
from corejax_testing.case import Case
from corejax_testing.check import check
from corejax_testing.comparing import worst
from corejax_testing.orderings import turn
from corejax_testing.programs import program_of, same, subsets, transformed, typed
from corejax_testing.report import NotApplicable, no_derivative
from corejax_testing.tangents import zeros_like
from corejax_testing.tolerances import ULPS, distances


@check("dce")
def dead_results_are_removed(case: Case) -> None:
    """Without some of its results, a program computes the others as before; without any, only effects remain."""
    closed = program_of(case)
    plain = case.apply(*case.args)
    todo = "return which operands are still used, and an equation of the results that are"
    for used in subsets(case, len(plain)):
        smaller, used_in = dce_closed(closed, used)
        typed(case, "dce", f"the program without the results {_unset(used)}", smaller.jaxpr, todo)
        operands = list(itertools.compress(case.args, used_in))
        same(case, "dce", f"without the results {_unset(used)}", list(itertools.compress(plain, used)),
             jaxpr_as_fun(smaller)(*operands), todo)
        if not any(used) and smaller.jaxpr.eqns and not closed.effects:
            raise case.fail("dce", "a program without results still has equations", got=smaller, wanted="none",
                            todo="return (all False, None) if no result is used")


@check("dce", costly=True)
def a_result_alone_has_its_tangent(case: Case) -> None:
    """Without the other results, a program's last one has the tangent that it has beside them."""
    positions, avals = case.differentiable, case.out_avals
    if len(avals) == 1:
        raise NotApplicable("it has no other results")
    last = max([k for k, aval in enumerate(avals) if dtypes.is_inexact(aval.dtype)])
    smaller, used_in = dce_closed(program_of(case), [k == last for k in range(len(avals))])
    dots = [case.direction(x) if i in positions else zeros_like(x) for i, x in enumerate(case.args)]
    try:
        wanted = jvp(case.apply, case.args, dots)[1][last]
    except CorejaxNotImplementedError as error:
        raise no_derivative(error) from None
    found = jvp(jaxpr_as_fun(smaller), list(itertools.compress(case.args, used_in)),
                list(itertools.compress(dots, used_in)))[1]
    same(case, "dce", f"the tangent of result {last} alone", [wanted], found,
         "let the shorter equation's rules be those of the results that are left")


@check("partial_eval")
def programs_split_by_what_is_known(case: Case) -> None:
    """For every subset of known operands, the part computed now and the part that waits together give the whole."""
    jaxpr, consts = consts_to_operands(program_of(case))
    plain = case.apply(*case.args)
    todo = "let the known and the staged equation together compute all results, with what passes between as residuals"
    for flags in subsets(case, len(case.args)):
        unknown_in = (*[False] * len(consts), *flags)
        operands = [*consts, *case.args]
        known, staged, unknown_out, n = partial_eval_jaxpr(jaxpr, unknown_in)
        how = f"with the operands {_unset(flags)} known"
        for part in (known, staged):
            typed(case, "partial_eval", how, part, todo)
        outs = eval_jaxpr(known, (), *[x for x, unknown in zip(operands, unknown_in, strict=True) if not unknown])
        now, residuals = outs[: len(outs) - n], outs[len(outs) - n:]
        waited = eval_jaxpr(staged, (), *residuals, *itertools.compress(operands, unknown_in))
        found = iter(now), iter(waited)
        same(case, "partial_eval", how, plain, [next(found[unknown]) for unknown in unknown_out], todo)


@check("recompute")
def what_waits_is_computed_again_but_for_what_is_saved(case: Case) -> None:
    """For every subset of known operands, and whatever is saved, the part that waits computes all results again."""
    if case.primitive.recompute is None:
        raise NotApplicable("it is saved or computed again as a whole")
    jaxpr, consts = consts_to_operands(program_of(case))
    plain, operands = case.apply(*case.args), [*consts, *case.args]
    todo = "let the known equation return what is saved, and the staged one compute all results from that and operands"
    for flags in subsets(case, len(case.args)):
        unknown_in = (*[False] * len(consts), *flags)
        for saved, policy in _POLICIES.items():
            parts = carrying.split_saving(jaxpr, unknown_in, policy)
            how = f"with the operands {_unset(flags)} known, and {saved} saved"
            for part in (parts.known, parts.staged):
                typed(case, "recompute", how, part, todo)
            given = [x for x, unknown in zip(operands, unknown_in, strict=True) if not unknown]
            outs = eval_jaxpr(parts.known, (), *given)
            found = iter(outs)
            now = {i: next(found) for i, unknown in enumerate(parts.unknown_out) if not unknown}
            fresh = [*found]
            same(case, "recompute", how, [plain[i] for i in now], [*now.values()], todo)
            kept = [now[i] if where == "result" else fresh[i] for where, i in parts.saved]
            again = eval_jaxpr(parts.staged, (), *kept, *operands)
            same(case, "recompute", f"{how}: computed again", plain, again, todo)


#: What `checkpoint` may save: nothing, everything, and about every other operation.
_POLICIES: dict[str, Callable[..., bool]] = {
    "nothing": lambda *_, **__: False, "everything": lambda *_, **__: True,
    "some": lambda primitive, *_, **__: len(primitive.name) % 2 == 0}


@check("linearize")
def derivatives_by_any_operands_linearize(case: Case) -> None:
    """For every subset of operands to differentiate, linearize gives the tangents that jvp gives."""
    positions = case.differentiable
    for flags in subsets(case, len(positions), 8):
        chosen = list(itertools.compress(positions, flags))
        if not chosen:
            continue
        fun, xs = case.function_of(chosen), [case.args[i] for i in chosen]
        dots = [case.direction(x) for x in xs]
        try:
            outs, wanted = jvp(fun, tuple(xs), tuple(dots))
        except CorejaxNotImplementedError as error:
            raise no_derivative(error) from None
        found, lin = linearize(fun, *xs)
        how = f"linearized by the operands {chosen}"
        todo = "let lin(residuals, tangents) be the derivative that jvp computes"
        same(case, "linearize", how, outs, found, todo)
        same(case, "linearize", f"the derivative {how}", wanted, lin(*dots), todo)


def _unset(flags: Sequence[bool]) -> str:
    return str([i for i, flag in enumerate(flags) if not flag])


# Inside other programs

@check("jvp")
def it_works_inside_checkpoints_and_loops(case: Case) -> None:
    """Checkpointed, it has the same value and pullback; in the full mode, so it does as the body of a loop."""
    _needs("checkpoint")
    if case.primitive.effects is not None and case.primitive.effects(case.avals, **case.params):
        raise NotApplicable("it has effects, which recomputing it would repeat")
    _same_inside(case, "checkpointed", checkpoint)
    if case.full and case.args and turn(case)[0] == 0:  # loops are compiled, so one of the samples is enough
        _needs("sequential_map")
        _same_inside(case, "in a loop", _looped)


def _looped(fun: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """The function, as a loop of one step."""
    def loop(*args: Any) -> list[Any]:
        outs = roles.sequential_map(lambda xs: fun(*xs), [roles.expand(x, 1, 0) for x in args])
        return [roles.index(out, 0) for out in outs]
    return jit(loop)


def _same_inside(case: Case, how: str, wrap: Callable[..., Any]) -> None:
    todo = "check whether its partial_eval, jvp and transpose depend on where it is bound"
    same(case, "jvp", f"{how}: the value", case.apply(*case.args), wrap(case.apply)(*case.args), todo)
    for name, hook, fun, args in transformed(case):
        if name != "vjp":
            continue
        positions = case.differentiable
        n = len(positions)
        cts = iter(args[n:])
        full = [next(cts) if dtypes.is_inexact(aval.dtype) else np.zeros(aval.shape, dtypes.float0)
                for aval in case.out_avals]
        back = vjp(wrap(case.function_of(positions)), *args[:n])[1](full)
        same(case, hook, f"{how}: the pullback", fun(*args), list(back), todo)


def _needs(role: str) -> None:
    try:
        getattr(roles, role)
    except CorejaxKeyError:
        raise NotApplicable(f"no pack in use fills the role {role!r}") from None


@check("evaluate")
def evaluate_and_the_compiled_program_agree(case: Case) -> None:
    """What `evaluate` computes step by step is what the compiled program gives."""
    if case.primitive.evaluate is None:
        raise NotApplicable("it has no hook `evaluate`")
    outs, compiled = case.apply(*case.args), jit(case.apply)(*case.args)
    for i, (mine, other) in enumerate(zip(outs, compiled, strict=True)):
        distance = distances(case, other, mine)
        limit = case.sample.ulps or ULPS
        if distance.size and distance.max() > limit:
            raise case.fail("evaluate", f"result {i} differs from the compiled program's",
                            wanted=f"at most {limit:g} ulps", got=worst(other, mine, distance),
                            todo="fix evaluate or xla_translation")
