"""How other libraries get from an array to `corejax.numpy`: the role behind `x.__array_namespace__()`."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from corejax.errors import CorejaxValueError
from corejax.plugin import refused
from corejax_numpy._array_api import __array_api_version__

__all__ = ["array_namespace"]

#: The version that is followed, and those before it: it takes away nothing that they have.
_VERSIONS = ("2021.12", "2022.12", "2023.12", __array_api_version__)


def array_namespace(api_version: str | None = None) -> ModuleType:
    """`corejax.numpy`, which has what these versions of the array API standard ask for."""
    if api_version is not None and api_version not in _VERSIONS:
        raise refused("__array_namespace__", "corejax.numpy doesn't follow this version of the array API standard",
                      got=f"api_version={api_version!r}", wanted="one of " + ", ".join(_VERSIONS),
                      todo=f"leave it out: it is then {__array_api_version__}", kind=CorejaxValueError)
    return import_module("corejax_numpy")
