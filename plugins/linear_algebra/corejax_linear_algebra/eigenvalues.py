"""Eigenvalues and eigenvectors of Hermitian matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, ShapedArray, aval_of
from corejax.errors import CorejaxNotImplementedError
from corejax.plugin import Sample, define, hookimpl, not_linear, refused, shaping
from corejax_linear_algebra import _cusolver, _host, _lapack
from corejax_linear_algebra._failures import checked
from corejax_linear_algebra._matrices import (
    adjoint,
    all_weak,
    batched_first,
    check_square,
    diagonal,
    is_complex,
    matrices,
    product,
    real_dtype,
    reciprocal_gaps,
    symmetrized,
    typed,
)
from corejax_linear_algebra._subsets import canonical_subset, check_choice, check_subset

__all__ = ["EighImplementation", "eigh"]


class EighImplementation(Enum):
    """How eigh computes: `QR` everywhere, `JACOBI` on GPUs, `QDWH` on TPUs.

    >>> lax.linalg.eigh(np.diag([3.0, 2.0]), implementation=lax.linalg.EighImplementation.QR)[1].tolist()
    [2.0, 3.0]
    """

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class Eigh:
    """`eigh(x, *, lower=True, symmetrize_input=True, sort_eigenvalues=True, ...)`: eigenvalues of Hermitian matrices.

    The eigenvectors and eigenvalues `(v, w)`: x v = v w, with orthonormal columns v and rising w.
    Without `symmetrize_input`, only the triangle that `lower` names is read, and derivatives are those of a
    function of Hermitian matrices. Eigenvalues are sorted whatever `sort_eigenvalues` says, and `subset_by_index` must
    be all of them. NaN where LAPACK finds no solution; an error where `cj.config.numerical_failures` is "error".

    >>> v, w = lax.linalg.eigh(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> w
    Array([1., 3.], dtype=float64)
    """

    name = "eigh"
    operands = ("x",)
    multiple_results = True
    transpose = not_linear("eigenvalues and eigenvectors aren't linear functions of a matrix")

    def function(self, bind: Callable[..., Any]) -> Any:
        def eigh(x: ArrayLike, *, lower: bool = True, symmetrize_input: bool = True, sort_eigenvalues: bool = True,
                 subset_by_index: tuple[int, int] | None = None,
                 implementation: EighImplementation | None = None) -> tuple[Array, Array]:
            if shaping.as_flag("eigh", "symmetrize_input", symmetrize_input):
                aval = aval_of(x)
                check_matrix(self.name, aval)
                x = symmetrized(x)
            v, w = bind(x, lower=shaping.as_flag("eigh", "lower", lower),
                        sort_eigenvalues=shaping.as_flag("eigh", "sort_eigenvalues", sort_eigenvalues),
                        subset_by_index=canonical_subset("eigh", subset_by_index), algorithm=implementation)
            return v, checked("eigh", w, x, "LAPACK found no eigenvalues of a matrix", core=1)
        return eigh

    @hookimpl
    def impl(self, args: Any, *, lower: bool, algorithm: EighImplementation | None, **params: Any) -> Any:
        (x,) = args
        function = _host.function("eigh_lo" if lower else "eigh_up", x)
        if function is None or algorithm not in _BY_QR:
            return _host.compiled(eigh.primitive, x, {"lower": lower, "algorithm": algorithm, **params})
        w, v = function(x)
        return v, w

    @hookimpl
    def abstract_eval(self, avals: Any, *, lower: bool, sort_eigenvalues: bool,
                      subset_by_index: tuple[int, int] | None, algorithm: EighImplementation | None
                      ) -> Sequence[ShapedArray]:
        (x,) = avals
        batch, ((rows, _),) = matrices(self.name, avals, (2,))
        check_square(self.name, x)
        check_choice(self.name, "implementation", algorithm, EighImplementation)
        check_subset(self.name, subset_by_index, rows, "eigenvalues")
        weak = all_weak(avals)
        return typed(x, x.shape, x.dtype, weak), typed(x, (*batch, rows), real_dtype(x.dtype), weak)

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        (x,), (x_dot,) = primals, tangents
        v, w = eigh.primitive.bind(x, **params)
        # x v = v diag(w), differentiated and multiplied by v^H: the diagonal is w_dot, what is beside it is v^H v_dot
        # times the gaps w[j] - w[i]. Lengths stay 1, so v^H v_dot has no diagonal.
        inner = product(product(adjoint(v), x_dot), v)
        real = lax.real(inner) if is_complex(inner) else inner
        gaps = lax.convert_element_type(reciprocal_gaps(w), aval_of(v).dtype)
        return (v, w), (product(v, gaps * inner), diagonal(real))

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, **params: Any) -> Any:
        return eigh.primitive.bind(*batched_first(axis, args, dims), **params), (0, 0)

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, lower: bool, algorithm: EighImplementation | None) -> Any:
        if ctx.platform != "cpu":
            raise _lapack.no_lowering(ctx, "compile for a CPU or a GPU")
        if algorithm not in _BY_QR:
            raise _not_there(ctx, algorithm, "a GPU" if algorithm is EighImplementation.JACOBI else "a TPU")
        (aval,) = ctx.avals_in
        function = "heevd" if is_complex(aval) else "syevd"
        *found, status = _lapack.call(
            ctx, function, args, ctx.avals_in, [*ctx.avals_out, _lapack.status_of(aval)], {0: 0},
            mode=_lapack.letter("V"), uplo=_lapack.letter("L" if lower else "U"))
        return _lapack.where_ok(ctx, status, *found)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def params(lower: bool = True, algorithm: EighImplementation | None = None, ordered: bool = True,
                   subset: Any = None) -> dict[str, Any]:
            return {"lower": lower, "sort_eigenvalues": ordered, "subset_by_index": subset, "algorithm": algorithm}

        def hermitian(*shape: int, dtype: Any = np.float64) -> Any:
            x = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype is np.complex128 else 0.0)
            return x + np.swapaxes(x, -1, -2).conj() + np.diag(np.arange(shape[-1]) * 4.0)

        of_hermitian = "derivatives are those of a function of Hermitian matrices; differences take it elsewhere"
        manifold = {name: of_hermitian for name in (
            "derivative", "second derivatives agree with differences", "hessians are symmetric",
            "orderings to depth two agree", "third derivatives agree with differences",
            "orderings to depth three agree")}
        yield Sample([rng.standard_normal((2, 1, 1))], params())
        yield Sample([hermitian(2, 2)], params(), exempt=manifold)
        yield Sample([hermitian(2, 2, dtype=np.complex128)], params(False, EighImplementation.QR, False, (0, 2)),
                     exempt=manifold)
        yield Sample([np.array([[[1.0, -9.0], [0.0, 2.0]]])], params(), exempt=manifold,
                     results=[np.eye(2)[None], np.array([[1.0, 2.0]])])
        yield Sample([np.zeros((2, 0, 0))], params())
        yield Sample([np.ones((2, 3))], params(), error=ValueError)
        yield Sample([np.ones(3)], params(), error=TypeError)
        yield Sample([np.ones((3, 3), np.float16)], params(), error=TypeError)
        yield Sample([np.ones((3, 3))], params(subset=(0, 2)), error=NotImplementedError)
        yield Sample([np.ones((3, 3))], params(subset=(2, 4)), error=ValueError)


#: The algorithms that are LAPACK's.
_BY_QR = (None, EighImplementation.QR)

eigh: Any = define(Eigh())


def check_matrix(name: str, aval: ShapedArray) -> None:
    """Raise unless it is a square matrix, or a batch of them, of any numbers."""
    if aval.ndim < 2:
        raise refused(name, "the operand has too few axes: a matrix, or a batch of them, is wanted", got=str(aval),
                      wanted="at least 2 axes", todo="pass a square matrix")
    check_square(name, aval)


def _not_there(ctx: Any, algorithm: EighImplementation, platform: str) -> Exception:
    return refused("eigh", f"{algorithm} is not there for {ctx.platform}", got=f"implementation={algorithm}",
                   wanted=f"None or {EighImplementation.QR}", kind=CorejaxNotImplementedError,
                   todo=f"leave implementation out, or compile for {platform}")


def on_gpu(ctx: Any, args: Any, *, lower: bool, algorithm: EighImplementation | None) -> Any:
    """The eigenvalues by syevd of cuSOLVER or hipSOLVER: by an algorithm of its choice, by QR, or by Jacobi's."""
    if algorithm is EighImplementation.QDWH:
        raise _not_there(ctx, algorithm, "a TPU")
    (aval,) = ctx.avals_in
    number = {None: 0, EighImplementation.QR: 1, EighImplementation.JACOBI: 2}[algorithm]
    *found, status = _cusolver.call(
        ctx, "syevd", args, ctx.avals_in, [*ctx.avals_out, _lapack.status_of(aval)], {0: 0},
        lower=lower, algorithm=np.uint8(number))
    return _lapack.where_ok(ctx, status, *found)


RULES = _cusolver.rules("corejax-linear-algebra", {"eigh": on_gpu})
