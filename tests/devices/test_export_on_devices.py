"""Exported programs that are divided among devices."""

import numpy as np
import pytest

import corejax as cj
from corejax import P, lax
from corejax.errors import CorejaxValueError
from corejax.sharding import NamedSharding


def loaded(exported):
    return cj.export.deserialize(exported.serialize())


def test_an_exported_shard_map_runs_and_differentiates_on_as_many_devices(grid, rng):
    x, weights = rng.standard_normal((8, 8)), np.arange(8.0)
    f = cj.jit(cj.shard_map(lambda x: lax.psum(lax.sin(x), "x"), mesh=grid, in_specs=P("x", "y"),
                            out_specs=P(None, "y")))
    again = loaded(cj.export.export(f, vjp_order=1)(x))
    assert 8 == again.nr_devices
    there = cj.device_put(x, NamedSharding(grid, P("x")))
    np.testing.assert_allclose(np.sin(x)[:4] + np.sin(x)[4:], np.asarray(again.call(there)))
    slope = cj.grad(lambda x: (again.call(x) * weights).sum())(there)
    np.testing.assert_allclose(np.cos(x) * weights, np.asarray(slope))


def test_shardings_of_arguments_and_results_are_exported(grid, rng):
    x = rng.standard_normal((8, 8))
    f = cj.jit(lambda x: x.T * 2.0, in_shardings=NamedSharding(grid, P("x")), out_shardings=NamedSharding(
        grid, P("y", "x")))
    exported = cj.export.export(f)(x)
    assert exported.as_text().count("sdy.sharding = ") == 2
    out = cj.jit(lambda x: loaded(exported).call(x) + 1.0)(cj.device_put(x, NamedSharding(grid, P())))
    assert NamedSharding(grid, P("y", "x")) is out.sharding
    np.testing.assert_allclose(2.0 * x.T + 1.0, np.asarray(out))


def test_another_number_of_devices_is_refused_with_both(grid, rng):
    exported = cj.export.export(cj.jit(lambda x: x, in_shardings=NamedSharding(grid, P("x"))))(np.ones(8))
    with pytest.raises(CorejaxValueError, match="exported for 8 devices") as raised:
        exported.call(np.ones(8))
    assert "a call on 1 device" == raised.value.got


def test_a_program_for_one_device_runs_on_several(grid, rng):
    x = rng.standard_normal((8, 8))
    exported = loaded(cj.export.export(lambda x: lax.cos(x) + 1.0)(x))
    assert 1 == exported.nr_devices
    out = exported.call(cj.device_put(x, NamedSharding(grid, P("x"))))
    np.testing.assert_allclose(np.cos(x) + 1.0, np.asarray(out))
