"""Random numbers beside jax's: to the last bit, over generators, keys, shapes, dtypes and ways to call."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from numpy.testing import assert_allclose

import corejax as cj
from corejax import random

jax = pytest.importorskip("jax")
jr = jax.random

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
SHAPES = ((), (5,), (3, 4), (0, 2), (1003,))
GENERATORS = ("threefry2x32", "philox4x32", "rbg", "unsafe_rbg")


def same(ours, theirs):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert (theirs.dtype, theirs.shape) == (ours.dtype, ours.shape)
    assert theirs.tobytes() == ours.tobytes()


def keys(seed, impl="threefry2x32"):
    return random.key(seed, impl=impl), jr.key(seed, impl=impl)


@pytest.fixture(autouse=True)
def wide():
    with jax.enable_x64(True):
        yield


@pytest.mark.sample(6)
@pytest.mark.parametrize("impl", GENERATORS)
@pytest.mark.parametrize("seed", [0, 42, -1, 2 ** 40 + 5, -2 ** 63])
def test_keys_and_bits_are_those_of_jax(impl, seed):
    ours, theirs = keys(seed, impl)
    same(random.key_data(ours), jr.key_data(theirs))
    for num in (2, (2, 3), 300):
        same(random.key_data(random.split(ours, num)), jr.key_data(jr.split(theirs, num)))
    for data in (0, 7, 2 ** 32 - 1):
        same(random.key_data(random.fold_in(ours, data)), jr.key_data(jr.fold_in(theirs, data)))
    for dtype in INTEGERS[1::2]:
        for shape in SHAPES:
            same(random.bits(ours, shape, dtype), jr.bits(theirs, shape, dtype))


#: By dtype and shape: the functions that jax's numbers are held to bit by bit.
EXACT = {
    "uniform": lambda r, key, shape, dtype: r.uniform(key, shape, dtype),
    "uniform, bounds": lambda r, key, shape, dtype: r.uniform(key, shape, dtype, -2.0, 3.5),
    "normal": lambda r, key, shape, dtype: r.normal(key, shape, dtype),
    "exponential": lambda r, key, shape, dtype: r.exponential(key, shape, dtype),
    "laplace": lambda r, key, shape, dtype: r.laplace(key, shape, dtype),
    "logistic": lambda r, key, shape, dtype: r.logistic(key, shape, dtype),
    "gumbel": lambda r, key, shape, dtype: r.gumbel(key, shape, dtype),
    "gumbel, high": lambda r, key, shape, dtype: r.gumbel(key, shape, dtype, "high"),
    "gumbel, highest": lambda r, key, shape, dtype: r.gumbel(key, shape, dtype, "highest"),
    "truncated_normal": lambda r, key, shape, dtype: r.truncated_normal(key, -1.0, 2.0, shape, dtype),
    "rademacher": lambda r, key, shape, dtype: r.rademacher(key, shape, dtype),
}


@pytest.mark.sample(12)
@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_are_those_of_jax(name, dtype):
    for seed, shape in enumerate(SHAPES):
        for impl in GENERATORS[:1 + (seed == 1)]:
            ours, theirs = keys(seed, impl)
            same(EXACT[name](random, ours, shape, dtype), EXACT[name](jr, theirs, shape, dtype))


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", EXACT)
def test_default_dtypes_are_those_of_jax(name):
    ours, theirs = keys(3)
    same(EXACT[name](random, ours, (7,), None), EXACT[name](jr, theirs, (7,), None))
    with jax.enable_x64(False), cj.config(default_bits=32):
        same(EXACT[name](random, ours, (7,), None), EXACT[name](jr, theirs, (7,), None))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_normal_numbers_are_those_of_jax(dtype):
    for seed, shape in enumerate(SHAPES):
        ours, theirs = keys(seed)
        same(random.normal(ours, shape, dtype), jr.normal(theirs, shape, dtype))


@pytest.mark.sample(24)
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("bounds", [(0, 7), (-5, 100), (0, 2 ** 40), (3, 3), (-2 ** 62, 2 ** 62), (0, 256), (-128, 128),
                                    (0, 2 ** 32), (np.array([0, 5, 9]), np.array([7, 5, 2 ** 33]))])
def test_integers_are_those_of_jax(dtype, bounds):
    ours, theirs = keys(11)
    for shape in ((2, 3), (5, 3)):
        same(random.randint(ours, shape, *bounds, dtype), jr.randint(theirs, shape, *bounds, dtype))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("mode", ["low", "high"])
def test_two_outcomes_are_those_of_jax(dtype, mode):
    ours, theirs = keys(12)
    p = np.asarray(jax.numpy.asarray([0.3, 0.5, 1.0], dtype))
    same(random.bernoulli(ours, p, (50, 3), mode), jr.bernoulli(theirs, p, (50, 3), mode))


@pytest.mark.parametrize("x", [0, 1, 2, 10, 3000, np.arange(7.0), np.arange(24).reshape(2, 3, 4) % 5])
@pytest.mark.parametrize("independent", [False, True])
def test_orders_are_those_of_jax(x, independent):
    ours, theirs = keys(13)
    for axis in range(-1, max(1, np.ndim(x))):
        same(random.permutation(ours, x, axis, independent), jr.permutation(theirs, x, axis, independent))


@pytest.mark.sample(3)
@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("p", [None, "float32", "float64"])
def test_choices_are_those_of_jax(replace, p):
    ours, theirs = keys(14)
    for a, shape, axis in ((5, (4,), 0), (1000, (50, 2), 0), (np.arange(12.0).reshape(3, 4), (2,), 0),
                           (np.arange(12).reshape(3, 4), (2, 2), 1), (5, (), 0), (5, (0,), 0)):
        count = a if isinstance(a, int) else a.shape[axis]
        chances = None if p is None else (np.arange(1, count + 1) / (count * (count + 1) / 2)).astype(p)
        same(random.choice(ours, a, shape, replace, chances, axis), jr.choice(theirs, a, shape, replace, chances, axis))


@pytest.mark.sample(6)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("mode", ["low", "high", None])
def test_categories_are_those_of_jax(dtype, mode):
    ours, theirs = keys(15)
    logits = np.asarray(jax.numpy.asarray(np.log(np.random.default_rng(0).random((3, 5, 4))), dtype))
    for axis, shape, replace in ((0, None, True), (1, (7, 3, 4), True), (-1, (2, 3, 5), True), (1, (2, 3, 4), False),
                                 (-1, (3, 1, 3, 5), False)):
        same(random.categorical(ours, logits, axis, shape, replace, mode),
             jr.categorical(theirs, logits, axis, shape, replace, mode))


#: Functions that are held to jax's within rounding.
NEAR = {
    "ball": lambda r, key: r.ball(key, 3, 1.5, (50,)),
    "beta": lambda r, key: r.beta(key, 0.5, 2.0, (50,)),
    "binomial": lambda r, key: r.binomial(
        key, np.array([9, 1000, -1, np.inf]), np.array([0.3, 0.9, 0.5, 0.5]), (50, 4)),
    "cauchy": lambda r, key: r.cauchy(key, (50,)),
    "chisquare": lambda r, key: r.chisquare(key, 3.0, (50,)),
    "dirichlet": lambda r, key: r.dirichlet(key, np.array([1.0, 2.0, 0.1]), (50,)),
    "double_sided_maxwell": lambda r, key: r.double_sided_maxwell(key, 1.0, np.ones(2), (50,)),
    "double_sided_maxwell, shape": lambda r, key: r.double_sided_maxwell(key, 1.0, np.ones(2)),
    "f": lambda r, key: r.f(key, 3.0, 5.0, (50,)),
    "gamma": lambda r, key: r.gamma(key, np.array([0.1, 1.0, 30.0]), (50, 3)),
    "generalized_normal": lambda r, key: r.generalized_normal(key, 1.5, (50,)),
    "geometric": lambda r, key: r.geometric(key, np.array([0.1, 0.9]), (50, 2)),
    "loggamma": lambda r, key: r.loggamma(key, np.array([1e-3, 1.0, 30.0]), (50, 3)),
    "lognormal": lambda r, key: r.lognormal(key, 0.5, (50,)),
    "maxwell": lambda r, key: r.maxwell(key, (50,)),
    "multinomial": lambda r, key: r.multinomial(key, 100, np.array([0.2, 0.3, 0.5])),
    "multivariate_normal": lambda r, key: r.multivariate_normal(
        key, np.array([1.0, 0.0]), np.array([[2.0, 1.0], [1.0, 2.0]]), (50,)),
    "orthogonal": lambda r, key: r.orthogonal(key, 3, (5,), m=4),
    "pareto": lambda r, key: r.pareto(key, 2.5, (50,)),
    "poisson": lambda r, key: r.poisson(key, np.array([0.0, 3.0, 40.0, 1e5]), (50, 4)),
    "rayleigh": lambda r, key: r.rayleigh(key, 2.0, (50,)),
    "t": lambda r, key: r.t(key, 3.0, (50,)),
    "triangular": lambda r, key: r.triangular(key, -1.0, 0.5, 3.0, (50,)),
    "wald": lambda r, key: r.wald(key, 1.5, (50,)),
    "weibull_min": lambda r, key: r.weibull_min(key, 2.0, 1.5, (50,)),
}


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", NEAR)
def test_other_numbers_are_those_of_jax_within_rounding(name):
    ours, theirs = keys(16)
    found, wanted = np.asarray(NEAR[name](random, ours)), np.asarray(NEAR[name](jr, theirs))
    assert wanted.dtype == found.dtype
    assert_allclose(found, wanted, rtol=1e-11)


GRADIENTS = {
    "normal": (lambda r, key, x: (r.normal(key, (5,)) * x).sum()),
    "uniform": (lambda r, key, x: (r.uniform(key, (5,), minval=x, maxval=2 * x) ** 2).sum()),
    "gamma": (lambda r, key, x: (r.gamma(key, x, (5,)) ** 2).sum()),
    "loggamma": (lambda r, key, x: (r.loggamma(key, x, (5,)) ** 2).sum()),
    "truncated_normal": (lambda r, key, x: (r.truncated_normal(key, -x, x, (5,)) ** 3).sum()),
    "beta": (lambda r, key, x: (r.beta(key, x, 2.0, (5,)) ** 2).sum()),
    "bernoulli": (lambda r, key, x: (r.bernoulli(key, x / 9, (5,)) * x).sum()),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", GRADIENTS)
def test_derivatives_are_those_of_jax(name):
    ours, theirs = keys(17)
    found = cj.grad(lambda x: GRADIENTS[name](random, ours, x))(1.7)
    wanted = jax.grad(lambda x: GRADIENTS[name](jr, theirs, x))(1.7)
    assert_allclose(found, wanted, rtol=1e-5 if "gamma" in name or name == "beta" else 1e-12)


@pytest.mark.parametrize("name", sorted({name for name in dir(jr) if not name.startswith("_")} - {"random_gamma_p"}))
def test_arguments_have_the_names_order_and_defaults_of_jax(name):
    ours, theirs = [[(p.name, p.kind, p.default) for p in inspect.signature(getattr(r, name)).parameters.values()]
                    for r in (random, jr)]
    assert theirs == ours


def test_every_name_of_jax_is_there():
    assert {name for name in dir(jr) if not name.startswith("_")} <= set(dir(random))
    assert 48 == len([name for name in dir(jr) if not name.startswith("_")])


#: What a drawn case calls: of the module, a key, a shape, a generator of parameters, and a dtype or None.
DRAWN = {
    **{name: (FLOATS, call) for name, call in EXACT.items()},
    "bits": (INTEGERS[1::2], lambda r, key, shape, dtype: r.bits(key, shape, dtype)),
    "randint": (INTEGERS, lambda r, key, shape, dtype: r.randint(key, shape, -7, 90, dtype)),
    "bernoulli": ((None,), lambda r, key, shape, dtype: r.bernoulli(key, 0.3, shape)),
    "split": ((None,), lambda r, key, shape, dtype: r.key_data(r.split(key, shape))),
    "permutation": ((None,), lambda r, key, shape, dtype: r.permutation(key, np.arange(np.prod(shape)).reshape(shape))),
}


@pytest.mark.sample(15)
@pytest.mark.parametrize("case", range(1000))
def test_drawn_cases_are_those_of_jax(case):
    rng = np.random.default_rng(case)
    name = list(DRAWN)[rng.integers(len(DRAWN))]
    dtypes, call = DRAWN[name]
    shape = tuple(rng.integers(0, [4, 40, 9][rng.integers(3)], rng.integers(name == "permutation", 4)).tolist())
    dtype = [*dtypes, None][rng.integers(len(dtypes) + 1)]
    impl = GENERATORS[rng.integers(4)] if rng.random() < 0.5 else GENERATORS[0]
    ours, theirs = keys(int(rng.integers(-2 ** 63, 2 ** 63)), impl)
    if rng.random() < 0.3:
        same(call(random, random.PRNGKey(case), shape, dtype), call(jr, jr.PRNGKey(case), shape, dtype))
    elif rng.random() < 0.5 and impl in GENERATORS[:2] and name != "permutation":  # others map in another way
        many, others = random.split(ours, 3), jr.split(theirs, 3)
        same(cj.vmap(lambda key: call(random, key, shape, dtype))(many),
             jax.vmap(lambda key: call(jr, key, shape, dtype))(others))
    else:
        same(call(random, ours, shape, dtype), call(jr, theirs, shape, dtype))
