"""Eigenvalues and eigenvectors of square matrices that needn't be Hermitian."""

from __future__ import annotations

import warnings
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
    check_square,
    conjugate,
    diagonal,
    is_complex,
    matrices,
    product,
    reciprocal_gaps,
    swapped,
    typed,
)
from corejax_linear_algebra._solving import solved
from corejax_linear_algebra._subsets import check_choice

__all__ = ["EigImplementation", "eig"]


class EigImplementation(Enum):
    """How eig computes: by `LAPACK`, on CPUs and beside GPUs, or by `CUSOLVER` or `MAGMA` on GPUs.

    >>> lax.linalg.eig(np.diag([2.0, 3.0]), implementation=lax.linalg.EigImplementation.LAPACK)[0].tolist()
    [(2+0j), (3+0j)]
    """

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class Eig:
    """`eig(x, *, compute_left_eigenvectors=True, compute_right_eigenvectors=True, ...)`: `[w, vl, vr]`.

    The eigenvalues w, complex and in no order, and as columns the left and right eigenvectors, of length 1:
    vl^H x = w vl^H and x vr = vr w. Those not asked for are left out. NaN where LAPACK finds no solution;
    an error where `cj.config.numerical_failures` is "error".

    Eigenvectors have derivatives only with `enable_eigvec_derivs`, since these assume what can't be checked: distinct
    eigenvalues, and in each vector a single largest component, which LAPACK makes real.

    >>> w, vr = lax.linalg.eig(np.array([[0.0, 1.0], [-1.0, 0.0]]), compute_left_eigenvectors=False)
    >>> w.tolist()
    [1j, -1j]
    """

    name = "eig"
    operands = ("x",)
    multiple_results = True
    transpose = not_linear("eigenvalues and eigenvectors aren't linear functions of a matrix")

    def function(self, bind: Callable[..., Any]) -> Any:
        def eig(x: ArrayLike, *, compute_left_eigenvectors: bool = True, compute_right_eigenvectors: bool = True,
                enable_eigvec_derivs: bool = False, implementation: EigImplementation | None = None,
                use_magma: bool | None = None) -> list[Array]:
            if use_magma is not None:
                warnings.warn("eig: use_magma is deprecated; pass implementation=EigImplementation.MAGMA",
                              DeprecationWarning, stacklevel=3)
                magma = shaping.as_flag("eig", "use_magma", use_magma)
                implementation = EigImplementation.MAGMA if magma else EigImplementation.LAPACK
            flags = {"compute_left_eigenvectors": compute_left_eigenvectors,
                     "compute_right_eigenvectors": compute_right_eigenvectors,
                     "enable_eigvec_derivs": enable_eigvec_derivs}
            outs = bind(x, implementation=implementation,
                        **{name: shaping.as_flag("eig", name, flag) for name, flag in flags.items()})
            checked("eig", outs[0], x, "LAPACK found no eigenvalues of a matrix", core=1)
            return list(outs)
        return eig

    @hookimpl
    def impl(self, args: Any, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool,
             implementation: EigImplementation | None, **params: Any) -> Any:
        (x,) = args
        left, right = compute_left_eigenvectors, compute_right_eigenvectors
        function = _host.function("eig" if right else "eigvals", x)
        if function is None or left or implementation not in _BY_LAPACK or not _host.is_ordinary(x):
            return _host.compiled(eig.primitive, x, {"compute_left_eigenvectors": left, **params,
                                                     "compute_right_eigenvectors": right,
                                                     "implementation": implementation})
        return function(x) if right else [function(x)]

    @hookimpl
    def abstract_eval(self, avals: Any, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool,
                      enable_eigvec_derivs: bool, implementation: EigImplementation | None) -> Sequence[ShapedArray]:
        (x,) = avals
        batch, ((size, _),) = matrices(self.name, avals, (2,))
        check_square(self.name, x)
        check_choice(self.name, "implementation", implementation, EigImplementation)
        weak, dtype = all_weak(avals), _complex_dtype(x.dtype)
        vectors = typed(x, x.shape, dtype, weak)
        return [typed(x, (*batch, size), dtype, weak),
                *[vectors] * (compute_left_eigenvectors + compute_right_eigenvectors)]

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool,
            enable_eigvec_derivs: bool, implementation: EigImplementation | None) -> Any:
        (x,), (x_dot,) = primals, tangents
        left, right = compute_left_eigenvectors, compute_right_eigenvectors
        if (left or right) and not enable_eigvec_derivs:
            raise _no_derivative(aval_of(x))
        w, *others, vr = eig.primitive.bind(
            x, compute_left_eigenvectors=left, compute_right_eigenvectors=True,
            enable_eigvec_derivs=enable_eigvec_derivs, implementation=implementation)
        x_dot = lax.convert_element_type(x_dot, aval_of(vr).dtype)
        if not left and not right:
            return [w], [(solved(vr, x_dot) * swapped(vr)).sum(-1)]
        w_dot, vr_dot = _tangents(w, vr, x_dot)
        lefts = [_tangents(conjugate(w), vl, adjoint(x_dot))[1] for vl in others]
        return [w, *others, *[vr] * right], [w_dot, *lefts, *[vr_dot] * right]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, **params: Any) -> Any:
        outs = eig.primitive.bind(*batched_first(axis, args, dims), **params)
        return outs, [0] * len(outs)

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, compute_left_eigenvectors: bool,
                        compute_right_eigenvectors: bool, implementation: EigImplementation | None) -> Any:
        if ctx.platform != "cpu":
            raise _lapack.no_lowering(ctx, "compile for a CPU or a GPU")
        if implementation not in _BY_LAPACK:
            raise refused(self.name, "on CPUs, only LAPACK computes eigenvalues", kind=CorejaxValueError,
                          got=f"implementation={implementation}", wanted=f"None, or {EigImplementation.LAPACK}",
                          todo="leave implementation out, or compile for a GPU")
        (aval,) = ctx.avals_in
        left, right = compute_left_eigenvectors, compute_right_eigenvectors
        x, finite = finite_or_zero(ctx, args[0])
        *outs, status = _lapack.call(
            ctx, "geev", [x], ctx.avals_in, _results(aval),
            compute_left=_lapack.letter("V" if left else "N"), compute_right=_lapack.letter("V" if right else "N"))
        return _wanted(ctx, [*outs, status_if(ctx, finite, status)], left, right)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def params(left: bool = False, right: bool = False, implementation: Any = None, derivatives: bool = True
                   ) -> dict[str, Any]:
            return {"compute_left_eigenvectors": left, "compute_right_eigenvectors": right,
                    "enable_eigvec_derivs": derivatives, "implementation": implementation}

        def apart(*shape: int) -> Any:  # with real eigenvalues that are far from each other
            return rng.standard_normal(shape) * 0.3 + np.diag(np.arange(shape[-1]) * 3.0 + 1.0)

        yield Sample([apart(2, 2)], params())
        yield Sample([apart(2, 2, 2)], params(True, True, EigImplementation.LAPACK))
        yield Sample([apart(2, 2) + 0.3j * rng.standard_normal((2, 2))], params(right=True))
        yield Sample([apart(1, 1).astype(np.float32)], params(derivatives=False))
        yield Sample([np.array([[0.0, 4.0], [-1.0, 0.0]])], params(), results=[np.array([2j, -2j])])
        yield Sample([np.zeros((2, 0, 0))], params(True, True))
        yield Sample([np.ones((2, 3))], params(), error=ValueError)
        yield Sample([np.ones(3)], params(), error=TypeError)
        yield Sample([np.ones((2, 2), int)], params(), error=TypeError)


#: What LAPACK computes, on a CPU.
_BY_LAPACK = (None, EigImplementation.LAPACK)

eig: Any = define(Eig())


def _complex_dtype(dtype: np.dtype) -> np.dtype:
    return dtype if dtype.kind == "c" else np.dtype(f"c{2 * dtype.itemsize}")


# Derivatives

def _tangents(w: Any, v: Any, x_dot: Any) -> tuple[Any, Any]:
    """The tangents of eigenvalues and of eigenvectors as LAPACK scales them.

    Perturbation theory gives u with v_dot = u + v c for any diagonal c. The length 1 says what the real part of c is,
    and that the largest component stays real says what the imaginary part is.
    """
    if not w.shape[-1]:
        return w, v
    inner = product(solved(v, x_dot), v)
    u = product(v, reciprocal_gaps(w) * inner)
    largest = lax.convert_element_type(_largest(v), aval_of(v).dtype)
    turn = lax.imag((largest * u).sum(-2)) / lax.real((largest * v).sum(-2))
    c = lax.complex(-lax.real((conjugate(v) * u).sum(-2)), -turn)
    return diagonal(inner), u + v * lax.broadcast_in_dim(c, v.shape, (*range(c.ndim - 1), c.ndim))


def _largest(v: Any) -> Any:
    """Where the component of the largest magnitude is in each column, the first if there are several."""
    down = v.ndim - 2
    at = lax.argmax(lax.abs(v), down, np.int32)
    spread = lax.broadcast_in_dim(at, v.shape, (*range(down), v.ndim - 1))
    return lax.broadcasted_iota(np.int32, v.shape, down) == spread


def _no_derivative(aval: ShapedArray) -> Exception:
    return refused("eig", "eigenvectors are differentiated only on request, since it assumes what can't be checked: "
                   "distinct eigenvalues, and in each vector a single largest component", got=str(aval),
                   wanted="enable_eigvec_derivs=True, or no eigenvectors", kind=CorejaxNotImplementedError,
                   todo="pass enable_eigvec_derivs=True to eig if that holds; for eigenvalues alone, pass "
                   "compute_left_eigenvectors=False and compute_right_eigenvectors=False")


# Lowerings

def _results(aval: ShapedArray) -> list[ShapedArray]:
    """What LAPACK gives: eigenvalues, as two real arrays for a real matrix, and vectors of both sides."""
    values = typed(aval, aval.shape[:-1], aval.dtype)
    vectors = typed(aval, aval.shape, _complex_dtype(aval.dtype))
    return [*[values] * (1 if is_complex(aval) else 2), vectors, vectors, _lapack.status_of(aval)]


def _wanted(ctx: Any, outs: Sequence[Any], left: bool, right: bool) -> list[Any]:
    """The results that are asked for, of those that LAPACK gives."""
    *w, vl, vr, status = outs
    found = ctx.lower(lax.complex, *w) if len(w) == 2 else w[0]
    return _lapack.where_ok(ctx, status, found, *[vl] * left, *[vr] * right)


def on_gpu(ctx: Any, args: Any, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool,
           implementation: EigImplementation | None) -> Any:
    """LAPACK on the CPU beside the GPU, or MAGMA; or cuSOLVER's geev, which has no left eigenvectors."""
    (aval,) = ctx.avals_in
    left, right = compute_left_eigenvectors, compute_right_eigenvectors
    if implementation is EigImplementation.CUSOLVER:
        return _by_cusolver(ctx, args, left, right)
    magma = {None: "auto", EigImplementation.MAGMA: "on", EigImplementation.LAPACK: "off"}[implementation]
    outs = _cusolver.call_other(
        ctx, f"hybrid_eig_{'comp' if is_complex(aval) else 'real'}", args, [aval], _results(aval),
        magma=magma, left=left, right=right)
    return _wanted(ctx, outs, left, right)


def _by_cusolver(ctx: Any, args: Any, left: bool, right: bool) -> Any:
    if left or ctx.platform != "cuda":
        raise refused("eig", "cuSOLVER, on Nvidia's GPUs, has no left eigenvectors" if left else
                      "cuSOLVER is for Nvidia's GPUs", got=f"{EigImplementation.CUSOLVER} on {ctx.platform}",
                      wanted=f"None, or {EigImplementation.LAPACK}", kind=CorejaxNotImplementedError,
                      todo="pass compute_left_eigenvectors=False" if left else "leave implementation out")
    (aval,) = ctx.avals_in
    values = typed(aval, aval.shape[:-1], _complex_dtype(aval.dtype))
    _, w, vl, vr, status = _cusolver.call(
        ctx, "geev", args, [aval], [aval, values, aval, aval, _lapack.status_of(aval)], left=left, right=right)
    if right and not is_complex(aval):
        vr = ctx.lower(_unpacked, w, vr)
    return _lapack.where_ok(ctx, status, w, *[vr] * right)


def _unpacked(w: Any, packed: Any) -> Any:
    """Complex eigenvectors of a real matrix: those of a conjugate pair are its columns of real and imaginary parts."""
    if not packed.size:
        return lax.complex(packed, lax.full_like(packed, 0))
    paired = lax.imag(w) != 0
    first = lax.rem(lax.cumsum(lax.convert_element_type(paired, np.int32), axis=w.ndim - 1), np.int32(2)) == 1
    here = (*range(w.ndim - 1), w.ndim)
    paired, first = [lax.broadcast_in_dim(x, packed.shape, here) for x in (paired, first & paired)]
    aside = [(0, 0, 0)] * (packed.ndim - 1)
    zero = np.zeros((), packed.dtype)
    following, preceding = lax.pad(packed, zero, [*aside, (-1, 1, 0)]), lax.pad(packed, zero, [*aside, (1, -1, 0)])
    real = lax.select(paired & ~first, preceding, packed)
    imaginary = lax.select(first, following, -packed)
    return lax.complex(real, lax.select(paired, imaginary, lax.full_like(packed, 0)))


RULES = _cusolver.rules("corejax-linear-algebra", {"eig": on_gpu})
