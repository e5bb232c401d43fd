"""What loops carry: the values from which they start, in types that one step keeps.

A Python scalar among the initial values is weakly typed: its dtype gives way to the one that a step makes of it. So a
body may have to be staged a second time, for values that were converted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from corejax import lax
from corejax.core import ShapedArray, aval_of, dtypes, here
from corejax.errors import CorejaxTypeError
from corejax_control_flow._mismatch import shown, tree_difference, type_differences

T = TypeVar("T")


def settle(leaves: Sequence[Any], step: Callable[[list[ShapedArray]], tuple[T, Sequence[ShapedArray]]]
           ) -> tuple[list[Any], T]:
    """The initial values in the types that a step keeps, and what `step` returned for those types.

    `step(avals)` stages one step of the loop for a carry of these types: whatever the caller needs of it, and the
    types of the carry that it returns. Only weakly typed values are converted; `check_carry` says what else is wrong.
    """
    leaves = list(leaves)
    while True:
        result, avals_out = step([aval_of(x) for x in leaves])
        promoted = [_promoted(x, aval) for x, aval in zip(leaves, avals_out, strict=False)]
        if len(avals_out) != len(leaves) or all([x is old for x, old in zip(promoted, leaves, strict=True)]):
            return leaves, result
        leaves = promoted


def _promoted(x: Any, out: ShapedArray) -> Any:
    """A weakly typed initial value in the dtype in which it meets what a step returns; any other as it is.

    A flag stays one: True is no number that a loop counts on from.
    """
    aval = aval_of(x)
    if not aval.weak_type or aval.dtype in (out.dtype, dtypes.bool_) or out.dtype == dtypes.float0:
        return x
    dtype, weak = dtypes.promote((aval.dtype, True), (out.dtype, out.weak_type))
    return x if dtype == aval.dtype else lax.convert_element_type.primitive.bind(x, new_dtype=dtype, weak_type=weak)


def check_carry(what: str, tree_in: Any, avals_in: Sequence[ShapedArray], tree_out: Any,
                avals_out: Sequence[ShapedArray], root: str = "init") -> None:
    """Refuse a step whose carry has another structure, or other types, than the carry that it was given.

    `what` names the function in errors ("scan: the body"), `root` the argument that holds the initial values; the
    trees are the structures of the carry before and after a step.
    """
    other = tree_difference(tree_out, tree_in)
    if other is not None:
        raise CorejaxTypeError(
            f"{what} returns a carry of another structure than it was given, at {root}{other.path}",
            got=f"{other.got}, in {shown(tree_out)}", wanted=f"{other.wanted}, in {shown(tree_in)}", where=here(),
            todo="return the carry in the containers in which it comes in: the same keys, lengths and classes")
    wrong = type_differences(tree_in, avals_out, avals_in)
    if not wrong:
        return
    same_shapes = all([a.shape == b.shape for a, b in zip(avals_in, avals_out, strict=True)])
    raise CorejaxTypeError(
        f"{what} changes the type of what it carries", where=here(),
        got="; ".join([f"{leaf.got} for {root}{leaf.path}" for leaf in wrong]),
        wanted="; ".join([f"{leaf.wanted} for {root}{leaf.path}" for leaf in wrong]) + ", as it was given",
        todo="start from an array of the dtype that the loop computes, or convert the result: x.astype(...)"
        if same_shapes else "return arrays of the same shape as those that are carried in")
