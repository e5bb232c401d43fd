"""What the kernel needs from collectives. Each name here is that of a role."""

from __future__ import annotations

from typing import Any

from corejax_collectives import constraining
from corejax_collectives._axes import Names
from corejax_collectives.varying import pcast, psum_invariant

__all__ = ["constrain", "sum_varying", "vary"]

#: The same value, divided among devices as a sharding says.
constrain = constraining.constrain


def sum_varying(x: Any, axes: Names) -> Any:
    """The sum over these tracked axes, along which it doesn't vary any more."""
    return psum_invariant.primitive.bind(x, axes=axes)


def vary(x: Any, axes: Names) -> Any:
    """The same value, of a type that varies along these tracked axes."""
    return pcast.primitive.bind(x, axes=axes, to="varying")
