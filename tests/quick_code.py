"""Quicker compilations, for tests whose results don't depend on how the compiler writes machine code.

A small program takes XLA 24 to 40 ms of processor time. Half of that is spent in code that makes the program faster: in
emitters that load dozens of dialects for each program, and in optimisations. What a rule means doesn't depend on them,
so tests of rules do without. Tests of values keep them, and so do all tests in `make test-all`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import numpy as np

import corejax as cj
from corejax.base import _jaxlib
from corejax.errors import CorejaxError

#: Options of the compiler, by name.
QUICK = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}

#: Set by `make test-all`.
FULL = "COREJAX_TESTS_FULL_CODE"


@cache
def options() -> tuple[tuple[str, Any], ...]:
    """Those of `QUICK` that this release of the compiler has; none if all tests are to keep the compiler's defaults."""
    return () if os.environ.get(FULL) else tuple([(name, value) for name, value in QUICK.items() if _has(name, value)])


def _has(name: str, value: object) -> bool:
    try:
        cj.jit(lambda x: x + 1.0, compiler_options={name: value})(np.ones(3))
    except CorejaxError:
        return False
    return True


@contextmanager
def quickly_compiled() -> Iterator[None]:
    """Programs are compiled quickly within; none of these is used outside."""
    usual, more = _jaxlib.compile_options, options()
    if not more:
        yield
        return
    _jaxlib.compile_options = partial(_with, more, usual)
    try:
        yield
    finally:
        _jaxlib.compile_options = usual
        cj.clear_caches()


def _with(more: tuple[tuple[str, Any], ...], usual: Any, ids: Any, overrides: Any = (), *others: Any) -> Any:
    """The options with more, of which those that a test asks for take precedence."""
    return usual(ids, tuple({**dict(more), **dict(overrides)}.items()), *others)
