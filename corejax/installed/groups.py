"""The groups of entry points, nouns for their members, and reports that are only made once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from corejax.base.source import warn

PREFIX = "corejax."
PRIMITIVES = "corejax.primitives"
FUNCTIONS = "corejax.functions"
ROLES = "corejax.roles"
RULES = "corejax.rules"
NAMESPACES = "corejax.namespaces"
KERNELS = "corejax.kernels"
DTYPES = "corejax.dtypes"
SETTINGS = "corejax.settings"
COMMANDS = "corejax.commands"
CHECKS = "corejax.checks"
FACTS = "corejax.facts"
EFFECTS = "corejax.effects"
TRANSFORMS = "corejax.transforms"
GROUPS = (PRIMITIVES, FUNCTIONS, ROLES, RULES, NAMESPACES, KERNELS, DTYPES, SETTINGS, COMMANDS, CHECKS, FACTS,
          EFFECTS, "corejax.backends", TRANSFORMS)

#: Before the name of a public function: it is `cj.NAME`, or `cj.experimental.NAME`, rather than `cj.lax.NAME`.
AT_TOP, EXPERIMENTAL = "cj/", "experimental/"

#: Before the name of a module: it is below a package that several packs fill, rather than at the top.
BELOW_LAX, BELOW_EXPERIMENTAL = "lax.", "experimental."

#: What a name ends in that means a primitive itself, rather than its function: `lax.NAME_p`.
ITSELF = "_p"

#: Roles that every pack may fill, each with a table whose keys are NumPy functions. The tables are joined.
NUMPY_UFUNC, NUMPY_FUNCTION = "numpy_ufunc", "numpy_function"
TABLES = frozenset([NUMPY_UFUNC, NUMPY_FUNCTION])

_reported: set[Any] = set()


def place(group: str, name: str) -> tuple[str, str]:
    """Where users find what an entry of functions or namespaces brings, and its name there.

    >>> place(FUNCTIONS, "sin"), place(FUNCTIONS, "cj/pmap"), place(NAMESPACES, "experimental.rings")
    (('lax', 'sin'), ('cj', 'pmap'), ('experimental', 'rings'))
    """
    for prefix in (AT_TOP, EXPERIMENTAL) if group != NAMESPACES else (BELOW_LAX, BELOW_EXPERIMENTAL):
        if name.startswith(prefix):
            return prefix[:-1], name.removeprefix(prefix)
    return "cj" if group == NAMESPACES else "lax", name


def noun(group: str) -> str:
    """The noun for a member of this group."""
    special = {TRANSFORMS: "transformation", DTYPES: "element type", FACTS: "section of doctor"}
    return special.get(group, group.rpartition(".")[2].removesuffix("s"))


def counted(groups: Iterable[str]) -> str:
    """How many members there are of each group, given the group of each: `2 functions, 1 primitive`."""
    counts = Counter(map(noun, groups))
    return ", ".join([f"{count} {name}{'s' * (count > 1)}" for name, count in sorted(counts.items())])


def report(key: object, message: str) -> None:
    """Warn, at most once per process for each key; for a broken pack, that is its name."""
    if key in _reported:
        return
    _reported.add(key)
    warn(message)
