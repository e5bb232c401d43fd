"""Names of jax.lax: those that corejax.lax lacks are listed, and primitives are there by their own."""

from __future__ import annotations

import pytest

from corejax import lax
from tests.jax_names import COMPUTED, MISSING, missing


def test_parity_names_that_are_missing_are_listed_by_what_brings_them() -> None:
    theirs = pytest.importorskip("jax").lax
    listed = {name for names in MISSING.values() for name in names.split()}
    assert listed == {*missing(theirs, lax)}


def test_a_primitive_has_its_own_name() -> None:
    assert lax.sin_p is lax.sin.primitive and lax.and_p is lax.bitwise_and.primitive
    assert "sin_p" not in dir(lax)


@pytest.mark.parametrize("name", sorted(COMPUTED))
def test_what_is_no_primitive_says_so(name: str) -> None:
    assert callable(getattr(lax, name))
    with pytest.raises(AttributeError, match=f"there is no lax.{name}_p, as lax.{name} isn't a primitive"):
        getattr(lax, f"{name}_p")
    with pytest.raises(ImportError, match="isn't a primitive"):
        exec(f"from corejax.lax import {name}_p")
    with pytest.raises(AttributeError, match="no installed pack provides"):
        lax.this_is_no_primitive_p  # noqa: B018
