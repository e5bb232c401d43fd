"""Calls with custom derivatives that leave out results, and their pullbacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.errors import CorejaxError
from corejax.plugin import carrying


class SelectedCall:
    """A call that leaves out results that aren't needed."""

    optimize_remat = False

    def __init__(self, call: Any, used: Sequence[bool]) -> None:
        self.call, self.used = call, tuple(used)
        self.name, self.n_consts = call.name, call.n_consts
        self.has_jvp, self.has_vjp = call.has_jvp, call.has_vjp

    def __corejax_key__(self) -> Any:
        return self.call.__corejax_key__(), self.used

    @property
    def __corejax_unique__(self) -> bool:
        return self.call.__corejax_unique__  # type: ignore[no-any-return]

    def __corejax_rule__(self, hook: str) -> str:
        return self.call.__corejax_rule__(hook)  # type: ignore[no-any-return]

    def names_of(self, flags: Sequence[bool]) -> list[str]:
        """The names of closed-over values, as far as they are known."""
        return self.call.names_of(flags)  # type: ignore[no-any-return]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        outs, dots = self.call.jvp(primals, tangents)
        return self._of(outs), self._of(dots)

    def fwd(self, primals: Sequence[Any], nonzero: Sequence[bool]) -> tuple[list[Any], list[Any], SelectedPullback]:
        outs, residuals, pullback = self.call.fwd(primals, nonzero)
        return self._of(outs), residuals, SelectedPullback(self, pullback)

    def _of(self, xs: Sequence[Any]) -> list[Any]:
        return carrying.marked(xs, self.used)


class SelectedPullback:
    """The pullback of a call that leaves out some results: their cotangents are zero."""

    def __init__(self, call: SelectedCall, pullback: Any) -> None:
        self.call, self.pullback = call, pullback
        self.name, self.n_residuals, self.in_avals = pullback.name, pullback.n_residuals, pullback.in_avals
        self.out_avals = tuple(call._of(pullback.out_avals))

    def __corejax_key__(self) -> Any:
        return self.pullback.__corejax_key__(), self.call.used

    @property
    def __corejax_unique__(self) -> bool:
        return self.pullback.__corejax_unique__  # type: ignore[no-any-return]

    def __corejax_rule__(self, hook: str) -> str:
        return self.pullback.__corejax_rule__(hook)  # type: ignore[no-any-return]

    def bwd(self, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        cts = carrying.with_zeros(cotangents, self.call.used, [aval.tangent for aval in self.pullback.out_avals])
        return self.pullback.bwd(residuals, cts)  # type: ignore[no-any-return]

    def backward_only(self) -> CorejaxError:
        """The error for computing it forward."""
        return self.pullback.backward_only()  # type: ignore[no-any-return]
