"""Putting the arguments of a program on its device, each in the cheapest way."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any

import numpy as np

from corejax.arrays import devices
from corejax.arrays.array import Array, as_array
from corejax.arrays.storage import buffer_of, home_of, host_in_order, host_of, is_on_device, live, to_numpy
from corejax.base import dtypes
from corejax.base.avals import ShapedArray
from corejax.xla.runtime import client
from corejax.xla.runtime.mailboxes import Box, Mailboxes
from corejax.xla.runtime.places import Place, Spread

_SCALARS = frozenset([kind for kind in (*dtypes.PYTHON_SCALARS, *[dtype.type for dtype in dtypes.ALL])
                      if not issubclass(kind, np.void)])

#: What can be written to a mailbox directly.
_WRITABLE = _SCALARS | {np.ndarray, np.void}  # void: an element of a pack's own type

#: Scalars whose buffers are kept where there are no mailboxes, so that 2.0 is transferred only once. Complex ones
#: are excluded, since a dictionary can't tell 1-0j from 1+0j.
_KEPT = frozenset([kind for kind in _SCALARS if not issubclass(kind, (complex, np.complexfloating))])

#: How many buffers of scalars a program keeps for each argument.
_MOST_KEPT = 64

#: A program that was still running this often when its call returned gets no more mailboxes: making new ones takes
#: longer than putting its arguments on the device.
_MOST_UNFINISHED = 8


class Transfers:
    """Transfers the arguments of one program to its device.

    A buffer may be used for many calls, unless it is `donated` to the program, which overwrites it. `waits` says that
    a result tells when the program has ended.
    """

    __slots__ = ("place", "types", "donated", "mailboxes", "unfinished", "whence")

    def __init__(self, place: Place, in_avals: Sequence[ShapedArray], donated: Sequence[int], waits: bool) -> None:
        self.place, self.donated = place, frozenset(donated)
        #: For each argument: its type, its dtype if it has elements, and kept buffers of scalars.
        self.types: list[tuple[ShapedArray, Any, dict[Any, Any]]] = [
            (aval, None if aval.dtype == dtypes.float0 else aval.dtype, {}) for aval in in_avals]
        self.mailboxes = Mailboxes(in_avals, place, self.donated) if waits and place.platform == "cpu" else None
        self.unfinished = 0
        #: Which arguments were written to mailboxes last time, which were on the device already, and which were put
        #: there: the next call tends to be the same.
        self.whence: tuple[list[int], list[int], list[int]] = [], list(range(len(in_avals))), []

    def start(self, args: Sequence[Any]) -> tuple[list[Any], Box | None]:
        """The buffers of arguments, and the mailboxes in use, to be passed to `finish`."""
        written, from_device, put = self.whence
        box: Box | None = None
        try:
            if not written:
                if not put:
                    return [x._buffer for x in args], None
                buffers: list[Any] = [None] * len(args)
            else:
                hosts, buffers = box = self.mailboxes.free.pop()  # type: ignore[union-attr]
                for i in written:
                    x = args[i]
                    hosts[i][...] = x if type(x) in _WRITABLE else host_of(x)
                if not (from_device or put):
                    return buffers, box
                buffers = buffers[:]
            for i in from_device:
                buffers[i] = buffer_of(args[i])
            if put:
                client.check_not_forked()
                for i in put:
                    buffers[i] = self.put(i, args[i])
            return buffers, box
        except Exception:  # an argument is elsewhere, is missing, or can't be written directly
            self._give_back(box)
        return self._sorted_out(args)

    def finish(self, box: Box, result: Any) -> None:
        """Free the mailboxes of a program that was started, if it has ended; `result` is the buffer of a result."""
        mailboxes = self.mailboxes
        if mailboxes is not None:
            if result is not None and result.is_ready():
                mailboxes.free.append(box)
            else:  # freed when the program has read them
                self.unfinished += 1
                if self.unfinished > _MOST_UNFINISHED:
                    self.mailboxes = None

    def _give_back(self, box: Box | None) -> None:
        """Free mailboxes that no program was started with."""
        mailboxes = self.mailboxes
        if box is not None and mailboxes is not None:
            mailboxes.free.append(box)

    def _sorted_out(self, args: Sequence[object]) -> tuple[list[Any], Box | None]:
        client.check_not_forked()
        mailboxes = self.mailboxes
        box: Box = mailboxes.take() if mailboxes is not None else ([], [None] * len(args))
        buffers = box[1][:]
        whence: tuple[list[int], list[int], list[int]] = [], [], []
        written, from_device, put = whence
        for i, x in enumerate(args):
            try:
                buffers[i] = buffer_of(x)
                from_device.append(i)
                continue
            except (AttributeError, TypeError):
                plain = self._plain(i, x)
            if plain is not None and mailboxes is not None and mailboxes.write(box, i, plain):
                buffers[i] = box[1][i]
                written.append(i)
            else:
                buffers[i] = self.put(i, x)
                put.append(i)
        self.whence = whence
        if written:
            return buffers, box
        self._give_back(box)
        return buffers, None

    def _plain(self, i: int, x: object) -> Any:
        """The i-th argument in a form to write to a mailbox; None if it isn't a plain ndarray or scalar."""
        dtype = self.types[i][1]
        if type(x) is Array:
            x = host_in_order(x)
        if type(x) is int:
            dtypes.check_python_int(x, dtype)
        return x if type(x) in _WRITABLE and dtype is not None else None

    def put(self, i: int, x: Any) -> Any:
        """The buffer of the i-th argument."""
        aval, dtype, kept = self.types[i]
        place = self.place
        if dtype is None:
            return place.put_shared(aval.stored, np.zeros(aval.shape, np.bool_))
        put = place.put_copy
        if type(x) is Array:
            # Its storage never changes, so the device may read it in place. The runtime doesn't write to memory that
            # it didn't allocate, not even if it is donated.
            x, put = host_in_order(x), place.put_shared
        kind = type(x)
        if kind is np.ndarray and x.dtype is dtype or kind is np.void:
            return put(aval, x)
        if kind not in _SCALARS:
            return place.put_copy(aval, to_numpy(as_array(x, copy=False)).astype(dtype, copy=False))
        if not (x and i not in self.donated and kind in _KEPT):  # zeros are not kept: 0.0 and -0.0 are equal
            return place.put_copy(aval, np.asarray(x, dtype))
        found = kept.get(x)
        if found is None:
            found = place.put_copy(aval, np.asarray(x, dtype))
            if len(kept) < _MOST_KEPT:
                kept[x] = found
        return found


class Divided:
    """Transfers the arguments of a program that is divided among several devices."""

    __slots__ = ("spreads", "avals", "shardings")
    mailboxes: Mailboxes | None = None

    def __init__(self, spreads: Sequence[Spread], in_avals: Sequence[ShapedArray]) -> None:
        self.spreads, self.avals = spreads, in_avals
        self.shardings = [spread.sharding for spread in spreads]

    def start(self, args: Sequence[Any]) -> tuple[list[Any], None]:
        """The buffers of arguments; there are no mailboxes."""
        try:
            buffers = [x._buffer for x in args]
            if all(map(is_, [buffer._sharding for buffer in buffers], self.shardings)):
                return buffers, None
        except AttributeError:  # in host memory, or deleted
            pass
        return [self.put(i, x) for i, x in enumerate(args)], None

    def finish(self, box: Box, result: Any) -> None:
        """Nothing is to be freed."""

    def put(self, i: int, x: Any) -> Any:
        aval, spread = self.avals[i], self.spreads[i]
        if type(x) is Array and is_on_device(x):
            buffer = live(x)
            if buffer._sharding is spread.sharding:
                return buffer
            there = devices.mover.moved(x, home_of(x), spread)
            return spread.put_copy(aval, to_numpy(x)) if there is None else live(there)
        if aval.dtype == dtypes.float0:
            return spread.put_shared(aval.stored, np.zeros(aval.shape, np.bool_))
        if type(x) is Array:
            return spread.put_shared(aval, np.asarray(host_in_order(x)))
        host = np.asarray(x) if type(x) in _WRITABLE else to_numpy(as_array(x, copy=False))
        return spread.put_copy(aval, host.astype(aval.dtype, copy=False))
