"""The QR decomposition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, ShapedArray, Zero, aval_of
from corejax.plugin import Sample, define, hookimpl, jit, not_linear, shaping
from corejax_linear_algebra._matrices import (
    INT32,
    adjoint,
    batched_first,
    identity,
    lower_part,
    matrices,
    product,
    typed,
    upper_part,
)
from corejax_linear_algebra.householder import check_use_magma, geqp3_p, geqrf_p, householder_product
from corejax_linear_algebra.pivoted import lu, lu_solve
from corejax_linear_algebra.triangular import triangular_solve

__all__ = ["qr"]


#: The types that NumPy decomposes as they are.
_BY_NUMPY = (np.dtype(np.float64), np.dtype(np.complex128))


class Qr:
    """`qr(x, *, pivoting=False, full_matrices=True, use_magma=None)`: a unitary q, an upper triangular r, q r = x.

    With `pivoting`, it is q r = x[..., p], for places p of columns such that the diagonal of r falls; the result is
    `(q, r, p)`. Without `full_matrices`, q has only those columns that count. `use_magma` concerns GPUs alone.

    >>> q, r = lax.linalg.qr(np.array([[3.0, 1.0], [4.0, 2.0]]))
    >>> np.asarray(r).round(6).tolist()
    [[-5.0, -2.2], [0.0, 0.4]]
    """

    name = "qr"
    operands = ("x",)
    multiple_results = True
    transpose = not_linear("a decomposition isn't a linear function")

    def function(self, bind: Callable[..., Any]) -> Any:
        def qr(x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True,
               use_magma: bool | None = None) -> tuple[Array, ...]:
            if type(pivoting) is not bool or type(full_matrices) is not bool:
                pivoting = shaping.as_flag("qr", "pivoting", pivoting)
                full_matrices = shaping.as_flag("qr", "full_matrices", full_matrices)
            return tuple(bind(x, pivoting=pivoting, full_matrices=full_matrices, use_magma=use_magma))
        return qr

    @hookimpl
    def impl(self, args: Any, *, pivoting: bool, full_matrices: bool, use_magma: bool | None) -> Any:
        (x,) = args
        if pivoting or not x.size or x.dtype not in _BY_NUMPY:
            return [np.asarray(out) for out in _compiled(pivoting, full_matrices, use_magma)(x)]
        return list(np.linalg.qr(x, "complete" if full_matrices else "reduced"))

    @hookimpl
    def abstract_eval(self, avals: Any, *, pivoting: bool = False, full_matrices: bool = True,
                      use_magma: bool | None = None) -> Sequence[ShapedArray]:
        (x,) = avals
        batch, [(m, n)] = matrices(self.name, avals, (2,))
        check_use_magma(self.name, use_magma)
        k = m if full_matrices else min(m, n)
        outs = [typed(x, (*batch, *shape), x.dtype, x.weak_type) for shape in ((m, k), (k, n))]
        return [*outs, typed(x, (*batch, n), INT32, x.weak_type)] if pivoting else outs

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, pivoting: bool, full_matrices: bool, use_magma: bool | None) -> Any:
        (x,), (x_dot,) = primals, tangents
        outs = qr.primitive.bind(x, pivoting=pivoting, full_matrices=full_matrices, use_magma=use_magma)
        q, r, *places = outs
        if pivoting:
            x, x_dot = columns_of(x, places[0]), columns_of(x_dot, places[0])
        return outs, [*_slope(x, x_dot, q, r), *[Zero(aval_of(p).tangent) for p in places]]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, pivoting: bool, full_matrices: bool,
             use_magma: bool | None) -> Any:
        outs = qr.primitive.bind(*batched_first(axis, args, dims), pivoting=pivoting, full_matrices=full_matrices,
                                 use_magma=use_magma)
        return outs, [0] * len(outs)

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, pivoting: bool, full_matrices: bool,
                        use_magma: bool | None) -> Any:
        return ctx.lower(lambda x: _decomposed(x, pivoting, full_matrices, use_magma), *args)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def params(word: str, use_magma: bool | None = None) -> dict[str, Any]:
            return {"pivoting": word[0] == "1", "full_matrices": word[1] == "1", "use_magma": use_magma}

        apart: dict[str, Any] = {"ulps": 1e4, "atol": 1e-6}
        for shape, word in [((3, 3), "00"), ((3, 2), "01"), ((2, 2, 3), "00"), ((3, 2), "10"), ((2, 3), "11")]:
            x = rng.standard_normal(shape) + 2.0 * np.eye(shape[-2], shape[-1])
            yield Sample([x], params(word, None if word != "10" else False), **apart)
        yield Sample([rng.standard_normal((2, 2)) + 1j * rng.standard_normal((2, 2))], params("00"), **apart)
        x = rng.standard_normal((3, 2))
        yield Sample([x], params("00"), results=list(np.linalg.qr(x)), **apart)
        yield Sample([np.ones((2, 3, 0))], params("01"),
                     results=[np.broadcast_to(np.eye(3), (2, 3, 3)), np.ones((2, 3, 0))])
        yield Sample([np.ones((0, 2))], params("10"))
        yield Sample([np.ones(2)], params("00"), error=TypeError)
        yield Sample([np.ones((2, 2), int)], params("00"), error=TypeError)


def columns_of(x: Any, places: Any) -> Any:
    """The columns of matrices at these places, which each matrix of a batch has of its own."""
    spread = lax.broadcast_in_dim(places, x.shape, (*range(places.ndim - 1), x.ndim - 1))
    return x[(*[lax.broadcasted_iota(INT32, x.shape, axis) for axis in range(x.ndim - 1)], spread)]


# Values

def _decomposed(x: Any, pivoting: bool, full_matrices: bool, use_magma: bool | None) -> list[Any]:
    """As LAPACK computes it: reflections, then their product."""
    *batch, m, n = x.shape
    if not m or not n:
        k = m if full_matrices else min(m, n)
        outs = [identity(x.dtype, m, k, tuple(batch)), lax.full((*batch, k, n), 0, x.dtype)]
        return [*outs, lax.full((*batch, n), 0, INT32)] if pivoting else outs
    places = []
    if pivoting:
        r, jpvt, taus = geqp3_p.primitive.bind(x, lax.full((*batch, n), 0, INT32), use_magma=use_magma)
        places = [jpvt - np.int32(1)]
    else:
        r, taus = geqrf_p.primitive.bind(x)
    if m < n:
        return [householder_product(r[..., :, :m], taus), upper_part(r), *places]
    if not full_matrices:
        return [householder_product(r, taus), upper_part(r[..., :n, :]), *places]
    wide = lax.pad(r, np.zeros((), x.dtype), [*[(0, 0, 0)] * (len(batch) + 1), (0, m - n, 0)]) if m > n else r
    return [householder_product(wide, taus), upper_part(r), *places]


@cache
def _compiled(pivoting: bool, full_matrices: bool, use_magma: bool | None) -> Any:
    """For eager calls of what NumPy doesn't have."""
    return jit(lambda x: _decomposed(x, pivoting, full_matrices, use_magma))


# Derivatives

def _slope(x: Any, x_dot: Any, q: Any, r: Any) -> list[Any]:
    """The tangents of q and r."""
    m, n = x.shape[-2:]
    if m < n:  # the first columns are a square matrix; the others' part of r is q^H times them
        q_dot, square_dot = _thin_slope(q, r[..., :, :m], x_dot[..., :, :m])
        others = product(adjoint(q_dot), x[..., :, m:]) + product(adjoint(q), x_dot[..., :, m:])
        return [q_dot, lax.concatenate((square_dot, others), x.ndim - 1)]
    if q.shape[-1] == n:
        return list(_thin_slope(q, r, x_dot))
    thin_dot, square_dot = _thin_slope(q[..., :, :n], r[..., :n, :], x_dot)
    zeros = lax.full_like(r[..., n:, :], 0)
    return [lax.concatenate((thin_dot, _completion_slope(q, thin_dot)), x.ndim - 1),
            lax.concatenate((square_dot, zeros), x.ndim - 2)]


def _thin_slope(q: Any, r: Any, x_dot: Any) -> tuple[Any, Any]:
    """The tangents where r is square: those of q stay unitary, those of r triangular with a real diagonal."""
    # q^H x_dot r^-1 = q^H q_dot + r_dot r^-1: a skew matrix and one that is zero below its diagonal, so that what is
    # below is the skew one's. The diagonal of r_dot r^-1 is real.
    in_r = triangular_solve(r, x_dot)  # x_dot r^-1
    inner = product(adjoint(q), in_r)
    below = lower_part(inner, -1)
    turned = below - adjoint(below)
    if inner.dtype.kind == "c":
        imaginary = inner - lax.convert_element_type(lax.real(inner), inner.dtype)
        turned = turned + identity(inner.dtype, inner.shape[-1], batch=inner.shape[:-2]) * imaginary
    return product(q, turned - inner) + in_r, product(inner - turned, r)


def _completion_slope(q: Any, thin_dot: Any) -> Any:
    """The tangent of those columns of q that complete it to a square matrix, as LAPACK makes them.

    They depend on the first n columns, q_n over q_p, by z = q_p (q_n - 1)^-1.
    """
    n = thin_dot.shape[-1]
    thin, others = q[..., :, :n], q[..., :, n:]
    top, bottom = thin[..., :n, :], thin[..., n:, :]
    factors, _, permutation = lu(top - identity(q.dtype, n, batch=q.shape[:-2]))
    z_adjoint = lu_solve(factors, permutation, adjoint(bottom), adjoint=True)
    z = adjoint(z_adjoint)
    turned = thin_dot[..., n:, :] - product(z, thin_dot[..., :n, :])
    return product(thin_dot, z_adjoint) - product(thin + product(others, z), adjoint(turned))


qr: Any = define(Qr())
