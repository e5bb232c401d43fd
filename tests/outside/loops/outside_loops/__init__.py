"""Loops with derivatives for corejax."""

from outside_loops.bounded import bounded_while
from outside_loops.roots import newton

__all__ = ["bounded_while", "newton"]
