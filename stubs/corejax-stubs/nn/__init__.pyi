# Written by `python -m corejax stubs`: don't edit it.

"""`corejax.nn`: what neural networks are written with, under JAX's names.

>>> from corejax import nn
>>> nn.relu(np.array([-1.0, 2.0]))
Array([0., 2.], dtype=float64)
>>> nn.softmax(np.array([0.0, 0.0])), nn.one_hot(np.array([1]), 3)
(Array([0.5, 0.5], dtype=float64), Array([[0., 1., 0.]], dtype=float64))

A function is imported when it is first used.
"""

from corejax.nn import initializers as initializers
from corejax_nn.activations import celu as celu, elu as elu, gelu as gelu, glu as glu, hard_sigmoid as hard_sigmoid, hard_silu as hard_silu, hard_swish as hard_swish, hard_tanh as hard_tanh, identity as identity, leaky_relu as leaky_relu, log1mexp as log1mexp, log_sigmoid as log_sigmoid, mish as mish, relu as relu, relu6 as relu6, selu as selu, sigmoid as sigmoid, silu as silu, soft_sign as soft_sign, softplus as softplus, sparse_plus as sparse_plus, sparse_sigmoid as sparse_sigmoid, squareplus as squareplus, swish as swish, tanh as tanh
from corejax_nn.attention import dot_product_attention as dot_product_attention
from corejax_nn.normalizing import log_softmax as log_softmax, logmeanexp as logmeanexp, logsumexp as logsumexp, one_hot as one_hot, softmax as softmax, standardize as standardize
from corejax_nn.scaled import get_scaled_dot_general_config as get_scaled_dot_general_config, scaled_dot_general as scaled_dot_general, scaled_matmul as scaled_matmul
