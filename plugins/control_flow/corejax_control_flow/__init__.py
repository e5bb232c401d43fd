"""Primitives that carry programs: calls."""

from corejax_control_flow.call import xla_call

__all__ = ["xla_call"]
