"""Collectives in StableHLO: which devices of a mesh communicate, in a program of one device of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import NamedAxis, ShapedArray, binding, stage
from corejax.sharding import AbstractMesh
from corejax.xla.lowering import programs
from corejax.xla.lowering.partitioning import Manual
from corejax_collectives.one_sided import COMMUNICATION

#: Devices 0 to 5, in two rows of three.
MESH = AbstractMesh((2, 3), ("r", "c"))
AXES = (NamedAxis("r", 2), NamedAxis("c", 3))


class _OnMesh(programs.Lowering):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.manual = Manual(MESH, frozenset(MESH.axis_names))


@pytest.fixture(autouse=True)
def _on_mesh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(programs, "Lowering", _OnMesh)
    with binding(AXES):
        yield


def lowered(function: Callable[..., Any], *avals: ShapedArray, platform: str = "cpu") -> str:
    closed = stage(lambda *xs: [function(*xs)], avals)
    module = programs.lower_module(closed.jaxpr, closed.consts, "f", platform).module
    assert module.operation.verify()
    return str(module)


VECTOR = ShapedArray((6,), "float32")
ROWS, COLUMNS, ALL, TRANSPOSED = ("[[0, 1, 2], [3, 4, 5]]", "[[0, 3], [1, 4], [2, 5]]", "[[0, 1, 2, 3, 4, 5]]",
                                  "[[0, 3, 1, 4, 2, 5]]")


@pytest.mark.parametrize(("axes", "groups"), [("c", ROWS), ("r", COLUMNS), (("r", "c"), ALL), (("c", "r"), TRANSPOSED)])
def test_replica_groups_are_of_places_in_the_mesh_in_the_order_of_the_names(axes: Any, groups: str) -> None:
    text = lowered(lambda x: lax.psum(x, axes), VECTOR)
    assert f"replica_groups = dense<{groups}>" in text
    assert "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>" in text
    assert "use_global_device_ids" in text and "stablehlo.add" in text


def test_groups_divide_each_row_and_are_padded() -> None:
    text = lowered(lambda x: lax.psum(x, "c", axis_index_groups=[[0, 2], [1]]), VECTOR)
    assert "dense<[[0, 2], [1, -1], [3, 5], [4, -1]]>" in text


@pytest.mark.parametrize(("function", "operation", "shape"), [
    (lambda x: lax.pmax(x, "c"), "stablehlo.all_reduce", "6xf32"),
    (lambda x: lax.all_gather(x, "c"), "stablehlo.all_gather", "3x6xf32"),
    (lambda x: lax.all_gather(x, "c", axis=1), "stablehlo.all_gather", "6x3xf32"),
    (lambda x: lax.all_gather(x, "c", tiled=True), "stablehlo.all_gather", "18xf32"),
    (lambda x: lax.psum_scatter(x, "c", tiled=True), "stablehlo.reduce_scatter", "2xf32"),
    (lambda x: lax.psum_scatter(x, ("r", "c")), "stablehlo.reduce_scatter", "f32"),
    (lambda x: lax.all_to_all(x, "c", 0, 0, tiled=True), "stablehlo.all_to_all", "6xf32"),
    (lambda x: lax.pbroadcast(x, "c", 1), "stablehlo.all_reduce", "6xf32"),
    (lambda x: lax.axis_index("c"), "stablehlo.partition_id", "i32"),
])
def test_each_is_one_operation(function: Any, operation: str, shape: str) -> None:
    text = lowered(function, VECTOR)
    assert 1 == len(re.findall(rf'"?{re.escape(operation)}"?\W', text))
    assert re.search(rf"return .* : tensor<{shape}>", text)


def test_pairs_are_of_places_in_the_mesh() -> None:
    text = lowered(lambda x: lax.ppermute(x, "c", [(0, 1), (1, 2)]), VECTOR)
    assert "stablehlo.collective_permute" in text and "dense<[[0, 1], [1, 2], [3, 4], [4, 5]]>" in text


def test_a_position_is_found_from_the_place_of_the_device() -> None:
    text = lowered(lambda x: lax.axis_index("r"), VECTOR)
    assert "stablehlo.divide" in text and "stablehlo.remainder" in text


def test_gpus_have_operations_that_processors_lack() -> None:
    sizes = ShapedArray((3,), "int32")
    assert "stablehlo.collective_broadcast" in lowered(lambda x: lax.pbroadcast(x, "c", 1), VECTOR, platform="cuda")
    assert "dense<[[1, 0, 2], [4, 3, 5]]>" in lowered(lambda x: lax.pbroadcast(x, "c", 1), VECTOR, platform="rocm")

    def exchange(x: Any, *vectors: Any) -> Any:
        return lax.ragged_all_to_all(x, x, *vectors, axis_name="c")

    assert "custom_call @ragged_all_to_all(" in lowered(exchange, VECTOR, *[sizes] * 4, platform="cuda")
    assert "custom_call @ragged_all_to_all(" not in lowered(exchange, VECTOR, *[sizes] * 4)


def test_gpus_send_and_receive_by_themselves() -> None:
    def function(x: Any) -> Any:
        token = lax.psend(x, "c", [(0, 1)])
        return lax.precv(token, x, "c", [(0, 1)])

    text = lowered(function, VECTOR, platform="cuda")
    assert "stablehlo.send" in text and "stablehlo.recv" in text and "dense<[[0, 1], [3, 4]]>" in text
    with pytest.raises(NotImplementedError, match=r"(?s)psend: can't be compiled for cpu.*lax\.ppermute"):
        lowered(function, VECTOR)


def test_sending_along_a_mapped_axis_is_refused() -> None:
    with pytest.raises(NotImplementedError, match=r"(?s)psend: sends between devices.*lax\.ppermute"):
        cj.vmap(lambda x: lax.psend(x, "i", [(0, 1)]), axis_name="i")(np.ones(2))


def test_sending_without_a_use_of_the_token_stays() -> None:
    closed = stage(lambda x: [lax.psend(x, "c", [(0, 1)]), x], [VECTOR])
    assert frozenset({COMMUNICATION}) == closed.effects


def test_a_map_within_the_mesh_leaves_the_collective_to_the_devices() -> None:
    text = lowered(cj.vmap(lambda x: lax.psum(x, ("i", "c")), axis_name="i"), VECTOR)
    assert f"dense<{ROWS}>" in text and "tensor<f32>" in text and "stablehlo.reduce" in text
