"""Programs of functions that were traced before, for arguments of the same types, while they read the same values."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple
from weakref import WeakSet, ref

from corejax import config
from corejax.core import Jaxpr, WeakCache, context, flatten, namer, values
from corejax.plugin import carrying
from corejax_control_flow._closures import reached, reached_at_once


class Origin(NamedTuple):
    """The user's function behind one that is called: with some arguments fixed, of which `key` is equal if they are."""

    function: Callable[..., Any]
    fixed: Sequence[Any] = ()
    key: Hashable = ()


def stage_known(fun: Callable[..., Any], args: tuple[Any, ...], what: str, origin: Origin | None
                ) -> carrying.StagedCall:
    """`carrying.stage_call(fun, args, what)`, or what it was before. Without an origin, it may be anything."""
    if origin is None or not _was_called(origin.function):
        return carrying.stage_call(fun, args, what)
    roots = (origin.function, *origin.fixed)
    found = reached_at_once(roots, None, with_key=True) or reached(*roots)
    if found.key is None:
        return carrying.stage_call(fun, args, what)
    leaves, in_tree = flatten(args)
    xs = values(leaves, what, namer("args", args))
    types = (*[x.aval for x in xs], in_tree, context.axes, config.default_bits)
    call = _Call((found.key, origin.key, types), fun, args, what, len(xs))
    jaxpr, held, out_tree = _programs(origin.function, call)
    consts = [const() for const in held]
    if any([const is None for const in consts]):  # made of what the function closes over, such as an ndarray
        return carrying.stage_call(fun, args, what)
    return carrying.StagedCall(jaxpr, [*consts, *xs], out_tree)


_called: WeakSet[Any] = WeakSet()


def _was_called(function: Callable[..., Any]) -> bool:
    """Whether this is at least the second call of a function. One that is made for each call isn't looked into."""
    try:
        if function in _called:
            return True
        _called.add(function)
    except TypeError:  # an object that can't be hashed, or referred to weakly
        pass
    return False


class _Call:
    """A call that may be known, as a key."""

    __slots__ = ("_key", "_hash", "stage", "n_args")

    def __init__(self, key: tuple[Hashable, ...], fun: Callable[..., Any], args: tuple[Any, ...], what: str,
                 n_args: int) -> None:
        self._key, self._hash, self.n_args = key, hash(key), n_args
        self.stage: Callable[[], carrying.StagedCall] | None = lambda: carrying.stage_call(fun, args, what)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return type(other) is _Call and self._hash == other._hash and self._key == other._key


def _staged(function: Callable[..., Any], call: _Call) -> tuple[Jaxpr, list[ref[Any]], Any]:
    """The program, the values that it closes over, which it doesn't keep alive, and the structure of its result."""
    assert call.stage is not None
    staged, call.stage = call.stage(), None  # a key holds no arguments
    consts = staged.operands[:len(staged.operands) - call.n_args]
    return staged.jaxpr, [ref(x) for x in consts], staged.out_tree


_programs: WeakCache[tuple[Jaxpr, list[ref[Any]], Any]] = WeakCache(_staged)
