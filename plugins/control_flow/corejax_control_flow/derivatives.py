"""`corejax.custom_derivatives`: derivatives that authors of functions define, under JAX's names.

>>> import corejax as cj
>>> from corejax.custom_derivatives import custom_gradient
>>> cj.grad(custom_gradient(lambda x: (x * x, lambda ct: (10.0 * ct,))))(3.0)
Array(10., dtype=float64, weak_type=True)
"""

from corejax.plugin import custom_jvp as custom_jvp, custom_vjp as custom_vjp
from corejax_control_flow.closure_conversion import closure_convert as closure_convert
from corejax_control_flow.custom_gradients import custom_gradient as custom_gradient
from corejax_control_flow.linear_calls import linear_call as linear_call
from corejax_control_flow.symbolic_zeros import (
    CustomVJPPrimal as CustomVJPPrimal,
    SymbolicZero as SymbolicZero,
    custom_vjp_primal_tree_values as custom_vjp_primal_tree_values,
    zero_from_primal as zero_from_primal,
)

__all__ = ["CustomVJPPrimal", "SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp", "custom_vjp",
           "custom_vjp_primal_tree_values", "linear_call", "zero_from_primal"]

NAMESPACE = "custom_derivatives"
