"""Types that few functions are called with: complex numbers, bfloat16."""

from __future__ import annotations

import numpy as np
import pytest

import corejax.numpy as jnp
from corejax.errors import CorejaxTypeError


def test_a_sum_of_exponentials_of_complex_numbers() -> None:
    x = np.array([1.0 + 1.0j, 2.0, 900.0 - 1.0j])
    shifted = np.log(np.sum(np.exp(x - 900.0))) + 900.0
    np.testing.assert_allclose(np.asarray(jnp.logaddexp.reduce(jnp.array(x))), shifted)
    first = jnp.logaddexp.reduce(jnp.array(x), where=np.array([True, False, False]))
    np.testing.assert_allclose(np.asarray(first), x[0])


@pytest.mark.parametrize("call", [lambda x: jnp.polyfit(x, x, 1), lambda x: jnp.linalg.pinv(x[:, None]),
                                  lambda x: jnp.linalg.lstsq(x[:, None], x)])
def test_factorisations_of_short_floats_are_refused(call) -> None:
    with pytest.raises(CorejaxTypeError, match="bf16"):
        call(jnp.arange(3, dtype=jnp.bfloat16))
