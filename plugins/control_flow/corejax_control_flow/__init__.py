"""Primitives that carry programs: calls, conditionals, loops."""

from corejax_control_flow.bounded_loops import bounded_while_loop
from corejax_control_flow.call import xla_call
from corejax_control_flow.checkpointed_scanning import checkpointed_scan
from corejax_control_flow.checkpointing import checkpoint_call
from corejax_control_flow.composites import composite, composite_call
from corejax_control_flow.conditional import cond, switch
from corejax_control_flow.counted_scanning import counted_scan
from corejax_control_flow.custom_derivatives import custom_call, custom_pullback
from corejax_control_flow.exporting import exported_call
from corejax_control_flow.linear_solving import custom_linear_solve
from corejax_control_flow.looping import fori_loop, while_loop
from corejax_control_flow.marks import dce_sink, stage, stage_value
from corejax_control_flow.memories import to_memory
from corejax_control_flow.naming import checkpoint_name
from corejax_control_flow.platforms import platform_dependent
from corejax_control_flow.root_finding import custom_root
from corejax_control_flow.saved import saved_residuals
from corejax_control_flow.scanning import map, scan
from corejax_control_flow.segmented_scanning import segmented_scan
from corejax_control_flow.tokens import TOKEN, after_all, create_token

__all__ = [
    "TOKEN", "after_all", "bounded_while_loop", "checkpoint_call", "checkpoint_name", "checkpointed_scan",
    "composite", "composite_call", "cond", "counted_scan", "create_token", "custom_call", "custom_linear_solve",
    "custom_pullback", "custom_root", "dce_sink", "exported_call", "fori_loop", "map", "platform_dependent",
    "saved_residuals", "scan", "segmented_scan", "stage", "stage_value", "switch", "to_memory", "while_loop",
    "xla_call",
]
