"""`corejax.nn`: what neural networks are written with, under JAX's names.

>>> from corejax import nn
>>> nn.relu(np.array([-1.0, 2.0]))
Array([0., 2.], dtype=float64)
>>> nn.softmax(np.array([0.0, 0.0])), nn.one_hot(np.array([1]), 3)
(Array([0.5, 0.5], dtype=float64), Array([[0., 1., 0.]], dtype=float64))

A function is imported when it is first used.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

from corejax.errors import CorejaxAttributeError
from corejax.plugin import public

if TYPE_CHECKING:
    from corejax_nn import initializers as initializers

NAMESPACE = "nn"

#: The modules, and the public names that each has.
_NAMES = {
    "activations": "celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu log1mexp "
                   "log_sigmoid mish relu relu6 selu sigmoid silu soft_sign softplus sparse_plus sparse_sigmoid "
                   "squareplus swish tanh",
    "normalizing": "log_softmax logmeanexp logsumexp one_hot softmax standardize",
}

_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__: list[str] = sorted([*_HOME, "initializers"])


def __getattr__(name: str) -> Any:
    if name == "initializers":
        return import_module(f"{__name__}.initializers")
    module = _HOME.get(name)
    if module is None:
        near = get_close_matches(name, __all__, 1)
        raise CorejaxAttributeError(f"module 'corejax.nn' has no attribute {name!r}", got=f"nn.{name}",
                                    wanted="a name that dir(corejax.nn) lists",
                                    todo=f"did you mean {near[0]}?" if near else "write it with what is there")
    value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
    return value


if not TYPE_CHECKING:  # for which it has to be a plain function
    __getattr__ = public(__getattr__)


def __dir__() -> list[str]:
    return list(__all__)
