"""Modules that packs provide under `corejax`: as `cj.NAME` and `import corejax.NAME`, or below a shared one.

Several packs fill a shared one, `lax` or `experimental`.

A module keeps its own name and is loaded once: `corejax.NAME` and all below it are other names for the same objects.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import FrameType, ModuleType

from corejax.base.errors import CorejaxModuleNotFoundError, suggestion
from corejax.base.source import describe, is_library
from corejax.installed import registry
from corejax.installed.groups import NAMESPACES, place
from corejax.installed.isolation import is_machinery

_ROOT = "corejax."

#: Names that were imported, and of which modules they are other names.
_claimed: dict[str, str] = {}


def load(name: str) -> ModuleType:
    """The module that a pack provides as `corejax.NAME`."""
    return import_module(_ROOT + name)


def is_provided(name: str) -> bool:
    """Whether a pack in use provides it."""
    return bool(registry.installed().providers(NAMESPACES, name))


def _is_there(name: str) -> bool:
    return is_provided(name) and not is_reserved(name)


def is_reserved(name: str) -> bool:
    """Whether it is a name of corejax's own, which packs can't have, or one below anything that isn't shared."""
    where, last = place(NAMESPACES, name)
    if where != "cj":
        return not last.isidentifier()
    root = sys.modules[_ROOT[:-1]]
    return (not name.isidentifier() or name in vars(root)["__all__"] or
            PathFinder.find_spec(_ROOT + name, root.__path__) is not None)


class _Aliases:
    """A loader of other names for modules, without the base class, which imports 27 modules."""

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python make a default module, which is only a placeholder during the import."""

    def exec_module(self, module: ModuleType) -> None:
        # The import system takes whatever is in `sys.modules` when this returns. Meanwhile nobody must get the
        # placeholder: neither another thread, nor the module itself if it imports itself by this name.
        name = module.__name__
        sys.modules.pop(name, None)
        sys.modules[name] = self.real(name)

    def real(self, name: str) -> ModuleType:
        """The module for which this is another name."""
        return import_module(_real_name(name))


class _Below(_Aliases):
    """Goes before the path finder, which would load submodules of a claimed name a second time."""

    def find_spec(self, fullname: str, path: Sequence[str] | None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        if not fullname.startswith(_ROOT) or fullname in _claimed or _real_name(fullname) == fullname:
            return None
        return ModuleSpec(fullname, self)  # type: ignore[arg-type]


class _First(_Aliases):
    """Comes last: asks the packs for a name below `corejax` that nobody else finds."""

    def find_spec(self, fullname: str, path: Sequence[str] | None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        name = fullname.removeprefix(_ROOT)
        if name == fullname or "." in place(NAMESPACES, name)[1] or name.startswith("_"):
            return None
        # For an import, `real` says whether it is there. Python holds the lock of all imports here, so whoever waits
        # for another thread's import, such as that of what reads the manifest, waits for good.
        imported = sys._getframe(1).f_back.f_code.co_name == "_find_and_load_unlocked"  # type: ignore[union-attr]
        if imported or _is_there(name):
            return ModuleSpec(fullname, self)  # type: ignore[arg-type]
        return None

    def real(self, name: str) -> ModuleType:
        if not _is_there(name.removeprefix(_ROOT)):
            raise _unknown(name.removeprefix(_ROOT))
        found: ModuleType = registry.load(NAMESPACES, name.removeprefix(_ROOT))
        _claimed[name] = found.__name__
        # An import sets an attribute of the package above, which may have given that name to something else since.
        for below, module in list(sys.modules.items()):
            if below.startswith(f"{found.__name__}."):
                sys.modules.setdefault(name + below.removeprefix(found.__name__), module)
        if not any([type(finder) is _Below for finder in sys.meta_path]):
            sys.meta_path.insert(0, _Below())
        return found


def _real_name(fullname: str) -> str:
    """The name of the module for which this is another name, or the same."""
    head, rest = fullname, ""
    while head != _ROOT[:-1] and head not in _claimed:
        head, _, last = head.rpartition(".")
        rest = f".{last}{rest}"
    return _claimed[head] + rest if head in _claimed else fullname


def _unknown(name: str) -> CorejaxModuleNotFoundError:
    todo = (registry.brought_by(name) or suggestion(name, registry.installed().names(NAMESPACES)) or
            registry.install_hint(name, (NAMESPACES,)))
    error = CorejaxModuleNotFoundError(
        f"no installed pack provides the namespace corejax.{name}", got=registry.packs_in_use(), where=_importer(),
        wanted="a module of corejax, or a namespace of one of these", todo=todo)
    error.name = _ROOT + name
    return error


def _importer() -> str | None:
    """The line of the import."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (is_machinery(frame) or is_library(frame)):
        frame = frame.f_back
    return describe((frame.f_code, frame.f_lasti)) if frame else None


def _forget(function: str | None) -> None:
    for alias in list(_claimed) if function is None else ():
        for name in [name for name in sys.modules if name == alias or name.startswith(alias + ".")]:
            del sys.modules[name]
        parent, _, child = alias.rpartition(".")
        vars(sys.modules[parent]).pop(child, None)
        del _claimed[alias]


def serve() -> None:
    """Answer imports of names below `corejax` that packs provide."""
    if not any([type(finder) is _First for finder in sys.meta_path]):
        sys.meta_path.append(_First())
        registry.also_forget(_forget)
