"""Explains why a function is traced again, compared with the most similar earlier call: `config.explain_retraces`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from corejax.base import trees
from corejax.base.avals import ShapedArray
from corejax.base.source import warn
from corejax.base.trees import TreeDef
from corejax.interpreters.leaves import Namer, call_root
from corejax.kernel.axes import AxisEnv
from corejax.kernel.keys import shown


class Signature(NamedTuple):
    """What distinguishes the calls of a function: calls with equal signatures share a traced program."""

    in_tree: TreeDef | None
    avals: tuple[ShapedArray, ...]
    statics: tuple[Any, ...]
    default_bits: int
    axes: AxisEnv


def tell(name: str, before: Collection[Signature], now: Signature, namer: Namer) -> None:
    """Warn that a function is traced again, and say why."""
    changes = min([list(_changes(each, now, namer)) for each in before], key=len)
    calls = "the previous call" if len(before) == 1 else f"the most similar of {len(before)} previous calls"
    warn(f"jit traces {name} again, since {calls} had " + "; ".join(changes) +
         ". config.explain_retraces = False turns this off.")


def _changes(before: Signature, now: Signature, namer: Namer) -> Iterator[str]:
    if before.in_tree != now.in_tree:
        yield from _other_structure(before.in_tree, now.in_tree)
    else:
        for i, (old, new) in enumerate(zip(before.avals, now.avals, strict=True)):
            if old is not new:
                weak = ": Python numbers, and results made only from them, are weak (~)" if old.matches(new) else ""
                yield f"a different type of {namer(i)}: {old} before, {new} now{weak}"
    if before.statics[:1] != now.statics[:1]:  # static ones included
        yield f"{before.statics[0]} positional arguments, not {now.statics[0]}"
    olds, news = dict(before.statics[1:]), dict(now.statics[1:])
    for key in [*olds, *[key for key in news if key not in olds]]:
        if key not in olds or key not in news or olds[key] != news[key]:
            where = f"args[{key}]" if isinstance(key, int) else key
            yield f"a different static argument {where}: {_shown(olds, key)} before, {_shown(news, key)} now"
    if before.default_bits != now.default_bits:
        yield f"config.default_bits = {before.default_bits}, which is {now.default_bits} now"
    if before.axes != now.axes:
        yield f"different mapped axes around it: {_axes(before)} before, {_axes(now)} now"


def _axes(signature: Signature) -> str:
    return ", ".join([f"{axis.name!r} of size {axis.size}" for axis in signature.axes]) or "none"


def _other_structure(before: object, now: object) -> Iterator[str]:
    olds, news = _leaves(before), _leaves(now)
    changes = [f"no {name}" for name in news if name not in olds] + [
        f"an argument {name}, which is gone" for name in olds if name not in news]
    yield from changes or [f"arguments of a different structure: {before} before, {now} now"]


def _leaves(tree: Any) -> list[str]:
    return [call_root(path) for path, _ in trees.flatten_with_path(tree.unflatten([0] * tree.num_leaves))[0]]


def _shown(statics: dict[Any, Any], key: object) -> str:
    return f"{shown(statics[key]):.80}" if key in statics else "none"
