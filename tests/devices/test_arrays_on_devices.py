"""Arrays that are divided among devices: where they are, how they are read, and what is computed with them."""

import copy
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

import corejax as cj
from corejax import P, lax
from corejax.arrays import devices
from corejax.base import _jaxlib
from corejax.eager import moving, whole
from corejax.errors import CorejaxRuntimeError, CorejaxValueError
from corejax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from corejax.xla.runtime import client

SPECS = [P(), P("x"), P("y"), P(None, "y"), P("x", "y"), P("y", "x"), P(("x", "y")), P(None, ("y", "x"))]


def spread(x, mesh, *entries):
    return cj.device_put(x, NamedSharding(mesh, P(*entries)))


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_an_array_is_read_as_it_was_put(grid, rng, spec):
    x = rng.standard_normal((8, 16))
    sharding = NamedSharding(grid, spec)
    y = cj.device_put(x, sharding)
    assert sharding is y.sharding
    assert set(cj.devices()) == y.devices()
    np.testing.assert_array_equal(x, np.asarray(y))
    np.testing.assert_array_equal(x, cj.device_get(y))


@pytest.mark.parametrize("dtype", [np.float32, np.int8, bool, np.complex64, cj.bfloat16])
def test_arrays_of_any_dtype_are_divided(line, dtype):
    x = np.arange(16).astype(dtype)
    np.testing.assert_array_equal(x, np.asarray(spread(x, line, "x")))


@pytest.mark.parametrize("shape", [(0,), (8, 0), (0, 8)])
def test_empty_arrays_are_divided(line, shape):
    assert shape == np.asarray(spread(np.zeros(shape), line, "x")).shape


def test_an_ndarray_may_change_once_it_was_put(grid):
    x = np.zeros((8, 8))
    ys = [spread(x, grid, *entries) for entries in ((), ("x",), ("x", "y"), (None, "y"))]
    x += 1.0
    assert [0.0] * 4 == [np.asarray(y).max() for y in ys]


def test_primitives_run_on_the_devices_of_their_operands(grid, rng):
    x = rng.standard_normal((8, 8))
    y = lax.sin(spread(x, grid, "x", "y"))
    assert NamedSharding(grid, P("x", "y")) is y.sharding
    np.testing.assert_allclose(np.sin(x), np.asarray(y))


def test_what_may_move_joins_what_is_divided(grid, rng):
    x = rng.standard_normal((8, 8))
    y, default = spread(x, grid, "x"), cj.device_put(np.ones(8))
    for other in (1.0, np.ones(8), default, cj.jit(lambda z: z)(np.ones(8))):
        out = y + other
        np.testing.assert_allclose(x + 1.0, np.asarray(out))
        assert 8 == len(out.devices())
    assert 1 == len(default.devices())


def test_what_was_put_on_a_device_stays_there(grid):
    stays = cj.device_put(np.ones(8), cj.devices()[0])
    moves = cj.device_put(np.ones(8))
    there = cj.device_put(np.ones(8), cj.devices()[3])
    assert cj.devices()[3] == (moves + there).device
    for wrong in (lambda: stays + there, lambda: stays + spread(np.ones(8), grid, "x"),
                  lambda: cj.jit(lax.add)(stays, spread(np.ones(8), grid, "x"))):
        with pytest.raises(CorejaxValueError, match="live on different devices"):
            wrong()


def test_methods_and_indexing_of_divided_arrays(grid, rng):
    x = rng.standard_normal((8, 8))
    y = spread(x, grid, "x", "y")
    np.testing.assert_allclose(x.sum(), y.sum().item())
    np.testing.assert_array_equal(x[1:5:2, 3], np.asarray(y[1:5:2, 3]))
    np.testing.assert_array_equal(x[[1, 7, 1]], np.asarray(y[np.array([1, 7, 1])]))
    np.testing.assert_array_equal(x.T, np.asarray(y.T))
    assert x.tolist() == y.tolist()
    np.testing.assert_array_equal(x, np.stack([np.asarray(row) for row in y]))
    changed = y.at[2].set(0.0)
    assert not np.asarray(changed)[2].any() and np.asarray(y)[2].all()
    assert bool((y == y).all())


def test_a_divided_array_prints_as_it_would_elsewhere(line):
    assert "Array([0, 1, 2, 3, 4, 5, 6, 7], dtype=int64)" == repr(spread(np.arange(8), line, "x"))


def test_copies_and_pickles(grid, rng):
    x = rng.standard_normal((8, 8))
    y = spread(x, grid, "x", "y")
    copied = copy.deepcopy(y)
    y.delete()
    assert copied.sharding is NamedSharding(grid, P("x", "y"))
    np.testing.assert_array_equal(x, np.asarray(copied))
    np.testing.assert_array_equal(x, np.asarray(pickle.loads(pickle.dumps(copied))))
    with pytest.raises(CorejaxRuntimeError, match="deleted"):
        np.asarray(y)


def test_moving_from_one_sharding_to_another(grid, line, rng):
    x = rng.standard_normal((8, 8))
    y = spread(x, grid, "x", "y")
    for sharding in (NamedSharding(grid, P("y")), NamedSharding(grid, P()), NamedSharding(line, P(None, "x")),
                     SingleDeviceSharding(cj.devices()[5])):
        y = cj.device_put(y, sharding)
        assert sharding is y.sharding
        np.testing.assert_array_equal(x, np.asarray(y))
    assert cj.devices()[5] == y.device


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_moving_by_a_program(grid, rng, spec):
    x = rng.standard_normal((8, 16))
    y = cj.device_put(x, NamedSharding(grid, spec))
    for other in SPECS[::3]:
        there = client.spread_of(NamedSharding(grid, other), 2)
        z = moving.by_program(y, client.home_of(y._buffer._sharding), there)
        assert there.user_sharding is z.sharding
        np.testing.assert_array_equal(x, np.asarray(z))


def test_the_runtime_is_asked_to_move_what_is_on_its_devices(grid, rng, monkeypatch):
    x = rng.standard_normal((8, 16))
    y, other = spread(x, grid, "x"), NamedSharding(grid, P("y"))
    asked = []

    def moved(x, here, there):
        asked.append(there)
        return moving.by_program(x, here, there)

    monkeypatch.setattr(devices, "mover", SimpleNamespace(moved=moved))
    z = cj.device_put(y, other)
    assert [other] == [there.user_sharding for there in asked]
    assert other is z.sharding
    np.testing.assert_array_equal(x, np.asarray(z))


def test_equal_divisions_share_their_memory(grid, rng):
    x = spread(rng.standard_normal((8, 16)), grid, "x")
    y = cj.device_put(x, NamedSharding(grid, P("x", None)))
    first = [_jaxlib.buffer_to_numpy(each._buffer._arrays[0], (4, 16), np.dtype(float)) for each in (x, y)]
    assert np.shares_memory(*first)


def test_what_is_the_same_everywhere_is_copied_to_a_device(grid, rng):
    x = rng.standard_normal((8, 16))
    y = spread(x, grid)
    z = cj.device_put(y, cj.devices()[3])
    assert z.device is cj.devices()[3]
    y.delete()
    np.testing.assert_array_equal(x, np.asarray(z))


def test_a_mesh_of_some_devices_in_another_order(rng):
    mesh = Mesh(np.array(cj.devices())[[6, 1, 3, 0]], "x")
    x = rng.standard_normal((8, 3))
    y = spread(x, mesh, "x")
    np.testing.assert_array_equal(x, np.asarray(y))
    np.testing.assert_allclose(np.cos(x), np.asarray(cj.jit(lax.cos)(y)))
    assert mesh is cj.jit(lax.cos)(y).sharding.mesh


def test_a_mesh_of_one_device(rng):
    mesh = Mesh(cj.devices()[2:3], "x")
    x = rng.standard_normal((8, 3))
    y = cj.jit(lax.cos)(spread(x, mesh, "x"))
    assert {cj.devices()[2]} == y.devices()
    np.testing.assert_allclose(np.cos(x), np.asarray(y))


def test_gradients_are_divided_as_their_arguments(grid, rng):
    x = rng.standard_normal((8, 8))
    y = spread(x, grid, "x", "y")
    for function in (cj.grad(lambda x: lax.sin(x).sum()), cj.jit(cj.grad(lambda x: lax.sin(x).sum()))):
        out = function(y)
        assert y.sharding is out.sharding
        np.testing.assert_allclose(np.cos(x), np.asarray(out))


def test_whole_functions_run_where_their_operands_are_and_are_refused_once(monkeypatch):
    staged, stage = [], whole.stage
    monkeypatch.setattr(whole, "stage", lambda *args, name: (staged.append(name), stage(*args, name=name))[1])
    cj.clear_caches()
    x = np.linspace(0.0, 1.0, 6)
    for device in cj.devices()[1:3]:
        there = cj.device_put(x, device)
        for _ in range(3):
            mean, places = cj.numpy.mean(there), cj.numpy.where(there > 0.5)[0]
            assert mean.devices() == {device} and float(mean) == pytest.approx(0.5)
            assert [3, 4, 5] == places.tolist()
    assert 2 == staged.count("mean") and 1 == staged.count("where")
    with pytest.raises(CorejaxValueError, match="device"):
        cj.numpy.where(cj.device_put(x > 0.5, cj.devices()[1]), there, 0.0)
