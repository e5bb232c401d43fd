"""The functions of `cj.tree`.

>>> from corejax import tree
>>> tree.map(lambda x, y: x + y, {"a": 1, "b": (2, 3)}, {"a": 10, "b": (20, 30)})
{'a': 11, 'b': (22, 33)}
"""

from __future__ import annotations

import builtins
import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, TypeVar

from corejax.base import keypaths, trees
from corejax.base.errors import CorejaxError, CorejaxTypeError
from corejax.base.keypaths import DictKey, FlattenedIndexKey, GetAttrKey, Path, SequenceKey
from corejax.base.prefixes import broadcast_prefix, flatten_up_to
from corejax.base.source import here
from corejax.base.tracebacks import calls_users, check_call, public
from corejax.base.trees import IsLeaf, TreeDef

__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "Partial", "SequenceKey", "all", "broadcast", "flatten",
    "flatten_with_path", "keystr", "leaves", "leaves_with_path", "map", "map_with_path", "reduce", "reduce_associative",
    "register_dataclass", "register_node", "register_node_class", "register_static", "static", "structure", "transpose",
    "unflatten",
]

_missing = object()

flatten = public(trees.flatten)
flatten_with_path = public(trees.flatten_with_path)
register_static = public(trees.register_static)
C = TypeVar("C", bound=type)


class Partial(functools.partial[Any]):
    """`functools.partial` as a container: the arguments that it holds are its children, its function is static.

    So a function, together with the arrays it needs, can be an argument or a result of transformed functions. Arguments
    held by a `functools.partial` inside it are part of the function.

    >>> half = Partial(lambda w, x: w * x, 0.5)
    >>> half(4.0), leaves(half)
    (2.0, [0.5])
    """

    __module__ = "corejax.tree"  # where unpickling looks for it

    @public
    def __new__(cls, func: Callable[..., Any], /, *args: Any, **keywords: Any) -> Partial:
        _check_function(func, "tree.Partial")
        if type(func) is functools.partial:
            func = _Whole(func)  # otherwise the new object would take over its arguments
        return super().__new__(cls, func, *args, **keywords)


class _Whole:
    """Wraps a callable; equal to any other wrapper of the same one."""

    def __init__(self, func: Callable[..., Any]) -> None:
        self.func = func

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.func(*args, **keywords)

    def __eq__(self, other: object) -> bool:
        return type(other) is _Whole and self.func == other.func

    def __hash__(self) -> int:
        return hash(self.func)

    def __repr__(self) -> str:
        return repr(self.func)


trees.register_node(
    Partial, lambda partial: ((partial.args, partial.keywords), partial.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
    lambda partial: (((GetAttrKey("args"), partial.args), (GetAttrKey("keywords"), partial.keywords)), partial.func))


@public
@wraps(trees.unflatten)
def unflatten(treedef: TreeDef, leaves: Iterable[object]) -> Any:
    _check_treedef(treedef)
    if not isinstance(leaves, Iterable):
        raise _refused("a structure must be filled with a sequence of leaves", leaves, "a list",
                       "put a single leaf in a list")
    return trees.unflatten(treedef, leaves)


@public
@wraps(keypaths.keystr)
def keystr(path: Path, *, simple: bool = False, separator: str = "") -> str:
    if not isinstance(path, (tuple, list)):
        raise _refused("keystr expects the path of a leaf", path, "a tuple of keys",
                       "take it from tree.flatten_with_path; put a single key in a tuple")
    if not isinstance(separator, str):
        raise _refused("keystr: the separator must be text", separator, "a string", "write separator='/'")
    return keypaths.keystr(path, simple=simple, separator=separator)


@public
@wraps(trees.register_node)
def register_node(cls: type, flatten: Callable[..., Any], unflatten: Callable[..., Any],
                  flatten_with_keys: Callable[..., Any] | None = None) -> None:
    for function in (flatten, unflatten, unflatten if flatten_with_keys is None else flatten_with_keys):
        _check_function(function, "register_node")
    trees.register_node(cls, flatten, unflatten, flatten_with_keys)


@public
@wraps(trees.register_node_class)
def register_node_class(cls: C) -> C:
    for method in ("tree_flatten", "tree_unflatten"):
        if not callable(getattr(cls, method, None)):
            raise _refused(f"register_node_class: this has no method {method}", cls,
                           "a class with tree_flatten(self) and the class method tree_unflatten(static, children)",
                           "write them, or use register_node or register_dataclass")
    return trees.register_node_class(cls)


@public
@wraps(trees.register_dataclass)
def register_dataclass(cls: C, data_fields: Sequence[str] | None = None, meta_fields: Sequence[str] | None = None,
                       drop_fields: Sequence[str] = ()) -> C:
    for names in (data_fields, meta_fields, drop_fields):
        if names is not None and not (isinstance(names, (tuple, list)) and builtins.all(
                [isinstance(name, str) for name in names])):
            raise _refused("register_dataclass: fields must be given by name", names, "a sequence of strings",
                           "write data_fields=['x', 'y']")
    return trees.register_dataclass(cls, data_fields, meta_fields, drop_fields)


@public
def leaves(tree: object, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves, in order."""
    return flatten(tree, is_leaf)[0]


@public
def structure(tree: object, is_leaf: IsLeaf = None) -> TreeDef:
    """The tree without its leaves: hashable, and equal for equal containers."""
    return flatten(tree, is_leaf)[1]


@public
def leaves_with_path(tree: object, is_leaf: Callable[..., Any] | None = None, is_leaf_takes_path: bool = False
                     ) -> list[tuple[Path, Any]]:
    """The (path, leaf) pairs, in order."""
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


@public
@calls_users
def map(f: Callable[..., Any], tree: object, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Apply `f` to each leaf, together with the subtrees at the same place in the other trees."""
    _check_function(f, "tree.map")
    own, treedef = flatten(tree, is_leaf)
    others = _others(treedef, tree, rest, is_leaf)
    try:
        return treedef.unflatten([f(*xs) for xs in zip(own, *others, strict=True)])
    except TypeError as error:
        check_call(error, "tree.map", f)
        raise


@public
@calls_users
def map_with_path(f: Callable[..., Any], tree: object, *rest: Any, is_leaf: Callable[..., Any] | None = None,
                  is_leaf_takes_path: bool = False) -> Any:
    """Like `map`, but `f` gets the path of the leaf as its first argument, and so does `is_leaf` if it takes one."""
    _check_function(f, "tree.map_with_path")
    pairs, treedef = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    others = _others(treedef, tree, rest, None if is_leaf_takes_path else is_leaf)
    try:
        return treedef.unflatten([f(path, x, *xs) for (path, x), *xs in zip(pairs, *others, strict=True)])
    except TypeError as error:
        check_call(error, "tree.map_with_path", f)
        raise


def _others(treedef: TreeDef, tree: object, rest: tuple[object, ...], is_leaf: IsLeaf) -> list[list[Any]]:
    return [flatten_up_to(treedef, tree, other, names=("the first tree", f"tree number {i}"), is_leaf=is_leaf)
            for i, other in enumerate(rest, 2)]


@public
@calls_users
def reduce(function: Callable[[Any, Any], Any], tree: object, initializer: object = _missing, is_leaf: IsLeaf = None
           ) -> Any:
    """Combine the leaves from left to right."""
    _check_function(function, "tree.reduce")
    if initializer is not _missing:
        return functools.reduce(function, leaves(tree, is_leaf), initializer)
    found = leaves(tree, is_leaf)
    if not found:
        raise CorejaxTypeError("a tree without leaves can't be reduced without an initializer", where=here(),
                               got=repr(tree)[:80], wanted="at least one leaf",
                               todo="give the value for no leaves: reduce(f, tree, initializer)")
    return functools.reduce(function, found)


@public
@calls_users
def reduce_associative(operation: Callable[[Any, Any], Any], tree: object, *, identity: object = _missing,
                       is_leaf: IsLeaf = None) -> Any:
    """Combine neighbouring leaves, then neighbouring results: as deep as the logarithm of how many there are.

    >>> reduce_associative(lambda a, b: f"({a}{b})", ["a", "b", "c", "d"])
    '((ab)(cd))'
    """
    _check_function(operation, "tree.reduce_associative")
    found = leaves(tree, is_leaf)
    if found:
        return _halved(operation, found)
    if identity is _missing:
        raise CorejaxTypeError("a tree without leaves can't be reduced without an identity", where=here(),
                               got=repr(tree)[:80], wanted="at least one leaf",
                               todo="give the value for no leaves: reduce_associative(f, tree, identity=0)")
    return identity


def _halved(operation: Callable[[Any, Any], Any], found: list[Any]) -> Any:
    if len(found) == 1:
        return found[0]
    middle = len(found) // 2
    return operation(_halved(operation, found[:middle]), _halved(operation, found[middle:]))


@public
def static(**options: Any) -> Any:
    """A field of a dataclass that is part of the structure: `dataclasses.field`, with the options that it takes.

    >>> import dataclasses
    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weights: object
    ...     activation: str = static(default="tanh")
    >>> leaves(Layer(1.0))
    [1.0]
    """
    return dataclasses.field(metadata={**(options.pop("metadata", None) or {}), "static": True}, **options)


@public
def all(tree: object, *, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves are true."""
    for i, leaf in enumerate(leaves(tree, is_leaf)):
        try:
            if not leaf:
                return False
        except ValueError as error:
            if isinstance(error, CorejaxError):
                raise
            raise _refused(f"the leaf {trees.paths_of(tree, is_leaf)[i] or 'itself'} is neither true nor false", leaf,
                           "one truth value", "reduce it first, by .all() or .any()") from error
    return True


@public
def broadcast(prefix_tree: object, full_tree: object, is_leaf: IsLeaf = None) -> Any:
    """A tree like `full_tree`, with each leaf of `prefix_tree` in place of all the leaves below it."""
    return trees.unflatten(structure(full_tree), broadcast_prefix(prefix_tree, full_tree, is_leaf))


@public
def transpose(outer_treedef: TreeDef, inner_treedef: TreeDef | None, pytree_to_transpose: object) -> Any:
    """Turn outer-of-inner into inner-of-outer; None takes the inner structure from the first subtree."""
    _check_treedef(outer_treedef)
    found, treedef = flatten(pytree_to_transpose)
    if inner_treedef is None:
        example = outer_treedef.unflatten([0] * outer_treedef.num_leaves)
        subtrees = flatten_up_to(outer_treedef, example, pytree_to_transpose, names=("outer_treedef", "the tree"))
        inner_treedef = structure(subtrees[0]) if subtrees else structure(None)
    _check_treedef(inner_treedef)
    if treedef != outer_treedef.compose(inner_treedef):
        raise CorejaxTypeError("the tree to transpose is not the outer structure of the inner one", where=here(),
                               got=str(treedef), wanted=str(outer_treedef.compose(inner_treedef)))
    size = inner_treedef.num_leaves
    columns = [outer_treedef.unflatten(found[i::size]) for i in range(size)] if size else []
    return inner_treedef.unflatten(columns)


def _check_treedef(treedef: object) -> None:
    if not hasattr(treedef, "num_leaves"):
        raise _refused("this is not the structure of a pytree", treedef, "what tree.structure(x) returns",
                       "pass the structure, not the tree")


def _check_function(function: object, what: str) -> None:
    if not callable(function):
        raise _refused(f"{what}: expected a function", function, "a callable", "pass the function first")


def _refused(problem: str, got: object, wanted: str, todo: str) -> CorejaxTypeError:
    return CorejaxTypeError(problem, got=repr(got)[:80], wanted=wanted, where=here(), todo=todo)

