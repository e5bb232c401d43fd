"""Python functions that programs call: as part of what they compute, to do something, or to see what they do."""

from corejax_callbacks._calling import CallbackTimeout
from corejax_callbacks.effectful import effects_barrier, io_callback
from corejax_callbacks.progressing import progress
from corejax_callbacks.pure import pure_callback

NAMESPACE = "callbacks"

__all__ = ["CallbackTimeout", "effects_barrier", "io_callback", "progress", "pure_callback"]
