"""Quicker compilations, for tests whose results don't depend on how the compiler writes machine code.

A small program takes XLA 24 to 40 ms of processor time. Half of that is spent in code that makes the program faster: in
emitters that load dozens of dialects for each program, and in optimisations. What a rule means doesn't depend on them,
so tests do without, but for those about values at the edges (`usual_code`), and for all in `make test-all`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import corejax as cj
from corejax.base import _jaxlib
from corejax.errors import CorejaxError

#: Options of the compiler, by name.
QUICK = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}


class _Options:
    """Stands for `_jaxlib.compile_options`; `more` are the options that programs get that don't ask for others."""

    def __init__(self) -> None:
        self.usual = _jaxlib.compile_options
        self.more: dict[str, Any] = {}

    def __call__(self, ids: Any, overrides: Any = (), *others: Any, **named: Any) -> Any:
        return self.usual(ids, tuple({**self.more, **dict(overrides)}.items()), *others, **named)


@contextmanager
def quick_code() -> Iterator[None]:
    """Programs are compiled quickly within, as far as this release of the compiler can."""
    options = _jaxlib.compile_options = _Options()
    try:
        options.more = {name: value for name, value in QUICK.items() if _has(name, value)}
        yield
    finally:
        _jaxlib.compile_options = options.usual


def _has(name: str, value: object) -> bool:
    try:
        cj.jit(lambda x: x + 1.0, compiler_options={name: value})(np.ones(3))
    except CorejaxError:
        return False
    return True


@contextmanager
def usual_code() -> Iterator[None]:
    """Programs are compiled as for users within, those from outside anew."""
    options = _jaxlib.compile_options
    if not isinstance(options, _Options):
        yield
        return
    cj.clear_caches()
    more, options.more = options.more, {}
    try:
        yield
    finally:
        options.more = more
