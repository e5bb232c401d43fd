"""Functions of several primitives as one compiled program each, where an operand is on a device.

A program of a few operations takes hardly longer than one of them alone, since starting it takes longer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from corejax.arrays.array import Array
from corejax.base import dtypes, trees
from corejax.base.avals import aval_of
from corejax.base.caches import BoundedCache, generation
from corejax.base.config import config
from corejax.base.known_trees import OTHER
from corejax.eager.dispatch import Compiled, Programs, run
from corejax.interpreters.staging import stage
from corejax.kernel.trace import Tracer
from corejax.xla.cache.compile import compile_jaxpr
from corejax.xla.runtime.places import Group, Place

_programs: Programs = BoundedCache(1024)
#: What can't be compiled, or is wrong.
_refused: BoundedCache[Any, bool] = BoundedCache(1024)

#: Static numbers that a loop may change: each would be another program.
_CONTINUOUS = frozenset([float, complex])


def apply_whole(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], count: int) -> Any:
    """Run a function's program. The first `count` arguments are operands: arrays, numbers, or None.

    Returns `OTHER` if there are others, if there is no program for what is static, or if the function is to report
    what is wrong.
    """
    key: tuple[Any, ...]
    operands: Sequence[Any]
    try:
        if count == 1 and type(args[0]) is Array:
            operands, key = args[:1], (function, args[0].aval, config.default_bits)
        else:
            operands = [x for x in args[:count] if x is not None]
            key = function, *[x.aval if type(x) is Array else _kind(x) for x in args[:count]], config.default_bits
        if len(args) > count or kwargs:
            static = (*args[count:], *kwargs.values())
            kinds = [*map(type, static)]
            if not _CONTINUOUS.isdisjoint(kinds):
                return OTHER
            key = (*key, len(args), *kwargs, *static, *kinds)
            hash(key)
    except TypeError:  # another operand, or something static that can't be looked up
        return OTHER
    return run(_programs, key, operands, _compile, key, function, args, kwargs, count)


def _kind(x: Any) -> Any:
    kind = type(x)
    if kind is int and not 0 <= x < 128:
        raise TypeError("an integer that doesn't fit any dtype: the function refuses some by their values")
    if x is not None and kind not in dtypes.PYTHON_SCALARS:
        raise TypeError("no operand of a program")
    return kind


def _compile(operands: Sequence[Any], home: Place | Group | None, key: Any, function: Callable[..., Any],
             args: tuple[Any, ...], kwargs: Mapping[str, Any], count: int) -> Compiled | None:
    if type(home) is Group or _refused.get(key):
        return None
    since, name = generation(), getattr(function, "__name__", "whole")
    out_tree: Any = None

    def flat(*leaves: Any) -> Sequence[Any]:
        nonlocal out_tree
        rest = iter(leaves)
        result = function(*[x if x is None else next(rest) for x in args[:count]], *args[count:], **kwargs)
        outs, out_tree = trees.flatten(result)
        if not all([isinstance(x, Array) for x in outs]):
            raise TypeError("a result that isn't an array stays what it is")
        return outs
    try:
        closed = stage(flat, [aval_of(x) for x in operands], name=name)
        refused = bool(closed.jaxpr.effects) or any([isinstance(const, Tracer) for const in closed.consts])
    except Exception:  # the function says more about it when it has values
        refused = True
    if refused:
        _refused.put(key, True, since)
        return None
    executable = compile_jaxpr(closed, name=name, at=home)
    return Compiled(executable, None if out_tree.node_data() is None else out_tree)
