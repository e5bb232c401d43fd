"""The names and signatures of the standard, as array-api-strict has them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import reduce
from inspect import Parameter
from typing import Any

import array_api_strict as strict

#: What array-api-strict has for itself.
_OWN = {"ArrayAPIStrictFlags", "get_array_api_strict_flags", "reset_array_api_strict_flags",
        "set_array_api_strict_flags", "Device", "__version__", "broadcast_shapes", "isin"}  # the last two: 2025.12
_NAMESPACES = {"": strict, "linalg.": strict.linalg, "fft.": strict.fft}

#: What arrays aren't, being immutable.
_ABSENT = {"__setitem__"}


def names() -> list[str]:
    """All names of the namespace."""
    return sorted(prefix + name for prefix, namespace in _NAMESPACES.items() for name in namespace.__all__
                  if name not in _OWN)


def functions() -> list[str]:
    """Those that can be called."""
    return [name for name in names() if inspect.isfunction(find(strict, name))]


def find(xp: Any, name: str) -> Any:
    """What `xp.linalg.qr` is, by name."""
    return reduce(getattr, name.split("."), xp)


def array_names() -> list[str]:
    """The methods and attributes of arrays that the standard has, operators in place apart."""
    kind = type(strict.asarray(1.0))
    own = {f"__{name}__" for name in "init new array buffer hash iter reduce repr str".split()}
    made = {name for name in vars(kind) if name not in own | _ABSENT and callable(getattr(kind, name))}
    inplace = {name for name in made if name.startswith("__i") and f"__{name[3:]}" in made}
    public = {name for name in vars(kind) if not name.startswith("_")}
    return sorted({name for name in made - inplace if name.startswith("__")} | public)


def refused(standard: Callable[..., Any], ours: Callable[..., Any]) -> Iterator[str]:
    """The ways to pass arguments that the standard allows and a function doesn't."""
    taken, (own, rest) = inspect.signature(ours), _parts(standard)
    for by_name in (False, True):
        args = [0 for one in own if one.kind is Parameter.POSITIONAL_ONLY or not by_name]
        args += [0, 0] if any(one.kind is Parameter.VAR_POSITIONAL for one in rest) else []
        named = {one.name: 0 for one in own if one.kind is Parameter.POSITIONAL_OR_KEYWORD and by_name}
        named |= {one.name: 0 for one in rest if one.kind is Parameter.KEYWORD_ONLY}
        try:
            taken.bind(*args, **named)
        except TypeError as error:
            yield f"{error}: {inspect.signature(standard)} in the standard, here {taken}"


def _parts(function: Callable[..., Any]) -> tuple[list[Parameter], list[Parameter]]:
    """The parameters that are passed by position, and the others."""
    parameters = [*inspect.signature(function).parameters.values()]
    by_position = [p for p in parameters if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
    return by_position, [p for p in parameters if p not in by_position]
