"""What indexing is traced to, and lowered to, is no larger than jax's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax as cj


@pytest.fixture(scope="module")
def jax() -> Any:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    return jax


def equations(jaxpr: Any) -> int:
    """How many equations, those of called jaxprs in place of the calls."""
    inner = [[getattr(p, "jaxpr", p) for p in eqn.params.values() if hasattr(p, "eqns")] for eqn in jaxpr.eqns]
    return sum(sum(map(equations, bodies)) if bodies else 1 for bodies in inner)


X, INDICES = np.arange(12.0).reshape(3, 4), np.array([1, 2, 0])
PROGRAMS = {
    "x[1:3]": lambda x, i, j: x[1:3], "x[2]": lambda x, i, j: x[2], "x[-1]": lambda x, i, j: x[-1],
    "x[:, 1]": lambda x, i, j: x[:, 1], "x[1, 2]": lambda x, i, j: x[1, 2], "x[None]": lambda x, i, j: x[None],
    "x[::-1]": lambda x, i, j: x[::-1], "x[::2]": lambda x, i, j: x[::2], "x[i]": lambda x, i, j: x[i],
    "x[i, 1]": lambda x, i, j: x[i, 1], "x[:, i]": lambda x, i, j: x[:, i], "x[i, i]": lambda x, i, j: x[i, i],
    "x[j]": lambda x, i, j: x[j], "x[j, j]": lambda x, i, j: x[j, j], "x[INDICES]": lambda x, i, j: x[INDICES],
    "x.at[i].get(clip)": lambda x, i, j: x.at[i].get(mode="clip"),
    "x.at[i].get(fill)": lambda x, i, j: x.at[j].get(mode="fill"),
    "x.at[2].set": lambda x, i, j: x.at[2].set(1.0), "x.at[1:3].set": lambda x, i, j: x.at[1:3].set(1.0),
    "x.at[:, 1].set": lambda x, i, j: x.at[:, 1].set(1.0), "x.at[i].set": lambda x, i, j: x.at[i].set(1.0),
    "x.at[i, 1].set": lambda x, i, j: x.at[i, 1].set(1.0), "x.at[j].set": lambda x, i, j: x.at[j].set(x),
    "x.at[2].add": lambda x, i, j: x.at[2].add(1.0), "x.at[1:3].add": lambda x, i, j: x.at[1:3].add(1.0),
    "x.at[i].add": lambda x, i, j: x.at[i].add(1.0), "x.at[j].add": lambda x, i, j: x.at[j].add(x),
    "x.at[INDICES].add": lambda x, i, j: x.at[INDICES].add(x), "x.at[2].divide": lambda x, i, j: x.at[2].divide(2.0),
    "x.at[i].multiply": lambda x, i, j: x.at[i].multiply(2.0), "x.at[2].power": lambda x, i, j: x.at[2].power(2.0)}


@pytest.mark.parametrize("name", PROGRAMS)
def test_parity_of_sizes_with_jax(jax: Any, name: str) -> None:
    args = X, np.array(2), INDICES
    theirs = equations(jax.make_jaxpr(PROGRAMS[name])(*args).jaxpr)
    assert theirs >= equations(cj.make_jaxpr(PROGRAMS[name])(*args).jaxpr) > 0
    if name != "x.at[i].get(fill)":  # there the whole indices are compared, and the columns of that
        found = [operations(module.jit(PROGRAMS[name]).lower(*args).as_text()) for module in (jax, cj)]
        # an index for each axis, and no scatter; starts that are clamped, as a slice of a slice needs it to be right
        more = {"x.at[:, 1].set": 1, "x[i, i]": 3}
        assert found[0] + more.get(name, 0) >= found[1] > 0


def operations(text: str) -> int:
    """How many operations of StableHLO, but for those that only name axes anew."""
    return text.count(" stablehlo.") + text.count("\"stablehlo.") - text.count(" stablehlo.reshape")
