"""Checks of programs: a staged program prints, has keys, and is well typed under every transformation."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn
from zlib import crc32

import numpy as np

from corejax import jvp, linearize, make_jaxpr, vjp, vmap
from corejax.core import aval_of, dtypes
from corejax.errors import CorejaxError, CorejaxNotImplementedError, CorejaxTypeError
from corejax.ir import NO_TEXT, ClosedJaxpr, Jaxpr, jaxpr_as_fun, jaxpr_text, param_key, parse_jaxpr, typecheck
from corejax.plugin import find
from corejax_testing.case import Case
from corejax_testing.check import check
from corejax_testing.comparing import host, off, wrong_type
from corejax_testing.report import NotApplicable

#: How far the results of equal programs may be apart, relative to the largest element, for double precision.
RTOL = 1e-12

#: Up to this many operands or results, every subset is tried; for more, as many random subsets.
_FEW = 4


def program_of(case: Case) -> ClosedJaxpr:
    """The program that just binds the primitive."""
    return make_jaxpr(case.apply)(*case.args)


def same(case: Case, hook: str, how: str, wanted: Sequence[object], got: Sequence[object], todo: str) -> None:
    """Raise unless two lists of results agree in type, and in value up to rounding."""
    if len(wanted) != len(got):
        raise case.fail(hook, f"{how}: the number of results differs", got=len(got), wanted=len(wanted), todo=todo)
    for i, (x, y) in enumerate(zip(wanted, got, strict=True)):
        found = wrong_type(aval_of(x), y)
        if found:
            raise case.fail(hook, f"{how}: result {i} has a different type", got=found, wanted=aval_of(x), todo=todo)
        if aval_of(x).dtype == dtypes.float0:
            continue
        narrow = dtypes.is_inexact(aval_of(x).dtype) and np.dtype(aval_of(x).dtype).itemsize < 8
        difference = off(x, y, 1e-2 if narrow else RTOL, case.atol)
        if difference:
            raise case.fail(hook, f"{how}: result {i} has a different value", got=difference, wanted="the same",
                            todo=todo)


def typed(case: Case, hook: str, how: str, jaxpr: Jaxpr, todo: str) -> None:
    """Raise unless a program is well typed."""
    try:
        typecheck(jaxpr)
    except CorejaxError as error:
        raise case.fail(hook, f"{how} is ill typed", got=str(error), wanted="a typed program",
                        todo=todo) from error


def subsets(case: Case, count: int, most: int = 2 ** _FEW) -> Iterator[tuple[bool, ...]]:
    """Every subset of this many things as flags, or a random choice of subsets."""
    if count <= _FEW:
        yield from itertools.product((False, True), repeat=count)
        return
    yield from ((False,) * count, (True,) * count)
    for _ in range(most - 2):
        yield tuple([bool(flag) for flag in case.rng.random(count) < 0.5])


# Text, keys, effects

@check("pretty")
def printed_programs_parse_back(case: Case) -> None:
    """Its program prints, and parses to one that prints and computes the same, unless a param has no text."""
    closed = program_of(case)
    str(closed)
    text = jaxpr_text(closed, pretty=False)
    if NO_TEXT.search(text):
        _refused(case, text)
    todo = "let params be bools, numbers, strings, dtypes, None, jaxprs, or tuples of these"
    try:
        parsed = parse_jaxpr(text, _finder(case))
    except CorejaxError as error:
        raise case.fail("pretty", "what it prints does not parse", got=f"{text}: {error}", wanted="a program",
                        todo=todo) from error
    again = jaxpr_text(ClosedJaxpr(parsed, closed.consts), pretty=False)
    if again != text:
        raise case.fail("pretty", "what it prints is parsed as a different program", got=again, wanted=text, todo=todo)
    same(case, "pretty", "the program read back", case.apply(*case.args),
         jaxpr_as_fun(ClosedJaxpr(parsed, closed.consts))(*case.args), todo)


def _refused(case: Case, text: str) -> NoReturn:
    try:
        parse_jaxpr(text, _finder(case))
    except CorejaxError as error:
        if NO_TEXT.search(str(error)):
            raise NotApplicable("a param has no text: it prints in angle brackets, which is rejected by name") from None
        raise
    raise case.fail("pretty", "a param that prints in angle brackets is parsed", got=text, wanted="a rejection by name",
                    todo="print it as data, or leave the hook `pretty` out")


def _finder(case: Case) -> Callable[[str], Any]:
    return lambda name: case.primitive if name == case.primitive.name else find(name)


@check("abstract_eval")
def params_are_hashable(case: Case) -> None:
    """Params have keys; params built again have equal keys, otherwise each call would compile again."""
    todo = "let params be closed value types, or objects with `__corejax_key__` that says what distinguishes them"
    try:
        hash(param_key(case.params, case.primitive.name))
    except (CorejaxTypeError, TypeError) as error:
        raise case.fail("abstract_eval", "a param is not hashable", got=str(error).partition("\n")[0],
                        wanted="params that are keys of caches", todo=todo) from error
    again = _params_again(case)
    for name, value in case.params.items():
        shown = repr(value)
        if not isinstance(shown, str) or name not in again:
            continue
        if param_key({name: value}) != param_key({name: again[name]}):
            raise case.fail("abstract_eval", f"the param {name!r}, built again, is not equal to itself", got=shown,
                            wanted="equal keys for equal values", todo=todo)


def _params_again(case: Case) -> dict[str, Any]:
    """The sample's params from another run of the hook `samples`; none if the sample isn't from the hook."""
    hook = case.primitive.samples
    again = list(hook(np.random.default_rng(crc32(case.primitive.name.encode())))) if hook else []
    if case.number >= len(again):
        return {}
    args = again[case.number].args
    equal = len(args) == len(case.args) and all([
        aval_of(x) == aval_of(y) and host(x).tobytes() == host(y).tobytes()
        for x, y in zip(args, case.args, strict=True)])
    return again[case.number].params if equal else {}


@check("effects")
def effects_are_a_frozenset(case: Case) -> None:
    """The equation and its program have the same effects, as a frozenset."""
    closed = program_of(case)
    found = [eqn.effects for eqn in closed.jaxpr.eqns if eqn.primitive is case.primitive]
    for effects in found:
        if type(effects) is not frozenset or not effects <= closed.effects:
            raise case.fail("effects", "the effects of the equation are not those of the program", got=effects,
                            wanted=f"a frozenset within {closed.effects}", todo="return frozenset((effect,))")


# Transformed programs

class Transformed(NamedTuple):
    """A transformation of the primitive: the hook that it tests, and a function with operands for it."""

    name: str
    hook: str
    fun: Callable[..., Any]
    args: list[Any]


def transformed(case: Case) -> Iterator[Transformed]:
    """The primitive, and each transformation of it that it has rules for."""
    yield Transformed("it", "abstract_eval", case.apply, list(case.args))
    if case.args:
        yield Transformed("vmap", "vmap", vmap(case.apply), [np.stack([host(x)] * 2) for x in case.args])
    try:
        positions = case.differentiable
    except NotApplicable:
        return
    fun, xs = case.function_of(positions), [case.args[i] for i in positions]
    try:
        outs, pullback = linearize(fun, *xs)
    except CorejaxNotImplementedError:
        return
    n, dots = len(xs), [case.direction(x) for x in xs]
    yield Transformed("jvp", "jvp", lambda *a: jvp(fun, a[:n], a[n:])[1], [*xs, *dots])
    yield Transformed("linearize", "jvp", lambda *a: linearize(fun, *a[:n])[1](*a[n:]), [*xs, *dots])
    yield Transformed("the result of linearize", "jvp", pullback, dots)
    cts = [case.direction(x) if dtypes.is_inexact(aval_of(x).dtype) else np.zeros(aval_of(x).shape, dtypes.float0)
           for x in outs]
    try:
        vjp(fun, *xs)[1](cts)
    except CorejaxNotImplementedError:
        return
    inexact = [i for i, ct in enumerate(cts) if ct.dtype != dtypes.float0]

    def back(*args: Any) -> Any:
        full = list(cts)
        for i, ct in zip(inexact, args[n:], strict=True):
            full[i] = ct
        return list(vjp(fun, *args[:n])[1](full))
    yield Transformed("vjp", "transpose", back, [*xs, *[cts[i] for i in inexact]])


@check("abstract_eval")
def transformed_programs_are_typed(case: Case) -> None:
    """Staged, mapped, differentiated and transposed, it is a well-typed program that computes the same."""
    for name, hook, fun, args in transformed(case):
        closed = make_jaxpr(fun)(*args)
        todo = f"let {hook} do the same with traced values as with arrays"
        typed(case, hook, f"the program of {name}", closed.jaxpr, todo)
        same(case, hook, f"the program of {name}", fun(*args), jaxpr_as_fun(closed)(*args), todo)
