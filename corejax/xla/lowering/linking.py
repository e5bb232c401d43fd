"""Linking functions of other modules into the module that is being built."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from corejax.base import _jaxlib
from corejax.xla.lowering.folding import protect_divisions
from corejax.xla.lowering.nesting import MAX_CALLS, Depth
from corejax.xla.lowering.partitioning import constrain_within
from corejax.xla.lowering.programs import Lowering, _symbol


def call_linked(ctx: Lowering, key: Hashable, read: Callable[[Any], Any], name: str, args: Sequence[object],
                out_types: Sequence[object]) -> list[Any]:
    """Call the function `main` of another module under the given name, and return its results.

    `read(context)` returns that module. Only its functions are copied, and only once for each key.
    """
    found = ctx._functions.get(("linked", key))
    if found is None:
        symbol, count = _link(ctx, read(ctx.context), name)
        # calls nest at most as deep as there are functions; with this bound, `nesting` may put callees first
        depth = Depth(calls=min(count, MAX_CALLS // 2))
        found = ctx._functions["linked", key] = ctx.ir.FlatSymbolRefAttr.get(symbol), list(out_types), depth
    ctx.depth = ctx.depth.above(found[2], ctx.ir.InsertionPoint.current.block)
    return list(ctx._create("func.call", found[1], ctx._own(args), {"callee": found[0]}).results)


def _link(ctx: Lowering, other: Any, name: str) -> tuple[str, int]:
    """Move another module's functions here, under names free in both. Returns the name of `main`, and their number."""
    table, ir = ctx.ir.SymbolTable, ctx.ir
    protect_divisions(other)
    if ctx.partitioning is not None:
        constrain_within(ctx, other)
    functions = list(other.body.operations)
    taken = {ir.StringAttr(table.get_symbol_name(function)).value for function in functions}
    entry = ""
    for function in functions:
        old = ir.StringAttr(table.get_symbol_name(function)).value
        new = _free(ctx, _symbol(name) if old == "main" else old, taken)
        table.replace_all_symbol_uses(old, new, other.operation)
        table.set_symbol_name(function, new)
        if isinstance(function, _jaxlib.func.FuncOp):  # rather than a mesh
            table.set_visibility(function, "private")
        entry = new if old == "main" else entry
    for function in functions:
        ctx.module.body.append(function)
    return entry, len(functions)


def _free(ctx: Lowering, name: str, taken: set[str]) -> str:
    # A name that another function of that module still has would capture that function's callers.
    while True:
        new = ctx._unique(name)
        if new not in taken:
            return new
