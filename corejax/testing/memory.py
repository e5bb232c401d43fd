"""Checks of memory: the layout of operands, who may write to it, and who keeps it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from corejax.arrays.array import Array
from corejax.base import dtypes
from corejax.base.avals import Linear, Zero, aval_of
from corejax.base.errors import CorejaxError, CorejaxRuntimeError
from corejax.interpreters.batching import Axis
from corejax.testing.case import Case
from corejax.testing.check import check
from corejax.testing.comparing import host, worst
from corejax.testing.report import NotApplicable
from corejax.testing.tolerances import ULPS, distances, ulps_of

Calls = Iterator[tuple[str, Callable[..., Any], list[list[Any]]]]


@check("impl")
def memory_layout_makes_no_difference(case: Case) -> None:
    """Operands in Fortran order, reversed, with gaps or stride 0, read-only or byte-swapped give the same results."""
    if not any([aval.ndim for aval in case.avals]):
        raise NotApplicable("no operand has an axis")
    wanted = case.apply(*[_contiguous(x) for x in case.args])
    for layout, lay in _LAYOUTS.items():
        args = [lay(_contiguous(x)) if isinstance(x, np.ndarray) and x.size else x for x in case.args]
        if layout == "spread by a stride of 0":
            wanted = case.apply(*[_contiguous(x) for x in args])
        for i, (plain, out) in enumerate(zip(wanted, case.apply(*args), strict=True)):
            distance = distances(case, plain, out)
            if distance.size and float(distance.max()) > max(ULPS, ulps_of(case)):
                raise case.fail("impl", f"result {i} is different if the operands are {layout}",
                                got=worst(plain, out, distance), wanted="the values that contiguous operands give",
                                todo="use no function that depends on strides, such as ravel(order='K') or view")


def _contiguous(x: object) -> Any:
    return np.array(x, order="C") if isinstance(x, np.ndarray) else x


def _reversed(x: np.ndarray) -> np.ndarray:
    every = (slice(None, None, -1),) * x.ndim
    return np.ascontiguousarray(x[every])[every] if x.ndim else x


def _with_gaps(x: np.ndarray) -> np.ndarray:
    wide = np.zeros([2 * size + 1 for size in x.shape], x.dtype)
    every = (slice(1, None, 2),) * x.ndim
    wide[every] = x
    return wide[every] if x.ndim else x


def _spread(x: np.ndarray) -> np.ndarray:
    return np.broadcast_to(x[(slice(0, 1),) * x.ndim], x.shape) if dtypes.is_inexact(x.dtype) else x


def _read_only(x: np.ndarray) -> np.ndarray:
    x.flags.writeable = False
    return x


def _byte_swapped(x: np.ndarray) -> np.ndarray:
    swapped = x.dtype.newbyteorder("S")
    return x if x.dtype.kind == "V" or swapped == x.dtype else x.astype(swapped)


_LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "in Fortran order": lambda x: np.array(x, order="F"), "reversed by negative strides": _reversed,
    "with gaps between elements": _with_gaps, "read-only": _read_only, "of swapped bytes": _byte_swapped,
    "spread by a stride of 0": _spread}


@check("impl")
def no_rule_writes_to_its_operands(case: Case) -> None:
    """No rule changes the arrays and sequences that it gets."""
    if not case.representative:
        raise NotApplicable("another sample represents this one")
    for hook, call, sequences in _calls(case):
        before = [(list(sequence), [_bytes(x) for x in sequence]) for sequence in sequences]
        try:
            call(*sequences, **case.params)
        except (CorejaxError, TypeError, ValueError, NotImplementedError):
            continue  # whether it can be called like this is up to other checks
        for sequence, (items, contents) in zip(sequences, before, strict=True):
            if len(sequence) != len(items) or any([x is not y for x, y in zip(sequence, items, strict=True)]):
                raise case.fail(hook, "it changes the sequence that it gets", got=f"{len(sequence)} other entries",
                                wanted="the sequence as it was", todo="build a new list")
            for i, (x, content) in enumerate(zip(sequence, contents, strict=True)):
                if _bytes(x) != content:
                    raise case.fail(hook, f"it writes to operand {i}", got=str(host(x).tolist())[:80],
                                    wanted="the values as they were",
                                    todo="compute into a new array: no out=, no augmented assignment")


def _calls(case: Case) -> Calls:
    """The rules of the primitive, called as interpreters do: (hook, rule, the sequences that it gets)."""
    rules, avals = case.primitive, list(case.avals)
    if rules.impl is not None:
        yield "impl", rules.impl, [[np.array(host(x)) for x in case.args]]
    yield "abstract_eval", rules.abstract_eval, [avals]
    for hook in ("decompose", "evaluate"):
        if getattr(rules, hook) is not None:
            yield hook, getattr(rules, hook), [_arrays(case.args)]
    if case.inexact:
        tangents = [case.direction(x) if i in case.inexact else Zero(avals[i].tangent)
                    for i, x in enumerate(case.args)]
        yield "jvp", rules.jvp, [_arrays(case.args), _arrays(tangents)]
        cotangents: Any = _arrays([case.direction(x) if dtypes.is_inexact(aval_of(x).dtype) else
                                   Zero(aval_of(x).tangent) for x in case.apply(*case.args)])
        linear = rules.linear or case.inexact
        for positions in [linear] if rules.linear else [[i] for i in linear]:
            operands = [Linear(avals[i].tangent) if i in positions else x for i, x in enumerate(_arrays(case.args))]
            if rules.multiple_results:
                yield "transpose", rules.transpose, [cotangents, operands]
            else:
                yield "transpose", _single(rules.transpose), [cotangents, operands]
    if case.args:
        batched = _arrays([np.stack([host(x)] * 2) for x in case.args])
        yield "vmap", lambda *given, **params: rules.vmap(Axis(2), *given, **params), [batched, [0] * len(case.args)]


def _single(transpose: Callable[..., Any]) -> Callable[..., Any]:
    return lambda cotangents, args, **params: transpose(cotangents[0], args, **params)


def _arrays(values: Sequence[object]) -> list[Any]:
    """Arrays in host memory that could be written to."""
    return [x if isinstance(x, Zero) else Array.from_host(np.array(host(x)), aval_of(x)) for x in values]


def _bytes(x: object) -> tuple[object, ...] | None:
    return (x.shape, x.dtype, host(x).tobytes()) if isinstance(x, np.ndarray) or type(x) is Array else None


@check("impl")
def results_keep_their_values(case: Case) -> None:
    """Results don't change when the caller writes to the operands, or when the primitive is applied again."""
    operands = [np.array(x) if isinstance(x, np.ndarray) else x for x in case.args]
    first = case.apply(*operands)
    before = [host(x).tobytes() for x in first]
    for x in operands:
        if isinstance(x, np.ndarray):
            x[...] = np.zeros_like(x)
    _unchanged(case, first, before, "the caller writes to an operand", "return a copy where a result is an operand, "
               "or a view of one, through an object that hides it")
    try:
        case.apply(*case.drawn())
        case.apply(*[np.zeros_like(x) if isinstance(x, np.ndarray) and not case.keeps(i) else x
                     for i, x in enumerate(case.args)])
    except CorejaxRuntimeError:  # zeros may be outside the domain
        pass
    _unchanged(case, first, before, "the primitive is applied again", "compute into new memory each time")


def _unchanged(case: Case, outs: Sequence[Any], before: Sequence[bytes], when: str, todo: str) -> None:
    for i, (out, content) in enumerate(zip(outs, before, strict=True)):
        if host(out).tobytes() != content:
            raise case.fail("impl", f"result {i} changes when {when}", got=str(host(out).tolist())[:80],
                            wanted=str(np.frombuffer(content, out.dtype).tolist())[:80], todo=todo)
