"""Checks of what lowering rules return and raise, and of what callbacks return to programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.base import dtypes
from corejax.base.avals import ShapedArray, is_masked
from corejax.base.effects import Effect
from corejax.base.errors import CorejaxError, RuleError, kind_of
from corejax.base.source import describe, here, package_of
from corejax.base.tracebacks import SEE_MORE, is_from_beneath, plain
from corejax.kernel.checks.blame import failed
from corejax.kernel.jaxpr import Effects, JaxprEqn


def wrong_lowering(eqn: JaxprEqn | None, got: object, wanted: str) -> RuleError:
    """The error for a lowering rule that returned something other than what abstract_eval says."""
    return _rule_error(eqn, "returned something other than what abstract_eval says", got, wanted,
                       "return MLIR values of the types in ctx.out_types")


def failed_lowering(eqn: JaxprEqn | None, error: BaseException) -> RuleError:
    """The error for a lowering rule that made an invalid operation."""
    types = f" for operands {', '.join([str(x.aval) for x in eqn.invars])}" if eqn is not None and eqn.invars else ""
    return _rule_error(eqn, "made an invalid operation", plain(error), f"operations that the compiler accepts{types}",
                       f"correct the rule, or reject such operands in abstract_eval; {SEE_MORE}")


def foreign_value(eqn: JaxprEqn | None, value: object) -> RuleError:
    """The error for a lowering rule that uses something that isn't a value of the current module."""
    kept = hasattr(value, "context")
    return _rule_error(eqn,
                       "uses a value of another program" if kept else
                       "uses something that isn't a value of the program",
                       "a value that was made when another program was lowered" if kept else kind_of(value),
                       "values made from this call's arguments, by this ctx", "don't keep values from call to call; "
                       "make new constants with ctx.constant")


def tokens_left_behind(eqn: JaxprEqn | None, effect: Effect) -> RuleError:
    """The error for a lowering rule that puts something with an ordered effect where its order would be lost."""
    return _rule_error(eqn, "puts a program with an ordered effect into a region that doesn't pass its token on",
                       f"the effect {effect}", "regions that take and return ctx.tokens",
                       "make the operation by ctx.in_order, and enter each region by ctx.inside")


def undeclared_effects(eqn: JaxprEqn, effects: Effects) -> RuleError:
    """The error for a rule that has effects which the primitive doesn't declare."""
    return _rule_error(eqn, "has effects that the primitive doesn't declare",
                       ", ".join(map(str, sorted(effects - eqn.effects, key=repr))),
                       f"effects among {{{', '.join(map(str, sorted(eqn.effects, key=repr)))}}}",
                       "write the hook effects, which returns them")


def check_open(ir: Any, eqns: Sequence[JaxprEqn]) -> None:
    """Check that no lowering rule ended the block that it is in."""
    block = ir.InsertionPoint.current.block
    try:
        ir.InsertionPoint.at_block_terminator(block)
    except ValueError:  # there is none; looking at the last operation instead would load classes for all that exist
        return
    if eqns:
        raise _rule_error(eqns[-1], "ends the block that it is in", block.operations[len(block.operations) - 1].name,
                          "terminators only in regions of its own",
                          "return the value; the kernel writes the end of each function")


def failed_rule(eqn: JaxprEqn, error: Exception) -> Exception:
    """What to raise when a lowering rule raised: its own exception, or an error about an invalid operation."""
    if not isinstance(error, CorejaxError) and not hasattr(error, "_hook"):
        part = error.__traceback__
        while part is not None and part.tb_next is not None:
            part = part.tb_next
        bindings = part is not None and package_of(part.tb_frame) in ("corejax", "jaxlib")
        if is_from_beneath(error) or (bindings and isinstance(error, (IndexError, TypeError, ValueError))):
            wrong = failed_lowering(eqn, error)
            wrong.__cause__ = error
            return wrong
    return failed(eqn.primitive, "xla_translation", error)


def _rule_error(eqn: JaxprEqn | None, problem: str, got: object, wanted: str, todo: str) -> RuleError:
    if eqn is None:
        return RuleError(f"lowering {problem}", got=got, wanted=wanted, where=here(), todo=todo)
    primitive = eqn.primitive
    origin = getattr(primitive, "origin", None)
    by = f" ({origin})" if origin else ""
    return RuleError(f"{primitive.name}.xla_translation{by} {problem}", primitive=primitive.name,
                     hook="xla_translation", pack=origin, got=got, wanted=wanted, where=describe(eqn.source) or here(),
                     todo=todo)


def check_called_back(outs: object, avals: tuple[ShapedArray, ...],
                      wrong: Callable[[object, str], RuleError]) -> list[Any]:
    """What a function called by a running program returned, checked; `wrong(got, wanted)` makes the error."""
    if not isinstance(outs, (list, tuple)) or len(outs) != len(avals):
        raise wrong(outs, f"a sequence of {len(avals)} array{'s' * (len(avals) != 1)}")
    for out, aval in zip(outs, avals, strict=True):
        is_array = isinstance(out, (np.ndarray, np.generic)) and not is_masked(out)
        if not is_array or out.shape != aval.shape or out.dtype != aval.dtype:
            raise wrong(out, str(aval) if is_array else f"a NumPy array {aval}")
    return [np.zeros(aval.shape, np.bool_) if aval.dtype == dtypes.float0 else np.asarray(out, order="C")
            for out, aval in zip(outs, avals, strict=True)]
