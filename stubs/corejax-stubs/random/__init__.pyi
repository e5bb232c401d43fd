# Written by `python -m corejax stubs`: don't edit it.

"""`corejax.random`: random numbers from keys, with JAX's names, and with its numbers to the last bit.

>>> import corejax as cj
>>> from corejax import random
>>> key = random.key(0)
>>> key, subkey = random.split(key)
>>> random.normal(subkey, (2,)).shape
(2,)
>>> random.randint(key, (3,), 0, 10)
Array([..., ..., ...], dtype=int64)

A function is imported when it is first used.
"""

from corejax.core import Array, ArrayLike
from corejax_random import Generator as Generator
from corejax_random.choosing import categorical as categorical, choice as choice, permutation as permutation
from corejax_random.counts import binomial as binomial, multinomial as multinomial, poisson as poisson
from corejax_random.gammas import ball as ball, beta as beta, chisquare as chisquare, dirichlet as dirichlet, f as f, gamma as gamma, generalized_normal as generalized_normal, loggamma as loggamma, t as t
from corejax_random.keys import PRNGKey as PRNGKey, clone as clone, fold_in as fold_in, key as key, key_data as key_data, key_dtype as key_dtype, key_impl as key_impl, split as split, wrap_key_data as wrap_key_data
from corejax_random.normals import double_sided_maxwell as double_sided_maxwell, lognormal as lognormal, maxwell as maxwell, multivariate_normal as multivariate_normal, normal as normal, orthogonal as orthogonal, truncated_normal as truncated_normal
from corejax_random.quantiles import cauchy as cauchy, exponential as exponential, geometric as geometric, gumbel as gumbel, laplace as laplace, logistic as logistic, pareto as pareto, rayleigh as rayleigh, triangular as triangular, wald as wald, weibull_min as weibull_min
from corejax_random.reuse import KeyReuseError as KeyReuseError
from corejax_random.uniforms import bernoulli as bernoulli, bits as bits, rademacher as rademacher, randint as randint, uniform as uniform

def random_gamma_p(keys: ArrayLike, shape: ArrayLike, /, *, log_space: bool) -> Array:
    """random_gamma(keys, shape; log_space): numbers of the gamma distribution, or their logarithms.

    There is a key for each of the first axes; it is split for what these have.

    >>> key = THREEFRY.of(np.array([3, 5], np.uint32))
    >>> lax.random_gamma(key, np.array([0.5, 3.0]), log_space=False)
    Array([0.44692262, 0.68021051], dtype=float64)
    """
