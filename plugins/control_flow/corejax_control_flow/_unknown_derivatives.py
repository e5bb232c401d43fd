"""What stands for derivatives that no rule gives: those by values that a function closes over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.core import ShapedArray, here
from corejax.errors import CorejaxError, CorejaxTypeError


class NoRule:
    """What stands on a tape for the derivatives by values that a function closes over: nothing is known of them.

    It is its own call, too.
    """

    n_residuals = n_consts = 0
    has_jvp = has_vjp = optimize_remat = __corejax_unique__ = False

    def __init__(self, name: str, variables: Sequence[str], in_avals: Sequence[ShapedArray],
                 out_avals: Sequence[ShapedArray]) -> None:
        self.call, self.name, self.variables = self, name, tuple(variables)
        self.in_avals, self.out_avals = in_avals, tuple(out_avals)
        self._where = here()

    def __corejax_key__(self) -> Any:
        return self.name, self.variables, *self.in_avals, *self.out_avals

    def __corejax_rule__(self, hook: str) -> str:
        return f"the {hook} rule of {self.name}"

    def bwd(self, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        raise self.unknown()

    def backward_only(self) -> CorejaxError:
        """The error for computing it forward."""
        return self.unknown()

    def unknown(self) -> CorejaxTypeError:
        """The error where its tangents or cotangents would have to be known."""
        types = ", ".join(map(str, self.in_avals))
        which = f"{', '.join(self.variables)} ({types})" if self.variables else f"a closed-over {types}"
        return CorejaxTypeError(
            f"{self.name} is differentiated with respect to a value that it closes over", where=self._where,
            got=f"{which}, which depends on what is differentiated", primitive="custom_call",
            wanted="arguments only: its rules say nothing about other values",
            todo=f"make the value an argument of {self.name}, and of its rules; or stop_gradient it")
