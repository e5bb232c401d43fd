"""Intervals, as pytrees, and outward rounding."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import aval_of
from corejax.tree import register_dataclass

__all__ = ["Interval", "as_interval", "hull", "is_interval", "outward"]


@register_dataclass
@dataclass(frozen=True)
class Interval:
    """All numbers from `lower` to `upper`, elementwise."""

    lower: Any
    upper: Any

    @property
    def middle(self):
        return 0.5 * self.lower + 0.5 * self.upper

    @property
    def radius(self):
        return 0.5 * (self.upper - self.lower)


def is_interval(x):
    return isinstance(x, Interval)


def as_interval(x):
    """An interval, or a value as the interval that has no other."""
    return x if is_interval(x) else Interval(x, x)


def hull(intervals):
    """The smallest interval that contains them all."""
    first, *others = intervals
    lower, upper = first.lower, first.upper
    for other in others:
        lower, upper = lax.min(lower, other.lower), lax.max(upper, other.upper)
    return Interval(lower, upper)


def outward(lower, upper, ulps=2):
    """What contains the exact result, if these are off by so many units in the last place."""
    dtype = aval_of(lower).dtype
    if dtype.kind != "f":
        return Interval(lower, upper)
    slack, least = dtype.type(ulps * np.finfo(dtype).eps), np.finfo(dtype).tiny
    return Interval(lower - (slack * abs(lower) + least), upper + (slack * abs(upper) + least))
