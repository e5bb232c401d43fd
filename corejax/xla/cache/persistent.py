"""The entrance to the persistent compilation cache, none of which is loaded unless `compilation_cache_dir` is set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from corejax.base import _jaxlib
from corejax.base.config import config
from corejax.base.late import late
from corejax.xla.runtime.places import Group, Place

if TYPE_CHECKING:
    from corejax.base._jaxlib import Module

persistent_programs = late("corejax.xla.cache.persistent_programs")


def compile_module(place: Place | Group, module: Module, options: object, callbacks: Sequence[object] = ()) -> Any:
    """The loaded executable of a module, taken from the cache directory if it is there.

    A program with callbacks refers to functions of this process, so it is never kept.
    """
    directory = config.compilation_cache_dir
    if directory is None or callbacks:
        return _jaxlib.compile_module(place.client, module, place.devices, options, callbacks)
    return persistent_programs.compiled(directory, place, module, options)
