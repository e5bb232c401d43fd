"""The same calls on jax.lax: values, dtypes, weak types, and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import corejax as cj
from corejax import lax
from corejax_lax_basic.indexing import at, getitem

jax = pytest.importorskip("jax")

RNG = np.random.default_rng(0)
X, Y, PLACES = RNG.standard_normal((3, 4)), RNG.standard_normal((4, 5)), np.array([2, 0, 7, -1], np.int32)


def calls(L: Any) -> dict[str, Any]:
    """Functions of (x, y, i), written once for both libraries; L is their lax."""
    gather = L.GatherDimensionNumbers((1,), (0,), (0,))
    scatter = L.ScatterDimensionNumbers((1,), (0,), (0,))
    return {
        "broadcast_in_dim": lambda x, y, i: L.broadcast_in_dim(x, (2, 3, 4), (1, 2)),
        "broadcast": lambda x, y, i: L.broadcast(x, (2, 1)),
        "reshape": lambda x, y, i: L.reshape(x, (6, 2), (1, 0)),
        "squeeze": lambda x, y, i: L.squeeze(L.expand_dims(x, (0, -1)), (-1,)),
        "transpose": lambda x, y, i: L.transpose(x, (1, 0)),
        "rev": lambda x, y, i: L.rev(x, (0, 1)),
        "concatenate": lambda x, y, i: L.concatenate([x, L.transpose(y, (1, 0)), x], 0),
        "pad": lambda x, y, i: L.pad(x, y[0, 0], ((1, -1, 2), (-1, 2, 0))),
        "slice": lambda x, y, i: L.slice(x, (0, 1), (3, 4), (2, 1)),
        "slice_in_dim": lambda x, y, i: L.slice_in_dim(x, 0, -1, 2, axis=-1),
        "dynamic_slice": lambda x, y, i: L.dynamic_slice(x, (i[2], i[3]), (2, 3)),
        "dynamic_slice_in_dim": lambda x, y, i: L.dynamic_slice_in_dim(x, i[0], 2, axis=1),
        "dynamic_update_slice": lambda x, y, i: L.dynamic_update_slice(y, x, (i[0], i[1])),
        "dynamic_update_index": lambda x, y, i: L.dynamic_update_index_in_dim(x, y[:3, 0], i[3], 1),
        "dot": lambda x, y, i: L.dot(x, y),
        "dot_general": lambda x, y, i: L.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type="float64"),
        "gather": lambda x, y, i: L.gather(x, i[:, None], gather, (1, 4), mode="clip"),
        "gather_fill": lambda x, y, i: L.gather(x, i[:, None], gather, (1, 4), mode="fill", fill_value=0),
        "scatter": lambda x, y, i: L.scatter(x, i[:, None], y[:, :4], scatter),
        "scatter_add": lambda x, y, i: L.scatter_add(x, i[:, None], y[:, :4], scatter),
        "full_like": lambda x, y, i: L.full_like(x, 3) * x,
        "stop_gradient": lambda x, y, i: L.stop_gradient(x) * x,
    }


@pytest.mark.parametrize("name", list(calls(lax)))
def test_values_and_gradients_equal_those_of_jax(name: str) -> None:
    ours, theirs = calls(lax)[name], calls(jax.lax)[name]
    with jax.enable_x64(True):
        wanted = theirs(*map(jax.numpy.asarray, (X, Y, PLACES)))
        ct = RNG.standard_normal(wanted.shape)
        back = jax.vjp(lambda x, y: theirs(x, y, jax.numpy.asarray(PLACES)), X, Y)[1](ct) if name != "scatter" else None
    for call in (ours, cj.jit(ours)):
        got = call(*map(cj.device_put, (X, Y, PLACES)))
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
        assert_allclose(np.asarray(got), np.asarray(wanted), rtol=1e-12)
    if back is not None:
        for mine, other in zip(cj.vjp(lambda x, y: ours(x, y, cj.device_put(PLACES)), X, Y)[1](ct), back, strict=True):
            assert_allclose(np.asarray(mine), np.asarray(other), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("index", [(0,), (slice(None, None, -2), 1), (np.array([2, 0]),),
                                   (None, slice(1, 3), np.array([1, 1]))],
                         ids=repr)
@pytest.mark.parametrize("operation", ["set", "add", "multiply", "min", "max", "divide", "power"])
def test_updates_equal_those_of_jax(index: Any, operation: str) -> None:
    x = np.abs(X) + 1.0
    with jax.enable_x64(True):
        wanted = getattr(jax.numpy.asarray(x).at[index], operation)(2.5)
    assert_allclose(np.asarray(getattr(at(x)[index], operation)(2.5)), np.asarray(wanted), rtol=1e-12)


def test_traced_indexing_equals_that_of_jax_out_of_bounds_too() -> None:
    ours, theirs = cj.jit(lambda x, i: getitem(x, i)), jax.jit(lambda x, i: x[i])
    write, theirs_write = cj.jit(lambda x, i: at(x)[i].add(1.0)), jax.jit(lambda x, i: x.at[i].add(1.0))
    with jax.enable_x64(True):
        for i in (np.int32(-2), np.int32(5), np.int32(-9), PLACES, PLACES[:, None]):
            assert_allclose(np.asarray(ours(X, i)), np.asarray(theirs(X, i)))
            assert_allclose(np.asarray(write(X, i)), np.asarray(theirs_write(X, i)))
