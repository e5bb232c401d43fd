"""Checks of batching: a map is a loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from corejax import jit, jvp, linear_transpose, make_jaxpr, vjp, vmap
from corejax.core import Array, ShapedArray, aval_of, dtypes, with_axis
from corejax.errors import CorejaxNotImplementedError
from corejax.ir import jaxpr_as_fun
from corejax_testing.batches import Batch, Dims, another, carries_programs, layouts, random_dims, stacked
from corejax_testing.case import Case, of_some
from corejax_testing.check import check
from corejax_testing.comparing import eps_of, host, off, ulps_apart, worst, wrong_type
from corejax_testing.report import NotApplicable, no_derivative
from corejax_testing.tolerances import ULPS, slack
from corejax_testing.transposes import linear_parts

#: How far derivatives computed in two orders may be apart, relative to the largest, in units of precision.
RTOL = 5e4


def _most(case: Case) -> int:
    """How many choices of mapped axes are tried: fewer if each compiles its own program."""
    return 256 if case.full else 6 if carries_programs(case) else 16


def mapped_function(case: Case, dims: Dims, out_axes: object = 0, **options: Any) -> Callable[..., list[Any]]:
    """The primitive mapped along `dims`."""
    return vmap(case.apply, in_axes=dims, out_axes=out_axes, **options)


def compare(case: Case, how: str, rows: Sequence[Sequence[object]], outs: Sequence[object], axes: Sequence[int]
            ) -> None:
    """Check that each result of a map equals its slices' results, stacked along `axes`, in type and value."""
    for i, (aval, out, axis) in enumerate(zip(case.out_avals, outs, axes, strict=True)):
        wanted_type = with_axis(aval, axis, len(rows))
        found = wrong_type(wanted_type, out)
        if found:
            raise case.fail("vmap", f"{how}: result {i} has a different type than its slices", got=found,
                            wanted=wanted_type,
                            todo="return what binding it to the whole batch gives; weak types are kept")
        if not rows:
            continue
        difference = _differs(case, np.stack([host(row[i]) for row in rows], axis), out)
        if difference:
            raise case.fail("vmap", f"{how}: result {i} is not what a loop over the slices gives",
                            got=difference, wanted="the loop's, to a few units in the last place",
                            todo="follow each operand's batch axis through the rule, and return where it is in the "
                                 "result; an operand whose dim is None has no batch axis")


def _differs(case: Case, wanted: np.ndarray, got: object) -> str | None:
    """None if two results agree to a few ulps of each element, or of the largest if sums cancel; else what differs."""
    distance, limit = ulps_apart(wanted, got), case.sample.ulps or ULPS
    if not distance.size or distance.max() <= limit:
        return None
    if not dtypes.is_inexact(wanted.dtype):
        return worst(wanted, host(got), distance)
    return off(wanted, got, limit * eps_of(wanted.dtype), slack(case, wanted))


def out_axes_of(case: Case, k: int) -> list[int]:
    """The k-th choice of positions for the mapped axis in the results."""
    return [k % (aval.ndim + 1) for aval in case.out_avals]


# The checks

@check("vmap")
def a_map_is_a_loop(case: Case) -> None:
    """For every choice of mapped operands and axes, each slice of the result is the result of the slices."""
    for variant in case.variants() if case.full else [case]:
        batch = Batch(variant, 3)
        loops: dict[tuple[bool, ...], list[list[Any]]] = {}
        ranks = max([aval.ndim for aval in variant.out_avals], default=0) + 1
        for n, dims in enumerate(layouts(variant, _most(case))):
            subset = tuple([dim is not None for dim in dims])
            rows = loops.get(subset) or loops.setdefault(subset, batch.loop(dims))
            for k in range(ranks) if n == 0 else [n % ranks]:
                axes = out_axes_of(variant, k)
                outs = mapped_function(variant, dims, axes)(*batch.operands(dims))
                compare(variant, f"vmap with in_axes={dims}, out_axes={axes}", rows, outs, axes)


@check("vmap", costly=True)
def maps_of_no_slice_and_of_one_work(case: Case) -> None:
    """A batch may have the size 0 or 1."""
    for size in (0, 1):
        batch = Batch(case, size)
        for dims in layouts(case, 16 if case.full else 4):
            axes = out_axes_of(case, case.number)
            outs = mapped_function(case, dims, axes)(*batch.operands(dims))
            compare(case, f"vmap over {size} with in_axes={dims}", batch.loop(dims), outs, axes)


@check("vmap", costly=True)
def nested_maps_are_nested_loops(case: Case) -> None:
    """A map of a map, along different axes of different operands, is a loop in a loop."""
    for outer, inner in _pairs_of_layouts(case, 12 if case.full else 2 if carries_programs(case) else 4):
        rows = [Batch(case, 3) for _ in range(2)]
        for batch in rows:  # operands that only the outer map takes apart are the same for all inner slices
            first = batch.rows[0] = another(case) if batch is rows[1] else list(case.args)
            for row in batch.rows:
                row[:] = [x if i is not None else y for x, y, i in zip(row, first, inner, strict=True)]
        operands, in_axes = [], []
        for i, (aval, o, d) in enumerate(zip(case.avals, outer, inner, strict=True)):
            parts = [batch.rows[0][i] if d is None else stacked([row[i] for row in batch.rows], aval, d)
                     for batch in rows]
            operands.append(parts[0] if o is None else stacked(parts, aval_of(parts[0]), o))
            in_axes.append(o)
        outs = vmap(mapped_function(case, inner), in_axes=tuple(in_axes))(*operands)
        loops = [[case.apply(*[rows[0 if o is None else a].rows[b][i] for i, o in enumerate(outer)])
                  for b in range(3)] for a in range(2)]
        how = f"vmap with in_axes={outer} of vmap with in_axes={inner}"
        for a, loop in enumerate(loops):
            compare(case, f"{how}, slice {a} of the outer", loop, [_slice(out, a) for out in outs],
                    [0] * len(outs))


def _pairs_of_layouts(case: Case, count: int) -> Iterator[tuple[Dims, Dims]]:
    """Layouts of an outer and an inner map: both map all operands, then each maps one, then at random."""
    found = layouts(case, _most(case))
    n = len(case.avals)
    everything = (True,) * n
    yield random_dims(case, everything), random_dims(case, everything)
    alternating = everything if n == 1 else tuple([i % 2 == case.number % 2 for i in range(n)])
    yield random_dims(case, alternating), random_dims(case, everything if n == 1 else [not a for a in alternating])
    for _ in range(count - 2):
        yield found[case.rng.integers(len(found))], found[case.rng.integers(len(found))]


def _slice(out: object, k: int) -> Array:
    """Slice `k` along the first axis, with the same weak type."""
    aval = aval_of(out)
    return Array.from_host(host(out)[k, ...], aval.update(shape=aval.shape[1:]))


@check("vmap")
def a_named_axis_changes_nothing(case: Case) -> None:
    """With a name for the mapped axis the rule gives the same."""
    batch = Batch(case, 3)
    for dims in layouts(case, 16)[:1 if not case.full else 16]:
        outs = mapped_function(case, dims, axis_name="rows")(*batch.operands(dims))
        compare(case, f"vmap with in_axes={dims}, axis_name='rows'", batch.loop(dims), outs, [0] * len(outs))


@check("vmap")
def a_map_is_the_same_when_staged(case: Case) -> None:
    """The rule gives the same program for traced values as for arrays; in the full mode also compiled."""
    batch = Batch(case, 3)
    found = layouts(case, 16)
    for k, choice in enumerate(case.rng.permutation(len(found))[:8 if case.full else 2]):
        dims = found[choice]
        fun, operands = mapped_function(case, dims), batch.operands(dims)
        rows = batch.loop(dims)
        compare(case, f"a staged vmap with in_axes={dims}", rows, jaxpr_as_fun(make_jaxpr(fun)(*operands))(*operands),
                [0] * len(case.out_avals))
        if k == 0 and case.full:
            compare(case, f"jit of vmap with in_axes={dims}", rows, jit(fun)(*operands), [0] * len(case.out_avals))


@check("vmap")
def rows_of_a_map_do_not_touch_each_other(case: Case) -> None:
    """A row of NaN or of infinities leaves the other rows as they are."""
    chosen = [i for i in case.inexact if case.avals[i].size and not case.keeps(i)]
    if not chosen:
        raise NotApplicable("no operand has a value that could spread")
    dims = tuple([0 if i in chosen else None for i in range(len(case.args))])
    batch = Batch(case, 3)
    wanted = [case.apply(*batch.row(k, dims)) for k in (0, 2)]
    for bad in (np.nan, np.inf):
        for i in chosen:
            batch.rows[1][i] = np.full(case.avals[i].shape, bad, case.avals[i].dtype)
        outs = [np.delete(host(out), 1, 0) for out in mapped_function(case, dims)(*batch.operands(dims))]
        for i, out in enumerate(outs):
            difference = _differs(case, np.stack([host(row[i]) for row in wanted]), out)
            if difference:
                raise case.fail("vmap", f"a row of {bad} changes other rows of result {i}", got=difference,
                                wanted="the rows of a loop",
                                todo="compute each row from its own operands only")


@check("vmap", costly=True)
def maps_of_jvps_and_jvps_of_maps_are_loops(case: Case) -> None:
    """Differentiating and mapping commute."""
    positions = case.differentiable
    _require_jvp(case, positions)
    batch = Batch(case, 3)
    found = [dims for dims in layouts(case, 16) if any([dims[i] is not None for i in positions])]
    for k in case.rng.permutation(len(found))[:12 if case.full else 3]:
        dims = found[k]
        own_dims = tuple([dims[i] for i in positions])
        dots = [[case.direction(case.args[i]) for i in positions] for _ in range(3)]
        dots = [[x if d is not None else y for x, y, d in zip(row, dots[0], own_dims, strict=True)] for row in dots]
        loop = [_jvp(case, positions, batch.row(j, dims), dots[j]) for j in range(3)]
        tangents = [dots[0][j] if d is None else stacked([row[j] for row in dots], aval_of(dots[0][j]), d)
                    for j, d in enumerate(own_dims)]
        operands = batch.operands(dims)
        mapped = vmap(lambda xs, ts: _jvp(case, positions, xs, ts), in_axes=(list(dims), list(own_dims)))
        _compare_tangents(case, f"vmap with in_axes={dims} of jvp", loop, mapped(operands, tangents))
        _compare_tangents(case, f"jvp of vmap with in_axes={dims}", loop,
                          _jvp_of_map(case, positions, dims, operands, tangents))


@check("vmap", costly=True)
def pullbacks_of_maps_are_loops_of_pullbacks(case: Case) -> None:
    """Pulling back through a map gives each mapped operand its rows' cotangents, and a shared one their sum."""
    positions = case.differentiable
    batch = Batch(case, 3)
    mapped = [i not in positions for i in range(len(case.args))]
    if True not in mapped:  # every other operand, then
        mapped = [i % 2 != case.number % 2 for i in range(len(case.args))]
    shared = random_dims(case, mapped)
    choices = [shared, random_dims(case, [True] * len(case.args)), *layouts(case, 16)[:12 if case.full else 0]]
    for dims in [dims for dims in dict.fromkeys(choices) if set(dims) != {None}]:
        try:
            rows = [_pullback(positions, case.apply, batch.row(k, dims)) for k in range(3)]
        except CorejaxNotImplementedError as error:
            raise no_derivative(error) from None
        back = _pullback(positions, mapped_function(case, dims), batch.operands(dims))
        cts = [[_cotangent(case, aval) for aval in case.out_avals] for _ in range(3)]
        found = back([np.stack(column) for column in zip(*cts, strict=True)])
        _compare_cotangents(case, f"vjp of vmap with in_axes={dims}", positions, dims, found,
                            [row(ct) for row, ct in zip(rows, cts, strict=True)])


@check("vmap", costly=True)
def transposes_of_maps_are_loops_of_transposes(case: Case) -> None:
    """Mapped, it transposes to its rows' cotangents for a mapped linear operand, and to their sum for a shared one."""
    positions, _ = linear_parts(case)[-1]
    batch = Batch(case, 3)
    inside = [i in positions for i in range(len(case.args))]
    kept = [k for k, aval in enumerate(case.out_avals) if dtypes.is_inexact(aval.dtype)]
    others = [not flag for flag in inside]
    every_other = [flag and i % 2 == case.number % 2 for i, flag in enumerate(others)]
    for mapped in dict.fromkeys([tuple(each) for each in (others, every_other, inside) if any(each)]):
        dims = random_dims(case, mapped)

        def function(*args: Any, dims: Dims = dims) -> list[Any]:
            outs = mapped_function(case, dims)(*args)
            return [outs[k] for k in kept]

        back = _transposed(positions, function, batch.operands(dims))
        rows = [_transposed(positions, lambda *args: [case.apply(*args)[k] for k in kept], batch.row(k, dims))
                for k in range(3)]
        cts = [[_cotangent(case, case.out_avals[k]) for k in kept] for _ in range(3)]
        found = back([np.stack(column) for column in zip(*cts, strict=True)])
        _compare_cotangents(case, f"linear_transpose of vmap with in_axes={dims}", positions, dims, found,
                            [row(ct) for row, ct in zip(rows, cts, strict=True)])


def _transposed(positions: Sequence[int], function: Callable[..., list[Any]], args: Sequence[Any]
                ) -> Callable[[list[Any]], Sequence[Any]]:
    return linear_transpose(of_some(function, positions, args), *[args[i] for i in positions])


def _cotangent(case: Case, aval: ShapedArray) -> np.ndarray:
    inexact = dtypes.is_inexact(aval.dtype)
    return host(case.direction(np.zeros(aval.shape, aval.dtype))) if inexact else np.zeros(aval.shape, dtypes.float0)


def _compare_cotangents(case: Case, how: str, positions: Sequence[int], dims: Dims, found: Sequence[object],
                        loops: Sequence[Sequence[object]]) -> None:
    for i, got, column in zip(positions, found, zip(*loops, strict=True), strict=True):
        parts, dim = [host(ct) for ct in column], dims[i]
        wanted = np.sum(parts, axis=0) if dim is None else np.stack(parts, dim)
        difference = off(wanted, got, RTOL * eps_of(wanted.dtype), slack(case, wanted))
        if difference:
            raise case.fail("vmap", f"{how}: the cotangent of operand {i} is not what a loop over the slices gives",
                            got=difference, wanted="the cotangents of the loop",
                            todo="bind operations whose derivatives know what this rule assumes, such as modes "
                            "for indices out of bounds; sum what belongs to an operand without a batch axis")


def _pullback(positions: Sequence[int], function: Callable[..., list[Any]], args: Sequence[Any]
              ) -> Callable[[Sequence[Any]], Sequence[Any]]:
    return vjp(of_some(function, positions, args), *[args[i] for i in positions])[1]


def _jvp_of_map(case: Case, positions: Sequence[int], dims: Dims, operands: Sequence[object], dots: Sequence[object]
                ) -> Sequence[Any]:
    function = of_some(mapped_function(case, dims), positions, operands)
    return jvp(function, tuple([operands[i] for i in positions]), tuple(dots))[1]


def _require_jvp(case: Case, positions: Sequence[int]) -> None:
    try:
        _jvp(case, positions, case.args, [case.direction(case.args[i]) for i in positions])
    except CorejaxNotImplementedError as error:
        raise no_derivative(error) from None


def _jvp(case: Case, positions: Sequence[int], args: Sequence[object], dots: Sequence[object]) -> list[Any]:
    """The tangents of the results that have one."""
    outs = jvp(case.function_of(positions, args), tuple([args[i] for i in positions]), tuple(dots))[1]
    return [out for out, aval in zip(outs, case.out_avals, strict=True) if dtypes.is_inexact(aval.dtype)]


def _compare_tangents(case: Case, how: str, loop: Sequence[Sequence[object]], outs: Sequence[object]) -> None:
    outs = [out for out in outs if dtypes.is_inexact(aval_of(out).dtype)]
    for i, out in enumerate(outs):
        wanted = np.stack([host(row[i]) for row in loop])
        difference = off(wanted, out, RTOL * eps_of(wanted.dtype), case.atol)
        if difference:
            raise case.fail("vmap", f"{how}: tangent {i} is not what a loop over the slices gives", got=difference,
                            wanted="the tangents of the loop", todo="write the rule with operations that are "
                            "differentiable in every operand that it gets, and keep each tangent with its slice")
