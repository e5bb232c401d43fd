"""gather and the scatters as functions: their modes, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax_lax_basic import creation, gathering, identity, joining, linear_algebra, scattering, shapes, slicing
from corejax_lax_basic.gathering import GatherDimensionNumbers
from corejax_lax_basic.scattering import ScatterDimensionNumbers
from value_checks import check_value

pytestmark = pytest.mark.usefixtures("usual_code")

PRIMITIVES = [function.primitive for module in (creation, gathering, identity, joining, linear_algebra, scattering,
                                    shapes, slicing)
              for function in vars(module).values()
              if getattr(function, "__module__", None) == module.__name__ and hasattr(function, "primitive")]


@pytest.mark.parametrize("primitive", PRIMITIVES, ids=str)
def test_impl_takes_numpy_scalars_as_arrays_without_axes(primitive: Any) -> None:
    for sample in primitive.samples(np.random.default_rng(0)):
        if sample.error is None and primitive.impl is not None:
            args = [np.asarray(x) for x in sample.args]
            expected = primitive.impl(args, **sample.params)
            found = primitive.impl([x[()] for x in args], **sample.params)
            for x, y in zip(cj.tree.leaves([found]), cj.tree.leaves([expected]), strict=True):
                assert_array_equal(x, y)


def test_dynamic_slices_at_mapped_places() -> None:
    x, i = np.arange(12.0).reshape(3, 4), np.array([0, 2, 9, -5], np.int32)
    out = cj.vmap(lambda i: lax.dynamic_slice(x, (i, np.int32(1)), (2, 2)))(i)
    first = [0, 1, 1, 0]
    assert_array_equal(np.asarray(out), np.stack([x[f:f + 2, 1:3] for f in first]))
    check_value(lambda x, i: cj.vmap(lambda i: lax.dynamic_index_in_dim(x, i, 1, keepdims=False))(i), [x, i[:3]],
                np.stack([x[:, f] for f in (0, 2, 3)]))


NUMBERS = GatherDimensionNumbers((), (0,), (0,))


@pytest.mark.parametrize(("call", "text"), [
    (lambda: lax.gather(np.ones(3), np.zeros((2, 2), int), NUMBERS, (1,)), "gather: the indices don't fit"),
    (lambda: lax.gather(np.ones(3), np.zeros((2, 1)), NUMBERS, (1,)), "gather: the indices don't fit"),
    (lambda: lax.gather(np.ones(3), np.zeros((2, 1), int), NUMBERS, (2,)), "gather: slice_sizes"),
    (lambda: lax.gather(np.ones(3), np.zeros((2, 1), int), NUMBERS._replace(collapsed_slice_dims=(1,)), (1,)),
     "gather: .*must be distinct axes"),
    (lambda: lax.scatter(np.ones(3), np.zeros((2, 1), int), np.ones(3), ScatterDimensionNumbers((), (0,), (0,))),
     "scatter: the updates don't fit"),
    (lambda: lax.scatter_add(np.ones(3), np.zeros((2, 1), int), np.ones(2, np.float32),
                             ScatterDimensionNumbers((), (0,), (0,))), "scatter_add: operands differ in dtype"),
    (lambda: lax.gather(np.ones(3), np.zeros((2, 1), int), NUMBERS, (1,), mode="wrap"), "unknown mode"),
])
def test_wrong_use_is_refused_by_name(call: Any, text: str) -> None:
    with pytest.raises((CorejaxTypeError, CorejaxValueError), match=text):
        call()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_narrow_indices_compile_even_where_an_axis_is_longer_than_they_reach(dtype: str) -> None:
    x, indices = np.arange(200.0), np.array([[3], [100], [-1]]).astype(dtype)
    numbers: Any = ((), (0,), (0,), (), ())
    rules = {"dimension_numbers": numbers, "indices_are_sorted": False, "unique_indices": False}
    for mode in ("clip", "fill"):
        def read(indices: Any, mode: str = mode) -> Any:
            return gathering.gather.primitive.bind(x, indices, slice_sizes=(1,), fill_value=0, mode=mode, **rules)
        assert_array_equal(np.asarray(cj.jit(read)(indices)), np.asarray(read(indices)))
    for mode in ("clip", "drop"):
        def write(indices: Any, mode: str = mode) -> Any:
            return scattering.scatter_add.primitive.bind(x, indices, np.ones(3), mode=mode, **rules)
        assert_array_equal(np.asarray(cj.jit(write)(indices)), np.asarray(write(indices)))


@pytest.mark.parametrize(("first", "then"), [(9, 0), (3, 5), (-4, 9)])
def test_a_slice_of_a_slice_clamps_both_starts_when_compiled(first: int, then: int) -> None:
    def twice(i: Any, j: Any) -> Any:
        return lax.dynamic_slice(lax.dynamic_slice(np.arange(10.0), (i,), (4,), allow_negative_indices=False), (j,),
                                 (1,), allow_negative_indices=False)

    wanted = np.clip(first, 0, 6) + np.clip(then, 0, 3)
    for found in (twice, cj.jit(twice)):
        assert_array_equal(np.asarray(found(np.int32(first), np.int32(then))), [wanted])
