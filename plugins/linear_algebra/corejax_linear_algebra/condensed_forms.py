"""Square matrices in forms with many zeros, similar to them by unitary matrices: Schur's, Hessenberg's, tridiagonal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from corejax.core import Array, ArrayLike, ShapedArray
from corejax.errors import CorejaxNotImplementedError
from corejax.plugin import Sample, define, hookimpl, not_differentiable, not_linear, refused, shaping
from corejax_linear_algebra import _cusolver, _lapack
from corejax_linear_algebra._failures import checked
from corejax_linear_algebra._finite import finite_or_zero, status_if
from corejax_linear_algebra._matrices import (
    all_weak,
    batched_first,
    check_square,
    is_complex,
    matrices,
    mismatch,
    real_dtype,
    typed,
)

__all__ = ["hessenberg", "schur", "tridiagonal"]

_NOT_LINEAR = "reflections that make zeros aren't linear functions of a matrix"


class Schur:
    """`schur(x, *, compute_schur_vectors=True, sort_eig_vals=False, select_callable=None)`: a triangular form.

    `[t, z]` with x = z t z^H, where z is unitary and t upper triangular; if x is real, t has blocks of 2 by 2 on its
    diagonal, for pairs of complex eigenvalues. Only `[t]` without `compute_schur_vectors`. NaN where LAPACK fails.
    Eigenvalues can't be sorted: `sort_eig_vals` must be false, and `select_callable` is not called.

    >>> t, z = lax.linalg.schur(np.array([[1.0, 2.0], [0.0, 3.0]]))
    >>> t.tolist(), z.tolist()
    ([[1.0, 2.0], [0.0, 3.0]], [[1.0, 0.0], [0.0, 1.0]])
    """

    name = "schur"
    operands = ("x",)
    multiple_results = True
    jvp = not_differentiable("nobody has written the derivative of a Schur form, which isn't unique")
    transpose = not_linear(_NOT_LINEAR)

    def function(self, bind: Callable[..., Any]) -> Any:
        def schur(x: ArrayLike, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False,
                  select_callable: Callable[..., Any] | None = None) -> list[Array]:
            outs = bind(x, select_callable=select_callable, compute_schur_vectors=shaping.as_flag(
                "schur", "compute_schur_vectors", compute_schur_vectors),
                sort_eig_vals=shaping.as_flag("schur", "sort_eig_vals", sort_eig_vals))
            checked("schur", outs[0], x, "LAPACK found no Schur form of a matrix")
            return list(outs)
        return schur

    @hookimpl
    def abstract_eval(self, avals: Any, *, compute_schur_vectors: bool, sort_eig_vals: bool,
                      select_callable: Callable[..., Any] | None) -> Sequence[ShapedArray]:
        (x,) = avals
        matrices(self.name, avals, (2,))
        check_square(self.name, x)
        if sort_eig_vals:
            raise refused(self.name, "eigenvalues can't be sorted: LAPACK would call a function to choose among them",
                          got="sort_eig_vals=True", wanted="sort_eig_vals=False", kind=CorejaxNotImplementedError,
                          todo="read the eigenvalues from the diagonal; or use scipy.linalg.schur(x, sort=...)")
        if select_callable is not None and not callable(select_callable):
            raise refused(self.name, "select_callable must be a function", got=f"select_callable={select_callable!r}",
                          wanted="None, or a function", todo="leave it out: eigenvalues aren't sorted")
        return [x, x] if compute_schur_vectors else [x]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, compute_schur_vectors: bool, **params: Any) -> Any:
        outs = schur.primitive.bind(*batched_first(axis, args, dims), compute_schur_vectors=compute_schur_vectors,
                                    **params)
        return outs, [0] * len(outs)

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, compute_schur_vectors: bool) -> Any:
        if ctx.platform != "cpu":
            raise _lapack.no_lowering(ctx, "compute it on the CPU: cj.jit(f, backend='cpu')")
        (aval,) = ctx.avals_in
        values = [typed(aval, aval.shape[:-1], aval.dtype)] * (1 if is_complex(aval) else 2)
        status = _lapack.status_of(aval)
        x, finite = finite_or_zero(ctx, args[0])
        form, vectors, *_, failed = _lapack.call(
            ctx, "gees", [x], ctx.avals_in, [aval, aval, *values, status, status], {0: 0},
            mode=_lapack.letter("V" if compute_schur_vectors else "N"), sort=_lapack.letter("N"))
        return _lapack.where_ok(ctx, status_if(ctx, finite, failed), *[form, vectors][:len(ctx.avals_out)])

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def params(vectors: bool = True, sort: bool = False, select: Any = None) -> dict[str, Any]:
            return {"compute_schur_vectors": vectors, "sort_eig_vals": sort, "select_callable": select}

        whatever = {"each param has two values": "select_callable is a function of the user's, which nobody calls"}
        for shape in ((2, 2, 2), (1, 1), (2, 0, 0)):
            yield Sample([rng.standard_normal(shape)], params(), exempt=whatever)
        yield Sample([rng.standard_normal((2, 2))], params(False))
        yield Sample([rng.standard_normal((2, 2)) + 1j * rng.standard_normal((2, 2))], params())
        yield Sample([np.array([[1.0, 2.0], [0.0, 3.0]])], params(), results=[np.array([[1.0, 2.0], [0.0, 3.0]]),
                                                                             np.eye(2)])
        yield Sample([np.ones((2, 3))], params(), error=ValueError)
        yield Sample([np.ones((2, 2), int)], params(), error=TypeError)
        yield Sample([np.ones((2, 2))], params(sort=True), error=NotImplementedError)


schur: Any = define(Schur())


class Hessenberg:
    """`hessenberg(a)`: `(h, taus)`, a matrix reduced to zeros below its first subdiagonal, in LAPACK's storage.

    The upper Hessenberg form is in h's upper triangle and first subdiagonal. Below them are the vectors of the
    reflections that lead to it, and `taus` has their factors: `householder_product(h[1:, :-1], taus)` is the unitary
    matrix of all rows and columns but the first.

    >>> h, taus = lax.linalg.hessenberg(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> h.tolist(), taus.tolist()
    ([[1.0, 2.0], [3.0, 4.0]], [0.0])
    """

    name = "hessenberg"
    operands = ("a",)
    multiple_results = True
    jvp = not_differentiable("nobody has written the derivative of the reduction to Hessenberg form")
    transpose = not_linear(_NOT_LINEAR)

    @hookimpl
    def abstract_eval(self, avals: Any) -> Sequence[ShapedArray]:
        (a,) = avals
        batch, ((size, _),) = matrices(self.name, avals, (2,))
        check_square(self.name, a)
        if not size:
            raise _nothing_to_reduce(self.name, a)
        return a, typed(a, (*batch, size - 1), a.dtype, all_weak(avals))

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any) -> Any:
        return hessenberg.primitive.bind(*batched_first(axis, args, dims)), (0, 0)

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any) -> Any:
        if ctx.platform != "cpu":
            raise _lapack.no_lowering(ctx, "compute it on the CPU: cj.jit(f, backend='cpu')")
        (aval,) = ctx.avals_in
        *found, status = _lapack.call(
            ctx, "gehrd", args, ctx.avals_in, [*ctx.avals_out, _lapack.status_of(aval)], {0: 0},
            low=np.int32(1), high=np.int32(aval.shape[-1]))
        return _lapack.where_ok(ctx, status, *found)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for shape in ((3, 3), (2, 4, 4), (1, 1), (0, 2, 2)):
            yield Sample([rng.standard_normal(shape)])
        yield Sample([rng.standard_normal((3, 3)) + 1j * rng.standard_normal((3, 3))])
        reduced = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [0.0, 7.0, 8.0]])
        yield Sample([reduced], results=[reduced, np.zeros(2)])
        yield Sample([np.ones((2, 3))], error=ValueError)
        yield Sample([np.ones((0, 0))], error=ValueError)
        yield Sample([np.ones((2, 2), int)], error=TypeError)


hessenberg: Any = define(Hessenberg())


class Tridiagonal:
    """`tridiagonal(a, *, lower=True)`: `(a, d, e, taus)`, a Hermitian matrix reduced to three diagonals, by LAPACK.

    `d` is the real main diagonal, `e` the one beside it. They are also in the resulting matrix, together with the
    vectors of the reflections that lead there, below the subdiagonal (above the superdiagonal without `lower`);
    `taus` has the factors of these. Only the triangle that `lower` names is read.

    >>> _, d, e, _ = lax.linalg.tridiagonal(np.array([[1.0, 2.0], [2.0, 3.0]]))
    >>> d.tolist(), e.tolist()
    ([1.0, 3.0], [2.0])
    """

    name = "tridiagonal"
    operands = ("a",)
    multiple_results = True
    jvp = not_differentiable("nobody has written the derivative of the reduction to tridiagonal form")
    transpose = not_linear(_NOT_LINEAR)

    def function(self, bind: Callable[..., Any]) -> Any:
        def tridiagonal(a: ArrayLike, *, lower: bool = True) -> tuple[Array, Array, Array, Array]:
            reduced, d, e, taus = bind(a, lower=shaping.as_flag("tridiagonal", "lower", lower))
            return reduced, d, e, taus
        return tridiagonal

    @hookimpl
    def abstract_eval(self, avals: Any, *, lower: bool) -> Sequence[ShapedArray]:
        (a,) = avals
        batch, ((size, _),) = matrices(self.name, avals, (2,))
        check_square(self.name, a)
        if not size:
            raise _nothing_to_reduce(self.name, a)
        weak, real = all_weak(avals), real_dtype(a.dtype)
        return (a, typed(a, (*batch, size), real, weak), typed(a, (*batch, size - 1), real, weak),
                typed(a, (*batch, size - 1), a.dtype, weak))

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, lower: bool) -> Any:
        return tridiagonal.primitive.bind(*batched_first(axis, args, dims), lower=lower), (0,) * 4

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, lower: bool) -> Any:
        if ctx.platform != "cpu":
            raise _lapack.no_lowering(ctx, "compile for a CPU or a GPU")
        (aval,) = ctx.avals_in
        *found, status = _lapack.call(
            ctx, "hetrd" if is_complex(aval) else "sytrd", args, ctx.avals_in,
            [*ctx.avals_out, _lapack.status_of(aval)], {0: 0}, uplo=_lapack.letter("L" if lower else "U"))
        return _lapack.where_ok(ctx, status, *found)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def hermitian(*shape: int) -> Any:
            x = rng.standard_normal(shape)
            return x + np.swapaxes(x, -1, -2)

        for shape, lower in (((3, 3), True), ((2, 4, 4), False), ((1, 1), True), ((0, 2, 2), True)):
            yield Sample([hermitian(*shape)], {"lower": lower})
        yield Sample([hermitian(3, 3) + 1j * np.triu(np.ones((3, 3)), 1) - 1j * np.tril(np.ones((3, 3)), -1)],
                     {"lower": True})
        yield Sample([np.array([[1.0, 9.0], [2.0, 3.0]])], {"lower": True}, results=[
            np.array([[1.0, 9.0], [2.0, 3.0]]), np.array([1.0, 3.0]), np.array([2.0]), np.zeros(1)])
        yield Sample([np.ones((2, 3))], {"lower": True}, error=ValueError)
        yield Sample([np.ones((0, 0))], {"lower": True}, error=ValueError)
        yield Sample([np.ones((2, 2), int)], {"lower": True}, error=TypeError)


tridiagonal: Any = define(Tridiagonal())


def _nothing_to_reduce(name: str, aval: ShapedArray) -> Exception:
    return mismatch(name, "there is nothing to reduce", [aval], "matrices of at least one row",
                    "test the shape, which is static, first")


def tridiagonal_on_gpu(ctx: Any, args: Any, *, lower: bool) -> Any:
    """cuSOLVER's sytrd, of real and of complex matrices."""
    (aval,) = ctx.avals_in
    *found, status = _cusolver.call(
        ctx, "sytrd", args, ctx.avals_in, [*ctx.avals_out, _lapack.status_of(aval)], {0: 0}, lower=lower)
    return _lapack.where_ok(ctx, status, *found)


RULES = _cusolver.rules("corejax-linear-algebra", {"tridiagonal": tridiagonal_on_gpu})
