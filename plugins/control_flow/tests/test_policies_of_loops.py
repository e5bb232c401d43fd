"""What policies of `checkpoint` save of loops that keep less by themselves: bounded ones, and scans of segments."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

import corejax as cj
from corejax import lax
from corejax.ad_checkpoint import checkpoint_name
from corejax.core import subjaxprs
from corejax.ir import parse_jaxpr, typecheck

POLICIES = cj.checkpoint_policies
X, W = np.linspace(-1.0, 1.5, 4), np.linspace(-0.5, 0.5, 16).reshape(4, 4)
ROWS = np.array([1.0, 2.0, -1.0, 0.5, 1.5, 3.0])

CHOSEN = {
    "nothing": POLICIES.nothing_saveable, "everything": POLICIES.everything_saveable,
    "products": POLICIES.dots_saveable, "the name": POLICIES.save_only_these_names("h"),
    "both": POLICIES.save_from_both_policies(POLICIES.dots_saveable, POLICIES.save_only_these_names("h")),
    "offloaded": POLICIES.offload_dot_with_no_batch_dims("device", "pinned_host"),
    "loops": lambda primitive, *_, **__: primitive.name in ("bounded_while_loop", "counted_scan", "checkpoint_call"),
}


# Programs

def bounded(x, w, n=5, max_steps=9, checkpoints=None):
    def step(state):
        i, x, total = state
        h = checkpoint_name(lax.sin(x), "h")
        return i + 1, h + lax.dot(w, lax.tanh(x)), total + (h * w[0]).sum()
    _, x, total = lax.bounded_while_loop(lambda s: s[0] < n, step, (0, x, 0.0), max_steps=max_steps,
                                         checkpoints=checkpoints)
    return x.sum() * total


def segments(x, w, every=3):
    def step(carry, row):
        h = checkpoint_name(lax.sin(carry * row), "h")
        return lax.tanh(lax.dot(w, h) + carry), h * carry
    last, rows = lax.scan(step, x, x * ROWS[:, None], checkpoint_every=every)
    return (last * rows).sum()


def nested(x, w):
    def outer(state):
        i, x = state
        inner = lax.bounded_while_loop(
            lambda s: s[0] < i, lambda s: (s[0] + 1, checkpoint_name(lax.sin(s[1]), "h") @ w), (0, x), max_steps=3)[1]
        return i + 1, checkpoint_name(lax.cos(inner), "h") * x
    return lax.bounded_while_loop(lambda s: s[0] < 3, outer, (0, x), max_steps=5)[1].sum()


def each_on_its_own(x, w):
    ns = np.array([4, 0, 2])
    return cj.vmap(lambda x, n: bounded(x, w, n))(x * ROWS[:3, None], ns).sum()


def slope_within(x, w):
    return (cj.grad(lambda x: bounded(x, w, 3, max_steps=4))(x) * x).sum()


PROGRAMS = {
    "bounded": bounded, "in segments": partial(bounded, max_steps=100), "three levels": partial(
        bounded, max_steps=50, checkpoints=12), "every state": partial(bounded, max_steps=40, checkpoints=40),
    "no steps": partial(bounded, n=0), "scan": segments, "scan of one segment": partial(segments, every=8),
    "nested": nested, "rows": each_on_its_own, "slope within": slope_within,
}

TRANSFORMED = {
    "gradient": lambda f: cj.grad(f, (0, 1)), "reverse over reverse": lambda f: cj.jacrev(cj.grad(f)),
    "forward over reverse": lambda f: cj.jacfwd(cj.grad(f)),
    "mapped gradients": lambda f: lambda x, w: cj.vmap(cj.grad(f), (0, None))(w * x, w),
    "by one operand": lambda f: cj.grad(f, 1),
    "of mapped": lambda f: cj.grad(lambda x, w: cj.vmap(f, (0, None))(x * ROWS[:2, None], w).sum()),
}


@pytest.mark.sample(10)
@pytest.mark.parametrize("policy", CHOSEN)
@pytest.mark.parametrize("program", PROGRAMS)
def test_derivatives_are_those_without_a_checkpoint(program, policy):
    plain = PROGRAMS[program]
    f = cj.checkpoint(plain, policy=CHOSEN[policy])
    assert_allclose(f(X, W), plain(X, W), rtol=1e-12)
    for how, transform in TRANSFORMED.items():
        wanted = cj.tree.leaves(transform(plain)(X, W))
        for found in (transform(f)(X, W), cj.jit(transform(f))(X, W)):
            for a, b in zip(cj.tree.leaves(found), wanted, strict=True):
                assert_allclose(a, b, rtol=1e-9, atol=1e-12, err_msg=how)
    typecheck(cj.make_jaxpr(cj.jacrev(cj.grad(f)))(X, W).jaxpr)


def bits(tree):
    return [np.asarray(x).tobytes() for x in cj.tree.leaves(tree)]


@pytest.mark.parametrize("policy", CHOSEN)
def test_gradients_of_segments_are_those_of_a_scan_bit_for_bit(policy):
    found = [bits(cj.grad(cj.checkpoint(partial(segments, every=every), policy=CHOSEN[policy]), (0, 1))(X, W))
             for every in (None, 2, 3)]
    assert [found[0]] * 3 == found


# What is saved

def kept(f, *args):
    return [(row.what, str(row.aval)) for row in cj.saved_residuals(f, *args)
            if not row.what.startswith(("the argument", "a constant"))]


LOOP = "bounded_while_loop"


@pytest.mark.parametrize(("program", "policy", "wanted"), [
    ("scan", "nothing", []),
    ("scan", "the name", [("checkpointed_scan", "f64[6,4]")]),
    ("scan", "products", [("checkpointed_scan", "f64[6,4]")]),
    ("scan", "both", [("checkpointed_scan", "f64[6,4]")] * 2),
    ("bounded", "nothing", []),
    ("bounded", "the name", [(LOOP, "i32[]"), (LOOP, "f64[9,4]")]),
    ("bounded", "both", [(LOOP, "i32[]"), *[(LOOP, "f64[9,4]")] * 2]),
    ("every state", "the name", [(LOOP, "i32[]"), (LOOP, "f64[40,4]")]),
    ("in segments", "the name", []),
    ("in segments", "products", []),
    ("in segments", "both", []),
    ("three levels", "both", []),
    # the states at the ends of segments
    ("in segments", "loops", [(LOOP, "i32[]"), (LOOP, "i32[10]"), (LOOP, "~i64[10]"), (LOOP, "f64[10,4]"),
                              (LOOP, "f64[10]")]),
    ("slope within", "nothing", []),
    ("slope within", "the name", [(LOOP, "i32[]"), (LOOP, "f64[4,4]")]),
])
def test_what_is_stacked(program, policy, wanted):
    assert wanted == kept(cj.checkpoint(PROGRAMS[program], policy=CHOSEN[policy]), X, W)


def count(jaxpr, name):
    return sum([(eqn.primitive.name == name) + sum([count(sub, name) for sub in subjaxprs(eqn.params)])
                for eqn in jaxpr.eqns])


@pytest.mark.parametrize("program", ["bounded", "scan", "nested"])
def test_what_is_saved_is_not_computed_again(program):
    of_sines, of_nothing = [count(cj.make_jaxpr(cj.grad(cj.checkpoint(PROGRAMS[program], policy=policy)))(X, W).jaxpr,
                                  "sin")
                            for policy in (lambda primitive, *_, **__: primitive.name in ("sin", "cos"),
                                           POLICIES.nothing_saveable)]
    assert of_sines < of_nothing


@pytest.mark.parametrize(("checkpoints", "asked"), [(100, True), (None, False), (30, False)])
def test_a_policy_is_asked_about_steps_where_the_loop_keeps_every_state(checkpoints, asked):
    seen = set()

    def policy(primitive, *_, **__):
        seen.add(primitive.name)
        return False
    cj.grad(cj.checkpoint(partial(bounded, max_steps=100, checkpoints=checkpoints), policy=policy))(X, W)
    assert ("sin" in seen) is asked
    assert ("checkpoint_call" in seen) is not asked


def test_segments_print_and_parse_back_as_calls_that_are_asked_about_as_one():
    loop = cj.make_jaxpr(partial(bounded, max_steps=100))(X, W)
    assert 1 == str(loop).count("as_one=True")
    assert str(loop) == str(parse_jaxpr(str(loop)))
    (call,) = [eqn for eqn in loop.jaxpr.eqns[0].params["jaxpr"].eqns if eqn.primitive.name == "checkpoint_call"]
    assert call.params["as_one"]


def test_no_policy_takes_more_memory_than_a_generous_bound_does():
    def temporary(policy, max_steps=10_000):
        x = np.ones(1000)
        loop = cj.checkpoint(lambda x: lax.bounded_while_loop(
            lambda s: s[0] < 5, lambda s: (s[0] + 1, checkpoint_name(lax.sin(s[1]), "h") * x), (0, x),
            max_steps=max_steps)[1].sum(), policy=policy)
        grad = cj.jit(cj.grad(loop))
        return grad.lower(x).compile().memory_analysis().temp_size_in_bytes / x.nbytes  # in states
    for policy in (CHOSEN["the name"], CHOSEN["everything"], None):
        assert temporary(policy) < 2.5 * 200


def test_a_scan_of_segments_keeps_its_promise_beside_what_is_saved():
    def temporary(every, n=1000):
        def step(x, _):
            return lax.cos(lax.exp(lax.sin(checkpoint_name(1.01 * lax.sin(x), "h")))), None
        loop = cj.checkpoint(lambda x: lax.scan(step, x, None, length=n, checkpoint_every=every)[0].sum(),
                             policy=CHOSEN["the name"])
        x = np.ones(100)
        return cj.jit(cj.grad(loop)).lower(x).compile().memory_analysis().temp_size_in_bytes / x.nbytes
    assert temporary(20) < 1.3 * 1000 < 2000 < temporary(None)
