"""`scan` and `map`: what they compute, what they leave in jaxprs, and what batching and dead code make of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose

import corejax as cj
from corejax import lax
from corejax.core import eval_jaxpr, is_staging
from corejax.errors import CorejaxError
from corejax.ir import count_eqns, dce, jaxpr_text, parse_jaxpr, typecheck
from corejax.plugin import Effect, define, hookimpl, roles

RNG = np.random.default_rng(0)
W, C, XS = RNG.standard_normal((2, 2)), RNG.standard_normal(2), RNG.standard_normal((5, 2))


def unrolled(f, init, xs, length=None, reverse=False):
    """The loop in Python."""
    leaves, _ = cj.tree.flatten(xs)
    n = len(leaves[0]) if leaves else length
    carry, ys = init, [None] * n
    for i in reversed(range(n)) if reverse else range(n):
        carry, ys[i] = f(carry, cj.tree.map(lambda x, i=i: x[i], xs))
    return carry, cj.tree.map(lambda *parts: np.stack([np.asarray(p) for p in parts]), *ys)


def assert_same(got, wanted):
    got, wanted = cj.tree.flatten(got), cj.tree.flatten(wanted)
    assert wanted[1] == got[1]
    for x, y in zip(got[0], wanted[0], strict=True):
        assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-12, atol=1e-14)


def step(carry, x):
    new = lax.tanh(lax.dot(W, carry) + x)
    return new, {"norm": (new * new).sum(), "x": x, "before": carry}


def the_scan(jaxpr):
    (eqn,) = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "scan"]
    return eqn


def names(jaxpr):
    return [eqn.primitive.name for eqn in jaxpr.eqns]


# Values

@pytest.mark.sample(20)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, 2, 3, 5, 7, True, False])
@pytest.mark.parametrize("length", [0, 1, 2, 5])
def test_a_scan_is_a_python_loop(length, unroll, reverse):
    xs = XS[:length]
    if length:
        wanted = unrolled(step, C, xs, reverse=reverse)
    else:
        wanted = C, {"norm": np.zeros(0), "x": np.zeros((0, 2)), "before": np.zeros((0, 2))}
    for call in (lambda xs: lax.scan(step, C, xs, reverse=reverse, unroll=unroll),
                 cj.jit(lambda xs: lax.scan(step, C, xs, reverse=reverse, unroll=unroll))):
        assert_same(call(xs), wanted)


class Pair(NamedTuple):
    first: object
    second: object


def test_carry_inputs_and_outputs_are_pytrees():
    def f(carry, x):
        p, q = carry["pair"]
        return {"pair": Pair(q, p + x["a"][0]), "n": carry["n"] + 1}, (x["b"], None, [p])

    init, xs = {"pair": Pair(1.0, np.float64(2.0)), "n": 0}, {"a": (XS[:, 0],), "b": XS}
    assert_same(lax.scan(f, init, xs), unrolled(f, init, xs))


def test_without_inputs_the_length_is_given():
    carry, ys = lax.scan(lambda c, x: (c * 2.0, (x, c)), 1.0, None, length=4)
    assert 16.0 == carry
    assert ys[0] is None
    assert [1.0, 2.0, 4.0, 8.0] == ys[1].tolist()


def test_nothing_needs_to_be_carried_and_nothing_returned():
    assert_same(lax.scan(lambda c, x: (c, x * 2), None, XS), (None, XS * 2))
    assert_same(lax.scan(lambda c, x: (c + x.sum(), None), 0.0, XS), (XS.sum(), None))
    assert (None, None) == lax.scan(lambda c, x: (None, None), None, XS)


def test_integers_and_booleans_are_carried():
    def f(carry, x):
        n, odd = carry
        return (n + x, lax.bitwise_xor(odd, x > 1)), n

    (n, odd), before = lax.scan(f, (np.int8(0), np.bool_(False)), np.arange(4, dtype=np.int8))
    assert (6, False, np.int8, np.bool_) == (n, odd, n.dtype, odd.dtype)
    assert [0, 0, 1, 3] == before.tolist()


def test_a_million_steps_take_one_trace_of_the_body():
    calls = []

    def f(c, x):
        calls.append(1)
        return c + x, None

    ones = np.ones(1_000_000)
    assert 1_000_000 == lax.scan(f, np.float64(0.0), ones)[0]
    assert 1 == len(calls)
    assert 1 == cj.grad(lambda c: lax.scan(f, c, ones)[0])(np.float64(0.0))
    assert 2 == len(calls), "a function that reads a list is traced for each call, as the list may have changed"


# Types of the carry

def test_a_python_scalar_takes_the_dtype_that_the_loop_computes():
    carry, ys = lax.scan(lambda c, x: (c + x, c), 0, np.ones(3, np.float32))
    assert (np.float32, np.float32, 3.0) == (carry.dtype, ys.dtype, carry)


def test_promotion_goes_on_until_the_carry_keeps_its_type():
    (a, b), _ = lax.scan(lambda c, _: ((c[1], c[0] * 0.5), None), (1, 2), length=3)
    assert [(np.float64, False, 1.0), (np.float64, False, 0.25)] == [(x.dtype, x.weak_type, x) for x in (a, b)]


def test_what_was_promoted_is_no_longer_weak():
    with pytest.raises(TypeError, match="changes the type"):
        lax.scan(lambda c, x: ((c[1], c[0] + x), None), (1, 2.0), np.ones(3, np.float32))


@pytest.mark.parametrize("length", [0, 1, 2])
def test_the_results_have_the_same_types_whatever_the_length(length):
    def f(xs):
        return lax.scan(lambda c, x: (c + x, (c, 1)), 0.0, xs)

    wanted = [v.aval for v in cj.make_jaxpr(f)(np.ones(length)).jaxpr.outvars]
    assert wanted == [x.aval for x in cj.tree.leaves(f(np.ones(length)))]
    assert wanted == [x.aval for x in cj.tree.leaves(cj.jit(f)(np.ones(length)))]


# Structure

def test_a_scan_is_one_equation_with_constants_carry_and_inputs():
    table = cj.device_put(np.arange(2.0))
    jaxpr = cj.make_jaxpr(lambda w, c, xs: lax.scan(lambda c, x: (w * c + x + table, c * x), c, xs))(2.0, C, XS).jaxpr
    eqn = the_scan(jaxpr)
    assert {"jaxpr", "length", "reverse", "num_consts", "num_carry", "unroll"} == set(eqn.params)
    assert (5, 2, 1) == (eqn.params["length"], eqn.params["num_consts"], eqn.params["num_carry"])
    assert () == eqn.params["jaxpr"].constvars
    assert ["mul", "add", "add", "mul"] == names(eqn.params["jaxpr"])
    typecheck(jaxpr)


def test_a_scan_prints_and_parses_back():
    closed = cj.make_jaxpr(lambda c, xs: lax.scan(step, c, xs, reverse=True, unroll=2))(C, XS)
    full = jaxpr_text(closed, pretty=False)
    assert full == jaxpr_text(parse_jaxpr(full), pretty=False)
    assert "scan[" in str(closed) and "reverse=True" in str(closed)


def test_what_no_step_changes_is_not_carried_and_inputs_are_not_copied():
    def f(c, xs):
        return lax.scan(lambda c, x: ((c[0] + c[1] * x, c[1]), (x, c[1], c[0], c[0])), (c, c * 2), xs)

    closed = cj.make_jaxpr(f)(1.0, XS[:, 0])
    eqn = the_scan(closed.jaxpr)
    assert (1, 1) == (eqn.params["num_consts"], eqn.params["num_carry"])
    assert 2 == len(eqn.outvars)  # the carry, and what it was before
    assert closed.jaxpr.outvars[2] is closed.jaxpr.invars[1]
    assert closed.jaxpr.outvars[4] is closed.jaxpr.outvars[5]
    assert_same(f(1.0, XS[:, 0]), unrolled(lambda c, x: ((c[0] + c[1] * x, c[1]), (x, c[1], c[0], c[0])),
                                           (1.0, 2.0), XS[:, 0]))


def test_a_scan_that_only_moves_values_around_vanishes():
    assert [] == names(cj.make_jaxpr(lambda c, xs: lax.scan(lambda c, x: (c, x), c, xs))(C, XS).jaxpr)


def test_dead_outputs_carries_and_inputs_are_removed():
    def f(c, xs, zs):
        return lax.scan(lambda c, x: ((c[0] * x[0], c[1] + c[0], c[2] + x[1]), (c[1], lax.sin(c[0]))), (c, c, c),
                        (xs, zs))

    jaxpr = cj.make_jaxpr(f)(1.0, XS[:, 0], XS[:, 1]).jaxpr
    for used, operands, eqns in [((True, False, False, False, False), (True, True, False), 1),
                                 ((False, True, False, False, False), (True, True, False), 2),
                                 ((False, False, True, False, False), (True, False, True), 1),
                                 ((False, False, False, False, True), (True, True, False), 2),
                                 ((False,) * 5, (False,) * 3, 0)]:
        smaller, used_in = dce(jaxpr, used)
        assert operands == used_in
        assert eqns + bool(eqns) == count_eqns(smaller)
        typecheck(smaller)
        args = [x for x, keep in zip((1.0, XS[:, 0], XS[:, 1]), used_in, strict=True) if keep]
        wanted = [x for x, keep in zip(eval_jaxpr(jaxpr, (), 1.0, XS[:, 0], XS[:, 1]), used, strict=True) if keep]
        assert_same(eval_jaxpr(smaller, (), *args), wanted)


def test_loops_with_equal_bodies_share_one_function_of_the_module():
    def f(xs):
        first, _ = lax.scan(lambda c, x: (lax.sin(c) * x, None), 0.5, xs)
        second, _ = lax.scan(lambda c, x: (lax.sin(c) * x, None), 0.7, xs)
        return first + second

    text = cj.jit(f).lower(XS[:, 0]).as_text()
    assert 2 == text.count("stablehlo.while")
    assert 1 == text.count("stablehlo.sine")


def test_unrolled_loops_have_as_many_calls_of_the_body_as_steps_in_a_round():
    def calls(unroll):
        text = cj.jit(lambda xs: lax.scan(lambda c, x: (lax.sin(c) * x, c), 0.5, xs, unroll=unroll)).lower(
            XS[:, 0]).as_text()
        return text.count("call @"), text.count("stablehlo.while")

    assert [(1, 1), (3, 1), (5, 0), (5, 0)] == [calls(unroll) for unroll in (1, 2, 3, True)]


def test_effects_of_the_body_are_those_of_the_scan_and_keep_it_alive():
    noted = Effect("noted_in_scan")

    class Note:
        name = "note"

        @hookimpl
        def impl(self, args):
            return args[0]

        @hookimpl
        def abstract_eval(self, avals):
            return avals[0]

        @hookimpl
        def effects(self, avals):
            return frozenset({noted})

    note = define(Note())
    jaxpr = cj.make_jaxpr(lambda xs: lax.scan(lambda c, x: (c + 1, (note(x), x * 2)[1]), 0, xs)[0])(XS).jaxpr
    assert frozenset({noted}) == jaxpr.effects == the_scan(jaxpr).effects
    smaller, _ = dce(jaxpr, [False])
    assert ["note"] == names(the_scan(smaller).params["jaxpr"])
    typecheck(smaller)


# Batching

@pytest.mark.parametrize("dims", [(None, 0), (0, None), (1, 1), (0, 0), (1, None), (None, 1)])
def test_carries_become_batched_only_where_they_have_to(dims):
    def f(c, xs):
        return lax.scan(lambda c, x: ((c[0] + x, c[1] * 2.0), c[1]), (c, np.ones(2)), xs)

    closed = cj.make_jaxpr(cj.vmap(f, in_axes=dims))(*[
        np.stack([x] * 3, 0 if d is None else d) if d is not None else x for x, d in zip((C, XS), dims, strict=True)])
    eqn = the_scan(closed.jaxpr)
    assert [(2, 3), (2,)] == [tuple(sorted(v.aval.shape)) for v in eqn.outvars[:2]]
    assert (5, 2) == eqn.outvars[2].aval.shape


def test_the_batch_axis_of_inputs_stays_where_it_is_behind_the_scanned_one():
    stacked = np.stack([XS] * 3, 2)
    jaxpr = cj.make_jaxpr(cj.vmap(lambda xs: lax.scan(lambda c, x: (c, lax.sin(x)), None, xs)[1], in_axes=2,
                                  out_axes=2))(stacked).jaxpr
    assert ["scan"] == names(jaxpr)


def test_a_carry_begins_with_its_axis_where_the_body_leaves_it():
    def f(c, xs):
        return lax.scan(lambda c, x: (lax.dot(W, c) * x[0], None), c, xs)[0]

    jaxpr = cj.make_jaxpr(cj.vmap(f, in_axes=(1, None), out_axes=1))(np.ones((2, 3)), XS).jaxpr
    assert "transpose" not in names(the_scan(jaxpr).params["jaxpr"])


# map

def test_map_applies_a_function_to_each_slice():
    assert_same(lax.map(lambda x: (x * 2, x.sum()), XS), (XS * 2, XS.sum(1)))
    assert_same(lax.map(lambda t: t["a"] * t["b"], {"a": XS, "b": XS[:, 0]}), XS * XS[:, :1])
    assert (0, 3) == lax.map(lambda x: x * np.ones(3), np.ones(0)).shape


@pytest.mark.parametrize("batch_size", [0, 1, 2, 3, 5, 8])
@pytest.mark.parametrize("length", [0, 1, 5])
def test_map_in_batches_gives_the_same(length, batch_size):
    def f(t):
        return {"y": lax.dot(W, t[0]) * t[1], "z": 3.0}

    xs = XS[:length], XS[:length, 0]
    for call in (lambda f, xs: lax.map(f, xs, batch_size=batch_size),
                 cj.jit(lambda f, xs: lax.map(f, xs, batch_size=batch_size), static_argnums=0)):
        assert_same(call(f, xs), lax.map(f, xs))


def test_a_missing_vmap_rule_becomes_a_scan_where_a_program_is_traced():
    seen = []

    def f(slices):
        seen.append(is_staging())
        return [slices[0] * 2.0]

    jaxpr = cj.make_jaxpr(lambda xs: roles.sequential_map(f, [xs]))(XS).jaxpr
    assert ["scan"] == names(jaxpr)
    assert_same(roles.sequential_map(f, [XS]), [XS * 2])
    assert [True] + [False] * len(XS) == seen


# Wrong use

def test_the_primitive_checks_its_operands():
    bad = next(s for s in lax.scan.primitive.samples(np.random.default_rng(0)) if s.error is not None)
    with pytest.raises(CorejaxError, match="scan: the operands don't fit the body"):
        lax.scan.primitive.bind(*bad.args, **bad.params)


X = np.ones(3)
WRONG = {
    "no_pair": (lambda: lax.scan(lambda c, x: c, 0.0, X), TypeError, "the body must return a pair",
                "got:    one array"),
    "three": (lambda: lax.scan(lambda c, x: (c, x, x), 0.0, X), TypeError, "must return a pair", "a tuple of 3"),
    "structure": (lambda: lax.scan(lambda c, x: ({"a": c["a"], "b": c["b"][0]}, x), {"a": 1.0, "b": (2.0, 3.0)}, X),
                  TypeError, r"different structure than it was given, at init\['b'\]", "an array"),
    "shape": (lambda: lax.scan(lambda c, x: ([c[0] + x[None]], x), [0.0], X), TypeError, "changes the type",
              r"f64\[1\] for init\[0\]"),
    "dtype": (lambda: lax.scan(lambda c, x: (c + x, x), np.int32(0), X), TypeError, "changes the type",
              r"wanted: i32\[\] for init, as it was given"),
    "sizes": (lambda: lax.scan(lambda c, x: (c, x), 0.0, {"a": X, "b": np.ones(4)}), ValueError, "differ in size",
              r"f64\[4\] for xs\['b'\]"),
    "scalar": (lambda: lax.scan(lambda c, x: (c, x), 0.0, (X, 1.0)), ValueError, r"xs\[1\] has no leading axis",
               "carry them"),
    "length": (lambda: lax.scan(lambda c, x: (c, x), 0.0, (X,), length=4), ValueError,
               r"3, as xs\[0\] is f64\[3\]", "length=4"),
    "no_length": (lambda: lax.scan(lambda c, x: (c, x), 0.0), ValueError, "number of steps", "length=n"),
    "negative": (lambda: lax.scan(lambda c, x: (c, x), 0.0, length=-1), ValueError, "length is too small", "-1"),
    "fraction": (lambda: lax.scan(lambda c, x: (c, x), 0.0, length=2.5), TypeError, "length must be an integer", "2.5"),
    "traced": (lambda: cj.jit(lambda n: lax.scan(lambda c, x: (c, x), 0.0, length=n))(3), TypeError,
               "length must be known when the program is traced", "fori_loop"),
    "function": (lambda: lax.scan(3, 0.0, X), TypeError, "must be a function", "int: 3"),
    "init": (lambda: lax.scan(lambda c, x: (c, x), {"a": "text"}, X), TypeError, r"init\['a'\] is a str", "array"),
    "xs": (lambda: lax.scan(lambda c, x: (c, x), 0.0, (X, "text")), TypeError, r"xs\[1\] is a str", "array"),
    "output": (lambda: lax.scan(lambda c, x: (c, "text"), 0.0, X), TypeError, "is a str", "array"),
    "unroll": (lambda: lax.scan(lambda c, x: (c, x), 0.0, X, unroll=-1), ValueError, "unroll is too small", "-1"),
    "unroll_type": (lambda: lax.scan(lambda c, x: (c, x), 0.0, X, unroll=1.5), TypeError, "unroll must be an integer",
                    "1.5"),
    "reverse": (lambda: lax.scan(lambda c, x: (c, x), 0.0, X, reverse="yes"), TypeError, "reverse must be a flag",
                "yes"),
    "map": (lambda: lax.map(None, X), TypeError, "map: the body must be a function", "None"),
    "map_scalar": (lambda: lax.map(lambda x: x, 1.0), ValueError, "map: xs has no leading axis", "f64"),
    "batch_size": (lambda: lax.map(lambda x: x, X, batch_size=-1), ValueError, "map: batch_size is too small", "-1"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use_says_which_leaf_and_what_to_do(name):
    call, kind, *texts = WRONG[name]
    with pytest.raises(kind) as caught:
        call()
    assert isinstance(caught.value, CorejaxError)
    for text in texts:
        assert caught.match(text)
    assert __file__ in caught.value.where
