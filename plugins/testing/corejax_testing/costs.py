"""Checks of what rules cost: programs don't grow with batches and operands, as those of Python loops do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from corejax import config, jvp, make_jaxpr, vjp, vmap
from corejax.core import ShapedArray, default_platform, dtypes, lower_module, stage_closed
from corejax.errors import CorejaxError, CorejaxNotImplementedError
from corejax.ir import Jaxpr, subjaxprs
from corejax_testing.case import Case
from corejax_testing.check import check
from corejax_testing.report import NotApplicable

Dims = tuple[int | None, ...]
Avals = Sequence[ShapedArray]

#: Batches, and multiples of sizes. What doubles the distance doubles the equations if they come from a loop; rules
#: that halve what is left take as many more for each doubling.
_BATCHES, _TIMES = (2, 4, 8), (1, 2, 4)

_TODO = "use operations of whole arrays, or lax.scan; or exempt the sample from this check, with the reason"


def equations(jaxpr: Jaxpr) -> int:
    """The number of equations, with those of the programs in their params."""
    return sum([1 + sum(map(equations, subjaxprs(eqn.params))) for eqn in jaxpr.eqns])


def growth(counts: Iterator[int]) -> str | None:
    """How counts grow with sizes, each twice the one before, if in proportion; None if they don't."""
    first, second = next(counts), next(counts)
    if second <= first:
        return None
    third = next(counts)
    return f"{first}, {second}, {third}" if third - second > 1.5 * (second - first) else None


# Maps

@check("vmap", costly=True)
def maps_cost_the_same_for_any_batch(case: Case) -> None:
    """The program of a map has as many equations for a large batch as for a small one."""
    if not _stands_for_its_params(case):
        raise NotApplicable("another sample represents this one")
    for dims in _layouts(case):
        def count(size: int, dims: Dims = dims) -> int:
            types = [aval.update(shape=aval.shape if dim is None else (size, *aval.shape), weak_type=False)
                     for aval, dim in zip(case.avals, dims, strict=True)]
            return equations(make_jaxpr(vmap(case.apply, in_axes=dims))(*types).jaxpr)

        try:
            with config(fallbacks="error"):  # a map without a rule has its own check
                found = growth(map(count, _BATCHES))
        except CorejaxNotImplementedError as error:
            raise NotApplicable("it can't be mapped") from error
        if found:
            raise case.fail("vmap", f"the program of a map grows with the batch, with in_axes={dims}",
                            got=f"{found} equations for {_listed(_BATCHES)} rows", wanted="as many for each batch",
                            todo=_TODO)


def _layouts(case: Case) -> Iterator[Dims]:
    """All operands mapped, then each alone."""
    n = len(case.avals)
    if not n:
        raise NotApplicable("it has no operands")
    yield (0,) * n
    if n > 1:
        yield from [tuple([0 if i == k else None for i in range(n)]) for k in range(min(n, 3))]


# Derivatives and lowerings

@check("jvp", costly=True)
def derivatives_cost_the_same_for_any_size(case: Case) -> None:
    """Programs of derivatives have as many equations for large operands as for small ones."""
    positions = case.inexact
    if not positions:
        raise NotApplicable("no operand has a derivative")

    def forward(avals: Avals) -> int:
        n, dots = len(avals), [avals[i] for i in positions]
        return _staged(lambda *a: jvp(case.function_of(positions, a[:n]), [a[i] for i in positions], a[n:]),
                       avals, dots)

    def reverse(avals: Avals) -> int:
        n, outs = len(avals), _out_avals(case, avals)
        cts = [aval for aval in outs if dtypes.is_inexact(aval.dtype)]

        def back(*args: Any) -> Any:
            given = iter(args[n:])
            _, pullback = vjp(case.function_of(positions, args[:n]), *[args[i] for i in positions])
            return list(pullback([next(given) if dtypes.is_inexact(aval.dtype) else
                                  np.zeros(aval.shape, dtypes.float0) for aval in outs]))
        return _staged(back, avals, cts)

    scaled = _scaled(case)
    roads: tuple[tuple[str, Callable[[Avals], int]], ...] = (("jvp", forward), ("transpose", reverse))
    for hook, count in roads:
        counts = map(count, map(scaled, _TIMES))
        try:
            first = next(counts)
        except CorejaxError as error:  # it has none, or others say what is wrong with it
            raise NotApplicable("it has no derivative") from error
        found = growth(chain((first,), counts))
        if found:
            raise case.fail(hook, "the program of the derivative grows with the size of operands",
                            got=f"{found} equations for {_shown(scaled)}", wanted="as many for each size", todo=_TODO)


@check("xla_translation", costly=True)
def lowerings_cost_the_same_for_any_size(case: Case) -> None:
    """What it is compiled from has as many operations for large operands as for small ones."""
    scaled = _scaled(case)

    def count(avals: Avals) -> int:
        jaxpr = stage_closed(case.apply, list(avals))
        return str(lower_module(jaxpr, (), case.primitive.name, default_platform()).module).count("\n")

    found = growth(map(count, map(scaled, _TIMES)))
    if found:
        derived = case.primitive.providers.get("xla_translation") == "derived"
        raise case.fail("decompose" if derived else "xla_translation",
                        "the program that is compiled grows with the size of operands",
                        got=f"{found} lines for {_shown(scaled)}", wanted="as many for each size", todo=_TODO)


def _stands_for_its_params(case: Case) -> bool:
    """Whether this is the (first) largest of the samples with its params, if possible with a derivative."""
    alike = [sample for sample in case.samples if sample.error is None and sample.params == case.params]

    def weight(k: int) -> tuple[bool, int]:
        other = Case(case.primitive, alike[k], 0)
        return bool(other.doubles), sum([aval.size for aval in other.avals])
    return not alike or alike[max(range(len(alike)), key=weight)] is case.sample


def _scaled(case: Case) -> Callable[[int], Avals]:
    """The types of the operands with axes so many times as long: all axes, else those of one size, as it accepts."""
    if not _stands_for_its_params(case):
        raise NotApplicable("another sample represents this one")
    sizes = sorted({n for aval in case.avals for n in aval.shape if n > 1})
    count = len(case.out_avals)
    for chosen in (sizes, *[[n] for n in sizes if len(sizes) > 1]):
        def scaled(times: int, chosen: Sequence[int] = chosen) -> Avals:
            return [aval.update(shape=tuple([n * times if n in chosen else n for n in aval.shape]))
                    for aval in case.avals]
        try:
            if sizes and all([len(_out_avals(case, scaled(times))) == count for times in _TIMES]):
                return scaled
        except Exception:  # whatever it says, it doesn't accept them
            continue
    raise NotApplicable("it takes operands of no other size with these params")


def _out_avals(case: Case, avals: Avals) -> list[ShapedArray]:
    outs = case.primitive.infer(tuple(avals), case.params)
    return list(outs) if case.primitive.multiple_results else [outs]


def _staged(function: Callable[..., Any], avals: Avals, more: Avals) -> int:
    types = [aval.update(weak_type=False) for aval in more]
    return equations(make_jaxpr(function)(*avals, *types).jaxpr)


def _shown(scaled: Callable[[int], Avals]) -> str:
    return _listed([f"({', '.join(map(str, scaled(times)))})" for times in _TIMES])


def _listed(items: Sequence[object]) -> str:
    return f"{', '.join(map(str, items[:-1]))} and {items[-1]}"
