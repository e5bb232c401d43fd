"""How deeply a module's functions and regions are nested: the compiler processes them recursively, on a small stack.

It reads functions in the order of the module, and the functions that each one calls on the way. Where nesting is deep,
callees come first, so that the compiler is never more than one call deep.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from corejax.base.errors import CorejaxNotImplementedError
from corejax.base.source import here

if TYPE_CHECKING:
    from corejax.base._jaxlib import Block

#: Compile time grows with the third to fourth power of this: 250 conditionals take a minute or two.
MAX_REGIONS = 256

#: 2,000 nested calls take half a minute.
MAX_CALLS = 4096

#: Up to this depth, functions are in the order in which people read them: callers first.
_SHALLOW = 16


class Depth(NamedTuple):
    """How deeply calls nest below a point, and how deeply branches and loops do."""

    calls: int = 0
    regions: int = 0

    def above(self, callee: Depth, block: Block) -> Depth:
        """The depth of a function that has this depth from its other calls, and calls `callee` in this block."""
        regions = callee.regions + _regions_around(block)
        return Depth(max(self.calls, callee.calls + 1), max(self.regions, regions))


def _regions_around(block: Block) -> int:
    """How many operations there are between a block and the function around it."""
    count, operation = -1, block.owner.operation
    while operation.parent is not None:
        count += 1
        operation = operation.parent
    return count


def order(body: Any, functions: Sequence[object], depth: Depth) -> None:
    """Put functions, given callees first, in an order that the compiler can handle."""
    if depth.calls > _SHALLOW:
        for function in functions:
            body.append(function)


def check_depth(depth: Depth, name: str) -> None:
    """Raise if the nesting is too deep for the compiler."""
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
