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

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

from corejax.errors import CorejaxAttributeError
from corejax.plugin import public

if TYPE_CHECKING:
    from corejax_random.generators import Generator as Generator
    from corejax_random.reuse import KeyReuseError as KeyReuseError

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

_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__: list[str] = sorted(_HOME)


def __getattr__(name: str) -> Any:
    module = _HOME.get(name)
    if module is None:
        near = get_close_matches(name, __all__, 1)
        raise CorejaxAttributeError(f"module 'corejax.random' has no attribute {name!r}", got=f"random.{name}",
                                    wanted="a name that dir(corejax.random) lists",
                                    todo=f"did you mean {near[0]}?" if near else "write it with what is there")
    value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
    return value


if not TYPE_CHECKING:  # for which it has to be a plain function
    __getattr__ = public(__getattr__)


def __dir__() -> list[str]:
    return list(__all__)
