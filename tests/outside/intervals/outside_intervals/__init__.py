"""Interval arithmetic for corejax, as cj.interval."""

from outside_intervals.interval import Interval, bounds, rule

__all__ = ["Interval", "bounds", "rule"]
