"""Old names of modules that pickles or packs may refer to, so that those from before the move still work."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

#: Old and new names of modules: only those that occur in pickles, or were public.
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
    """Finds a module under its old name: it is the identical object, which keeps its new name.

    This is a finder and loader without their base classes, which import 27 modules that nothing else needs.
    """

    def find_spec(self, fullname: str, path: Sequence[str] | None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname in MOVED else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python make a default module, which is only a placeholder during the import."""

    def exec_module(self, module: ModuleType) -> None:
        # The import system takes whatever is in `sys.modules` when this returns.
        sys.modules[module.__name__] = import_module(MOVED[module.__name__])


def keep_old_names() -> None:
    """Install this finder, as the last one."""
    if not any(type(finder) is _Aliases for finder in sys.meta_path):
        sys.meta_path.append(_Aliases())
