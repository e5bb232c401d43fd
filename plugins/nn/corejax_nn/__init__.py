"""`corejax.nn`: what neural networks are written with, under JAX's names.

>>> from corejax import nn
>>> nn.relu(np.array([-1.0, 2.0]))
Array([0., 2.], dtype=float64)
>>> nn.softmax(np.array([0.0, 0.0])), nn.one_hot(np.array([1]), 3)
(Array([0.5, 0.5], dtype=float64), Array([[0., 1., 0.]], dtype=float64))

A function is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corejax.plugin import namespace

NAMESPACE = "nn"

#: The modules, and the public names that each has.
_NAMES = {
    "activations": "celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu log1mexp "
                   "log_sigmoid mish relu relu6 selu sigmoid silu soft_sign softplus sparse_plus sparse_sigmoid "
                   "squareplus swish tanh",
    "attention": "dot_product_attention",
    "normalizing": "log_softmax logmeanexp logsumexp one_hot softmax standardize",
    "scaled": "get_scaled_dot_general_config scaled_dot_general scaled_matmul",
    "initializers": "=initializers",
}

if TYPE_CHECKING:
    from corejax_nn import initializers as initializers

    def __getattr__(name: str) -> Any: ...
else:
    __all__, __getattr__, __dir__ = namespace(__name__, _NAMES)
