"""Custom rules that close over values traced outside: every place, every way between, every transformation around."""

from __future__ import annotations

import gc
import sys
import types
import weakref
from contextvars import ContextVar
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import eval_jaxpr
from corejax.errors import CorejaxTypeError, LeakedTracerError
from corejax.kernel.keys import structural_key
from outer_values import Case, cases

REFUSAL = "is differentiated with respect to a value that it closes over"


def evaluate(closed, *args):
    return eval_jaxpr(closed.jaxpr, closed.consts, *args)[0]


def check(case: Case) -> None:
    for asked in case.asked():
        wanted = case.expected(asked)
        if wanted is None:
            with pytest.raises(CorejaxTypeError, match=REFUSAL):
                case.run(cj, asked, evaluate)
            continue
        try:
            found = [case.run(cj, asked, evaluate) for _ in range(2)]
        except CorejaxTypeError as error:
            if case.may_be_refused(asked) and REFUSAL in error.message:
                continue
            raise AssertionError(f"{case}, {asked}: {error}") from error
        np.testing.assert_allclose(np.array(found, float), wanted, rtol=1e-4, atol=1e-5, err_msg=f"{case}, {asked}")


@pytest.mark.sample(60)
@pytest.mark.parametrize("case", cases(), ids=str)
def test_rules_read_values_that_are_traced_outside(case):
    check(case)


def in_jax(case: Case, asked: str) -> float | None:
    """What jax computes; None if it refuses what ours takes, which it does in many words."""
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)

    def run(closed, *xs):
        return jax.core.eval_jaxpr(closed.jaxpr, closed.consts, *xs)[0]

    try:
        return float(case.run(jax, asked, run))
    except Exception:
        return None


def test_jax_accepts_most_cases():
    every = [(case, asked) for case in cases()[::100] for asked in case.asked()]
    assert len(every) / 2 < len([each for each in every if in_jax(*each) is not None])


@pytest.mark.sample(40)
@pytest.mark.parametrize("case", cases(), ids=str)
def test_what_jax_accepts_comes_out_as_by_hand(case):
    """Also the case's refusals: jax takes such derivatives for zero, or refuses too."""
    for asked in case.asked():
        theirs = in_jax(case, asked)
        if theirs is None:
            continue
        wanted = case.expected(asked)
        if wanted is None or (theirs == 0.0 and case.is_differentiated):
            assert theirs == 0.0, (asked, theirs)
        else:
            np.testing.assert_allclose(theirs, wanted, rtol=1e-4, atol=1e-5, err_msg=f"{case}, {asked}")


# How a function reads a value

class Holder:
    __slots__ = ("y",)

    def __init__(self, y):
        self.y = y

    def rule(self, xs, dots):
        return 2.0 * xs[0], self.y * dots[0]


GLOBAL, RATE, RATES = Holder(None), None, [None]
SETTINGS = types.ModuleType("settings")


class Kept:
    y = None


KEPT = Kept()


def set_globals(value):
    global RATE
    GLOBAL.y = SETTINGS.y = Kept.y = RATE = RATES[0] = value


def read_rate():
    return RATE


READERS = {
    "number": lambda: RATE, "slot": lambda: GLOBAL.y, "list": lambda: RATES[0], "module": lambda: SETTINGS.y,
    "class": lambda: Kept.y, "class of an instance": lambda: KEPT.y, "helper": lambda: read_rate(),
    "function within": lambda: sum(RATE for _ in range(1)),
}


def of_global(xs, dots):
    return 2.0 * xs[0], GLOBAL.y * dots[0]


def by_global(y):
    GLOBAL.y = y
    return of_global


class Pair(NamedTuple):
    x: object
    y: object


def by_named_tuple(y):
    pair = Pair(0.0, y)
    return lambda xs, dots: (2.0 * xs[0], pair.y * dots[0])


def by_attribute(y):
    holder = Holder(y)
    return lambda xs, dots: (2.0 * xs[0], holder.y * dots[0])


def by_default(y):
    return lambda xs, dots, y=y: (2.0 * xs[0], y * dots[0])


def by_keyword(y):
    return lambda xs, dots, *, y=y: (2.0 * xs[0], y * dots[0])


def by_container(y):
    table = {"rates": [y]}
    return lambda xs, dots: (2.0 * xs[0], table["rates"][0] * dots[0])


def by_helper(y):
    def helper(dot):
        return y * dot
    return lambda xs, dots: (2.0 * xs[0], helper(dots[0]))


def by_jitted_helper(y):
    helper = cj.jit(lambda dot: y * dot)
    return lambda xs, dots: (2.0 * xs[0], helper(dots[0]))


def by_linear_function(y):
    back = cj.vjp(lambda z: z * y, 1.0)[1]
    return lambda xs, dots: (2.0 * xs[0], back(dots[0])[0])


def by_class(y):
    class Rule:
        @staticmethod
        def apply(xs, dots):
            return 2.0 * xs[0], y * dots[0]

    return lambda xs, dots: Rule.apply(xs, dots)


def by_method_of_a_container(y):
    get = {"y": y}.get
    return lambda xs, dots: (2.0 * xs[0], get("y") * dots[0])


def by_item_method(y):
    item = [0.0, y].__getitem__
    return lambda xs, dots: (2.0 * xs[0], item(1) * dots[0])


def by_base_class(y):
    class Base:
        rate = y

    class Derived(Base):
        pass

    derived = Derived()
    return lambda xs, dots: (2.0 * xs[0], 0.5 * (derived.rate + Derived.rate) * dots[0])


def by_array_of_objects(y):
    objects = np.empty(2, object)
    objects[1] = y
    return lambda xs, dots: (2.0 * xs[0], objects[1] * dots[0])


def by_long_list(y):
    values = [*[0.0] * 20_000, y]
    return lambda xs, dots: (2.0 * xs[0], values[-1] * dots[0])


def by_context(y):
    variable = ContextVar("rate")
    variable.set(y)
    return lambda xs, dots: (2.0 * xs[0], variable.get() * dots[0])


def by_weak_reference(y):
    holder = weakref.ref(HOLDERS.setdefault("rate", Keeps()))
    holder().y = y
    return lambda xs, dots: (2.0 * xs[0], holder().y * dots[0])


class Keeps:
    pass


HOLDERS = {}
WAYS = [by_method_of_a_container, by_item_method, by_base_class, by_array_of_objects, by_long_list, by_context,
        by_weak_reference, by_global, by_named_tuple, by_attribute, by_default, by_keyword, by_container, by_helper,
        by_jitted_helper, by_linear_function, by_class, lambda y: Holder(y).rule,
        lambda y: partial(lambda y, xs, dots: (2.0 * xs[0], y * dots[0]), y),
        lambda y: cj.jit(lambda xs, dots: (2.0 * xs[0], y * dots[0]))]


@pytest.mark.parametrize("way", WAYS)
def test_a_rule_may_reach_a_traced_value_in_many_ways(way):
    def program(y):
        f = cj.custom_jvp(lambda x: 2.0 * x)
        f.defjvp(way(y))
        return cj.grad(cj.jit(f))(1.0)

    assert 3.0 == cj.jit(program)(3.0)
    assert 1.0 == cj.grad(program)(3.0)
    assert 5.0 == program(5.0)
    np.testing.assert_array_equal([3.0, 4.0], cj.vmap(program)(np.array([3.0, 4.0])))


def test_a_value_that_cannot_be_found_beforehand_is_told_truly():
    def program(y):
        Kept.y = y
        f = cj.custom_jvp(lambda x: 2.0 * x)
        f.defjvp(lambda xs, dots: (2.0 * xs[0], vars(sys.modules[__name__])["Kept"].y * dots[0]))
        return cj.grad(cj.jit(f))(1.0)

    with pytest.raises(LeakedTracerError, match="reads a traced value that isn't an operand of that program") as caught:
        cj.jit(program)(3.0)
    assert "instead of fetching it from" in caught.value.todo


def test_a_function_that_outlives_what_it_closes_over_is_told_so():
    kept = []

    def program(y):
        f = cj.custom_jvp(lambda x: 2.0 * x)
        f.defjvp(lambda xs, dots: (2.0 * xs[0], y * dots[0]))
        kept.append(f)
        return y

    cj.jit(program)(1.0)
    for transform in (cj.grad, lambda f: cj.jit(cj.grad(cj.jit(f)))):
        with pytest.raises(LeakedTracerError, match="the jvp rule of <lambda> closes over a value of a tr"):
            transform(kept[0])(1.0)


def test_the_refusal_names_the_variable_the_function_and_its_line():
    def scaled(x):
        return x * rate

    f = cj.custom_jvp(scaled)
    f.defjvp(lambda xs, dots: (f(*xs), dots[0]))

    def program(y):
        nonlocal rate
        rate = y
        return cj.jit(f)(1.0)

    rate = 1.0
    with pytest.raises(CorejaxTypeError, match=f"scaled {REFUSAL}") as caught:
        cj.grad(program)(2.0)
    assert "rate (f64[])" in caught.value.got or "rate (~f64[])" in caught.value.got
    assert __file__ in caught.value.where
    assert "scaled" in caught.value.todo


# What stays behind

def twice(f):
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]


@pytest.mark.parametrize("values", [(1.0, 2.0), (np.float64(1.0), np.float64(2.0)), (np.ones(1), 2 * np.ones(1)),
                                    (cj.device_put(1.0), cj.device_put(2.0)), ([1.0], [2.0])])
def test_the_same_function_reads_what_its_variables_are_now(values):
    rate = None
    f = cj.custom_jvp(lambda x: lax.sin(x))
    f.defjvp(lambda xs, dots: (f(*xs), dots[0] * (rate[0] if isinstance(rate, list) else rate.sum()
                                                  if hasattr(rate, "sum") else rate)))
    for carried, power in ((twice, 2), (cj.checkpoint, 1), (lambda f: lambda x: lax.cond(x > 0.0, f, f, x), 1)):
        for value, wanted in zip(values, (1.0, 2.0), strict=True):
            rate = value
            assert wanted ** power == float(cj.grad(carried(f))(1.0))
    array = np.ones(1)
    rate = array
    assert 1.0 == cj.grad(twice(f))(1.0)
    array[0] = 3.0
    assert 9.0 == cj.grad(twice(f))(1.0)


@pytest.mark.parametrize("reader", READERS)
def test_the_same_rule_reads_what_global_variables_are_now(reader):
    read = READERS[reader]
    f = cj.custom_jvp(lambda x: lax.sin(x))
    f.defjvp(lambda xs, dots: (f(*xs), dots[0] * read()))

    def program(value):
        set_globals(value)
        return cj.grad(twice(f))(1.0) + cj.grad(f)(1.0) * cj.grad(cj.jit(lambda x: f(x)))(1.0)

    for value in (1.0, 3.0, 1.0):
        assert 2.0 * value ** 2 == float(program(value))
    np.testing.assert_array_equal([8.0, 18.0], cj.vmap(program)(np.array([2.0, 3.0])))
    assert 50.0 == cj.jit(program)(5.0)
    assert 0.0 == cj.grad(lambda y: 0.0 * program(y))(1.0)
    set_globals(None)


def test_a_traced_global_is_refused_as_truly_as_a_variable():
    f = cj.custom_jvp(lambda x: x * RATE)
    f.defjvp(lambda xs, dots: (f(*xs), dots[0]))

    def program(y):
        set_globals(y)
        return f(2.0)

    for transformed in (program, cj.jit(program)):
        with pytest.raises(CorejaxTypeError, match=REFUSAL):
            cj.grad(transformed)(1.0)
    set_globals(None)


@pytest.mark.parametrize("large", [[0.5] * 20_000, {str(i): i for i in range(20_000)}, np.ones(20_000),
                                   [[1.0, -0.0] for _ in range(2_000)]], ids=lambda x: type(x).__name__)
def test_a_rule_that_reads_much_is_known_again(large):
    f = cj.custom_jvp(lambda x: x + 0.0)
    f.defjvp(lambda xs, dots: (f(*xs), dots[0] * len(large)))
    first, again = [cj.make_jaxpr(lambda x: f(x))(1.0).jaxpr for _ in range(2)]
    assert structural_key(first) == structural_key(again)
    assert not first.is_unique


def test_what_cannot_be_compared_is_like_nothing_else():
    numbers = iter([1.0, 3.0])  # how far it has come can't be seen
    f = cj.custom_jvp(lambda x: x + 0.0)
    f.defjvp(lambda xs, dots: (f(*xs), dots[0] * next(numbers)))
    first, again = [cj.make_jaxpr(lambda x: f(x))(1.0).jaxpr for _ in range(2)]
    assert structural_key(first) != structural_key(again)
    assert first.is_unique
    assert [1.0, 3.0] == [float(cj.grad(cj.jit(lambda x: f(x)))(1.0)) for _ in range(2)]


def test_no_cache_keeps_a_traced_value_alive():
    refs = []

    def program(y):
        z = 2.0 * y
        refs.append(weakref.ref(z))
        f = cj.custom_jvp(lambda x: x + 0.0)
        f.defjvp(lambda xs, dots: (f(*xs), dots[0] * z))
        return cj.grad(twice(f))(1.5)

    gc.disable()  # so that it doesn't depend on what ran before which cycles are gone
    try:
        cj.vmap(program)(np.arange(3.0))
        cj.vmap(lambda y: cj.jit(lambda y: program(y))(y))(np.arange(3.0))
        cj.grad(program)(1.0)
        gc.collect()
    finally:
        gc.enable()
    assert 3 == len(refs)
    assert [None] * 3 == [ref() for ref in refs]


def test_pullbacks_take_what_their_rules_read_with_them():
    def pullback(y):
        f = cj.custom_vjp(lambda x: x * 2.0)
        f.defvjp(lambda x: (x * 2.0, None), lambda _, ct: (ct * y,))
        return cj.vjp(cj.jit(f), 1.0)[1]

    assert 5.0 == cj.jit(pullback)(5.0)(1.0)[0]
    backs = cj.vmap(pullback)(np.array([2.0, 3.0]))
    np.testing.assert_array_equal([2.0, 3.0], cj.vmap(lambda back: back(1.0)[0])(backs))


def test_functions_that_look_at_values_may_close_over_traced_ones():
    def program(y):
        f = cj.custom_jvp(lambda x: x * y if x > 0.0 else x)
        f.defjvp(lambda xs, dots: (f(*xs), dots[0] * (y if xs[0] > 0.0 else 1.0)))
        return cj.grad(f)(1.0)

    np.testing.assert_array_equal([2.0, 3.0], cj.vmap(program)(np.array([2.0, 3.0])))
    assert 1.0 == cj.grad(program)(2.0)


def test_a_derivative_that_nobody_needs_is_no_error():
    def program(y):
        f = cj.custom_vjp(lambda x: (x * y, 3.0 * x))
        f.defvjp(lambda x: (f(x), None), lambda _, cts: (5.0 * cts[0] + 3.0 * cts[1],))
        return f

    for carried in (lambda f: f, cj.jit, cj.checkpoint):
        assert 2.0 == cj.grad(lambda y: carried(program(y))(1.0)[1] + 2.0 * y)(1.0)  # noqa: B023
        assert 0.0 == cj.grad(lambda y: cj.grad(lambda x: carried(program(y))(x)[0])(1.0))(1.0)  # noqa: B023
        with pytest.raises(CorejaxTypeError, match=REFUSAL):
            cj.grad(lambda y: carried(program(y))(1.0)[0])(1.0)  # noqa: B023


def test_forward_mode_within_jit_leaves_out_what_nobody_needs():
    def program(y):
        f = cj.custom_jvp(lambda x: x * y)
        f.defjvp(lambda xs, dots: (f(*xs), dots[0] * 3.0))
        return cj.grad(twice(f))(1.5)

    assert (9.0, 0.0) == cj.jit(lambda y: cj.jvp(program, (y,), (1.0,)))(2.0)
    with pytest.raises(CorejaxTypeError, match=REFUSAL):
        cj.jit(lambda y: cj.jvp(lambda y: program(y) * twice(lambda x: x * y)(1.0) * 0.0 + _custom(y)(1.0),
                                (y,), (1.0,)))(2.0)


def _custom(y):
    f = cj.custom_jvp(lambda x: x * y)
    f.defjvp(lambda xs, dots: (f(*xs), dots[0]))
    return f
