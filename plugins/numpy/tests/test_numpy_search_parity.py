"""A fixed sample of the random calls beside jax.numpy that `make test-all` makes by the thousand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax.numpy as jnp
from corejax import lax
from tests import numpy_search

jax = pytest.importorskip("jax")



@pytest.fixture(autouse=True)
def _wide() -> Any:
    with jax.enable_x64(True):
        yield


@pytest.mark.sample(16)
@pytest.mark.parametrize("name", [*numpy_search.DRAWS][::10])
def test_a_random_call_agrees_with_jax(name: str) -> None:
    assert [] == [str(found) for found in numpy_search.search(name, 1, 0)]


@pytest.mark.parametrize(("wrong", "what"), [
    (lambda x: lax.square(x) * 1.001, "values"), (lambda x: lax.square(x).astype("complex128"), "dtype"),
    (lambda x: lax.square(x)[None], "shape"), (lambda x: np.square(np.asarray(x)), "jit raises"),
    (lambda x: lax.square(lax.stop_gradient(x)), "gradient"),
    (lambda x: x * lax.stop_gradient(x) * 2 - lax.stop_gradient(x * x), "order 2")])
def test_the_search_finds_what_is_wrong(wrong: Any, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jnp, "square", wrong)
    found = [*numpy_search.differences("square", numpy_search.Call((np.array([0.5, 2.0]),)))]
    assert any([what in one.what for one in found])
    assert not any([numpy_search.is_known(one) for one in found])


def test_what_is_known_has_a_name_and_a_reason() -> None:
    assert {*numpy_search.KNOWN} <= {"any function", *numpy_search.DRAWS}
    assert all(reason for known in numpy_search.KNOWN.values() for _, reason in known)
