"""Jaxprs, programs as data: what can be done with them without running them."""

from corejax.ir.interpret import eval_jaxpr, jaxpr_as_fun
from corejax.ir.parsing import JaxprSyntaxError, parse_jaxpr
from corejax.ir.surgery import (
    close,
    consts_to_operands,
    count_eqns,
    dce,
    dce_closed,
    dedup_consts,
    forwarded_outputs,
    inline,
    join_consts,
    move_invars,
    reorder_invars,
    select_outputs,
    substitute,
)
from corejax.ir.typecheck import typecheck
from corejax.kernel.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, no_effects, subjaxprs
from corejax.kernel.keys import atom, compiled_key, param_key, structural_key
from corejax.kernel.printing import NO_TEXT, jaxpr_text

__all__ = [
    "Atom", "ClosedJaxpr", "Jaxpr", "JaxprEqn", "JaxprSyntaxError", "Literal", "NO_TEXT", "Var", "atom", "close",
    "compiled_key", "consts_to_operands", "count_eqns", "dce", "dce_closed", "dedup_consts", "eval_jaxpr",
    "forwarded_outputs", "inline", "jaxpr_as_fun", "jaxpr_text", "join_consts", "move_invars", "no_effects",
    "param_key", "parse_jaxpr", "reorder_invars", "select_outputs", "structural_key", "subjaxprs", "substitute",
    "typecheck",
]


def __dir__() -> list[str]:
    return sorted(__all__)
