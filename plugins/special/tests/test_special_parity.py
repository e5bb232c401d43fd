"""Special functions beside jax.lax: types, weak types, what is refused, derivatives, maps, accuracy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import corejax as cj
from corejax import lax
from special_points import Table

jax = pytest.importorskip("jax")
jlax = jax.lax

UNARY = ("erf", "erfc", "erf_inv", "bessel_i0e", "bessel_i1e", "lgamma", "digamma")
BINARY = ("zeta", "polygamma", "igamma", "igammac", "igamma_grad_a", "random_gamma_grad")
TERNARY = ("betainc",)
ACCURATE = ("lgamma", "digamma", *BINARY, *TERNARY)


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


def operands(name, dtype=np.float64):
    x = np.array([0.2, 0.45, 0.5, 0.75, 0.9])
    if name == "betainc":
        return tuple(each.astype(dtype) for each in (x + 0.5, x[::-1] * 3.0, x))
    first = {"polygamma": [np.array([0.0, 1.0, 2.0, 3.0, 1.0])]}.get(name, [1.5 + x] if name in BINARY else [])
    return tuple(each.astype(dtype) for each in (*first, x * (1.0 if name == "erf_inv" else 3.0)))


@pytest.mark.parametrize("name", UNARY + BINARY + TERNARY)
def test_types_and_weak_types_are_those_of_jax(name):
    ours, theirs, count = getattr(lax, name), getattr(jlax, name), 1 if name in UNARY else 2 if name in BINARY else 3
    scalars = [1.5, 1, True, 1j, np.float64(1.5), np.float32(1.5), np.int32(1)]
    arrays = [np.ones(s, t) for s in ((), (3,), (2, 0)) for t in
              (np.float64, np.float32, np.float16, ml_dtypes.bfloat16, np.int64, np.uint8, np.bool_, np.complex64)]
    cases = [[x] * count for x in (*scalars, *arrays)]
    if count == 2:
        cases += [[1.5, np.ones(3)], [np.ones(3), 1.5], [np.ones(3), np.ones(2)], [np.ones(3), np.ones(3, np.float32)],
                  [np.ones(3), np.ones(3, np.int32)], [np.ones(2), np.ones((2, 2))]]  # beside float32, jax takes no 1.5
    if name == "random_gamma_grad":
        cases.pop()  # jax repeats the first along the wrong axis
    for args in cases:
        try:
            wanted = jax.eval_shape(theirs, *args)
        except (TypeError, ValueError):  # random_gamma_grad raises the latter, for shapes
            with pytest.raises(TypeError):
                ours(*args)
            continue
        aval = cj.make_jaxpr(ours)(*args).out_avals[0]
        assert (wanted.shape, wanted.dtype, wanted.weak_type) == (aval.shape, aval.dtype, aval.weak_type), args


@pytest.mark.parametrize("name", (*UNARY, "polygamma", "igamma", "igammac", "betainc"))  # jax has none of the others
def test_derivatives_and_maps_agree_with_jax(name):
    args = operands(name)
    fixed, x = args[:-1], args[-1]

    def each(f, grad):
        value = lambda x, *n: f(*n, x)
        slope = grad(value)
        return value, slope, grad(slope)

    ours = cj.jit(cj.vmap(lambda x, *n: tuple(f(x, *n) for f in each(getattr(lax, name), cj.grad))))(x, *fixed)
    theirs = jax.jit(jax.vmap(lambda x, *n: tuple(f(x, *n) for f in each(getattr(jlax, name), jax.grad))))(x, *fixed)
    for order, (got, wanted) in enumerate(zip(ours, theirs, strict=True)):
        np.testing.assert_allclose(got, np.asarray(wanted), rtol=2e-12, err_msg=f"derivative {order}")


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", UNARY + BINARY + TERNARY)
def test_batches_along_any_axis_agree_with_jax(name):
    *fixed, x = (np.stack([a, a[::-1]]) for a in operands(name, np.float32))
    axes = [(0,) * (len(fixed) + 1), (1,) * (len(fixed) + 1)]
    if fixed:
        axes += [(None,) * len(fixed) + (0,), (1,) * len(fixed) + (None,)]
    for in_axes in axes:
        args = [a[0, 0] if axis is None else a for a, axis in zip((*fixed, x), in_axes, strict=True)]
        got = cj.vmap(getattr(lax, name), in_axes)(*args)
        wanted = jax.vmap(getattr(jlax, name), in_axes)(*args)
        assert wanted.shape == got.shape
        np.testing.assert_allclose(got, np.asarray(wanted), rtol=2e-5)


@pytest.mark.sample(8)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ACCURATE)
def test_no_error_is_above_the_largest_of_jax(name, dtype):
    table = Table(name, dtype)
    ours = table.errors(np.asarray(cj.jit(getattr(lax, name))(*table.operands))) / table.allowed()
    theirs = table.errors(np.asarray(jax.jit(getattr(jlax, name))(*table.operands))) / table.allowed()
    assert ours.max() <= np.where(np.isnan(theirs), np.inf, theirs).max()
