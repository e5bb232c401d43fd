"""Every public name of jax.lax and jax.lax.linalg is there, but for a few with reasons."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from corejax import lax
from corejax.plugin import Primitive
from tests.jax_names import EXCEPTIONS, missing, public_names

theirs = pytest.importorskip("jax").lax
jax_core = pytest.importorskip("jax.extend.core")

SHARED = [name for name in public_names(theirs) if name not in EXCEPTIONS]


def test_every_name_of_jax_lax_is_there() -> None:
    assert {*EXCEPTIONS} == {*missing(theirs, lax)}
    assert len(EXCEPTIONS) <= 5
    assert all(EXCEPTIONS.values())


def test_every_name_of_jax_lax_linalg_is_there() -> None:
    assert [] == missing(theirs.linalg, lax.linalg)


def test_names_that_end_in_p_are_primitives_and_others_are_what_they_are_in_jax() -> None:
    for name in SHARED:
        their, our = getattr(theirs, name), getattr(lax, name)
        if name.endswith("_p"):
            assert isinstance(their, jax_core.Primitive) and isinstance(our, Primitive), name
        elif inspect.isclass(their):
            assert inspect.isclass(our) or not callable(our) or name.endswith("Like"), name
        elif callable(their):
            assert callable(our), name


#: Primitives that programs show under another name than in jax, whose scatters have hyphens.
OTHER_NAMES = {"while_p": "while_loop", "stage_p": "stage_value", **{
    f"scatter_{way}_p": f"scatter_{way}" for way in ("add", "max", "min", "mul", "sub")}}


def test_primitives_have_the_names_in_programs_that_they_have_in_jax() -> None:
    own = {name: getattr(lax, name).name for name in SHARED if name.endswith("_p")}
    assert {name: own[name] for name in own if own[name] != getattr(theirs, name).name} == OTHER_NAMES


#: Arguments that ours don't take: jax has shardings in types, and an experiment with scan.
WITHOUT = {"out_sharding", "sharding", "out_dtype", "_split_transpose"}

#: Elementwise functions, whose operands are x and y here.
ELEMENTWISE = {"igamma", "igamma_grad_a", "igammac", "nextafter", "polygamma", "zeta"}


def arguments(function: Any) -> list[str]:
    return [p.name for p in inspect.signature(function).parameters.values()
            if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL) and p.name != "_"]


def test_functions_have_the_arguments_that_they_have_in_jax() -> None:
    different = {}
    for name in SHARED:
        their = getattr(theirs, name)
        if not name.endswith("_p") and not inspect.isclass(their) and inspect.isroutine(inspect.unwrap(their)):
            lacking = {*arguments(their)} - {*arguments(getattr(lax, name))} - WITHOUT
            different |= {name: lacking} if lacking else {}
    assert {*different} == ELEMENTWISE, different
