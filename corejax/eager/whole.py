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
from corejax.eager.dispatch import Compiled
from corejax.interpreters.staging import stage
from corejax.kernel.trace import Tracer
from corejax.xla.cache.compile import compile_jaxpr
from corejax.xla.runtime import client
from corejax.xla.runtime.placement import common_home, home_at, marks, moved, whereabouts
from corejax.xla.runtime.places import Group, Place

_programs: BoundedCache[Any, Compiled] = BoundedCache(1024)
#: What can't be compiled, or is wrong.
_refused: BoundedCache[Any, bool] = BoundedCache(1024)


def apply_whole(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], count: int) -> Any:
    """Run a function's program. The first `count` arguments are operands: arrays, numbers, or None.

    Returns `OTHER` if there are others, or none is on a device; or if the function is to report what is wrong.
    """
    key: tuple[Any, ...]
    leaves: Sequence[Any]
    try:
        if count == 1 and type(args[0]) is Array:
            leaves, key = args[:1], (function, args[0].aval, config.default_bits)
        else:
            leaves = [x for x in args[:count] if x is not None]
            key = function, *[x.aval if type(x) is Array else _kind(x) for x in args[:count]], config.default_bits
        if len(args) > count:
            static = args[count:]
            key = (*key, static, *map(type, static))
        if kwargs:
            key = (*key, *kwargs.items(), *map(type, kwargs.values()))
        several = not client.only_one_device()
        program = _programs.get((*key, whereabouts(leaves)) if several else key)
    except TypeError:  # another operand, or something static that can't be looked up
        return OTHER
    if program is None:
        return _first(function, args, kwargs, count, leaves, key, several)
    for enter in program.entries:
        result = enter(leaves)
        if result is not OTHER:
            return result
    return program.run(leaves)


def _kind(x: Any) -> Any:
    kind = type(x)
    if (kind is int and not 0 <= x < 128) or not (kind in dtypes.PYTHON_SCALARS or x is None):
        raise TypeError  # of integers, those that fit any dtype: the function refuses others by their values
    return kind


def _first(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], count: int,
           leaves: Sequence[Any], key: Any, several: bool) -> Any:
    since, home = generation(), common_home(leaves) if several else None
    if type(home) is Group or not any([home_at(x) is not None for x in leaves]) or _refused.get(key):
        return OTHER
    if type(home) is Place:
        leaves = moved(leaves, home)
    if several:
        key = (*key, marks(map(home_at, leaves)))
    found, name = [], getattr(function, "__name__", "whole")

    def flat(*leaves: Any) -> Sequence[Any]:
        rest = iter(leaves)
        result = function(*[x if x is None else next(rest) for x in args[:count]], *args[count:], **kwargs)
        outs, tree = trees.flatten(result)
        if not all([isinstance(x, Array) for x in outs]):
            raise TypeError("a result that isn't an array")  # it stays what it is
        found.append(tree)
        return outs
    program = _programs.get(key)
    if program is None:
        try:
            closed = stage(flat, [aval_of(x) for x in leaves], name=name)
        except Exception:  # the function says more about it when it has values
            closed = None
        if closed is None or closed.jaxpr.effects or any([isinstance(const, Tracer) for const in closed.consts]):
            _refused.put(key, True, since)
            return OTHER
        executable = compile_jaxpr(closed, name=name, at=home)
        out_tree = None if found[0].node_data() is None else found[0]
        program = _programs.put(key, Compiled(executable, out_tree), since)
    return program.run(leaves)
