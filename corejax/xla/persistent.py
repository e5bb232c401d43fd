"""The door to the persistent compilation cache: with `config.compilation_cache_dir` unset, nothing of it is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from corejax import _jaxlib
from corejax.config import config
from corejax.xla.client import Place


def compile_module(place: Place, module: Any, options: Any, callbacks: Sequence[Any] = ()) -> Any:
    """The loaded executable of a module, from the directory that keeps programs if it is there.

    A program that calls back holds functions of this process, so it is never kept.
    """
    directory = config.compilation_cache_dir
    if directory is None or callbacks:
        return _jaxlib.compile_module(place.client, module, place.device, options, callbacks)
    return import_module("corejax.xla.persistent_programs").compiled(directory, place, module, options)
