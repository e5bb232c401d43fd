"""A scan in the step of a scan that takes slices of its inputs, or makes those of its outputs, as they are.

Such a step is lowered in three parts, so that the inner loop can read and write the outer one's arrays. Else the slice
of a step would be copied out of an input before the inner loop begins, and into an output once it has ended. This is
done for loops over numbers, which gain up to a third of their time. For steps over arrays, copying costs little, and an
index more costs as much: their derivatives took up to 1.4 times as long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from corejax.core import Atom, Jaxpr, JaxprEqn, Var
from corejax.plugin import Primitive, carrying


class Nested(NamedTuple):
    """A step in three parts: what comes before the scan in it, that, and what comes after it.

    The first part takes the operands of the step but for the inputs that the scan reads in place. It returns those of
    the scan, but for these, and then what the last part needs. That takes the operands once more, this, and the results
    of the scan but for outputs that it writes in place; it returns the results of the step, but for these.
    """

    before: Jaxpr
    inner: JaxprEqn
    after: Jaxpr
    inputs: dict[int, int]
    """The inputs that are read in place: the number of each among those of the step, and among those of the scan."""
    outputs: dict[int, int]


@carrying.remembered
def nested_scan(jaxpr: Jaxpr, primitive: Primitive, num_consts: int, num_carry: int) -> Nested | None:
    """The step of a scan, if there is another one in it that can read or write in place."""
    uses = Counter([*[x for eqn in jaxpr.eqns for x in eqn.invars if type(x) is Var],
                    *[x for x in jaxpr.outvars if type(x) is Var]])
    slices, ys = jaxpr.invars[num_consts + num_carry:], jaxpr.outvars[num_carry:]
    for k, eqn in enumerate(jaxpr.eqns):
        if eqn.primitive is not primitive or not eqn.params["length"] or not _is_over_numbers(eqn):
            continue
        first, n_carry = eqn.params["num_consts"] + eqn.params["num_carry"], eqn.params["num_carry"]
        inputs, outputs = _same(slices, eqn.invars[first:], uses), _same(ys, eqn.outvars[n_carry:], uses)
        if inputs or outputs:
            return _divided(jaxpr, num_consts + num_carry, num_carry, k, inputs, outputs)
    return None


def _is_over_numbers(scan: JaxprEqn) -> bool:
    step: Jaxpr = scan.params["jaxpr"]
    return not any([x.aval.ndim for x in (*step.invars[scan.params["num_consts"]:], *step.outvars)])


def _same(outer: Sequence[Atom], inner: Sequence[Atom], uses: Counter[Any]) -> dict[int, int]:
    """Which of these variables are which of those, and are used for nothing else."""
    places = {x: j for j, x in enumerate(inner) if type(x) is Var}
    return {i: places[x] for i, x in enumerate(outer) if type(x) is Var and x in places and uses[x] == 1}


def _divided(jaxpr: Jaxpr, first_input: int, num_carry: int, k: int, inputs: dict[int, int], outputs: dict[int, int]
             ) -> Nested:
    inner, later = jaxpr.eqns[k], jaxpr.eqns[k + 1:]
    first, n_carry = inner.params["num_consts"] + inner.params["num_carry"], inner.params["num_carry"]
    invars = [v for i, v in enumerate(jaxpr.invars) if i - first_input not in inputs]
    given = [x for i, x in enumerate(inner.invars) if i - first not in {*inputs.values()}]
    outvars = [x for i, x in enumerate(jaxpr.outvars) if i - num_carry not in outputs]
    needed = {x for x in (*[x for eqn in later for x in eqn.invars], *outvars) if type(x) is Var}
    kept = [v for eqn in jaxpr.eqns[:k] for v in eqn.outvars if v in needed]
    found = [v for i, v in enumerate(inner.outvars) if i - n_carry not in {*outputs.values()}]
    return Nested(_part(jaxpr, invars, jaxpr.eqns[:k], [*given, *kept]), inner,
                  _part(jaxpr, [*invars, *kept, *found], later, outvars), inputs, outputs)


def _part(jaxpr: Jaxpr, invars: Sequence[Var], eqns: Sequence[JaxprEqn], outvars: Sequence[Atom]) -> Jaxpr:
    effects = frozenset[Any]().union(*[eqn.effects for eqn in eqns])
    return jaxpr.replace(invars=invars, eqns=eqns, outvars=outvars, effects=effects)
