"""Names that the namespace doesn't have: errors with a hint, at its root and in its modules."""

from __future__ import annotations

import pydoc
from typing import Any

import pytest

import corejax.numpy as jnp
from corejax.errors import CorejaxAttributeError


@pytest.mark.parametrize(("module", "name", "hint"), [
    (jnp, "sinn", "did you mean sin?"), (jnp, "NaN", "did you mean nan?"), (jnp, "trapz", "did you mean trapezoid?"),
    (jnp, "in1d", "did you mean isin?"), (jnp, "random", "NumPy's own is for arrays in host memory: np.random"),
    (jnp, "one_hot", "write it with what is there; docs/numpy.md says what is left out"),
    (jnp.linalg, "norn", "did you mean norm?"), (jnp.fft, "rftt", "did you mean rfft?"),
])
def test_a_name_that_is_missing_gets_a_hint(module: Any, name: str, hint: str) -> None:
    with pytest.raises(CorejaxAttributeError, match=f"no attribute '{name}'") as caught:
        getattr(module, name)
    assert hint == caught.value.todo
    assert not hasattr(module, name)


@pytest.mark.parametrize("module", [jnp, jnp.linalg, jnp.fft])
def test_dir_lists_the_public_names(module: Any) -> None:
    assert sorted(module.__all__) == sorted(dir(module))


def test_ufuncs_are_called_so() -> None:
    assert "ufunc" in pydoc.render_doc(jnp.sin).partition("\n")[0]
    with pytest.raises(AttributeError, match="'ufunc' object has no attribute 'reduc'"):
        jnp.sin.reduc  # noqa: B018
