"""Checks at other sizes than the samples': larger batches, more axes, lengths around the widths of vectors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from corejax import jit
from corejax.core import aval_of, dtypes
from corejax_testing.batches import Batch, layouts, random_dims
from corejax_testing.batching import compare, mapped_function, out_axes_of
from corejax_testing.case import DERIVATIVE, Case
from corejax_testing.check import check
from corejax_testing.comparing import eps_of, host, off, worst
from corejax_testing.derivatives import agrees
from corejax_testing.elementwise import is_alike_everywhere, is_elementwise
from corejax_testing.probing import is_one_of
from corejax_testing.report import NotApplicable
from corejax_testing.tangents import chosen, refuse_refusals, smooth
from corejax_testing.tolerances import distances, ulps_of

#: The sizes of batches, and the numbers of axes, in the quick and in the full mode.
_BATCHES = {False: (17,), True: (9, 17, 33)}
_RANKS = {False: (4,), True: (3, 4, 5)}

#: Lengths at which loops over vectors begin and end; those that the quick mode compiles for, and tries along an axis.
_LENGTHS = (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 100, 127, 129, 1025)
_COMPILED = {False: (1025,), True: _LENGTHS}
_ALONG = {False: (129,), True: (17, 33, 100, 129, 1025)}

#: Operands and results with more elements aren't computed.
_MOST = 200_000


@check("vmap", costly=True)
def maps_of_many_rows_and_of_more_axes_are_loops(case: Case) -> None:
    """A batch may be large, and operands may have more axes than the samples' where `abstract_eval` accepts them."""
    if not case.args:
        raise NotApplicable("it has no operands")
    if not is_one_of(case, 2):
        raise NotApplicable("another sample represents this one")
    higher = list(_of_ranks(case))
    for variant in (case, *higher) if case.full or not higher else higher:
        for size in _BATCHES[case.full] if variant.avals != case.avals or case.full else _BATCHES[False]:
            batch = Batch(variant, size)
            found = [random_dims(variant, [True] * len(variant.args)), *(layouts(variant, 4) if case.full else ())]
            for dims in found:
                axes = out_axes_of(variant, size)
                outs = mapped_function(variant, dims, axes)(*batch.operands(dims))
                types = ", ".join(map(str, variant.avals))
                compare(variant, f"vmap over {size} rows of {types} with in_axes={dims}", batch.loop(dims), outs, axes)


def _of_ranks(case: Case) -> Iterator[Case]:
    """The case with more axes, before or behind the others, if it is accepted like this."""
    top = max([aval.ndim for aval in case.avals])
    for rank in _RANKS[case.full]:
        for behind in (False, True) if case.full else (case.number % 2 == 1,):
            added = ((2, 1, 2, 1, 2)[:rank - top])
            if not added:
                continue
            rows = Batch(case, math.prod(added)).rows
            args = [x if aval.ndim < top or type(x) in dtypes.PYTHON_SCALARS else _spread(
                [host(row[i]) for row in rows], added, behind)
                for i, (x, aval) in enumerate(zip(case.args, case.avals, strict=True))]
            variant = case.with_args(args)
            if variant.is_accepted():
                yield variant


def _spread(values: Sequence[np.ndarray], added: tuple[int, ...], behind: bool) -> np.ndarray:
    """Values along new axes of these sizes."""
    shape = values[0].shape
    return np.stack(values, -1 if behind else 0).reshape((*shape, *added) if behind else (*added, *shape))


@check("xla_translation")
def values_do_not_depend_on_how_many_there_are(case: Case) -> None:
    """At lengths from 1 to 1025, elementwise functions give what they give for each element; others what impl gives."""
    if not is_one_of(case, 1) or not case.args:
        raise NotApplicable("another sample represents this one" if case.args else "it has no operands")
    if _is_the_same_for_each(case) and _pieces_hold(case):
        return
    if case.primitive.impl is None:
        raise NotApplicable("there is nothing to compare with")
    _axes_hold(case)


def _is_the_same_for_each(case: Case) -> bool:
    return is_elementwise(case) and is_alike_everywhere(case)


def _pieces_hold(case: Case) -> bool:
    """Check a function of single elements on any number of them: those of the sample, repeated.

    False if it turns out to be none: the elements of a sample may be too few, or too small, to show that they mix.
    """
    shape = max([aval.shape for aval in case.avals], key=len)
    size = math.prod(shape)
    if not size:
        raise NotApplicable("it has no elements")
    plain = [host(out).reshape(-1) for out in case.apply(*case.args)]
    variants = {}
    for length in _LENGTHS:
        places = np.arange(length) * size // length if length > size else np.arange(length)
        args = [host(x).reshape(-1)[places] if aval.shape == shape and type(x) not in dtypes.PYTHON_SCALARS else x
                for x, aval in zip(case.args, case.avals, strict=True)]
        variant = case.with_args(args)
        if not variant.is_accepted() or any([aval.shape != (length,) for aval in variant.out_avals]):
            continue
        variants[length] = variant
        if case.primitive.impl is not None and not _same(
                variant, "impl", length, [out[places] for out in plain], variant.apply(*args)):
            return False
    compiled = [length for length in _COMPILED[case.full] if length in variants]
    if not variants:
        raise NotApplicable("it takes no operands of one axis")

    @jit
    def program(operands: Sequence[Sequence[Any]]) -> list[list[Any]]:
        return [variants[length].apply(*args) for length, args in zip(compiled, operands, strict=True)]

    results = program([list(variants[length].args) for length in compiled])
    for length, outs in zip(compiled, results, strict=True):
        places = np.arange(length) * size // length if length > size else np.arange(length)
        if not _same(variants[length], "xla_translation", length, [out[places] for out in plain], outs):
            return False
    return True


def _same(case: Case, hook: str, length: int, wanted: Sequence[np.ndarray], got: Sequence[object]) -> bool:
    """Whether each element is as wanted. Fails if one isn't, unless so many mix after all or depend on their places."""
    for i, (x, y) in enumerate(zip(wanted, got, strict=True)):
        distance = distances(case, x, y)
        if distance.size and float(distance.max()) > ulps_of(case):
            if not _is_the_same_for_each(case):
                return False
            raise case.fail(hook, f"result {i} of {length} elements isn't what each element gives",
                            got=worst(x, y, distance), wanted=f"at most {ulps_of(case):g} ulps apart",
                            todo="compute each element in the same way, whatever their number")
    return True


def _axes_hold(case: Case) -> None:
    """Check along each axis, made longer by repeating what is there, that evaluating and compiling agree."""
    tried = False
    for variant, length in _longer(case):
        tried = True
        evaluated = variant.apply(*variant.args)
        moved = variant.apply(*[_nudged(case, x) for x in variant.args])
        for i, (x, y, z) in enumerate(zip(evaluated, jit(variant.apply)(*variant.args), moved, strict=True)):
            x, y, z = host(x), host(y), host(z)
            if dtypes.is_inexact(x.dtype):
                with np.errstate(all="ignore"):
                    unsure = ~np.isfinite(x) | ~np.isfinite(z) | (np.abs(x - z) > 1e-6 * (1 + np.abs(x)))
                x, y = np.where(unsure, 0, x), np.where(unsure, 0, y)
                found = off(x, y, 64 * length * eps_of(x.dtype), case.atol)
            else:
                found = off(x, y, 0.0) if bool((x == z).all()) else None
            if found:
                raise case.fail(case.blamed("xla_translation", "impl"), f"result {i} of the compiled program isn't "
                                f"impl's if an axis has the size {length}", got=found, wanted="the same for "
                                f"{', '.join(map(str, variant.avals))}", todo="fix the rule that depends on sizes")
    if not tried:
        raise NotApplicable("no axis may have another size")


def _longer(case: Case) -> Iterator[tuple[Case, int]]:
    """The case with all axes of a size longer, else just one axis, where abstract_eval accepts it; in the quick mode
    the first that is accepted."""
    sizes = dict.fromkeys([size for aval in case.avals for size in reversed(aval.shape) if size])
    for size in sizes:
        for length in _ALONG[case.full]:
            one = next((i, k) for i, aval in enumerate(case.avals) for k, s in enumerate(aval.shape) if s == size)
            for only in (None, one):
                args = [x if type(x) in dtypes.PYTHON_SCALARS else _lengthened(host(x), i, size, length, only)
                        for i, x in enumerate(case.args)]
                if sum([x.size for x in map(aval_of, args)]) > _MOST:
                    continue
                variant = case.with_args(args)
                if variant.is_accepted() and sum([aval.size for aval in variant.out_avals]) <= _MOST:
                    yield variant, length
                    if not case.full:
                        return
                    break


def _lengthened(x: np.ndarray, i: int, size: int, length: int, only: tuple[int, int] | None) -> np.ndarray:
    for k in range(x.ndim):
        if x.shape[k] == size and only in (None, (i, k)):
            x = np.take(x, np.arange(length) * size // length, k)  # in the same order, if they are in order
    return x


def _nudged(case: Case, x: Any) -> Any:
    if type(x) in dtypes.PYTHON_SCALARS or not dtypes.is_inexact(aval_of(x).dtype):
        return x
    x = host(x)
    return (x * (1 + 4 * eps_of(x.dtype) * case.rng.choice([-1.0, 1.0], x.shape))).astype(x.dtype)


@check("jvp", full=True, departure=DERIVATIVE)
def jvp_agrees_with_differences_outside_the_domain(case: Case) -> None:
    """Where values are finite and smooth beyond the domain of a sample, tangents still agree with differences."""
    positions = case.differentiable
    refuse_refusals(case, positions)
    domains = case.domains
    if not any([domains[i] for i in positions]):
        raise NotApplicable("it has no domain to leave")
    for side in (-1.0, 1.0):
        args = [_beyond(x, domain, side) if i in positions and domain else x
                for i, (x, domain) in enumerate(zip(case.drawn(), domains, strict=True))]
        function, xs = smooth(case, positions, args), chosen(args, positions)
        agrees(case, function, xs, tuple(positions), 1)


def _beyond(x: Any, domain: tuple[float, float], side: float) -> Any:
    """Numbers of a domain, moved to the next interval of its width on one side."""
    width = domain[1] - domain[0]
    return x + side * width if type(x) in dtypes.PYTHON_SCALARS else (host(x) + side * width).astype(host(x).dtype)
