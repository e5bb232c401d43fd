"""What the kernel and other packs need from primitives that carry programs. Each name here is that of a role."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.core import aval_of, context
from corejax.plugin import roles
from corejax_control_flow._custom_functions import CustomDerivatives
from corejax_control_flow.call import xla_call
from corejax_control_flow.checkpointing import call_checkpointed
from corejax_control_flow.exporting import exported_call as bind_exported
from corejax_control_flow.looping import while_loop
from corejax_control_flow.memories import to_memory as move
from corejax_control_flow.scanning import map as map_by_scan, scan

__all__ = ["checkpoint", "custom_jvp", "custom_vjp", "exported_call", "scan", "sequential_map", "staged_call",
           "to_memory", "while_loop"]

#: The primitive behind `jit`.
staged_call = xla_call

#: A call of a program that was exported.
exported_call = bind_exported

#: A call whose intermediate values are recomputed in reverse mode.
checkpoint = call_checkpointed


def sequential_map(f: Callable[[Sequence[Any]], Any], xs: Sequence[Any]) -> Any:
    """Apply `f` to the slices along axis 0 of each array, one after the other, and stack the results.

    This is a scan in a program that is being traced, and a Python loop on values, where nothing has to be compiled.
    """
    size = aval_of(xs[0]).shape[0]
    if context.trace.is_staging or not size:
        return map_by_scan(f, [*xs])
    outs = [f([roles.index(x, i) for x in xs]) for i in range(size)]
    if isinstance(outs[0], (list, tuple)):
        return [roles.stack(parts) for parts in zip(*outs, strict=True)]
    return roles.stack(outs)


def to_memory(x: Any, kind: str) -> Any:
    """The value in memory of that kind, in a program for a device that has some."""
    return move.primitive.bind(x, kind=kind)


def custom_jvp(fun: Callable[..., Any], nondiff: Sequence[int]) -> CustomDerivatives:
    """The function with a jvp rule, set by its methods; the arguments at the positions `nondiff` aren't data."""
    return CustomDerivatives(fun, nondiff, "custom_jvp")


def custom_vjp(fun: Callable[..., Any], nondiff: Sequence[int]) -> CustomDerivatives:
    """The function with fwd and bwd rules, set by its methods; the arguments at the positions `nondiff` aren't data."""
    return CustomDerivatives(fun, nondiff, "custom_vjp")
