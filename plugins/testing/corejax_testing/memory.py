"""Checks of memory: the layout of operands, who may write to it, and who keeps it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from corejax import device_put, jit
from corejax.core import Array, Axis, Linear, Zero, aval_of, dtypes
from corejax.errors import CorejaxError, CorejaxRuntimeError
from corejax_testing.case import Case
from corejax_testing.check import check
from corejax_testing.comparing import contents, host, worst
from corejax_testing.probing import is_native, lowered
from corejax_testing.programs import Transformed, transformed
from corejax_testing.report import NotApplicable
from corejax_testing.tolerances import ULPS, distances, ulps_of

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
    """No rule, and nothing native that a program calls, changes the arrays and sequences that it gets."""
    if not case.representative:
        raise NotApplicable("another sample represents this one")
    for hook, call, sequences in _calls(case):
        before = [(list(sequence), [contents(x) for x in sequence]) for sequence in sequences]
        try:
            call(*sequences, **case.params)
        except (CorejaxError, TypeError, ValueError, NotImplementedError):
            continue  # whether it can be called like this is up to other checks
        for sequence, (items, held) in zip(sequences, before, strict=True):
            if len(sequence) != len(items) or any([x is not y for x, y in zip(sequence, items, strict=True)]):
                raise case.fail(hook, "it changes the sequence that it gets", got=f"{len(sequence)} other entries",
                                wanted="the sequence as it was", todo="build a new list")
            for i, (x, content) in enumerate(zip(sequence, held, strict=True)):
                if contents(x) != content:
                    raise case.fail(hook, f"it writes to operand {i}", got=str(host(x).tolist())[:80],
                                    wanted="the values as they were",
                                    todo="compute into a new array: no out=, no augmented assignment")
    _programs_hold(case)


def _programs_hold(case: Case) -> None:
    """Check the programs that call something native, which can write to whatever it gets."""
    for name, hook, fun, args in _native_programs(case):
        hook = case.lowering if name == "it" else hook
        placed = [device_put(x) if isinstance(x, np.ndarray) else x for x in args]
        for how, function in (("", fun), (" when it is compiled", jit(fun)))[:2 if case.full or name == "it" else 1]:
            before = [contents(x) for x in placed]
            try:
                outs = function(*placed)
            except (CorejaxError, TypeError, ValueError, NotImplementedError):
                break
            case.check_unchanged(placed, before, outs, hook, f" of {name}{how}" if name != "it" else how)
        if name == "it" or case.full:
            program = jit(lambda fun=fun, args=args: fun(*args))
            first, second = [[contents(out) for out in program()] for _ in range(2)]
            if first != second:
                raise case.fail(hook, f"it writes to a constant of the program of {name}", got="other results when the "
                                "program runs again", wanted="the same bits",
                                todo="let a native function write to its results alone")


def _native_programs(case: Case) -> list[Transformed]:
    """The primitive and its transformations as functions: those of which programs call something native."""
    found = list[Transformed]()
    with suppress(Exception):  # other checks say what is wrong
        for each in transformed(case):
            if is_native(lowered(each.fun, [aval_of(x) for x in each.args], case.primitive.name)):
                found.append(each)
            elif not found:  # the primitive itself, which comes first: others are about primitives of their own
                break
    return found


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
