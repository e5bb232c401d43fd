"""Types that programs use at run time: unions with `ArrayLike`, and shapes and dtypes in place of arrays."""

from __future__ import annotations

from typing import Optional

import numpy as np

import corejax as cj
import corejax.numpy as jnp
from corejax.core import ArrayLike


def test_array_like_is_a_type_at_run_time() -> None:
    maybe = ArrayLike | None
    assert maybe == Optional[ArrayLike]  # noqa: UP045
    for x in (jnp.ones(2), np.ones(2), np.float32(1), 1, 1.5, 1j, True):
        assert isinstance(x, ArrayLike)
    assert not isinstance("text", ArrayLike)
    assert isinstance(None, maybe)


def test_a_shape_and_a_dtype_stand_for_an_array_where_no_elements_are_needed() -> None:
    x, k = cj.ShapeDtypeStruct((2,), "float32"), cj.ShapeDtypeStruct((), "int32")
    assert ("float32", "float32", "float32") == (jnp.result_type(x).name, jnp.result_type(x, 1.0).name,
                                                 jnp.result_type(k, x).name)
    assert ((2,), 1, 2) == (jnp.shape(x), jnp.ndim(x), jnp.size(x))
    assert jnp.iscomplexobj(cj.ShapeDtypeStruct((), "complex64"))
    assert not jnp.isrealobj(cj.ShapeDtypeStruct((), "complex64"))
    assert "float64" == jnp.result_type(cj.ShapeDtypeStruct((), "float32", weak_type=True), np.float64(1)).name
    assert "f32[2]" == str(cj.typeof(x)) == str(cj.typeof(jnp.ones(2, "float32")))
    assert "~i64[]" == str(cj.typeof(1))
    for like, value in ((jnp.zeros_like, 0.0), (jnp.ones_like, 1.0), (jnp.empty_like, 0.0)):
        assert ([value] * 2, "float32") == (like(x).tolist(), like(x).dtype.name)
    found = cj.eval_shape(lambda d, *, k: {"a": d["x"] + k}, {"x": x}, k=x)
    assert {"a": x} == found
