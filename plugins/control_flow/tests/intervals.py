"""Intervals as a transformation of a pack."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from corejax import lax
from corejax.core import Primitive
from corejax.plugin import transforming


class Interval(NamedTuple):
    """All numbers from `low` to `high`."""

    low: Any
    high: Any


def interval(args: Sequence[Any]) -> Any:
    """`interval(args, *, ...)`: an Interval that holds the result for all operands in these."""


class Intervals(transforming.Lifting):
    """Interval arithmetic without directed rounding, by a table of rules."""

    boxes = Interval

    def raised(self, x: Any, form: Any) -> Any:
        return Interval(x, x)


def _product(x: Interval, y: Interval) -> Interval:
    ends = [lax.mul(a, b) for a in x for b in y]
    low, high = ends[0], ends[0]
    for end in ends[1:]:
        low, high = lax.min(low, end), lax.max(high, end)
    return Interval(low, high)


#: Rules for intervals only.
_TABLE: dict[str, Callable[..., Interval]] = {
    "add": lambda x, y: Interval(lax.add(x.low, y.low), lax.add(x.high, y.high)),
    "sub": lambda x, y: Interval(lax.sub(x.low, y.high), lax.sub(x.high, y.low)),
    "neg": lambda x: Interval(lax.neg(x.high), lax.neg(x.low)),
    "mul": _product,
    "max": lambda x, y: Interval(lax.max(x.low, y.low), lax.max(x.high, y.high)),
    # of small intervals around 0, where it grows
    "sin": lambda x: Interval(lax.sin(x.low), lax.sin(x.high)),
}

#: What moves elements, or chooses among them by something plain, is applied to both ends.
_OF_BOTH_ENDS = ("broadcast_in_dim", "reshape", "squeeze", "slice", "dynamic_slice", "convert_element_type", "select_n",
                 "concatenate", "transpose")


def _by_table(lifting: transforming.Lifting, primitive: Primitive) -> Any:
    if primitive.name in _OF_BOTH_ENDS:
        def each(args: Sequence[Any], /, **params: Any) -> Any:
            return Interval(*[primitive.bind(*[x[i] if isinstance(x, Interval) else x for x in args], **params)
                              for i in range(2)])
        return each
    rule = _TABLE.get(primitive.name)
    return None if rule is None else lambda args, /, **params: rule(
        *[x if isinstance(x, Interval) else Interval(x, x) for x in args])


INTERVALS = Intervals(interval, ways={"by programs": transforming.from_programs, "by a table": _by_table})


class Joint(Intervals):
    """Intervals of which slices aren't slices of intervals, or so it says."""

    pointwise = False


JOINT = Joint(interval, ways={"by programs": transforming.from_programs, "by a table": _by_table})
