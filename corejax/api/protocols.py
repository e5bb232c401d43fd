"""The types of functions that transformations return, for type checkers: nothing here runs.

A transformed function keeps the signature of the one it was made from. Its results are typed where they have the
types of that function's results; a gradient has the structure of an argument, and is `Any`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, overload

if TYPE_CHECKING:
    from corejax.api.stages import Lowered, Traced

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")
R_co = TypeVar("R_co", covariant=True)


class Wrapped(Protocol[P, R_co]):
    """A function with these parameters and result, which may also be a method."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(self: Wrapped[Concatenate[S, Q], R], instance: S, owner: Any = None) -> Callable[Q, R]: ...


class Jitted(Wrapped[P, R_co], Protocol[P, R_co]):
    """What `jit` returns. The arguments of its methods may be `ShapeDtypeStruct`s."""

    def trace(self, *args: Any, **kwargs: Any) -> Traced: ...
    def lower(self, *args: Any, **kwargs: Any) -> Lowered: ...
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any: ...
    def clear_cache(self) -> None: ...
