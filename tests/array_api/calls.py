"""Calls of every function of the array API standard, written for any namespace `xp`.

Each row has the name of a function and some calls, `call(xp, *arrays)`. Results that are unique only up to a sign or a
phase are multiplied together again. Which dtypes a function takes isn't said: array-api-strict refuses all others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Gets the namespace and arrays of it.
Call = Callable[..., Any]

FINFO = ("bits", "eps", "max", "min", "smallest_normal")


def _fields(of: Any, *names: str) -> list[Any]:
    return [getattr(of, name) for name in names]


def _plain(name: str) -> list[Call]:
    """The function of all its operands."""
    def call(xp: Any, *xs: Any) -> Any:
        found = xp
        for part in name.split("."):
            found = getattr(found, part)
        return found(*xs)
    return [call]


#: Of one array, with values at the edges of its dtype.
UNARY: dict[str, list[Call]] = {name: _plain(name) for name in (
    "abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan "
    "log log10 log1p log2 logical_not negative positive real reciprocal round sign signbit sin sinh sqrt square tan "
    "tanh trunc").split()} | {
    "clip": [lambda xp, x: xp.clip(x, 1, 3), lambda xp, x: xp.clip(x, max=2), lambda xp, x: xp.clip(x, min=x[0]),
             lambda xp, x: xp.clip(x)],
}

#: Of two arrays, with the values of each against all of the other.
BINARY: dict[str, list[Call]] = {name: _plain(name) for name in (
    "add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal "
    "floor_divide greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum "
    "minimum multiply nextafter not_equal pow remainder subtract").split()}

#: Of one array of rank 2 with distinct values.
GENERAL: dict[str, list[Call]] = {
    "all": [lambda xp, x: xp.all(x), lambda xp, x: xp.all(x, axis=1, keepdims=True), lambda xp, x: xp.all(x, axis=())],
    "any": [lambda xp, x: xp.any(x), lambda xp, x: xp.any(x, axis=(0, -1)), lambda xp, x: xp.any(x, axis=-2)],
    "diff": [lambda xp, x: xp.diff(x), lambda xp, x: xp.diff(x, axis=0, n=2),
             lambda xp, x: xp.diff(x, prepend=x[:, :2], append=x[:, :1])],
    "argmax": [lambda xp, x: xp.argmax(x), lambda xp, x: xp.argmax(x, axis=0, keepdims=True)],
    "argmin": [lambda xp, x: xp.argmin(x), lambda xp, x: xp.argmin(x, axis=-1)],
    "count_nonzero": [lambda xp, x: xp.count_nonzero(x), lambda xp, x: xp.count_nonzero(x, axis=0, keepdims=True),
                      lambda xp, x: xp.count_nonzero(x, axis=(0, 1))],
    "nonzero": [lambda xp, x: xp.nonzero(x)],
    "searchsorted": [lambda xp, x: xp.searchsorted(xp.sort(x[0, :]), x[1, :]),
                     lambda xp, x: xp.searchsorted(x[0, :], x, side="right", sorter=xp.argsort(x[0, :]))],
    "where": [lambda xp, x: xp.where(xp.astype(x, xp.bool), x, x[0, :]), lambda xp, x: xp.where(x == x[0, 0], x, 1),
              lambda xp, x: xp.where(x == x[0, 0], 0, x)],
    "sort": [lambda xp, x: xp.sort(x), lambda xp, x: xp.sort(x, axis=0, descending=True),
             lambda xp, x: xp.sort(x, stable=False)],
    "argsort": [lambda xp, x: xp.argsort(x), lambda xp, x: xp.argsort(x, axis=0, descending=True)],
    "cumulative_sum": [lambda xp, x: xp.cumulative_sum(x, axis=0), lambda xp, x: xp.cumulative_sum(x[0, :]),
                       lambda xp, x: xp.cumulative_sum(x, axis=1, include_initial=True),
                       lambda xp, x: xp.cumulative_sum(x, axis=1, dtype=xp.float32)],
    "cumulative_prod": [lambda xp, x: xp.cumulative_prod(x, axis=0), lambda xp, x: xp.cumulative_prod(x[0, :]),
                        lambda xp, x: xp.cumulative_prod(x, axis=1, include_initial=True)],
    "max": [lambda xp, x: xp.max(x), lambda xp, x: xp.max(x, axis=(0, 1), keepdims=True)],
    "min": [lambda xp, x: xp.min(x), lambda xp, x: xp.min(x, axis=1)],
    "mean": [lambda xp, x: xp.mean(x), lambda xp, x: xp.mean(x, axis=0, keepdims=True)],
    "std": [lambda xp, x: xp.std(x), lambda xp, x: xp.std(x, axis=0, correction=1)],
    "var": [lambda xp, x: xp.var(x), lambda xp, x: xp.var(x, axis=-1, correction=0.5, keepdims=True)],
    "sum": [lambda xp, x: xp.sum(x), lambda xp, x: xp.sum(x, axis=(), keepdims=True), lambda xp, x: xp.sum(x, axis=0),
            lambda xp, x: xp.sum(x, axis=(0, 1), dtype=xp.complex64), lambda xp, x: xp.sum(x[:0, :], axis=0)],
    "prod": [lambda xp, x: xp.prod(x), lambda xp, x: xp.prod(x, axis=-1), lambda xp, x: xp.prod(x[:, :0])],
    "astype": [lambda xp, x: xp.astype(x, xp.float32), lambda xp, x: xp.astype(x, xp.complex64),
               lambda xp, x: xp.astype(x, xp.bool, copy=False), lambda xp, x: xp.astype(x, xp.int16)],
    "broadcast_arrays": [lambda xp, x: xp.broadcast_arrays(x, x[:, :1], x[0, 0])],
    "broadcast_to": [lambda xp, x: xp.broadcast_to(x, (2, *x.shape)), lambda xp, x: xp.broadcast_to(x[0, 0], (0, 3))],
    "finfo": [lambda xp, x: _fields(xp.finfo(x.dtype), *FINFO)],
    "iinfo": [lambda xp, x: _fields(xp.iinfo(x.dtype), "bits", "max", "min")],
    "isdtype": [lambda xp, x: [xp.isdtype(x.dtype, kind) for kind in (
        "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric",
        ("bool", "integral"), xp.float32, (xp.int8, "real floating"))]],
    "concat": [lambda xp, x: xp.concat([x, x[:1, :]]), lambda xp, x: xp.concat((x, x[:, :0]), axis=-1),
               lambda xp, x: xp.concat([x, x], axis=None)],
    "expand_dims": [lambda xp, x: xp.expand_dims(x), lambda xp, x: xp.expand_dims(x, axis=-1)],
    "flip": [lambda xp, x: xp.flip(x), lambda xp, x: xp.flip(x, axis=-1), lambda xp, x: xp.flip(x, axis=(0, 1))],
    "moveaxis": [lambda xp, x: xp.moveaxis(x, 0, -1), lambda xp, x: xp.moveaxis(x, (0, 1), (1, 0))],
    "permute_dims": [lambda xp, x: xp.permute_dims(x, (1, 0)), lambda xp, x: xp.permute_dims(x, axes=(0, 1))],
    "repeat": [lambda xp, x: xp.repeat(x, 2), lambda xp, x: xp.repeat(x, 3, axis=1),
               lambda xp, x: xp.repeat(x, xp.asarray([2, 0, 1]), axis=0)],
    "reshape": [lambda xp, x: xp.reshape(x, (-1, 2)), lambda xp, x: xp.reshape(x, (2, 6), copy=True)],
    "roll": [lambda xp, x: xp.roll(x, 1), lambda xp, x: xp.roll(x, -2, axis=1),
             lambda xp, x: xp.roll(x, (1, 2), axis=(0, 1))],
    "squeeze": [lambda xp, x: xp.squeeze(x[:1, :], 0), lambda xp, x: xp.squeeze(x[:1, :1], axis=(0, 1))],
    "stack": [lambda xp, x: xp.stack([x, x]), lambda xp, x: xp.stack((x, x, x), axis=-1)],
    "tile": [lambda xp, x: xp.tile(x, (2, 1)), lambda xp, x: xp.tile(x, (2,)), lambda xp, x: xp.tile(x, (1, 2, 3))],
    "unstack": [lambda xp, x: xp.unstack(x), lambda xp, x: xp.unstack(x, axis=-1)],
    "unique_all": [lambda xp, x: tuple(xp.unique_all(x))[0], lambda xp, x: tuple(xp.unique_all(x))[2:],
                   lambda xp, x: xp.reshape(x, (-1,))[xp.unique_all(x).indices]],
    "unique_counts": [lambda xp, x: _fields(xp.unique_counts(x), "values", "counts")],
    "unique_inverse": [lambda xp, x: _fields(xp.unique_inverse(x), "values", "inverse_indices")],
    "unique_values": [lambda xp, x: xp.sort(xp.unique_values(x)), lambda xp, x: xp.unique_values(x).shape],
    "take": [lambda xp, x: xp.take(x, xp.asarray([2, 0, 0]), axis=0),
             lambda xp, x: xp.take(x[0, :], xp.asarray([1, -1]))],
    "take_along_axis": [lambda xp, x: xp.take_along_axis(x, xp.argsort(x, axis=0), axis=0),
                        lambda xp, x: xp.take_along_axis(x, xp.argsort(x))],
    "empty_like": [lambda xp, x: xp.empty_like(x) * 0, lambda xp, x: xp.empty_like(x, dtype=xp.int8).shape],
    "full_like": [lambda xp, x: xp.full_like(x, 1), lambda xp, x: xp.full_like(x, 2.5, dtype=xp.float32)],
    "ones_like": [lambda xp, x: xp.ones_like(x), lambda xp, x: xp.ones_like(x, dtype=xp.uint8)],
    "zeros_like": [lambda xp, x: xp.zeros_like(x, device=x.device), lambda xp, x: xp.zeros_like(x, dtype=xp.bool)],
    "tril": [lambda xp, x: xp.tril(x), lambda xp, x: xp.tril(x, k=-1)],
    "triu": [lambda xp, x: xp.triu(x), lambda xp, x: xp.triu(xp.stack([x, x]), k=1)],
    "meshgrid": [lambda xp, x: xp.meshgrid(x[0, :], x[:, 0]), lambda xp, x: xp.meshgrid(x[0, :]),
                 lambda xp, x: xp.meshgrid(x[0, :], x[:, 0], indexing="ij")],
    "asarray": [lambda xp, x: xp.asarray(x), lambda xp, x: xp.asarray(x, copy=True),
                lambda xp, x: xp.asarray(x, copy=False), lambda xp, x: xp.asarray(x, dtype=xp.complex128)],
    "from_dlpack": [lambda xp, x: xp.from_dlpack(x), lambda xp, x: xp.from_dlpack(x, copy=True)],
    "matmul": [lambda xp, x: xp.matmul(x, x.T), lambda xp, x: xp.matmul(x, x[0, :]), lambda xp, x: x.mT @ x],
    "matrix_transpose": [lambda xp, x: xp.matrix_transpose(x), lambda xp, x: x.mT],
    "tensordot": [lambda xp, x: xp.tensordot(x, x.T, axes=1), lambda xp, x: xp.tensordot(x, x, axes=((0, 1), (0, 1))),
                  lambda xp, x: xp.tensordot(x, x, axes=0)],
    "vecdot": [lambda xp, x: xp.vecdot(x, x), lambda xp, x: xp.vecdot(x, x[:1, :], axis=-1)],
    "linalg.diagonal": [lambda xp, x: xp.linalg.diagonal(x), lambda xp, x: xp.linalg.diagonal(x, offset=-1)],
    "linalg.trace": [lambda xp, x: xp.linalg.trace(x), lambda xp, x: xp.linalg.trace(xp.stack([x, x]), offset=1)],
    "linalg.cross": [lambda xp, x: xp.linalg.cross(x[:, :3], x[:, 1:]),
                     lambda xp, x: xp.linalg.cross(x, x + x, axis=-2)],
    "linalg.outer": [lambda xp, x: xp.linalg.outer(x[0, :], x[:, 0])],
    "linalg.vector_norm": [lambda xp, x: xp.linalg.vector_norm(x), lambda xp, x: xp.linalg.vector_norm(x, ord=0),
                           lambda xp, x: xp.linalg.vector_norm(x, axis=0, ord=1),
                           lambda xp, x: xp.linalg.vector_norm(x, axis=(0, 1), keepdims=True, ord=float("inf")),
                           lambda xp, x: xp.linalg.vector_norm(x, axis=1, ord=3)],
}


def _joined(factors: Any, *names: str) -> list[Any]:
    """The product of two factors, and their shapes."""
    a, b = _fields(factors, *names)
    return [a @ b, a.shape, b.shape]


def _by_svd(xp: Any, x: Any, full: bool) -> list[Any]:
    u, s, vh = _fields(xp.linalg.svd(x, full_matrices=full), "U", "S", "Vh")
    return [s, (u[..., :3] * xp.astype(s, u.dtype)[..., None, :]) @ vh[..., :3, :], u.shape, vh.shape]


def _by_eigh(xp: Any, x: Any) -> list[Any]:
    w, v = _fields(xp.linalg.eigh(x), "eigenvalues", "eigenvectors")
    return [w, (v * xp.astype(w, v.dtype)[..., None, :]) @ xp.conj(v.mT)]


#: Of a stack of two positive definite Hermitian matrices.
MATRICES: dict[str, list[Call]] = {
    "linalg.cholesky": [lambda xp, x: xp.linalg.cholesky(x), lambda xp, x: xp.linalg.cholesky(x, upper=True)],
    "linalg.det": [lambda xp, x: xp.linalg.det(x), lambda xp, x: xp.linalg.det(x[0, ...])],
    "linalg.eigh": [_by_eigh],
    "linalg.eigvalsh": [lambda xp, x: xp.linalg.eigvalsh(x)],
    "linalg.inv": [lambda xp, x: xp.linalg.inv(x)],
    "linalg.matmul": [lambda xp, x: xp.linalg.matmul(x, x[0, :, 0])],
    "linalg.matrix_norm": [lambda xp, x: xp.linalg.matrix_norm(x), lambda xp, x: xp.linalg.matrix_norm(x, ord="nuc"),
                           lambda xp, x: xp.linalg.matrix_norm(x, ord=-2, keepdims=True),
                           lambda xp, x: xp.linalg.matrix_norm(x[:, :2, :], ord=float("inf"))],
    "linalg.matrix_power": [lambda xp, x: xp.linalg.matrix_power(x, 3), lambda xp, x: xp.linalg.matrix_power(x, -1),
                            lambda xp, x: xp.linalg.matrix_power(x, 0)],
    "linalg.matrix_rank": [lambda xp, x: xp.linalg.matrix_rank(x), lambda xp, x: xp.linalg.matrix_rank(x, rtol=10.0)],
    "linalg.matrix_transpose": [lambda xp, x: xp.linalg.matrix_transpose(x)],
    "linalg.pinv": [lambda xp, x: xp.linalg.pinv(x[:, :2, :]), lambda xp, x: xp.linalg.pinv(x, rtol=1e-3)],
    "linalg.qr": [lambda xp, x: _joined(xp.linalg.qr(x[..., :2]), "Q", "R"),
                  lambda xp, x: _joined(xp.linalg.qr(x[..., :2], mode="complete"), "Q", "R")],
    "linalg.slogdet": [lambda xp, x: _fields(xp.linalg.slogdet(-x), "sign", "logabsdet")],
    "linalg.solve": [lambda xp, x: xp.linalg.solve(x, x[0, :, :2]), lambda xp, x: xp.linalg.solve(x, x[0, 0, :])],
    "linalg.svd": [lambda xp, x: _by_svd(xp, x, True), lambda xp, x: _by_svd(xp, x[:, :, :2], False)],
    "linalg.svdvals": [lambda xp, x: xp.linalg.svdvals(x[:, :2, :])],
    "linalg.tensordot": [lambda xp, x: xp.linalg.tensordot(x, x[0, ...], axes=1)],
    "linalg.vecdot": [lambda xp, x: xp.linalg.vecdot(x, x[:1, ...], axis=-2)],
    "fft.fftshift": [lambda xp, x: xp.fft.fftshift(x), lambda xp, x: xp.fft.fftshift(x, axes=(0, -1))],
    "fft.ifftshift": [lambda xp, x: xp.fft.ifftshift(x, axes=1)],
} | {f"fft.{name}": [lambda xp, x, name=name: getattr(xp.fft, name)(x),
                     lambda xp, x, name=name: getattr(xp.fft, name)(x, n=4, axis=0, norm="ortho"),
                     lambda xp, x, name=name: getattr(xp.fft, name)(x, n=2, norm="forward")]
     for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
} | {f"fft.{name}": [lambda xp, x, name=name: getattr(xp.fft, name)(x),
                     lambda xp, x, name=name: getattr(xp.fft, name)(x, s=(4, 3), axes=(0, 2), norm="ortho")]
     for name in ("fftn", "ifftn", "rfftn", "irfftn")}

#: Of no array.
ALONE: dict[str, list[Call]] = {
    "arange": [lambda xp: xp.arange(5), lambda xp: xp.arange(1, 2, 0.25), lambda xp: xp.arange(5, -1, -2),
               lambda xp: xp.arange(3, dtype=xp.float32), lambda xp: xp.arange(0, dtype=xp.uint8)],
    "empty": [lambda xp: xp.empty((2, 3)).shape, lambda xp: xp.empty((2, 0), dtype=xp.int8)],
    "eye": [lambda xp: xp.eye(3), lambda xp: xp.eye(2, 4, k=1), lambda xp: xp.eye(3, 2, k=-1, dtype=xp.complex64)],
    "full": [lambda xp: xp.full((2,), 3), lambda xp: xp.full(2, 2.5), lambda xp: xp.full((), True),
             lambda xp: xp.full((0, 2), 1j), lambda xp: xp.full((2,), 3, dtype=xp.uint8)],
    "linspace": [lambda xp: xp.linspace(0, 1, 5), lambda xp: xp.linspace(0, 1, 4, endpoint=False),
                 lambda xp: xp.linspace(1, 2, num=3, dtype=xp.float32), lambda xp: xp.linspace(0, 1j, 3),
                 lambda xp: xp.linspace(0, 1, 1), lambda xp: xp.linspace(0, 1, 0)],
    "ones": [lambda xp: xp.ones(()), lambda xp: xp.ones((2, 3), dtype=xp.bool)],
    "zeros": [lambda xp: xp.zeros(3), lambda xp: xp.zeros((0, 2), dtype=xp.complex128)],
    "fft.fftfreq": [lambda xp: xp.fft.fftfreq(5), lambda xp: xp.fft.fftfreq(4, d=0.5)],
    "fft.rfftfreq": [lambda xp: xp.fft.rfftfreq(5, d=2.0), lambda xp: xp.fft.rfftfreq(4)],
    "e": [lambda xp: xp.e], "inf": [lambda xp: [xp.inf, -xp.inf]], "nan": [lambda xp: xp.nan], "pi": [lambda xp: xp.pi],
    "newaxis": [lambda xp: xp.newaxis],
    "asarray of Python's numbers": [lambda xp: xp.asarray([[1, 2], [3, 4]]), lambda xp: xp.asarray(True),
                                    lambda xp: xp.asarray([]), lambda xp: xp.asarray((1.5, 2j)),
                                    lambda xp: xp.asarray([1, 2.5]), lambda xp: xp.asarray(3, dtype=xp.uint16)],
}
