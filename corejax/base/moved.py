"""Modules that pickles name, or packs may, and that have another name now: what was written before they moved works."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

#: Where modules of before are now; only those whose names stand in pickles, and what was public.
MOVED = {
    "corejax.avals": "corejax.base.avals",
    "corejax.ir.jaxpr": "corejax.kernel.jaxpr",
    "corejax.plugin.families": "corejax.packs.families",
    "corejax.plugin.primitive": "corejax.packs.define",
    "corejax.plugin.weights": "corejax.kernel.factors",
    "corejax.source": "corejax.base.source",
    "corejax.trees": "corejax.base.trees",
    "corejax.xla.array": "corejax.arrays.array",
}


class _Aliases:
    """Finds a module of before as the module of now: the identical object, which keeps its own name.

    A finder and its loader, without the base classes for these, which bring 27 modules that nothing else needs.
    """

    def find_spec(self, fullname: str, path: Sequence[str] | None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname in MOVED else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """A module as Python makes it; it only stands in while the import is under way."""

    def exec_module(self, module: ModuleType) -> None:
        # The import system takes what stands in `sys.modules` when this returns.
        sys.modules[module.__name__] = import_module(MOVED[module.__name__])


def keep_old_names() -> None:
    """Ask this finder for what no other one has."""
    if not any(type(finder) is _Aliases for finder in sys.meta_path):
        sys.meta_path.append(_Aliases())
