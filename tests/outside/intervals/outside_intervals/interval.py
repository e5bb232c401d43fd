"""Bounds of what a function returns, from bounds of its arguments.

>>> import corejax as cj
>>> cj.interval.bounds(lambda x: x * x)(cj.interval.Interval(-1.0, 2.0)).lower <= -2.0
True
"""

from corejax import tree
from corejax.plugin import calls_users, carrying, public
from outside_intervals import _rules, _structure  # noqa: F401  (they fill the table)
from outside_intervals._evaluation import evaluate, rule
from outside_intervals._values import Interval, is_interval

__all__ = ["Interval", "bounds", "rule"]


@public
@calls_users
def bounds(function):
    """A function like `function` of pytrees that may have intervals for leaves, and that returns intervals there.

    It can be transformed itself: compiled, mapped, differentiated.
    """
    def bounded(*args):
        leaves = tree.leaves(args, is_leaf=is_interval)
        points = tree.map(lambda x: x.lower if is_interval(x) else x, args, is_leaf=is_interval)
        call = carrying.stage_call(function, points, "bounds")
        consts = call.operands[:len(call.operands) - len(leaves)]
        return call.unflatten(evaluate(call.jaxpr, [*consts, *leaves]))
    return bounded
