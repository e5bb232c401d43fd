"""A primitive from a pack with a fault in it, beside the true one.

The modules of the pack are imported once more, the faulty one from its changed source, and `sys.modules` is put back
afterwards. The kernel's roles and operators and `corejax.lax` keep to the true pack.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import SourceFileLoader
from importlib.util import spec_from_file_location
from types import CodeType, ModuleType
from typing import Any

from corejax.installed import groups, manifest, registry
from corejax.plugin import Primitive, define

from .mutant import Mutant, path_of

#: The kernel's code that packs make their rules by: it is imported anew with a pack if the fault is there.
KITS = ("corejax.packs.families", "corejax.packs.shaping", "corejax.interpreters.carrying")


class Loader(SourceFileLoader):
    """Loads a module from a source that isn't its file's."""

    def __init__(self, module: str, path: str, source: str) -> None:
        super().__init__(module, path)
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._source, self.path, "exec", dont_inherit=True)


class Finder(MetaPathFinder):
    """Finds one module."""

    def __init__(self, module: str, source: str) -> None:
        self._module, self._source, self._path = module, source, str(path_of(module))

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        if fullname != self._module:
            return None
        loader = Loader(fullname, self._path, self._source)
        return spec_from_file_location(fullname, self._path, loader=loader)


def load(mutant: Mutant) -> Primitive:
    """The primitive of the mutant."""
    return load_from(mutant.primitive, mutant.module, mutant.source())


def load_from(primitive: str, module: str, source: str) -> Primitive:
    """The primitive of this name as its pack makes it if `module` has this source."""
    _settle()
    entry = manifest.read().choose(groups.PRIMITIVES, primitive)
    finder = Finder(module, source)
    with _forgotten(_root(module), _root(entry.module)):
        sys.meta_path.insert(0, finder)
        try:
            assert isinstance(import_module(module).__loader__, Loader)
            value: Any = import_module(entry.module)
        finally:
            sys.meta_path.remove(finder)
    for attr in entry.attr.split("."):
        value = getattr(value, attr)
    found = getattr(value, "primitive", None)
    return found if isinstance(found, Primitive) else define(value, module=entry.module).primitive  # type: ignore


@contextmanager
def standing_in(primitive: Primitive) -> Iterator[None]:
    """Within the block the name of the primitive leads to it, as for its pack: where a printed program is read back."""
    key = groups.PRIMITIVES, primitive.name
    true = registry.load(*key)
    registry._objects[key] = primitive
    try:
        yield
    finally:
        registry._objects[key] = true


@contextmanager
def _forgotten(*packages: str) -> Iterator[None]:
    """Within the block these packages aren't imported yet; afterwards the modules are as they were."""
    def of_packages() -> list[str]:
        return [name for name in sys.modules if any(name == p or name.startswith(p + ".") for p in packages)]

    parents = [(sys.modules[parent], child) for parent, _, child in [p.rpartition(".") for p in packages] if parent]
    before = {name: sys.modules.pop(name) for name in of_packages()}
    attributes = [(parent, child, vars(parent).pop(child, None)) for parent, child in parents]
    try:
        yield
    finally:
        for name in of_packages():
            del sys.modules[name]
        sys.modules.update(before)
        for parent, child, value in attributes:
            vars(parent).pop(child, None)
            if value is not None:
                setattr(parent, child, value)


def _root(module: str) -> str:
    return next((kit for kit in KITS if module.startswith(kit)), module.partition(".")[0])


_settled: list[bool] = []


def _settle() -> None:
    """Look up everything that packs provide: what is found later would be found among the modules of a mutant."""
    if _settled:
        return
    found = manifest.read()
    for group in (groups.PRIMITIVES, groups.FUNCTIONS, groups.ROLES):
        for name in found.names(group):
            registry.load(group, name)
    _settled.append(True)


