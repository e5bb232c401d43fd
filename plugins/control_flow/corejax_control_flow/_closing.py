"""Calls of functions that close over traced values, which are operands of the call."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Self

from corejax.core import Tracer, call_user, rebound
from corejax.errors import CorejaxTypeError, LeakedTracerError
from corejax.ir import atom
from corejax_control_flow._closures import HashedOnce, reached


class Closing:
    """A call of users' functions, whose first `n_consts` operands are values that these close over.

    `originals` are the traced values that these operands stand for, None where there was none, each with the name of
    its variable. While one of the functions runs, the operands take their place.
    """

    name: str
    n_consts = 0
    originals: tuple[tuple[weakref.ref[Tracer] | None, str], ...] = ()
    is_unlike = False
    """Whether the call can't be compared with others: it reads too much."""

    def __init__(self) -> None:
        self.key: Any = object()

    def __corejax_key__(self) -> Any:
        return self.key

    @property
    def __corejax_unique__(self) -> bool:
        return self.is_unlike or True in self.is_traced_at

    def __corejax_rule__(self, hook: str) -> str:
        return f"the {hook} rule of {self.name}"

    def __getstate__(self) -> dict[str, Any]:
        originals = tuple([(None, name) for _, name in self.originals])  # nothing of them is left elsewhere
        return {**self.__dict__, "originals": originals, "key": object()}

    def twin(self) -> Self:
        """A copy."""
        call = object.__new__(type(self))
        call.__dict__.update(self.__dict__)
        return call

    def closing_over(self, values: Sequence[Any], names: Sequence[str] | None = None) -> Self:
        """The same call with more operands before the others, for these closed-over values."""
        call = self.twin()
        refs = [weakref.ref(x) if isinstance(x, Tracer) else None for x in values]
        call.originals = (*zip(refs, names or [""] * len(refs), strict=True), *self.originals)
        call.n_consts += len(refs)
        return call

    def without(self, places: Collection[int]) -> Self:
        """The same call without the operands at these places, which stood for nothing that it uses."""
        call = self.twin()
        call.originals = tuple([each for i, each in enumerate(self.originals) if i not in places])
        call.n_consts -= len(places)
        return call

    def names_of(self, flags: Sequence[bool]) -> list[str]:
        """The names of closed-over values, as far as they are known."""
        return sorted({name for (_, name), flag in zip(self.originals, flags, strict=True) if flag and name})

    @property
    def is_traced_at(self) -> list[bool]:
        """Which of the closed-over operands stand for traced values."""
        return [ref is not None for ref, _ in self.originals]

    def run(self, consts: Sequence[Any], fun: Any, args: Sequence[Any], what: str) -> Any:
        """Call one of the user's functions, with these values for what it closes over."""
        if not self.originals:
            return _call(fun, args, what)
        tracers = [None if ref is None else ref() for ref, _ in self.originals]
        return rebound(lambda: _call(fun, args, what), tracers, consts)


def _call(fun: Any, args: Sequence[Any], what: str) -> Any:
    """Call a user's function; if it uses a traced value that is no longer one, the error says how it got there."""
    try:
        return call_user(fun, args, what)
    except LeakedTracerError as error:
        gone = [name for x, name in reached(fun).tracers if not x._trace.live]
        if not gone:
            raise
        raise LeakedTracerError(
            f"{what} closes over a value of a transformation that has ended", got=error.got, where=error.where,
            wanted="values that it is given", todo="make it an argument of the function: rules then get it as a "
                                                   "primal, or may keep it as a residual") from error


def key_of(known: tuple[Any, ...], values: Iterable[Any]) -> Any:
    """A key made from these parts and from users' values; a unique one if those can't be compared."""
    try:
        return HashedOnce((*known, *[atom(x) for x in values]))
    except CorejaxTypeError:
        return object()
