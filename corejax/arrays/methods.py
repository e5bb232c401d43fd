"""What type checkers see of the attributes that packs provide for arrays: `x.sum`, `x.T`, `x.at`.

Without stubs it is any attribute. `python -m corejax stubs` writes, in place of this module, a class that has exactly
those of the installed packs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from corejax.arrays.array import Array

    class Provided(Array):
        """An array, or a method that returns one."""

        def __call__(self, *args: Any, **kwargs: Any) -> Array: ...


class Methods:
    """The base class of `Array` that stands for the installed packs."""

    __slots__ = ()

    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Provided: ...
