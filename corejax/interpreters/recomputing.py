"""Splitting a jaxpr such that what waits is computed again, but for the values that a policy saves.

A policy is asked about each equation whose operands are known, by its primitive, the types of its operands, and its
params: may the results be kept until the other part runs? Equations that carry jaxprs answer by their hook `recompute`,
which asks about the equations within.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from corejax.base.avals import ShapedArray
from corejax.base.caches import WeakCache
from corejax.base.errors import CorejaxNotImplementedError, CorejaxTypeError, kind_of
from corejax.base.source import here
from corejax.installed.roles import roles
from corejax.interpreters.splitting import Flags, Place, Split
from corejax.interpreters.staging import stage_closed
from corejax.ir.arguments import check_each
from corejax.ir.surgery import dce, equation_without_effects, inline, select_outputs
from corejax.kernel.axes import AxisEnv
from corejax.kernel.context import context
from corejax.kernel.jaxpr import Atom, Jaxpr, JaxprEqn, Var, no_effects

P = TypeVar("P")
Policy = Callable[..., Any]
"""`policy(primitive, *avals, **params)`: whether the results of an equation are saved, as a bool or a `Decision`."""


class Decision:
    """What a policy may return besides True and False. It is true if results are saved."""

    def __init__(self, name: str, saves: bool) -> None:
        self._name, self._saves = name, saves

    def __bool__(self) -> bool:
        return self._saves

    def __repr__(self) -> str:
        return self._name


#: What True and False stand for.
Saveable, Recompute = Decision("Saveable", True), Decision("Recompute", False)


class Offloadable(Decision):
    """Results are saved, in memory of the kind `dst`, and moved back to `src` when they are needed.

    Where the device has no such memory, they are saved where they are.
    """

    def __init__(self, src: str, dst: str) -> None:
        super().__init__("Offloadable", True)
        self.src, self.dst = src, dst

    def __eq__(self, other: object) -> bool:
        return type(other) is Offloadable and (self.src, self.dst) == (other.src, other.dst)

    def __hash__(self) -> int:
        return hash((Offloadable, self.src, self.dst))

    def __repr__(self) -> str:
        return f"Offloadable(src={self.src!r}, dst={self.dst!r})"


def decision(policy: Policy, eqn: JaxprEqn) -> bool | Decision:
    """Whether a policy saves the results of an equation, and where."""
    avals = [x.aval for x in eqn.invars]
    try:
        answer = policy(eqn.primitive, *avals, **eqn.params)
    except TypeError as error:
        if error.__traceback__ is None or error.__traceback__.tb_next is not None:
            raise  # by the policy itself
        raise CorejaxTypeError(
            "checkpoint: the policy doesn't take what it is asked about", where=here(), got=str(error),
            wanted="policy(primitive, *avals, **params)",
            todo="let it take any number of types, and params by keyword: what they are depends on the primitive"
        ) from error
    if answer is True or answer is False or isinstance(answer, Decision):
        return answer
    raise CorejaxTypeError(
        "checkpoint: the policy must say whether results are saved", got=f"{kind_of(answer)}: {answer!r:.60}, for "
        f"{eqn.primitive}", wanted="True or False, or ad_checkpoint.Saveable, Recompute or Offloadable(src, dst)",
        where=here(), todo="return a bool: lambda primitive, *avals, **params: primitive.name == 'dot_general'")


class Saving(NamedTuple, Generic[P]):
    """A program in two parts, the second of which computes everything again. Each is a jaxpr, or several combined.

    `known` maps the known inputs to the known outputs and then the fresh saved values; `staged` maps the saved values
    and then all the inputs to all the outputs. `saved` says where each of them comes from: ("result", i) is the i-th
    output of the whole, ("fresh", i) the i-th fresh one.
    """

    known: P
    staged: P
    unknown_out: Flags
    saved: Sequence[Place]
    fresh_avals: Sequence[ShapedArray]


def split_saving(jaxpr: Jaxpr, unknown_in: Sequence[bool], policy: Policy) -> Saving[Jaxpr]:
    """Split by which inputs are unknown, such that what a policy doesn't save is computed again."""
    return _split_saving(jaxpr, tuple(unknown_in), policy, context.axes)


def _split(jaxpr: Jaxpr, unknown_in: Flags, policy: Policy, axes: AxisEnv) -> Saving[Jaxpr]:
    check_each("split_saving", "unknown_in", unknown_in, len(jaxpr.invars), "input")
    unknown: set[Atom] = {v for v, u in zip(jaxpr.invars, unknown_in, strict=True) if u}
    now: list[JaxprEqn] = []
    later: list[JaxprEqn] = []
    kept: dict[Var, None] = {}
    for eqn in jaxpr.eqns:
        known, staged, unknown_out, saved = _parts(eqn, tuple([x in unknown for x in eqn.invars]), policy)
        now += known
        later += staged
        unknown.update([v for v, u in zip(eqn.outvars, unknown_out, strict=True) if u])
        kept.update(dict.fromkeys(saved))
    unknown_out = tuple([x in unknown for x in jaxpr.outvars])
    outs = [x for x in jaxpr.outvars if x not in unknown]
    place: dict[Atom, Place] = {v: ("result", i) for i, v in reversed([*enumerate(jaxpr.outvars)]) if v in kept}
    fresh = [v for v in kept if v not in place]
    place.update({v: ("fresh", i) for i, v in enumerate(fresh)})
    known_in = [v for v, u in zip(jaxpr.invars, unknown_in, strict=True) if not u]
    return Saving(_program(jaxpr, known_in, [*outs, *fresh], now),
                  _program(jaxpr, [*kept, *jaxpr.invars], jaxpr.outvars, later),
                  unknown_out, [place[v] for v in kept], [v.aval for v in fresh])


def _program(whole: Jaxpr, invars: Sequence[Var], outvars: Sequence[Atom], eqns: Sequence[JaxprEqn]) -> Jaxpr:
    effects = no_effects.union(*[eqn.effects for eqn in eqns if eqn.effects])
    return whole.replace(invars=invars, outvars=outvars, eqns=eqns, effects=effects)


_Parts: TypeAlias = tuple[Sequence[JaxprEqn], Sequence[JaxprEqn], Sequence[bool], Sequence[Var]]


def _parts(eqn: JaxprEqn, unknown_in: Flags, policy: Policy) -> _Parts:
    """What is computed of an equation now and later, which results are unknown, and what is saved for later."""
    primitive, outs = eqn.primitive, eqn.outvars
    if unknown_in and False not in unknown_in:
        return (), [eqn], [True] * len(outs), ()
    found = None if primitive.recompute is None else primitive.recompute(eqn, unknown_in, policy)
    if found is not None:
        known, staged, unknown_out, saved = found
        return () if known is None else [known], [staged], unknown_out, saved
    if True not in unknown_in:
        how = True if eqn.effects else decision(policy, eqn)  # an effect happens once, so what comes of it is kept
        if isinstance(how, Offloadable):
            return _offloaded(eqn, how)
        return [eqn], () if how else [eqn], [False] * len(outs), outs if how else ()
    if primitive.partial_eval is None:
        return (), [eqn], [True] * len(outs), ()
    known, staged, unknown_out, residuals = primitive.partial_eval(eqn, unknown_in)
    if known is not None and getattr(known.primitive, "infer", None) is None:
        return _known_results(eqn, unknown_in, unknown_out, policy)
    saved = [*[v for v, u in zip(outs, unknown_out, strict=True) if not u], *residuals]
    now = () if known is None else [known]
    if eqn.effects or decision(policy, eqn):
        return now, () if staged is None else [staged], unknown_out, saved
    return now, [eqn], unknown_out, ()


def _known_results(eqn: JaxprEqn, unknown_in: Flags, unknown_out: Sequence[bool], policy: Policy) -> _Parts:
    """The parts of an equation whose known part stands for something that is only ever bound.

    What is known is computed by the equation itself, without its other results.
    """
    known = eqn if eqn.primitive.dce is None else eqn.primitive.dce(eqn, [not u for u in unknown_out])[1]
    waiting = {x for x, u in zip(eqn.invars, unknown_in, strict=True) if u}
    if not waiting.isdisjoint(known.invars):
        return (), [eqn], [True] * len(eqn.outvars), ()
    outs = [v for v, u in zip(eqn.outvars, unknown_out, strict=True) if not u]
    again = equation_without_effects(eqn) if eqn.effects else eqn
    if again.effects:
        raise CorejaxNotImplementedError(
            f"{eqn.primitive.name}: it is computed again as a whole, and its effects have results that are needed then",
            primitive=eqn.primitive.name, where=here(), got=f"the effects {sorted(map(str, again.effects))}",
            wanted="effects whose results aren't used", todo="take what has the effect out of it")
    return [known], [again], unknown_out, outs if decision(policy, eqn) else ()


def _offloaded(eqn: JaxprEqn, how: Offloadable) -> _Parts:
    """Results that are moved to other memory, and back."""
    there: list[JaxprEqn] = []
    back: list[JaxprEqn] = []
    kept: list[Any] = []
    for var in eqn.outvars:
        eqns, (moved,) = inline(stage_closed(lambda x: [roles.to_memory(x, how.dst)], [var.aval], ""), [var])
        there += eqns
        kept.append(moved)
        eqns, _ = inline(stage_closed(lambda x: [roles.to_memory(x, how.src)], [var.aval], ""), [moved])
        back += [*eqns[:-1], eqns[-1].replace(outvars=[var])]
    return [eqn, *there], back, [False] * len(eqn.outvars), kept


def split_again(jaxpr: Jaxpr, unknown_in: Sequence[bool], policy: Policy) -> Split[Jaxpr]:
    """The same as a `Split`, whose parts compute and take no more than is needed for the unknown outputs."""
    found = split_saving(jaxpr, unknown_in, policy)
    waiting = [i for i, u in enumerate(found.unknown_out) if u]
    staged, used = dce(select_outputs(found.staged, waiting), (True,) * len(waiting))
    n_saved = len(found.saved)
    places = [place for place, needed in zip(found.saved, used, strict=False) if needed]
    fresh = [i for where, i in places if where == "fresh"]
    n_outs = len(found.unknown_out) - len(waiting)
    wanted = [*range(n_outs), *[n_outs + i for i in fresh]]
    known, used_known = dce(select_outputs(found.known, wanted), (True,) * len(wanted))
    known_at = [i for i, u in enumerate(unknown_in) if not u]
    position = {i: k for k, i in enumerate(fresh)}
    again: list[Place] = [(where, position[i] if where == "fresh" else i) for where, i in places]
    return Split(known, staged, found.unknown_out,
                 tuple([i for i, needed in zip(known_at, used_known, strict=True) if needed]),
                 tuple([i for i, needed in enumerate(used[n_saved:]) if needed]), tuple(again),
                 tuple([found.fresh_avals[i] for i in fresh]))


def recompute(eqn: JaxprEqn, saving: Saving[Any], unknown_in: Sequence[bool],
              remake: Callable[[Any, list[Any], list[Var]], JaxprEqn], fresh_avals: Sequence[ShapedArray] | None = None
              ) -> tuple[JaxprEqn | None, JaxprEqn, Flags, list[Var]]:
    """The return value of a `recompute` hook: equations for both parts of a program.

    `fresh_avals` are the types of the equation's fresh saved values if they differ from the program's: scan stacks
    them.
    """
    fresh = [Var(aval) for aval in (saving.fresh_avals if fresh_avals is None else fresh_avals)]
    saved = [fresh[i] if where == "fresh" else eqn.outvars[i] for where, i in saving.saved]
    outs = [*[v for v, u in zip(eqn.outvars, saving.unknown_out, strict=True) if not u], *fresh]
    known = None
    if outs or eqn.effects:
        known = remake(saving.known, [x for x, u in zip(eqn.invars, unknown_in, strict=True) if not u], outs)
    given = {*saved}
    again = [Var(v.aval) if v in given else v for v in eqn.outvars]
    return known, remake(saving.staged, [*saved, *eqn.invars], again), saving.unknown_out, saved


_split_saving = WeakCache(_split)
