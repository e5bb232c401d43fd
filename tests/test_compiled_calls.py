"""Calls of compiled functions: whatever road a call takes, its arguments arrive as they are."""

from __future__ import annotations

import math
import warnings
from collections import namedtuple

import numpy as np
import pytest

import corejax as cj
from corejax.config import config
from corejax.errors import CorejaxOverflowError, CorejaxValueError, CorejaxWarning
from corejax.plugin import define, hookimpl

Pair = namedtuple("Pair", "x y")


def counted(fun, **options):
    """The jitted function, and the list that grows when it is traced."""
    traced = []

    def traced_fun(*args, **kwargs):
        traced.append(None)
        return fun(*args, **kwargs)
    return cj.jit(traced_fun, **options), traced


def bits(x):
    return np.asarray(x).tobytes(), str(x.aval)


@pytest.mark.parametrize("values", [
    (0.0, -0.0, 0.0), (1.0, 2.0, 1.0), (math.nan, 1.0, math.nan), (math.inf, -math.inf), (5e-324, 1.0),
    (True, False, True), (1, 2**53 + 1, 2**53, -1, 0), (1 + 0j, 1 - 0j, complex(-0.0, 1.0), complex(0.0, 1.0)),
    (np.float32(1.0), np.float32(-0.0), np.float32(0.0)), (np.float64(2.0), np.float64(3.0)),
    (np.int8(1), np.int8(2), np.int8(1)), (np.bool_(True), np.bool_(False)),
    (np.complex64(1 - 0j), np.complex64(1 + 0j)), (np.float64(np.nan), np.float64(1.0))], ids=str)
def test_scalars_arrive_as_they_are_however_often_they_are_passed(values):
    identity = cj.jit(lambda x: x)
    for x in values * 3:
        out = identity(x)
        assert np.asarray(x, out.dtype).tobytes() == np.asarray(out).tobytes()


def test_scalars_of_different_types_are_told_apart():
    identity, traced = counted(lambda x: x)
    scalars = [1, 1.0, True, np.float64(1.0), np.int64(1), np.float32(1.0), 1 + 0j]
    first, second = [[bits(identity(x)) for x in scalars] for _ in range(2)]
    assert first == second
    assert len(scalars) == len(set(first)) == len(traced)


def test_a_thousand_different_scalars_arrive():
    double = cj.jit(lambda x, y: x + y)
    assert [float(2 * i + 1) for i in range(1000)] == [float(double(float(i), float(i + 1))) for i in range(1000)]


def test_a_donated_scalar_can_be_passed_again():
    add = cj.jit(lambda x, y: x + y, donate_argnums=0)
    assert [3.0, 3.0, 3.0] == [float(add(1.0, 2.0)) for _ in range(3)]


def test_an_integer_that_does_not_fit_is_refused_at_each_call():
    double = cj.jit(lambda x: x + x)
    double(1)
    for _ in range(2):
        with pytest.raises((CorejaxOverflowError, OverflowError)):
            double(2**63)


def test_arguments_from_host_and_device_mix_in_any_order():
    combine = cj.jit(lambda x, y, z: x + 10 * y + 100 * z)
    host = np.array([1.0, 2.0])
    forms = [host, cj.device_put(host), cj.vmap(lambda x: x * 1.0)(host), 1.0, np.float64(1.0)]
    for x in forms:
        for y in forms:
            for z in forms:
                wanted = np.asarray(x) + 10 * np.asarray(y) + 100 * np.asarray(z)
                np.testing.assert_array_equal(wanted, combine(x, y, z))


def test_calls_by_keyword_are_traced_once_in_whatever_order_they_stand():
    f, traced = counted(lambda x, y, z: x - 2 * y - 4 * z)
    outs = [f(1.0, 2.0, 3.0), f(1.0, y=2.0, z=3.0), f(1.0, z=3.0, y=2.0), f(z=3.0, y=2.0, x=1.0),
            f(x=1.0, y=2.0, z=3.0)]
    assert [-15.0] * 5 == [float(out) for out in outs]
    assert 3 == len(traced)  # for one, for two and for no keyword left out


def test_keywords_and_positions_are_told_apart():
    f = cj.jit(lambda *args, **kwargs: len(args) + 10.0 * len(kwargs) + sum(args) * 0)
    assert [2.0, 11.0, 11.0] == [float(f(1.0, 1.0)), float(f(1.0, y=1.0)), float(f(1.0, z=1.0))]


def test_static_arguments_are_looked_up_by_value_and_type():
    f, traced = counted(lambda x, n, *, flag="a": x * len(str(n)) + len(flag), static_argnums=1, static_argnames="flag")
    values = [1, 1.0, True, "1", (1,), (1.0,), -0.0, 0.0, 1 + 2j, (1.0, 2.0), Pair(1, 2), Pair(1.0, 2), (1, 2),
              frozenset([1]), frozenset([1.0]), None]
    for _ in range(3):
        assert [float(len(str(value)) + 1) for value in values] == [float(f(1.0, value)) for value in values]
    assert len(values) == len(traced)
    assert 3.0 == float(f(1.0, 1, flag="bb"))
    assert len(values) + 1 == len(traced)


def test_a_static_argument_between_arrays_keeps_their_order():
    f, traced = counted(lambda x, n, y: x - n * y, static_argnums=1)
    assert [-5.0, -9.0, -5.0] == [float(f(1.0, n, 2.0)) for n in (3, 5, 3)]
    assert 2 == len(traced)


def test_static_arguments_that_cannot_be_hashed_are_named_on_the_fast_road_too():
    f = cj.jit(lambda x, n: x, static_argnums=1)
    f(1.0, 2)
    with pytest.raises(CorejaxValueError, match=r"the static argument args\[1\] can't be hashed"):
        f(1.0, [2])


def test_the_result_of_one_leaf_is_no_list_and_a_list_of_one_is():
    x = np.ones(2)
    assert (2,) == cj.jit(lambda x: x)(x).shape
    assert [2.0, 2.0] == cj.jit(lambda x: [x * 2])(x)[0].tolist()
    assert () == cj.jit(lambda x: ())(x)
    assert cj.jit(lambda x: None)(x) is None


def test_a_container_with_the_attributes_of_its_array_is_no_array():
    class Scaled:
        def __init__(self, value, scale):
            self.value, self.scale = value, scale

        def __getattr__(self, name):
            if name in ("value", "scale"):
                raise AttributeError(name)
            return getattr(self.value, name)

    cj.tree.register_node(Scaled, lambda s: ((s.value,), s.scale), lambda scale, children: Scaled(*children, scale))
    for put in (cj.device_put, np.asarray):
        x = put(np.ones(2))
        f = cj.jit(lambda *p: [q.value * q.scale if isinstance(q, Scaled) else q + 0.0 for q in p])
        for args, wanted in [((x,), [1]), ((Scaled(x, 10.0),), [10]), ((Scaled(x, 20.0),), [20]), ((x, x), [1, 1]),
                             ((Scaled(x, 10.0), x), [10, 1]), ((x, Scaled(x, 20.0)), [1, 20])] * 2:
            assert wanted == [float(out[0]) for out in f(*args)]


def test_a_program_is_found_under_the_width_for_which_it_was_asked():
    def f(x):
        config.default_bits = 64
        return x * 1

    compiled = cj.jit(f)
    config.default_bits = 32
    try:
        assert "int32" == str(compiled(2).dtype)
        assert "int64" == str(compiled(2).dtype)
        config.default_bits = 32
        assert "int32" == str(compiled(2).dtype)
    finally:
        config.default_bits = 64


def test_what_a_callback_raises_is_raised_and_nothing_runs_again():
    runs, raising = [], []

    class Asked:
        name = "asked"

        @hookimpl
        def abstract_eval(self, avals):
            return avals[0]

        @hookimpl
        def impl(self, args):
            runs.append(1)
            return args[0].missing if raising else args[0]

    f = cj.jit(define(Asked()))
    x = cj.device_put(np.ones(2))
    with config(fallbacks="silent"):
        f(x), f(x)
        runs.clear(), raising.append(True)
        with pytest.raises(AttributeError, match="missing"):
            f(x)
    assert [1] == runs


class Mode(tuple):
    """A tuple with an equality of its own."""

    def __new__(cls, name):
        self = super().__new__(cls)
        self.name = name
        return self

    def __eq__(self, other):
        return self.name == other.name

    def __hash__(self):
        return hash(self.name)


def test_static_tuples_with_an_equality_of_their_own_are_told_apart_by_it():
    f = cj.jit(lambda x, mode: x if mode.name == "same" else -x, static_argnums=1)
    assert [1.0, -1.0, 1.0] == [float(f(1.0, Mode(name))) for name in ("same", "other", "same")]


def test_a_compiled_function_names_static_values_as_they_are():
    compiled = cj.jit(lambda x, k: x * k, static_argnums=1).lower(1.0, 2.5).compile()
    with pytest.raises(CorejaxValueError) as caught:
        compiled(1.0, 3.5)
    assert "3.5" in caught.value.got and "2.5" in caught.value.wanted


# config.explain_retraces

def told(call):
    """What is said when a function is called."""
    with warnings.catch_warnings(record=True) as found, config(explain_retraces=True):
        warnings.simplefilter("always")
        call()
    assert all(each.category is CorejaxWarning and __file__ == each.filename for each in found)
    return [str(each.message) for each in found]


@pytest.mark.parametrize(("first", "second", "words"), [
    (((np.ones(3),), {}), ((np.ones(4),), {}), "a different type of args[0]: f64[3] before, f64[4] now"),
    ((([1.0, 2.0],), {}), (([1.0, np.float64(2)],), {}),
     "a different type of args[0][1]: ~f64[] before, f64[] now: Python numbers"),
    (((1.0,), {"y": 2.0}), ((1.0,), {"y": 2}), "a different type of kwargs['y']: ~f64[] before, ~i64[] now"),
    ((({"a": 1.0},), {}), (({"a": 1.0, "b": 1.0},), {}), "had no args[0]['b']"),
    ((({"a": 1.0, "b": 1.0},), {}), (({"a": 1.0},), {}), "had an argument args[0]['b'], which is gone"),
    ((([1.0],), {}), (((1.0,),), {}), "arguments of a different structure"),
    (((1.0,), {"n": 2}), ((1.0,), {"n": (3.0, 1 + 2j)}), "a different static argument n: 2 before, (3.0, (1+2j)) now"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_a_retrace_is_explained_by_what_changed(first, second, words):
    f = cj.jit(lambda *args, **kwargs: 1.0, static_argnames="n")
    assert [] == told(lambda: f(*first[0], **first[1]))
    assert [] == told(lambda: f(*first[0], **first[1]))
    said, = told(lambda: f(*second[0], **second[1]))
    assert "jit traces <lambda> again, since the previous call had " in said and words in said
    assert [] == told(lambda: f(*second[0], **second[1]))


def test_the_most_similar_call_explains_a_retrace():
    f = cj.jit(lambda x, y: x)
    f(np.ones(3), np.ones(3)), f(np.ones(5), np.ones(4))
    said, = told(lambda: f(np.ones(3), np.ones(4)))
    assert "the most similar of 2 previous calls had a different type of args[" in said and said.count(" before, ") == 1


def test_the_default_width_and_mapped_axes_explain_a_retrace():
    f = cj.jit(lambda x: x * 1)
    f(np.ones(3))
    with config(default_bits=32):
        said, = told(lambda: f(np.ones(3)))
    assert "config.default_bits = 64, which is 32 now" in said
    said, = told(lambda: cj.vmap(f, axis_name="rows")(np.ones((2, 3))))
    assert "different mapped axes around it" in said


def test_nothing_is_said_unless_asked_for():
    f = cj.jit(lambda x: x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [(1,), (2,)] == [f(np.ones(n)).shape for n in (1, 2)]
