"""Distributions: what they are by statistics, their derivatives, their types, and wrong parameters."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax import random

stats = pytest.importorskip("scipy.stats")

KEY = random.key(2024)
COUNT = 20_000

CONTINUOUS = {
    "uniform": (lambda: random.uniform(KEY, (COUNT,), minval=-1.0, maxval=3.0), lambda: stats.uniform(-1, 4)),
    "normal": (lambda: random.normal(KEY, (COUNT,)), lambda: stats.norm()),
    "truncated_normal": (lambda: random.truncated_normal(KEY, -0.5, 2.0, (COUNT,)), lambda: stats.truncnorm(-0.5, 2.0)),
    "lognormal": (lambda: random.lognormal(KEY, 0.5, (COUNT,)), lambda: stats.lognorm(0.5)),
    "maxwell": (lambda: random.maxwell(KEY, (COUNT,)), lambda: stats.maxwell()),
    "exponential": (lambda: random.exponential(KEY, (COUNT,)), lambda: stats.expon()),
    "laplace": (lambda: random.laplace(KEY, (COUNT,)), lambda: stats.laplace()),
    "logistic": (lambda: random.logistic(KEY, (COUNT,)), lambda: stats.logistic()),
    "cauchy": (lambda: random.cauchy(KEY, (COUNT,)), lambda: stats.cauchy()),
    "gumbel": (lambda: random.gumbel(KEY, (COUNT,)), lambda: stats.gumbel_r()),
    "gumbel, high": (lambda: random.gumbel(KEY, (COUNT,), mode="high"), lambda: stats.gumbel_r()),
    "gumbel, highest": (lambda: random.gumbel(KEY, (COUNT,), "float32", "highest"), lambda: stats.gumbel_r()),
    "pareto": (lambda: random.pareto(KEY, 2.5, (COUNT,)), lambda: stats.pareto(2.5)),
    "rayleigh": (lambda: random.rayleigh(KEY, 2.0, (COUNT,)), lambda: stats.rayleigh(scale=2.0)),
    "weibull_min": (lambda: random.weibull_min(KEY, 2.0, 1.5, (COUNT,)), lambda: stats.weibull_min(1.5, scale=2.0)),
    "triangular": (lambda: random.triangular(KEY, -1.0, 0.5, 3.0, (COUNT,)), lambda: stats.triang(0.375, -1, 4)),
    "wald": (lambda: random.wald(KEY, 1.5, (COUNT,)), lambda: stats.invgauss(1.5, scale=1.0)),
    "gamma": (lambda: random.gamma(KEY, 2.5, (COUNT,)), lambda: stats.gamma(2.5)),
    "gamma below one": (lambda: random.gamma(KEY, 0.2, (COUNT,)), lambda: stats.gamma(0.2)),
    "loggamma": (lambda: random.loggamma(KEY, 2.5, (COUNT,)), lambda: stats.loggamma(2.5)),
    "beta": (lambda: random.beta(KEY, 0.5, 2.0, (COUNT,)), lambda: stats.beta(0.5, 2.0)),
    "chisquare": (lambda: random.chisquare(KEY, 3.0, (COUNT,)), lambda: stats.chi2(3.0)),
    "f": (lambda: random.f(KEY, 3.0, 5.0, (COUNT,)), lambda: stats.f(3.0, 5.0)),
    "t": (lambda: random.t(KEY, 3.0, (COUNT,)), lambda: stats.t(3.0)),
    "dirichlet": (lambda: random.dirichlet(KEY, np.array([1.0, 2.0, 3.0]), (COUNT,))[:, 1], lambda: stats.beta(2, 4)),
    "generalized_normal": (lambda: random.generalized_normal(KEY, 1.5, (COUNT,)), lambda: stats.gennorm(1.5)),
    "ball": (lambda: (random.ball(KEY, 3, 2.0, (COUNT,)) ** 2).sum(-1) ** 1.5, lambda: stats.uniform()),
    "multivariate_normal": (lambda: random.multivariate_normal(
        KEY, np.array([1.0, 0.0]), np.array([[2.0, 1.0], [1.0, 2.0]]), (COUNT,)).sum(-1),
                            lambda: stats.norm(1, 6 ** 0.5)),
    "double_sided_maxwell": (lambda: abs(random.double_sided_maxwell(KEY, 0.0, 2.0, (COUNT,))) / 2.0,
                             lambda: stats.maxwell()),
}

DISCRETE = {
    "randint": (lambda: random.randint(KEY, (COUNT,), 3, 10), lambda: stats.randint(3, 10)),
    "bernoulli": (lambda: random.bernoulli(KEY, 0.3, (COUNT,)), lambda: stats.bernoulli(0.3)),
    "bernoulli, high": (lambda: random.bernoulli(KEY, 0.3, (COUNT,), "high"), lambda: stats.bernoulli(0.3)),
    "rademacher": (lambda: (random.rademacher(KEY, (COUNT,)) + 1) // 2, lambda: stats.bernoulli(0.5)),
    "geometric": (lambda: random.geometric(KEY, 0.3, (COUNT,)), lambda: stats.geom(0.3)),
    "poisson, few": (lambda: random.poisson(KEY, 3.0, (COUNT,)), lambda: stats.poisson(3.0)),
    "poisson, many": (lambda: random.poisson(KEY, 40.0, (COUNT,)), lambda: stats.poisson(40.0)),
    "binomial, few": (lambda: random.binomial(KEY, 9, 0.3, (COUNT,)), lambda: stats.binom(9, 0.3)),
    "binomial, many": (lambda: random.binomial(KEY, 100, 0.7, (COUNT,)), lambda: stats.binom(100, 0.7)),
    "multinomial": (lambda: cj.vmap(lambda key: random.multinomial(key, 10, np.array([0.2, 0.3, 0.5])))(
        random.split(KEY, COUNT))[:, 1], lambda: stats.binom(10, 0.3)),
    "categorical": (lambda: random.categorical(KEY, np.log([0.3, 0.7]), shape=(COUNT,)), lambda: stats.bernoulli(0.7)),
    "choice": (lambda: random.choice(KEY, 5, (COUNT,)), lambda: stats.randint(0, 5)),
    "choice by probabilities": (lambda: random.choice(KEY, 2, (COUNT,), p=np.array([0.3, 0.7])),
                                lambda: stats.bernoulli(0.7)),
    "permutation": (lambda: cj.vmap(lambda key: random.permutation(key, 4)[0])(random.split(KEY, COUNT)),
                    lambda: stats.randint(0, 4)),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_numbers_have_their_distribution(name):
    draw, wanted = CONTINUOUS[name]
    drawn = np.asarray(draw(), np.float64).ravel()
    assert COUNT == drawn.size and np.isfinite(drawn).all()
    assert stats.kstest(drawn, wanted().cdf).pvalue > 1e-4


@pytest.mark.parametrize("name", DISCRETE)
def test_counts_have_their_distribution(name):
    draw, wanted = DISCRETE[name]
    drawn = np.asarray(draw()).astype(np.int64)
    values, seen = np.unique(drawn, return_counts=True)
    chances = wanted().pmf(values) * COUNT
    often = chances > 20
    seen, chances = np.append(seen[often], seen[~often].sum()), np.append(chances[often], COUNT - chances[often].sum())
    kept = chances > 1e-9
    assert seen[~kept].sum() == 0
    assert stats.chisquare(seen[kept], chances[kept] * (seen.sum() / chances.sum())).pvalue > 1e-4


def test_orthogonal_matrices_are_orthogonal():
    for rows, columns in ((3, None), (2, 4), (4, 2)):
        q = np.asarray(random.orthogonal(KEY, rows, (5,), m=columns))
        product = q @ q.swapaxes(1, 2) if rows <= (columns or rows) else q.swapaxes(1, 2) @ q
        assert_allclose(product, np.broadcast_to(np.eye(product.shape[-1]), product.shape), atol=1e-12)


def test_nothing_is_chosen_twice_without_replacement():
    assert 10 == len(set(random.choice(KEY, 10, (10,), replace=False).tolist()))
    assert 3 == len(set(random.choice(KEY, 4, (3,), False, np.array([0.1, 0.2, 0.3, 0.4])).tolist()))
    drawn = np.asarray(random.categorical(KEY, np.zeros((5, 4)), 0, (3, 4), replace=False))
    assert all(3 == len(set(column)) for column in drawn.T)


def test_rows_stay_together_unless_they_are_independent():
    x = np.arange(12).reshape(4, 3)
    assert sorted(map(tuple, x)) == sorted(map(tuple, np.asarray(random.permutation(KEY, x))))
    apart = np.asarray(random.permutation(KEY, x, independent=True))
    assert_array_equal(np.sort(apart, 0), x)


# Streams

def test_streams_of_split_and_folded_keys_are_uncorrelated():
    made = [random.split(KEY, 8), cj.vmap(lambda n: random.fold_in(KEY, n))(np.arange(8, dtype=np.uint32))]
    for keys in made:
        drawn = np.asarray(cj.vmap(lambda key: random.normal(key, (COUNT,)))(keys))
        apart = np.corrcoef(drawn)[~np.eye(8, dtype=bool)]
        assert abs(apart).max() < 5 / COUNT ** 0.5


@pytest.mark.parametrize("impl", ["threefry2x32", "philox4x32"])
def test_one_other_bit_of_the_seed_changes_half_of_the_bits(impl):
    base = np.asarray(random.bits(random.key(0, impl=impl), (64,), "uint32"))
    for bit in range(64):
        other = np.asarray(random.bits(random.key(1 << bit, impl=impl), (64,), "uint32"))
        assert abs(np.bitwise_count(base ^ other).mean() - 16) < 5 * (8 / 64) ** 0.5


# Types, ways and derivatives

def test_default_dtypes_are_64_bits_wide_or_32():
    for bits in (64, 32):
        with cj.config(default_bits=bits):
            key = random.key(0)
            assert f"float{bits}" == random.normal(key, (2,)).dtype.name == random.gamma(key, 1.0).dtype.name
            assert f"int{bits}" == random.randint(key, (2,), 0, 5).dtype.name == random.poisson(key, 1.0).dtype.name
            assert f"uint{bits}" == random.bits(key, (2,)).dtype.name
            assert f"int{bits}" == random.categorical(key, np.zeros(3)).dtype.name


@pytest.mark.parametrize("name", ["uniform", "normal", "gumbel", "exponential", "bits"])
def test_the_same_call_gives_the_same_bits(name):
    draw = getattr(random, name)
    once = draw(KEY, (1000,))
    for way in (draw, lambda key, shape: draw(cj.device_put(key), shape), lambda key, shape: cj.jit(
            lambda key: draw(key, shape))(key), lambda key, shape: cj.vmap(lambda key: draw(key, shape))(key[None])[0]):
        assert_array_equal(once, way(KEY, (1000,)))


def test_numbers_beyond_the_first_do_not_depend_on_how_many_rows_there_are():
    assert_array_equal(random.normal(KEY, (1000,))[:10], random.normal(KEY, (10,)))


def test_bounds_of_uniform_numbers_have_derivatives():
    u = random.uniform(KEY, (5,))
    low, high = cj.jacrev(lambda low, high: random.uniform(KEY, (5,), minval=low, maxval=high), (0, 1))(-1.0, 2.0)
    assert_allclose(1 - u, low)
    assert_allclose(u, high)


QUANTILES = {
    "gamma": (lambda a: random.gamma(KEY, a), lambda a: stats.gamma(a)),
    "loggamma": (lambda a: random.loggamma(KEY, a), lambda a: stats.loggamma(a)),
    "truncated_normal": (lambda a: random.truncated_normal(KEY, -a, 2.0), lambda a: stats.truncnorm(-a, 2.0)),
    "truncated_normal, upper": (lambda a: random.truncated_normal(KEY, -0.5, a), lambda a: stats.truncnorm(-0.5, a)),
    "truncated_normal, tail": (lambda a: random.truncated_normal(KEY, a, a + 1.0), lambda a: stats.truncnorm(a, a + 1)),
    "pareto": (lambda a: random.pareto(KEY, a), lambda a: stats.pareto(a)),
    "chisquare": (lambda a: random.chisquare(KEY, a), lambda a: stats.chi2(a)),
    "lognormal": (lambda a: random.lognormal(KEY, a), lambda a: stats.lognorm(a)),
}


@pytest.mark.parametrize("name", QUANTILES)
@pytest.mark.parametrize("a", [0.7, 2.5])
def test_derivatives_are_those_of_the_quantile(name, a):
    draw, of = QUANTILES[name]
    share = of(a).cdf(float(draw(a)))
    wanted = (of(a + 1e-5).ppf(share) - of(a - 1e-5).ppf(share)) / 2e-5
    assert_allclose(cj.grad(draw)(a), wanted, rtol=1e-5)


# Wrong parameters

WRONG = {
    "an integer dtype": (lambda: random.normal(KEY, (), "int32"), ValueError, "numbers of this dtype can't be drawn"),
    "a complex dtype": (lambda: random.uniform(KEY, (), "complex64"), ValueError, "can't be drawn"),
    "signed bits": (lambda: random.bits(KEY, (), "int32"), ValueError, "an unsigned integer dtype"),
    "real integers": (lambda: random.randint(KEY, (), 0, 3, "float32"), ValueError, "an integer dtype"),
    "no dtype": (lambda: random.normal(KEY, (), "flout32"), TypeError, "is not a dtype"),
    "a negative size": (lambda: random.normal(KEY, (3, -1)), ValueError, "can't be negative"),
    "half a size": (lambda: random.normal(KEY, (1.5,)), TypeError, "normal"),
    "a traced size": (lambda: cj.jit(lambda n: random.normal(KEY, (n,)))(3), TypeError, "needs the value"),
    "a dtype for a shape": (lambda: random.normal(KEY, "float32"), TypeError, "normal"),
    "bounds that don't fit": (lambda: random.uniform(KEY, (3,), minval=np.zeros(2)), ValueError, "don't broadcast"),
    "bounds with more axes": (lambda: random.uniform(KEY, (), minval=np.zeros(2)), ValueError, "don't broadcast"),
    "complex bounds": (lambda: random.uniform(KEY, (), minval=1j), TypeError, "must be real"),
    "bounds that are texts": (lambda: random.uniform(KEY, (), minval="0"), TypeError, "must be a number or an array"),
    "a huge bound": (lambda: random.randint(KEY, (), 0, 2 ** 70), OverflowError, "doesn't fit any dtype"),
    "bounds of integers": (lambda: random.randint(KEY, (3,), np.zeros(2, int), 5), ValueError, "don't broadcast"),
    "a probability above one": (lambda: random.bernoulli(KEY, 1.5), ValueError, "from 0 to 1"),
    "a negative probability": (lambda: random.bernoulli(KEY, -0.5), ValueError, "from 0 to 1"),
    "a whole probability": (lambda: random.bernoulli(KEY, 1), TypeError, "a probability is a float"),
    "no mode": (lambda: random.bernoulli(KEY, 0.5, (), "middle"), ValueError, "no such mode"),
    "no Gumbel mode": (lambda: random.gumbel(KEY, (), mode="lo"), ValueError, "no such mode"),
    "parameters that don't fit": (lambda: random.beta(KEY, np.ones(2), np.ones(3)), ValueError, "broadcast together"),
    "a shape below the parameters": (lambda: random.gamma(KEY, np.ones(3), ()), ValueError, "don't broadcast"),
    "wide parameters": (lambda: random.beta(KEY, np.ones(2), np.ones(2), dtype="float32"), TypeError, "narrowed"),
    "a covariance of another size": (lambda: random.multivariate_normal(KEY, np.ones(2), np.eye(3)), ValueError, "row"),
    "a mean without axes": (lambda: random.multivariate_normal(KEY, 0.0, np.eye(1)), ValueError, "row"),
    "no method": (lambda: random.multivariate_normal(KEY, np.ones(2), np.eye(2), method="lu"), ValueError, "no such"),
    "alpha without axes": (lambda: random.dirichlet(KEY, 1.0), ValueError, "a number for each part"),
    "a negative matrix": (lambda: random.orthogonal(KEY, -1), ValueError, "can't be negative"),
    "a float matrix": (lambda: random.orthogonal(KEY, 2.5), TypeError, "orthogonal"),
    "a ball of -1 dimensions": (lambda: random.ball(KEY, -1), ValueError, "can't be negative"),
    "a real shuffle": (lambda: random.permutation(KEY, 2.5), TypeError, "must be an integer"),
    "a list to shuffle": (lambda: random.permutation(KEY, "abc"), TypeError, "an array or an integer"),
    "no such axis": (lambda: random.permutation(KEY, np.ones(3), 1), ValueError, "axis 1"),
    "nothing to choose from": (lambda: random.choice(KEY, 0, (2,)), ValueError, "nothing to choose from"),
    "too much to choose": (lambda: random.choice(KEY, 3, (4,), replace=False), ValueError, "more can't be chosen"),
    "too few probabilities": (lambda: random.choice(KEY, 3, (), p=np.array([0.5, 0.5])), ValueError, "a probability"),
    "negative probabilities": (lambda: random.choice(KEY, 2, (), p=np.array([-0.5, 1.5])), ValueError, "aren't prob"),
    "NaN as a probability": (lambda: random.choice(KEY, 2, (), p=np.array([np.nan, 1.0])), ValueError, "aren't prob"),
    "probabilities that sum to two": (lambda: random.choice(KEY, 2, (), p=np.array([1.0, 1.0])), ValueError, "sum to"),
    "logits without axes": (lambda: random.categorical(KEY, 0.5), ValueError, "axis"),
    "whole logits": (lambda: random.categorical(KEY, np.ones(3, int)), TypeError, "logits are floats"),
    "no categories": (lambda: random.categorical(KEY, np.ones(0)), ValueError, "nothing to choose from"),
    "another batch": (lambda: random.categorical(KEY, np.ones((2, 3)), shape=(3,)), ValueError, "broadcast"),
    "too many categories": (lambda: random.categorical(KEY, np.ones(2), shape=(3,), replace=False), ValueError, "more"),
    "p without axes": (lambda: random.multinomial(KEY, 3, 0.5), ValueError, "for each outcome"),
    "a traced number to shuffle": (lambda: cj.jit(lambda n: random.permutation(KEY, n))(3), TypeError, "static"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_parameter_is_told(what):
    use, kind, text = WRONG[what]
    with pytest.raises(kind) as caught:
        use()
    assert isinstance(caught.value, cj.errors.CorejaxError) and text in str(caught.value)
