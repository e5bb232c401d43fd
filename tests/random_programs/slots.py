"""The variables of a random program: each has a type that it keeps, so that any statement may be left out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class Slot:
    """A variable: its dtype, its shape, and a constant of that type for where nothing else may be closed over."""

    name: str
    dtype: Any
    shape: tuple[int, ...]
    constant: Any

    @property
    def differentiable(self) -> bool:
        return self.dtype in DIFFERENTIABLE

    @property
    def precision(self) -> float:
        """The spacing of numbers of this type; 0 for integers, which are exact."""
        if not self.differentiable:
            return 0.0
        return float(ml_dtypes.finfo(self.dtype).eps)  # type: ignore[no-untyped-call]


DIFFERENTIABLE = [np.dtype(t) for t in ("float64", "float32", "complex128", "complex64", "bfloat16")]


def _slot(name: str, dtype: str, *constant: Any) -> Slot:
    value = np.array(constant if len(constant) != 1 else constant[0], np.dtype(dtype))
    return Slot(name, np.dtype(dtype), value.shape, value)


#: By name. The first five are in every program.
SLOTS = {slot.name: slot for slot in [
    _slot("u", "float64", 0.5, -1.25, 2.0),
    _slot("v", "float64", 0.25, -0.625, 1.0),
    _slot("s", "float64", 0.5),
    _slot("n", "int64", 1),
    _slot("b", "bool", True),
    _slot("w", "float32", 1.5, -0.5, 0.25),
    _slot("z", "complex128", 0.5 + 1j, -0.25j, -1.0 + 0.5j),
    _slot("i", "int32", 3, 0, -2),
    _slot("q", "uint8", 7, 0, 250),
    _slot("h", "bfloat16", 0.5, 2.0, -1.5),
    _slot("m", "bool", True, False, True),
    _slot("o", "float64"),
    # Of any dtype: what mixed operands give. It goes through nothing that wants to know its type.
    _slot("a", "float64", 1.0, 2.0, 3.0),
    # The words that are hashed, as wide as numbers are by default; in programs of some modes.
    _slot("d", "uint64", 0x9E3779B97F4A7C15, 1, 2**64 - 1),
]}

ALWAYS = ("u", "v", "s", "n", "b")
SOMETIMES = ("w", "z", "i", "q", "h", "m", "o", "a")
RARELY = ("d",)
UNTYPED = "a"


def of_width(bits: int) -> dict[str, Slot]:
    """The slots of programs whose numbers have so many bits by default: where 64 are too many, those have 32."""
    return SLOTS if bits == 64 else {name: _narrow(slot) for name, slot in SLOTS.items()}


def _narrow(slot: Slot) -> Slot:
    dtype = NARROWED.get(slot.dtype, slot.dtype)
    value = slot.constant >> 32 if slot.name == "d" else slot.constant
    return replace(slot, dtype=dtype, constant=value.astype(dtype))


#: What there is instead of 64 bits where numbers have 32.
NARROWED = {np.dtype(f"{kind}{bits}"): np.dtype(f"{kind}{bits // 2}")
            for kind, bits in (("float", 64), ("int", 64), ("uint", 64), ("complex", 128))}


def constants(bits: int) -> dict[str, Any]:
    """By the names under which the text of a program knows them: `U` is that of `u`."""
    return {name.upper(): slot.constant for name, slot in of_width(bits).items()}
