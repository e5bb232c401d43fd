"""The random programs beside jax: error or none, and which check failed."""

from __future__ import annotations

from typing import Any

import pytest

import corejax as cj
from checked_programs import Library, Maker, has
from corejax import checkify, lax, numpy as jnp

jax = pytest.importorskip("jax")
jax_checkify = pytest.importorskip("jax.experimental.checkify")

QUICK, ALL = 24, 400

mine, others = Library(cj, lax, jnp, checkify), Library(jax, jax.lax, jax.numpy, jax_checkify)
LOOPS = ("scan", "fori", "while")


def seeds() -> list[Any]:
    return [*range(QUICK), *[pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(QUICK, ALL)]]


def label(message: str | None) -> str | None:
    """The name of a check, or the words of another kind, without values and without the place in a batch."""
    if message is None:
        return None
    rest = message.split(": ", 1)[1] if message.startswith("at mapped") else message
    return rest.split()[0] if "`check` failed" in rest else rest.rstrip(". ").split(" for array")[0]


@pytest.mark.parametrize("seed", seeds())
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_verdict_is_that_of_jax(seed: int) -> None:
    program = Maker(seed).program()
    if has(program.block, ("cond", "switch", "while"), inside=("vmap",)):
        pytest.skip("jax takes both branches, and makes the checks of both")
    if has(program.block, ("custom_jvp", "custom_vjp"), inside=("jvp", "vjp")):
        pytest.skip("jax leaves out the checks of functions with rules where they are differentiated")
    if has(program.block, LOOPS, inside=("vjp",)):
        pytest.skip("jax loses the checks in loops that reverse mode goes through")
    with jax.enable_x64(True):
        wanted = jax.jit(others.checked(program))(program.x)[0].get()
    found = cj.jit(mine.checked(program))(program.x)[0].get()
    assert (wanted is None) == (found is None), (wanted, found)
    if len(program.kinds) > 1 and ((wanted or "").startswith("c") or has(program.block, (*LOOPS, "checkify"))):
        return  # jax reports the user's checks before others, and in a loop what is written first
    assert label(wanted) == label(found)
