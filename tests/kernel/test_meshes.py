"""Meshes and specs as values: one object each, what they say of themselves, and what they refuse."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest
from grids import DEVICES, FakeDevice, FakeRuntime, RemoteDevice, grid

from corejax.arrays import devices
from corejax.arrays.meshes import AbstractMesh, AxisType, Mesh, current_mesh, make_mesh
from corejax.arrays.partitions import P, PartitionSpec
from corejax.errors import CorejaxError
from corejax.kernel.keys import atom


@pytest.fixture(autouse=True)
def runtime(monkeypatch):
    monkeypatch.setattr(devices, "runtime", FakeRuntime())


# Meshes

def test_a_mesh_says_what_it_is():
    mesh = Mesh(grid(2, 4), ("x", "y"))
    assert ("x", "y") == mesh.axis_names
    assert (2, 4) == mesh.axis_sizes == mesh.devices.shape
    assert {"x": 2, "y": 4} == mesh.shape and (("x", 2), ("y", 4)) == mesh.shape_tuple
    assert (8, 2, False) == (mesh.size, mesh.ndim, mesh.empty)
    assert [[0, 1, 2, 3], [4, 5, 6, 7]] == mesh.device_ids.tolist()
    assert tuple(DEVICES) == mesh.flat_devices and DEVICES == mesh.local_devices
    assert (AxisType.Auto, AxisType.Auto) == mesh.axis_types
    assert "Mesh('x': 2, 'y': 4)" == repr(mesh)


def test_a_mesh_of_no_axes_has_one_device():
    mesh = Mesh(np.array(DEVICES[0], object), ())
    assert ((), 1, {}) == (mesh.axis_sizes, mesh.size, mesh.shape)
    assert "Mesh()" == repr(mesh)


@pytest.mark.parametrize("same", [
    lambda: Mesh(grid(2, 4), ["x", "y"]), lambda: Mesh([DEVICES[:4], DEVICES[4:]], ("x", "y")),
    lambda: make_mesh((2, 4), ("x", "y")), lambda: make_mesh([np.int64(2), 4], ("x", "y"), devices=DEVICES),
    lambda: make_mesh((2, 4), ("x", "y"), (AxisType.Auto,) * 2), lambda: pickle.loads(pickle.dumps(Mesh(
        grid(2, 4), ("x", "y")))), lambda: copy.deepcopy(Mesh(grid(2, 4), ("x", "y")))])
def test_equal_meshes_are_one_object(same):
    mesh = Mesh(grid(2, 4), ("x", "y"))
    assert mesh is same()
    assert atom(mesh) == atom(same())


@pytest.mark.parametrize("other", [
    lambda: Mesh(grid(2, 4), ("y", "x")), lambda: Mesh(grid(4, 2), ("x", "y")), lambda: Mesh(grid(8), "x"),
    lambda: Mesh(grid(2, 4)[::-1], ("x", "y")), lambda: AbstractMesh((2, 4), ("x", "y")),
    lambda: Mesh(np.array([FakeDevice(i) for i in range(8)]).reshape(2, 4), ("x", "y"))])
def test_meshes_of_other_names_sizes_or_devices_differ(other):
    mesh = Mesh(grid(2, 4), ("x", "y"))
    assert mesh != other()
    assert atom(mesh) != atom(other())


def test_meshes_live_no_longer_than_they_are_used():
    mesh = weakref.ref(Mesh(grid(4), "short lived"))
    gc.collect()
    assert mesh() is None


def test_threads_that_make_a_mesh_at_once_get_one():
    found, start = [], threading.Barrier(8)

    def make():
        start.wait()
        found.append(Mesh(grid(2, 2, 2), ("a", "b", "c")))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 == len(set(map(id, found))) and 8 == len(found)


def test_a_mesh_can_not_be_changed():
    given = grid(2, 4)
    mesh = Mesh(given, ("x", "y"))
    given[0, 0] = None
    assert DEVICES[0] is mesh.devices[0, 0]
    with pytest.raises(ValueError, match="read-only"):
        mesh.devices[0, 0] = None
    with pytest.raises(TypeError):
        mesh.shape["x"] = 3
    for change in (lambda: setattr(mesh, "size", 3), lambda: delattr(mesh, "size")):
        with pytest.raises(AttributeError, match="a Mesh can't be changed"):
            change()


def test_make_mesh_takes_the_first_devices():
    assert [[0, 1], [2, 3]] == make_mesh((2, 2), ("x", "y")).device_ids.tolist()
    assert [5, 4] == make_mesh((2,), "x", devices=DEVICES[5:1:-1]).device_ids.tolist()


def test_a_mesh_over_processes_knows_whose_devices_are_whose():
    ours, theirs = [RemoteDevice(0, 0), RemoteDevice(1, 0)], [RemoteDevice(2, 1), RemoteDevice(3, 1)]
    assert Mesh(ours, "x").is_fully_addressable
    both = Mesh([ours, theirs], ("process", "device"))
    assert not both.is_fully_addressable and ours == both.local_devices


def test_abstract_meshes_have_no_devices():
    mesh = Mesh(grid(2, 4), ("x", "y")).abstract_mesh
    assert AbstractMesh((2, 4), ("x", "y")) is mesh is mesh.abstract_mesh is pickle.loads(pickle.dumps(mesh))
    assert (8, {"x": 2, "y": 4}, "AbstractMesh('x': 2, 'y': 4)") == (mesh.size, mesh.shape, repr(mesh))
    with pytest.raises(ValueError, match="an abstract mesh has no devices"):
        mesh.flat_devices  # noqa: B018


def test_the_innermost_mesh_is_the_current_one():
    outer, inner = make_mesh((8,), "x"), make_mesh((2, 4), ("x", "y"))
    assert current_mesh() is None
    with outer:
        with inner as entered:
            assert inner is entered is current_mesh()
            with outer:
                assert outer is current_mesh()
        assert outer is current_mesh()
        with pytest.raises(ZeroDivisionError), inner:
            1 / 0  # noqa: B018
        assert outer is current_mesh()
        seen = []
        thread = threading.Thread(target=lambda: seen.append(current_mesh()))
        thread.start()
        thread.join()
        assert [None] == seen
    assert current_mesh() is None


def test_a_mesh_is_unpickled_only_where_its_devices_are(monkeypatch):
    pickled = pickle.dumps(make_mesh((8,), "x"))
    monkeypatch.setattr(FakeRuntime, "devices", lambda self, platform=None: DEVICES[:2])
    with pytest.raises(ValueError, match=r"(?s)that this process doesn't have.*cpu:2, cpu:3.*wanted: cpu:0, cpu:1"):
        pickle.loads(pickled)


REFUSED = [
    (lambda: Mesh([], "x"), ValueError, "at least one device"),
    (lambda: Mesh([DEVICES[0]] * 2, "x"), ValueError, r"(?s)a device twice.*cpu:0 at 2 positions"),
    (lambda: Mesh(DEVICES, ("x", "y")), ValueError, r"(?s)a name for each axis.*shape \(8,\), and 2 names: 'x', 'y'"),
    (lambda: Mesh(grid(2, 4), "x"), ValueError, r"(?s)a name for each axis.*1 name: 'x'.*wanted: 2 names"),
    (lambda: Mesh(grid(2, 4), ("x", "x")), ValueError, r"(?s)a name of its own.*'x' once"),
    (lambda: Mesh(DEVICES, [["x"]]), TypeError, r"axis_names\[0\] of a mesh can't be the name of an axis: it is unh"),
    (lambda: Mesh(DEVICES, (None,)), TypeError, r"axis_names\[0\] of a mesh can't be the name of an axis"),
    (lambda: Mesh(DEVICES, (("x", "y"),)), TypeError, "can't be the name of an axis"),
    (lambda: Mesh(DEVICES, 3), TypeError, "the axes of a mesh need names"),
    (lambda: Mesh([DEVICES[:3], DEVICES[3:]], ("x", "y")), ValueError, "a full grid"),
    (lambda: Mesh(["cpu:0", "cpu:1"], "x"), TypeError, "a mesh is made of devices"),
    (lambda: Mesh(8, "x"), TypeError, "a mesh is made of devices"),
    (lambda: Mesh(None, ()), TypeError, "a mesh is made of devices"),
    (lambda: Mesh([DEVICES[0], FakeDevice(0, "gpu")], "x"), ValueError, r"(?s)of one platform.*cpu, gpu"),
    (lambda: make_mesh((3, 3), ("x", "y")), ValueError, r"(?s)a mesh of 3 x 3 = 9 needs more.*8 devices.*wanted: 9"),
    (lambda: make_mesh((2, 2), ("x",)), ValueError, r"(?s)a name for each.*sizes \(2, 2\), and 1 name: 'x'"),
    (lambda: make_mesh((), ("x",)), ValueError, r"(?s)a name for each.*wanted: 0 names"),
    (lambda: make_mesh((-1, 2), ("x", "y")), ValueError, "at least one device"),
    (lambda: make_mesh((0,), "x"), ValueError, "at least one device"),
    (lambda: make_mesh(8, "x"), TypeError, "must be integers"),
    (lambda: make_mesh((2.0,), "x"), TypeError, "must be integers"),
    (lambda: make_mesh((2,), "x", AxisType.Explicit), NotImplementedError, "explicit axes of meshes aren't supported"),
    (lambda: AbstractMesh((2,), ("x", "y")), ValueError, "a name for each"),
]


@pytest.mark.parametrize(("make", "kind", "message"), REFUSED)
def test_what_is_no_mesh_is_refused(make, kind, message):
    with pytest.raises(kind, match=message) as caught:
        make()
    error = caught.value
    assert isinstance(error, CorejaxError) and None not in (error.got, error.wanted, error.where, error.todo)


# Specs

def test_a_spec_reads_as_a_tuple():
    spec = P("x", None, ("y", "z"))
    assert ["x", None, ("y", "z")] == list(spec) and 3 == len(spec)
    assert ("y", "z") == spec[2] == spec[-1] and ("x", None) == spec[:2]
    assert "x" in spec and "y" not in spec and (1, 1) == (spec.index(None), spec.count("x"))
    assert bool(spec) and not P()
    assert P("x", "y") is P("x") + P("y") is P("x") + ("y",) is ("x",) + P("y")
    assert [("x",), (), ("y", "z"), ()] == [spec.names(i) for i in range(4)]
    assert ("x", "y", "z") == spec.all_names()
    assert PartitionSpec is P


def test_equal_specs_are_one_object():
    assert P("x", None) is P("x", None) is P(("x",), ()) is P(["x"], None)
    assert P(("x", "y")) is P(["x", "y"])
    assert P("x") is pickle.loads(pickle.dumps(P("x"))) is copy.copy(P("x")) is copy.deepcopy(P("x"))
    assert {P("x"): 1}[P("x")] == 1 and atom(P("x")) == atom(P("x"))


def test_specs_that_are_written_differently_differ():
    others = [P("x"), P("x", None), P(None, "x"), P("x", "y"), P(("x", "y")), P(("y", "x")), P(), P(P.UNCONSTRAINED)]
    assert len(set(others)) == len(others) == len(set(map(atom, others)))
    assert P("x") != ("x",) and P(1) != P(True)


def test_specs_print_as_they_are_written():
    for spec in (P(), P("x"), P(None, "x"), P(("x", "y"), None)):
        assert spec is eval(repr(spec))
    assert "P('x', UNCONSTRAINED)" == repr(P("x", P.UNCONSTRAINED))
    assert P(P.UNCONSTRAINED) is pickle.loads(pickle.dumps(P(P.UNCONSTRAINED)))


@pytest.mark.parametrize(("make", "kind", "message"), [
    (lambda: P({}), TypeError, r"(?s)entry 0 of a PartitionSpec can't be the name of an axis: it is unhashable"),
    (lambda: P("x", P("y")), TypeError, "entry 1 of a PartitionSpec can't be the name of an axis"),
    (lambda: P(("x", None)), ValueError, "a tuple in a PartitionSpec must hold names"),
    (lambda: P(("x", ("y",))), ValueError, "a tuple in a PartitionSpec must hold names"),
    (lambda: P("x", unreduced={"y"}), NotImplementedError, "partial sums that wait"),
    (lambda: P("x", reduced={"y"}), NotImplementedError, "partial sums that wait"),
    (lambda: setattr(P("x"), "partitions", ()), AttributeError, "a PartitionSpec can't be changed"),
])
def test_what_is_no_spec_is_refused(make, kind, message):
    with pytest.raises(kind, match=message) as caught:
        make()
    error = caught.value
    assert isinstance(error, CorejaxError) and None not in (error.got, error.wanted, error.where, error.todo)
