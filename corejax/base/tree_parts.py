"""Pytrees taken apart by hand: one level, parts of a structure, and containers whose children have keys.

The other functions of `corejax.tree_util` are those of `cj.tree`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from corejax.base import _jaxlib, trees
from corejax.base.errors import CorejaxTypeError, CorejaxValueError, kind_of
from corejax.base.keypaths import Path
from corejax.base.source import here
from corejax.base.tracebacks import public
from corejax.base.tree_functions import register_node
from corejax.base.trees import IsLeaf, TreeDef

__all__ = [
    "KeyEntry", "KeyPath", "all_leaves", "default_registry", "flatten_one_level", "flatten_one_level_with_keys",
    "is_tree_node", "register_pytree_node", "register_pytree_with_keys", "register_pytree_with_keys_class",
    "treedef_children", "treedef_is_leaf", "treedef_tuple",
]

#: A step of a path: a key of any class that can be shown, for custom nodes.
KeyEntry = TypeVar("KeyEntry")
KeyPath = Path

C = TypeVar("C", bound=type)


class _Registry:
    """All containers, as jaxlib keeps them."""

    def __getattr__(self, name: str) -> Any:
        return getattr(trees.registry(), name)


#: The registry itself, for what has no function here.
default_registry = _Registry()


# Nodes

@public
def is_tree_node(typ: type) -> bool:
    """Whether instances of this class are containers.

    >>> is_tree_node(dict), is_tree_node(float)
    (True, False)
    """
    return trees.registry().is_node(typ)


@public
def all_leaves(iterable: Iterable[object], is_leaf: IsLeaf = None) -> bool:
    """Whether each of these is a leaf, rather than a container.

    >>> all_leaves([1.0, "a"]), all_leaves([1.0, ()])
    (True, False)
    """
    return all([(is_leaf is not None and is_leaf(x)) or not trees.registry().is_node(type(x)) and not (
        isinstance(x, tuple) and hasattr(x, "_fields")) for x in iterable])


@public
def flatten_one_level(tree: object) -> tuple[Iterable[Any], Any]:
    """The children of a container, and its static part.

    >>> flatten_one_level({"b": (1, 2), "a": 3})
    ((3, (1, 2)), ('a', 'b'))
    """
    pairs, static = flatten_one_level_with_keys(tree)
    return tuple([child for _, child in pairs]), static


@public
def flatten_one_level_with_keys(tree: object) -> tuple[Iterable[tuple[Any, Any]], Any]:
    """The (key, child) pairs of a container, and its static part.

    >>> flatten_one_level_with_keys([1.0])
    (((SequenceKey(0), 1.0),), None)
    """
    found = trees.one_level(tree)
    if found is None:
        raise CorejaxValueError("this is a leaf, which has no children", got=f"{kind_of(tree)}: {tree!r:.60}",
                                wanted="a container: a list, a dict, an instance of a registered class", where=here(),
                                todo="ask tree_util.is_tree_node(type(x)) first")
    pairs, static = found
    if static is None and isinstance(tree, dict):
        static = tuple([key.key for key, _ in pairs])
    return tuple(pairs), static


# Structures

@public
def treedef_children(treedef: TreeDef) -> list[TreeDef]:
    """The structures right below the root of a structure."""
    return _structure(treedef).children()


@public
def treedef_is_leaf(treedef: TreeDef) -> bool:
    """Whether a structure is a single node: a leaf, or a container without children.

    >>> from corejax.tree import structure
    >>> treedef_is_leaf(structure(1.0)), treedef_is_leaf(structure([1.0]))
    (True, False)
    """
    return _structure(treedef).num_nodes == 1


@public
def treedef_tuple(treedefs: Iterable[TreeDef]) -> TreeDef:
    """The structure of a tuple of trees with these structures.

    >>> from corejax.tree import structure
    >>> treedef_tuple([structure(1.0), structure([2.0])])
    PyTreeDef((*, [*]))
    """
    children = [_structure(treedef) for treedef in treedefs]
    made: TreeDef = _jaxlib.pytree.PyTreeDef.from_node_data_and_children(trees.registry(), (tuple, None), children)
    return made


def _structure(treedef: TreeDef) -> TreeDef:
    if not hasattr(treedef, "num_leaves"):
        raise CorejaxTypeError("this is not the structure of a pytree", got=repr(treedef)[:80], where=here(),
                               wanted="what tree_structure(x) returns", todo="pass the structure, not the tree")
    return treedef


# Registering

@public
def register_pytree_node(nodetype: type, flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
                         unflatten_func: Callable[[Any, Any], Any],
                         flatten_with_keys_func: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None = None
                         ) -> None:
    """Make a class a container, by functions that take an instance apart and put one together: `tree.register_node`."""
    register_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)


@public
def register_pytree_with_keys(nodetype: type, flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]],
                              unflatten_func: Callable[[Any, Any], Any],
                              flatten_func: Callable[[Any], tuple[Iterable[Any], Any]] | None = None) -> None:
    """The same with keys, by which paths name the children.

    >>> class Pair:
    ...     def __init__(self, left, right):
    ...         self.left, self.right = left, right
    >>> from corejax.tree import GetAttrKey, flatten_with_path, keystr
    >>> register_pytree_with_keys(
    ...     Pair, lambda pair: ([(GetAttrKey("left"), pair.left), (GetAttrKey("right"), pair.right)], None),
    ...     lambda _, children: Pair(*children))
    >>> [keystr(path) for path, _ in flatten_with_path([Pair(1, 2)])[0]]
    ['[0].left', '[0].right']
    """
    def without_keys(node: Any) -> tuple[Sequence[Any], Any]:
        pairs, static = flatten_with_keys(node)
        return [child for _, child in pairs], static

    register_node(nodetype, flatten_func or without_keys, unflatten_func, flatten_with_keys)


@public
def register_pytree_with_keys_class(cls: C) -> C:
    """Class decorator: a container with methods `tree_flatten_with_keys()` and `tree_unflatten(static, children)`.

    A method `tree_flatten()` is used where no keys are needed, if there is one.
    """
    for method in ("tree_flatten_with_keys", "tree_unflatten"):
        if not callable(getattr(cls, method, None)):
            raise CorejaxTypeError(
                f"register_pytree_with_keys_class: this has no method {method}", got=repr(cls)[:80], where=here(),
                wanted="a class with tree_flatten_with_keys(self) and the class method tree_unflatten(static, "
                       "children)", todo="write them, or use register_pytree_with_keys")
    flatten = (lambda node: node.tree_flatten()) if hasattr(cls, "tree_flatten") else None
    register_pytree_with_keys(cls, lambda node: node.tree_flatten_with_keys(), cls.tree_unflatten, flatten)  # type: ignore[attr-defined]
    return cls
