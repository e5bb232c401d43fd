"""`while_loop`: what it computes, what it leaves in jaxprs, and how each rule changes it."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose

import corejax as cj
from corejax import lax
from corejax.core import ShapedArray, eval_jaxpr, partial_eval_jaxpr, stage
from corejax.errors import CorejaxError
from corejax.ir import count_eqns, dce, jaxpr_text, parse_jaxpr, typecheck
from corejax.plugin import Effect, define, hookimpl

RNG = np.random.default_rng(0)
X, DOT, W = RNG.uniform(0.3, 0.9, 3), RNG.standard_normal(3), RNG.uniform(1.1, 1.5, 3)


class Pair(NamedTuple):
    first: object
    second: object


NOTED = Effect("noted")


class Note:
    """note(x) = x, with an effect, and it writes x down."""

    name = "note"

    def __init__(self):
        self._seen = []

    @hookimpl
    def impl(self, args):
        self._seen.append(np.array(args[0]))
        return args[0]

    @hookimpl
    def abstract_eval(self, avals):
        return avals[0]

    @hookimpl
    def jvp(self, primals, tangents):
        return note(*primals), tangents[0]

    @hookimpl
    def effects(self, avals):
        return frozenset({NOTED})

    @hookimpl
    def vmap(self, axis, args, dims):
        return note(*args), dims[0]

    @hookimpl
    def xla_translation(self, ctx, args):
        def write(x):
            self._seen.append(np.array(x))
            return [x]
        return ctx.callback(write, args, ctx.avals_out)[0]


note_plugin = Note()
note = define(note_plugin)


def unrolled(cond, body, val):
    """The loop in Python."""
    while bool(cond(val)):
        val = body(val)
    return val


def grown(x, w, limit=4.0):
    """A loop whose number of steps depends on its data: 3 arrays, of which one only counts."""
    def body(val):
        x, total, n = val
        return x * w + lax.sin(x) * 0.1, total + x.sum(), n + 1

    return lax.while_loop(lambda val: val[0].sum() < limit, body, (x, 0.0, 0))


def grown_unrolled(x, w, limit=4.0):
    x, total, n = np.asarray(x), 0.0, 0
    while x.sum() < limit:
        x, total, n = x * w + np.sin(x) * 0.1, total + x.sum(), n + 1
    return x, total, n


def names(jaxpr):
    return [eqn.primitive.name for eqn in jaxpr.eqns]


def the_loops(jaxpr):
    return [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "while_loop"]


def the_loop(jaxpr):
    (eqn,) = the_loops(jaxpr)
    return eqn


def assert_same(got, wanted, rtol=1e-12):
    got, wanted = cj.tree.flatten(got), cj.tree.flatten(wanted)
    assert wanted[1] == got[1]
    for x, y in zip(got[0], wanted[0], strict=True):
        assert_allclose(np.asarray(x), np.asarray(y), rtol=rtol, atol=1e-13)


# Values

@pytest.mark.parametrize("limit", [0.0, 2.0, 4.0, 100.0])
def test_a_while_loop_is_a_python_loop(limit):
    wanted = grown_unrolled(X, W, limit)
    assert_same(grown(X, W, limit), wanted)
    assert_same(cj.jit(grown)(X, W, limit), wanted)


def test_a_loop_that_never_begins_returns_what_it_was_given():
    assert 3 == lax.while_loop(lambda x: x < 0, lambda x: x + 1, 3)
    assert_same(cj.jit(lambda x: lax.while_loop(lambda x: False, lambda x: x * np.inf, x))(X), X)


def test_the_carry_is_a_pytree():
    def cond(val):
        return val["n"] < 5

    def body(val):
        p, (q,) = val["pair"]
        return {"pair": Pair(p * 2.0, [q + p]), "n": val["n"] + 1}

    init = {"pair": Pair(1.0, [np.zeros(2)]), "n": 0}
    assert_same(lax.while_loop(cond, body, init), unrolled(cond, body, init))


def test_condition_and_body_close_over_what_is_traced():
    def f(limit, step):
        return lax.while_loop(lambda x: x < limit, lambda x: x + step, 0.0)

    assert 10.0 == cj.jit(f)(9.0, 2.5)
    assert [0.0, 4.0, 6.0] == cj.vmap(f, in_axes=(0, None))(np.array([-1.0, 3.0, 5.0]), 2.0).tolist()
    assert (5.0, 5.0) == cj.jvp(lambda step: f(4.5, step), (1.0,), (1.0,))


def test_nothing_to_carry_is_nothing_to_do():
    assert () == lax.while_loop(lambda _: True, lambda val: val, ())
    assert 2.0 == lax.while_loop(lambda _: False, lambda val: val, 2.0)


def test_a_long_loop_traces_its_functions_once():
    calls = []

    def body(n):
        calls.append(1)
        return n + 1

    assert 1_000_000 == lax.while_loop(lambda n: n < 1_000_000, body, 0)
    assert 1 == len(calls)


def test_booleans_and_small_integers_are_carried():
    n, odd = lax.while_loop(lambda val: val[0] < 50, lambda val: (val[0] * 3, lax.bitwise_not(val[1])),
                            (np.int8(3), np.bool_(False)))
    assert (81, np.int8, True) == (n, n.dtype, odd)


# Types

def test_a_python_scalar_takes_the_dtype_that_the_loop_computes():
    out = lax.while_loop(lambda x: x < 3, lambda x: x + np.float32(1.0), 0)
    assert (np.float32, 3.0) == (out.dtype, out)


def test_promotion_goes_on_until_the_carry_keeps_its_type():
    a, b = lax.while_loop(lambda val: val[0] < 3, lambda val: (val[1], val[1] + np.float32(1.0)), (0, 0))
    assert (np.float32, np.float32) == (a.dtype, b.dtype)


@pytest.mark.parametrize("limit", [0.0, 3.0])
def test_results_have_the_types_that_the_jaxpr_says(limit):
    def f(x):
        return lax.while_loop(lambda val: val[0] < limit, lambda val: (val[0] + 1.0, val[1] + x), (0.0, 1))

    wanted = [v.aval for v in cj.make_jaxpr(f)(np.float64(1.0)).jaxpr.outvars]
    assert wanted == [x.aval for x in f(np.float64(1.0))]
    assert wanted == [x.aval for x in cj.jit(f)(np.float64(1.0))]


# Structure

def test_a_loop_is_one_equation_with_two_programs():
    closed = cj.make_jaxpr(lambda limit, w, x: lax.while_loop(lambda x: x < limit, lambda x: x * w, x))(9.0, 2.0, 1.0)
    eqn = the_loop(closed.jaxpr)
    assert ["while_loop"] == names(closed.jaxpr)
    assert {"cond_jaxpr", "body_jaxpr", "cond_nconsts", "body_nconsts"} == set(eqn.params)
    assert (1, 1) == (eqn.params["cond_nconsts"], eqn.params["body_nconsts"])
    assert ["lt"] == names(eqn.params["cond_jaxpr"])
    assert ["mul"] == names(eqn.params["body_jaxpr"])
    assert () == eqn.params["cond_jaxpr"].constvars == eqn.params["body_jaxpr"].constvars
    assert list(closed.jaxpr.invars) == list(eqn.invars)
    typecheck(closed.jaxpr)


def test_it_prints_and_parses_back():
    closed = cj.make_jaxpr(grown)(X, W, 4.0)
    full = jaxpr_text(closed, pretty=False)
    assert full == jaxpr_text(parse_jaxpr(full), pretty=False)
    assert "while_loop[" in str(closed) and "cond_jaxpr={" in str(closed)


def test_what_no_step_changes_is_not_carried():
    def f(x, w, limit):
        return lax.while_loop(lambda v: v["x"] < v["limit"], lambda v: {**v, "x": v["x"] * v["w"]},
                              {"x": x, "w": w, "limit": limit})

    closed = cj.make_jaxpr(f)(1.0, 3.0, 50.0)
    eqn = the_loop(closed.jaxpr)
    x, w, limit = closed.jaxpr.invars
    assert [limit, w, x] == list(eqn.invars)
    assert (1, 1, 1) == (eqn.params["cond_nconsts"], eqn.params["body_nconsts"], len(eqn.outvars))
    assert [limit, w, eqn.outvars[0]] == list(closed.jaxpr.outvars)  # keys in order
    assert_same(f(1.0, 3.0, 50.0), {"x": 81.0, "w": 3.0, "limit": 50.0})


def test_dead_carries_constants_and_equations_are_removed():
    def f(x, y, z, w):
        """The condition needs n; y needs x; nothing else needs z."""
        def body(val):
            n, x, y, z = val
            return n + 1, lax.sin(x), y + x, lax.exp(z) * w
        return lax.while_loop(lambda val: val[0] < 3, body, (0, x, y, z))

    args = 0.5, 1.0, 2.0, 3.0
    jaxpr = cj.make_jaxpr(f)(*args).jaxpr
    all_outs = eval_jaxpr(jaxpr, (), *args)
    for used, operands, body in [((True, False, False, False), (False,) * 4, ["add"]),
                                 ((False, True, False, False), (True, False, False, False), ["add", "sin"]),
                                 ((False, False, True, False), (True, True, False, False), ["add", "sin", "add"]),
                                 ((False, False, False, True), (False, False, True, True), ["add", "exp", "mul"])]:
        smaller, used_in = dce(jaxpr, used)
        typecheck(smaller)
        assert operands == used_in
        assert body == names(the_loop(smaller).params["body_jaxpr"])
        outs = eval_jaxpr(smaller, (), *[x for x, keep in zip(args, used_in, strict=True) if keep])
        assert_same(outs, [x for x, keep in zip(all_outs, used, strict=True) if keep])
    assert [] == names(dce(jaxpr, (False,) * 4)[0])


def test_loops_with_equal_programs_share_the_functions_of_the_module():
    def f(x):
        for _ in range(2):
            x = lax.while_loop(lambda x: x < 2.0, lambda x: x + lax.exp(x), x - 5.0)
        return x

    text = cj.jit(f).lower(1.0).as_text()
    assert 2 == text.count("stablehlo.while")
    assert 1 == text.count("stablehlo.exponential")


def test_effects_of_both_programs_are_those_of_the_loop_and_keep_it_alive():
    def f(x):
        lax.while_loop(lambda v: v[0] < 3, lambda v: (v[0] + 1, (note(v[1]), v[1] * 2.0)[1]), (0, x))
        return x

    jaxpr = cj.make_jaxpr(f)(X).jaxpr
    assert frozenset({NOTED}) == jaxpr.effects == the_loop(jaxpr).effects
    smaller, _ = dce(jaxpr, (False,))
    assert ["while_loop"] == names(smaller)
    note_plugin._seen.clear()
    cj.jit(f)(X).block_until_ready()
    assert_same(note_plugin._seen, [X, 2 * X, 4 * X])


def test_a_loop_of_nothing_but_effects_runs():
    def f(n):
        lax.while_loop(lambda m: note(m) < 0, lambda m: m, n)
        return n

    note_plugin._seen.clear()
    cj.jit(f)(5).block_until_ready()
    assert [5] == note_plugin._seen


@pytest.mark.parametrize("mapped", [lambda f: cj.vmap(f, (0, None)), lambda f: cj.jit(cj.vmap(f, (0, None)))])
def test_effects_happen_in_the_steps_of_each_element(mapped):
    def f(limit, x):
        return lax.while_loop(lambda v: v < limit, lambda v: note(v) + 1.0, x)

    note_plugin._seen.clear()
    cj.block_until_ready(mapped(f)(np.array([2.0, 0.0, 1.0]), 0.0))
    assert_same(sorted(note_plugin._seen), [0.0, 0.0, 1.0])


# Forward mode

def test_tangents_spread_through_the_carry_until_they_are_all_there():
    def f(x):
        return lax.while_loop(lambda v: v[3] < 3, lambda v: (v[1], v[2], v[0] * 2.0, v[3] + 1), (1.0, 2.0, x, 0))

    outs, dots = cj.jvp(f, (3.0,), (1.0,))
    assert ([2.0, 4.0, 6.0, 3], [0.0, 0.0, 2.0]) == ([float(x) for x in outs], [float(t) for t in dots[:3]])
    loop = the_loop(cj.make_jaxpr(lambda x: cj.jvp(f, (x,), (1.0,))[1])(3.0).jaxpr)
    assert 7 == len(loop.outvars)


def test_only_what_has_tangents_gets_them():
    def f(x, y):
        return lax.while_loop(lambda v: v[0] < 3, lambda v: (v[0] + 1, v[1] * 2.0, v[2] * y), (0, x, y))

    closed = cj.make_jaxpr(lambda x, y: cj.jvp(lambda x: f(x, y), (x,), (1.0,))[1])(1.0, 2.0)
    assert 4 == len(the_loop(closed.jaxpr).outvars)
    outs, dots = cj.jvp(lambda x: f(x, 2.0), (1.0,), (1.0,))
    assert [0.0, 8.0] == [float(t) for t in dots[::-1][:2]]


def test_the_condition_sees_primals_only():
    jaxpr = cj.make_jaxpr(lambda x: cj.jvp(lambda x: grown(x, W)[0], (x,), (DOT,)))(X).jaxpr
    cond = the_loop(jaxpr).params["cond_jaxpr"]
    assert ["reduce_sum", "lt"] == names(cond)
    typecheck(jaxpr)


def test_linearize_runs_the_loop_once_for_values_and_again_for_each_tangent():
    (x, total), lin = cj.linearize(lambda x: grown(x, W)[:2], X)
    assert_same((x, total), grown_unrolled(X, W)[:2])
    for dot in (DOT, np.ones(3)):
        assert_same(lin(dot), cj.jvp(lambda x: grown(x, W)[:2], (X,), (dot,))[1])
    jaxpr = cj.make_jaxpr(lambda x: cj.linearize(lambda x: grown(x, W)[0], x)[1](DOT))(X).jaxpr
    first, second = the_loops(jaxpr)
    assert "cos" not in names(first.params["body_jaxpr"]) and "cos" in names(second.params["body_jaxpr"])


# Partial evaluation and reverse mode

def test_reverse_mode_is_refused_by_name():
    for differentiated in (cj.grad(lambda x: grown(x, W)[1]), cj.jit(cj.grad(lambda x: grown(x, W)[1]))):
        with pytest.raises(NotImplementedError, match=r"while_loop has no reverse mode(.|\n)*lax\.scan.*fori_loop"):
            differentiated(X)


def test_reverse_mode_passes_where_no_derivative_goes_through_the_loop():
    def counted(x):
        return grown(x, W)[2] * x.sum()

    assert_same(cj.grad(counted)(X), np.full(3, grown_unrolled(X, W)[2]))

    def steered(x):
        n = lax.while_loop(lambda n: n < lax.stop_gradient(x).sum() * 3, lambda n: n + 1, 0)
        return (x * n).sum()

    assert_same(cj.grad(steered)(X), np.full(3, np.ceil(X.sum() * 3)))


def test_a_division_runs_what_is_known_and_leaves_the_rest():
    def f(x, y):
        def body(v):
            n, a, b, c = v
            return n + 1, lax.sin(a), b * y, c + b * a
        return lax.while_loop(lambda v: v[0] < 3, body, (0, x, y, 0.0))

    jaxpr = cj.make_jaxpr(f)(0.5, 2.0).jaxpr
    wanted = eval_jaxpr(jaxpr, (), 0.5, 2.0)
    known, staged, unknown_out, n_residuals = partial_eval_jaxpr(jaxpr, (False, True))
    assert (False, False, True, True) == unknown_out
    typecheck(known)
    typecheck(staged)
    assert ["add", "sin"] == names(the_loop(known).params["body_jaxpr"])
    known_outs = eval_jaxpr(known, (), 0.5)
    staged_outs = eval_jaxpr(staged, (), *known_outs[len(known_outs) - n_residuals:], 2.0)
    assert_same([*known_outs[:2], *staged_outs], wanted)


def test_everything_waits_for_an_unknown_condition():
    jaxpr = cj.make_jaxpr(lambda limit, x: lax.while_loop(lambda v: v[0] < limit, lambda v: (v[0] + 1, v[1] * 2.0),
                                                          (0, x)))(3, 1.0).jaxpr
    known, staged, unknown_out, _ = partial_eval_jaxpr(jaxpr, (True, False))
    assert ([], ["while_loop"], (True, True)) == (names(known), names(staged), unknown_out)


def test_effects_of_the_known_part_happen_once():
    def f(x, y):
        def body(v):
            n, a, b = v
            a = cj.jit(lambda a: (note(a), lax.sin(a))[1])(a)
            return n + 1, a, b * a + y
        return lax.while_loop(lambda v: v[0] < 3, body, (0, x, y))

    jaxpr = cj.make_jaxpr(f)(0.5, 2.0).jaxpr
    known, staged, _, _ = partial_eval_jaxpr(jaxpr, (False, True))
    assert (frozenset({NOTED}), frozenset()) == (known.effects, staged.effects)
    typecheck(staged)
    outs, lin = cj.linearize(lambda y: f(0.5, y)[2], 2.0)
    assert_same((outs, lin(1.0)), cj.jvp(lambda y: f(0.5, y)[2], (2.0,), (1.0,)))


# Batching

def stepping(limit, w, x, c):
    """Constants of the condition and of the body, two carries: any may be batched."""
    def body(v):
        n, x, c = v
        return n + 1.0, x * w, c + 2.0 * n

    n, x, c = lax.while_loop(lambda v: v[0] * v[0] < limit, body, (0.0, x, c))
    return n, x, c


@pytest.mark.parametrize("in_axes", [d for d in product((None, 0), (None, 0, 1), (None, 0, 1), (None, 0))
                                     if d != (None,) * 4])
def test_elements_end_on_their_own_only_if_the_condition_is_mapped(in_axes):
    args = [np.array([-1.0, 3.0, 11.0]), np.ones((3, 3)), np.ones((3, 3)), np.ones(3)]
    mapped = [x[0] if d is None else x for x, d in zip(args, in_axes, strict=True)]
    closed = cj.make_jaxpr(cj.vmap(stepping, in_axes))(*mapped)
    scalar = in_axes[0] is None
    assert scalar == (() == the_loop(closed.jaxpr).params["cond_jaxpr"].out_avals[0].shape)


def test_carries_become_batched_only_where_they_have_to():
    jaxpr = cj.make_jaxpr(cj.vmap(lambda x: stepping(9.0, W, x, 0.0)))(np.stack([X] * 4)).jaxpr
    assert [(), (4, 3), ()] == [v.aval.shape for v in the_loop(jaxpr).outvars]


def test_what_has_stopped_stays_as_it_is_even_if_going_on_would_spoil_it():
    def f(x):
        return lax.while_loop(lambda x: x > 1.0, lambda x: lax.log(x), x)

    out = cj.vmap(f)(np.array([0.5, 2.0, 1e300]))
    assert_same(out, np.array([0.5, np.log(2.0), np.log(np.log(np.log(np.log(1e300))))]))
    assert np.isfinite(np.asarray(cj.vmap(lambda x: cj.jvp(f, (x,), (1.0,))[1])(np.array([0.5, 2.0, 1e300])))).all()


def test_the_condition_is_lowered_twice_at_most_and_the_body_once():
    text = cj.jit(cj.vmap(lambda x: lax.while_loop(lambda x: lax.exp(x) < 9.0, lambda x: x + lax.sin(x), x))).lower(
        X).as_text()
    assert (1, 1, 2) == (text.count("stablehlo.exponential"), text.count("stablehlo.sine"), text.count(
        "call @while_cond"))


# Within each other

def newton(a):
    """A square root, and how often it was improved."""
    def cond(v):
        return lax.abs(v[0] * v[0] - a) > 1e-12

    return lax.while_loop(cond, lambda v: (0.5 * (v[0] + a / v[0]), v[1] + 1), (a, 0))[0]


@pytest.mark.parametrize("outer", ["scan", "cond", "while_loop", "jit", "fori_loop"])
def test_a_loop_within_others(outer):
    def f(xs):
        if outer == "scan":
            return lax.scan(lambda c, x: (c + newton(x), newton(c + x)), 1.0, xs)[1]
        if outer == "cond":
            return lax.cond(xs.sum() > 1.0, lambda xs: newton(xs[0]) * xs, lambda xs: xs, xs)
        if outer == "while_loop":
            return lax.while_loop(lambda v: v.sum() < 9.0, lambda v: v + newton(v[0]) * xs, xs)
        if outer == "fori_loop":
            return lax.fori_loop(0, 3, lambda i, v: v + newton(v[i]) * xs, xs)
        return cj.jit(lambda xs: xs * cj.jit(newton)(xs[0]))(xs)

    def in_numpy(xs):
        if outer == "scan":
            c, ys = 1.0, []
            for x in xs:
                ys.append(np.sqrt(c + x))
                c = c + np.sqrt(x)
            return np.array(ys)
        if outer == "cond":
            return np.sqrt(xs[0]) * xs
        v = np.array(xs)
        if outer == "while_loop":
            while v.sum() < 9.0:
                v = v + np.sqrt(v[0]) * xs
        elif outer == "fori_loop":
            for i in range(3):
                v = v + np.sqrt(v[i]) * xs
        else:
            v = xs * np.sqrt(xs[0])
        return v

    x = X + 0.5
    h = 1e-6
    dot = (in_numpy(x + h * DOT) - in_numpy(x - h * DOT)) / (2 * h)
    for transform in (lambda g: g, cj.jit):
        assert_same(transform(f)(x), in_numpy(x), rtol=1e-9)
        assert_allclose(np.asarray(transform(lambda x: cj.jvp(f, (x,), (DOT,))[1])(x)), dot, rtol=1e-6)
        xs = np.stack([x, x * 2.0])
        assert_same(transform(cj.vmap(f))(xs), np.stack([in_numpy(x) for x in xs]), rtol=1e-9)


# Wrong uses

SAMPLES = list(lax.while_loop.primitive.samples(np.random.default_rng(0)))


def test_a_sample_that_is_wrong_is_refused():
    (wrong,) = [s for s in SAMPLES if s.error is TypeError]
    with pytest.raises(wrong.error, match="axes of the condition"):
        lax.while_loop.primitive.bind(*wrong.args, **wrong.params)


F64 = ShapedArray((), np.float64)


@pytest.mark.parametrize(("cond", "body", "words"), [
    (lambda x: [lax.lt(x, 1.0)], lambda x: [x, x], "the body returns a different carry"),
    (lambda x: [x], lambda x: [x], "the condition must return a boolean"),
    (lambda x: [], lambda x: [x], "the condition must return a boolean"),
    (lambda x, y: [lax.lt(x, y)], lambda x: [x], "take different carries"),
])
def test_a_jaxpr_that_is_no_loop_is_refused(cond, body, words):
    cond_jaxpr = stage(cond, [F64] * cond.__code__.co_argcount).jaxpr
    with pytest.raises(CorejaxError, match=words):
        lax.while_loop.primitive.bind(1.0, cond_jaxpr=cond_jaxpr, body_jaxpr=stage(body, [F64]).jaxpr, cond_nconsts=0,
                                      body_nconsts=0)


def test_operands_that_do_not_fit_are_refused():
    (params,) = [s.params for s in SAMPLES[3:4]]
    with pytest.raises(CorejaxError, match=r"operands don't fit(.|\n)*i32\[\](.|\n)*f64\[\]"):
        lax.while_loop.primitive.bind(np.int32(1), **params)


def test_a_condition_of_some_name_is_named():
    def going(x):
        return x, x

    with pytest.raises(TypeError, match=r"the condition going must return a boolean(.|\n)*a tuple, \(\*, \*\)"):
        lax.while_loop(going, lambda x: x, 1.0)


def test_the_number_of_equations_does_not_grow_with_repeated_transformation():
    def f(x):
        return lax.while_loop(lambda v: v[0] < 3, lambda v: (v[0] + 1, v[1] * 2.0), (0, x))[1]

    once = count_eqns(cj.make_jaxpr(cj.vmap(f))(X).jaxpr)
    assert once == count_eqns(cj.make_jaxpr(cj.vmap(cj.vmap(f)))(np.stack([X, X])).jaxpr)


def test_states_without_elements_do_not_end_the_process():
    # The compiler drops such states, and a loop whose whole state it drops ended the process.
    empty = np.ones((2, 0))
    loops = [
        lambda x: lax.while_loop(lambda x: (x > 0).any(), lambda x: x * 2, x),
        lambda x: lax.while_loop(lambda x: cj.jit(lambda x: (x > 0).any())(x), lambda x: x * 2, x),
        lambda x: lax.while_loop(lambda s: (s[0] > 0).any() | (s[1] > 3), lambda s: (s[0] * 2, s[1]), (x, 1))[0],
        lambda x: lax.while_loop(lambda s: (s[1] > 0).any(), lambda s: (s[1], s[0]), (x, x))[0],
        lambda x: lax.while_loop(lambda x: (x > 0).all() & False, lambda x: x, x),
    ]
    for loop in loops:
        for run in (lambda f: f, cj.jit, cj.vmap):
            assert run(loop)(empty).shape == (2, 0)
