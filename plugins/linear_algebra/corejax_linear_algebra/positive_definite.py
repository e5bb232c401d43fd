"""The Cholesky decomposition of positive definite matrices, and its change when one of rank one is added."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, ShapedArray, aval_of
from corejax.plugin import Sample, define, hookimpl, partials, refused, shaping
from corejax_linear_algebra import _cusolver, _host, _lapack
from corejax_linear_algebra._failures import checked
from corejax_linear_algebra._matrices import (
    INEXACT,
    REAL,
    all_weak,
    batched_first,
    check_square,
    hermitian_of_lower,
    identity,
    lower_part,
    matrices,
    mismatch,
    nan_unless,
    product,
    symmetrized,
    typed,
)
from corejax_linear_algebra.triangular import triangular_solve

__all__ = ["cholesky", "cholesky_update"]


class Cholesky:
    """`cholesky(x, *, symmetrize_input=True)`: the lower triangular l with l l^H = x, for positive definite x.

    Without `symmetrize_input`, only the lower triangle of `x` is read; else it is (x + x^H) / 2 that is decomposed. A
    matrix that isn't positive definite gives NaNs, or an error where `cj.config.numerical_failures` is "error".

    >>> lax.linalg.cholesky(np.array([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """

    name = "cholesky"
    operands = ("x",)

    def function(self, bind: Callable[..., Any]) -> Any:
        def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
            if symmetrize_input is not False and shaping.as_flag("cholesky", "symmetrize_input", symmetrize_input):
                aval = aval_of(x)
                if aval.ndim < 2 or aval.shape[-2] != aval.shape[-1]:
                    matrices("cholesky", [aval], (2,), (aval.dtype,))
                    check_square("cholesky", aval)
                x = (x + x.mT.conj()) / 2 if type(x) is np.ndarray and x.dtype in INEXACT else symmetrized(x)
            out: Array = checked("cholesky", bind(x), x, "a matrix isn't positive definite")
            return out
        return cholesky

    @hookimpl
    def impl(self, args: Any) -> Any:
        (x,) = args
        function = _host.function("cholesky_lo", x)
        if function is None:
            return _host.compiled(cholesky.primitive, x, {})[0] if x.size else x
        out = function(x)
        return np.tril(out) if np.isnan(out[..., 0, -1]).any() else out  # the other triangle is 0, even of NaNs

    @hookimpl
    def abstract_eval(self, avals: Any) -> ShapedArray:
        (x,) = avals
        matrices(self.name, avals, (2,))
        check_square(self.name, x)
        return x  # type: ignore[no-any-return]

    jvp = partials(lambda x_dot, out, x: _slope(x_dot, out))

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any) -> Any:
        return cholesky.primitive.bind(*batched_first(axis, args, dims)), 0

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any) -> Any:
        if ctx.platform == "cpu":
            (aval,) = ctx.avals_in
            factor, status = _lapack.call(ctx, "potrf", args, [aval], [aval, _lapack.status_of(aval)], {0: 0},
                                          uplo=_lapack.letter("L"))
            return ctx.lower(_lower_where_ok, factor, status)
        factor = ctx.op("stablehlo.cholesky", args, {"lower": ctx.attribute("true")})
        return ctx.lower(lower_part, factor)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def positive(*shape: int, imaginary: bool = False) -> Any:
            x = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if imaginary else 0.0)
            return x @ np.swapaxes(x, -1, -2).conj() + 2.0 * np.eye(shape[-1])

        apart: dict[str, Any] = {"ulps": 1e3, "exempt": {
            "jvp agrees with complex steps": "the derivative of a Hermitian matrix's factor isn't complex linear"}}
        for shape in ((3, 3), (2, 2, 2)):
            x = positive(*shape)
            yield Sample([x], results=np.linalg.cholesky(x), **apart)
        yield Sample([positive(2, 2, imaginary=True)], **apart)
        failed = np.stack([np.eye(2), -np.eye(2)]).astype(np.float32)  # NaNs have no differences, which are of doubles
        yield Sample([failed], results=np.stack([np.eye(2), np.array([[np.nan, 0.0], [np.nan, np.nan]])]).astype("f4"))
        yield Sample([np.ones((2, 0, 0))])
        yield Sample([np.ones((0, 2, 2), np.float32)])
        yield Sample([np.ones((2, 3))], error=ValueError)
        yield Sample([np.ones(2)], error=TypeError)
        yield Sample([np.ones((2, 2), int)], error=TypeError)


def _lower_where_ok(factor: Any, status: Any) -> Any:
    return lower_part(nan_unless(status == 0, factor))


def _slope(x_dot: Any, factor: Any) -> Any:
    """l P(l^-1 x_dot l^-H), where P halves the diagonal and drops what is above it.

    Of x_dot, the lower triangle counts, and the real part of the diagonal, as of x.
    """
    x_dot = hermitian_of_lower(x_dot)
    inner = triangular_solve(factor, x_dot, left_side=False, transpose_a=True, conjugate_a=True, lower=True)
    inner = lower_part(triangular_solve(factor, inner, left_side=True, lower=True))
    slope = product(factor, inner / (identity(factor.dtype, factor.shape[-1], batch=factor.shape[:-2]) + 1))
    return lower_part(slope)  # zeros above it even where there is no factor


cholesky: Any = define(Cholesky())


class CholeskyUpdate:
    """`cholesky_update(r_matrix, w_vector)`: the upper triangular factor of r^T r + w w^T, where r is upper triangular.

    >>> r = lax.linalg.cholesky_update(np.array([[3.0, 0.0], [0.0, 1.0]]), np.array([4.0, 0.0]))
    >>> r.tolist()
    [[5.0, 0.0], [0.0, 1.0]]
    """

    name = "cholesky_update"
    operands = ("r_matrix", "w_vector")

    @hookimpl
    def abstract_eval(self, avals: Any) -> ShapedArray:
        r, w = avals
        for aval, rank in ((r, 2), (w, 1)):
            if aval.ndim != rank:
                raise refused(self.name, "one matrix and one vector are taken, not batches of them", got=list(avals),
                              wanted="two axes of the first operand, one of the second",
                              todo="apply cj.vmap to the function, for a batch")
        matrices(self.name, avals, (2, 1), REAL)
        check_square(self.name, r, "the first operand")
        if w.shape[0] != r.shape[0]:
            raise mismatch(self.name, "the vector doesn't fit the matrix", [r, w], f"a vector of size {r.shape[0]}",
                           "pass the w of r^T r + w w^T")
        return typed(r, r.shape, r.dtype, all_weak(avals))

    @hookimpl
    def decompose(self, args: Any) -> Any:
        r, w = args
        if not r.size:
            return lax.full_like(r, 0)
        places = lax.iota(np.int32, w.shape[0])
        return lax.scan(_rotate, w, (r, places))[1]

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for size in (3, 1):
            r = np.triu(rng.standard_normal((size, size))) + 3.0 * np.eye(size)
            w = rng.standard_normal(size)
            yield Sample([r, w], results=np.linalg.cholesky(r.T @ r + np.outer(w, w)).T, ulps=1e3)
        yield Sample([np.eye(2), np.array([0.0, 2.0])], results=np.diag([1.0, np.sqrt(5.0)]))
        yield Sample([np.ones((0, 0)), np.ones(0)])
        yield Sample([np.ones((2, 3)), np.ones(3)], error=ValueError)
        yield Sample([np.ones((2, 2)), np.ones(3)], error=ValueError)
        yield Sample([np.ones((2, 2, 2)), np.ones((2, 2))], error=TypeError)
        yield Sample([np.ones((2, 2), complex), np.ones(2, complex)], error=TypeError)


def _rotate(w: Any, row_and_place: Any) -> Any:
    """Rotate a row of r and the vector, so that the vector's element at the row's place becomes zero."""
    row, place = row_and_place
    x, y = [lax.dynamic_index_in_dim(v, place, 0, keepdims=False) for v in (row, w)]
    nothing, one = y == 0, lax.full_like(x, 1)
    # nothing to rotate: the series of both, for derivatives; in either branch, numbers that the other one can't use
    slope = lax.select(nothing, y / lax.select(x == 0, one, x), lax.full_like(y, 0))
    some = lax.select(nothing, one, y)
    largest = lax.max(lax.abs(x), lax.abs(some))
    x, some = x / largest, some / largest
    shrink = 1 / lax.sqrt(x * x + some * some)
    cosine = lax.select(nothing, 1 - slope * slope / 2, x * shrink)
    sine = lax.select(nothing, -slope, -some * shrink)
    return cosine * w + sine * row, cosine * row - sine * w


cholesky_update: Any = define(CholeskyUpdate())


# GPUs

def cholesky_on_gpu(ctx: Any, args: Any) -> Any:
    """cuSOLVER's function."""
    (aval,) = ctx.avals_in
    factor, status = _cusolver.call(ctx, "potrf", args, [aval], [aval, _lapack.status_of(aval)], {0: 0}, lower=True)
    return ctx.lower(_lower_where_ok, factor, status)


def update_on_cuda(ctx: Any, args: Any) -> Any:
    """A function of jaxlib."""
    avals = ctx.avals_in
    return _cusolver.call_other(ctx, "_cholesky_update_ffi", args, avals, avals, {0: 0, 1: 1}, columns=False)[0]


_OWN = "corejax-linear-algebra"
RULES = {**_cusolver.rules(_OWN, {"cholesky": cholesky_on_gpu}),
         f"{_OWN}/cholesky_update:xla_translation@cuda": update_on_cuda}
