"""Python functions that programs call: as part of what they compute, to do something, or to see what they do."""

from corejax_callbacks._calling import CallbackTimeout
from corejax_callbacks.effectful import effects_barrier, io_callback
from corejax_callbacks.pure import pure_callback

__all__ = ["CallbackTimeout", "effects_barrier", "io_callback", "pure_callback"]
