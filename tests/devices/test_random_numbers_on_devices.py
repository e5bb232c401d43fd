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
