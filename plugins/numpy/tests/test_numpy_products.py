"""Products, einsum, linalg, fft and polynomials beside NumPy: eagerly twice, then by the function of NumPy itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax.core import from_array_like
from corejax.errors import CorejaxTypeError, CorejaxValueError

Function = Callable[..., Any]
Shapes = tuple[tuple[int, ...], ...]


def _numbers(shape: tuple[int, ...], dtype: str = "float64", seed: int = 0) -> Any:
    rng = np.random.default_rng([seed, *shape])
    x = rng.standard_normal(shape) * 3
    return (x + 1j * rng.standard_normal(shape) if dtype[0] == "c" else x).astype(dtype)


def _check(function: Function, shapes: Shapes, dtype: str, compiled: bool = False) -> None:
    xs = [_numbers(shape, dtype, i) for i, shape in enumerate(shapes)]
    wanted = function(np, *xs)
    arrays = [from_array_like(x) for x in xs]
    found = [function(jnp, *arrays), function(jnp, *arrays)]
    if compiled:
        found.append(cj.jit(lambda *xs: function(jnp, *xs))(*xs))
    tolerance = 1e-8 if dtype in ("float64", "complex128") else 1e-3
    for outs in found:
        pairs = zip(outs, wanted, strict=True) if isinstance(wanted, tuple) else [(outs, wanted)]
        for out, expected in pairs:
            assert (np.shape(expected), np.asarray(expected).dtype) == (out.shape, out.dtype)
            np.testing.assert_allclose(np.asarray(out), expected, tolerance, tolerance)


PRODUCTS: dict[str, tuple[Shapes, Function]] = {
    "dot": (((2, 3), (4, 3, 5)), lambda m, x, y: m.dot(x, y)),
    "dot of a scalar": (((), (3,)), lambda m, x, y: m.dot(x, y)),
    "dot of nothing": (((2, 0), (0, 3)), lambda m, x, y: m.dot(x, y)),
    "inner": (((2, 3), (4, 3)), lambda m, x, y: m.inner(x, y)),
    "matmul": (((4, 1, 2, 3), (5, 3, 2)), lambda m, x, y: m.matmul(x, y)),
    "matmul of a vector": (((3,), (5, 3, 2)), lambda m, x, y: m.matmul(x, y)),
    "vdot": (((2, 3), (6,)), lambda m, x, y: m.vdot(x, y)),
    "vecdot": (((3, 2), (3, 1)), lambda m, x, y: m.vecdot(x, y, axis=0)),
    "outer": (((2, 3), (2,)), lambda m, x, y: m.outer(x, y)),
    "kron": (((2, 3), (3, 1, 2)), lambda m, x, y: m.kron(x, y)),
    "tensordot": (((2, 3, 4), (4, 3, 5)), lambda m, x, y: m.tensordot(x, y, ([1, 2], [1, 0]))),
    "tensordot over no axis": (((2,), (3,)), lambda m, x, y: m.tensordot(x, y, 0)),
    "cross": (((3, 4), (4, 3)), lambda m, x, y: m.cross(x, y, 0, 1, 0)),
    "trace": (((2, 4, 3),), lambda m, x: m.trace(x, 1, -1, 0)),
    "diagonal": (((2, 4, 3),), lambda m, x: m.diagonal(x, -1, 1, 2)),
    "diagonal outside": (((2, 3),), lambda m, x: m.diagonal(x, 5)),
    "convolve": (((2,), (4,)), lambda m, x, y: m.convolve(x, y, "same")),
    "correlate": (((3,), (5,)), lambda m, x, y: m.correlate(x, y, "full")),
    "polyadd": (((3,), (5,)), lambda m, x, y: m.polyadd(x, y)),
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int64", "int8"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_numpys(name: str, dtype: str) -> None:
    _check(PRODUCTS[name][1], PRODUCTS[name][0], dtype, compiled=dtype == "float64")


@pytest.mark.parametrize("subscripts", [
    "ij,jk", "ij,jk->ki", "ij,ij->", "ij,kj->ik", "ij,jk,kl->il", "ij,jk,ki->i", "ij,ij->ij", "ij,kl->kijl",
    "...j,jk->...k", "ii,ij->j", "ij->j", "ii->i", "ij,jk,kl,lm,mn->in"])
def test_einsum_is_numpys_in_any_order(subscripts: str) -> None:
    shapes = ((3, 3),) * (subscripts.count(",") + 1)
    for optimize in ("auto", False, "greedy"):
        _check(lambda m, *xs, way=optimize: m.einsum(subscripts, *xs, **({"optimize": way} if m is jnp else {})),
               shapes, "float64", compiled=optimize == "auto")


def test_einsum_takes_lists_of_axes_and_paths() -> None:
    x, y, z = _numbers((2, 3)), _numbers((3, 4)), _numbers((4, 5))
    np.testing.assert_allclose(np.asarray(jnp.einsum(x, [0, 1], y, [1, 2], [2, 0])), (x @ y).T)
    path, _ = jnp.einsum_path("ij,jk,kl", x, y, z)
    for way in (path, path[1:]):
        np.testing.assert_allclose(np.asarray(jnp.einsum("ij,jk,kl", x, y, z, optimize=way)), x @ y @ z)


def test_einsum_transposes_nothing_where_a_product_of_matrices_will_do() -> None:
    jaxpr = cj.make_jaxpr(lambda x, y: jnp.einsum("ij,jk->ki", x, y))(np.ones((2, 3)), np.ones((3, 4)))
    assert ["dot_general"] == [eqn.primitive.name for eqn in jaxpr.jaxpr.eqns]


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_transforms_are_numpys(name: str) -> None:
    for options in ((None, -1, None), (3, 0, "ortho"), (7, -1, "forward")):
        for dtype in ("float32", "float64"):
            _check(lambda m, x, options=options: getattr(m.fft, name)(x, *options), ((4, 5),), dtype, options[0] == 3)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_transforms_along_many_axes_are_numpys(name: str) -> None:
    _check(lambda m, x: getattr(m.fft, name)(x), ((2, 3, 2, 3, 4),), "float64", True)
    _check(lambda m, x: getattr(m.fft, name)(x, s=(3, 6), axes=(1, 0)), ((3, 4, 2),), "float64")


LINALG: dict[str, tuple[Shapes, Function]] = {
    "inv": (((2, 4, 4),), lambda m, x: m.linalg.inv(x)),
    "det": (((4, 4),), lambda m, x: m.linalg.det(x)),
    "det of 2 by 2": (((3, 2, 2),), lambda m, x: m.linalg.det(x)),
    "det of 3 by 3": (((3, 3),), lambda m, x: m.linalg.det(x)),
    "det of nothing": (((2, 0, 0),), lambda m, x: m.linalg.det(x)),
    "slogdet": (((2, 4, 4),), lambda m, x: tuple(m.linalg.slogdet(x))),
    "solve": (((4, 4), (4,)), lambda m, x, y: m.linalg.solve(x, y)),
    "solve many": (((4, 4), (2, 4, 3)), lambda m, x, y: m.linalg.solve(x, y)),
    "pinv": (((2, 4, 3),), lambda m, x: m.linalg.pinv(x)),
    "svdvals": (((4, 3),), lambda m, x: m.linalg.svdvals(x)),
    "lstsq": (((4, 3), (4,)), lambda m, x, y: m.linalg.lstsq(x, y)[0]),
    "qr": (((4, 3),), lambda m, x: tuple(m.linalg.qr(x, "complete"))),
    "eigvalsh": (((3, 3),), lambda m, x: m.linalg.eigvalsh(x + x.mT.conj())),
    "cholesky": (((3, 4),), lambda m, x: m.linalg.cholesky(x @ x.mT.conj(), upper=True)),
    "power": (((3, 3),), lambda m, x: m.linalg.matrix_power(x, 5)),
    "cond": (((3, 3),), lambda m, x: m.linalg.cond(x, 1)),
    "norm": (((3, 4),), lambda m, x: m.linalg.norm(x)),
    "nuclear norm": (((2, 3, 4),), lambda m, x: m.linalg.matrix_norm(x, ord="nuc")),
    "norm of order 3": (((3, 4),), lambda m, x: m.linalg.norm(x, 3, axis=0, keepdims=True)),
    "multi_dot": (((5, 2), (2, 6), (6, 3), (3,)), lambda m, *xs: m.linalg.multi_dot(xs)),
    "tensorsolve": (((2, 3, 6), (2, 3)), lambda m, x, y: m.linalg.tensorsolve(x, y)),
}


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", LINALG)
def test_linalg_is_numpys(name: str) -> None:
    for dtype in ("float64", "complex128", "float32"):
        _check(LINALG[name][1], LINALG[name][0], dtype, compiled=dtype == "float64")


def test_a_singular_matrix_gives_infinities_or_an_error_as_settings_say() -> None:
    singular = from_array_like(np.array([[1.0, 2.0], [2.0, 4.0]]))
    for _ in range(2):
        assert not np.isfinite(np.asarray(jnp.linalg.inv(singular))).all()
    with cj.config(numerical_failures="error"), pytest.raises(np.linalg.LinAlgError, match="singular"):
        jnp.linalg.inv(singular)


def test_a_determinant_has_a_derivative_at_singular_matrices() -> None:
    x = np.diag([1.0, 2.0, 3.0, 0.0])
    np.testing.assert_allclose(np.asarray(cj.grad(jnp.linalg.det)(x)), np.diag([0.0, 0.0, 0.0, 6.0]), atol=1e-12)
    np.testing.assert_array_equal(np.asarray(cj.grad(jnp.linalg.det)(np.ones((4, 4)))), np.zeros((4, 4)))


def test_polynomials_are_numpys() -> None:
    x = np.arange(6.0)
    for options in ({}, {"cov": True}, {"cov": "unscaled"}, {"w": np.arange(1.0, 7.0)}):
        _check(lambda m, y, options=options: m.polyfit(x, y, 2, **options), ((6, 2),), "float64")
    _check(lambda m, p: m.polyint(p, 2), ((4,),), "float64")
    _check(lambda m, p: m.polyder(p), ((4,),), "int64")
    _check(lambda m, p, x: m.polyval(p, x), ((20,), (3,)), "float64", True)
    assert [2.0, 1.0, 0.0] == np.asarray(jnp.roots([0.0, 1.0, -3.0, 2.0, 0.0])).real.round(9).tolist()


@pytest.mark.parametrize(("call", "kind", "message"), [
    (lambda x: jnp.dot(x, x), CorejaxValueError, "don't fit together"),
    (lambda x: jnp.dot(x, x.T, out=x), CorejaxTypeError, "immutable"),
    (lambda x: jnp.tensordot(x, x, 3), CorejaxValueError, "so many axes"),
    (lambda x: jnp.cross(x[:, :1], x), CorejaxValueError, "two or three components"),
    (lambda x: jnp.einsum("ij,jk", x), CorejaxValueError, "subscripts of 2 operands"),
    (lambda x: jnp.einsum("ij,jk", x, x), CorejaxValueError, "two sizes"),
    (lambda x: jnp.einsum("ij->ii", x), CorejaxValueError, "of the result"),
    (lambda x: jnp.linalg.inv(x), CorejaxValueError, "square"),
    (lambda x: jnp.linalg.norm(x, "max"), CorejaxValueError, "no such norm"),
    (lambda x: jnp.linalg.qr(x, "half"), CorejaxValueError, "no such mode"),
    (lambda x: jnp.linalg.eigh(x[:, :2], "X"), CorejaxValueError, "no such triangle"),
    (lambda x: jnp.fft.fft(x, 0), CorejaxValueError, "points"),
    (lambda x: jnp.fft.fft(x, norm="none"), CorejaxValueError, "no such norm"),
    (lambda x: jnp.convolve(x, x), CorejaxValueError, "vectors"),
    (lambda x: jnp.convolve(x[0], x[0], "most"), CorejaxValueError, "no such mode"),
    (lambda x: cj.jit(jnp.roots)(x[0]), CorejaxTypeError, "leading zeros"),
])
def test_wrong_uses_say_what_is_wrong(call: Function, kind: type[Exception], message: str) -> None:
    x = from_array_like(np.arange(6.0).reshape(2, 3))
    with pytest.raises(kind, match=message):
        call(x)
