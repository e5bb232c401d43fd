"""Random numbers over eight devices: the numbers of one, each device making its part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import corejax as cj
from corejax import random

KEY = random.key(3)
DRAWS: dict[str, Any] = {
    "bits": lambda key: random.bits(key, (16, 4)), "uniform": lambda key: random.uniform(key, (16, 4)),
    "normal": lambda key: random.normal(key, (16, 4)), "randint": lambda key: random.randint(key, (16, 4), 0, 9),
    "bernoulli": lambda key: random.bernoulli(key, 0.3, (16, 4)), "gumbel": lambda key: random.gumbel(key, (16, 4))}


@pytest.fixture(scope="module")
def sharding() -> Any:
    return cj.NamedSharding(cj.make_mesh((8,), "x"), cj.P("x"))


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("impl", ["threefry2x32", "philox4x32"])
def test_a_divided_program_draws_the_numbers_of_one_device_without_talking(name: str, impl: str, sharding: Any) -> None:
    key = random.key(3, impl=impl)
    divided = cj.jit(DRAWS[name], out_shardings=sharding)
    assert_array_equal(DRAWS[name](key), divided(key))
    text = divided.lower(key).compile().as_text()
    assert not [word for word in ("all-gather", "all-reduce", "all-to-all", "collective-permute") if word in text]


def test_divided_keys_are_read_shown_and_put_together(sharding: Any) -> None:
    keys = random.split(KEY, 8)
    divided = cj.device_put(keys, sharding)
    assert sharding == divided.sharding and 8 == len(divided.addressable_shards)
    assert repr(keys) == repr(divided)
    assert_array_equal(random.key_data(divided.addressable_shards[3].data), random.key_data(keys[3:4]))
    assert repr(keys) == repr(cj.device_get({"keys": divided})["keys"])
    parts = [cj.device_put(keys[i:i + 1], device) for i, device in enumerate(cj.devices())]
    for whole in (cj.make_array_from_single_device_arrays((8,), sharding, parts),
                  cj.make_array_from_callback((8,), sharding, lambda index: keys[index])):
        assert repr(keys) == repr(whole)
        assert_array_equal(cj.vmap(random.normal)(whole), cj.vmap(random.normal)(keys))


def test_pmap_takes_keys() -> None:
    keys = random.split(KEY, 8)
    assert_array_equal(cj.pmap(lambda key: random.normal(key, (3,)))(keys),
                       cj.vmap(lambda key: random.normal(key, (3,)))(keys))


@pytest.mark.parametrize("way", ["shard_map", "compiled shard_map", "pmap"])
def test_keys_used_twice_are_found_in_parts(way: str, sharding: Any) -> None:
    over = {"mesh": sharding.mesh, "in_specs": cj.P("x"), "out_specs": cj.P("x")}
    mapped = cj.vmap(random.normal)
    draw = cj.pmap(random.normal) if way == "pmap" else cj.shard_map(mapped, **over)
    draw = cj.jit(draw) if way == "compiled shard_map" else draw
    with cj.config(debug_key_reuse=True):
        keys = random.split(random.key(100 + len(way)), 8)
        draw(keys)
        with pytest.raises(random.KeyReuseError):
            random.normal(keys[7])
        with pytest.raises(random.KeyReuseError):
            cj.jit(lambda keys: draw(keys) + random.normal(keys[7]))(random.split(random.key(200 + len(way)), 8))
        shared = cj.shard_map(lambda key, x: x + random.normal(random.fold_in(key, cj.lax.axis_index("x"))),
                              mesh=sharding.mesh, in_specs=(cj.P(), cj.P("x")), out_specs=cj.P("x"))
        shared(random.key(300 + len(way)), np.arange(8.0))


def test_within_a_shard_each_call_gives_what_it_gives_alone(sharding: Any) -> None:
    keys = random.split(KEY, 8)
    alone = np.stack([np.asarray(random.normal(keys[i], (3,))) for i in range(8)])
    mapped = cj.shard_map(lambda keys: random.normal(keys[0], (3,))[None], mesh=sharding.mesh, in_specs=cj.P("x"),
                          out_specs=cj.P("x"))
    assert_array_equal(alone, mapped(keys))
    assert_array_equal(alone, cj.jit(mapped)(keys))


def test_a_key_that_all_devices_have_meets_parameters_that_differ(sharding: Any) -> None:
    mapped = cj.shard_map(lambda a: random.gamma(KEY, a), mesh=sharding.mesh, in_specs=cj.P("x"), out_specs=cj.P("x"))
    assert_array_equal([random.gamma(KEY, np.ones(1)).item()] * 8, mapped(np.ones(8)))


def test_keys_are_put_on_devices(sharding: Any) -> None:
    keys = random.split(KEY, 8)
    put = cj.device_put(keys, sharding)
    assert sharding == put.sharding and bool((put == keys).all())
    assert sharding == random.normal(KEY, (16,), out_sharding=sharding).sharding
