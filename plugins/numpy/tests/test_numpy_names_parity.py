"""Every public name of jax.numpy is there, but for a few with reasons, and takes what it takes there."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import corejax.numpy as jnp
from tests import numpy_names

theirs = pytest.importorskip("jax.numpy")

MODULES = {"": (jnp, theirs), "linalg.": (jnp.linalg, theirs.linalg), "fft.": (jnp.fft, theirs.fft)}


def test_the_recorded_names_are_jaxs() -> None:
    for prefix, (_, their) in MODULES.items():
        assert numpy_names.JAX[prefix] == [name for name in dir(their) if not name.startswith("_")]


def test_every_name_is_there_or_missing_for_a_reason() -> None:
    lacking = {prefix + name for prefix, (our, their) in MODULES.items() for name in dir(their)
               if not name.startswith("_") and not hasattr(our, name)}
    assert {*numpy_names.MISSING} == lacking
    assert len(lacking) <= 15
    assert all(numpy_names.MISSING.values())


def _shared() -> list[tuple[str, Any, Any]]:
    return [(prefix + name, getattr(our, name), getattr(their, name)) for prefix, (our, their) in MODULES.items()
            for name in dir(their) if not name.startswith("_") and hasattr(our, name)]


def test_names_are_what_they_are_there() -> None:
    for name, our, their in _shared():
        if isinstance(their, ModuleType):
            assert isinstance(our, ModuleType), name
        elif callable(their):
            assert callable(our), name
        elif isinstance(their, float):
            np.testing.assert_equal(our, their, name)


#: Arguments that ours don't take: jax has shardings in types.
WITHOUT = {"out_sharding", "sharding", "_"}

#: Functions whose arguments are others, each with the reason.
OTHERS: dict[str, str] = {
    **dict.fromkeys(("fmax", "fmin", "gcd", "lcm", "trunc"), "their operands are positional, as NumPy's are"),
    "einsum": "an argument that begins with an underscore", "linalg.matrix_rank": "the matrix is called A, as in NumPy",
}


def arguments(function: Any) -> set[str]:
    return {p.name for p in inspect.signature(function).parameters.values()
            if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL, p.POSITIONAL_ONLY)}


def test_functions_take_the_arguments_that_they_take_there() -> None:
    different: dict[str, set[str]] = {}
    for name, our, their in _shared():
        if inspect.isclass(their) or inspect.isclass(our) or not inspect.isroutine(inspect.unwrap(their)):
            continue
        try:
            lacking = arguments(their) - arguments(our) - WITHOUT
        except (TypeError, ValueError):  # a function written in C
            continue
        if lacking:
            different[name] = lacking
    assert {*OTHERS} == {*different}, different


def test_all_names_of_numpy_are_there_or_missing_for_a_reason() -> None:
    assert [] == [name for name, here, _, _, reason in numpy_names.rows() if not here and not reason]


def test_the_table_is_up_to_date() -> None:
    assert numpy_names.page() == numpy_names.PAGE.read_text(), "run: python -m tests.numpy_names --write"
