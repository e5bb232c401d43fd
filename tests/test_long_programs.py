"""Programs of 100,000 equations: everything that is done to a program takes linear time and a flat stack.

Time is counted in calls, of Python and of C functions, which no other load on the machine changes. Every operation runs
on a thread of its own with a stack that is too low for any recursion over equations.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import (
    eval_jaxpr,
    jvp_jaxpr,
    partial_eval_jaxpr,
    split_jaxpr,
    transpose_jaxpr,
    vmap_jaxpr,
)
from corejax.ir import count_eqns, dce, inline, jaxpr_text, parse_jaxpr, structural_key, substitute, typecheck
from corejax.kernel.jaxpr import Jaxpr, Var
from exhaustive import exhaustive_unless

SMALL, LARGE, HUGE = 200, 2_000, 100_000
FLAT = 220  # frames: what the deepest operation needs for a program of ten equations

Function = Callable[..., Any]


# Programs of n equations

def chain(n: int) -> Function:
    """Each value is used once."""
    def fun(x: Any) -> Any:
        for _ in range(n // 2):
            x = lax.add(lax.sin(x), 0.5)
        return x
    return fun


def wide(n: int) -> Function:
    """One value is used n / 2 times, so that as many cotangents flow into it."""
    def fun(x: Any) -> Any:
        y, total = lax.sin(x), x
        for i in range(n // 2):
            total = lax.add(total, lax.mul(y, 1.0 / (i + 1)))
        return total
    return fun


def many_operands(n: int) -> Function:
    """One equation has n operands."""
    def fun(x: Any) -> Any:
        return lax.reduce_sum(lax.concatenate([lax.mul(lax.reshape(x, (1,)), 0.5) for _ in range(n // 2)], 0), (0,))
    return fun


SHAPES = [chain, wide, many_operands]


# What is done to them: a function that prepares, and returns what is to be counted

def _staged(fun: Function) -> Jaxpr:
    return cj.make_jaxpr(fun)(0.5).jaxpr  # type: ignore[no-any-return]


def _tangents(fun: Function) -> Jaxpr:
    """The jaxpr of primal and tangent."""
    return jvp_jaxpr(_staged(fun), (True,))[0]


def _linear_part(fun: Function) -> tuple[Jaxpr, tuple[bool, ...]]:
    """The linear part of the derivative, and which of its inputs is the tangent."""
    staged = split_jaxpr(_tangents(fun), (False, True), True).staged
    return staged, (*[False] * (len(staged.invars) - 1), True)


def _then(prepare: Function, work: Function) -> Function:
    """An operation on what `prepare` makes of a function."""
    def operation(fun: Function) -> Function:
        made = prepare(fun)
        return lambda: work(made)
    return operation


_VECTOR = np.ones(3)

OPERATIONS: dict[str, Function] = {
    "trace": lambda fun: lambda: cj.make_jaxpr(fun)(0.5),
    "jvp": lambda fun: lambda: cj.make_jaxpr(lambda x: cj.jvp(fun, (x,), (x,)))(0.5),
    "grad": lambda fun: lambda: cj.make_jaxpr(cj.grad(fun))(0.5),
    "vmap": lambda fun: lambda: cj.make_jaxpr(cj.vmap(fun))(_VECTOR),
    "vmap of grad": lambda fun: lambda: cj.make_jaxpr(cj.vmap(cj.grad(fun)))(_VECTOR),
    "grad of grad": lambda fun: lambda: cj.make_jaxpr(cj.grad(cj.grad(fun)))(0.5),
    "eager grad": lambda fun: lambda: cj.grad(fun)(0.5),
    "lowering": lambda fun: lambda: cj.jit(lambda x: fun(x)).lower(0.5),
    "lowering grad of jit": lambda fun: lambda: cj.jit(cj.grad(cj.jit(lambda x: fun(x)))).lower(0.5),
    "vmap of jit": lambda fun: lambda: cj.make_jaxpr(cj.vmap(cj.jit(lambda x: fun(x))))(_VECTOR),
    "evaluate": _then(_staged, lambda jaxpr: eval_jaxpr(jaxpr, (), np.float64(0.5))),
    "jvp_jaxpr": _then(_staged, lambda jaxpr: jvp_jaxpr(jaxpr, (True,))),
    "vmap_jaxpr": _then(_staged, lambda jaxpr: vmap_jaxpr(jaxpr, 3, None, (0,))),
    "partial evaluation": _then(_tangents, lambda jaxpr: partial_eval_jaxpr(jaxpr, (False, True))),
    "splitting": _then(_tangents, lambda jaxpr: split_jaxpr(jaxpr, (False, True), True)),
    "transposing": _then(_linear_part, lambda part: transpose_jaxpr(*part, (False, True))),
    "structural key": _then(_staged, structural_key),
    "printing": _then(_staged, jaxpr_text),
    "parsing": _then(lambda fun: jaxpr_text(_staged(fun)), parse_jaxpr),
    "type check": _then(_staged, typecheck),
    "dce": _then(_tangents, lambda jaxpr: dce(jaxpr, (False, True))),
    "inlining": _then(_staged, lambda jaxpr: inline(jaxpr, jaxpr.invars)),
    "substituting": _then(_staged, lambda jaxpr: substitute(jaxpr, {jaxpr.invars[0]: Var(jaxpr.invars[0].aval)})),
}


# Counting

def on_low_stack(work: Function, frames: int = FLAT) -> Any:
    """Run it on a thread of its own with room for so many frames."""
    results: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    limit = sys.getrecursionlimit()
    thread = threading.Thread(target=run)
    sys.setrecursionlimit(frames)
    try:
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
    if errors:
        raise errors[0]
    return results[0]


def calls_of(work: Function, events: Sequence[str] = ("call", "c_call")) -> int:
    """How many functions are called, of Python ("call") and of C ("c_call")."""
    count = 0

    def on_event(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        if event in events:
            count += 1

    previous = sys.getprofile()
    sys.setprofile(on_event)
    try:
        work()
    finally:
        sys.setprofile(previous)
    return count


def quadratic(n: int) -> None:
    for _ in range(n):
        list(map(abs, range(n)))
        for _ in range(n // 100):
            abs(n)


def test_a_quadratic_operation_would_be_found() -> None:
    assert 20 * calls_of(lambda: quadratic(SMALL)) < calls_of(lambda: quadratic(LARGE))


def test_recursion_over_equations_would_be_found() -> None:
    def recursive(n: int) -> int:
        return 0 if not n else 1 + recursive(n - 1)

    with pytest.raises(RecursionError):
        on_low_stack(lambda: recursive(LARGE))


@pytest.mark.sample(24)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
@pytest.mark.parametrize("name", OPERATIONS)
def test_ten_times_the_equations_take_ten_times_the_calls_and_no_deeper_stack(name: str, shape: Function) -> None:
    operation = OPERATIONS[name]
    operation(shape(10))()  # rules are loaded and caches of types are filled
    small = calls_of(operation(shape(SMALL)))
    large = on_low_stack(lambda: calls_of(operation(shape(LARGE))))
    assert 1 <= large <= 10.5 * small


@pytest.mark.slow
@pytest.mark.parametrize("name", exhaustive_unless(lambda name: name in ("trace", "grad"), [
    "trace", "jvp", "grad", "vmap", "lowering", "lowering grad of jit"]))
def test_a_hundred_thousand_equations(name: str) -> None:
    on_low_stack(OPERATIONS[name](chain(HUGE)))


@pytest.mark.exhaustive
def test_a_hundred_thousand_equations_from_text_to_text() -> None:
    def there_and_back() -> tuple[Jaxpr, Jaxpr]:
        jaxpr = _staged(wide(HUGE))
        text = jaxpr_text(jaxpr)
        back = parse_jaxpr(text, lambda name: getattr(lax, name).primitive)
        assert text == jaxpr_text(back)
        return jaxpr, back

    jaxpr, back = on_low_stack(there_and_back)
    assert HUGE < count_eqns(jaxpr) == count_eqns(back)
    assert structural_key(jaxpr) is structural_key(back)


@pytest.mark.exhaustive
def test_a_value_used_a_hundred_thousand_times_gets_all_its_cotangents() -> None:
    n = HUGE // 2
    slope = on_low_stack(lambda: cj.grad(wide(HUGE))(0.5))
    np.testing.assert_allclose(slope, 1.0 + np.cos(0.5) * (1.0 / np.arange(1, n + 1)).sum(), rtol=1e-12)


# Programs within programs: the stack grows with how deep they are nested, and there is room for fifty

def nested(depth: int) -> Function:
    def innermost(x: Any) -> Any:
        return lax.sin(x)

    def around(inner: Function) -> Function:
        return cj.jit(lambda x: lax.mul(inner(x), 2.0))

    fun: Function = innermost
    for _ in range(depth):
        fun = around(fun)
    return fun


@pytest.mark.parametrize("name", OPERATIONS)
def test_fifty_jits_within_each_other(name: str) -> None:
    on_low_stack(lambda: OPERATIONS[name](nested(50))(), 1_000)


@pytest.mark.parametrize("name", ["jvp", "vmap of grad", "lowering grad of jit"])
def test_calls_for_programs_within_programs_grow_with_their_depth(name: str) -> None:
    operation = OPERATIONS[name]
    operation(nested(2))()

    def calls(depth: int) -> int:
        # Of Python functions: finding the user's place in the code walks up the stack, frame by frame, in C.
        return on_low_stack(lambda: calls_of(operation(nested(depth)), ["call"]), 1_000)  # type: ignore[no-any-return]

    assert calls(50) <= 11 * calls(5)


def test_fifty_jits_within_each_other_have_the_right_derivatives() -> None:
    value, slope = on_low_stack(lambda: cj.value_and_grad(nested(50))(0.5), 1_000)
    np.testing.assert_allclose([value, slope], [2.0**50 * np.sin(0.5), 2.0**50 * np.cos(0.5)], rtol=1e-12)
