"""Scalar types: `jnp.float32` is a dtype wherever one is wanted, and makes arrays when it is called."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.core import Array, ShapedArray, dtypes
from corejax.plugin import public

__all__ = ["DefaultType", "ScalarType", "scalar_type"]


class ScalarType(type):
    """The class of `jnp.float32` and the like: types with a dtype, equal to NumPy's scalar types."""

    _name: str  # of the dtype

    @property
    def dtype(cls) -> np.dtype:
        """The dtype of the arrays that it makes."""
        return dtypes.canonical(cls._name)

    @public
    def __call__(cls, x: Any = 0) -> Any:
        """The array-like `x` as an array of this dtype."""
        dtype = cls.dtype
        if type(x) is float and dtypes.is_float(dtype):  # as a rule
            return Array.from_host(dtype.type(x), ShapedArray((), dtype))
        from corejax_numpy.creation import asarray

        return asarray(x, dtype)

    def __eq__(cls, other: object) -> bool:
        if isinstance(other, ScalarType):
            return cls.dtype is other.dtype
        return other is cls.dtype.type or (isinstance(other, np.dtype) and cls.dtype == other)

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, cls.dtype.type)

    def __repr__(cls) -> str:
        return f"<class 'corejax.numpy.{cls.__name__}'>"


class DefaultType(ScalarType):
    """The class of `jnp.int_` and the like: their dtype is that of Python's numbers, by `config.default_bits`."""

    @property
    def dtype(cls) -> np.dtype:
        """The dtype of the arrays that it makes."""
        return dtypes.default_dtype(cls._name)


def scalar_type(name: str, dtype: str, kind: type[ScalarType] = ScalarType) -> ScalarType:
    """A type of this name, for the dtype of that name; for a `DefaultType`, of that kind."""
    doc = f"Arrays of {dtype}: as a dtype, or called with anything array-like."
    return kind(name, (), {"_name": dtype, "__doc__": doc, "__module__": "corejax_numpy.types", "__qualname__": name})
