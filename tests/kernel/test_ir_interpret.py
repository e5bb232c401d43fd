"""Evaluating jaxprs."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from typing import Any, ClassVar

import numpy as np
import pytest
from toys import Toy, add, call, chain, emit, emitted, f64, mul, pair, record, sin, vec

from corejax.base import source
from corejax.base.source import at_hand
from corejax.errors import CorejaxTypeError
from corejax.ir import Jaxpr, JaxprEqn, Var, close, eval_jaxpr, jaxpr_as_fun, structural_key
from corejax.ir.interpret import location


def test_evaluating_binds_each_equation_in_order() -> None:
    jaxpr = record(lambda c, x, y: (add.bind(mul.bind(x, 2.0), c), y, 7, *pair.bind(y)), f64, f64, f64)
    closed = close(jaxpr, [10.0])
    assert [16.0, 4.0, 7, 4.0, -4.0] == eval_jaxpr(closed.jaxpr, closed.consts, 3.0, 4.0)
    assert [16.0, 4.0, 7, 4.0, -4.0] == jaxpr_as_fun(closed)(3.0, 4.0)


def test_evaluating_is_traceable() -> None:
    jaxpr = record(lambda x, y: (add.bind(sin.bind(x), y), *pair.bind(3.0)), f64, f64)
    again = record(lambda x, y: eval_jaxpr(jaxpr, (), x, y), f64, f64)
    assert jaxpr is not again
    assert structural_key(jaxpr) is structural_key(again)


def test_primitives_without_outputs_and_nested_jaxprs() -> None:
    emitted.clear()
    inner = record(lambda x: [emit.bind(x, tag="inner"), sin.bind(x)][1:], f64)
    jaxpr = record(lambda x: call.bind(x, jaxpr=inner), f64)
    assert [np.sin(2.0)] == eval_jaxpr(jaxpr, (), 2.0)
    assert [("inner", 2.0)] == emitted


@pytest.mark.parametrize(("consts", "args"), [((), (1.0, 2.0)), ((1.0,), (1.0,)), ((1.0,), (1.0, 2.0, 3.0)),
                                              ((1.0, 2.0), (1.0,))])
def test_a_wrong_number_of_values_is_refused(consts: Any, args: Any) -> None:
    jaxpr = close(record(lambda c, x, y: x, f64, f64, f64), [1.0]).jaxpr.replace(name="area")
    with pytest.raises(CorejaxTypeError, match=r"the jaxpr of area: wrong number of values\n"
                       r"  got:    \d constants and \d arguments\n  wanted: 1 constants and 2 arguments"):
        eval_jaxpr(jaxpr, consts, *args)


def test_an_unbound_variable_is_named() -> None:
    x, y, z = Var(f64), Var(f64), Var(f64)
    with pytest.raises(CorejaxTypeError, match="equation 0 uses `c`, which is not bound before it"):
        eval_jaxpr(Jaxpr((), [x], [z], [JaxprEqn(sin, [y], [z], {})]), (), 1.0)
    with pytest.raises(CorejaxTypeError, match="its list of outputs uses `b`"):
        eval_jaxpr(Jaxpr((), [x], [y], []), (), 1.0)


class Value:
    """Counts the ones alive."""

    alive: ClassVar[weakref.WeakSet[Any]] = weakref.WeakSet()

    def __init__(self) -> None:
        self.alive.add(self)


def test_intermediate_values_are_freed_after_their_last_use() -> None:
    most = []

    def make(*args: Any) -> Value:
        most.append(len(Value.alive))
        return Value()

    step = Toy("step", lambda avals: avals[0], make)
    split = Toy("split", lambda avals: (avals[0], avals[0]), lambda *args: [make(), make()], multiple_results=True)

    def fun(x: Any) -> Any:
        first = x
        for _ in range(50):
            x = step.bind(x, x, 1.0)
            _, x = split.bind(x)
            step.bind(x)
        return x, first

    jaxpr = record(fun, vec)
    out = eval_jaxpr(jaxpr, (), Value())
    assert 200 == len(most)
    assert max(most) <= 4
    del out
    assert 0 == len(Value.alive)


def test_a_hundred_thousand_equations_evaluate_and_die_without_recursion() -> None:
    jaxpr = chain(100_000)
    eval_jaxpr(chain(10), (), 1.0)
    start = time.perf_counter()
    assert 1 == len(eval_jaxpr(jaxpr, (), 1.0))
    first = time.perf_counter() - start
    assert first < 10
    dead = weakref.ref(jaxpr)
    del jaxpr
    gc.collect()
    assert dead() is None


def test_what_is_bound_meanwhile_inherits_the_place_of_the_equation() -> None:
    places = []
    probe = Toy("probe", lambda avals: avals[0], lambda x: places.append(location()) or x)
    here = (test_what_is_bound_meanwhile_inherits_the_place_of_the_equation.__code__, 4)
    jaxpr = record(lambda x: probe.bind(probe.bind(x)), f64)
    marked = jaxpr.replace(eqns=[jaxpr.eqns[0].replace(source=here), jaxpr.eqns[1]])
    eval_jaxpr(marked, (), 1.0)
    assert here == places[0]
    assert "test_ir_interpret.py" in str(source.describe(places[1]))
    assert location() == source.location() or location() is not None
    assert at_hand.eqn is None


def test_the_replayed_equation_is_restored_by_an_exception_and_belongs_to_its_thread() -> None:
    def fail(x: Any) -> Any:
        seen = []
        thread = threading.Thread(target=lambda: seen.append(at_hand.eqn))
        thread.start()
        thread.join()
        assert [None] == seen and at_hand.eqn is not None
        raise KeyboardInterrupt

    jaxpr = record(lambda x: Toy("fail", lambda avals: avals[0], fail).bind(x), f64)
    with pytest.raises(KeyboardInterrupt):
        eval_jaxpr(jaxpr, (), 1.0)
    assert at_hand.eqn is None


def test_a_jaxpr_as_a_function_has_its_name() -> None:
    assert "area" == jaxpr_as_fun(close(record(lambda x: x, f64).replace(name="area"), [])).__name__
