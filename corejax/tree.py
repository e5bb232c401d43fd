"""`cj.tree`: working with pytrees.

>>> from corejax import tree
>>> tree.map(lambda x, y: x + y, {"a": 1, "b": (2, 3)}, {"a": 10, "b": (20, 30)})
{'a': 11, 'b': (22, 33)}
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable
from typing import Any

from corejax.errors import CorejaxTypeError
from corejax.prefixes import broadcast_prefix, flatten_up_to
from corejax.source import here
from corejax.trees import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    IsLeaf,
    Path,
    SequenceKey,
    TreeDef,
    flatten,
    flatten_with_path,
    keystr,
    register_dataclass,
    register_node,
    register_node_class,
    register_static,
    unflatten,
)

__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "SequenceKey", "all", "broadcast", "flatten", "flatten_with_path",
    "keystr", "leaves", "leaves_with_path", "map", "map_with_path", "reduce", "register_dataclass", "register_node",
    "register_node_class", "register_static", "structure", "transpose", "unflatten",
]

_missing = object()


def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves, in order."""
    return flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: IsLeaf = None) -> TreeDef:
    """The tree without its leaves: hashable, and equal for equal containers."""
    return flatten(tree, is_leaf)[1]


def leaves_with_path(tree: Any, is_leaf: IsLeaf = None) -> list[tuple[Path, Any]]:
    """The (path, leaf) pairs, in order."""
    return flatten_with_path(tree, is_leaf)[0]


def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """`f` of each leaf, together with what stands at its place in the other trees."""
    own, treedef = flatten(tree, is_leaf)
    others = _others(treedef, tree, rest, is_leaf)
    return treedef.unflatten([f(*xs) for xs in zip(own, *others, strict=True)])


def map_with_path(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """As `map`, and `f` gets the path of the leaf first."""
    pairs, treedef = flatten_with_path(tree, is_leaf)
    others = _others(treedef, tree, rest, is_leaf)
    return treedef.unflatten([f(path, x, *xs) for (path, x), *xs in zip(pairs, *others, strict=True)])


def _others(treedef: TreeDef, tree: Any, rest: tuple[Any, ...], is_leaf: IsLeaf) -> list[list[Any]]:
    return [flatten_up_to(treedef, tree, other, names=("the first tree", f"tree number {i}"), is_leaf=is_leaf)
            for i, other in enumerate(rest, 2)]


def reduce(function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _missing, is_leaf: IsLeaf = None) -> Any:
    """The leaves combined from left to right."""
    if initializer is not _missing:
        return functools.reduce(function, leaves(tree, is_leaf), initializer)
    found = leaves(tree, is_leaf)
    if not found:
        raise CorejaxTypeError("a tree without leaves can't be reduced without an initializer", where=here(),
                               got=repr(tree)[:80], todo="give the value for no leaves: reduce(f, tree, initializer)")
    return functools.reduce(function, found)


def all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Are all leaves true?"""
    return builtins.all(leaves(tree, is_leaf))


def broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> Any:
    """A tree like `full_tree` in which each leaf of `prefix_tree` stands for all below it."""
    return unflatten(structure(full_tree), broadcast_prefix(prefix_tree, full_tree, is_leaf))


def transpose(outer_treedef: TreeDef, inner_treedef: TreeDef | None, pytree_to_transpose: Any) -> Any:
    """From outer-of-inner to inner-of-outer; None takes the inner structure from the first subtree."""
    subtrees = outer_treedef.flatten_up_to(pytree_to_transpose) if inner_treedef is None else None
    if inner_treedef is None:
        inner_treedef = structure(subtrees[0]) if subtrees else structure(None)
    found, treedef = flatten(pytree_to_transpose)
    if treedef != outer_treedef.compose(inner_treedef):
        raise CorejaxTypeError("the tree to transpose is not the outer structure of the inner one", where=here(),
                               got=str(treedef), wanted=str(outer_treedef.compose(inner_treedef)))
    size = inner_treedef.num_leaves
    columns = [outer_treedef.unflatten(found[i::size]) for i in range(size)] if size else []
    return inner_treedef.unflatten(columns)
