"""What happens if a rule is missing and can't be derived: a slow substitute, or an error.

A *fallback* computes the same at an unexpected cost: a vmap that maps slice by slice, a compiled program that calls
back into Python. It warns once for each primitive; `config.fallbacks` can make it an error, or silent. Compiling a
primitive without `impl` when it is called isn't a fallback: the compiled program is the primitive, each pack decides
for itself whether NumPy would be faster, and nothing is slower than the user's own `jit`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from corejax.arrays.array import Array
from corejax.arrays.storage import to_numpy
from corejax.base import dtypes, elements
from corejax.base.config import config
from corejax.base.errors import CorejaxNotImplementedError, MissingRuleError
from corejax.base.source import here, warn
from corejax.interpreters.batching import in_turn
from corejax.kernel.primitive import Primitive, Rule

if TYPE_CHECKING:
    from corejax.interpreters.batching import Axis
    from corejax.xla.lowering.programs import Lowering


class Note(NamedTuple):
    """What replaces a hook without a rule, in a word and in a sentence, and what it costs."""

    how: str
    what: str
    cost: str = ""


SEQUENTIAL = Note("fallback", "it is mapped one slice at a time",
                  "one call for each slice, each as slow as a call on its own")
CALLBACK = Note("fallback", "compiled programs call back into its impl",
                "each run copies the operands to Python and back, and waits; XLA optimizes nothing across it")


# Errors

def refused(primitive: Primitive, hook: str, reason: str, operand: int | None = None) -> Rule:
    """Stands for a rule that is declared not to exist, perhaps only for one operand: raises the reason."""
    verb, what, todo = ("is not differentiable", "differentiated", "use lax.stop_gradient on its operands if a zero "
                        "derivative is meant") if hook == "jvp" else (
        "is not linear, so it has no transpose", "transposed", "differentiate first: cj.vjp transposes the derivative")
    by = "" if operand is None else f" with respect to operand {operand}"

    def rule(*_: Any, **__: Any) -> Any:
        raise CorejaxNotImplementedError(
            f"{primitive.name} ({primitive.origin}) {verb}{by}: {reason}", primitive=primitive.name, hook=hook,
            pack=primitive.origin, got=f"operands that depend on what is {what}", wanted="operands that don't",
            where=here(), todo=todo)
    rule.refuses = True  # type: ignore[attr-defined]
    return rule


def missing(primitive: Primitive, hook: str) -> Rule:
    """Stands for a rule that nobody wrote and that can't be derived: raises."""
    def rule(*_: Any, **__: Any) -> Any:
        raise MissingRuleError(
            f"{primitive.name} ({primitive.origin}) has no {hook} rule and none can be derived",
            primitive=primitive.name, hook=hook, pack=primitive.origin, where=here(),
            got=f"a plugin with {', '.join([h for h, whose in primitive.providers.items() if whose != 'derived'])}",
            wanted=f"a hook `{hook}`, or `decompose`, from which every rule follows",
            todo=f"write {hook} in the plugin, or provide it from another pack under corejax.rules" + {
                "jvp": "; if it can't exist, declare jvp = not_differentiable(reason)",
                "transpose": "; if it can't exist, declare transpose = not_linear(reason)"}.get(hook, ""))
    return rule


# Substitutes

#: The hooks of each primitive for which the user was warned.
_told: weakref.WeakKeyDictionary[Primitive, set[str]] = weakref.WeakKeyDictionary()


def notifier(primitive: Primitive, hook: str, note: Note) -> Callable[[], None]:
    """A function that warns the user, once, that a fallback is used; or raises, if the configuration says so."""
    told = _told.setdefault(primitive, set())  # not here, since it may be frozen several times

    def notify() -> None:
        mode = config.fallbacks
        if mode == "silent" or (hook in told and mode == "warn"):
            return
        problem = f"{primitive.name} ({primitive.origin}) has no {hook} rule: {note.what}"
        if mode == "error":
            raise MissingRuleError(problem, primitive=primitive.name, hook=hook, pack=primitive.origin, where=here(),
                                   got=f"no {hook}, and config.fallbacks = 'error'",
                                   wanted=f"the hook {hook}, or decompose", todo=f"write {hook}; or set "
                                   f"config.fallbacks = 'warn' if this will do: {note.cost}")
        told.add(hook)
        message = (f"{problem}. This costs: {note.cost}. Writing the hook {hook} (or decompose) removes it; "
                   "config.fallbacks = 'error' makes this an error, 'silent' hides this warning.")
        warn(message)
    return notify


def sequential_vmap(primitive: Primitive) -> Rule:
    """A vmap rule that applies the primitive to each slice."""
    notify = notifier(primitive, "vmap", SEQUENTIAL)
    impossible = missing(primitive, "vmap")

    def vmap(axis: Axis, args: Sequence[object], dims: Sequence[int | None], /, **params: Any) -> tuple[Any, Any]:
        if all([d is None for d in dims]):  # its params name the axis, but slices know nothing of each other
            impossible()
        notify()
        return in_turn(primitive, axis, args, dims, params)
    return vmap


def callback(primitive: Primitive) -> Rule:
    """A lowering that makes the compiled program call `impl`."""
    notify = notifier(primitive, "xla_translation", CALLBACK)

    def lowering(ctx: Lowering, args: Sequence[object], /, **params: Any) -> Any:
        if ctx.platform != "cpu":
            raise MissingRuleError(
                f"{primitive.name} ({primitive.origin}) can't be compiled for {ctx.platform}: it has no "
                "xla_translation rule, and programs call back into Python on the CPU only", primitive=primitive.name,
                hook="xla_translation", pack=primitive.origin, where=here(), got=f"the platform {ctx.platform}",
                wanted="a hook xla_translation, or decompose", todo="write one of them, or run it on the CPU")
        notify()

        avals = ctx.avals_in

        def call(*operands: Any) -> Any:
            with np.errstate(all="ignore"):  # as in eager calls
                assert primitive.impl is not None
                operands = tuple([elements.to_host(x, aval.dtype) if aval.dtype in dtypes.PACKED else x
                                  for x, aval in zip(operands, avals, strict=True)])
                out = getattr(primitive.impl, "of_stored", primitive.impl)(operands, **params)
            outs = out if primitive.multiple_results else (out,)
            if not isinstance(outs, (list, tuple)):
                return outs  # wrong: the caller raises the error
            outs = [to_numpy(x) if type(x) is Array else x for x in outs]
            return [elements.of_stored(x) if getattr(x, "dtype", None) in dtypes.PACKED else x for x in outs]

        call.hook = "impl"  # type: ignore[attr-defined]
        out_avals = [aval.stored if elements.find(aval.dtype) or aval.dtype in dtypes.PACKED else aval
                     for aval in ctx.avals_out]
        outs = ctx.callback(call, args, out_avals, before=notify)
        return outs if primitive.multiple_results else outs[0]
    return lowering

