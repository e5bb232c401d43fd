"""Modules of packs that are loaded once more, by `importlib.reload`: what was taken from them is out of date then."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_watched: set[str] = set()
_to_tell: list[Callable[[], None]] = []


def watch(module: str) -> None:
    """Something was taken from this module."""
    _watched.add(module)
    if not any([type(finder) is _Reloads for finder in sys.meta_path]):
        sys.meta_path.insert(0, _Reloads())


def when_reloaded(tell: Callable[[], None]) -> Callable[[], None]:
    """Call this after any of the modules was reloaded, or failed to be."""
    _to_tell.append(tell)
    return tell


class _Reloads:
    """Goes before all finders, and finds what they find. Python passes a `target` only if a module is reloaded."""

    def find_spec(self, fullname: str, path: Sequence[str] | None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        if target is None or fullname not in _watched:
            return None
        for finder in list(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(fullname, path, target) if find is not None else None
            if spec is not None:
                _tell_after(spec.loader)
                return spec
        return None


def _tell_after(loader: Any) -> None:
    """Tell those who want to know when this loader has executed its next module."""
    def exec_module(module: ModuleType) -> None:
        vars(loader).pop("exec_module", None)  # from now on, it is the class's again
        try:
            loader.exec_module(module)
        finally:
            for tell in _to_tell:
                tell()

    try:
        loader.exec_module = exec_module
    except AttributeError:  # one without attributes, so what is taken before the module was executed stays
        for tell in _to_tell:
            tell()
