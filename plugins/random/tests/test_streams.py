"""Statistics of many numbers: distributions at the edges of their parameters, and streams of keys beside each other."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import corejax as cj
from corejax import random
from corejax_random._blocks import IN_TURNS

stats = pytest.importorskip("scipy.stats")

KEY = random.key(77)
COUNT = 10 ** 6

CONTINUOUS = {
    "uniform": (lambda n: random.uniform(KEY, n), lambda: stats.uniform()),
    "uniform, float32": (lambda n: random.uniform(KEY, n, "float32"), lambda: stats.uniform()),
    "normal": (lambda n: random.normal(KEY, n), lambda: stats.norm()),
    "normal, philox": (lambda n: random.normal(random.key(7, impl="philox4x32"), n), lambda: stats.norm()),
    "normal, rbg": (lambda n: random.normal(random.key(7, impl="rbg"), n), lambda: stats.norm()),
    "truncated_normal, tail": (lambda n: random.truncated_normal(KEY, 3.0, 5.0, n), lambda: stats.truncnorm(3, 5)),
    "truncated_normal, narrow": (lambda n: random.truncated_normal(KEY, 0.1, 0.101, n),
                                 lambda: stats.truncnorm(0.1, 0.101)),
    "exponential": (lambda n: random.exponential(KEY, n), lambda: stats.expon()),
    "laplace": (lambda n: random.laplace(KEY, n), lambda: stats.laplace()),
    "logistic": (lambda n: random.logistic(KEY, n), lambda: stats.logistic()),
    "cauchy": (lambda n: random.cauchy(KEY, n), lambda: stats.cauchy()),
    "gumbel": (lambda n: random.gumbel(KEY, n), lambda: stats.gumbel_r()),
    "pareto, heavy": (lambda n: random.pareto(KEY, 0.5, n), lambda: stats.pareto(0.5)),
    "weibull_min, steep": (lambda n: random.weibull_min(KEY, 1.0, 20.0, n), lambda: stats.weibull_min(20.0)),
    "triangular, one-sided": (lambda n: random.triangular(KEY, 0.0, 0.0, 1.0, n), lambda: stats.triang(0.0)),
    "wald, small": (lambda n: random.wald(KEY, 0.1, n), lambda: stats.invgauss(0.1)),
    "gamma, tiny": (lambda n: random.gamma(KEY, 0.05, n), lambda: stats.gamma(0.05)),
    "gamma, one": (lambda n: random.gamma(KEY, 1.0, n), lambda: stats.gamma(1.0)),
    "gamma, large": (lambda n: random.gamma(KEY, 1e4, n), lambda: stats.gamma(1e4)),
    "loggamma, tiny": (lambda n: random.loggamma(KEY, 1e-3, n), lambda: stats.loggamma(1e-3)),
    "beta, near zero": (lambda n: random.beta(KEY, 0.1, 5.0, n), lambda: stats.beta(0.1, 5.0)),
    "t, one degree": (lambda n: random.t(KEY, 1.0, n), lambda: stats.cauchy()),
    "f": (lambda n: random.f(KEY, 1.0, 10.0, n), lambda: stats.f(1.0, 10.0)),
    "chisquare, one": (lambda n: random.chisquare(KEY, 1.0, n), lambda: stats.chi2(1.0)),
}

DISCRETE = {
    "randint, not a power of two": (lambda n: random.randint(KEY, n, 0, 1000), lambda: stats.randint(0, 1000)),
    "bernoulli, rare": (lambda n: random.bernoulli(KEY, 1e-3, n), lambda: stats.bernoulli(1e-3)),
    "geometric, rare": (lambda n: random.geometric(KEY, 0.01, n), lambda: stats.geom(0.01)),
    "geometric, sure": (lambda n: random.geometric(KEY, 0.99, n), lambda: stats.geom(0.99)),
    "poisson, below the border": (lambda n: random.poisson(KEY, 9.99, n), lambda: stats.poisson(9.99)),
    "poisson, above the border": (lambda n: random.poisson(KEY, 10.0, n), lambda: stats.poisson(10.0)),
    "poisson, rare": (lambda n: random.poisson(KEY, 0.01, n), lambda: stats.poisson(0.01)),
    "binomial, below the border": (lambda n: random.binomial(KEY, 100, 0.0999, n), lambda: stats.binom(100, 0.0999)),
    "binomial, above the border": (lambda n: random.binomial(KEY, 100, 0.11, n), lambda: stats.binom(100, 0.11)),
    "binomial, mostly": (lambda n: random.binomial(KEY, 100, 0.95, n), lambda: stats.binom(100, 0.95)),
}

every_continuous = pytest.mark.parametrize("name", CONTINUOUS)
every_discrete = pytest.mark.parametrize("name", DISCRETE)


@pytest.mark.exhaustive
@every_continuous
def test_a_million_numbers_have_their_distribution(name):
    draw, of = CONTINUOUS[name]
    drawn = np.asarray(draw((COUNT,)), np.float64)
    assert stats.kstest(drawn, of().cdf).pvalue > 1e-4


@pytest.mark.exhaustive
@every_discrete
def test_a_million_counts_have_their_distribution(name):
    draw, of = DISCRETE[name]
    values, seen = np.unique(np.asarray(draw((COUNT,))).astype(np.int64), return_counts=True)
    chances = of().pmf(values) * COUNT
    often = chances > 20
    seen, chances = np.append(seen[often], seen[~often].sum()), np.append(chances[often], COUNT - chances[often].sum())
    kept = chances > 1e-6
    assert stats.chisquare(seen[kept], chances[kept] * (seen[kept].sum() / chances[kept].sum())).pvalue > 1e-4


GENERATORS = ("threefry2x32", "philox4x32")
every_generator = pytest.mark.parametrize("impl", GENERATORS)


def streams(impl, how, count):
    key = random.key(5, impl=impl)
    if how == "split":
        return random.split(key, count)
    if how == "fold_in":
        return cj.vmap(lambda n: random.fold_in(key, n))(np.arange(count, dtype=np.uint32))
    return cj.vmap(lambda seed: random.key(seed, impl=impl))(np.arange(count))


@every_generator
@pytest.mark.parametrize("how", ["split", "fold_in", "seeds"])
def test_birthdays_of_keys_are_spaced_as_chance_has_it(impl, how):
    """Of 2**12 numbers of 32 bits, equal distances between neighbours are Poisson distributed, with mean 4."""
    keys = streams(impl, how, 64)
    drawn = np.asarray(cj.vmap(lambda key: random.bits(key, (2 ** 12,), "uint32"))(keys)).astype(np.int64)
    apart = np.sort(np.diff(np.sort(drawn, 1), axis=1), 1)
    equal = (np.diff(apart, axis=1) == 0).sum()
    assert stats.poisson(4 * 64).cdf(equal) > 1e-4 and stats.poisson(4 * 64).sf(equal) > 1e-4


@every_generator
@pytest.mark.parametrize("how", ["split", "fold_in", "seeds"])
def test_the_first_numbers_of_streams_are_one_stream(impl, how):
    first = np.asarray(cj.vmap(lambda key: random.uniform(key))(streams(impl, how, 20_000)), np.float64)
    assert stats.kstest(first, "uniform").pvalue > 1e-4
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 5 / 20_000 ** 0.5


@every_generator
def test_one_other_bit_of_a_number_to_fold_in_changes_half_of_the_key(impl):
    key = random.key(5, impl=impl)
    base = np.asarray(random.key_data(random.fold_in(key, 0)))
    flipped = [np.bitwise_count(base ^ np.asarray(random.key_data(random.fold_in(key, 1 << bit)))).sum()
               for bit in range(32)]
    assert abs(np.mean(flipped) - 32) < 5 * 4 / 32 ** 0.5


@pytest.mark.parametrize("count", [8, 9, 20, 21, 256, 1024, 1025])
def test_numbers_that_are_repeated_are_those_that_are_drawn(count):
    def repeated(key):
        return random.bits(key, (count,))[:, None] + np.arange(3, dtype=np.uint32)

    key = random.key(count)
    wanted = np.asarray(random.bits(key, (count,)))[:, None] + np.arange(3, dtype=np.uint32)
    compiled = cj.jit(repeated).lower(key).compile()
    assert_array_equal(wanted, compiled(key))
    if count not in IN_TURNS:  # a loop is apart anyway
        assert (20 < count < 1025) == (" call(" in compiled.as_text()), "computed once, not for each column"
    assert_array_equal(wanted, cj.export.deserialize(cj.export.export(cj.jit(repeated))(key).serialize()).call(key))
