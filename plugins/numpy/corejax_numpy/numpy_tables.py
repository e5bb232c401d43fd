"""NumPy's functions called with traced values: each is computed by the function of this pack that has its name.

A function is looked up when it is first called, so that the tables import nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

import corejax_numpy as jnp

__all__ = ["numpy_function", "numpy_ufunc"]

#: What makes no arrays of traced values: files, settings, and functions of dtypes, which the kernel answers.
_LEFT_OUT = frozenset("""array_repr array_str get_printoptions load printoptions save savez set_printoptions dtype finfo
    iinfo isdtype issubdtype promote_types result_type can_cast isscalar iterable frompyfunc vectorize ufunc fromfile
    fromstring frombuffer fromiter from_dlpack""".split())

#: The methods of a ufunc that give a result.
_METHODS = ("reduce", "accumulate", "outer", "reduceat")


class Later:
    """A function of this pack, by its name: `Later("linalg.norm")`."""

    def __init__(self, name: str) -> None:
        self._name = name

    @cached_property
    def _function(self) -> Callable[..., Any]:
        found: Any = jnp
        for name in self._name.split("."):
            found = getattr(found, name)
        return found  # type: ignore[no-any-return]

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)


def _shared(theirs: ModuleType, prefix: str, names: list[str]) -> Iterator[tuple[Any, Later]]:
    for name in names:
        function = getattr(theirs, name, None)
        if callable(function) and not isinstance(function, type) and name not in _LEFT_OUT:
            yield function, Later(prefix + name)


def _all() -> Iterator[tuple[Any, Later]]:
    yield from _shared(np, "", jnp.__all__)
    for theirs in (np.linalg, np.fft):
        prefix = theirs.__name__.rpartition(".")[2] + "."
        yield from _shared(theirs, prefix, [name for name in dir(theirs) if not name.startswith("_")])


_FOUND = dict(_all())

numpy_function = {function: ours for function, ours in _FOUND.items() if not isinstance(function, np.ufunc)}

numpy_ufunc = {function: ours for function, ours in _FOUND.items() if isinstance(function, np.ufunc)}
numpy_ufunc |= {getattr(ufunc, method): Later(f"{ufunc.__name__}.{method}") for ufunc in [*numpy_ufunc]
                if ufunc.nin == 2 and ufunc.nout == 1 and ufunc.signature is None for method in _METHODS}
