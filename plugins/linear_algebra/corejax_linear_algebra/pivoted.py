"""The LU decomposition with exchanged rows, and permutations from the exchanges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, ShapedArray, Zero, aval_of
from corejax.errors import CorejaxValueError
from corejax.plugin import Sample, define, hookimpl, not_differentiable, not_linear, refused, shaping
from corejax_linear_algebra import _cusolver, _lapack
from corejax_linear_algebra._lapack import no_lowering
from corejax_linear_algebra._matrices import (
    INT32,
    batched_first,
    identity,
    lower_part,
    matrices,
    nan_unless,
    product,
    typed,
    upper_part,
)
from corejax_linear_algebra.triangular import triangular_solve

__all__ = ["lu", "lu_pivots_to_permutation"]


class Lu:
    """`lu(x)`: `(lu, pivots, permutation)` with x[permutation] = l u, of which l has a unit diagonal.

    `lu` has u in its upper triangle and l below. `pivots` says which row each row was exchanged with, one after the
    other; `permutation` is their result.

    >>> factors, pivots, permutation = lax.linalg.lu(np.array([[1.0, 2.0], [4.0, 4.0]]))
    >>> factors.tolist(), pivots.tolist(), permutation.tolist()
    ([[4.0, 4.0], [0.25, 1.0]], [1, 1], [1, 0])
    """

    name = "lu"
    operands = ("x",)
    multiple_results = True
    transpose = not_linear("a decomposition isn't a linear function")

    def function(self, bind: Callable[..., Any]) -> Any:
        def lu(x: ArrayLike) -> tuple[Array, Array, Array]:
            factors, pivots, permutation = bind(x)
            return factors, pivots, permutation
        return lu

    @hookimpl
    def abstract_eval(self, avals: Any) -> Sequence[ShapedArray]:
        (x,) = avals
        batch, [(m, n)] = matrices(self.name, avals, (2,))
        return [x, typed(x, (*batch, min(m, n)), INT32, x.weak_type), typed(x, (*batch, m), INT32, x.weak_type)]

    @hookimpl
    def jvp(self, primals: Any, tangents: Any) -> Any:
        factors, pivots, permutation = outs = lu.primitive.bind(primals[0])
        tangent = _slope(tangents[0], factors, permutation)
        return outs, [tangent, *[Zero(aval_of(out).tangent) for out in (pivots, permutation)]]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any) -> Any:
        return lu.primitive.bind(*batched_first(axis, args, dims)), [0, 0, 0]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any) -> Any:
        if ctx.platform == "cpu":
            return _by_solver(ctx, args, _lapack.call)
        if ctx.platform == "tpu":
            return _lapack.call_compiler(ctx, "LuDecomposition", args, 2)
        raise no_lowering(ctx, "compute it on one of these, or solve by lax.linalg.qr")

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        apart: dict[str, Any] = {"ulps": 1e3}
        whole = {"weak types pass through": "pivots and permutations are integers, whatever is decomposed"}
        for shape in ((2, 2, 3), (3, 2)):
            yield Sample([rng.standard_normal(shape)], **apart)
        yield Sample([rng.standard_normal((2, 2)) + 1j * rng.standard_normal((2, 2))], **apart)
        yield Sample([np.array([[1.0, 2.0], [4.0, 4.0]])], exempt=whole,
                     results=[np.array([[4.0, 4.0], [0.25, 1.0]]), np.array([1, 1], np.int32),
                              np.array([1, 0], np.int32)])
        yield Sample([np.ones((2, 0, 3))])
        yield Sample([np.ones((2, 0))])
        yield Sample([np.ones(2)], error=TypeError)
        yield Sample([np.ones((2, 2), bool)], error=TypeError)


def _slope(x_dot: Any, factors: Any, permutation: Any) -> Any:
    """l tril(s, -1) + triu(s) u, where s = l^-1 x_dot[permutation] u^-1, for l and u completed to square matrices.

    For s = l^-1 l_dot + u_dot u^-1, and l_dot is zero on its diagonal and above it, u_dot below it.
    """
    *batch, m, n = x_dot.shape
    k, dtype = min(m, n), factors.dtype

    def padded(x: Any, rows: tuple[int, int], columns: tuple[int, int]) -> Any:
        zero = np.zeros((), dtype)
        return lax.pad(x, zero, [*[(0, 0, 0)] * len(batch), (*rows, 0), (*columns, 0)])
    below = lower_part(factors[..., :, :k], -1)
    left = padded(below, (0, 0), (0, m - k)) + identity(dtype, m, batch=tuple(batch))
    above = upper_part(factors[..., :k, :])
    right = padded(above, (0, n - k), (0, 0))
    if n > k:
        right = right + padded(identity(dtype, n - k, batch=tuple(batch)), (k, 0), (k, 0))
    inner = triangular_solve(left, rows_of(x_dot, permutation), left_side=True, lower=True, unit_diagonal=True)
    inner = triangular_solve(right, inner, left_side=False, lower=False)
    return product(left, lower_part(inner, -1)) + product(upper_part(inner), right)


def rows_of(x: Any, places: Any) -> Any:
    """The rows of matrices at these places, which each matrix of a batch has of its own."""
    grids = [lax.broadcasted_iota(INT32, places.shape, axis) for axis in range(places.ndim - 1)]
    return x[(*grids, places)]


def lu_solve(factors: Any, permutation: Any, b: Any, *, adjoint: bool = False) -> Any:
    """x with a x = b, or a^H x = b, for a matrix `a` of which this is the LU decomposition."""
    if not adjoint:
        b = triangular_solve(factors, rows_of(b, permutation), left_side=True, lower=True, unit_diagonal=True)
        return triangular_solve(factors, b, left_side=True, lower=False)
    b = triangular_solve(factors, b, left_side=True, lower=False, transpose_a=True, conjugate_a=True)
    b = triangular_solve(factors, b, left_side=True, lower=True, transpose_a=True, conjugate_a=True,
                         unit_diagonal=True)
    places = lax.broadcasted_iota(INT32, permutation.shape, permutation.ndim - 1)
    return rows_of(b, lax.sort((permutation, places), num_keys=1)[1])


lu: Any = define(Lu())


class LuPivotsToPermutation:
    """`lu_pivots_to_permutation(pivots, permutation_size)`: the permutation that a sequence of exchanges makes.

    Row i is exchanged with row `pivots[i]`, one after the other.

    >>> lax.linalg.lu_pivots_to_permutation(np.array([2, 2, 2], np.int32), 4).tolist()
    [2, 0, 1, 3]
    """

    name = "lu_pivots_to_permutation"
    operands = ("pivots",)
    jvp = not_differentiable("integers have no derivatives")
    transpose = not_linear("integers have no derivatives")

    def function(self, bind: Callable[..., Any]) -> Any:
        def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
            size = shaping.as_int("lu_pivots_to_permutation", "permutation_size", permutation_size)
            return bind(pivots, permutation_size=size)  # type: ignore[no-any-return]
        return lu_pivots_to_permutation

    @hookimpl
    def abstract_eval(self, avals: Any, *, permutation_size: int) -> ShapedArray:
        (pivots,) = avals
        batch, [(k,)] = matrices(self.name, avals, (1,), (INT32,))
        if permutation_size < k:
            raise refused(self.name, "a permutation has at least as many entries as there are exchanges",
                          got=f"permutation_size={permutation_size}", wanted=f"at least {k}, for {pivots}",
                          todo="pass the number of rows of the matrix", kind=CorejaxValueError)
        return typed(pivots, (*batch, permutation_size), INT32, pivots.weak_type)

    @hookimpl
    def decompose(self, args: Any, *, permutation_size: int) -> Any:
        (pivots,) = args
        *batch, k = aval_of(pivots).shape
        start = lax.broadcasted_iota(INT32, (*batch, permutation_size), len(batch))
        if not k or not permutation_size:
            return start
        grids = tuple([lax.broadcasted_iota(INT32, (*batch, 1), axis) for axis in range(len(batch))])

        def exchange(i: Any, permutation: Any) -> Any:
            with_row = lax.dynamic_index_in_dim(pivots, i, len(batch))
            row = lax.broadcast_in_dim(lax.convert_element_type(i, INT32), with_row.shape, ())
            # both at once: one after the other, the compiler would copy the permutation before each exchange
            pair, reverse = [lax.concatenate(rows, len(batch)) for rows in ([row, with_row], [with_row, row])]
            found = permutation.at[(*grids, reverse)].get(mode="promise_in_bounds")
            return permutation.at[(*grids, pair)].set(found, mode="promise_in_bounds")
        return lax.fori_loop(np.int32(0), np.int32(k), exchange, start)

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, permutation_size: int) -> Any:
        moved = batched_first(axis, args, dims)
        return lu_pivots_to_permutation.primitive.bind(*moved, permutation_size=permutation_size), 0

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        yield Sample([np.array([2, 2, 2], np.int32)], {"permutation_size": 4},
                     results=np.array([2, 0, 1, 3], np.int32))
        yield Sample([np.array([[1, 1], [0, 2]], np.int32)], {"permutation_size": 3},
                     results=np.array([[1, 0, 2], [0, 2, 1]], np.int32))
        yield Sample([np.zeros(0, np.int32)], {"permutation_size": 2})
        yield Sample([np.zeros(3, np.int32)], {"permutation_size": 2}, error=ValueError)
        yield Sample([np.zeros(3, np.int64)], {"permutation_size": 3}, error=TypeError)


lu_pivots_to_permutation: Any = define(LuPivotsToPermutation())


def _by_solver(ctx: Any, args: Any, call: Callable[..., list[Any]]) -> list[Any]:
    """LU by LAPACK, or by what does the same on GPUs: they count rows from 1."""
    (aval,), (_, pivots_aval, _) = ctx.avals_in, ctx.avals_out
    factors, pivots, status = call(ctx, "getrf", args, [aval], [aval, pivots_aval, _lapack.status_of(aval)], {0: 0})
    rows = aval.shape[-2]

    def finish(factors: Any, pivots: Any, status: Any) -> list[Any]:
        pivots = pivots - np.int32(1)
        permutation = lu_pivots_to_permutation(pivots, rows)
        return [nan_unless(status >= 0, factors), pivots, permutation]
    return list(ctx.lower(finish, factors, pivots, status))


# GPUs

def lu_on_gpu(ctx: Any, args: Any) -> Any:
    """cuSOLVER's function."""
    return _by_solver(ctx, args, _cusolver.call)


def permutation_on_gpu(ctx: Any, args: Any, *, permutation_size: int) -> Any:
    """A function of jaxlib."""
    if not ctx.avals_in[0].size:  # no exchange: every row stays
        (out,) = ctx.avals_out
        return ctx.constant(np.broadcast_to(np.arange(out.shape[-1], dtype=np.int32), out.shape))
    return _cusolver.call_other(ctx, "_lu_pivots_to_permutation", args, ctx.avals_in, ctx.avals_out, columns=False,
                                core=1)[0]


RULES = _cusolver.rules("corejax-linear-algebra", {"lu": lu_on_gpu, "lu_pivots_to_permutation": permutation_on_gpu})
