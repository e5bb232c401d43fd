"""Collectives under vmap, beside loops over positions in NumPy; constants, pytrees, types, errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxError, CorejaxNameError

Groups = Sequence[Sequence[int]]

#: What the position of rank `rank` in its group gets, of what the members of the group have.
BY_LOOPS: dict[str, tuple[Callable[..., Any], Callable[[list[Any], int], Any]]] = {
    "psum": (lambda x, **how: lax.psum(x, **how), lambda xs, rank: sum(xs)),
    "pmean": (lambda x, **how: lax.pmean(x, **how), lambda xs, rank: sum(xs) / len(xs)),
    "pmax": (lambda x, **how: lax.pmax(x, **how), lambda xs, rank: np.max(xs, axis=0)),
    "pmin": (lambda x, **how: lax.pmin(x, **how), lambda xs, rank: np.min(xs, axis=0)),
    "all_gather": (lambda x, **how: lax.all_gather(x, axis=1, **how), lambda xs, rank: np.stack(xs, 1)),
    "all_gather tiled": (lambda x, **how: lax.all_gather(x, axis=-1, tiled=True, **how),
                         lambda xs, rank: np.concatenate(xs, -1)),
    "psum_scatter tiled": (lambda x, **how: lax.psum_scatter(x, scatter_dimension=1, tiled=True, **how),
                           lambda xs, rank: np.split(sum(xs), len(xs), 1)[rank]),
    "all_to_all tiled": (lambda x, **how: lax.all_to_all(x, split_axis=1, concat_axis=0, tiled=True, **how),
                         lambda xs, rank: np.concatenate([np.split(x, len(xs), 1)[rank] for x in xs], 0)),
}

GROUPS: tuple[Groups | None, ...] = (None, [[0, 3, 1], [5, 4, 2]], [[4, 0], [1, 5], [2, 3]], [[5, 3, 0, 2, 1, 4]],
                                     [[0], [1], [2], [3], [4], [5]])
UNEVEN = ([[0, 1, 2, 3], [5, 4]], [[2], [0, 1, 3, 4, 5]])


def _loop(x: np.ndarray, groups: Groups | None, get: Callable[[list[Any], int], Any]) -> np.ndarray:
    outs: list[Any] = [None] * len(x)
    for group in groups or [range(len(x))]:
        for rank, i in enumerate(group):
            outs[i] = get([x[j] for j in group], rank)
    return np.stack(outs)


@pytest.mark.parametrize("names", [("i",), ("i", "j"), ("j", "i")], ids=str)
@pytest.mark.parametrize("groups", [*GROUPS, *UNEVEN], ids=str)
@pytest.mark.parametrize("name", BY_LOOPS)
def test_each_position_gets_what_a_loop_over_positions_gives(name: str, groups: Groups | None, names: tuple[str, ...]
                                                             ) -> None:
    if groups in UNEVEN and name not in ("psum", "pmean", "pmax", "pmin"):
        pytest.skip("these take groups of one size")
    function, get = BY_LOOPS[name]
    x = np.random.default_rng(0).standard_normal((6, 2, 12))
    sizes = {"i": 2, "j": 3, ("i",): 6}
    wanted = _loop(x, groups, get)
    if len(names) == 1:
        assert_allclose(_mapped(function, ("i",), names, groups)(x), wanted, rtol=1e-13)
        at_other_axis = cj.vmap(_local(function, names, groups), in_axes=2, out_axes=1, axis_name="i")
        assert_allclose(at_other_axis(np.moveaxis(x, 0, 2)), np.moveaxis(wanted, 0, 1), rtol=1e-13)
        return
    # positions count along `names`; the maps nest as i, then j
    order = [names.index(each) for each in ("i", "j")]
    shape = [sizes[each] for each in names]
    parts, wanted = x.reshape(*shape, 2, 12), wanted.reshape(*shape, *wanted.shape[1:])
    parts = parts.transpose(*order, 2, 3)
    wanted = wanted.transpose(*order, *range(2, wanted.ndim))
    assert_allclose(_mapped(function, ("i", "j"), names, groups)(parts), wanted, rtol=1e-13)


def _local(function: Callable[..., Any], names: tuple[str, ...], groups: Groups | None) -> Callable[..., Any]:
    given = {} if groups is None else {"axis_index_groups": groups}
    return lambda x: function(x, axis_name=names, **given)


def _mapped(function: Callable[..., Any], maps: tuple[str, ...], names: tuple[str, ...], groups: Groups | None) -> Any:
    mapped = _local(function, names, groups)
    for name in reversed(maps):
        mapped = cj.vmap(mapped, axis_name=name)
    return mapped


@pytest.mark.parametrize("groups", GROUPS[:3], ids=str)
@pytest.mark.parametrize("name", BY_LOOPS)
def test_derivatives_are_differences_of_the_unmapped_program(name: str, groups: Groups | None) -> None:
    rng = np.random.default_rng(1)
    function = _mapped(BY_LOOPS[name][0], ("i",), ("i",), groups)
    x, x_dot = rng.standard_normal((2, 6, 2, 6))
    x *= 3.0

    def program(x: Any) -> Any:
        return function(lax.sin(x) * x)

    step = 1e-5
    difference = (np.asarray(program(x + step * x_dot)) - np.asarray(program(x - step * x_dot))) / (2 * step)
    assert_allclose(cj.jvp(program, (x,), (x_dot,))[1], difference, rtol=1e-7, atol=1e-8)
    y_bar = rng.standard_normal(difference.shape)
    (x_bar,) = cj.vjp(program, x)[1](y_bar)
    assert_allclose(np.vdot(x_bar, x_dot), np.vdot(y_bar, difference), rtol=1e-7, atol=1e-8)
    second = cj.jvp(cj.grad(lambda x: (program(x) * y_bar).sum()), (x,), (x_dot,))[1]
    ahead, behind = [np.asarray(cj.vjp(program, x + sign * step * x_dot)[1](y_bar)[0]) for sign in (1, -1)]
    assert_allclose(second, (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-7)


def test_extrema_share_the_derivative_among_ties() -> None:
    x = np.array([1.0, 4.0, 4.0, 2.0])
    largest = lambda x: cj.vmap(lambda x: lax.pmax(x, "i"), axis_name="i")(x)[0]
    assert_array_equal([0.0, 0.5, 0.5, 0.0], cj.grad(largest)(x))
    assert_array_equal(0.5, cj.jvp(largest, (x,), (np.array([3.0, 1.0, 0.0, 0.0]),))[1])


def test_values_that_are_the_same_everywhere_are_counted() -> None:
    def function(x: Any, same: Any) -> Any:
        return lax.psum(same, "i"), lax.pmax(same, "i"), lax.all_gather(same, "i"), lax.psum_scatter(same, "i")

    same = np.array([1.0, 2.0, 5.0])
    total, largest, gathered, parts = cj.vmap(function, (0, None), (None, None, None, 0), "i")(np.zeros(3), same)
    assert_array_equal(3 * same, total)
    assert_array_equal(same, largest)
    assert_array_equal(np.stack([same] * 3), gathered)
    assert_array_equal(3 * same, parts)


def test_constants_are_counted_without_tracing() -> None:
    found: list[Any] = []

    def function(x: Any) -> Any:
        found.extend([lax.psum(1, "i"), lax.psum(2.5, "i"), lax.psum(np.float32(2), ("i", "j")), lax.axis_size("i"),
                      lax.psum(np.array([1, 2], np.int8), "j"), lax.psum(True, "i"), lax.pmean(3.0, "i"),
                      lax.psum(1, "j", axis_index_groups=[[0, 1], [3, 2]])])
        return x

    cj.vmap(cj.vmap(function, axis_name="j"), axis_name="i")(np.zeros((3, 4)))
    assert [3, 7.5, 24, 3] == found[:4] and [int, float, np.float32, int] == [type(x) for x in found[:4]]
    assert_array_equal([4, 8], found[4])
    assert found[4].dtype == np.int8 and found[5].dtype == np.int32 and 3 == found[5]
    assert [3.0, 2] == found[6:]


def test_pytrees_and_positional_axes() -> None:
    x = {"a": np.ones((2, 3)), "b": (np.arange(4.0).reshape(2, 2), None)}
    out = cj.vmap(lambda x: lax.psum(x, "i"), axis_name="i", out_axes=None)(x)
    assert_array_equal([2.0, 2.0, 2.0], out["a"])
    assert_array_equal([2.0, 4.0], out["b"][0])
    y = np.arange(6.0).reshape(2, 3)
    assert_array_equal([15.0, 15.0], cj.vmap(lambda x: lax.psum(x, ("i", 0)), axis_name="i")(y))
    assert_array_equal([5.0, 5.0], cj.vmap(lambda x: lax.pmax(x, (0, "i")), axis_name="i")(y))
    assert_array_equal([2.5, 2.5], cj.vmap(lambda x: lax.pmean(x, (0, "i")), axis_name="i")(y))
    assert_array_equal([3.0, 12.0], lax.psum(y, 1))


def test_no_axes_are_no_communication() -> None:
    x = np.arange(3.0)
    for function in (lax.psum, lax.pmean, lax.all_gather, lax.psum_scatter):
        assert function(x, ()) is x or assert_array_equal(x, function(x, ())) is None
    assert 1 == lax.axis_size(())


def test_booleans_are_counted_as_int32() -> None:
    out = cj.vmap(lambda x: lax.psum(x, "i"), axis_name="i")(np.array([True, False, True]))
    assert np.int32 == out.dtype
    assert_array_equal([2, 2, 2], out)


def test_positions_count_along_several_axes_the_last_one_fastest() -> None:
    x = np.zeros((2, 3))
    index = cj.vmap(cj.vmap(lambda x: lax.axis_index(("i", "j")) + 10 * lax.axis_index(("j", "i")), axis_name="j"),
                    axis_name="i")(x)
    assert np.int32 == index.dtype
    i, j = np.indices((2, 3))
    assert_array_equal(3 * i + j + 10 * (2 * j + i), index)


def test_permutations_leave_zeros_where_nothing_arrives() -> None:
    x = np.arange(1.0, 7.0).reshape(2, 3)
    over_both = cj.vmap(cj.vmap(lambda x: lax.ppermute(x, ("i", "j"), [(0, 5), (5, 1), (2, 2)]), axis_name="j"),
                        axis_name="i")
    assert_array_equal([[0.0, 6.0, 3.0], [0.0, 0.0, 1.0]], over_both(x))
    assert_array_equal([[0.0, 6.0, 3.0], [0.0, 0.0, 1.0]], cj.jit(over_both)(x))
    broadcast = cj.vmap(cj.vmap(lambda x: lax.pbroadcast(x, ("j", "i"), 3), axis_name="j"), axis_name="i")
    assert_array_equal(np.full((2, 3), 5.0), broadcast(x))
    assert_array_equal([[0.0, 0.0, 0.0], [0.0, 6.0, 0.0]], cj.grad(lambda x: broadcast(x).sum())(x))


def test_an_exchange_swaps_a_named_axis_with_one_of_the_array() -> None:
    x = np.arange(36.0).reshape(3, 3, 4)
    swapped = cj.vmap(lambda x: lax.pswapaxes(x, "i", 0), axis_name="i")(x)
    assert_array_equal(x.swapaxes(0, 1), swapped)
    moved = cj.vmap(lambda x: lax.all_to_all(x, "i", 0, 1), axis_name="i")(x)
    assert_array_equal(x.transpose(1, 2, 0), moved)


def test_ragged_parts_arrive_where_their_senders_say() -> None:
    operand = np.array([[1.0, 2.0, 2.0], [3.0, 4.0, 0.0]])
    offsets, sizes = np.array([[0, 1], [0, 1]], np.int32), np.array([[1, 2], [1, 1]], np.int32)
    targets, arriving = np.array([[0, 0], [1, 2]], np.int32), np.array([[1, 1], [2, 1]], np.int32)

    def exchange(operand: Any, *vectors: Any) -> Any:
        return lax.ragged_all_to_all(operand, np.full(4, 9.0), *vectors, axis_name="i")

    mapped = cj.vmap(exchange, axis_name="i")
    assert_array_equal([[1.0, 3.0, 9.0, 9.0], [2.0, 2.0, 4.0, 9.0]], mapped(operand, offsets, sizes, targets, arriving))
    back = cj.grad(lambda x: (mapped(x, offsets, sizes, targets, arriving) * np.arange(8.0).reshape(2, 4)).sum())
    assert_array_equal([[0.0, 4.0, 5.0], [1.0, 6.0, 0.0]], back(operand))


def test_an_inner_axis_hides_an_outer_one_of_the_same_name() -> None:
    x = np.arange(6.0).reshape(2, 3)
    out = cj.vmap(cj.vmap(lambda x: lax.psum(x, "i"), axis_name="i"), axis_name="i")(x)
    assert_array_equal(np.repeat(x.sum(1, keepdims=True), 3, 1), out)


def test_collectives_within_compiled_functions_loops_and_branches() -> None:
    x = np.arange(1.0, 4.0)

    def function(x: Any) -> Any:
        inner = cj.jit(lambda x: x / lax.psum(x, "i"))(x)
        carried = lax.fori_loop(0, 3, lambda _, c: c + lax.pmean(c, "i"), inner)
        return lax.cond(True, lambda c: lax.pmax(c, "i") - c, lambda c: c, carried)

    def in_numpy(x: np.ndarray) -> np.ndarray:
        c = x / x.sum()
        for _ in range(3):
            c = c + c.mean()
        return c.max() - c

    assert_allclose(cj.vmap(function, axis_name="i")(x), in_numpy(x), rtol=1e-12)
    assert_allclose(cj.jit(cj.vmap(function, axis_name="i"))(x), in_numpy(x), rtol=1e-12)


def test_an_unbound_axis_is_an_error_that_lists_the_bound_ones() -> None:
    with pytest.raises(CorejaxNameError, match=r"(?s)psum: no axis is called 'k' here.*'i' of size 2, 'j' of size 3"):
        cj.vmap(cj.vmap(lambda x: lax.psum(x, "k"), axis_name="j"), axis_name="i")(np.ones((2, 3)))
    closed = []
    cj.vmap(lambda x: closed.append(cj.make_jaxpr(lambda x: lax.psum(x, "i"))(x)) or x, axis_name="i")(np.ones(2))
    with pytest.raises(CorejaxError, match="no axis is called 'i'"):
        cj.jit(lambda x: closed[0](x) if callable(closed[0]) else cj.core.jaxpr_as_fun(closed[0])(x))(1.0)


def test_casts_do_nothing_where_no_types_say_what_varies() -> None:
    jaxpr = []
    cj.vmap(lambda x: jaxpr.append(cj.make_jaxpr(lambda x: lax.pcast(x, "i", to="varying"))(x)) or x, axis_name="i")(
        np.ones(2))
    assert () == jaxpr[0].eqns
