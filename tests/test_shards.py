"""Arrays over several devices, part by part: what each device holds, and arrays made of parts."""

from __future__ import annotations

import os
import re
import textwrap
from pathlib import Path

import pytest

import forked

ROOT = Path(__file__).resolve().parents[1]

PRELUDE = """
import gc, pickle, copy
import numpy as np
import corejax as cj
from corejax import P, lax
from corejax.sharding import Mesh, SingleDeviceSharding

devices = cj.devices()
mesh = cj.make_mesh((2, 4), ("x", "y"))

def sharding(*spec):
    return cj.NamedSharding(mesh, P(*spec))

def same(x, y):
    return x.dtype == y.dtype and np.array_equal(np.asarray(x), np.asarray(y))

def error(action):
    try:
        action()
    except cj.errors.CorejaxError as caught:
        assert None not in (caught.got, caught.wanted, caught.where, caught.todo), caught
        return f"{type(caught).__name__}: {caught}"
    raise AssertionError("no error")
"""


def run(code: str, **environment: str) -> str:
    """What a program prints in a process of its own with 8 devices."""
    env = {**os.environ, "COREJAX_NUM_CPU_DEVICES": "8", "PYTHONPATH": str(ROOT), **environment}
    done = forked.run(PRELUDE + "\n".join(map(textwrap.dedent, code.split("#-"))), env)
    assert done.returncode == 0, done.stderr
    assert "" == done.stderr
    return done.stdout.strip()


def test_arrays_are_put_as_every_spec_says():
    run("""
    entries = [None, "x", "y", ("x", "y"), ("y", "x")]
    for dtype in (np.float64, np.int8, bool, cj.bfloat16, complex):
        whole = np.arange(128).reshape(8, 16).astype(dtype)
        for first in entries:
            for second in entries:
                if first and second and set(first) & set(second):
                    continue
                given = whole.copy()
                x = cj.device_put(given, sharding(first, second))
                given[...] = 0  # what was given may change
                assert same(whole, x) and x.sharding is sharding(first, second)
                assert x.is_fully_replicated == (not first and not second)
                assert len(x.addressable_shards) == 8 and x.is_fully_addressable
                for device, shard in zip(devices, x.addressable_shards, strict=True):
                    assert device is shard.device is shard.data.device
                    assert same(whole[shard.index], shard.data)
                copies = [shard.replica_id for shard in x.addressable_shards]
                assert copies.count(0) == 8 // (max(copies) + 1)
                assert same(x, pickle.loads(pickle.dumps(x))) and same(x, copy.deepcopy(x))
    """)


def test_shards_of_an_array_on_one_device_are_itself():
    run("""
    for x in (cj.device_put(np.ones((2, 3)), devices[5]), lax.sin(np.ones((2, 3)))):
        shard, = x.addressable_shards
        assert shard.data is x and shard.device is x.device and shard.replica_id == 0
        assert (slice(None), slice(None)) == shard.index and x.is_fully_replicated and x.is_fully_addressable
    """)


def test_parts_are_arrays_to_compute_with():
    assert """\
Shard(device=CpuDevice(id=5), index=(slice(2, 4, None), slice(1, 2, None)), replica_id=0, data=[[ 9.]
 [13.]])
22.0 cpu:5""" == run("""
    x = cj.device_put(np.arange(16.0).reshape(4, 4), sharding("x", "y"))
    shard = x.addressable_shards[5]
    print(shard)
    total = shard.data.sum()
    print(total, total.device)
    assert same(shard.data, x.addressable_data(5)) and len(x.global_shards) == 8
    weak = cj.jit(lambda x: x + 1)(cj.device_put(2.0, sharding()))
    assert weak.weak_type and weak.addressable_data(3).weak_type
    parts = [shard.data for shard in x.addressable_shards]
    del x, shard, total
    gc.collect()
    assert 120.0 == sum(float(part.sum()) for part in parts)  # they live longer than the whole
    """)


def test_an_array_is_made_of_what_a_function_returns_for_each_part():
    run("""
    whole = np.arange(128.0).reshape(8, 16)
    for spec in [("x", "y"), ("y",), (None, "x"), (), (("y", "x"),)]:
        asked = []
        def part(index):
            asked.append(index)
            return whole[index]
        x = cj.make_array_from_callback((8, 16), sharding(*spec), part)
        assert same(whole, x) and x.sharding is sharding(*spec)
        assert len(asked) == np.prod(sharding(*spec).tiling(2).counts)
        assert same(np.sin(whole), cj.jit(lax.sin)(x)) or np.allclose(np.sin(whole), cj.jit(lax.sin)(x))
    scalar = cj.make_array_from_callback((), sharding(), lambda index: 3.0)
    assert 3.0 == float(scalar) and not scalar.weak_type
    alone = cj.make_array_from_callback((3,), SingleDeviceSharding(devices[4]), lambda index: np.ones(3)[index])
    assert alone.device is devices[4] and alone.sum() == 3.0
    kept = np.ones(16)
    x = cj.make_array_from_callback((16,), sharding("x"), lambda index: kept[index])
    kept[...] = 0  # what the function returned may change
    assert 16.0 == x.sum()
    typed = cj.make_array_from_callback((2,), sharding("x"), lambda i: np.ones(1, np.float32), np.float32)
    assert typed.dtype == np.float32
    on_devices = cj.make_array_from_callback((2,), sharding("x"), lambda i: cj.device_put(np.ones(1), devices[7]))
    assert same(np.ones(2), on_devices)
    """)


def test_an_array_is_made_of_arrays_on_its_devices():
    run("""
    whole = np.arange(16.0).reshape(4, 4)
    for spec in [("x", "y"), ("y",), (None, "x"), ()]:
        divided = cj.device_put(whole, sharding(*spec))
        parts = [shard.data for shard in divided.addressable_shards]
        x = cj.make_array_from_single_device_arrays((4, 4), sharding(*spec), parts[::-1])
        assert same(whole, x) and x.sharding is sharding(*spec)
        assert same(whole + whole, cj.jit(lambda x, y: x + y)(x, divided))
    one = lax.sin(np.ones(3))  # in host memory: it counts as on the default device
    alone = cj.make_array_from_single_device_arrays((3,), SingleDeviceSharding(devices[0]), [one])
    assert same(one, alone)
    """)


def test_wherever_the_compiler_puts_the_parts_they_are_read_in_order():
    run("""
    from corejax.arrays import devices as protocol
    from corejax.arrays.array import Array
    from corejax.base import _jaxlib
    from corejax.base.avals import aval_of
    from corejax.xla.runtime import client
    flat = cj.make_mesh((8,), "x")
    ids = np.arange(8).reshape(2, 4).T[..., None]  # no spec of this mesh says that
    group = protocol.runtime.home_for(cj.NamedSharding(flat, P("x")), 1).group
    spread = client.registered(group.spread_by(_jaxlib.tiles(ids), 2, flat))
    whole = np.arange(32.0).reshape(8, 4)
    x = Array.from_device(spread.put_copy(aval_of(whole), whole), aval_of(whole))
    assert same(whole, x)
    assert [0, 4, 1, 5, 2, 6, 3, 7] == [shard.device.id for shard in x.addressable_shards]
    assert all(same(whole[shard.index], shard.data) for shard in x.addressable_shards)
    """)


REFUSED = {
    'cj.make_array_from_callback((5,), sharding("x"), part)': "can't be divided evenly",
    'cj.make_array_from_callback((4,), sharding("x"), lambda i: np.ones(3))':
        r"result for device cpu:0 has the wrong shape.*\(3,\).*shape \(2,\), its part of \(4,\)",
    'cj.make_array_from_callback((4,), sharding("x"), lambda i: np.ones(2, "fi"[bool(i[0].start)]))':
        "device cpu:4 has the wrong dtype.*int32.*float32, as on the first device",
    'cj.make_array_from_callback((4,), sharding("x"), part, np.int32)': "wrong dtype.*float64.*wanted: int32",
    'cj.make_array_from_callback((4,), P("x"), part)': "expected a sharding.*a PartitionSpec",
    'cj.make_array_from_callback((4,), sharding("x"), whole)': "expected a function.*an ndarray",
    'cj.make_array_from_callback((4,), sharding("x"), lambda: 1.0)': "doesn't take these arguments",
    'cj.make_array_from_callback(4, sharding("x"), part)': "a shape must hold integers",
    'cj.make_array_from_single_device_arrays((4,), sharding("x"), parts[:3])':
        "an array on each device.*3 arrays.*wanted: 8.*add those on cpu:3, cpu:4, cpu:5",
    'cj.make_array_from_single_device_arrays((4,), sharding("x"), parts[:7] + parts[:1])': "two on cpu:0",
    'cj.make_array_from_single_device_arrays((6,), sharding("x"), parts)': r"shape \(2,\).*wanted: shape \(3,\)",
    'cj.make_array_from_single_device_arrays((4,), sharding("x"), [np.ones(2)] * 8)': r"arrays\[0\] is not on a device",
    'cj.make_array_from_single_device_arrays((4,), sharding("x"), [x] * 8)': "one device.*pass its parts",
    'cj.make_array_from_single_device_arrays((4,), sharding("x"), x)': "expected a list of arrays.*an Array",
    'cj.make_array_from_single_device_arrays((4,), SingleDeviceSharding(devices[1]), parts[:1])': "one device of the",
    'x.addressable_data(8)': "no such shard.*from 0 to 7",
    'cj.jit(lambda x: x.addressable_shards)(x)': "a traced value has no 'addressable_shards'",
    'gone.addressable_shards': "was deleted",
}


def test_parts_that_do_not_fit_are_refused():
    lines = run("""
    whole = np.arange(4.0)
    part = whole.__getitem__
    x = cj.device_put(whole, sharding("x"))
    parts = [shard.data for shard in x.addressable_shards]
    gone = cj.device_put(whole, sharding("x"))
    gone.delete()
    #-""" + "".join(f"\nprint(repr(error(lambda: {code})))" for code in REFUSED)).splitlines()
    assert len(REFUSED) == len(lines)
    for (code, message), line in zip(REFUSED.items(), lines, strict=True):
        assert re.search(message, line), (code, line)


PARITY = """
def described(x):
    return [(s.device.id, str(s.index), s.replica_id, np.asarray(s.data).tolist()) for s in x.addressable_shards]

import random
draw = random.Random(7)
for _ in range(60):
    sizes = draw.choice([(8,), (2, 4), (4, 2), (2, 2, 2), (1, 8), (2, 2), (1,)])
    names = ("x", "y", "z")[:len(sizes)]
    order = draw.sample(range(8), 8)
    count = int(np.prod(sizes))
    grid = np.array([DEVICES[i] for i in order[:count]]).reshape(sizes)
    left, spec = list(names), []
    for _ in range(draw.randint(0, 3)):
        spec.append(tuple([left.pop(draw.randrange(len(left))) for _ in range(draw.randint(0, min(2, len(left))))]))
    sharding = NamedSharding(Mesh(grid, names), P(*spec))
    shape = (8, 8, 16)
    whole = np.arange(1024.0).reshape(shape)
    x = lib.device_put(whole, sharding)
    y = lib.make_array_from_callback(shape, sharding, lambda index: whole[index] + 1)
    z = lib.make_array_from_single_device_arrays(shape, sharding, [s.data for s in y.addressable_shards][::-1])
    print(described(x), described(y), described(z) == described(y))
    print(x.is_fully_replicated, x.is_fully_addressable, np.asarray(x.addressable_data(count - 1)).sum())
"""


def test_parity_of_shards():
    pytest.importorskip("jax")
    ours = run("lib, DEVICES = cj, devices\nNamedSharding = cj.NamedSharding\n" + PARITY)
    theirs = run("""
    import jax as lib
    lib.config.update("jax_num_cpu_devices", 8)
    lib.config.update("jax_enable_x64", True)
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
    DEVICES = lib.devices()
    #-""" + PARITY, JAX_PLATFORMS="cpu")
    assert 120 == len(ours.splitlines())
    assert theirs == ours
