"""Keeps the compiler from folding integer divisions whose divisor may be zero.

Before compiling a module, the runtime replaces operations on constants with their results, and dividing by zero there
kills the process. An operand behind a barrier isn't a constant at that point. The barrier is gone by the time the
compiler fuses and generates code, where such a quotient has a value: the compiled program is the same as without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.base import _jaxlib

if TYPE_CHECKING:
    from corejax.base._jaxlib import Module, Operation

#: The operations that are dangerous if their operands are integers.
DIVISIONS = frozenset(("stablehlo.divide", "stablehlo.remainder"))

_BARRIER, _CONSTANT, _BROADCAST = "stablehlo.optimization_barrier", "stablehlo.constant", "stablehlo.broadcast_in_dim"


def divisible(operands: Sequence[Any]) -> Sequence[Any]:
    """The operands of a division, with the divisor behind a barrier unless it is known to be nonzero.

    The barrier is inserted at the current insertion point.
    """
    dividend, divisor = operands
    if not _may_be_zero(divisor):
        return operands
    return [dividend, _jaxlib.ir.Operation.create(_BARRIER, [divisor.type], [divisor]).result]


def protect_divisions(module: Module) -> None:
    """Insert barriers into a module that was made elsewhere."""
    ir = _jaxlib.ir
    found: list[Any] = []

    def visit(operation: Operation) -> Any:
        if operation.name in DIVISIONS:
            found.append(operation.operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for operation in found:
        with ir.InsertionPoint(operation), operation.location:
            operation.operands[1] = divisible(operation.operands)[1]


def _may_be_zero(divisor: Any) -> bool:
    ir = _jaxlib.ir
    if not isinstance(divisor.type.element_type, ir.IntegerType):
        return False
    made_by = divisor.owner
    while not isinstance(made_by, ir.Block):
        if made_by.name == _CONSTANT:
            return not np.asarray(made_by.attributes["value"]).all()
        if made_by.name != _BROADCAST:
            break
        made_by = made_by.operands[0].owner
    return True
