"""Checks of effects: what happens when a program runs happens once, whatever is made of the program, and in order.

A sample of a primitive with effects says by `happened` how to see them: what has happened since it last asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from corejax import block_until_ready, checkpoint, jit, jvp, lax, make_jaxpr, vjp, vmap
from corejax.distributions import EFFECTS, installed
from corejax.errors import CorejaxNotImplementedError
from corejax.ir import jaxpr_as_fun
from corejax.plugin import Effect
from corejax_testing.case import Case
from corejax_testing.check import check
from corejax_testing.programs import program_of
from corejax_testing.report import NotApplicable
from corejax_testing.tangents import zeros_like

#: A way to run a program: its name, the hook to blame, and from the program what to call.
_Way = tuple[str, str, Callable[[Callable[[], Any]], Callable[[], Any]]]


@check("effects")
def effects_are_declared(case: Case) -> None:
    """Each effect is one that a pack in use declares; and if something is seen to happen, there is one."""
    effects = _effects(case)
    take = case.sample.happened
    if take is not None and not effects:
        take()
        case.apply(*case.args)
        happened = take()
        if happened:
            raise case.fail("effects", "something happens that isn't declared", got=happened, wanted="an effect",
                            todo="write the hook effects: return frozenset((EFFECT,))")
    if not effects:
        raise NotApplicable("it has no effects")
    if case.primitive.pack is not None:
        known = installed().names(EFFECTS)
        for effect in effects:
            if effect.name not in known:
                raise case.fail("effects", f"the effect {effect} is nobody's", got=f"Effect({effect.name!r})",
                                wanted=f"an entry point in {EFFECTS}",
                                todo="let a module of the pack export it: python -m corejax entry-points --write")
    if take is None:
        raise case.fail("samples", "it has effects, and nothing says how to see them", got="no `happened`",
                        wanted="Sample(..., happened=take), where take() returns what has happened since it was called",
                        todo="give `happened`; or exempt the sample, with the reason why nothing can be seen")


@check("effects")
def effects_happen_once_and_in_order(case: Case) -> None:
    """Whatever is made of a program, its effects happen once; in order, if they are ordered."""
    effects, take = _effects(case), case.sample.happened
    if not effects or take is None:
        raise NotApplicable("it has no effects that can be seen")
    others = [sample for sample in case.samples if sample.happened is not None and sample.error is None
              and not sample.axes][:4]
    wanted: list[Any] = []
    for sample in others:
        take()
        case.primitive.bind(*sample.args, **sample.params)
        wanted += take()
    if not wanted:
        raise case.fail("impl", "nothing happens", got="nothing, of all samples", wanted=f"the effects {effects}",
                        todo="let impl do what has the effect, and `happened` return it")
    ordered = any([effect.ordered for effect in effects])

    def program() -> Any:
        return [case.primitive.bind(*sample.args, **sample.params) for sample in others]

    for name, hook, made in _ways():
        times = 2 if name == "in a loop of two steps" else 1
        try:
            run = made(program)
            take()
            for again in ("", " for the second time"):
                block_until_ready(run())
                _compare(case, hook, name + again, wanted * times, take(), ordered)
        except CorejaxNotImplementedError as error:
            if error.hook != "effects":  # else an effect refuses to happen there
                raise


@check("jvp")
def effects_happen_once_under_derivatives(case: Case) -> None:
    """Under jvp, vjp and checkpoint, the effects of the primal program happen once, in the forward pass."""
    effects, take = _effects(case), case.sample.happened
    if not effects or take is None:
        raise NotApplicable("it has no effects that can be seen")
    positions = case.doubles
    if not positions:
        raise NotApplicable("no operand is float64 or complex128")
    take()
    case.apply(*case.args)
    wanted = take()
    fun, xs = case.function_of(positions), [case.args[i] for i in positions]

    def with_result(*xs: Any) -> Any:  # so that there is something to differentiate
        return [*fun(*xs), *xs]

    dots = [case.direction(x) for x in xs]
    cts = [zeros_like(x) for x in case.apply(*case.args)]
    take()
    for name, run in (
            ("under jvp", lambda: jvp(with_result, tuple(xs), tuple(dots))),
            ("compiled, under jvp", lambda: jit(lambda *xs: jvp(with_result, xs, tuple(dots)))(*xs)),
            ("under vjp", lambda: _pulled(with_result, xs, cts)),
            ("compiled, under vjp", lambda: jit(lambda *xs: _pulled(with_result, xs, cts))(*xs)),
            ("checkpointed, under vjp", lambda: _pulled(checkpoint(with_result), xs, cts)),
            ("checkpointed and compiled, under vjp", lambda: jit(
                lambda *xs: _pulled(checkpoint(with_result), xs, cts))(*xs))):
        try:
            block_until_ready(run())
        except CorejaxNotImplementedError:
            take()
            if any([{"derivative", "recomputed"} & effect.refused.keys() for effect in effects]):
                continue
            raise NotApplicable("it has no derivative") from None
        _compare(case, "jvp", name, wanted, take(), any([effect.ordered for effect in effects]))


def _pulled(fun: Callable[..., Any], xs: Sequence[Any], cts: Sequence[Any]) -> Any:
    outs, pull = vjp(fun, *xs)
    return pull([*cts, *outs[len(cts):]])


def _effects(case: Case) -> frozenset[Effect]:
    return frozenset().union(*[eqn.effects for eqn in program_of(case).jaxpr.eqns if eqn.primitive is case.primitive])


def _ways() -> Iterator[_Way]:
    """Ways to run a program, each with which its effects happen as often as the program runs."""
    yield "evaluated", "impl", lambda program: program
    yield "compiled", "xla_translation", jit
    yield "compiled, with no use for its results", "dce", lambda program: jit(lambda: (program(), 1.0)[1])
    yield "in a nested call", "xla_translation", lambda program: jit(lambda: jit(program)())
    yield "as a program that is run", "effects", lambda program: _run(make_jaxpr(program))
    if hasattr(lax, "cond"):
        yield "in a branch", "xla_translation", lambda program: jit(
            lambda: lax.cond(lax.eq(0, 0), program, program))
    if hasattr(lax, "scan"):
        yield "in a loop of two steps", "xla_translation", lambda program: jit(
            lambda: lax.scan(lambda _, __: (None, (program(), None)[1]), None, None, length=2))
    yield "in a mapped function, which maps none of its operands", "vmap", lambda program: lambda: vmap(
        lambda x: (program(), x)[1])(lax.full((3,), 0.0))


def _run(traced: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: jaxpr_as_fun(traced())()


def _compare(case: Case, hook: str, how: str, wanted: Sequence[Any], got: Sequence[Any], ordered: bool) -> None:
    """Raise unless the same things have happened, in the same order if that matters."""
    if sorted(map(repr, wanted)) != sorted(map(repr, got)):
        problem = "is lost" if len(got) < len(wanted) else "happens twice" if len(got) > len(wanted) else "differs"
        raise case.fail(hook, f"{how}: an effect {problem}", got=list(got), wanted=list(wanted),
                        todo="let each rule do once what has the effect; ctx.callback does for lowerings")
    if ordered and [*map(repr, wanted)] != [*map(repr, got)]:
        raise case.fail(hook, f"{how}: ordered effects happen in another order", got=list(got), wanted=list(wanted),
                        todo="do it within the call; and pass ctx.tokens on through regions")
