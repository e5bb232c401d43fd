"""Names of lax that end in _p are primitives; those of jax.lax that are missing are in packs/test_names_parity.py."""

from __future__ import annotations

import pytest

from corejax import lax


def test_a_primitive_has_its_own_name() -> None:
    assert lax.sin_p is lax.sin.primitive and lax.and_p is lax.bitwise_and.primitive
    assert "sin_p" not in dir(lax)


def test_a_primitive_may_have_another_name_by_an_entry_point() -> None:
    assert lax.while_p is lax.while_loop_p and lax.stage_p is lax.stage_value_p
    assert lax.linear_solve_p is lax.custom_linear_solve.primitive
    assert not [name for name in dir(lax) if name.endswith("_p")]


@pytest.mark.parametrize("name", ["dot", "expand_dims", "fori_loop", "pmean"])
def test_what_is_no_primitive_says_so(name: str) -> None:
    assert callable(getattr(lax, name))
    with pytest.raises(AttributeError, match=f"there is no lax.{name}_p, as lax.{name} isn't a primitive"):
        getattr(lax, f"{name}_p")
    with pytest.raises(ImportError, match="isn't a primitive"):
        exec(f"from corejax.lax import {name}_p")
    with pytest.raises(AttributeError, match="no installed pack provides"):
        lax.this_is_no_primitive_p  # noqa: B018
