"""Every elementwise primitive, by its own samples: values, types, derivatives, batching, compilation.

NumPy's evaluation is compared with the compiled program, derivatives with central differences in float64, transposes
with the dot-product identity, and vmap with a Python loop.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import corejax as cj
import corejax_lax_basic as basic
from corejax import lax
from corejax.core import Linear, aval_of
from corejax.errors import CorejaxError
from corejax.plugin import families
from corejax_lax_basic import (
    arithmetic,
    comparison,
    complex_parts,
    conversion,
    exponential,
    logic,
    rounding,
    selection,
    trigonometric,
)

MODULES = (arithmetic, comparison, complex_parts, conversion, exponential, logic, rounding, selection, trigonometric)
PRIMITIVES = {
    function.primitive.name: function.primitive
    for module in MODULES for function in [getattr(module, name) for name in module.__all__]
    if hasattr(function, "primitive")}
LINEAR = {name: primitive for name, primitive in PRIMITIVES.items() if primitive.linear}

each = pytest.mark.parametrize("primitive", PRIMITIVES.values(), ids=PRIMITIVES)


def samples(primitive, kinds="biufc"):
    """Its samples that work, whose first operand of the common dtype is of one of these kinds."""
    found = list(primitive.samples(np.random.default_rng(0)))
    return [s for s in found if s.error is None and np.asarray(s.args[-1]).dtype.kind in kinds]


def apply(primitive, sample):
    return lambda *args: primitive.bind(*args, **sample.params)


def close(wanted, got, tolerance=1e-9):
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert wanted.shape == got.shape
    if wanted.dtype.kind in "fc" and wanted.dtype.itemsize in (4, 8) and wanted.dtype.name in ("float32", "complex64"):
        tolerance = max(tolerance, 1e-5)
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


def tangent_like(rng, x):
    x = np.asarray(x)
    drawn = rng.standard_normal(x.shape)
    return np.asarray(drawn + 1j * rng.standard_normal(x.shape) if x.dtype.kind == "c" else drawn).astype(x.dtype)


def differentiable(sample):
    return [i for i, x in enumerate(sample.args) if np.asarray(x).dtype in (np.float64, np.complex128)]


def central_difference(f, xs, dots, step=1e-6):
    up, down = [[x + sign * step * t for x, t in zip(xs, dots, strict=True)] for sign in (1, -1)]
    return (np.asarray(f(*up)) - np.asarray(f(*down))) / (2 * step)


@each
def test_evaluation_and_the_compiled_program_agree(primitive):
    for sample in samples(primitive):
        f = apply(primitive, sample)
        eager, compiled = f(*sample.args), cj.jit(f)(*sample.args)
        assert eager.aval == compiled.aval
        close(compiled, eager)


@each
def test_abstract_evaluation_tells_the_type(primitive):
    for sample in samples(primitive):
        aval = primitive.infer(tuple(map(aval_of, sample.args)), sample.params)
        assert aval == apply(primitive, sample)(*sample.args).aval


@each
def test_refused_operands_raise_the_declared_error(primitive):
    refused = [s for s in primitive.samples(np.random.default_rng(0)) if s.error is not None]
    for sample in refused:
        with pytest.raises(sample.error) as caught:
            apply(primitive, sample)(*sample.args)
        assert isinstance(caught.value, CorejaxError)
        assert caught.value.primitive == primitive.name


@each
def test_jvp_is_the_limit_of_differences(primitive):
    rng = np.random.default_rng(1)
    for sample in samples(primitive, "fc"):
        places = differentiable(sample)
        if not places or "jvp" in sample.exempt:
            continue
        f = apply(primitive, sample)
        if aval_of(f(*sample.args)).dtype not in (np.float64, np.complex128):
            continue

        def g(*xs, f=f, sample=sample, places=places):
            args = list(sample.args)
            for i, x in zip(places, xs, strict=True):
                args[i] = x
            return f(*args)

        xs = [np.asarray(sample.args[i]) for i in places]
        for active in itertools.product((0, 1), repeat=len(places)):
            if not any(active):
                continue
            dots = [tangent_like(rng, x) * a for x, a in zip(xs, active, strict=True)]
            out, out_dot = cj.jvp(g, tuple(xs), tuple(dots))
            close(f(*sample.args), out)
            close(central_difference(g, xs, dots), out_dot, 1e-5)


@each
def test_vjp_and_jvp_agree(primitive):
    rng = np.random.default_rng(2)
    for sample in samples(primitive, "fc"):
        places = differentiable(sample)
        f = apply(primitive, sample)
        if not places or "jvp" in sample.exempt or aval_of(f(*sample.args)).dtype.kind not in "fc":
            continue

        def g(*xs, f=f, sample=sample, places=places):
            args = list(sample.args)
            for i, x in zip(places, xs, strict=True):
                args[i] = x
            return f(*args)

        xs = [np.asarray(sample.args[i]) for i in places]
        dots = [tangent_like(rng, x) for x in xs]
        out, out_dot = cj.jvp(g, tuple(xs), tuple(dots))
        _, pullback = cj.vjp(g, *xs)
        ct = tangent_like(rng, out)
        back = pullback(ct)
        for x, b in zip(xs, back, strict=True):
            assert aval_of(x) == b.aval
        close(_inner(ct, out_dot), sum(_inner(b, t) for b, t in zip(back, dots, strict=True)), 1e-8)


def _inner(x, y):
    """The bilinear product over the reals that transposes refer to: no conjugation."""
    return np.real(np.sum(np.asarray(x) * np.asarray(y)))


@pytest.mark.parametrize("primitive", LINEAR.values(), ids=LINEAR)
def test_transposes_of_linear_primitives_satisfy_the_dot_product_identity(primitive):
    rng = np.random.default_rng(3)
    for sample in samples(primitive, "fc"):
        out = apply(primitive, sample)(*sample.args)
        ct = lax.add(tangent_like(rng, out), 0)
        back = primitive.transpose(ct, [Linear(aval_of(x)) for x in sample.args], **sample.params)
        close(_inner(ct, out), sum(_inner(b, x) for b, x in zip(back, sample.args, strict=True)), 1e-8)


@each
def test_second_derivatives_are_the_limit_of_differences(primitive):
    rng = np.random.default_rng(4)
    for sample in samples(primitive, "f"):
        places = differentiable(sample)
        if "jvp" in sample.exempt or len(places) != len(sample.args) or np.asarray(sample.args[-1]).shape != (3,):
            continue
        f = apply(primitive, sample)
        if f(*sample.args).dtype.kind != "f":
            continue
        weights = rng.standard_normal(f(*sample.args).shape)

        def slope(*xs, f=f, weights=weights):
            return cj.grad(lambda *ys: (f(*ys) * weights).sum(), argnums=tuple(range(len(xs))))(*xs)

        xs = [np.asarray(x) for x in sample.args]
        dots = [rng.standard_normal(x.shape) for x in xs]
        _, second = cj.jvp(slope, tuple(xs), tuple(dots))
        for i, got in enumerate(second):
            close(central_difference(lambda *ys, i=i: slope(*ys)[i], xs, dots), got, 1e-4)


@each
def test_vmap_agrees_with_a_loop(primitive):
    rng = np.random.default_rng(5)
    for sample in samples(primitive)[:14]:
        args = [np.asarray(x) for x in sample.args]
        f = apply(primitive, sample)
        for mapped in itertools.product((None, 0, -1), repeat=len(args)):
            if all(axis is None for axis in mapped):
                continue
            batches = [x if axis is None else np.stack([_other(rng, x) for _ in range(2)], axis)
                       for x, axis in zip(args, mapped, strict=True)]
            wanted = [f(*[x if axis is None else np.take(x, i, axis) for x, axis in zip(batches, mapped, strict=True)])
                      for i in range(2)]
            got = cj.vmap(f, in_axes=mapped)(*batches)
            assert wanted[0].dtype == got.dtype
            close(np.stack([np.asarray(w) for w in wanted]), got)


def _other(rng, x):
    """Other elements of the same kind: those of x in another order."""
    return rng.permuted(x) if x.shape else x + x.dtype.type(0)


@each
def test_compiled_derivatives_agree_with_eager_ones(primitive):
    rng = np.random.default_rng(6)
    for sample in samples(primitive, "fc")[:6]:
        f = apply(primitive, sample)
        if len(differentiable(sample)) != len(sample.args) or f(*sample.args).dtype.kind not in "fc":
            continue
        xs = tuple(np.asarray(x) for x in sample.args)
        dots = tuple(tangent_like(rng, x) for x in xs)
        eager = cj.jvp(f, xs, dots)[1]
        close(eager, cj.jit(lambda *a, f=f: cj.jvp(f, a[:len(a) // 2], a[len(a) // 2:])[1])(*xs, *dots))


# What the rows don't show

def test_scalars_take_the_dtype_of_the_array_beside_them_and_stay_weak():
    x = np.ones(3, np.float32)
    assert "f32[3]" == str(lax.add(x, 1).aval)
    assert "f32[3]" == str(lax.mul(2.0, x).aval)
    assert "~f64[]" == str(lax.add(1.0, 2.0).aval)
    assert "~f64[3]" == str(lax.full((3,), 1.0).aval)


def test_a_scalar_beyond_the_kind_of_the_array_is_refused():
    with pytest.raises(TypeError, match="add: operands differ in dtype"):
        lax.add(np.ones(3, np.int32), 1.5)
    with pytest.raises(OverflowError, match="300 doesn't fit"):
        lax.add(np.ones(3, np.int8), 300)


def test_arrays_of_different_dtype_or_shape_are_refused_by_name():
    with pytest.raises(TypeError, match=r"(?s)mul: operands differ in dtype.*f32\[3\], f64\[3\]"):
        lax.mul(np.ones(3, np.float32), np.ones(3))
    with pytest.raises(TypeError, match=r"(?s)mul: operands differ in shape.*f64\[3\], f64\[4\]"):
        lax.mul(np.ones(3), np.ones(4))


def test_a_scalar_operand_spreads_in_one_equation():
    jaxpr = cj.make_jaxpr(lambda x: x * 2.0)(np.ones(3, np.float32))
    assert ["mul"] == [eqn.primitive.name for eqn in jaxpr.eqns]


def test_the_gradient_of_a_spread_scalar_is_a_sum():
    x, y = np.float64(2.0), np.arange(3.0)
    assert 3.0 == float(cj.grad(lambda x: (x * y).sum())(x))
    assert 3.0 == float(cj.grad(lambda x: (x + y).sum())(x))
    assert -3.0 == float(cj.grad(lambda x: lax.sub(y, x).sum())(x))


def test_integer_division_follows_the_compiler():
    x, y = np.array([7, -7, 5, -2**31, 0], np.int32), np.array([2, 2, 0, -1, 0], np.int32)
    assert [3, -3, -1, -2**31, -1] == lax.div(x, y).tolist()
    assert [1, -1, 5, 0, 0] == lax.rem(x, y).tolist()
    assert [255] == lax.div(np.array([9], np.uint8), np.array([0], np.uint8)).tolist()


def test_derivatives_at_ties_and_singular_points():
    grad = cj.grad
    assert (0.5, 0.5) == tuple(map(float, grad(lax.max, (0, 1))(1.0, 1.0)))
    assert (0.5, 0.5) == tuple(map(float, grad(lax.min, (0, 1))(1.0, 1.0)))
    assert 1.0 == float(grad(lax.abs)(0.0))
    assert np.inf == float(grad(lax.sqrt)(0.0))
    assert 0.0 == float(grad(lax.pow, 1)(0.0, 0.0))
    assert np.isnan(float(grad(lax.pow)(0.0, 0.0)))
    assert 0.0 == float(grad(lambda x: lax.integer_pow(x, 0))(0.0))
    assert 0.0 == float(grad(lax.sign)(2.0))


def test_select_n_chooses_by_index_and_clamps_it():
    which = np.array([-1, 0, 1, 2, 5], np.int32)
    cases = [np.full(5, float(i)) for i in range(3)]
    assert [0.0, 0.0, 1.0, 2.0, 2.0] == lax.select_n(which, *cases).tolist()
    assert [0.0, 0.0, 1.0, 2.0, 2.0] == cj.jit(lax.select_n)(which, *cases).tolist()


def test_conversion_saturates_and_has_no_nan():
    x = np.array([np.nan, np.inf, -np.inf, 1e20, -3.7])
    assert [0, 127, -128, 127, -3] == lax.convert_element_type(x, np.int8).tolist()
    assert [0, 255, 0, 255, 0] == lax.convert_element_type(x, np.uint8).tolist()
    assert [0, 127, -128, 127, -3] == cj.jit(lambda x: lax.convert_element_type(x, np.int8))(x).tolist()


def test_rounding_methods():
    x = np.array([-2.5, -0.5, 0.5, 1.5, 2.4])
    assert [-3.0, -1.0, 1.0, 2.0, 2.0] == lax.round(x).tolist()
    assert [-2.0, -0.0, 0.0, 2.0, 2.0] == lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN).tolist()


def test_a_batched_scalar_beside_an_unbatched_vector():
    got = cj.vmap(lax.mul, in_axes=(0, None))(np.arange(2.0), np.arange(3.0))
    assert [[0.0, 0.0, 0.0], [0.0, 1.0, 2.0]] == got.tolist()


def test_the_facade_has_what_the_modules_have():
    for module in MODULES:
        assert set(module.__all__) <= set(basic.__all__)


def test_every_primitive_of_a_family_declares_what_it_is_not():
    for name, primitive in PRIMITIVES.items():
        assert primitive.vmap is not None and primitive.transpose is not None, name
    with pytest.raises(NotImplementedError, match="sin .* is not linear"):
        PRIMITIVES["sin"].transpose(np.ones(3), [Linear(aval_of(np.ones(3)))])


def test_weak_scalar_refuses_kinds_beyond_the_dtype():
    assert families.weak_scalar(1.5, np.dtype(np.int32)) is None
    assert "~i32[]" == str(families.weak_scalar(1, np.dtype(np.int32)).aval)
