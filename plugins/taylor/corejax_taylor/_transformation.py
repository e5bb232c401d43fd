"""The transformation: a hook `jet` for every primitive, and how a missing rule is derived.

Rules make nodes: see `_nodes`. A rule that a pack writes gets and returns whole series, so it is made one that does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from corejax.core import Primitive, ShapedArray, as_value, aval_of, dtypes, instantiate
from corejax.plugin import NotDifferentiable, Zero, transforming
from corejax_taylor import _derived as derived
from corejax_taylor._coefficients import settled
from corejax_taylor._declarations import Composition, OnNodes, Recurrence
from corejax_taylor._interpreter import jet_flat
from corejax_taylor._law import series_are_nested_derivatives
from corejax_taylor._local import LocalTrace, Rule
from corejax_taylor._nodes import Constant, Given, Node, Params

__all__: list[str] = []


def jet(primals: Sequence[Any], series: Sequence[Sequence[Any]]) -> Any:
    """`jet(primals, series, *, ...)`: the pair (results, coefficients of the results).

    `series` has the coefficients of t, t^2, ... of each operand, equally many: arrays of the primal's type, or `Zero`s.
    They are normalised: the k-th derivative over k!. A primitive with one result returns it, and a list; one with
    several returns lists of these. The law: the coefficients are those that nested jvps give. Declarations in its
    place: `recurrence`, `composition`. Without it: derived from `linear`, `factors`, `partials`, `carry` or `jvp`.
    """


class Box(NamedTuple):
    """A value with its coefficients, as operands of programs."""

    primal: Any
    coefficients: tuple[Any, ...]


class Jets(transforming.Lifting):
    """Under which a value becomes a series; in programs, its coefficients that aren't `Zero`s are operands."""

    boxes = Box

    def form(self, x: Any) -> transforming.Form:
        return tuple([type(c) is not Zero for c in x.coefficients]) if type(x) is Box else None

    def parts(self, box: Box) -> Sequence[Any]:
        return [box.primal, *[c for c in box.coefficients if type(c) is not Zero]]

    def box(self, form: Any, parts: Sequence[Any]) -> Box:
        primal, *rest = parts
        given = iter(rest)
        zero = Zero(aval_of(primal).tangent)
        return Box(primal, tuple([next(given) if there else zero for there in form]))

    def avals(self, aval: ShapedArray, form: Any) -> Sequence[ShapedArray]:
        return [aval, *[aval.tangent] * sum(form)]

    def aval(self, box: Box) -> ShapedArray:
        return aval_of(box.primal)

    def raised(self, x: Any, form: Any) -> Box:
        box = x if type(x) is Box else Box(x, (Zero(aval_of(x).tangent),) * len(form))
        return Box(box.primal, tuple([instantiate(c) if there else c
                                      for c, there in zip(box.coefficients, form, strict=True)]))

    def join(self, one: Any, other: Any) -> transforming.Form:
        return tuple([a or b for a, b in zip(one, other, strict=True)])

    def run(self, fun: Callable[..., Sequence[Any]], args: Sequence[Any]) -> list[Any]:
        order = max([len(x.coefficients) for x in args if type(x) is Box], default=0)
        primals = [x.primal if type(x) is Box else as_value(x) for x in args]
        series = [[c if type(c) is Zero else as_value(c) for c in x.coefficients] if type(x) is Box else
                  [Zero(y.aval.tangent)] * order for x, y in zip(args, primals, strict=True)]
        outs, found = jet_flat(self, fun, order, primals, series)
        return [y if all([type(c) is Zero for c in of_one]) else Box(y, tuple(of_one))
                for y, of_one in zip(outs, found, strict=True)]

    def written(self, primitive: Primitive, rule: Any) -> Any:
        return whole(primitive, rule)


def whole(primitive: Primitive, rule: Any) -> Rule:
    """The rule that makes nodes of one that takes and returns whole series."""
    def on_nodes(local: LocalTrace, primitive: Primitive, operands: Sequence[Node], params: Params) -> Any:
        orders = range(1, local.order + 1)
        try:
            series = [[x.coefficient(k) for k in orders] for x in operands]
            result = rule([x.primal for x in operands], series, **params)
        except Exception as error:
            raise transforming.blamed(JET, primitive, error)  # noqa: B904
        if result is None:  # then the next one is asked
            return None
        avals = primitive.infer(tuple([x.aval for x in operands]), params)
        several = primitive.multiple_results
        outs, series = transforming.checked_sequence(JET, primitive, result, 2, "parts of (results, coefficients)")
        avals = avals if several else (avals,)
        outs = transforming.checked_values(JET, primitive, outs if several else [outs], avals)
        series = transforming.checked_sequence(JET, primitive, series if several else [series], len(avals),
                                               "lists of coefficients")
        nodes = [_given(primitive, x, terms, aval, local.order)
                 for x, terms, aval in zip(outs, series, avals, strict=True)]
        return nodes if several else nodes[0]
    return on_nodes


def _given(primitive: Primitive, x: Any, terms: Any, aval: ShapedArray, order: int) -> Node:
    terms = transforming.checked_sequence(JET, primitive, terms, order, "coefficients")
    if not dtypes.is_inexact(aval.dtype):
        return Constant(x)
    found = [settled(c, aval.tangent) if type(c) is Zero else
             transforming.checked_values(JET, primitive, [c], [aval.tangent])[0] for c in terms]
    return Given(aval, [x, *found])


# How rules are derived

def _sums(_: Any, primitive: Primitive) -> Rule | None:
    factors = primitive.factors
    return derived.sums if factors is not None and all([type(factor) is int for factor in factors]) else None


def _products(_: Any, primitive: Primitive) -> Rule | None:
    several = primitive.multiple_results
    return derived.product(primitive.linear_in) if primitive.linear_in and not several else None


def _linear(_: Any, primitive: Primitive) -> Rule | None:
    return derived.linear(primitive.linear) if primitive.linear is not None else None


def _programs(jets: Any, primitive: Primitive) -> Rule | None:
    return derived.carried(jets, Box) if primitive.carry is not None else None


def _compositions(_: Any, primitive: Primitive) -> Rule | None:
    own_jvp = primitive.providers.get("jvp", "derived") != "derived"
    return derived.decomposed if primitive.decompose is not None and not own_jvp else None


def _derivatives(_: Any, primitive: Primitive) -> Rule | transforming.Absent:
    declared = getattr(primitive.plugin, "jvp", None)
    if isinstance(declared, NotDifferentiable) and primitive.providers.get("jvp") == primitive.origin:
        return transforming.absent(declared.reason)
    return derived.by_jvp


JET = Jets(jet, declarations=[OnNodes, Recurrence, Composition], situation="derivative", ways={
    "coefficient by coefficient, as it is a sum": _sums,
    "as products of coefficients": _products,
    "coefficient by coefficient, as it is linear": _linear,
    "through its programs, by carry": _programs,
    "from decompose": _compositions,
    "from jvp": _derivatives}, laws={"series are nested derivatives": series_are_nested_derivatives})
