"""`corejax.flatten_util`: a pytree as one vector, and back.

>>> from corejax.flatten_util import ravel_pytree
>>> vector, unravel = ravel_pytree({"b": 3.0, "w": np.ones((2, 2))})
>>> vector, unravel(vector)["w"].shape
(Array([3., 1., 1., 1., 1.], dtype=float64), (2, 2))
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from corejax import lax, tree
from corejax.core import Array, ShapedArray, aval_of, dtypes
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import operators, public, refused
from corejax_numpy._arrays import array
from corejax_numpy.joining import concatenate

__all__ = ["ravel_pytree"]

NAMESPACE = "flatten_util"


@public
def ravel_pytree(pytree: Any) -> tuple[Array, Any]:
    """The elements of all leaves as one vector, of their common dtype, and a function from such vectors to such trees.

    The function gives each leaf its own shape and dtype. It is hashable, and equal for trees of one structure.

    >>> vector, unravel = ravel_pytree((np.arange(3), np.float64(0.5)))
    >>> vector
    Array([0. , 1. , 2. , 0.5], dtype=float64)
    >>> unravel(2.0 * vector)
    (Array([0, 2, 4], dtype=int64), Array(1., dtype=float64))
    """
    leaves, treedef = tree.flatten(pytree)
    parts = [_as_array(leaf, i, pytree) for i, leaf in enumerate(leaves)]
    avals = [ShapedArray(aval_of(part).shape, aval_of(part).dtype) for part in parts]
    if not parts:
        return lax.full((0,), 0, dtypes.default_dtype("f")), Unravel(treedef, (), dtypes.default_dtype("f"))
    # Python's numbers don't give way to others here: 1.1 or 10 ** 6 beside leaves of float16 are to come back.
    vector = concatenate([operators.ravel(lax.convert_element_type(part, aval.dtype))
                          for part, aval in zip(parts, avals, strict=True)])
    return vector, Unravel(treedef, tuple(avals), aval_of(vector).dtype)


def _as_array(leaf: Any, i: int, pytree: Any) -> Any:
    try:
        return array(leaf)
    except CorejaxTypeError as error:
        place = tree.keystr(tree.flatten_with_path(pytree)[0][i][0])
        raise refused("ravel_pytree", f"the leaf {place or 'given'} isn't an array", got=f"a {type(leaf).__name__}",
                      wanted="arrays and numbers", todo="leave it out, or make it static") from error


class Unravel:
    """A function from vectors to trees of one structure."""

    __slots__ = ("_key",)

    def __init__(self, treedef: Any, avals: tuple[Any, ...], dtype: np.dtype) -> None:
        self._key = treedef, avals, dtype

    @public
    def __call__(self, vector: Any) -> Any:
        """The tree whose elements are those of the vector."""
        treedef, avals, dtype = self._key
        vector = array(vector)
        size = sum([prod(aval.shape) for aval in avals])
        if vector.shape != (size,):
            raise refused("unravel", "the vector doesn't have the size of the tree", got=aval_of(vector),
                          wanted=f"a vector of {size} elements", todo="pass what ravel_pytree gives for such a tree",
                          kind=CorejaxValueError)
        mixed = any([aval.dtype != dtype for aval in avals])
        if mixed and vector.dtype != dtype:
            raise refused("unravel", "the vector has another dtype than the tree's", got=aval_of(vector),
                          wanted=f"a vector of dtype {dtypes.short_name(dtype)}, since leaves have dtypes of their own",
                          todo=f"convert it: vector.astype({dtypes.long_name(dtype)!r})", kind=CorejaxTypeError)
        leaves, start = [], 0
        for aval in avals:
            stop = start + prod(aval.shape)
            part = operators.reshape(lax.slice(vector, (start,), (stop,)), aval.shape)
            leaves.append(_converted(part, aval) if mixed else part)
            start = stop
        return tree.unflatten(treedef, leaves)

    def __eq__(self, other: object) -> bool:
        return type(other) is Unravel and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        treedef, avals, _ = self._key
        return f"<unravel {', '.join(map(str, avals))} of {treedef}>"


def _converted(part: Any, aval: Any) -> Any:
    if dtypes.is_complex(part.dtype) and not dtypes.is_complex(aval.dtype):
        part = lax.real(part)  # the imaginary part is that of no leaf
    return operators.astype(part, aval.dtype)
