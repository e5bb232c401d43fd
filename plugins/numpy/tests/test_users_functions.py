"""Functions that users pass: one that doesn't take its arguments is named with its signature."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pytest

import corejax.numpy as jnp
from corejax.errors import CorejaxTypeError


def total(a: Any, b: Any) -> Any:
    return a + b


@pytest.mark.parametrize("call", [
    lambda x: jnp.vectorize(total)(x), lambda x: jnp.frompyfunc(total, 1, 1)(x),
    lambda x: jnp.apply_along_axis(total, 0, x), lambda x: jnp.fromfunction(total, (3,)),
    lambda x: jnp.piecewise(x, [x > 0], [total]), lambda x: jnp.apply_over_axes(lambda a: total(a), x, 0),
])
def test_a_function_that_does_not_take_its_arguments_is_shown(call: Callable[[Any], Any]) -> None:
    with pytest.raises(CorejaxTypeError) as caught:
        call(jnp.arange(3.0))
    assert caught.value.wanted in ("arguments for total(a: 'Any', b: 'Any') -> 'Any'", "arguments for <lambda>(a)")
    assert {__file__} == {frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)}
