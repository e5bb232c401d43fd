"""What moves elements around, adds them up, chooses among them, or carries programs."""

from functools import partial

import numpy as np

from corejax import lax
from corejax.core import aval_of
from corejax.plugin import carrying, find
from outside_intervals._evaluation import evaluate, rule
from outside_intervals._values import Interval, as_interval, hull, is_interval

__all__ = []


def _alike(primitive, *operands, **params):
    """The rule of what never falls in any operand, and is exact: it acts on lower and on upper ends."""
    ends = [[getattr(as_interval(x), end) for x in operands] for end in ("lower", "upper")]
    return Interval(*[primitive.bind(*operands, **params) for operands in ends])


for _name in ("broadcast_in_dim", "concatenate", "convert_element_type", "copy", "pad", "reduce_max", "reduce_min",
              "reshape", "rev", "slice", "squeeze", "stop_gradient", "transpose"):
    rule(find(_name), partial(_alike, find(_name)))


@rule(lax.reduce_sum)
def _reduce_sum(x, *, axes):
    found = _alike(find("reduce_sum"), x, axes=axes)
    size = np.prod([x.lower.shape[axis] for axis in axes], dtype=int)
    slack = 2 * size * np.finfo(aval_of(x.lower).dtype).eps * lax.max(abs(x.lower), abs(x.upper)).sum(axes)
    return Interval(found.lower - slack, found.upper + slack)


def _chosen(which, cases):
    """The hull of the cases that an index may choose."""
    which, cases = as_interval(which), [as_interval(case) for case in cases]
    lower, upper = [lax.convert_element_type(end, np.dtype(np.int32)) for end in (which.lower, which.upper)]
    possible = [(lower <= i) & (upper >= i) for i in range(len(cases))]
    return hull([Interval(lax.select(p, case.lower, np.inf), lax.select(p, case.upper, -np.inf))
                 for p, case in zip(possible, cases, strict=True)])


@rule(find("select_n"))
def _select_n(which, *cases):
    return _chosen(which, cases)


@rule(find("xla_call"))
def _call(*operands, jaxpr, **params):
    return evaluate(jaxpr, operands)


@rule(find("checkpoint_call"))
def _checkpoint(*operands, jaxpr, **params):
    return evaluate(jaxpr, operands)


@rule(find("cond"))
def _cond(index, *operands, branches, **params):
    if not is_interval(index):
        return lax.switch(index, [lambda *xs, branch=branch: [as_interval(x) for x in evaluate(branch, xs)]
                                  for branch in branches], *operands)
    return [_chosen(index, cases) for cases in zip(*[evaluate(branch, operands) for branch in branches], strict=True)]


@rule(find("scan"))
def _scan(*operands, jaxpr, num_consts, num_carry, **params):
    groups = num_consts, num_consts + num_carry
    consts, carry, slices = operands[:groups[0]], operands[groups[0]:groups[1]], operands[groups[1]:]

    def scanned(flags):
        found = []

        def step(carry, slices):
            outs = evaluate(jaxpr, [*consts, *carry, *slices])
            found[:] = map(is_interval, outs[:num_carry])
            next_carry = [as_interval(x) if flag else getattr(x, "lower", x) for x, flag in zip(outs, flags)]
            return next_carry, outs[num_carry:]

        start = [as_interval(x) if flag else x for x, flag in zip(carry, flags, strict=True)]
        return lax.scan(step, start, list(slices), **params), list(found)

    return [*sum(carrying.fixed_point([is_interval(x) for x in carry], scanned)[1], [])]
