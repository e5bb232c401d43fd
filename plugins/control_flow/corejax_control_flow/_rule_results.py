"""What users' rules return, checked: pairs, and tangents and cotangents in the types that they must have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.core import Array, ShapedArray, Zero, aval_of, dtypes, flatten, here, instantiate, values
from corejax.errors import CorejaxError, CorejaxTypeError, kind_of
from corejax.plugin import roles, structures


def pair(result: Any, what: str, wanted: str) -> tuple[Any, Any]:
    """Both parts of what a rule must return as a pair."""
    if isinstance(result, (tuple, list)) and len(result) == 2:
        return result[0], result[1]
    got = f" of {len(result)}" if isinstance(result, (tuple, list)) else ""
    raise CorejaxTypeError(f"{what} must return a pair", got=described(result) + got, wanted=wanted, where=here(),
                           todo="return both, the output first")


def up_to(tree: Any, ct: Any, i: int, what: str) -> list[Any]:
    """The cotangents of an argument's leaves; None stands for zeros, for one leaf or for the whole argument."""
    if ct is None:
        return [None] * tree.num_leaves
    try:
        return tree.flatten_up_to(ct)  # type: ignore[no-any-return]
    except ValueError as error:
        found = flatten(ct, lambda x: x is None)[1]
        other = structures.tree_difference(found, tree)
        path, got, wanted = ("", structures.shown(found), structures.shown(tree)) if other is None else other
        raise CorejaxTypeError(f"{what} returns a cotangent structured differently from args[{i}], at args[{i}]{path}",
                               got=got, wanted=f"{wanted}, or None for zeros", where=here(),
                               todo="return each cotangent in the containers of its argument") from error


def fitted(leaves: Sequence[Any], avals: Sequence[ShapedArray], paths: Sequence[str], what: str, of: str,
           dropped: bool = False) -> list[Any]:
    """Tangents or cotangents in the types wanted, zeros as `Zero`. The error names all that don't fit.

    With `dropped`, whatever array there is for an integer is taken: its cotangent has no effect.
    """
    fitted = [_fit(x, aval, dropped) for x, aval in zip(leaves, avals, strict=True)]
    wrong = [i for i, x in enumerate(fitted) if x is None]
    if not wrong:
        return fitted
    integers = any([avals[i].dtype is dtypes.float0 for i in wrong])
    raise CorejaxTypeError(
        f"{what} of a different type than {of}", where=here(),
        got="; ".join([f"{described(leaves[i])} for {paths[i]}" for i in wrong]),
        wanted="; ".join([f"{avals[i]} for {paths[i]}" for i in wrong]),
        todo="for integers return np.zeros(shape, cj.float0)" if integers else
             "return an array of the same shape and dtype as its counterpart: reshape, sum or convert it")


def _fit(x: Any, wanted: ShapedArray, dropped: bool) -> Any:
    """A tangent or cotangent as a value of the type wanted, or a `Zero`; None if it doesn't fit."""
    if x is None:
        return Zero(wanted)
    if type(x) is Zero:
        return Zero(wanted) if x.aval.shape == wanted.shape else None
    try:
        aval = aval_of(x)
    except CorejaxError:
        return None
    if dropped and wanted.dtype is dtypes.float0 and aval.shape == wanted.shape:
        return Zero(wanted)
    if aval.matches(wanted) and not aval.weak_type:
        return Zero(wanted) if wanted.dtype is dtypes.float0 else values([x], "", str)[0]
    if not aval.weak_type or aval.shape != wanted.shape or wanted.dtype is dtypes.float0 or (
            dtypes.promote((aval.dtype, True), (wanted.dtype, False))[0] != wanted.dtype):
        return None
    return roles.convert(values([x], "", str)[0], wanted.dtype)


def array_of_tangent(t: Any) -> Any:
    """A tangent as an array, even if it is a `Zero` of float0."""
    if type(t) is Zero and t.aval.dtype is dtypes.float0:
        return Array.from_host(np.zeros(t.aval.shape, dtypes.float0), t.aval.invariant)
    return instantiate(t)


def described(x: Any) -> str:
    """What a rule has returned, in words: its type as an array, else what kind of thing it is."""
    try:
        return str(aval_of(x))
    except CorejaxError:
        return kind_of(x)
