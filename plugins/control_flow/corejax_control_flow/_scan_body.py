"""The program of one step of a scan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from corejax.core import Jaxpr


class Body(NamedTuple):
    """The program of one step. Its operands are constants, then the carry, then slices of inputs."""

    jaxpr: Jaxpr
    num_consts: int
    num_carry: int

    @property
    def first_input(self) -> int:
        """The first operand of which each step gets a slice."""
        return self.num_consts + self.num_carry

    def operands(self, items: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """The items for constants, carry and inputs."""
        split = self.first_input
        return [*items[: self.num_consts]], [*items[self.num_consts:split]], [*items[split:]]

    def results(self, items: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The items for the carry and for outputs."""
        return [*items[: self.num_carry]], [*items[self.num_carry:]]

    def passes_on(self, i: int) -> bool:
        """Whether this operand, no constant, is part of the carry and the same in each step."""
        return i < self.first_input and self.jaxpr.outvars[i - self.num_consts] is self.jaxpr.invars[i]
