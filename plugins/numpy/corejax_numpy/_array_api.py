"""What the array API standard asks of a namespace besides functions: its version, and what it can say of itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.core import dtypes
from corejax.errors import CorejaxValueError
from corejax.plugin import devices, refused

__array_api_version__ = "2024.12"

_SIGNED = ("int8", "int16", "int32", "int64")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_REAL = ("float32", "float64")
_COMPLEX = ("complex64", "complex128")

#: The dtypes of each kind that the standard names.
_KINDS = {
    "bool": ("bool",), "signed integer": _SIGNED, "unsigned integer": _UNSIGNED, "integral": (*_SIGNED, *_UNSIGNED),
    "real floating": _REAL, "complex floating": _COMPLEX, "numeric": (*_SIGNED, *_UNSIGNED, *_REAL, *_COMPLEX)}


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """What this namespace can do, as the array API standard has it asked.

    >>> jnp.__array_namespace_info__().dtypes(kind="real floating")
    {'float32': dtype('float32'), 'float64': dtype('float64')}
    """
    return ArrayNamespaceInfo()


class ArrayNamespaceInfo:
    """The dtypes and devices that there are, those that are taken if none is asked for, and what is possible."""

    __slots__ = ()

    def capabilities(self) -> dict[str, bool | int | None]:
        """What arrays can do; traced values, whose elements aren't known, can neither of the first two."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """The device that new arrays are on."""
        return devices()[0]

    def devices(self) -> list[Any]:
        """All devices that arrays can be on."""
        return list(devices())

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """The dtypes that are taken if none is asked for, by `config.default_bits`."""
        integer = dtypes.default_dtype("i")
        return {"real floating": dtypes.default_dtype("f"), "complex floating": dtypes.default_dtype("c"),
                "integral": integer, "indexing": integer}

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, np.dtype]:
        """The dtypes of the standard, of one kind or several, by name."""
        if kind is None:
            return self.dtypes(kind=("bool", "numeric"))
        kinds = kind if isinstance(kind, tuple) else (kind,)
        for one in kinds:
            if one not in _KINDS:
                raise refused("dtypes", "this is not a kind of dtype", got=repr(one), wanted=", ".join(_KINDS),
                              todo="pass one of these, or a tuple of them", kind=CorejaxValueError)
        return {name: np.dtype(name) for one in kinds for name in _KINDS[one]}
