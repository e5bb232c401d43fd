"""Systems of equations with tridiagonal matrices, of which only three diagonals are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, ShapedArray, aval_of, to_dim
from corejax.plugin import Sample, Zero, define, hookimpl, refused, shaping
from corejax_linear_algebra import _cusolver, _lapack
from corejax_linear_algebra._failures import checked
from corejax_linear_algebra._lapack import no_lowering
from corejax_linear_algebra._matrices import all_weak, batched_first, matrices, typed

__all__ = ["tridiagonal_solve"]


class TridiagonalSolve:
    """`tridiagonal_solve(dl, d, du, b, *, perturb_singular=False)`: x with a x = b, for tridiagonal a.

    `d` is the diagonal of a, `dl` and `du` those below and above, all of one size: dl[i] is a[i, i - 1], du[i] is
    a[i, i + 1]; dl[0] and du[-1] aren't read. If a is singular, x is NaN; with `perturb_singular`, a matrix close to it
    is solved for instead.

    >>> ones, twos = np.ones(3), np.full(3, 2.0)
    >>> lax.linalg.tridiagonal_solve(-ones, twos, -ones, np.array([[1.0], [0.0], [1.0]])).ravel().round(6).tolist()
    [1.0, 1.0, 1.0]
    """

    name = "tridiagonal_solve"
    operands = ("dl", "d", "du", "b")
    symbolic_zeros = True
    not_linear_in = (0, 1, 2)

    def function(self, bind: Callable[..., Any]) -> Any:
        def tridiagonal_solve(dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *,
                              perturb_singular: bool = False) -> Array:
            out = bind(dl, d, du, b, perturb_singular=shaping.as_flag("tridiagonal_solve", "perturb_singular",
                                                                      perturb_singular))
            return checked("tridiagonal_solve", out, b, "a matrix is singular")  # type: ignore[no-any-return]
        return tridiagonal_solve

    @hookimpl
    def abstract_eval(self, avals: Any, *, perturb_singular: bool = False) -> ShapedArray:
        *diagonals, b = avals
        matrices(self.name, diagonals, (1, 1, 1))
        if any([aval.shape != diagonals[0].shape for aval in diagonals]):
            raise refused(self.name, "the diagonals differ in shape", got=diagonals, wanted="one shape",
                          todo="begin dl with an element, and end du with one, that is not read")
        if b.ndim == diagonals[0].ndim and b.shape == diagonals[0].shape:
            raise refused(self.name, "the right side must be a matrix", got=list(avals),
                          wanted="an axis more than the diagonals have", todo="write b[..., None], and [..., 0] after")
        if b.shape[:-1] != diagonals[0].shape:
            raise refused(self.name, "the right side doesn't fit the diagonals", got=list(avals),
                          wanted=f"shape {(*diagonals[0].shape, 'n')}",
                          todo="its rows are as many as the diagonals' elements, its axes before are the same batch")
        matrices(self.name, avals, (1, 1, 1, 2))
        return typed(b, b.shape, b.dtype, all_weak(avals))

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, perturb_singular: bool) -> Any:
        # a x = b, differentiated: a x_dot = b_dot - a_dot x
        *diagonals, _ = primals
        *diagonals_dot, b_dot = tangents
        out = tridiagonal_solve.primitive.bind(*primals, perturb_singular=perturb_singular)
        right = None if type(b_dot) is Zero else b_dot
        if any([type(t) is not Zero for t in diagonals_dot]):
            change = -_times([None if type(t) is Zero else t for t in diagonals_dot], out)
            right = change if right is None else right + change
        return out, tridiagonal_solve.primitive.bind(*diagonals, right, perturb_singular=perturb_singular)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, perturb_singular: bool) -> Any:
        # the other diagonals of the transposed matrix, which begin and end with what isn't read
        dl, d, du, _ = args
        below = lax.concatenate((lax.full_like(du[..., :1], 0), du[..., :-1]), d.ndim - 1)
        above = lax.concatenate((dl[..., 1:], lax.full_like(dl[..., :1], 0)), d.ndim - 1)
        return [None, None, None, tridiagonal_solve.primitive.bind(below, d, above, cotangents,
                                                                   perturb_singular=perturb_singular)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, perturb_singular: bool) -> Any:
        if any([dim is not None for dim in dims[:3]]):
            moved = batched_first(axis, args, dims)
            return tridiagonal_solve.primitive.bind(*moved, perturb_singular=perturb_singular), 0
        # one matrix: the batch becomes further columns
        at = aval_of(args[3]).ndim - 2
        b = to_dim(args[3], dims[3], at + 1, axis.size)
        merged = lax.reshape(b, (*b.shape[:-2], b.shape[-2] * b.shape[-1]))
        out = tridiagonal_solve.primitive.bind(*args[:3], merged, perturb_singular=perturb_singular)
        return lax.reshape(out, b.shape), at + 1

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, perturb_singular: bool) -> Any:
        avals = ctx.avals_in
        if ctx.platform != "cpu":
            return _by_elimination(ctx, args, perturb_singular)
        if perturb_singular:
            return _lapack.call_target(ctx, "tridiagonal_solve_perturbed_ffi", args, avals, ctx.avals_out)[0]
        *_, out, status = _lapack.call(ctx, "gtsv", args, avals, [*avals, _lapack.status_of(avals[3])],
                                       {i: i for i in range(4)})
        return _lapack.where_ok(ctx, status, out)[0]

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def operands(*shape: int, columns: int = 2, imaginary: float = 0.0) -> list[Any]:
            found = [rng.standard_normal(each) + (1j * rng.standard_normal(each) if imaginary else 0.0)
                     for each in (shape, shape, shape, (*shape, columns))]
            found[1] += 4.0
            return found

        apart: dict[str, Any] = {"ulps": 1e3, "atol": 1e-7}
        dl, d, du, b = operands(3)
        dense = np.diag(dl[1:], -1) + np.diag(d) + np.diag(du[:-1], 1)
        yield Sample([dl, d, du, b], {"perturb_singular": False}, results=np.linalg.solve(dense, b), **apart)
        yield Sample(operands(2, 3, columns=1), {"perturb_singular": False}, **apart)
        yield Sample(operands(3), {"perturb_singular": True}, **apart)
        yield Sample(operands(2, imaginary=1.0), {"perturb_singular": False}, **apart)
        yield Sample(operands(0), {"perturb_singular": False})
        yield Sample([np.ones(3)] * 4, {"perturb_singular": False}, error=TypeError)
        yield Sample([np.ones(2), np.ones(3), np.ones(3), np.ones((3, 1))], {"perturb_singular": False},
                     error=TypeError)


def _times(diagonals: Any, x: Any) -> Any:
    """The product of a tridiagonal matrix and others; diagonals that are zero are None."""
    dl, d, du = [None if each is None else lax.expand_dims(each, (each.ndim,)) for each in diagonals]
    zeros = lax.full_like(x[..., :1, :], 0)
    axis = x.ndim - 2
    terms = [] if d is None else [d * x]
    if dl is not None:
        terms.append(lax.concatenate((zeros, dl[..., 1:, :] * x[..., :-1, :]), axis))
    if du is not None:
        terms.append(lax.concatenate((du[..., :-1, :] * x[..., 1:, :], zeros), axis))
    return sum(terms[1:], terms[0])


def _by_elimination(ctx: Any, args: Any, perturb_singular: bool) -> Any:
    """Gauss's elimination without exchanges, down and up, where nobody does it better."""
    if perturb_singular:
        raise no_lowering(ctx, "leave out perturb_singular")
    if not all([aval.size for aval in ctx.avals_in]):
        return args[3]
    return ctx.lower(_eliminated, *args)


def _eliminated(dl: Any, d: Any, du: Any, b: Any) -> Any:
    def first(x: Any) -> Any:  # the axis of equations
        return lax.transpose(x, (d.ndim - 1, *[axis for axis in range(x.ndim) if axis != d.ndim - 1]))

    def down(above: Any, row: Any) -> Any:
        (c, x), (lower, middle, upper, right) = above, row
        pivot = middle - lower * c
        after = upper / pivot, (right - lower[..., None] * x) / pivot[..., None]
        return after, after

    def up(below: Any, row: Any) -> Any:
        c, x = row
        found = x - c[..., None] * below
        return found, found
    rows = [first(x) for x in (dl, d, du, b)]
    zeros = lax.full_like(rows[1][0], 0), lax.full_like(rows[3][0], 0)
    _, eliminated = lax.scan(down, zeros, tuple(rows))
    _, solved = lax.scan(up, zeros[1], eliminated, reverse=True)
    return lax.transpose(solved, (*range(1, d.ndim), 0, d.ndim))


tridiagonal_solve: Any = define(TridiagonalSolve())


# GPUs

def tridiagonal_solve_on_gpu(ctx: Any, args: Any, *, perturb_singular: bool) -> Any:
    """A function of jaxlib, or cuSPARSE's, which wants three equations at least."""
    avals = ctx.avals_in
    if perturb_singular:
        return _cusolver.call_other(ctx, "_tridiagonal_solve_perturbed", args, avals, ctx.avals_out)[0]
    if avals[1].shape[-1] <= 2:
        return _by_elimination(ctx, args, perturb_singular)
    return _cusolver.call_other(ctx, "sparse_gtsv2_ffi", args, avals, ctx.avals_out, {3: 0})[0]


RULES = _cusolver.rules("corejax-linear-algebra", {"tridiagonal_solve": tridiagonal_solve_on_gpu})
