"""Products in `linalg`: those of the array API standard, whose operands are positional, and powers of matrices."""

# mypy: no-warn-return-any

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.core import Array, ArrayLike, DTypeLike
from corejax.errors import CorejaxValueError
from corejax.plugin import directly, public, refused, shaping
from corejax_lax_basic import PrecisionLike
from corejax_numpy import products
from corejax_numpy._arrays import array, no_out
from corejax_numpy._in_memory import matrices as in_memory
from corejax_numpy._matrices import eye, mismatch, swapped
from corejax_numpy._solving import inv

__all__ = ["cross", "diagonal", "matmul", "matrix_power", "matrix_transpose", "multi_dot", "outer", "tensordot",
           "trace", "vecdot"]


@public
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The cross products of vectors with three components along an axis.

    >>> jnp.linalg.cross(jnp.array([1.0, 0.0, 0.0]), jnp.array([0.0, 1.0, 0.0]))
    Array([0., 0., 1.], dtype=float64)
    """
    x, y = array(x1), array(x2)
    for part in (x, y):
        if part.shape[shaping.canonical_axis("cross", axis, part.ndim)] != 3:
            raise mismatch("cross", "vectors must have three components", f"{x.aval} and {y.aval}",
                           f"3 elements along axis {axis}", "use jnp.cross for vectors with two")
    return products.cross(x, y, axis=axis)


@public
def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Each element of one vector times each of another, as a matrix.

    >>> jnp.linalg.outer(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0]))
    Array([[3., 4.],
           [6., 8.]], dtype=float64)
    """
    x, y = array(x1), array(x2)
    if x.ndim != 1 or y.ndim != 1:
        raise mismatch("outer", "the operands must be vectors", f"{x.aval} and {y.aval}", "one axis each",
                       "use jnp.outer, which takes all elements")
    return products.outer(x, y)


@public
def matmul(x1: ArrayLike, x2: ArrayLike, /, *, precision: PrecisionLike = None,
           preferred_element_type: DTypeLike | None = None) -> Array:
    """The matrix product; see `jnp.matmul`.

    >>> jnp.linalg.matmul(jnp.ones((2, 3)), jnp.ones((3, 4))).shape
    (2, 4)
    """
    if precision is preferred_element_type is None:
        return products.matmul(x1, x2)
    return products.matmul(x1, x2, precision=precision, preferred_element_type=preferred_element_type)


@public
def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: PrecisionLike = None,
           preferred_element_type: DTypeLike | None = None) -> Array:
    """The products of vectors along an axis, the first ones conjugated; see `jnp.vecdot`.

    >>> jnp.linalg.vecdot(jnp.ones((2, 3)), jnp.ones(3))
    Array([3., 3.], dtype=float64)
    """
    if precision is preferred_element_type is None:
        return products.vecdot(x1, x2, axis=axis)
    return products.vecdot(x1, x2, axis=axis, precision=precision, preferred_element_type=preferred_element_type)


@public
def tensordot(x1: ArrayLike, x2: ArrayLike, /, *, axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
              precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None,
              out_sharding: None = None) -> Array:
    """The sums of products over axes; see `jnp.tensordot`.

    >>> jnp.linalg.tensordot(jnp.ones((2, 3)), jnp.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    if precision is preferred_element_type is out_sharding is None:
        return products.tensordot(x1, x2, axes)
    return products.tensordot(x1, x2, axes, precision=precision, preferred_element_type=preferred_element_type,
                              out_sharding=out_sharding)


@public
def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """The diagonals of matrices: elements whose column is `offset` after the row.

    >>> jnp.linalg.diagonal(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array([1., 4.], dtype=float64)
    """
    return products.diagonal(x, offset, -2, -1)


@public
def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The sums of the diagonals of matrices.

    >>> jnp.linalg.trace(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array(5., dtype=float64)
    """
    return products.trace(x, offset, -2, -1, dtype)


@directly(lambda x: x.mT)
def matrix_transpose(x: ArrayLike, /) -> Array:
    """The transposed matrices.

    >>> jnp.linalg.matrix_transpose(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array([[1., 3.],
           [2., 4.]], dtype=float64)
    """
    y = array(x)
    if y.ndim < 2:
        raise mismatch("matrix_transpose", "a matrix has two axes", y, "at least two axes", "add one with x[None]")
    return swapped(y)


@directly(in_memory.matrix_power)
def matrix_power(a: ArrayLike, n: int) -> Array:
    """The product of `n` equal matrices; of their inverses if n is negative.

    >>> jnp.linalg.matrix_power(jnp.array([[1.0, 1.0], [0.0, 1.0]]), 10)
    Array([[ 1., 10.],
           [ 0.,  1.]], dtype=float64)
    """
    x, n = array(a), shaping.as_int("matrix_power", "n", n)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise mismatch("matrix_power", "a matrix must be square", x, "as many rows as columns",
                       "look at the last two axes: those before are a batch")
    if n == 0:
        return eye(x.dtype, x.shape[-1], x.shape[:-2])
    if n < 0:
        x, n = inv(x), -n
    if n == 3:
        return (x @ x) @ x
    found: Any = None
    square = x
    while True:
        if n % 2:
            found = square if found is None else found @ square
        n //= 2
        if not n:
            return found
        square = square @ square


@directly(in_memory.multi_dot, sequences=1)
def multi_dot(arrays: Sequence[ArrayLike], *, out: None = None, precision: PrecisionLike = None) -> Array:
    """The product of matrices, the first and last of which may be vectors, in the order that needs fewest products.

    >>> jnp.linalg.multi_dot([jnp.ones((9, 2)), jnp.ones((2, 9)), jnp.ones(9)]).shape
    (9,)
    """
    no_out("multi_dot", out)
    parts = [array(x) for x in arrays]
    last = len(parts) - 1
    if last < 1:
        raise refused("multi_dot", "a product has two factors at least", got=f"{last + 1} arrays",
                      wanted="two arrays or more", todo="pass more", kind=CorejaxValueError)
    fits = all([x.ndim == 2 or (x.ndim == 1 and i in (0, last)) for i, x in enumerate(parts)])
    if not fits or any([x.shape[-1] != y.shape[0] for x, y in zip(parts, parts[1:], strict=False)]):
        raise mismatch("multi_dot", "the shapes don't fit together", ", ".join([str(x.aval) for x in parts]),
                       "matrices, each with as many rows as the one before has columns; vectors first and last",
                       "transpose what doesn't fit")
    sizes = [1 if parts[0].ndim == 1 else parts[0].shape[0], *[x.shape[0] for x in parts[1:]],
             1 if parts[-1].ndim == 1 else parts[-1].shape[1]]
    if parts[0].ndim == 2:
        sizes[1] = parts[0].shape[1]
    split = _fewest_products(sizes)

    def taken(i: int, j: int) -> Any:
        if i == j:
            return parts[i]
        left, right = taken(i, split[i, j]), taken(split[i, j] + 1, j)
        return products.matmul(left, right) if precision is None else products.matmul(left, right, precision=precision)
    return taken(0, last)


def _fewest_products(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """After which factor to split each chain of factors i to j, of which factor k is sizes[k] by sizes[k + 1]."""
    count = len(sizes) - 1
    costs, split = {(i, i): 0 for i in range(count)}, {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            costs[i, j], split[i, j] = min([(costs[i, k] + costs[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                                            for k in range(i, j)])
    return split


