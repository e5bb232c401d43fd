"""Mailboxes: memory that NumPy writes and a device reads, which saves small arguments a transfer.

The runtime takes 4 µs to put an ndarray on a device, however small. A device that computes in host memory can read our
memory instead: arguments are copied to mailboxes, which are free again when the program that reads them has ended.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import accumulate
from typing import Any

from corejax.base import _jaxlib, dtypes, elements
from corejax.base.avals import ShapedArray
from corejax.xla.runtime.places import Place, address, memory_to_share

#: For each argument of a program, the ndarray to write to and the buffer that shares its memory; None until needed.
Box = tuple[list[Any], list[Any]]

#: Larger arguments are put on the device, and those beyond so many bytes together: mailboxes for them would take much
#: memory to save little time.
_MOST_BYTES = 1 << 18
_MOST_TOGETHER = 1 << 22


class Mailboxes:
    """The free mailboxes of a program."""

    __slots__ = ("avals", "place", "fits", "free")

    def __init__(self, avals: Sequence[ShapedArray], place: Place, donated: Container[int]) -> None:
        self.avals, self.place = avals, place
        #: Whether each argument has a mailbox: not if the program overwrites it, nor if the device packs it.
        sizes = [aval.size * aval.dtype.itemsize if i not in donated and dtypes.bits_of(aval.stored.dtype) >= 8 else 0
                 for i, aval in enumerate(avals)]
        sizes = [size if size <= _MOST_BYTES else 0 for size in sizes]
        self.fits = [size > 0 and together <= _MOST_TOGETHER
                     for size, together in zip(sizes, accumulate(sizes), strict=True)]
        self.free: list[Box] = []  # appending and popping are atomic: threads need no lock

    def take(self) -> Box:
        """A set of mailboxes that no program is reading."""
        try:
            return self.free.pop()
        except IndexError:
            return [None] * len(self.avals), [None] * len(self.avals)

    def write(self, box: Box, i: int, value: object) -> bool:
        """Write the i-th argument to its mailbox; False if it has none."""
        if not self.fits[i]:
            return False
        if box[0][i] is None:
            host, buffer = _make(self.avals[i], self.place)
            if buffer is None:
                self.fits[i] = False
                return False
            box[0][i], box[1][i] = host, buffer
        box[0][i][...] = value
        return True


def _make(aval: ShapedArray, place: Place) -> tuple[Any, Any]:
    """Memory to write to, and a buffer that shares it, or None if the device can't read our memory."""
    stored, element = aval.stored, elements.find(aval.dtype)
    host = memory_to_share(stored.shape, stored.dtype)
    buffer = place.put_shared(stored, host)
    seen = _jaxlib.buffer_to_numpy(buffer, stored.shape, stored.dtype)
    if address(seen) != address(host):
        return host, None
    return host if element is None else element.of(host), buffer
