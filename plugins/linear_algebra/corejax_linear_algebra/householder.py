"""Products of Householder reflections, as LAPACK keeps them: from a QR decomposition, applied, multiplied out.

A reflection is 1 - tau v v^H, where v is a column below the diagonal of `a`, with a one on the diagonal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, ShapedArray
from corejax.plugin import Sample, define, hookimpl, not_differentiable, not_linear, refused, shaping
from corejax_linear_algebra import _cusolver, _lapack
from corejax_linear_algebra._lapack import no_lowering
from corejax_linear_algebra._matrices import (
    adjoint,
    all_weak,
    batched_first,
    check_dtype,
    conjugate,
    identity,
    is_complex,
    lower_part,
    matrices,
    mismatch,
    product,
    typed,
)

__all__ = ["geqp3_p", "geqrf_p", "householder_product", "ormqr"]

_NO_DERIVATIVE = "reflections have none that rules could use; lax.linalg.qr has a derivative"


class Geqrf:
    """`geqrf_p.bind(a)`: the QR decomposition as LAPACK keeps it, r with the vectors of reflections below, and taus.

    >>> a, taus = lax.linalg.geqrf_p.bind(np.array([[3.0, 1.0], [4.0, 2.0]]))
    >>> a.shape, taus.shape
    ((2, 2), (2,))
    """

    name = "geqrf"
    operands = ("a",)
    multiple_results = True
    jvp = not_differentiable(_NO_DERIVATIVE)
    transpose = not_linear(_NO_DERIVATIVE)

    @hookimpl
    def abstract_eval(self, avals: Any) -> Sequence[ShapedArray]:
        (a,) = avals
        batch, [(m, n)] = matrices(self.name, avals, (2,))
        return [a, typed(a, (*batch, min(m, n)), a.dtype, a.weak_type)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any) -> Any:
        return geqrf_p.primitive.bind(*batched_first(axis, args, dims)), [0, 0]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any) -> Any:
        if ctx.platform == "cpu":
            return _lapack.call(ctx, "geqrf", args, ctx.avals_in, ctx.avals_out, {0: 0})
        if ctx.platform == "tpu":
            return _lapack.call_compiler(ctx, "Qr", args)
        raise no_lowering(ctx, "compute it on one of these")

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for shape in ((3, 2), (2, 2, 3)):
            a = rng.standard_normal(shape)
            yield Sample([a], ulps=1e3, results=None if a.ndim > 2 else _raw(a))
        yield Sample([rng.standard_normal((2, 2)) + 1j * rng.standard_normal((2, 2))], ulps=1e3)
        yield Sample([np.ones((2, 0))])
        yield Sample([np.ones(2)], error=TypeError)


class Geqp3:
    """`geqp3_p.bind(a, jpvt, use_magma=None)`: as `geqrf_p`, of `a` with its columns exchanged; and their places.

    `jpvt` says which columns are to stay in front: those where it isn't 0. Places count from 1.
    """

    name = "geqp3"
    operands = ("a", "jpvt")
    multiple_results = True
    jvp = not_differentiable(_NO_DERIVATIVE)
    transpose = not_linear(_NO_DERIVATIVE)

    @hookimpl
    def abstract_eval(self, avals: Any, *, use_magma: bool | None = None) -> Sequence[ShapedArray]:
        a, jpvt = avals
        batch, [(m, n)] = matrices(self.name, [a], (2,))
        check_dtype(self.name, jpvt, (np.dtype(np.int32),))
        if jpvt.shape != (*batch, n):
            raise mismatch(self.name, "jpvt must have an entry for each column", [a, jpvt], f"shape {(*batch, n)}",
                           "pass zeros of this shape, unless columns are to stay in front")
        check_use_magma(self.name, use_magma)
        weak = all_weak(avals)
        return [typed(a, a.shape, a.dtype, weak), typed(jpvt, jpvt.shape, jpvt.dtype, weak),
                typed(a, (*batch, min(m, n)), a.dtype, weak)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, use_magma: bool | None) -> Any:
        return geqp3_p.primitive.bind(*batched_first(axis, args, dims), use_magma=use_magma), [0, 0, 0]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, use_magma: bool | None) -> Any:
        if ctx.platform == "cpu":
            return _lapack.call(ctx, "geqp3", args, ctx.avals_in, ctx.avals_out, {0: 0, 1: 1})
        raise no_lowering(ctx, "compute it on one of these, or without pivoting")

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        a = np.array([[0.0, 3.0], [0.0, 4.0]])
        yield Sample([a, np.zeros(2, np.int32)], {"use_magma": None}, ulps=1e3,
                     results=[np.array([[-5.0, 0.0], [0.5, 0.0]]), np.array([2, 1], np.int32), np.array([1.6, 0.0])])
        yield Sample([rng.standard_normal((2, 3, 2)), np.zeros((2, 2), np.int32)], {"use_magma": False}, ulps=1e3)
        yield Sample([np.ones((2, 0)), np.zeros(0, np.int32)], {"use_magma": True})
        yield Sample([np.ones((2, 2)), np.zeros(3, np.int32)], {"use_magma": None}, error=ValueError)


def check_use_magma(name: str, value: object) -> None:
    """Raise unless the param is one of those that say which library GPUs use."""
    if value not in (None, True, False):
        raise refused(name, "use_magma says whether GPUs use MAGMA", got=f"use_magma={value!r:.80}",
                      wanted="True, False, or None, which leaves it to the runtime", todo="leave it out")


class HouseholderProduct:
    """`householder_product(a, taus)`: the first columns of a product of reflections, as many as `a` has.

    >>> a, taus = lax.linalg.geqrf_p.bind(np.array([[3.0], [4.0]]))
    >>> np.asarray(lax.linalg.householder_product(a, taus)).round(6).tolist()
    [[-0.6], [-0.8]]
    """

    name = "householder_product"
    operands = ("a", "taus")
    jvp = not_differentiable(_NO_DERIVATIVE)
    transpose = not_linear(_NO_DERIVATIVE)

    @hookimpl
    def abstract_eval(self, avals: Any) -> ShapedArray:
        a, taus = avals
        _, [(m, n), (k,)] = matrices(self.name, avals, (2, 1))
        if m < n:
            raise mismatch(self.name, "the first operand has more columns than rows", [a], "at most as many",
                           "take the first columns: a[..., :a.shape[-2]]")
        if k > n:
            raise mismatch(self.name, "there are more factors than columns", [a, taus], f"at most {n} factors",
                           "take the first factors: taus[..., :a.shape[-1]]")
        return typed(a, a.shape, a.dtype, all_weak(avals))

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any) -> Any:
        return householder_product.primitive.bind(*batched_first(axis, args, dims)), 0

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any) -> Any:
        a, taus = ctx.avals_in
        if not taus.size:
            return ctx.lower(lambda a: identity(a.dtype, a.shape[-2], a.shape[-1], a.shape[:-2]), args[0])
        if ctx.platform == "cpu":
            function = "ungqr" if is_complex(a) else "orgqr"
            return _lapack.call(ctx, function, args, [a, taus], ctx.avals_out, {0: 0})[0]
        if ctx.platform == "tpu":
            return _lapack.call_compiler(ctx, "ProductOfElementaryHouseholderReflectors", args)[0]
        raise no_lowering(ctx, "compute it on one of these")

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for shape, k, imaginary in (((3, 2), 2, 0.0), ((2, 3, 3), 1, 0.0), ((2, 2), 2, 1j)):
            a = rng.standard_normal(shape) + imaginary * rng.standard_normal(shape)
            taus = rng.standard_normal((*shape[:-2], k)).astype(a.dtype)
            yield Sample([a, taus], ulps=1e3, results=_multiplied(a, taus))
        yield Sample([np.ones((3, 2)), np.ones(0)], results=np.eye(3, 2))
        yield Sample([np.ones((2, 3)), np.ones(2)], error=ValueError)
        yield Sample([np.ones((3, 2)), np.ones(3)], error=ValueError)
        yield Sample([np.ones((3, 2)), np.ones(2, np.float32)], error=TypeError)


class Ormqr:
    """`ormqr(a, taus, c, *, left=True, transpose=False)`: c times the product of reflections, without making that.

    It is q c if `left`, else c q; with q^H in place of q if `transpose`.

    >>> a, taus = lax.linalg.geqrf_p.bind(np.array([[3.0], [4.0]]))
    >>> np.asarray(lax.linalg.ormqr(a, taus, np.eye(2))).round(6).tolist()
    [[-0.6, -0.8], [-0.8, 0.6]]
    """

    name = "ormqr"
    operands = ("a", "taus", "c")
    jvp = not_differentiable(_NO_DERIVATIVE)
    transpose = not_linear(_NO_DERIVATIVE)

    def function(self, bind: Callable[..., Any]) -> Any:
        def ormqr(a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False) -> Array:
            return bind(a, taus, c, left=shaping.as_flag("ormqr", "left", left),  # type: ignore[no-any-return]
                        transpose=shaping.as_flag("ormqr", "transpose", transpose))
        return ormqr

    @hookimpl
    def abstract_eval(self, avals: Any, *, left: bool = True, transpose: bool = False) -> ShapedArray:
        a, taus, c = avals
        _, [(m, n), (k,), shape] = matrices(self.name, avals, (2, 1, 2))
        if shape[0 if left else 1] != m:
            raise mismatch(self.name, "the reflections don't fit what they are applied to", [a, c],
                           f"{m} {'rows' if left else 'columns'} of c, as a has rows",
                           "left=True is for q c, left=False for c q")
        if k > min(m, n):
            raise mismatch(self.name, "there are more factors than reflections", [a, taus],
                           f"at most {min(m, n)} factors", "take the first factors: taus[..., :k]")
        return typed(c, c.shape, c.dtype, all_weak(avals))

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, left: bool, transpose: bool) -> Any:
        return ormqr.primitive.bind(*batched_first(axis, args, dims), left=left, transpose=transpose), 0

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, left: bool, transpose: bool) -> Any:
        avals = ctx.avals_in
        if not all([aval.size for aval in avals]):
            return args[2]
        if ctx.platform == "cpu":
            function = "unmqr" if is_complex(avals[0]) else "ormqr"
            return _lapack.call(ctx, function, args, avals, ctx.avals_out, {2: 0}, left=left, transpose=transpose)[0]
        return ctx.lower(lambda a, taus, c: _apply(a, taus, c, left, transpose), *args)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for shape, left, transpose, imaginary in (((3, 2), True, True, 0.0), ((2, 3, 3), False, False, 0.0),
                                                  ((2, 2), True, True, 1j), ((2, 2), False, False, 1j)):
            a = rng.standard_normal(shape) + imaginary * rng.standard_normal(shape)
            taus = rng.standard_normal((*shape[:-2], min(shape[-2:]))).astype(a.dtype)
            c = rng.standard_normal((*shape[:-2], shape[-2], shape[-2])).astype(a.dtype)
            q = _multiplied(np.concatenate([a, np.zeros((*shape[:-1], shape[-2] - shape[-1]))], -1), taus)
            q = np.swapaxes(q, -1, -2).conj() if transpose else q
            yield Sample([a, taus, c], {"left": left, "transpose": transpose}, ulps=1e3,
                         results=q @ c if left else c @ q)
        yield Sample([np.ones((3, 0)), np.ones(0), np.ones((3, 2))], {"left": True, "transpose": False},
                     results=np.ones((3, 2)))
        yield Sample([np.ones((3, 2)), np.ones(2), np.ones((2, 3))], {"left": True, "transpose": False},
                     error=ValueError)
        yield Sample([np.ones((3, 2)), np.ones(3), np.ones((3, 3))], {"left": True, "transpose": False},
                     error=ValueError)


def _apply(a: Any, taus: Any, c: Any, left: bool, transpose: bool) -> Any:
    """One reflection after the other; those of q c and c q^H in reverse."""
    k, batch = taus.shape[-1], a.shape[:-2]
    vectors = lower_part(a[..., :, :k], -1) + identity(a.dtype, a.shape[-2], k, batch)
    taus = conjugate(taus) if transpose else taus

    def reflect(i: Any, c: Any) -> Any:
        at = k - 1 - i if left != transpose else i
        v = lax.dynamic_slice_in_dim(vectors, at, 1, vectors.ndim - 1)
        tau = lax.expand_dims(lax.dynamic_slice_in_dim(taus, at, 1, taus.ndim - 1), (taus.ndim,))
        part = product(v, product(adjoint(v), c)) if left else product(product(c, v), adjoint(v))
        return c - tau * part
    return lax.fori_loop(0, k, reflect, c)


def _raw(a: Any) -> list[Any]:
    """LAPACK's form of a QR decomposition, by NumPy."""
    h, taus = np.linalg.qr(a, mode="raw")
    return [np.ascontiguousarray(np.swapaxes(h, -1, -2)), taus]


def _multiplied(a: Any, taus: Any) -> Any:
    """The first columns of the product of the reflections, by NumPy."""
    m, n = a.shape[-2:]
    out = np.broadcast_to(np.eye(m, dtype=a.dtype), (*a.shape[:-2], m, m))
    for i in range(taus.shape[-1]):
        v = np.tril(a, -1)[..., i:i + 1] + np.eye(m)[:, i:i + 1]
        out = out @ (np.eye(m) - taus[..., i, None, None] * v @ np.swapaxes(v, -1, -2).conj())
    return out[..., :n]


geqrf_p: Any = define(Geqrf(), name="geqrf_p", module=__name__)
geqp3_p: Any = define(Geqp3(), name="geqp3_p", module=__name__)
householder_product: Any = define(HouseholderProduct())
ormqr: Any = define(Ormqr())


# GPUs

def geqrf_on_gpu(ctx: Any, args: Any) -> Any:
    """cuSOLVER's function."""
    return _cusolver.call(ctx, "geqrf", args, ctx.avals_in, ctx.avals_out, {0: 0})


def geqp3_on_gpu(ctx: Any, args: Any, *, use_magma: bool | None) -> Any:
    """LAPACK's function on the host, or MAGMA's; without a choice, MAGMA's for large matrices if it is there."""
    magma = "auto" if use_magma is None else "on" if use_magma else "off"
    return _cusolver.call_other(ctx, "hybrid_geqp3", args, ctx.avals_in, ctx.avals_out, {0: 0, 1: 1}, magma=magma)


def householder_product_on_gpu(ctx: Any, args: Any) -> Any:
    """cuSOLVER's function."""
    if not ctx.avals_in[1].size:
        return ctx.lower(lambda a: identity(a.dtype, a.shape[-2], a.shape[-1], a.shape[:-2]), args[0])
    return _cusolver.call(ctx, "orgqr", args, ctx.avals_in, ctx.avals_out, {0: 0})[0]


def ormqr_on_gpu(ctx: Any, args: Any, *, left: bool, transpose: bool) -> Any:
    """cuSOLVER's function."""
    if not all([aval.size for aval in ctx.avals_in]):
        return args[2]
    return _cusolver.call(ctx, "ormqr", args, ctx.avals_in, ctx.avals_out, {2: 0}, left=left, transpose=transpose)[0]


RULES = _cusolver.rules("corejax-linear-algebra", {
    "geqrf": geqrf_on_gpu, "geqp3": geqp3_on_gpu, "householder_product": householder_product_on_gpu,
    "ormqr": ormqr_on_gpu})
