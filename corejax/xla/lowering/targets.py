"""What programs call by name: functions of the runtime, which aren't in the program itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from corejax.base import _jaxlib
from corejax.kernel.jaxpr import Jaxpr, JaxprEqn, Var, subjaxprs
from corejax.xla.lowering.programs import Lowering, lower_module

if TYPE_CHECKING:
    from corejax.base._jaxlib import Module, Operation

_CALL = "stablehlo.custom_call"


def targets_of(module: Module) -> list[str]:
    """The functions of the runtime that a module calls by name, each once, in order."""
    found: list[Any] = []
    advance = _jaxlib.ir.WalkResult.ADVANCE

    def visit(operation: Operation) -> Any:
        if operation.name == _CALL:  # not by its class: making an object of it takes twice as long
            found.append(operation.attributes["call_target_name"])
        return advance

    module.operation.walk(visit)
    return list(dict.fromkeys([_jaxlib.ir.StringAttr(name).value for name in found])) if found else []


def first_that(is_it: Callable[[Lowering], bool], jaxpr: Jaxpr, platform: str) -> JaxprEqn | None:
    """The first equation, in the innermost program, whose lowering by itself satisfies `is_it`."""
    for eqn in jaxpr.eqns:
        operands = list(dict.fromkeys([x for x in eqn.invars if type(x) is Var]))
        alone = Jaxpr((), operands, eqn.outvars, (eqn,), eqn.effects)
        if is_it(lower_module(alone, (), "one", platform)):
            inner = [first_that(is_it, program, platform) for program in subjaxprs(eqn.params)]
            return next((found for found in inner if found is not None), eqn)
    return None


def first_calling(target: str, jaxpr: Jaxpr, platform: str) -> JaxprEqn | None:
    """The first equation, in the innermost program, whose lowering calls a target."""
    return first_that(lambda lowering: target in targets_of(lowering.module), jaxpr, platform)
