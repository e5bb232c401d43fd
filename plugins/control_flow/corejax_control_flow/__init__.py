"""Primitives that carry programs: calls, conditionals, loops."""

from corejax_control_flow.call import xla_call
from corejax_control_flow.checkpointing import checkpoint_call
from corejax_control_flow.conditional import cond, switch
from corejax_control_flow.custom_derivatives import custom_call, custom_pullback
from corejax_control_flow.exporting import exported_call
from corejax_control_flow.looping import fori_loop, while_loop
from corejax_control_flow.scanning import map, scan

__all__ = [
    "checkpoint_call", "cond", "custom_call", "custom_pullback", "exported_call", "fori_loop", "map", "scan",
    "switch", "while_loop", "xla_call",
]
