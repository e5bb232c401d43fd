"""Ways into a compiled program for calls like one that was seen: by code made for their structure and types.

A call whose arguments are containers, or partly in host memory, is like many before it in a loop. An entry checks that
while it takes the arguments apart: each class, key, static part and type is compared with a constant. It leaves calls
that are unlike to others, and to the general way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.arrays.array import Array, new_array
from corejax.arrays.storage import DELETED, is_on_device
from corejax.base import _jaxlib
from corejax.base.avals import ShapedArray
from corejax.base.dtypes import PYTHON_SCALARS
from corejax.base.known_trees import OTHER, Code, put_together, take_apart
from corejax.base.trees import TreeDef
from corejax.xla.runtime import client
from corejax.xla.runtime.execution import FAILURES, TIDY, Parts, started
from corejax.xla.runtime.placement import home_at
from corejax.xla.runtime.places import Division, Place

#: Maps arguments to results; returns `OTHER` for a call that it isn't made for.
Entry = Callable[[Sequence[Any]], Any]

#: A program gets an entry for the n-th call that none took. The later ones are for calls with other arguments in host
#: memory.
OFTEN = frozenset((1, 3, 9, 27))

#: How many entries may be tried for a call before the program is looked up.
MOST_ENTRIES = 8


def make_entry(parts: Parts | None, at: Place | Division, leaves: Sequence[Any], *, kept: Sequence[int] | None = None,
               donated: Sequence[bool] = (), moves: bool = False, tree: TreeDef | None = None,
               out_tree: TreeDef | None = None) -> Entry | None:
    """An entry for calls like the one with these leaves, of a program at a place; None if there can't be one.

    The program takes the leaves that are `kept`; some are `donated`. If it `moves`, others are at the same homes. The
    arguments are leaves, or a tuple of the structure `tree`; results have the structure `out_tree`, or there is one.
    """
    if parts is None or not all(map(_is_plain, leaves)):
        return None
    kept = range(len(leaves)) if kept is None else kept
    homes = at.arguments[len(parts.consts):] if type(at) is Division else [at] * len(kept)
    there = [home_at(leaves[i]) for i in kept]
    given_away = [i for i, gone in enumerate(donated) if gone and type(leaves[i]) is Array]
    if not all([x is None or x.sharding is home.sharding for x, home in zip(there, homes, strict=True)]) or not all(
            [_on_device(leaves[i]) for i in given_away]):
        return None
    try:
        return _written(parts, leaves, kept, given_away, moves, tree, out_tree)
    except (AttributeError, ValueError, SyntaxError, RecursionError, MemoryError):  # or an array was just deleted
        return None


def _is_plain(x: Any) -> bool:
    kind = type(x)
    return kind is Array and not x.is_deleted() or kind is np.ndarray or kind in PYTHON_SCALARS or isinstance(
        x, np.generic)


def _on_device(x: Any) -> bool:
    return type(x) is Array and is_on_device(x)


def _written(parts: Parts, leaves: Sequence[Any], kept: Sequence[int], given_away: Sequence[int], moves: bool,
             tree: TreeDef | None, out_tree: TreeDef | None) -> Entry:
    """The entry, as one function: the price of a few calls of functions is what it is there to save."""
    code = Code()
    other = code.constant(OTHER)
    with code.block("try:"):
        names = _add_leaves(code, tree, leaves, other)
        if moves:
            for name, x in zip(names, leaves, strict=True):
                if _on_device(x):
                    code.add(f"if {name}._buffer._sharding is not {code.constant(x._buffer._sharding)}: return {other}")
        given, args = [names[i] for i in kept], [leaves[i] for i in kept]
        boxed = _add_buffers(code, parts, given, args)
    code.add(f"except {code.constant(Exception)}: return {other}")
    with code.block("try:"):
        handlers = code.constant(parts.handlers)
        code.add(f"outs = {code.constant(parts)}.execute(buffers).consume_with_handlers({handlers})")
    with code.block(f"except {code.constant(FAILURES)} as error:"):
        code.add(f"raise {code.constant(parts.failure)}(error, [{', '.join(given)}]) from None")
    code.add(f"if not {code.constant(started)}() % {TIDY}: {code.constant(_jaxlib.collect_garbage)}()")
    for i in given_away:
        code.add(f"{names[i]}._buffer = {code.constant(DELETED)}")
    if boxed:  # `Transfers.finish`, without the call if the program has ended
        code.add(f"if outs[0].is_ready(): {boxed}.append(box)")
        code.add(f"else: {code.constant(parts.transfers.finish)}(box, outs[0])")
    code.add(f"return {_add_result(code, out_tree, parts.avals)}")
    return code.function("args")


def _add_leaves(code: Code, tree: TreeDef | None, leaves: Sequence[Any], other: str) -> list[str]:
    """Add lines that take the arguments apart, and check the types of leaves: the names of these."""
    children = [None] * len(leaves) if tree is None else tree.children()
    names = [code.new() for _ in children]
    code.add(f"[{', '.join(names)}] = args")
    names = [leaf for name, child in zip(names, children, strict=True)
             for leaf in ([name] if child is None else take_apart(code, child, name, other))]
    for name, x in zip(names, leaves, strict=True):
        kind = code.constant(type(x))
        if type(x) is Array:
            code.add(f"if {name}.aval is not {code.constant(x.aval)} or type({name}) is not {kind}: return {other}")
        else:
            code.add(f"if type({name}) is not {kind}: return {other}")
        if type(x) is np.ndarray:
            dtype, shape = code.constant(x.dtype), code.constant(x.shape)
            code.add(f"if {name}.dtype is not {dtype} or {name}.shape != {shape}: return {other}")
    return names


def _add_buffers(code: Code, parts: Parts, names: Sequence[str], args: Sequence[Any]) -> str | None:
    """Add lines that list the buffers of arguments: those in host memory are written to mailboxes, or put there.

    Returns the name of the free mailboxes, or None if none are used.
    """
    transfers, boxed = parts.transfers, None
    buffers = [*map(code.constant, parts.consts)]
    on_host = [i for i, x in enumerate(args) if not _on_device(x)]
    mailboxes = transfers.mailboxes if parts.avals else None  # without a result, nothing tells when they are free
    fitting = [] if mailboxes is None else [i for i in on_host if mailboxes.fits[i]]
    hosts = {i: names[i] if type(args[i]) is not Array else code.new() for i in on_host}
    for i, host in hosts.items():
        if type(args[i]) is Array:
            code.add(f"{host} = {names[i]}._host")  # raises for one on a device, before a mailbox is taken
    if mailboxes is not None and fitting:
        boxed = code.constant(mailboxes.free)
        code.add(f"hosts, made = box = {boxed}.pop()")
        for i in fitting:
            code.add(f"hosts[{i}][...] = {hosts[i]}")
    if len(fitting) < len(on_host):
        code.add(f"{code.constant(client.check_not_forked)}()")
    for i, (name, x) in enumerate(zip(names, args, strict=True)):
        if _on_device(x):
            buffers.append(f"{name}._buffer")
        else:
            buffers.append(f"made[{i}]" if i in fitting else f"{code.constant(transfers.put)}({i}, {name})")
    code.add(f"buffers = [{', '.join(buffers)}]")
    return boxed


def _add_result(code: Code, out_tree: TreeDef | None, avals: Sequence[ShapedArray]) -> str:
    """Add lines that make arrays of `outs`, buffers of these types, and the result of them: its name."""
    buffers, arrays = [[code.new() for _ in avals] for _ in range(2)]
    code.add(f"[{', '.join(buffers)}] = outs")
    for array, buffer, aval in zip(arrays, buffers, avals, strict=True):
        code.add(f"{array} = {code.constant(new_array)}()")
        code.add(f"{array}.aval = {code.constant(aval)}")
        code.add(f"{array}._buffer = {buffer}")
    return arrays[0] if out_tree is None else put_together(code, out_tree, iter(arrays))
