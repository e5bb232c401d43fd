"""Checkifying a program: going through its equations, with checks added, and carrying along what has failed first.

A `Walk` has that state: the number of the site whose check failed first, or 0, and places for what sites report. Which
checks an equation makes, and how it passes the state through the programs that it carries, is in a table of rules by
primitive. An equation without checks is evaluated as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from corejax import lax
from corejax.core import Jaxpr, JaxprEqn, Primitive, ShapedArray, eval_jaxpr, stage_closed, subjaxprs
from corejax.errors import CorejaxNotImplementedError
from corejax.plugin import carrying
from corejax_checkify._sites import Signature, Site, Sites, parted, signatures
from corejax_checkify.checking import CHECK, check_p
from corejax_checkify.failures import Errors

__all__: list[str] = []

_COUNT = ShapedArray((), np.dtype(np.int32))

Kinds = tuple[Signature, ...]


class Plan(NamedTuple):
    """What is checked: kinds of checks, all sites of the whole program, and axes of a mesh along which they vary."""

    errors: Errors
    sites: Sites
    axes: frozenset[Any] = frozenset()


@dataclass(frozen=True)
class Rule:
    """What becomes of an equation: which sites it has, and how it is evaluated in a walk."""

    sites: Callable[[JaxprEqn, Errors], Sites]
    run: Callable[[Walk, JaxprEqn, Sequence[Any]], Any]


#: The rules, by the distribution of the primitive and its name.
RULES: dict[tuple[str | None, str], Rule] = {}


def rule_of(primitive: Primitive) -> Rule | None:
    """The rule for a primitive, if it has one of its own."""
    return RULES.get((primitive.pack, primitive.name))


def sites_of(jaxpr: Jaxpr, errors: Errors) -> Sites:
    """The sites of a program, in its order."""
    return _sites(jaxpr, errors)


@carrying.remembered
def _sites(jaxpr: Jaxpr, errors: Errors) -> Sites:
    return tuple(dict.fromkeys([site for eqn in jaxpr.eqns for site in _of_equation(eqn, errors)]))


def _of_equation(eqn: JaxprEqn, errors: Errors) -> Sites:
    if eqn.primitive is check_p.primitive:
        return tuple([site for site in eqn.params["sites"] if site.kind in errors])
    rule = rule_of(eqn.primitive)
    if rule is not None:
        return rule.sites(eqn, errors)
    inside = [site for jaxpr in subjaxprs(eqn.params) for site in sites_of(jaxpr, errors)]
    if inside:
        raise unknown_carrier(eqn, inside)
    return DEFAULT[0].sites(eqn, errors)


#: The rule for primitives that have none of their own, and carry no checks.
DEFAULT: list[Rule] = []


def unknown_carrier(eqn: JaxprEqn, inside: Sequence[Site], why: str = "checkify doesn't know how it runs it"
                    ) -> CorejaxNotImplementedError:
    """The error for a primitive that carries a program with checks."""
    user = [site for jaxpr in subjaxprs(eqn.params) for site in _written(jaxpr)]
    return CorejaxNotImplementedError(
        f"checkify: {eqn.primitive.name} carries a program with checks, and {why}", primitive=eqn.primitive.name,
        pack=eqn.primitive.pack, got=f"a check of {inside[0].text!r}, {inside[0].where or 'at an unknown place'}",
        wanted="checks outside of it",
        todo="take the check out of the function that it is given, or check what it returns" if user else
             "choose fewer kinds of checks, as errors=checkify.user_checks; or checkify the function that it is given")


def _written(jaxpr: Jaxpr) -> list[Site]:
    """The checks that the user has written into a program."""
    found: list[Site] = []
    for eqn in jaxpr.eqns:
        if eqn.primitive is check_p.primitive:
            found += eqn.params["sites"]
        for inner in subjaxprs(eqn.params):
            found += _written(inner)
    return found


class Walk:
    """A way through a program, with what has failed first until now."""

    def __init__(self, plan: Plan, code: Any, values: dict[Signature, list[Any]]) -> None:
        self.plan, self.code, self.values = plan, code, values
        self.numbers = {site: i + 1 for i, site in enumerate(plan.sites)}

    @classmethod
    def start(cls, plan: Plan) -> Walk:
        """Nothing has failed."""
        return cls(plan, np.int32(0), {
            kind: [lax.full(aval.shape, 0, aval.dtype) for aval in kind] for kind in signatures(plan.sites)})

    def run(self, jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
        """The results of a program, with its checks."""
        eqns = []
        for eqn in jaxpr.eqns:
            if CHECK in eqn.effects or _of_equation(eqn, self.plan.errors):
                eqn = eqn.replace(primitive=_Step(self, eqn), params={})
            eqns.append(eqn)
        return eval_jaxpr(jaxpr.replace(eqns=eqns), (), *args)

    def flat(self, kinds: Kinds) -> list[Any]:
        """The state, as values: of the places, those of these types."""
        return [self.code, *[x for kind in kinds for x in self.values[kind]]]

    def take(self, kinds: Kinds, outs: Sequence[Any]) -> list[Any]:
        """Go on with the state among the first of these values. Returns the others."""
        n = 1 + sum(map(len, kinds))
        self.code = outs[0]
        self.values.update(parted(outs[1:n], kinds))
        return list(outs[n:])

    def fail(self, site: Site, failed: Any, values: Sequence[Any] = ()) -> None:
        """A check: it has `failed`, or not, and reports `values` if it is the first."""
        self._note(failed, np.int32(self.numbers[site]), {site.reported: values} if site.reported else {})

    def fail_at(self, sites: Sites, code: Any, values: Sequence[Any]) -> None:
        """Checks of sites that have numbers of their own."""
        if len(sites) == 1:
            return self.fail(sites[0], lax.ne(code, np.int32(0)), values)
        numbers = [0, *[self.numbers.get(site, 0) if site.kind in self.plan.errors else 0 for site in sites]]
        given = parted(values, signatures(sites))
        wanted = {site.reported for site in sites if site.kind in self.plan.errors}
        number = lax.dynamic_index_in_dim(np.array(numbers, np.int32), code, 0, keepdims=False)
        self._note(lax.ne(number, np.int32(0)), number, {kind: given[kind] for kind in given if kind in wanted})

    def _note(self, failed: Any, number: Any, values: dict[Signature, Sequence[Any]]) -> None:
        first = lax.bitwise_and(lax.eq(self.code, np.int32(0)), failed)
        self.code = lax.select_n(first, self.code, lax.convert_element_type(number, np.int32))
        for kind, found in values.items():
            self.values[kind] = [lax.select(lax.broadcast(first, aval.shape), lax.stop_gradient(new), old)
                                 for aval, new, old in zip(kind, found, self.values[kind], strict=True)]


class _Step:
    """Stands for a primitive in an equation that a walk evaluates by a rule."""

    def __init__(self, walk: Walk, eqn: JaxprEqn) -> None:
        self.walk, self.eqn = walk, eqn
        self.name, self.multiple_results = eqn.primitive.name, eqn.primitive.multiple_results

    def bind(self, *args: Any) -> Any:
        eqn = self.eqn
        if eqn.primitive is check_p.primitive:
            sites = eqn.params["sites"]
            if any([site.kind in self.walk.plan.errors for site in sites]):
                self.walk.fail_at(sites, args[0], args[1:])
            return []
        rule = rule_of(eqn.primitive)
        if rule is None and any([CHECK in jaxpr.effects for jaxpr in subjaxprs(eqn.params)]):
            raise unknown_carrier(eqn, [site for jaxpr in subjaxprs(eqn.params) for site in _written(jaxpr)])
        return (rule or DEFAULT[0]).run(self.walk, eqn, args)


def kinds_of(plan: Plan, *programs: Jaxpr) -> Kinds:
    """What the sites in these programs report."""
    return signatures([site for jaxpr in programs for site in sites_of(jaxpr, plan.errors)])


def state_avals(plan: Plan, kinds: Kinds) -> list[ShapedArray]:
    """The types of a state."""
    return [carrying.along(aval, plan.axes) for aval in (_COUNT, *[x for kind in kinds for x in kind])]


@carrying.remembered
def checked(jaxpr: Jaxpr, plan: Plan, kinds: Kinds) -> Jaxpr:
    """The program of a state, with places of these types, and of its operands; its results follow the new state."""
    def fun(*xs: Any) -> list[Any]:
        walk, args = entered(plan, kinds, xs)
        outs = walk.run(jaxpr, args)
        return [*walk.flat(kinds), *outs]
    return stage_closed(fun, [*state_avals(plan, kinds), *jaxpr.in_avals], jaxpr.name)


def entered(plan: Plan, kinds: Kinds, xs: Sequence[Any]) -> tuple[Walk, list[Any]]:
    """A walk with the state among the first of these values, and the other values."""
    walk = Walk(plan, None, {})
    return walk, walk.take(kinds, xs)


def without_checks(jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
    """The results of a program, without its checks."""
    return Walk.start(Plan(frozenset(), ())).run(jaxpr, args)


def unchecked(jaxpr: Jaxpr) -> Jaxpr:
    """The program without its checks."""
    return _unchecked(jaxpr) if CHECK in jaxpr.effects else jaxpr


@carrying.remembered
def _unchecked(jaxpr: Jaxpr) -> Jaxpr:
    return stage_closed(lambda *xs: without_checks(jaxpr, xs), jaxpr.in_avals, jaxpr.name)
