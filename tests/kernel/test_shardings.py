"""Shardings: which part of an array is on which device."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pytest
from grids import DEVICES, FakeRuntime, RemoteDevice, grid

from corejax.arrays import devices
from corejax.arrays.meshes import AbstractMesh, Mesh
from corejax.arrays.partitions import P
from corejax.arrays.shardings import NamedSharding, Sharding, SingleDeviceSharding
from corejax.errors import CorejaxError
from corejax.kernel.keys import atom


@pytest.fixture(autouse=True)
def runtime(monkeypatch):
    monkeypatch.setattr(devices, "runtime", FakeRuntime())


def mesh24():
    return Mesh(grid(2, 4), ("x", "y"))


def numbers(sharding, shape):
    """For each device in order, the elements that it holds of an array of consecutive numbers."""
    whole = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    return [whole[index].tolist() for index in sharding.devices_indices_map(shape).values()]


def test_a_dimension_is_divided_along_its_axis():
    assert [[0], [0], [0], [0], [1], [1], [1], [1]] == numbers(NamedSharding(mesh24(), P("x")), (2,))
    assert [[0], [1], [2], [3]] * 2 == numbers(NamedSharding(mesh24(), P("y")), (4,))


def test_two_axes_divide_a_dimension_the_first_one_into_the_largest_parts():
    assert [[i] for i in range(8)] == numbers(NamedSharding(mesh24(), P(("x", "y"))), (8,))
    assert [[0], [2], [4], [6], [1], [3], [5], [7]] == numbers(NamedSharding(mesh24(), P(("y", "x"))), (8,))


def test_the_tiling_says_what_programs_need():
    tiling = NamedSharding(mesh24(), P(None, "y")).tiling(3)
    assert (1, 4, 1) == tiling.counts
    assert tuple((0, y, 0) for _ in range(2) for y in range(4)) == tiling.positions
    assert (0, 0, 0, 0, 1, 1, 1, 1) == tiling.replicas
    assert tiling is NamedSharding(mesh24(), P(None, "y")).tiling(3)


def test_every_element_is_on_as_many_devices_as_there_are_copies():
    entries = [None, "x", "y", ("x", "y"), ("y", "x")]
    for first, second in itertools.product(entries, entries):
        if first and second and set(first) & set(second):
            continue
        sharding = NamedSharding(mesh24(), P(first, second))
        counts = np.zeros((8, 16), int)
        for index in sharding.indices((8, 16)):
            counts[index] += 1
            assert sharding.shard_shape((8, 16)) == counts[index].shape
        assert {8 // np.prod(sharding.tiling(2).counts)} == set(counts.flat)
        assert sharding.is_fully_replicated == (counts.min() == 8)


def test_what_is_not_divided_is_a_whole_slice():
    sharding = NamedSharding(Mesh(grid(1, 4), ("one", "y")), P("one", "y"))
    assert (slice(None), slice(1, 2)) == sharding.devices_indices_map((3, 4))[DEVICES[1]]
    assert ((),) * 8 == NamedSharding(mesh24(), P()).indices(())
    assert (slice(0, 0),) == NamedSharding(mesh24(), P("x")).indices((0,))[1]


def test_a_sharding_says_what_it_is():
    sharding = NamedSharding(mesh24(), P("x"))
    assert set(DEVICES) == sharding.device_set == sharding.addressable_devices
    assert (8, True, False, None) == (sharding.num_devices, sharding.is_fully_addressable, sharding.is_fully_replicated,
                                      sharding.memory_kind)
    assert "NamedSharding(mesh=Mesh('x': 2, 'y': 4), spec=P('x'))" == repr(sharding)
    assert NamedSharding(mesh24(), P("y")) is sharding.update(spec=P("y"))
    alone = SingleDeviceSharding(DEVICES[3])
    assert ({DEVICES[3]}, 1, True, True) == (alone.device_set, alone.num_devices, alone.is_fully_addressable,
                                             alone.is_fully_replicated)
    assert "SingleDeviceSharding(device=cpu:3)" == repr(alone)
    assert {DEVICES[3]: (slice(None), slice(None))} == alone.devices_indices_map((2, 0))
    assert alone is alone.with_memory_kind(None)


@pytest.mark.parametrize("make", [lambda: NamedSharding(mesh24(), P("x", None)),
                                  lambda: SingleDeviceSharding(DEVICES[1]),
                                  lambda: NamedSharding(AbstractMesh((2,), ("x",)), P())])
def test_equal_shardings_are_one_object(make):
    sharding = make()
    assert sharding is make() is copy.copy(sharding) is copy.deepcopy(sharding) is pickle.loads(pickle.dumps(sharding))
    assert atom(sharding) == atom(make())


def test_shardings_that_are_written_differently_differ():
    found = [NamedSharding(mesh24(), P("x")), NamedSharding(mesh24(), P("x", None)), NamedSharding(mesh24(), P("y")),
             NamedSharding(mesh24().abstract_mesh, P("x")), NamedSharding(Mesh(grid(2), "x"), P("x")),
             SingleDeviceSharding(DEVICES[0]), SingleDeviceSharding(DEVICES[1])]
    assert len(found) == len(set(found)) == len(set(map(atom, found)))


def test_shardings_are_equivalent_if_they_put_the_same_on_each_device():
    one, flat = mesh24(), Mesh(grid(8), "z")
    assert NamedSharding(one, P("x")).is_equivalent_to(NamedSharding(one, P("x", None)), 2)
    assert NamedSharding(one, P(("x", "y"))).is_equivalent_to(NamedSharding(flat, P("z")), 1)
    assert not NamedSharding(one, P(("y", "x"))).is_equivalent_to(NamedSharding(flat, P("z")), 1)
    assert NamedSharding(one, P()).is_equivalent_to(NamedSharding(flat, P(P.UNCONSTRAINED)), 1)
    assert not NamedSharding(flat, P()).is_equivalent_to(NamedSharding(Mesh(grid(8)[::-1], "z"), P()), 1)
    alone = NamedSharding(Mesh(grid(1), "x"), P("x"))
    assert alone.is_equivalent_to(SingleDeviceSharding(DEVICES[0]), 3)
    assert not alone.is_equivalent_to(SingleDeviceSharding(DEVICES[1]), 3)
    assert not NamedSharding(one, P()).is_equivalent_to(NamedSharding(one.abstract_mesh, P()), 1)


def test_an_abstract_mesh_gives_shapes_but_no_devices():
    sharding = NamedSharding(AbstractMesh((2, 4), ("x", "y")), P("y", "x"))
    assert (1, 3) == sharding.shard_shape((4, 6))
    assert 8 == sharding.num_devices == len(sharding.indices((4, 6)))
    for ask in (lambda: sharding.device_set, lambda: sharding.is_fully_addressable,
                lambda: sharding.devices_indices_map((4, 6))):
        with pytest.raises(ValueError, match="an abstract mesh has no devices"):
            ask()


def test_only_our_own_devices_are_addressable():
    ours, theirs = RemoteDevice(0, 0), RemoteDevice(1, 1)
    sharding = NamedSharding(Mesh([ours, theirs], "x"), P("x"))
    assert not sharding.is_fully_addressable and {ours} == sharding.addressable_devices
    assert {ours: (slice(0, 2),)} == sharding.addressable_devices_indices_map((4,))
    assert not SingleDeviceSharding(theirs).is_fully_addressable


def test_a_sharding_is_unpickled_only_where_its_device_is(monkeypatch):
    pickled = pickle.dumps(SingleDeviceSharding(DEVICES[7]))
    monkeypatch.setattr(FakeRuntime, "devices", lambda self, platform=None: DEVICES[:2])
    with pytest.raises(ValueError, match=r"(?s)that this process doesn't have.*cpu:7.*wanted: cpu:0, cpu:1"):
        pickle.loads(pickled)


REFUSED = [
    (lambda: Sharding(), TypeError, "says nothing by itself"),
    (lambda: NamedSharding(DEVICES, P("x")), TypeError, r"(?s)needs a mesh.*a list"),
    (lambda: NamedSharding(mesh24(), ("x", None)), TypeError, r"(?s)needs a PartitionSpec.*write P\(\.\.\.\) around"),
    (lambda: NamedSharding(mesh24(), None), TypeError, r"(?s)needs a PartitionSpec.*write P\(\)"),
    (lambda: NamedSharding(mesh24(), P("z")), ValueError, r"(?s)no axis 'z'.*P\('z'\) on Mesh.*one of: 'x', 'y'"),
    (lambda: NamedSharding(mesh24(), P(0)), ValueError, r"(?s)no axis 0"),
    (lambda: NamedSharding(mesh24(), P("x", "x")), ValueError, r"(?s)'x' can't divide two dimensions"),
    (lambda: NamedSharding(mesh24(), P(("x", "x"))), ValueError, r"(?s)'x' can't divide"),
    (lambda: NamedSharding(mesh24(), P(), memory_kind="pinned_host"), NotImplementedError, "default memory"),
    (lambda: NamedSharding(mesh24(), P()).with_memory_kind("device"), NotImplementedError, "default memory"),
    (lambda: NamedSharding(mesh24(), P("x")).shard_shape((3, 2)), ValueError,
     r"(?s)dimension 0 can't be divided evenly over mesh axis 'x' of size 2.*size 3, in shape \(3, 2\) with P\('x'\)"
     r".*a multiple of 2.*pad it to 4 or cut it to 2"),
    (lambda: NamedSharding(mesh24(), P(None, ("x", "y"))).devices_indices_map((3, 4)), ValueError,
     r"(?s)dimension 1 .* mesh axes 'x' of size 2 and 'y' of size 4.*a multiple of 8.*pad it to 8, or divide"),
    (lambda: NamedSharding(mesh24(), P("x", None)).shard_shape((4,)), ValueError,
     r"(?s)more entries than the array has dimensions.*rank 1.*at most 1 entry.*leave out entries"),
    (lambda: NamedSharding(mesh24(), P("x")).shard_shape(()), ValueError, r"(?s)write P\(\): a scalar"),
    (lambda: NamedSharding(mesh24(), P("x")).shard_shape(4), TypeError, "a shape must hold integers"),
    (lambda: NamedSharding(mesh24(), P("x")).shard_shape("ab"), TypeError, "a shape must hold integers"),
    (lambda: NamedSharding(mesh24(), P("x")).is_equivalent_to(P("x"), 1), TypeError, "only shardings"),
    (lambda: SingleDeviceSharding("cpu"), TypeError, "needs a device"),
    (lambda: setattr(SingleDeviceSharding(DEVICES[0]), "flat_devices", ()), AttributeError, "can't be changed"),
]


@pytest.mark.parametrize(("make", "kind", "message"), REFUSED)
def test_what_is_no_sharding_or_does_not_fit_is_refused(make, kind, message):
    with pytest.raises(kind, match=message) as caught:
        make()
    error = caught.value
    assert isinstance(error, CorejaxError) and None not in (error.got, error.wanted, error.where, error.todo)
