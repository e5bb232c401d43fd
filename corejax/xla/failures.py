"""What to say when lowering, compiling or running fails: never in the words of what lies beneath."""

from __future__ import annotations

from typing import Any

from corejax.errors import CorejaxRuntimeError, RuleError
from corejax.source import describe, here
from corejax.tracebacks import is_from_beneath

_SEE_MORE = "config.traceback_filtering = False shows what the compiler said"


def plain(error: BaseException) -> str:
    """The text of a foreign error, if a user can read it."""
    text = str(error)
    return "an error of the compiler's or the runtime's own" if not text or is_from_beneath(error) else text[:500]


def wrong_lowering(eqn: Any, got: Any, wanted: str) -> RuleError:
    """The error for a lowering rule that returned something else than abstract_eval says."""
    return _rule_error(eqn, "returned something else than abstract_eval says", got, wanted,
                       "return MLIR values of the types in ctx.out_types")


def failed_lowering(eqn: Any, error: BaseException) -> RuleError:
    """The error for a lowering rule that made an invalid operation."""
    return _rule_error(eqn, "made an invalid operation", plain(error), "operations that the compiler accepts",
                       f"correct the rule; {_SEE_MORE}")


def _rule_error(eqn: Any, problem: str, got: Any, wanted: str, todo: str) -> RuleError:
    primitive = eqn.primitive
    origin = getattr(primitive, "origin", None)
    by = f" ({origin})" if origin else ""
    return RuleError(f"{primitive.name}.xla_translation{by} {problem}", primitive=primitive.name,
                     hook="xla_translation", pack=origin, got=got, wanted=wanted, where=describe(eqn.source) or here(),
                     todo=todo)


def refused_program(error: BaseException) -> CorejaxRuntimeError:
    """The error for a program that the compiler refused."""
    return CorejaxRuntimeError("the compiler refused the program", got=plain(error), where=here(),
                               wanted="a program that it can compile for this platform",
                               todo=f"look at the text of jit(f).lower(...); {_SEE_MORE}")


def runtime_error(error: BaseException) -> CorejaxRuntimeError:
    """The error for a compiled program that failed when it ran."""
    return CorejaxRuntimeError("the runtime failed to run a compiled program", got=plain(error), where=here(),
                               wanted="enough memory and valid arguments", todo=_SEE_MORE)
