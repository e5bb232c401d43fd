"""MLIR types for avals, and MLIR constants for arrays."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from corejax.base import dtypes, elements
from corejax.base.avals import ShapedArray
from corejax.base.errors import CorejaxTypeError


class Types(dict[ShapedArray, Any]):
    """Maps an aval to its MLIR type in one context: a plain dict lookup after the first time."""

    __slots__ = ("_elements", "_ir", "of_packs", "packed")

    def __init__(self, ir: Any) -> None:
        super().__init__()
        self._ir = ir
        #: Whether elements of packs' own types are among them.
        self.of_packs = False
        #: Whether integers of less than a byte are.
        self.packed = False
        self._elements: dict[np.dtype, Any] = {}

    def __missing__(self, aval: ShapedArray) -> Any:
        stored = aval.stored
        kind = self[aval] = self._ir.RankedTensorType.get(stored.shape, self.element(stored.dtype))
        self.of_packs |= elements.find(aval.dtype) is not None
        self.packed |= aval.dtype in dtypes.PACKED
        return kind

    def element(self, dtype: np.dtype) -> Any:
        """The MLIR type of an array's elements."""
        found = self._elements.get(dtype)
        if found is None:
            found = self._elements[dtype] = _element_type(self._ir, dtype)
        return found

    def aval(self, kind: Any) -> ShapedArray:
        """The aval of an MLIR type, as far as it tells: nothing is weak."""
        dtype = next(dtype for dtype in dtypes.ALL
                     if dtype is not dtypes.float0 and self.element(dtype) == kind.element_type)
        return ShapedArray(tuple(kind.shape), dtype)


def _element_type(ir: Any, dtype: np.dtype) -> Any:
    kind = dtypes.kind(dtype)
    bits = dtypes.bits_of(dtype)
    if kind == "b":
        return ir.IntegerType.get_signless(1)
    if kind == "i":
        return ir.IntegerType.get_signless(bits)
    if kind == "u":
        return ir.IntegerType.get_unsigned(bits)
    if kind == "c":
        return ir.ComplexType.get((ir.F32Type if bits == 64 else ir.F64Type).get())
    name = {"float16": "F16Type", "bfloat16": "BF16Type", "float32": "F32Type", "float64": "F64Type"}.get(
        dtype.name, f"Float{dtype.name.removeprefix('float').replace('_', '').upper()}Type")
    if not hasattr(ir, name):
        raise CorejaxTypeError(f"the compiler has no type for {dtype.name}", got=dtype.name)
    return getattr(ir, name).get()


_TENSOR = re.compile(r"tensor<((?:\d+x)*)(.*)>")
_ELEMENTS = {"i1": "bool", "complex<f32>": "c64", "complex<f64>": "c128"}


def describe_type(kind: object) -> str:
    """An MLIR tensor type as avals print, `f64[3]`; any other type as MLIR prints it."""
    found = _TENSOR.fullmatch(str(kind))
    if found is None:
        return str(kind)
    sizes, element = found.groups()
    return f"{_ELEMENTS.get(element, element.replace('ui', 'u'))}[{sizes[:-1].replace('x', ',')}]"


def dense_attribute(ir: Any, host: Any, kind: Any) -> Any:
    """An array's elements as an attribute of the given tensor type."""
    host = np.zeros(host.shape, np.bool_) if host.dtype == dtypes.float0 else elements.of_stored(host)
    return ir.DenseElementsAttr.get(np.ascontiguousarray(host), type=kind.element_type, shape=kind.shape)
