"""The Cholesky decomposition and triangular systems, on LAPACK, in the last two axes."""

import numpy as np

from corejax import lax
from corejax.core import to_dim
from corejax.plugin import Sample, define, hookimpl, partials, refused

__all__ = ["cholesky", "triangular_solve"]


def _check(name, *avals):
    a, *others = avals
    if a.dtype not in (np.float32, np.float64) or a.ndim < 2 or a.shape[-1] != a.shape[-2] or any(
            b.dtype != a.dtype or b.shape[:-1] != a.shape[:-1] for b in others):
        raise refused(name, "wrong operands", got=", ".join(map(str, avals)), todo="convert: x.astype(float)",
                      wanted="square matrices of float32 or float64, and as many rows beside them")


def _swap(x):
    return lax.transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _lower(x):
    return x * np.tri(x.shape[-1], dtype=x.dtype)


def _slope(a_dot, factor, a):
    """L Phi(L^-1 A' L^-T), where Phi halves the diagonal and drops what is above it."""
    symmetric = _lower(a_dot) + _swap(_lower(a_dot) * (1.0 - np.eye(a.shape[-1], dtype=a.dtype)))
    inner = triangular_solve(factor, _swap(triangular_solve(factor, symmetric)))
    return factor @ (_lower(inner) * (1.0 - 0.5 * np.eye(a.shape[-1], dtype=a.dtype)))


class Cholesky:
    """The lower factors of positive definite matrices, of which the lower halves are read; NaN for others."""

    name = "cholesky"
    operands = ("a",)
    jvp = partials(_slope)

    @hookimpl
    def abstract_eval(self, avals):
        (a,) = avals
        _check(self.name, a)
        return a

    @hookimpl
    def vmap(self, axis, args, dims):
        return cholesky(to_dim(args[0], dims[0], 0, axis.size)), 0

    @hookimpl
    def xla_translation(self, ctx, args):
        (aval,) = ctx.avals_in
        status = aval.update(shape=aval.shape[:-2], dtype=np.dtype(np.int32), weak_type=False)
        target = "outside-lapack.potrf_f32" if aval.dtype == np.float32 else "outside-lapack.potrf_f64"
        factor, failed = ctx.custom_call(
            target, args, out_types=[*ctx.out_types, ctx.type_of(status)], aliases={0: 0},
            backend_config={"uplo": np.uint8(ord("L"))}, operand_layouts="column", result_layouts=["column", None])
        return ctx.lower(lambda x, failed: lax.select(
            lax.broadcast_in_dim(failed == 0, x.shape, tuple(range(x.ndim - 2))), _lower(x), lax.full_like(x, np.nan)),
            factor, failed)

    @hookimpl
    def samples(self, rng):
        a = rng.normal(size=(2, 3, 3))
        a = a @ np.swapaxes(a, -1, -2) + 2.0 * np.eye(3)
        yield Sample([a], results=np.linalg.cholesky(a))
        yield Sample([a[0]], results=np.linalg.cholesky(a[0]))
        yield Sample([np.ones((2, 3))], error=TypeError)


def _by_matrix(a_dot, out, a, b, *, transposed):
    a_dot = _lower(a_dot)
    return triangular_solve(a, -(_swap(a_dot) if transposed else a_dot) @ out, transposed=transposed)


def _by_rows(b_dot, out, a, b, *, transposed):
    return triangular_solve(a, b_dot, transposed=transposed)


class TriangularSolve:
    """The solution of tril(a) x = b, or of its transpose."""

    name = "triangular_solve"
    operands = ("a", "b")
    jvp = partials(_by_matrix, _by_rows)
    not_linear_in = (0,)

    @hookimpl
    def abstract_eval(self, avals, *, transposed=False):
        a, b = avals
        _check(self.name, a, b)
        return b.update(weak_type=a.weak_type and b.weak_type)

    @hookimpl
    def transpose(self, cotangents, args, *, transposed):
        return [None, triangular_solve(args[0], cotangents, transposed=not transposed)]

    @hookimpl
    def vmap(self, axis, args, dims, *, transposed):
        a, b = [to_dim(x, d, 0, axis.size) for x, d in zip(args, dims, strict=True)]
        return triangular_solve(a, b, transposed=transposed), 0

    @hookimpl
    def xla_translation(self, ctx, args, *, transposed):
        choices = {"side": "L", "uplo": "L", "trans_x": "T" if transposed else "N", "diag": "N"}
        return ctx.custom_call(
            "lapack_strsm_ffi" if ctx.avals_in[0].dtype == np.float32 else "lapack_dtrsm_ffi", args, aliases={1: 0},
            backend_config={name: np.uint8(ord(choice)) for name, choice in choices.items()},
            operand_layouts="column", result_layouts="column")[0]

    @hookimpl
    def samples(self, rng):
        a, b = rng.normal(size=(2, 3, 3)) + 3.0 * np.eye(3), rng.normal(size=(2, 3, 2))
        yield Sample([a, b], {"transposed": False}, results=np.linalg.solve(np.tril(a), b))
        yield Sample([a[0], b[0]], {"transposed": True}, results=np.linalg.solve(np.tril(a[0]).T, b[0]))
        yield Sample([a, b[0]], {"transposed": False}, error=TypeError)


cholesky, triangular_solve = define(Cholesky()), define(TriangularSolve())
