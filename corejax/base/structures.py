"""Where and how two pytrees differ: for errors about programs that should return the same structures and types.

Public as `corejax.plugin.structures`. The branches of a conditional have to agree, and so do what a loop's step is
given and what it returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from corejax.base.avals import ShapedArray
from corejax.base.errors import CorejaxTypeError
from corejax.base.source import here
from corejax.base.trees import TreeDef, flatten, paths_of

__all__ = ["Difference", "check_carry", "leaf_paths", "shown", "tree_difference", "type_differences"]


class Difference(NamedTuple):
    """A place where two pytrees differ: its path, written as code, and what each of them has there."""

    path: str
    got: str
    wanted: str


def leaf_paths(treedef: TreeDef) -> list[str]:
    """The path of each leaf of a structure, written as code.

    >>> leaf_paths(flatten({"a": (1, 2)})[1])
    ["['a'][0]", "['a'][1]"]
    """
    return paths_of(_example(treedef))


def shown(treedef: TreeDef) -> str:
    """A structure as text, with a star for each leaf.

    >>> shown(flatten({"a": (1, 2)})[1])
    "{'a': (*, *)}"
    """
    return str(treedef).removeprefix("PyTreeDef(").removesuffix(")")


def tree_difference(got: TreeDef, wanted: TreeDef) -> Difference | None:
    """The first place where two structures differ; None if they are equal.

    >>> tree_difference(flatten({"a": (1, 2)})[1], flatten({"a": [1, 2]})[1])
    Difference(path="['a']", got='a tuple of 2', wanted='a list of 2')
    """
    return None if got == wanted else _first_difference(_example(got), _example(wanted))


def type_differences(treedef: TreeDef, got: Sequence[ShapedArray], wanted: Sequence[ShapedArray]) -> list[Difference]:
    """The leaves of a structure whose types differ, other than in being weak.

    >>> one, other = ShapedArray((), "float64"), ShapedArray((2,), "float64")
    >>> type_differences(flatten({"a": 1, "b": 2})[1], [one, one], [one, other])
    [Difference(path="['b']", got='f64[]', wanted='f64[2]')]
    """
    wrong = [i for i, (x, y) in enumerate(zip(got, wanted, strict=True)) if not x.matches(y)]
    paths = leaf_paths(treedef) if wrong else []
    return [Difference(paths[i], str(got[i]), str(wanted[i])) for i in wrong]


def check_carry(what: str, tree_in: TreeDef, avals_in: Sequence[ShapedArray], tree_out: TreeDef,
                avals_out: Sequence[ShapedArray], root: str = "init") -> None:
    """Raise if a step returns a carry of a different structure or with other types than the carry that it was given.

    `what` names the function in errors ("scan: the body"), `root` the argument that holds the initial values; the
    trees are the structures of the carry before and after a step.

    >>> tree, aval = flatten(1.0)[1], ShapedArray((), "float64")
    >>> check_carry("my_loop: the step", tree, [aval], tree, [ShapedArray((2,), "float64")])
    Traceback (most recent call last):
      ...
    corejax.errors.CorejaxTypeError: my_loop: the step changes the type of what it carries
      got:    f64[2] for init
      wanted: f64[] for init, as it was given
      ...
    """
    other = tree_difference(tree_out, tree_in)
    if other is not None:
        raise CorejaxTypeError(
            f"{what} returns a carry of a different structure than it was given, at {root}{other.path}",
            got=f"{other.got}, in {shown(tree_out)}", wanted=f"{other.wanted}, in {shown(tree_in)}", where=here(),
            todo="return the carry in the containers that it comes in: the same keys, lengths and classes")
    wrong = type_differences(tree_in, avals_out, avals_in)
    if not wrong:
        return
    same_shapes = all([a.shape == b.shape for a, b in zip(avals_in, avals_out, strict=True)])
    raise CorejaxTypeError(
        f"{what} changes the type of what it carries", where=here(),
        got="; ".join([f"{leaf.got} for {root}{leaf.path}" for leaf in wrong]),
        wanted="; ".join([f"{leaf.wanted} for {root}{leaf.path}" for leaf in wrong]) + ", as it was given",
        todo="start from an array of the dtype that the loop computes, or convert the result: x.astype(...)"
        if same_shapes else "return arrays of the same shapes as those in the incoming carry")


def _example(treedef: TreeDef) -> Any:
    return treedef.unflatten(range(treedef.num_leaves))


def _first_difference(got: Any, wanted: Any) -> Difference | None:
    todo = [("", got, wanted)]
    while todo:
        path, got, wanted = todo.pop()
        children, kind = flatten(got, _all_but(got))
        others, other_kind = flatten(wanted, _all_but(wanted))
        if kind != other_kind:
            return Difference(path, _described(got), _described(wanted))
        if children and children[0] is not got:
            keys = paths_of(got, _all_but(got))
            todo += [(path + key, x, y) for key, x, y in zip(keys, children, others, strict=True)][::-1]
    return None


def _all_but(root: Any) -> Any:
    return lambda node: node is not root


def _described(node: Any) -> str:
    """A node of a tree, in words."""
    if node is None:
        return "None"
    children, _ = flatten(node, _all_but(node))
    if children and children[0] is node:
        return "an array"
    if isinstance(node, dict):
        return f"a {type(node).__name__} with the keys {', '.join(map(repr, node)) or '(none)'}"
    return f"a {type(node).__name__} of {len(children)}"
