"""gather and the scatters: impl against the compiled program, batching, derivatives; every primitive's own samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from structure_checks import assert_array_equal, check_all, check_compiled, check_derivatives, check_vmap

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxError, CorejaxTypeError, CorejaxValueError
from corejax_lax_basic import creation, gathering, identity, joining, linear_algebra, shapes, slicing
from corejax_lax_basic.gathering import GatherDimensionNumbers, ScatterDimensionNumbers

PRIMITIVES = [function.primitive for module in (creation, gathering, identity, joining, linear_algebra, shapes, slicing)
              for function in vars(module).values()
              if hasattr(function, "primitive") and function.__module__ == module.__name__]


@pytest.mark.parametrize("primitive", PRIMITIVES, ids=str)
def test_impl_equals_the_compiled_program_on_the_samples(primitive: Any) -> None:
    count = 0
    for sample in primitive.samples(np.random.default_rng(0)):
        args = [np.asarray(x) for x in sample.args]
        if sample.error is not None:
            with pytest.raises(sample.error):
                primitive.bind(*args, **sample.params)
            continue
        check_compiled(lambda *xs, params=sample.params: primitive.bind(*xs, **params), args)
        # eager results without axes are NumPy scalars, so impl must take them too
        expected = primitive.impl(args, **sample.params)
        found = primitive.impl([x[()] for x in args], **sample.params)
        for x, y in zip(cj.tree.leaves([found]), cj.tree.leaves([expected]), strict=True):
            assert_array_equal(x, y)
        count += 1
    assert count >= 2


GATHERS = [
    ((5,), [[0], [4], [4]], ((), (0,), (0,)), (1,)), ((5,), [[-3], [9]], ((), (0,), (0,)), (1,)),
    ((3, 4), [[2], [0]], ((1,), (0,), (0,)), (1, 4)), ((3, 4), [[2], [0]], ((0,), (1,), (1,)), (3, 1)),
    ((3, 4), [[2, 1], [0, 3]], ((1, 2), (), (0, 1)), (2, 2)), ((3, 4), [3, 1], ((0,), (0,), (1, 0)), (1, 2)),
    ((2, 3, 4), [[[1], [2]], [[0], [0]]], ((2,), (1,), (1,), (0,), (0,)), (1, 1, 4)),
    ((4, 2, 3), [[[1], [2]], [[0], [0]], [[2], [2]]], ((0,), (1,), (1,), (2,), (0,)), (4, 1, 1)),
    ((3, 4), np.zeros((0, 1)), ((1,), (0,), (0,)), (1, 4))]


@pytest.mark.parametrize(("sizes", "indices", "numbers", "windows"), GATHERS)
@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_gather(sizes: Any, indices: Any, numbers: Any, windows: Any, mode: str) -> None:
    x, where = np.random.default_rng(0).standard_normal(sizes), np.array(indices, np.int32)

    def read(x: Any, where: Any) -> Any:
        return lax.gather(x, where, GatherDimensionNumbers(*numbers), windows, mode=mode, fill_value=0.5)

    check_compiled(read, [x, where])
    check_derivatives(read, [x, where])
    check_vmap(read, [x, where])


@pytest.mark.parametrize(("sizes", "indices", "numbers", "windows"), GATHERS)
@pytest.mark.parametrize("name", ["scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max"])
def test_scatter(sizes: Any, indices: Any, numbers: Any, windows: Any, name: str) -> None:
    x, where = np.random.default_rng(0).standard_normal(sizes), np.array(indices, np.int32)
    part = np.asarray(lax.gather(x, where, GatherDimensionNumbers(*numbers), windows, mode="clip"))
    new = np.random.default_rng(1).standard_normal(part.shape)
    for mode in ("fill", "clip"):
        def write(x: Any, where: Any, new: Any, mode: str = mode) -> Any:
            return getattr(lax, name)(x, where, new, ScatterDimensionNumbers(*numbers), mode=mode)

        check_compiled(write, [x, where, new])
        if name in ("scatter", "scatter_add"):
            check_derivatives(write, [x, where, new])
    check_vmap(write, [x, where, new])


def test_scatter_of_products_has_no_derivative_and_says_why() -> None:
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    with pytest.raises(CorejaxError, match="scatter_mul .*not differentiable"):
        cj.jvp(lambda x: lax.scatter_mul(x, np.array([[0]]), np.ones(1), numbers), (np.ones(3),), (np.ones(3),))


def test_dynamic_slices_at_mapped_places() -> None:
    x, i = np.arange(12.0).reshape(3, 4), np.array([0, 2, 9, -5], np.int32)
    out = cj.vmap(lambda i: lax.dynamic_slice(x, (i, np.int32(1)), (2, 2)))(i)
    first = [0, 1, 1, 0]
    assert_array_equal(np.asarray(out), np.stack([x[f:f + 2, 1:3] for f in first]))
    check_all(lambda x, i: cj.vmap(lambda i: lax.dynamic_index_in_dim(x, i, 1, keepdims=False))(i), [x, i[:3]],
              np.stack([x[:, f] for f in (0, 2, 3)]))


NUMBERS = GatherDimensionNumbers((), (0,), (0,))


@pytest.mark.parametrize(("call", "text"), [
    (lambda: lax.gather(np.ones(3), np.zeros((2, 2), int), NUMBERS, (1,)), "gather: the indices don't fit"),
    (lambda: lax.gather(np.ones(3), np.zeros((2, 1)), NUMBERS, (1,)), "gather: the indices don't fit"),
    (lambda: lax.gather(np.ones(3), np.zeros((2, 1), int), NUMBERS, (2,)), "gather: slice_sizes"),
    (lambda: lax.gather(np.ones(3), np.zeros((2, 1), int), NUMBERS._replace(collapsed_slice_dims=(1,)), (1,)),
     "gather: .*not distinct axes"),
    (lambda: lax.scatter(np.ones(3), np.zeros((2, 1), int), np.ones(3), ScatterDimensionNumbers((), (0,), (0,))),
     "scatter: the updates don't fit"),
    (lambda: lax.scatter_add(np.ones(3), np.zeros((2, 1), int), np.ones(2, np.float32),
                             ScatterDimensionNumbers((), (0,), (0,))), "scatter_add: operands differ in dtype"),
    (lambda: lax.gather(np.ones(3), np.zeros((2, 1), int), NUMBERS, (1,), mode="wrap"), "no such mode"),
])
def test_wrong_use_is_refused_by_name(call: Any, text: str) -> None:
    with pytest.raises((CorejaxTypeError, CorejaxValueError), match=text):
        call()
