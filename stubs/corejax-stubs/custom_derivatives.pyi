# Written by `python -m corejax stubs`: don't edit it.

"""`corejax.custom_derivatives`: derivatives that authors of functions define, under JAX's names.

>>> import corejax as cj
>>> from corejax.custom_derivatives import custom_gradient
>>> cj.grad(custom_gradient(lambda x: (x * x, lambda ct: (10.0 * ct,))))(3.0)
Array(10., dtype=float64, weak_type=True)
"""

from collections.abc import Callable
from corejax.core import Array
from corejax_control_flow.derivatives import CustomVJPPrimal as CustomVJPPrimal, SymbolicZero as SymbolicZero, closure_convert as closure_convert, custom_gradient as custom_gradient, custom_jvp as custom_jvp, custom_vjp as custom_vjp, custom_vjp_primal_tree_values as custom_vjp_primal_tree_values, zero_from_primal as zero_from_primal
from typing import Any

def linear_call(fun: Callable[[Any, Any], Any], fun_transpose: Callable[[Any, Any], Any], residual_args: Any, linear_args: Any) -> Array | Any:
    """`linear_call(fun, fun_transpose, residual_args, linear_args)`: `fun(residual_args, linear_args)`.

    `fun` is linear in its second argument. `fun_transpose(residual_args, ct)` is its transpose: from something like the
    result of `fun` to something like `linear_args`. Arguments and results are pytrees, of floats or complex numbers
    where the functions are linear.

    >>> import corejax as cj
    >>> from corejax.custom_derivatives import linear_call
    >>> def divide(y, x):
    ...     return linear_call(lambda y, x: x / y, lambda y, ct: ct / y, y, x)
    >>> divide(2.0, 3.0), cj.grad(divide, argnums=(0, 1))(2.0, 3.0)
    (Array(1.5, dtype=float64, weak_type=True), (Array(-0.75, dtype=float64, weak_type=True), Array(0.5, dtype=float64, weak_type=True)))
    """
