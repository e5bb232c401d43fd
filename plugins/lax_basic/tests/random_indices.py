"""Random index expressions, and what they mean: for each element of `x[index]` its position in `x.ravel()`.

NumPy itself says the positions: it indexes an array that holds them. Where an index may be out of bounds, that array
has one more place along each indexed axis, which holds -1; so reading, writing, clamping, filling and leaving out
need nothing else as an oracle.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from corejax.arrays.array import as_array

INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]

#: COREJAX_TEST_SEEDS=100:400 runs others than the suite's.
_FIRST, _, _LAST = os.environ.get("COREJAX_TEST_SEEDS", "").partition(":")


def seeds(count: int) -> range:
    """The seeds to test: the same ones each time, unless the environment names others."""
    return range(int(_FIRST), int(_LAST)) if _LAST else range(count)


@dataclass(frozen=True)
class Indexing:
    """An index into arrays of a shape. `computed` are the entries that may be arrays or tracers of integers."""

    shape: tuple[int, ...]
    entries: tuple[Any, ...]
    axes: tuple[int | None, ...]  # the operand's axis of each entry; None for those without
    alone: bool  # `x[entry]`, without a tuple

    @property
    def computed(self) -> tuple[int, ...]:
        return tuple(i for i, e in enumerate(self.entries) if type(e) is int or isinstance(e, np.integer) or (
            isinstance(e, (np.ndarray, list)) and np.asarray(e).dtype.kind in "iu" and np.asarray(e).size))

    @property
    def numbers(self) -> list[Any]:
        """The computed entries as NumPy's arrays."""
        return [np.asarray(self.entries[i]) for i in self.computed]

    def index(self, numbers: Any = None) -> Any:
        """The index; with `numbers` in place of the computed entries if they are given."""
        entries = list(self.entries)
        for i, number in zip(self.computed, self.numbers if numbers is None else numbers, strict=True):
            entries[i] = entries[i] if numbers is None else number
        return entries[0] if self.alone else tuple(entries)

    def positions(self, numbers: Any = None, mode: str | None = None) -> Any:
        """Where each element of `x[index]` stands in `x.ravel()`; -1 for those out of bounds unless they are clipped.

        Raises what NumPy raises if the index is wrong for any other reason.
        """
        entries, wider = list(self.entries), list(self.shape)
        for i, number in zip(self.computed if mode else (), self.numbers if numbers is None else numbers, strict=False):
            axis = self.axes[i]
            assert axis is not None
            size, number = self.shape[axis], np.asarray(number).astype(np.int64)
            number = np.where(number < 0, number + size, number)
            wider[axis] = size + 1
            outside = (number < 0) | (number >= size)
            entries[i] = np.clip(number, 0, size - 1) if mode == "clip" else np.where(outside, size, number)
        if not mode:
            entries = list(self.index(numbers)) if not self.alone else [self.index(numbers)]
        places = np.full(wider, -1)
        places[tuple(slice(n) for n in self.shape)] = np.arange(np.prod(self.shape, dtype=int)).reshape(self.shape)
        return places[entries[0] if self.alone else tuple(entries)]

    def __str__(self) -> str:
        return f"{self.shape}{list(self.entries)}{'' if not self.alone else ' alone'}"


def read(x: Any, positions: Any, fill: Any = np.nan) -> Any:
    """`x[index]`; `fill` stands for what is out of bounds."""
    flat = np.append(x.ravel(), np.asarray(fill, x.dtype))  # -1 is the last
    return flat[positions]


UFUNCS = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "min": np.minimum,
          "max": np.maximum, "power": np.power}


def written(x: Any, positions: Any, values: Any, operation: str) -> Any:
    """`x.at[index].operation(values)`; what is out of bounds is left out; of several that are set, the last wins."""
    flat = np.append(x.ravel(), np.ones((), x.dtype))
    values = np.broadcast_to(values, positions.shape)
    if operation == "set":
        flat[positions] = values
    else:
        UFUNCS[operation].at(flat, positions, values)
    return flat[:-1].reshape(x.shape)


def random_indexing(rng: Any, *, outside: bool = False, valid: bool = True) -> Indexing:
    """An index of any kind; `outside` lets computed entries be out of bounds; not `valid` perhaps one that is wrong."""
    while True:
        found = _random_indexing(rng, outside, wrong=not valid and rng.random() < 0.5)
        try:
            positions = found.positions(mode="fill" if outside else None)
        except IndexError:
            if not valid:
                return found
            continue
        if positions.size < 500 and positions.ndim < 7:
            return found


def _random_indexing(rng: Any, outside: bool, wrong: bool) -> Indexing:
    shape = tuple(int(rng.choice([0, 1, 2, 3, 4, 5], p=[0.04, 0.1, 0.2, 0.25, 0.25, 0.16]))
                  for _ in range(rng.integers(0 if rng.random() < 0.1 else 1, 5)))
    advanced = rng.random() < 0.65
    common = [(), (3,), (2, 3), (2, 1), (1,), (4, 1, 2), (0,)][rng.choice(7, p=[0.1, 0.3, 0.2, 0.1, 0.1, 0.1, 0.1])]
    entries: list[Any] = []
    axes: list[int | None] = []
    axis, stop = 0, rng.integers(0, len(shape) + 1) if rng.random() < 0.5 else len(shape)
    while axis < stop:
        entry, width = _entry(rng, shape, axis, common, advanced, outside)
        entries.append(entry)
        axes.append(axis)
        axis += width
    if rng.random() < 0.4:
        at = rng.integers(0, len(entries) + 1)  # an ellipsis: what comes after it indexes the last axes
        tail = len(shape) - axis
        entries.insert(at, Ellipsis)
        axes.insert(at, None)
        axes = [a if a is None or i < at else a + tail for i, a in enumerate(axes)]
        if tail and any(_misfits(e, a, shape) for e, a in zip(entries[at:], axes[at:], strict=True)):
            return _random_indexing(rng, outside, wrong)
    for _ in range(rng.choice([0, 1, 2], p=[0.6, 0.3, 0.1])):
        at = rng.integers(0, len(entries) + 1)
        entries.insert(at, None if rng.random() < 0.85 else bool(rng.random() < 0.7))
        axes.insert(at, None)
    if wrong:
        at = rng.integers(0, len(entries) + 1)
        entries.insert(at, [9, -9, np.array([7, 0]), np.zeros(7, bool), Ellipsis, [0, -8]][rng.integers(6)])
        axes.insert(at, None)
    alone = len(entries) == 1 and bool(rng.random() < 0.7)
    return Indexing(shape, tuple(entries), tuple(axes), alone)


def _misfits(entry: Any, axis: int | None, shape: Any) -> bool:
    """Is an entry, made for another axis, no index of this one?"""
    if axis is None or isinstance(entry, slice) or entry is Ellipsis:
        return False
    entry = np.asarray(entry)
    if entry.dtype.kind == "b":
        return entry.shape != shape[axis:axis + entry.ndim]
    return bool(entry.size) and not -shape[axis] <= entry.min() <= entry.max() < shape[axis]


def _entry(rng: Any, shape: Any, axis: int, common: Any, advanced: bool, outside: bool) -> tuple[Any, int]:
    """An entry for an axis, and how many axes it takes."""
    n = shape[axis]
    kind = rng.choice(["int", "slice", "array", "list", "mask"],
                      p=[0.2, 0.35, 0.3, 0.1, 0.05] if advanced else [0.45, 0.55, 0, 0, 0])
    if kind == "mask":
        width = int(rng.integers(1, min(2, len(shape) - axis) + 1))
        return rng.random(shape[axis:axis + width]) < 0.5, width
    if kind == "slice" or (not n and kind == "int"):
        bounds = [None if rng.random() < 0.4 else int(rng.integers(-n - 2, n + 3)) for _ in range(2)]
        return slice(*bounds, None if rng.random() < 0.4 else int(rng.choice([-3, -2, -1, 1, 2, 3]))), 1
    low, high = (-n - 3, n + 3) if outside else (-n, n)
    if kind == "int":
        number = int(rng.integers(low, high))
        return (number if rng.random() < 0.7 else np.int16(number)), 1
    sizes = tuple(1 if rng.random() < 0.2 else s for s in common[rng.integers(0, len(common) + 1):]) if (
        rng.random() < 0.4) else common
    if not n:
        sizes = (0,)
    dtype = INTEGERS[rng.integers(len(INTEGERS))]
    numbers = rng.integers(0 if np.dtype(dtype).kind == "u" or not n else low, max(high, 1), sizes)
    array = np.asarray(numbers, dtype)
    return (array.tolist() if kind == "list" and array.ndim == 1 else array), 1


def data(rng: Any, shape: Any) -> Any:
    """Distinct numbers from 1 to 2, no two close to each other."""
    size = int(np.prod(shape))
    return 1 + (rng.permutation(size).reshape(shape) + 0.25 + rng.random(shape) / 2) / max(size, 1)


def host(x: Any) -> Any:
    """An ndarray as an `Array` in host memory."""
    return as_array(x, copy=True)


def hosts(xs: Any) -> list[Any]:
    """Each of them."""
    return [host(x) for x in xs]
