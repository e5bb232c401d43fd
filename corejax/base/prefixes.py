"""Comparing pytrees: whether one is a prefix of the other, and the error if not."""

from __future__ import annotations

from typing import Any

from corejax.base.avals import ShapedArray
from corejax.base.errors import CorejaxTypeError, CorejaxValueError
from corejax.base.keypaths import Path, keystr
from corejax.base.source import here
from corejax.base.trees import IsLeaf, TreeDef, flatten, one_level


def flatten_up_to(treedef: TreeDef, prefix: object, full: object, *, names: tuple[str, str], is_leaf: IsLeaf = None
                  ) -> list[Any]:
    """The subtrees of `full` at the leaves of `prefix`, whose structure is `treedef`; `names` are used in the error."""
    try:
        return treedef.flatten_up_to(full)
    except ValueError as error:
        found = _mismatch(prefix, full, is_leaf, ())
        if found is None:
            raise
        path, got, wanted = found
        raise CorejaxValueError(f"the structure of {names[0]} doesn't fit {names[1]}, at {names[1]}{keystr(path)}",
                                got=f"{got} in {names[1]}", wanted=f"{wanted} as in {names[0]}", where=here(),
                                todo=f"give {names[0]} the containers of {names[1]}; a leaf stands for a whole subtree"
                                ) from error


def check_same_structure(wanted: object, given: object, names: tuple[str, str], what: str) -> None:
    """Raise if two trees differ in structure. The error says where."""
    wanted_def, given_def = flatten(wanted)[1], flatten(given)[1]
    if wanted_def == given_def:
        return
    path, got, want = _mismatch(wanted, given, None, ()) or _swap(_mismatch(given, wanted, None, ())) or (
        (), str(given_def), str(wanted_def))
    raise CorejaxTypeError(f"{what}: {names[1]} doesn't have the structure of {names[0]}, at {names[1]}{keystr(path)}",
                           got=got, wanted=want, where=here(), todo=f"give {names[1]} the containers of {names[0]}")


def _swap(found: tuple[Path, str, str] | None) -> tuple[Path, str, str] | None:
    return None if found is None else (found[0], found[2], found[1])


def _mismatch(prefix: object, full: object, is_leaf: IsLeaf, path: Path) -> tuple[Path, str, str] | None:
    """The first place where `prefix` isn't a prefix of `full`: (path, what full has there, what prefix has)."""
    level = None if is_leaf is not None and is_leaf(prefix) else one_level(prefix)
    if level is None:
        return None
    other = one_level(full)
    if other is None or type(prefix) is not type(full):
        return path, _describe(full), _describe(prefix)
    (children, static), (full_children, full_static) = level, other
    if len(children) != len(full_children) or [k for k, _ in children] != [k for k, _ in full_children]:
        return path, _describe(full), _describe(prefix)
    for (key, child), (_, full_child) in zip(children, full_children, strict=True):
        found = _mismatch(child, full_child, is_leaf, (*path, key))
        if found is not None:
            return found
    differ = static is not full_static and static != full_static
    return (path, f"static {full_static!r:.60}", f"static {static!r:.60}") if differ else None


def _describe(tree: object) -> str:
    """Describe a container in a few words."""
    level = one_level(tree)
    name = type(tree).__name__
    if tree is None:
        return "None"
    if level is None:
        aval = tree if isinstance(tree, ShapedArray) else getattr(tree, "aval", None)
        return f"a leaf of type {name if aval is None else aval}"
    name = f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"
    if isinstance(tree, dict):
        return f"{name} with the keys {[key.key for key, _ in level[0]]!r:.120}"
    return f"{name} of {len(level[0])}"


def broadcast_prefix(prefix_tree: object, full_tree: object, is_leaf: IsLeaf = None, *,
                     names: tuple[str, str] = ("the prefix", "the tree")) -> list[Any]:
    """For each leaf of `full_tree`, the leaf of `prefix_tree` that is at the same place or above it.

    >>> broadcast_prefix((0, [1, 2]), ({"x": 10, "y": 20}, [30, 40]))
    [0, 0, 1, 2]
    """
    prefix_leaves, treedef = flatten(prefix_tree, is_leaf)
    subtrees = flatten_up_to(treedef, prefix_tree, full_tree, names=names, is_leaf=is_leaf)
    spread: list[Any] = []
    for leaf, subtree in zip(prefix_leaves, subtrees, strict=True):
        spread.extend([leaf] * len(flatten(subtree)[0]))
    return spread
