"""The effects of reading and of writing a reference.

Both are gone once a program is bound, evaluated or compiled: what it writes is among its results then.
"""

from corejax.plugin import Effect

__all__ = ["READING", "WRITING"]

READING = Effect("reference_read")
WRITING = Effect("reference_write")
