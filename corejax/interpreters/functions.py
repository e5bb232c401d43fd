"""Functions of pytrees that users pass to higher-order primitives, as jaxprs.

A function is traced at each call, since the values it closes over may have changed. But if the program equals an
earlier one, the earlier object is reused, and with it everything already derived from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from corejax.base import trees
from corejax.base.avals import ShapedArray
from corejax.base.caches import BoundedCache
from corejax.base.errors import CorejaxTypeError, kind_of
from corejax.base.source import here
from corejax.base.trees import TreeDef
from corejax.interpreters.leaves import FlatFun, name_of
from corejax.interpreters.staging import stage
from corejax.ir.surgery import consts_to_operands
from corejax.kernel.jaxpr import ClosedJaxpr, Jaxpr
from corejax.kernel.keys import structural_key


class Staged(NamedTuple):
    """A function as a jaxpr: `closed` over its constants, or `jaxpr` with them as leading operands `consts`."""

    closed: ClosedJaxpr
    out_tree: TreeDef
    jaxpr: Jaxpr
    consts: tuple[Any, ...]


#: Programs by structure and source code: each with constvars, and with operands in their place.
_programs: BoundedCache[Any, tuple[Jaxpr, Jaxpr]] = BoundedCache(256)


def stage_function(fun: Callable[..., Any], in_avals: Sequence[ShapedArray], in_tree: TreeDef, what: str) -> Staged:
    """The jaxpr of `fun`, a function of pytrees; `in_tree` is the structure of the tuple of its arguments.

    `what` is its name in errors: "scan: the body". What isn't a function is refused.
    """
    if not callable(fun):
        raise CorejaxTypeError(f"{what} must be a function", got=f"{kind_of(fun)}: {fun!r:.80}", wanted="a callable",
                               where=here(), todo="pass the function itself, without calling it")
    flat = FlatFun(fun, in_tree, what)
    closed = stage(flat, in_avals, name_of(fun))
    out_tree = trees.flatten(0)[1] if flat.out_tree is None else flat.out_tree
    # the code is part of the key because equations remember their source lines
    key = closed.jaxpr.name, getattr(fun, "__code__", None), structural_key(closed.jaxpr)
    found = _programs.get(key)
    if found is None:
        found = closed.jaxpr, consts_to_operands(closed)[0]
        if not closed.jaxpr.is_unique:
            found = _programs.put(key, found)
    jaxpr, of_operands = found
    return Staged(ClosedJaxpr(jaxpr, closed.consts), out_tree, of_operands, tuple(closed.consts))
