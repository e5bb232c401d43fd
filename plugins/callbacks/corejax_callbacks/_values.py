"""Values on their way between programs and users' functions, which get arrays and return whatever is like arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.core import Array, ShapedArray, Tracer, aval_of, dtypes, flatten, from_array_like, to_numpy
from corejax.errors import CorejaxError, CorejaxTypeError, kind_of
from corejax.plugin import elements, structures

#: Which kinds of numbers hold a Python number, by its class.
_KINDS: dict[type, str] = {bool: "biufc", int: "iufc", float: "fcV", complex: "c"}


def is_stored_as_is(aval: ShapedArray) -> bool:
    """Whether programs store such a value as it is: then it needs no conversion on its way."""
    return aval.stored is aval and aval.dtype != dtypes.float0


def from_program(stored: np.ndarray, aval: ShapedArray) -> np.ndarray:
    """What a program passes, as an array of the dtype that its operand has."""
    dtype = aval.dtype
    if dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)
    element = elements.find(dtype)
    if element is not None:
        return element.of(stored)
    return stored if stored.dtype == dtype else stored.astype(dtype)


def to_program(host: np.ndarray, aval: ShapedArray) -> np.ndarray:
    """The same in the other direction: what a program stores of it."""
    if aval.dtype == dtypes.float0:
        return np.zeros(aval.shape, np.bool_)
    return host if aval.stored is aval else np.asarray(elements.of_stored(host))


def array(host: np.ndarray, aval: ShapedArray) -> Array:
    """An array for the user's function, of memory that nobody will write to."""
    host = np.ascontiguousarray(host) if host.ndim else host
    host.flags.writeable = False
    return Array.from_host(host, aval.update(weak_type=False))


def check_results(out: object, tree: Any, avals: Sequence[ShapedArray], who: str, where: str | None
                  ) -> list[np.ndarray]:
    """What a user's function returned, as arrays of exactly these types in host memory."""
    leaves, got = flatten(out)
    if got != tree:
        _check_structure(out, got, tree, who, where)
    return [_checked(x, aval, i, tree, who, where) for i, (x, aval) in enumerate(zip(leaves, avals, strict=True))]


def _check_structure(out: object, got: Any, tree: Any, who: str, where: str | None) -> None:
    """Raise unless two structures agree; a list is as good as a tuple."""
    _, alike = flatten(_with_lists(out))
    if alike == flatten(_with_lists(tree.unflatten([0] * tree.num_leaves)))[1]:
        return
    difference = structures.tree_difference(got, tree)
    assert difference is not None
    raise CorejaxTypeError(
        f"{who} returned another structure than result_shape_dtypes says",
        got=f"{difference.got}{f' at {difference.path}' if difference.path else ''}: {structures.shown(got)}",
        wanted=structures.shown(tree), where=where,
        todo="return what result_shape_dtypes describes, or change that")


def _with_lists(tree: Any) -> Any:
    """The tree with lists in the place of tuples."""
    if type(tree) in (list, tuple):
        return [_with_lists(each) for each in tree]
    if type(tree) is dict:
        return {key: _with_lists(each) for key, each in tree.items()}
    return tree


def _checked(x: Any, aval: ShapedArray, i: int, tree: Any, who: str, where: str | None) -> np.ndarray:
    kind = type(x)
    if kind is np.ndarray and x.dtype == aval.dtype and x.shape == aval.shape:
        return x  # type: ignore[no-any-return]
    path = structures.leaf_paths(tree)[i]
    which = f" as result{path}" if path else ""
    wanted, todo = str(aval.update(weak_type=False)), "return an array of that shape and dtype, or change " \
        "result_shape_dtypes"
    if isinstance(x, Tracer):
        raise CorejaxTypeError(f"{who} returned a traced value{which}", got=str(x), wanted=wanted, where=where,
                               todo="compute with the arguments of the callback; pass what it needs as an argument")
    if kind in _KINDS:
        if not aval.shape and dtypes.kind(aval.dtype) in _KINDS[kind]:
            try:
                return np.asarray(dtypes.number(x, aval.dtype))
            except CorejaxError as error:
                raise CorejaxTypeError(f"{who} returned a number that its type doesn't hold{which}", got=repr(x),
                                       wanted=wanted, where=where, todo=todo) from error
        raise CorejaxTypeError(f"{who} returned {'a number' if aval.shape else 'a number of another kind'}{which}",
                               got=repr(x), wanted=wanted, where=where, todo=todo)
    try:
        found = x if kind is Array else from_array_like(x)
        got = aval_of(found)
    except CorejaxError as error:
        raise CorejaxTypeError(f"{who} returned what isn't an array{which}", got=f"{kind_of(x)}: {x!r:.60}",
                               wanted=wanted, where=where, todo=todo) from error
    if got.shape != aval.shape or got.dtype != aval.dtype:
        what = "shape" if got.shape != aval.shape else "dtype"
        more = "" if what == "shape" else f": x.astype({dtypes.long_name(aval.dtype)!r})"
        raise CorejaxTypeError(f"{who} returned an array of another {what}{which}", got=str(got), wanted=wanted,
                               where=where, todo=todo + more)
    return to_numpy(found)


def is_data(x: Any) -> bool:
    """Whether a program can pass it, as an array."""
    if isinstance(x, (Array, Tracer)):
        return True
    try:
        aval_of(x)
    except CorejaxError:
        return False
    return True
