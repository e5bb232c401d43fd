"""The groups of entry points, how their things are called, and reports that are made once."""

from __future__ import annotations

from typing import Any

from corejax.base.source import warn

PRIMITIVES = "corejax.primitives"
FUNCTIONS = "corejax.functions"
ROLES = "corejax.roles"
RULES = "corejax.rules"
GROUPS = (PRIMITIVES, FUNCTIONS, ROLES, RULES, "corejax.backends", "corejax.transforms")

#: Roles that every pack may fill: each by a table whose keys are functions of NumPy's, and these tables are joined.
NUMPY_UFUNC, NUMPY_FUNCTION = "numpy_ufunc", "numpy_function"
TABLES = frozenset([NUMPY_UFUNC, NUMPY_FUNCTION])

_reported: set[Any] = set()


def noun(group: str) -> str:
    """How to call a thing of this group."""
    special = {"corejax.transforms": "transformation"}
    return special.get(group, group.rpartition(".")[2].removesuffix("s"))


def report(key: object, message: str) -> None:
    """Warn, at most once in a process for each key: the name of a pack, for what breaks it."""
    if key in _reported:
        return
    _reported.add(key)
    warn(message)
