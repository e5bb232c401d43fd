"""What the kernel needs done by primitives that carry programs, under the names of the roles."""

from __future__ import annotations

from corejax_control_flow.call import xla_call

__all__ = ["staged_call"]

#: The primitive behind `jit`.
staged_call = xla_call
