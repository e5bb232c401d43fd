"""What rules with `symbolic_zeros=True` are given: tangents and cotangents that are known to be zero, and flags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from corejax import tree
from corejax.core import Zero, here
from corejax.errors import CorejaxTypeError, kind_of
from corejax.plugin import public
from corejax_control_flow._rule_results import array_of_tangent

#: A tangent or cotangent that is known to be zero: a type without an array.
SymbolicZero = Zero


@dataclass(slots=True)
class CustomVJPPrimal:
    """What a `fwd` rule with `symbolic_zeros=True` gets for each array: its `value`, and whether it's `perturbed`.

    It is perturbed if it has a tangent: if `bwd` has to return its cotangent.
    """

    value: Any
    perturbed: bool


@public
def custom_vjp_primal_tree_values(primals: Any) -> Any:
    """The arguments of a `fwd` rule with `symbolic_zeros=True` as plain values.

    >>> from corejax.custom_derivatives import CustomVJPPrimal, custom_vjp_primal_tree_values
    >>> custom_vjp_primal_tree_values((CustomVJPPrimal(2.0, True), [CustomVJPPrimal(3.0, False)]))
    (2.0, [3.0])
    """
    def value(leaf: Any) -> Any:
        if type(leaf) is CustomVJPPrimal:
            return leaf.value
        raise CorejaxTypeError("custom_vjp_primal_tree_values: a leaf isn't an argument of a fwd rule", where=here(),
                               got=f"{kind_of(leaf)}: {leaf!r:.80}", wanted="a CustomVJPPrimal at each leaf",
                               todo="pass the arguments as fwd gets them, and set it with symbolic_zeros=True")
    return tree.map(value, primals)


@public
def zero_from_primal(value: Any, symbolic_zeros: bool = False) -> Any:
    """The tangent of a value that doesn't change: an array of zeros, or a `SymbolicZero`.

    >>> import numpy as np
    >>> from corejax.custom_derivatives import zero_from_primal
    >>> zero_from_primal(np.ones(2)), zero_from_primal(1.0, symbolic_zeros=True)
    (Array([0., 0.], dtype=float64), Zero(f64[]))
    """
    zero = SymbolicZero.from_primal_value(value)
    return zero if symbolic_zeros else array_of_tangent(zero)
