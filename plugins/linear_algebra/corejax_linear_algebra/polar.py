"""The polar decomposition, by an iteration of QR and Cholesky decompositions.

QDWH, dynamically weighted Halley iteration based on QR: Y. Nakatsukasa, Z. Bai, F. Gygi, "Optimizing Halley's iteration
for computing the matrix polar decomposition", SIAM J. Matrix Anal. Appl. 31 (2010). Singular values tend to 1, by a
rational function of degree 3 whose weights follow a lower bound of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, Jaxpr, ShapedArray, aval_of, stage
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import public, refused, shaping
from corejax_linear_algebra._matrices import adjoint, conjugate, identity, is_complex, matrices, product, swapped
from corejax_linear_algebra.orthogonal import qr
from corejax_linear_algebra.positive_definite import cholesky
from corejax_linear_algebra.triangular import triangular_solve

__all__ = ["qdwh"]

#: While the weight c is larger, a step takes a QR decomposition, which is stable; else one of Cholesky, cheaper.
_LARGEST_FOR_CHOLESKY = 100.0

#: The weights a, b, c of a step.
Weights = tuple[float, float, float]

#: The sizes of a matrix that is padded with zeros; None if it isn't.
Sizes = tuple[Any, Any] | None


@public
def qdwh(x: ArrayLike, *, is_hermitian: bool = False, max_iterations: int | None = None, eps: float | None = None,
         dynamic_shape: tuple[Any, Any] | None = None) -> tuple[Array, Array, Array, Array]:
    """`qdwh(x, *, is_hermitian=False, max_iterations=None, eps=None, dynamic_shape=None)`: x = u h, the polar form.

    `(u, h, num_iters, is_converged)` for a matrix of full rank and at least as many rows as columns: u has orthonormal
    columns, h is Hermitian and positive. `eps` is the precision wanted, that of the dtype by default, and
    `max_iterations` is 10. With `dynamic_shape`, (m, n), x is padded, and its first m rows and n columns count.
    `is_hermitian` changes nothing.

    >>> u, h, _, converged = lax.linalg.qdwh(np.array([[0.0, -2.0], [3.0, 0.0]]))
    >>> np.allclose(u, [[0.0, -1.0], [1.0, 0.0]]), np.allclose(h, [[3.0, 0.0], [0.0, 2.0]]), converged.item()
    (True, True, True)
    """
    aval = aval_of(x)
    shaping.as_flag("qdwh", "is_hermitian", is_hermitian)
    limit = 10 if max_iterations is None else shaping.as_int("qdwh", "max_iterations", max_iterations)
    _check(aval)
    sizes = _sizes(dynamic_shape)
    precision = float(np.finfo(aval.dtype).eps) if eps is None else _precision(eps)
    steps = _weights(precision, limit)
    cheap = [weights[2] <= _LARGEST_FOR_CHOLESKY for weights in steps].count(True)
    weights = np.array(steps).reshape(len(steps), 3).astype(aval.dtype)
    jaxpr = _program(aval, len(steps) - cheap, cheap, limit, precision, tuple([aval_of(size) for size in sizes]))
    u, h, count, converged = lax.xla_call(x, weights, *sizes, jaxpr=jaxpr, name="qdwh")
    return u, h, count, converged


def _check(aval: ShapedArray) -> None:
    matrices("qdwh", [aval], (2,))
    if aval.ndim != 2:
        raise refused("qdwh", "one matrix is taken, not a batch of them", got=str(aval), wanted="two axes",
                      todo="apply cj.vmap to the function, for a batch")
    if aval.shape[0] < aval.shape[1]:
        raise refused("qdwh", "the matrix is wider than high", got=str(aval), wanted="at least as many rows as columns",
                      kind=CorejaxValueError, todo="decompose its adjoint: x^H = u h, so that x = h u^H")


def _precision(eps: Any) -> float:
    if isinstance(eps, (float, np.floating)) and 0.0 < float(eps) < 1.0:
        return float(eps)
    raise refused("qdwh", "eps must be a number between 0 and 1", got=f"eps={eps!r:.80}", wanted="a static float",
                  todo="leave it out for the precision of the dtype",
                  kind=CorejaxValueError if isinstance(eps, (int, float, np.number)) else CorejaxTypeError)


def _sizes(dynamic_shape: Any) -> tuple[Any, ...]:
    if dynamic_shape is None:
        return ()
    if not isinstance(dynamic_shape, (tuple, list)) or len(dynamic_shape) != 2:
        raise refused("qdwh", "dynamic_shape must be a pair", got=f"dynamic_shape={dynamic_shape!r:.80}",
                      wanted="the number of rows and the number of columns", todo="pass (m, n)")
    for size in dynamic_shape:
        aval = aval_of(size)
        if aval.ndim or aval.dtype.kind not in "iu":
            raise refused("qdwh", "dynamic_shape must be a pair of integers", got=f"{size!r:.80}", wanted="an integer",
                          todo="pass (m, n)")
    return tuple(dynamic_shape)


@lru_cache(maxsize=256)
def _program(aval: ShapedArray, by_qr: int, by_cholesky: int, limit: int, eps: float,
             sizes: tuple[ShapedArray, ...]) -> Jaxpr:
    """The program of so many steps of each kind, with their weights as an operand."""
    def program(x: Any, weights: Any, *sizes: Any) -> list[Any]:
        return _polar(x, weights, by_qr, limit, _tolerance(eps), (sizes[0], sizes[1]) if sizes else None)
    return stage(program, [aval, ShapedArray((by_qr + by_cholesky, 3), aval.dtype), *sizes], "qdwh").jaxpr


def _polar(x: Any, weights: Any, by_qr: int, limit: int, tolerance: float, sizes: Sizes) -> list[Any]:
    if sizes is not None:
        x = _masked(x, sizes)
    moved, count = tolerance ** (1.0 / 3.0), weights.shape[0]
    step = partial(_by_cholesky, sizes=sizes)
    u, _ = _steps(weights, range(by_qr), partial(_by_qr, sizes=sizes), _scaled(x), None)
    u, going = _steps(weights, range(by_qr, count), step, u, moved)

    def again(state: Any) -> Any:
        k, u, _ = state
        new = step(u, (3.0, 1.0, 3.0))  # what weights tend to: Halley's method
        return k + 1, new, _norm(new - u) > moved
    number, u, going = lax.while_loop(lambda state: state[2] & (state[0] < limit), again, (count, u, going))
    u = 1.5 * u - 0.5 * product(u, product(adjoint(u), u))  # a step of Newton and Schulz, for the last digits
    h = product(adjoint(u), x)
    return [u, (h + adjoint(h)) / 2, number, ~going]


def _tolerance(eps: float) -> float:
    """How near singular values must come to 1."""
    return 5.0 * eps


def _weights(eps: float, limit: int) -> list[Weights]:
    """The weights of the steps until the lower bound of the singular values is 1, which begins at `eps`."""
    found: list[Weights] = []
    low = eps
    while low + _tolerance(eps) < 1.0 and len(found) < limit:
        square = low * low
        root = (4.0 * (1.0 / square - 1.0) / square) ** (1.0 / 3.0)
        rise = (1.0 + root) ** 0.5
        a = rise + (2.0 - root + 2.0 * (2.0 - square) / (square * rise)) ** 0.5
        b = (a - 1.0) ** 2 / 4.0
        c = a + b - 1.0
        low = low * (a + b * square) / (1.0 + c * square)
        found.append((a, b, c))
    return found


def _steps(weights: Any, places: range, step: Callable[..., Any], u: Any, moved: float | None) -> tuple[Any, Any]:
    """u after these steps, and whether the last one changed it by more than `moved`; True if nobody asks."""
    going = lax.full((), True, np.bool_)
    if not places:
        return u, going

    def body(k: Any, state: Any) -> Any:
        before, going = state
        row = lax.dynamic_index_in_dim(weights, k, keepdims=False)
        after = step(before, (row[0], row[1], row[2]))
        return after, going if moved is None else _norm(after - before) > moved
    after, going = lax.fori_loop(places.start, places.stop, body, (u, going))
    return after, going


def _by_qr(u: Any, weights: Any, *, sizes: Sizes) -> Any:
    a, b, c = weights
    rows, columns = u.shape
    ratio, root = b / c, lax.sqrt(c)
    one = identity(u.dtype, columns)
    if sizes is None:
        q, _ = qr(lax.concatenate([root * u, one], 0), full_matrices=False)
        above, below = q[:rows], q[rows:]
    else:
        padded = lax.pad(root * u, np.zeros((), u.dtype), [(0, columns, 0), (0, 0, 0)])
        q, _ = qr(lax.dynamic_update_slice_in_dim(padded, one, sizes[0], 0), full_matrices=False)
        above = _masked(q[:rows], sizes)
        below = _masked(lax.dynamic_slice_in_dim(q, sizes[0], columns, 0), (sizes[1], sizes[1]))
    return ratio * u + (a - ratio) / root * product(above, adjoint(below))


def _by_cholesky(u: Any, weights: Any, *, sizes: Sizes) -> Any:
    a, b, c = weights
    ratio, one = b / c, identity(u.dtype, u.shape[1])
    x = c * product(adjoint(u), u) + one
    if sizes is not None:
        x = _masked(x, (sizes[1], sizes[1]), one)  # else it would be singular
    lower = cholesky(x, symmetrize_input=False)
    z = conjugate(triangular_solve(lower, swapped(u), left_side=True, lower=True, conjugate_a=True))
    z = triangular_solve(lower, z, left_side=True, lower=True, transpose_a=True, conjugate_a=True)
    return ratio * u + (a - ratio) * adjoint(z)


def _scaled(x: Any) -> Any:
    """x divided by a bound of its largest singular value: the geometric mean of two norms."""
    sizes = lax.abs(x)
    along_columns, along_rows = [lax.max(sizes.sum(axis).max(), np.zeros((), sizes.dtype)) if sizes.size else
                                 lax.full((), 0, sizes.dtype) for axis in (0, 1)]
    inverse = lax.rsqrt(along_columns) * lax.rsqrt(along_rows)
    inverse = lax.select(along_columns == 0, lax.full_like(inverse, 1), inverse)
    return x * lax.convert_element_type(inverse, x.dtype)


def _norm(x: Any) -> Any:
    """The root of the sum of squares."""
    return lax.sqrt((lax.real(x * lax.conj(x)) if is_complex(x) else x * x).sum())


def _masked(x: Any, sizes: tuple[Any, Any], others: Any = None) -> Any:
    """The first elements of each axis; in place of the other ones zeros, or elements of another array."""
    rows, columns = [lax.lt(lax.broadcasted_iota(np.int64, x.shape, axis), lax.convert_element_type(size, np.int64))
                     for axis, size in enumerate(sizes)]
    return lax.select(rows & columns, x, lax.full_like(x, 0) if others is None else others)
