"""Functions of pytrees that users pass to higher-order primitives, as jaxprs.

Tracing a loop's body costs more than finding it again, so a function is traced once for each signature, for as long
as it lives, and as long as what it reads from enclosing scopes and its module is what it was.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from corejax import trees
from corejax.avals import ShapedArray
from corejax.config import config
from corejax.interpreters.context import context
from corejax.interpreters.staging import stage
from corejax.interpreters.trace import Tracer
from corejax.ir.jaxpr import ClosedJaxpr, Jaxpr
from corejax.ir.surgery import consts_to_operands
from corejax.leaves import FlatFun, name_of

_SIGNATURES_PER_FUNCTION = 64


class Staged(NamedTuple):
    """A function as a jaxpr: `closed` over its constants, or `jaxpr` with them as leading operands `consts`."""

    closed: ClosedJaxpr
    out_tree: Any
    jaxpr: Jaxpr
    consts: tuple[Any, ...]


_remembered: weakref.WeakKeyDictionary[Any, dict[Any, tuple[list[Any], Staged]]] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def stage_function(fun: Callable[..., Any], in_avals: Sequence[ShapedArray], in_tree: Any, what: str) -> Staged:
    """The jaxpr of `fun`, a function of pytrees; `in_tree` is the structure of the tuple of its arguments.

    `what` is what errors call it: "scan: the body".
    """
    key = what, in_tree, tuple(in_avals), config.default_bits, context.axes
    surroundings = _surroundings(fun)
    try:
        signatures = _remembered.get(fun)
        found = None if signatures is None else signatures.get(key)
    except TypeError:  # a callable without hash or weak references
        return _stage(fun, in_avals, in_tree, what)
    if found is not None and _same(found[0], surroundings):
        return found[1]
    staged = _stage(fun, in_avals, in_tree, what)
    if not any([isinstance(const, Tracer) for const in staged.consts]):
        with _lock:
            signatures = _remembered.setdefault(fun, {})
            if len(signatures) >= _SIGNATURES_PER_FUNCTION:
                signatures.clear()
            signatures[key] = surroundings, staged
    return staged


def _stage(fun: Callable[..., Any], in_avals: Sequence[ShapedArray], in_tree: Any, what: str) -> Staged:
    flat = FlatFun(fun, in_tree, what)
    closed = stage(flat, in_avals, name_of(fun))
    out_tree = _leaf_tree() if flat.out_tree is None else flat.out_tree
    return Staged(closed, out_tree, *consts_to_operands(closed))


def _leaf_tree() -> Any:
    return trees.flatten(0)[1]


def _surroundings(fun: Any) -> list[Any]:
    """What a Python function reads from around it: defaults, variables of enclosing scopes, names of its module."""
    code = getattr(fun, "__code__", None)
    if code is None:
        return []
    names = fun.__globals__
    found = [names.get(name) for name in code.co_names]
    found += fun.__defaults__ or ()
    found += (fun.__kwdefaults__ or {}).values()
    for cell in fun.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # a variable that isn't set yet
            found.append(None)
    return found


def _same(before: Sequence[Any], now: Sequence[Any]) -> bool:
    """Are they the same objects? Equal is not enough, as an object may be changed in place afterwards."""
    return len(before) == len(now) and all([x is y for x, y in zip(before, now, strict=True)])


def forget_functions() -> None:
    """Trace everything anew."""
    with _lock:
        _remembered.clear()
