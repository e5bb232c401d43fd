"""Control flow: faults that were found once, by name."""

from __future__ import annotations

import functools
import gc
import threading
import types
import weakref

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import EvalTrace, context

XS = np.arange(3.0)

SCALE = 2.0


def scaled(x):
    return x * SCALE


def twice_as_much(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)
    return wrapper


class Weighted:
    weight = 2.0

    def __init__(self):
        self.factor = 2.0

    def __call__(self, carry, x):
        return carry + x * self.factor, None

    def method(self, carry, x):
        return carry + x * self.factor, None


class AlwaysEqual(Weighted):
    def __eq__(self, other):
        return True

    def __hash__(self):
        return 1


# A function that is used again, after what it reads has changed

def total(body):
    return float(lax.scan(body, 0.0, XS)[0])


def a_global_of_a_helper():
    def body(carry, x):
        return carry + scaled(x), None
    return body, lambda: globals().update(SCALE=3.0)


def a_global_in_a_lambda():
    def body(carry, x):
        return carry + (lambda y: y * SCALE)(x), None
    return body, lambda: globals().update(SCALE=3.0)


def a_decorated_function():
    @twice_as_much
    def body(carry, x):
        return carry + x * SCALE, None
    return body, lambda: globals().update(SCALE=3.0)


def a_list():
    weights = [2.0]
    return lambda carry, x: (carry + x * weights[0], None), lambda: weights.__setitem__(0, 3.0)


def a_dict():
    weights = {"w": 2.0}
    return lambda carry, x: (carry + x * weights["w"], None), lambda: weights.update(w=3.0)


def a_scalar_array():
    weight = np.array(2.0)
    return lambda carry, x: (carry + x * weight, None), lambda: weight.fill(3.0)


def a_large_array():
    weights = np.full(200, 2.0)
    return lambda carry, x: (carry + (x * weights).sum() / 200, None), lambda: weights.fill(3.0)


def an_attribute():
    weighted = Weighted()
    return lambda carry, x: (carry + x * weighted.factor, None), lambda: setattr(weighted, "factor", 3.0)


def a_callable_object():
    weighted = Weighted()
    return weighted, lambda: setattr(weighted, "factor", 3.0)


def a_bound_method():
    weighted = Weighted()
    return weighted.method, lambda: setattr(weighted, "factor", 3.0)


def an_attribute_of_a_class():
    class Own(Weighted):
        pass
    return lambda carry, x: (carry + x * Own.weight, None), lambda: setattr(Own, "weight", 3.0)


def an_attribute_of_a_module():
    module = types.ModuleType("weights")
    module.weight = 2.0
    return lambda carry, x: (carry + x * module.weight, None), lambda: setattr(module, "weight", 3.0)


def an_attribute_of_the_function():
    def body(carry, x):
        return carry + x * body.weight, None
    body.weight = 2.0
    return body, lambda: setattr(body, "weight", 3.0)


def a_variable_of_an_enclosing_function():
    weight = 2.0

    def inner(x):
        return x * weight

    def change():
        nonlocal weight
        weight = 3.0
    return lambda carry, x: (carry + inner(x), None), change


def a_default():
    def body(carry, x, *, weights=[2.0]):  # noqa: B006 (it is what the test is about)
        return carry + x * weights[0], None
    return body, lambda: body.__kwdefaults__["weights"].__setitem__(0, 3.0)


def its_code():
    def body(carry, x):
        return carry + x * 2.0, None
    return body, lambda: setattr(body, "__code__", (lambda carry, x: (carry + x * 3.0, None)).__code__)


def an_argument_of_a_partial():
    weights = [2.0]
    return (functools.partial(lambda w, carry, x: (carry + x * w[0], None), weights),
            lambda: weights.__setitem__(0, 3.0))


def an_iterator():
    weights = iter([2.0, 3.0])
    return lambda carry, x: (carry + x * next(weights), None), lambda: None


def what_it_looks_up_by_name():
    return lambda carry, x: (carry + x * globals()["SCALE"], None), lambda: globals().update(SCALE=3.0)


@pytest.mark.parametrize("changing", [
    a_global_of_a_helper, a_global_in_a_lambda, a_decorated_function, a_list, a_dict, a_scalar_array, a_large_array,
    an_attribute, a_callable_object, a_bound_method, an_attribute_of_a_class, an_attribute_of_a_module,
    an_attribute_of_the_function, a_variable_of_an_enclosing_function, a_default, its_code, an_argument_of_a_partial,
    an_iterator, what_it_looks_up_by_name], ids=lambda f: f.__name__)
def test_a_body_is_traced_again_when_what_it_reads_has_changed(changing, monkeypatch):
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    body, change = changing()
    assert 6.0 == total(body)
    change()
    assert 9.0 == total(body)


def test_equal_callables_are_not_the_same_function():
    one, other = AlwaysEqual(), AlwaysEqual()
    other.factor = 3.0
    assert (6.0, 9.0) == (total(one), total(other))


@pytest.mark.parametrize("call", [
    lambda f: lax.cond(True, f, f, 1.0), lambda f: lax.switch(1, [f, f], 1.0), lambda f: lax.map(f, np.ones(1))[0],
    lambda f: lax.fori_loop(0, 1, lambda i, x: f(x), 1.0), lambda f: cj.checkpoint(f)(1.0),
    lambda f: lax.while_loop(lambda x: x < 2.0, f, 1.0)], ids=["cond", "switch", "map", "fori", "checkpoint", "while"])
def test_each_caller_of_a_function_sees_the_change(call):
    weights = [2.0]

    def f(x):
        return x * weights[0]
    assert 2.0 == call(f)
    weights[0] = 3.0
    assert 3.0 == call(f)


# What is remembered of functions

def test_equal_programs_of_functions_made_anew_share_what_is_derived_from_them():
    def jaxpr():
        return cj.make_jaxpr(lambda c: lax.scan(lambda c, x: (lax.sin(c) * x, c), c, XS))(1.0).eqns[0].params["jaxpr"]
    assert jaxpr() is jaxpr()


def test_a_body_that_refers_to_itself_does_not_outlive_its_loop():
    def run():
        weights = cj.device_put(np.ones(1000))

        def body(carry, x):
            return carry + (weights * x).sum() + 0.0 * len(body.__name__), None
        lax.scan(body, 0.0, XS)
        return weakref.ref(body)

    body = run()
    gc.collect()
    assert body() is None


def test_data_that_a_body_closes_over_does_not_outlive_it():
    def run():
        weights = cj.device_put(np.ones(1000))
        lax.scan(lambda carry, x: (carry + (weights * x).sum(), None), 0.0, XS)
        return weakref.ref(weights)

    weights = run()
    gc.collect()
    assert weights() is None


def test_new_data_of_the_same_type_is_no_new_program():
    def run(weights):
        return cj.make_jaxpr(lambda c: lax.scan(lambda c, x: (c + (weights * x).sum(), None), c, XS))(1.0)
    first, second = run(np.ones(1000)), run(np.zeros(1000))
    assert first.eqns[0].params["jaxpr"] is second.eqns[0].params["jaxpr"]
    assert [1.0, 0.0] == [float(closed.consts[0][0]) for closed in (first, second)]


# Several threads, from cold caches

def test_eight_threads_differentiate_control_flow_at_once():
    def loop(x):
        return lax.scan(lambda c, a: (lax.sin(c * a), c), 0.5, x)[0]

    def choice(x):
        return lax.cond(x[0] > 0, lambda y: (y * y).sum(), lambda y: y.sum(), x)

    def repeated(x):
        return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, 1.0))[1]

    def work():
        barrier.wait()
        found.append([cj.jit(cj.grad(loop))(x), cj.grad(choice)(x), cj.jvp(repeated, (1.5,), (1.0,))[1],
                      cj.vmap(cj.grad(choice))(np.stack([x, -x]))])

    x, found, barrier = np.array([0.5, -1.5, 2.0]), [], threading.Barrier(8)
    cj.clear_caches()
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 8 == len(found)
    for results in found[1:]:
        for got, wanted in zip(results, found[0], strict=True):
            np.testing.assert_array_equal(got, wanted)


# Errors

@pytest.mark.parametrize("error", [KeyboardInterrupt, StopIteration, GeneratorExit, RecursionError])
@pytest.mark.parametrize("call", [
    lambda f: lax.scan(f, 0.0, XS), lambda f: lax.map(f, XS), lambda f: lax.cond(True, lambda x: x, f, 1.0),
    lambda f: lax.while_loop(f, lambda x: x, 0.0), lambda f: lax.while_loop(lambda x: x < 1, f, 0.0),
    lambda f: lax.fori_loop(0, 3, f, 0.0), lambda f: cj.checkpoint(f)(1.0)],
    ids=["scan", "map", "cond", "condition", "while", "fori", "checkpoint"])
def test_an_exception_in_a_body_leaves_no_trace(call, error):
    def body(*args):
        lax.sin(1.0)
        raise error

    for transformed in (lambda: call(body), cj.jit(lambda: call(body)), lambda: cj.grad(lambda x: call(body))(1.0),
                        lambda: cj.vmap(lambda x: call(body), axis_name="i")(XS)):
        with pytest.raises(error):
            transformed()
        assert isinstance(context.trace, EvalTrace)
        assert () == context.axes


# Depth

@pytest.mark.parametrize("kind", ["scan", "cond", "while_loop", "checkpoint"])
def test_thirty_levels_of_nesting(kind):
    def nested(depth, x):
        if depth == 0:
            return lax.sin(x)
        return {"scan": lambda: lax.scan(lambda c, a: (nested(depth - 1, c), None), x, np.ones(1))[0],
                "cond": lambda: lax.cond(x > -9.0, lambda x: nested(depth - 1, x), lambda x: x, x),
                "while_loop": lambda: lax.while_loop(
                    lambda c: c[0] < 1, lambda c: (c[0] + 1, nested(depth - 1, c[1])), (0, x))[1],
                "checkpoint": lambda: cj.checkpoint(lambda x: nested(depth - 1, x))(x)}[kind]()

    derivative = (lambda f: lambda x: cj.jvp(f, (x,), (1.0,))[1]) if kind == "while_loop" else cj.grad
    np.testing.assert_allclose(derivative(cj.jit(lambda x: nested(30, x)))(0.3), np.cos(0.3))
