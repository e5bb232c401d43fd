"""Singular values and singular vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, ShapedArray, aval_of
from corejax.errors import CorejaxNotImplementedError, CorejaxValueError
from corejax.plugin import Sample, define, hookimpl, not_linear, refused, shaping
from corejax_linear_algebra import _cusolver, _host, _lapack
from corejax_linear_algebra._failures import checked
from corejax_linear_algebra._finite import finite_or_zero, status_if
from corejax_linear_algebra._matrices import (
    adjoint,
    all_weak,
    batched_first,
    diagonal,
    is_complex,
    matrices,
    on_diagonal,
    product,
    real_dtype,
    reciprocal_gaps,
    rows_and_columns,
    typed,
)
from corejax_linear_algebra._subsets import canonical_subset, check_choice, check_subset

__all__ = ["SvdAlgorithm", "svd"]


class SvdAlgorithm(Enum):
    """How svd computes.

    On CPUs, `QR` is LAPACK's gesvd, `DEFAULT` and `DIVIDE_AND_CONQUER` its gesdd. On GPUs, `QR` is gesvd, `JACOBI`
    gesvdj (also the default up to 1024 rows and columns), `POLAR` gesvdp, `DIVIDE_AND_CONQUER` gesdd of AMD's.

    >>> lax.linalg.svd(np.eye(2), compute_uv=False, algorithm=lax.linalg.SvdAlgorithm.QR).tolist()
    [1.0, 1.0]
    """

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


class SVD:
    """`svd(x, *, full_matrices=True, compute_uv=True, subset_by_index=None, algorithm=None)`: singular values.

    `(u, s, vh)` such that x = u diag(s) vh, with orthonormal columns u and rows vh, and falling s; with
    `full_matrices`, u and vh are square. Only s without `compute_uv`. NaN where LAPACK finds no solution;
    an error where `cj.config.numerical_failures` is "error". `subset_by_index` must be all of them.

    >>> u, s, vh = lax.linalg.svd(np.array([[0.0, 2.0], [-3.0, 0.0], [0.0, 0.0]]), full_matrices=False)
    >>> s, (u * s @ vh).tolist()
    (Array([3., 2.], dtype=float64), [[0.0, 2.0], [-3.0, 0.0], [0.0, 0.0]])
    """

    name = "svd"
    operands = ("x",)
    multiple_results = True
    transpose = not_linear("singular values and vectors aren't linear functions of a matrix")

    def function(self, bind: Callable[..., Any]) -> Any:
        def svd(x: ArrayLike, *, full_matrices: bool = True, compute_uv: bool = True,
                subset_by_index: tuple[int, int] | None = None,
                algorithm: SvdAlgorithm | None = None) -> Array | tuple[Array, Array, Array]:
            vectors = shaping.as_flag("svd", "compute_uv", compute_uv)
            outs = bind(x, full_matrices=shaping.as_flag("svd", "full_matrices", full_matrices), compute_uv=vectors,
                        subset_by_index=canonical_subset("svd", subset_by_index), algorithm=algorithm)
            checked("svd", outs[0], x, "LAPACK found no singular values of a matrix", core=1)
            if not vectors:
                return outs[0]  # type: ignore[no-any-return]
            s, u, vh = outs
            return u, s, vh
        return svd

    @hookimpl
    def impl(self, args: Any, *, full_matrices: bool, compute_uv: bool, algorithm: SvdAlgorithm | None,
             **params: Any) -> Any:
        (x,) = args
        function = _host.function("svd" if not compute_uv else "svd_f" if full_matrices else "svd_s", x)
        if function is None or algorithm not in _DIVIDING or not np.isfinite(x).all():
            return _host.compiled(svd.primitive, x, {"full_matrices": full_matrices, "compute_uv": compute_uv,
                                                     "algorithm": algorithm, **params})
        if not compute_uv:
            return [function(x)]
        u, s, vh = function(x)
        return s, u, vh

    @hookimpl
    def abstract_eval(self, avals: Any, *, full_matrices: bool, compute_uv: bool,
                      subset_by_index: tuple[int, int] | None, algorithm: SvdAlgorithm | None
                      ) -> Sequence[ShapedArray]:
        (x,) = avals
        batch, ((m, n),) = matrices(self.name, avals, (2,))
        k, weak = min(m, n), all_weak(avals)
        check_choice(self.name, "algorithm", algorithm, SvdAlgorithm)
        if full_matrices and subset_by_index not in (None, (0, k)):
            raise refused(self.name, "there is no part of full matrices", kind=CorejaxValueError,
                          got=f"full_matrices=True, subset_by_index={subset_by_index}", wanted="one of the two",
                          todo="pass full_matrices=False")
        check_subset(self.name, subset_by_index, k, "singular values")
        s = typed(x, (*batch, k), real_dtype(x.dtype), weak)
        if not compute_uv:
            return (s,)
        return s, *[typed(x, aval.shape, x.dtype, weak) for aval in _vectors(x, full_matrices)]

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, full_matrices: bool, compute_uv: bool, **params: Any) -> Any:
        (x,), (x_dot,) = primals, tangents
        m, n = x.shape[-2:]
        if compute_uv and full_matrices and m != n:
            raise _no_full_derivative(aval_of(x))
        s, u, vh = svd.primitive.bind(x, full_matrices=False, compute_uv=True, **params)
        inner = product(product(adjoint(u), x_dot), adjoint(vh))
        s_dot = diagonal(lax.real(inner) if is_complex(inner) else inner)
        if not compute_uv:
            return (s,), (s_dot,)
        return (s, u, vh), (s_dot, *_turned(x_dot, s, u, vh, inner))

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, compute_uv: bool, **params: Any) -> Any:
        outs = svd.primitive.bind(*batched_first(axis, args, dims), compute_uv=compute_uv, **params)
        return outs, [0] * len(outs)

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, full_matrices: bool, compute_uv: bool,
                        algorithm: SvdAlgorithm | None) -> Any:
        if ctx.platform != "cpu":
            raise _lapack.no_lowering(ctx, "compile for a CPU or a GPU")
        (aval,) = ctx.avals_in
        if not aval.shape[-1] or not aval.shape[-2]:
            return _without_values(ctx, full_matrices)
        if algorithm in (SvdAlgorithm.JACOBI, SvdAlgorithm.POLAR):
            raise _not_there(ctx, algorithm, f"{SvdAlgorithm.QR} or {SvdAlgorithm.DIVIDE_AND_CONQUER}", "a GPU")
        s = ctx.avals_out[0]
        x, finite = finite_or_zero(ctx, args[0])
        _, *found, status = _lapack.call(
            ctx, "gesvd" if algorithm is SvdAlgorithm.QR else "gesdd", [x], ctx.avals_in,
            [aval, s, *_vectors(aval, full_matrices), _lapack.status_of(aval)], {0: 0},
            mode=_lapack.letter("N" if not compute_uv else "A" if full_matrices else "S"))
        return _lapack.where_ok(ctx, status_if(ctx, finite, status), *found[:len(ctx.avals_out)])

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def params(full: bool = False, vectors: bool = True, algorithm: Any = None, subset: Any = None
                   ) -> dict[str, Any]:
            return {"full_matrices": full, "compute_uv": vectors, "subset_by_index": subset, "algorithm": algorithm}

        def apart(*shape: int) -> Any:  # with singular values that are far from each other, and from zero
            size = min(shape[-2:])
            u, v = [np.linalg.qr(rng.standard_normal((*shape[:-2], m, size)))[0] for m in shape[-2:]]
            return u * (np.arange(size) * 2.0 + 1.0 + rng.random(size)) @ np.swapaxes(v, -1, -2)

        phases = {name: "that of vectors whose phases stay; LAPACK's phases depend on the matrix" for name in (
            "derivative", "second derivatives agree with differences", "hessians are symmetric",
            "orderings to depth two agree", "third derivatives agree with differences",
            "orderings to depth three agree")}
        real = {"derivative": "complex vectors, which are also tried, have phases that depend on the matrix"}
        yield Sample([apart(3, 3)], params(True), exempt=real)
        yield Sample([apart(3, 2)], params(algorithm=SvdAlgorithm.QR, subset=(0, 2)), exempt=real)
        yield Sample([apart(2, 2, 3)], params(True, False, SvdAlgorithm.DIVIDE_AND_CONQUER))
        yield Sample([apart(2, 2) + 1j * rng.standard_normal((2, 2))], params(), exempt=phases)
        yield Sample([np.diag([-2.0, 3.0])], params(vectors=False), results=[np.array([3.0, 2.0])])
        yield Sample([np.zeros((2, 0, 3))], params())
        yield Sample([np.ones(3)], params(), error=TypeError)
        yield Sample([np.ones((2, 2), int)], params(), error=TypeError)
        yield Sample([np.ones((2, 2))], params(subset=(0, 1)), error=NotImplementedError)
        yield Sample([np.ones((2, 2))], params(True, subset=(0, 1)), error=ValueError)


#: The algorithms that are LAPACK's gesdd on CPUs.
_DIVIDING = (None, SvdAlgorithm.DEFAULT, SvdAlgorithm.DIVIDE_AND_CONQUER)

svd: Any = define(SVD())


def _vectors(aval: ShapedArray, full_matrices: bool) -> list[ShapedArray]:
    """The types of u and vh."""
    *batch, m, n = aval.shape
    k = min(m, n)
    return [aval.update(shape=(*batch, m, m if full_matrices else k), weak_type=False),
            aval.update(shape=(*batch, n if full_matrices else k, n), weak_type=False)]


# Derivatives

def _turned(x_dot: Any, s: Any, u: Any, vh: Any, inner: Any) -> tuple[Any, Any]:
    """The tangents of u and vh, as they turn within the spaces that they span, and out of these."""
    dtype = aval_of(x_dot).dtype
    rows, columns, gaps = [lax.convert_element_type(x, dtype) for x in (*rows_and_columns(s), reciprocal_gaps(s, True))]
    # With v^H v = u^H u = 1, u^H u_dot and v^H v_dot are skew. Off their diagonals they solve
    # inner = u^H u_dot s - s v^H v_dot, and its adjoint: two equations with the gaps s[j]^2 - s[i]^2.
    by_columns, by_rows = columns * inner, rows * inner
    absent = lax.convert_element_type(s == 0, s.dtype)
    inverse = lax.convert_element_type(on_diagonal(1 / (s + absent) - absent), dtype)
    # On the diagonal only the difference of the two is known; u takes all of it, so that v's phase stays.
    u_dot = product(u, gaps * (by_columns + adjoint(by_columns)) + 0.5 * (inner - adjoint(inner)) * inverse)
    v = adjoint(vh)
    v_dot = product(v, gaps * (by_rows + adjoint(by_rows)))
    m, n = x_dot.shape[-2:]
    if m > n:
        u_dot = u_dot + _outside(product(x_dot, v), u, s)
    if n > m:
        v_dot = v_dot + _outside(product(adjoint(x_dot), u), v, s)
    return u_dot, adjoint(v_dot)


def _outside(moved: Any, basis: Any, s: Any) -> Any:
    """How columns leave the space that they span: the part of `moved` that is orthogonal to it, divided by s."""
    *batch, _ = s.shape
    out = moved - product(basis, product(adjoint(basis), moved))
    spread = lax.broadcast_in_dim(s, out.shape, (*range(len(batch)), len(batch) + 1))
    return out / lax.convert_element_type(spread, out.dtype)


def _no_full_derivative(aval: ShapedArray) -> Exception:
    return refused("svd", "full matrices of singular vectors have no derivative: those beyond the singular values are "
                   "any that complete the others", kind=CorejaxNotImplementedError,
                   got=f"{aval} with full_matrices=True", todo="pass full_matrices=False",
                   wanted="square matrices, or full_matrices=False, or compute_uv=False")


# Lowerings

def _without_values(ctx: Any, full_matrices: bool) -> list[Any]:
    """The results for matrices without elements: identities, where full matrices have a size."""
    def result(aval: ShapedArray) -> Any:
        if not full_matrices or not aval.size:
            return ctx.constant(np.zeros(aval.shape, aval.dtype))
        return ctx.constant(np.broadcast_to(np.eye(aval.shape[-1], dtype=aval.dtype), aval.shape))
    s, *vectors = ctx.avals_out
    return [ctx.constant(np.zeros(s.shape, s.dtype)), *map(result, vectors)]


def _not_there(ctx: Any, algorithm: SvdAlgorithm, instead: str, platform: str) -> Exception:
    return refused("svd", f"{algorithm} is not there for {ctx.platform}", got=f"algorithm={algorithm}",
                   wanted=f"None, {instead}", kind=CorejaxNotImplementedError,
                   todo=f"leave algorithm out, or compile for {platform}")


def _gpu_algorithm(ctx: Any, algorithm: SvdAlgorithm | None, m: int, n: int) -> SvdAlgorithm:
    """What DEFAULT means for matrices of this size; and whether the platform has the algorithm."""
    if algorithm in (None, SvdAlgorithm.DEFAULT):
        return SvdAlgorithm.JACOBI if max(m, n) <= _JACOBI_UP_TO else SvdAlgorithm.QR
    if algorithm is SvdAlgorithm.DIVIDE_AND_CONQUER and ctx.platform != "rocm":
        raise _not_there(ctx, algorithm, "any other algorithm", "an AMD GPU or a CPU")
    return algorithm


def on_gpu(ctx: Any, args: Any, *, full_matrices: bool, compute_uv: bool, algorithm: SvdAlgorithm | None) -> Any:
    """The functions of cuSOLVER and hipSOLVER; a wide matrix is transposed for gesvd, which takes none."""
    (aval,) = ctx.avals_in
    *batch, m, n = aval.shape
    if not m or not n:
        return _without_values(ctx, full_matrices)
    chosen = _gpu_algorithm(ctx, algorithm, m, n)
    if chosen in (SvdAlgorithm.JACOBI, SvdAlgorithm.POLAR):
        return _on_gpu_with_v(ctx, args, full_matrices, compute_uv, chosen)
    by_rows = m < n and chosen is SvdAlgorithm.QR
    vectors = _vectors(aval, full_matrices) if compute_uv else [typed(aval, (), aval.dtype)] * 2
    _, s, *found, status = _cusolver.call(
        ctx, "gesvd" if chosen is SvdAlgorithm.QR else "gesdd", args, [aval],
        [aval, ctx.avals_out[0], *vectors[::-1 if by_rows else 1], _lapack.status_of(aval)], {0: 0},
        columns=not by_rows, full_matrices=full_matrices, compute_uv=compute_uv, transposed=by_rows)
    outs = [s, *found[::-1 if by_rows else 1]] if compute_uv else [s]
    return _lapack.where_ok(ctx, status, *outs)


def _on_gpu_with_v(ctx: Any, args: Any, full_matrices: bool, compute_uv: bool, algorithm: SvdAlgorithm) -> Any:
    """gesvdj and gesvdp, which compute v rather than its adjoint, and all of its columns where matrices are small."""
    (aval,) = ctx.avals_in
    *batch, m, n = aval.shape
    k, jacobi = min(m, n), algorithm is SvdAlgorithm.JACOBI
    reduced = not full_matrices and (not jacobi or k > _BATCHED_UP_TO)
    vectors = [typed(aval, (*batch, size, k if reduced else size), aval.dtype) for size in (m, n)]
    _, s, u, v, status = _cusolver.call(
        ctx, "gesvdj" if jacobi else "gesvdp", args, [aval],
        [aval, ctx.avals_out[0], *vectors, _lapack.status_of(aval)], {0: 0},
        full_matrices=not reduced, compute_uv=compute_uv)
    if not compute_uv:
        return _lapack.where_ok(ctx, status, s)
    size = n if full_matrices else k
    vh = ctx.lower(lambda v: adjoint(v)[..., :size, :], v)
    return _lapack.where_ok(ctx, status, s, ctx.lower(lambda u: u[..., :m if full_matrices else k], u), vh)


#: Up to this many rows and columns, Jacobi's method is the default; and gesvdj computes batches at once, in full.
_JACOBI_UP_TO, _BATCHED_UP_TO = 1024, 32

RULES = _cusolver.rules("corejax-linear-algebra", {"svd": on_gpu})
