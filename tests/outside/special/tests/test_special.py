"""Values beside SciPy's, derivatives beside differences, transformations nested, and the laws of the kit."""

import itertools

import numpy as np
import pytest
from scipy import special

import corejax as cj
from corejax.errors import CorejaxTypeError
from corejax.testing import pack_tests
from outside_special import digamma, erf, erf_inv, erfc, lgamma, polygamma

FUNCTIONS = {
    "erf": (erf, special.erf, np.linspace(-3.0, 3.0, 7)),
    "erfc": (erfc, special.erfc, np.linspace(-3.0, 9.0, 7)),
    "erf_inv": (erf_inv, special.erfinv, np.linspace(-0.9, 0.9, 7)),
    "lgamma": (lgamma, special.gammaln, np.linspace(0.3, 6.0, 7)),
    "digamma": (digamma, special.digamma, np.linspace(0.3, 6.0, 7)),
    "polygamma": (lambda x: polygamma(x, order=2), lambda x: special.polygamma(2, x), np.linspace(0.3, 6.0, 7)),
}

test_rules = pack_tests("outside-special")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_those_of_scipy_and_slopes_those_of_differences(name):
    f, known, x = FUNCTIONS[name]
    np.testing.assert_allclose(f(x), known(x), rtol=1e-12)
    h = 1e-6
    np.testing.assert_allclose(cj.grad(lambda x: f(x).sum())(x), (known(x + h) - known(x - h)) / (2 * h), rtol=1e-6)


def test_transformations_nest():
    x = np.array([[-0.5, 0.0], [0.25, 0.75]])
    slope = 2.0 / np.sqrt(np.pi) * np.exp(-x * x)
    orders = special.erf(x), slope, -2.0 * x * slope, (4.0 * x * x - 2.0) * slope
    transforms = cj.jit, cj.vmap, lambda f: cj.grad(lambda x: f(x).sum())
    for chosen in itertools.product(transforms, repeat=3):
        f, order = erf, 0
        for transform in chosen:
            f, order = transform(f), order + (transform is transforms[2])
        if chosen.count(cj.vmap) < 3:
            np.testing.assert_allclose(f(x), orders[order], rtol=1e-12, atol=1e-15)


def test_wrong_operands_are_refused_by_name():
    with pytest.raises(CorejaxTypeError, match="erf: dtype i64 is not supported"):
        erf(np.arange(3))
    with pytest.raises(CorejaxTypeError, match="polygamma: dtype i64 is not supported"):
        polygamma(np.arange(3), order=1)
