"""How deep the functions and regions of a module are nested: the compiler works on it by recursion, on a small stack.

It reads the functions in the order in which they stand, and those that a function calls on the way. So that it never
goes more than one call deep, callees come first where the nesting is deep.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from corejax.base.errors import CorejaxNotImplementedError
from corejax.base.source import here

if TYPE_CHECKING:
    from corejax.base._jaxlib import Block

#: The compiler's time grows with the third to fourth power of it: 250 conditionals take a minute or two.
MAX_REGIONS = 256

#: 2,000 nested calls take half a minute.
MAX_CALLS = 4096

#: Up to here, functions stand in the order in which people read them: callers first.
_SHALLOW = 16


class Depth(NamedTuple):
    """How many functions call each other below a point, and how many bodies of branches and loops are open there."""

    calls: int = 0
    regions: int = 0

    def above(self, callee: Depth, block: Block) -> Depth:
        """The depth of a function that calls another one in this block, and has this depth by its other calls."""
        regions = callee.regions + _regions_around(block)
        return Depth(max(self.calls, callee.calls + 1), max(self.regions, regions))


def _regions_around(block: Block) -> int:
    """How many operations are between a block and the function that it is in, which is in a module."""
    count, operation = -1, block.owner.operation
    while operation.parent is not None:
        count += 1
        operation = operation.parent
    return count


def order(body: Any, functions: Sequence[object], depth: Depth) -> None:
    """Put functions, given callees first, into the order that the compiler can read."""
    if depth.calls > _SHALLOW:
        for function in functions:
            body.append(function)


def check_depth(depth: Depth, name: str) -> None:
    """Refuse what the compiler wouldn't get done."""
    if depth.regions > MAX_REGIONS:
        raise CorejaxNotImplementedError(
            f"{name}: branches and loops are nested too deeply to be compiled", where=here(),
            got=f"{depth.regions} within each other",
            wanted=f"at most {MAX_REGIONS}; the compiler's time grows with the third to fourth power of it",
            todo="write the nesting as a loop (lax.fori_loop, lax.while_loop, lax.scan) or as one lax.switch")
    if depth.calls > MAX_CALLS:
        raise CorejaxNotImplementedError(
            f"{name}: functions are nested too deeply to be compiled", got=f"{depth.calls} calls within each other",
            wanted=f"at most {MAX_CALLS}", where=here(),
            todo="write the nesting as a loop, or leave out inner jits (jit(f, inline=True) leaves no call)")
