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

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corejax.plugin import namespace

NAMESPACE = "random"

#: The modules, and the public names that each has.
_NAMES = {
    "keys": "PRNGKey clone fold_in key key_data key_dtype key_impl split wrap_key_data",
    "uniforms": "bernoulli bits rademacher randint uniform",
    "normals": "double_sided_maxwell lognormal maxwell multivariate_normal normal orthogonal truncated_normal",
    "quantiles": "cauchy exponential geometric gumbel laplace logistic pareto rayleigh triangular wald weibull_min",
    "gammas": "ball beta chisquare dirichlet f gamma generalized_normal loggamma random_gamma_p t",
    "counts": "binomial multinomial poisson",
    "choosing": "categorical choice permutation",
    "generators": "Generator",
    "reuse": "KeyReuseError",
}

if TYPE_CHECKING:
    from corejax_random.generators import Generator as Generator
    from corejax_random.reuse import KeyReuseError as KeyReuseError

    def __getattr__(name: str) -> Any: ...
else:
    __all__, __getattr__, __dir__ = namespace(__name__, _NAMES)
