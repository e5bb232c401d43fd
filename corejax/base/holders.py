"""Holders: objects of a pack that hold an array which may change, and say themselves what primitives do with them.

Programs only compute with arrays. A holder may be an argument of a user's function, or be closed over, but where it
becomes the operand of a primitive, `Primitive.bind` leaves the call to its method `apply`: there the pack reads what is
held, applies a primitive to that, and keeps what is to be held from then on. So no other interpreter meets a holder.

A program that is being traced has variables of a `HolderType` in their place. Those that are arguments of a user's
function are shown to it as what the type's method `shown` makes of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from corejax.base.avals import ShapedArray
from corejax.base.errors import CorejaxTypeError

if TYPE_CHECKING:
    from corejax.base.errors import CorejaxError


class HolderType(ShapedArray):
    """The type of an object that holds an array: a class of a pack derives from it."""

    __slots__ = ()
    exist: ClassVar[bool] = False
    """Whether any pack has such a type."""

    def __init_subclass__(cls) -> None:
        HolderType.exist = True

    def shown(self, tracer: object) -> Any:
        """What a user's function gets for a traced value of this type."""
        raise NotImplementedError(type(self).__name__)


class Holder:
    """An object that holds an array. Its `aval` is a `HolderType`.

    `is_traced`: whether it only exists while a function is traced, so that no program that uses it is kept.
    `is_usable`: whether a function that runs now could read or write it.
    """

    __slots__ = ()
    aval: ShapedArray
    is_traced: bool
    is_usable: bool = True

    def apply(self, primitive: object, args: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """What `primitive.bind(*args, **params)` returns, where this object is among the operands."""
        raise NotImplementedError(type(self).__name__)

    def not_an_array(self) -> HeldError:
        """The error for using it where an array must be."""
        raise NotImplementedError(type(self).__name__)

    def returned(self, what: str, name: str) -> CorejaxError:
        """The error for a user's function, called `what`, that returns it, at `name`."""
        raise NotImplementedError(type(self).__name__)

    def given_twice(self) -> CorejaxError:
        """The error for passing it twice in one call."""
        raise NotImplementedError(type(self).__name__)


class HeldError(CorejaxTypeError):
    """Raised where an array is needed and a `holder` is found. `Primitive.bind` asks the holder what to do."""

    holder: Holder


def is_holder(x: object) -> bool:
    """Whether this is an object that holds an array."""
    return HolderType.exist and isinstance(x, Holder)


def check_once(values: Iterable[object]) -> None:
    """Raise if any holder is among the arguments of one call more than once."""
    if HolderType.exist:
        holders = [x for x in values if isinstance(x, Holder)]
        for i, x in enumerate(holders):
            if any([x is other for other in holders[:i]]):
                raise x.given_twice()


def as_users_see(values: Sequence[Any]) -> Sequence[Any]:
    """Arguments for a user's function: in place of traced holders, what their types say."""
    if not HolderType.exist or not any([isinstance(getattr(x, "aval", None), HolderType) for x in values]):
        return values
    return [x.aval.shown(x) if isinstance(getattr(x, "aval", None), HolderType) and not isinstance(x, Holder) else x
            for x in values]


def hold(avals: Iterable[ShapedArray], consts: Iterable[object]) -> bool:
    """Whether a program with arguments of these types and these constants uses any holder."""
    return HolderType.exist and (any([isinstance(aval, HolderType) for aval in avals]) or any(map(is_holder, consts)))
