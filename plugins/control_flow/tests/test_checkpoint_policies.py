"""Policies of `checkpoint`: derivatives are the same whatever is saved, and what is saved is what they say."""

from __future__ import annotations

import gc
import operator
import weakref
from functools import partial

import numpy as np
import pytest

import corejax as cj
import corejax.ad_checkpoint as ad_checkpoint
from corejax import lax
from corejax.ad_checkpoint import Offloadable, Recompute, Saveable, checkpoint_name
from corejax.core import ShapedArray, subjaxprs
from corejax.errors import CorejaxError
from corejax.ir import typecheck
from corejax.plugin import carrying
from corejax.xla.lowering import programs

POLICIES = cj.checkpoint_policies
X, W = np.linspace(-1.0, 1.5, 4), np.linspace(-0.5, 0.5, 16).reshape(4, 4)


# Programs

def plain(x, w):
    h = checkpoint_name(lax.tanh(lax.dot(x, w)), "h")
    return (lax.sin(h) * lax.exp(checkpoint_name(lax.sin(x), "s"))).sum()


def with_jit(x, w):
    inner = cj.jit(lambda x: (lax.sin(checkpoint_name(lax.exp(lax.sin(x)), "h")), lax.dot(x, w), x))
    a, b, c = inner(x)
    return (a * lax.tanh(b) * c).sum() + inner(b)[0].sum()


def with_scan(x, w):
    def step(carry, row):
        h = checkpoint_name(lax.sin(carry * row), "h")
        return lax.cos(h) + carry, (h * lax.exp(carry), carry)
    last, (hs, carries) = lax.scan(step, x, w)
    return (last * hs.sum()).sum() + lax.sin(carries).sum()


def with_cond(x, w):
    def of_branches(i, x):
        return lax.switch(i, [lambda x: lax.sin(checkpoint_name(lax.dot(w, x), "h")),
                              lambda x: checkpoint_name(lax.exp(lax.sin(x)), "h") * x, lambda x: x * 2.0], x)
    return sum([of_branches(i, lax.sin(x)).sum() for i in range(3)]) + of_branches(
        (x.sum() > 0.0).astype(np.int32), x).sum()


def with_custom_rules(x, w):
    by_jvp, by_vjp = cj.custom_jvp(lambda x: lax.exp(lax.sin(x))), cj.custom_vjp(lambda x, w: lax.dot(lax.sin(x), w))

    @by_jvp.defjvp
    def rule(primals, tangents):
        (x,), (dot,) = primals, tangents
        out = by_jvp(x)
        return out, checkpoint_name(out * lax.cos(x), "h") * dot

    by_vjp.defvjp(lambda x, w: (by_vjp(x, w), (lax.cos(x), lax.sin(x), w)),
                  lambda kept, ct: (kept[0] * lax.dot(kept[2], ct), lax.mul(kept[1][:, None], ct[None])))
    return (by_jvp(x) * lax.tanh(by_vjp(x, w))).sum()


def nested(x, w):
    inner = cj.checkpoint(lambda x: lax.sin(checkpoint_name(lax.dot(lax.sin(x), w), "h")),
                          policy=POLICIES.dots_saveable, prevent_cse=(True,))
    return (inner(x) * cj.checkpoint(lax.exp)(inner(lax.sin(x)))).sum()


def with_while(x, w):
    steps = lax.fori_loop(0, 3, lambda i, n: n + i, 0)  # known in every step
    return (lax.sin(checkpoint_name(lax.exp(x), "h")) * steps.astype(np.float64)).sum() + lax.dot(x, lax.dot(w, x))


def with_kept_carries(x, w):
    def step(carry, row):
        return lax.tanh(carry * row + 1.0), checkpoint_name(lax.sin(carry * row), "h")
    last, rows = lax.scan(step, x, w, checkpoint_every=3)
    return (last * rows).sum()


def bounded(x, w):
    return lax.bounded_while_loop(
        lambda c: (c[0] < 5) & (c[1].sum() < 50.0),
        lambda c: (c[0] + 1, checkpoint_name(lax.sin(c[1]), "h") + lax.dot(w, c[1])), (0, x), max_steps=9)[1].sum()


def mapped(x, w):
    return cj.vmap(lambda row: lax.sin(checkpoint_name(lax.dot(row, x), "h")) * lax.exp(lax.sin(row.sum())))(w).sum()


PROGRAMS = [plain, with_jit, with_scan, with_cond, with_custom_rules, nested, with_while, with_kept_carries, bounded,
            mapped]

CHOSEN = {
    "nothing": POLICIES.nothing_saveable, "everything": POLICIES.everything_saveable,
    "products": POLICIES.dots_saveable, "products without batch": POLICIES.dots_with_no_batch_dims_saveable,
    "the name": POLICIES.save_only_these_names("h"), "all but the name": POLICIES.save_anything_except_these_names("h"),
    "names but one": POLICIES.save_any_names_but_these("s"),
    "both": POLICIES.save_from_both_policies(POLICIES.dots_saveable, POLICIES.save_only_these_names("h", "s")),
    "offloaded": POLICIES.offload_dot_with_no_batch_dims("device", "pinned_host"),
    "names offloaded": POLICIES.save_and_offload_only_these_names(
        names_which_can_be_saved=["s"], names_which_can_be_offloaded=["h"], offload_src="device",
        offload_dst="pinned_host"),
    "sines": lambda primitive, *avals, **params: primitive.name == "sin",
    "small ones": lambda primitive, *avals, **params: all([aval.size < 16 for aval in avals]),
}


TRANSFORMED = {
    "gradient": lambda f: cj.grad(f, (0, 1)), "forward over reverse": lambda f: cj.jacfwd(cj.grad(f)),
    "reverse over reverse": lambda f: cj.jacrev(cj.grad(f)),
    "forward mode": lambda f: lambda x, w: cj.jvp(f, (x, w), (lax.sin(x), lax.cos(w))),
    "mapped gradients": lambda f: lambda x, w: cj.vmap(cj.grad(f), (0, None))(w * x, w)}


@pytest.mark.sample(24)
@pytest.mark.parametrize("how", TRANSFORMED)
@pytest.mark.parametrize("policy", CHOSEN)
@pytest.mark.parametrize("program", PROGRAMS)
def test_derivatives_are_those_without_a_checkpoint(program, policy, how):
    f, transform = cj.checkpoint(program, policy=CHOSEN[policy]), TRANSFORMED[how]
    np.testing.assert_allclose(program(X, W), f(X, W), rtol=1e-12)
    if program is with_custom_rules and "forward" in how:
        return  # there is no forward mode through a fwd and a bwd rule
    wanted = cj.tree.leaves(transform(program)(X, W))
    for found in (transform(f)(X, W), cj.jit(transform(f))(X, W), transform(cj.jit(f))(X, W)):
        for a, b in zip(cj.tree.leaves(found), wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("policy", CHOSEN)
def test_programs_are_typed(policy):
    for program in PROGRAMS:
        jaxpr = cj.make_jaxpr(cj.jacrev(cj.grad(cj.checkpoint(program, policy=CHOSEN[policy]))))(X, W)
        typecheck(jaxpr.jaxpr)


# What is saved

def kept(f, *args):
    return sorted([(row.what, row.aval.shape) for row in cj.saved_residuals(f, *args) if "argument" not in row.what])


@pytest.mark.parametrize(("policy", "wanted"), [
    ("nothing", []), ("products", [("dot_general", (4,))]), ("products without batch", [("dot_general", (4,))]),
    ("the name", [("checkpoint_name 'h'", (4,))]), ("names but one", [("checkpoint_name 'h'", (4,))]),
    ("offloaded", [("dot_general, in pinned_host", (4,))]),
    ("both", [("checkpoint_name 'h'", (4,)), ("checkpoint_name 's'", (4,)), ("dot_general", (4,))]),
    ("names offloaded", [("checkpoint_name 'h', in pinned_host", (4,)), ("checkpoint_name 's'", (4,))]),
])
def test_what_a_policy_says_is_saved_and_nothing_else(policy, wanted):
    assert wanted == kept(cj.checkpoint(plain, policy=CHOSEN[policy]), X, W)
    assert wanted == kept(cj.checkpoint(cj.jit(plain), policy=CHOSEN[policy]), X, W)


def test_products_with_batch_axes_are_told_apart():
    def f(x, w):
        return lax.sin(lax.dot(lax.sin(cj.vmap(lax.dot)(x, w)), w[0, :3])).sum()
    for policy, wanted in (("products", 2), ("products without batch", 1), ("offloaded", 1)):
        found = kept(cj.checkpoint(f, policy=CHOSEN[policy]), np.ones((3, 4)), np.ones((3, 4, 3)))
        assert wanted == len(found) and all(["dot_general" in what for what, _ in found])


def test_a_loop_stacks_what_is_saved_in_each_step():
    assert [("scan", (4, 4))] == kept(cj.checkpoint(with_scan, policy=CHOSEN["the name"]), X, W)
    without = cj.saved_residuals(with_scan, X, W)
    assert cj.saved_residuals(cj.checkpoint(with_scan), X, W).nbytes < without.nbytes


def test_branches_share_places_for_what_they_save():
    found = kept(cj.checkpoint(with_cond, policy=CHOSEN["the name"]), X, W)
    assert [("cond", (4,))] * 4 == found


def count(jaxpr, name):
    return sum([(eqn.primitive.name == name) + sum([count(sub, name) for sub in subjaxprs(eqn.params)])
                for eqn in jaxpr.eqns])


def test_what_is_saved_is_not_computed_again():
    def f(x):
        return lax.cos(lax.sin(lax.exp(x))).sum()
    again = {policy: count(cj.make_jaxpr(cj.grad(cj.checkpoint(f, policy=policy)))(X).jaxpr, "exp") for policy in (
        None, POLICIES.nothing_saveable, POLICIES.everything_saveable,
        lambda primitive, *_, **__: primitive.name == "exp")}
    assert [2, 2, 1, 1] == [*again.values()]


def test_policies_may_answer_by_names_of_decisions():
    answers = {"sin": Saveable, "exp": Offloadable("device", "pinned_host"), "cos": Recompute}
    f = cj.checkpoint(lambda x: lax.cos(lax.exp(lax.sin(x))).sum(),
                      policy=lambda primitive, *_, **__: answers.get(primitive.name, False))
    np.testing.assert_allclose(cj.grad(lambda x: lax.cos(lax.exp(lax.sin(x))).sum())(X), cj.grad(f)(X))
    assert [("exp, in pinned_host", (4,)), ("sin", (4,))] == kept(f, X)
    assert Saveable and not Recompute and Offloadable("a", "b") == Offloadable("a", "b") != Offloadable("a", "c")
    assert "Offloadable(src='a', dst='b')" == repr(Offloadable("a", "b"))
    assert 1 == len({Offloadable("a", "b"), Offloadable("a", "b")})


def test_what_is_offloaded_is_moved_where_a_device_has_other_memory():
    f = cj.checkpoint(lambda x, w: lax.sin(lax.sin(lax.dot(x, w))).sum(), policy=CHOSEN["offloaded"])
    closed = cj.make_jaxpr(cj.grad(f))(X, W)
    for platform, count_of_each in (("cuda", 1), ("cpu", 0)):
        module = programs.lower_module(closed.jaxpr, closed.consts, "f", platform).module
        assert module.operation.verify()
        for kind in ("pinned_host", "device"):
            assert count_of_each == str(module).count(f'_xla_buffer_placement = "{kind}"')
        assert 2 * count_of_each == str(module).count("custom_call @annotate_device_placement(")


def test_a_policy_sees_types_and_params():
    seen = {}

    def policy(primitive, *avals, **params):
        seen[primitive.name] = avals, params
        return False
    cj.grad(cj.checkpoint(plain, policy=policy))(X, W)
    avals, params = seen["dot_general"]
    assert (ShapedArray((4,), "float64"), ShapedArray((4, 4), "float64")) == avals
    assert "dimension_numbers" in params
    assert {"name": "s"} == seen["checkpoint_name"][1] or {"name": "h"} == seen["checkpoint_name"][1]


def test_equal_policies_find_the_same_program_again():
    one, two = POLICIES.save_only_these_names("a", "b"), POLICIES.save_only_these_names("b", "a")
    assert one == two and hash(one) == hash(two) and one != POLICIES.save_only_these_names("a")
    assert one != POLICIES.save_any_names_but_these("a", "b")
    both = POLICIES.save_from_both_policies
    assert both(one, two) == both(two, one) and hash(both(one, two)) == hash(both(two, one))
    offload = POLICIES.offload_dot_with_no_batch_dims
    assert offload("device", "pinned_host") is offload("device", "pinned_host")
    assert "save_only_these_names('a', 'b')" == repr(one)


# Operands behind a barrier

def test_a_flag_for_each_argument_says_what_is_behind_a_barrier():
    def f(x, w):
        return lax.sin(lax.dot(lax.sin(x["x"]), lax.sin(w))).sum()
    x = {"x": X}
    text = {flags: cj.jit(cj.grad(cj.checkpoint(f, prevent_cse=flags), (0, 1))).lower(x, W).as_text()
            for flags in (True, False, (True, True), (True, False), (False, True), (False, False))}
    counts = {flags: [line.split(" = ")[0].count(":") + line.count("tensor<")
                      for line in each.splitlines() if "optimization_barrier" in line] for flags, each in text.items()}
    assert counts[True] == counts[True, True] and [] == counts[False] != counts[True]
    one, other, neither = counts[True, False], counts[False, True], counts[False, False]
    assert sum(neither) < sum(one) and sum(neither) < sum(other) and sum(one) < sum(counts[True])
    for flags in text:
        found = cj.jit(cj.grad(cj.checkpoint(f, prevent_cse=flags)))(x, W)
        np.testing.assert_allclose(cj.grad(f)(x, W)["x"], found["x"])


def test_flags_pass_through_every_transformation():
    f = cj.checkpoint(lambda x, w: lax.sin(lax.dot(lax.sin(x), w)).sum(), prevent_cse=(False, True),
                      policy=POLICIES.dots_saveable)
    wanted = cj.hessian(lambda x: lax.sin(lax.dot(lax.sin(x), W)).sum())(X)
    np.testing.assert_allclose(wanted, cj.jit(cj.jacrev(cj.grad(f)))(X, W), rtol=1e-12)
    np.testing.assert_allclose(wanted, cj.jit(cj.jacfwd(cj.grad(f)))(X, W), rtol=1e-12)
    stacked = cj.jit(cj.vmap(cj.grad(f), (0, None)))(np.stack([X, X]), W)
    np.testing.assert_allclose(cj.grad(f)(X, W), stacked[1])
    kwargs = cj.checkpoint(lambda x, *, scale: lax.sin(x) * scale, prevent_cse=(True,))
    np.testing.assert_allclose(2.0 * np.cos(0.5), cj.jit(cj.grad(lambda x: kwargs(x, scale=2.0)))(0.5))


# Static arguments, and functions that are traced once

def test_static_arguments_by_number_and_by_name():
    f = cj.checkpoint(lambda x, power, negate=False: -x ** power if negate else x ** power, static_argnums=1,
                      static_argnames="negate")
    assert 12.0 == cj.grad(f)(2.0, 3) and -12.0 == cj.grad(f)(2.0, 3, negate=True) == -cj.grad(f)(2.0, 3, negate=False)
    g = cj.checkpoint(static_argnames=("mode",))(lambda x, mode: {"sin": lax.sin, "cos": lax.cos}[mode](x))
    np.testing.assert_allclose([np.cos(1.0), -np.sin(1.0)], [cj.grad(g)(1.0, mode="sin"), cj.grad(g)(1.0, mode="cos")])
    with pytest.raises(CorejaxError, match="can't be hashed"):
        g(1.0, mode=["sin"])


def test_a_function_is_traced_once_for_equal_arguments(monkeypatch):
    staged, real = [], carrying.stage_call

    def counted(*args):
        staged.append(args)
        return real(*args)
    monkeypatch.setattr(carrying, "stage_call", counted)
    f = cj.checkpoint(partial(lambda scale, x: lax.sin(x) * scale, 2.0))
    for _ in range(5):
        cj.grad(f)(1.0)
    cj.jit(cj.grad(f))(1.0)
    assert 2 == len(staged)  # the second call is the first one that is looked up
    cj.grad(f)(np.float32(1.0))
    assert 3 == len(staged)


def test_a_function_that_reads_something_else_is_traced_again():
    scales = [1.0]
    f = cj.checkpoint(lambda x: x * scales[0] * factor)
    factor = 1.0
    found = []
    for pair in ((1.0, 1.0), (1.0, 1.0), (3.0, 1.0), (3.0, 1.0), (3.0, 2.0), (1.0, 1.0)):
        scales[0], factor = pair
        found.append(cj.grad(f)(1.0).item())
    assert [1.0, 1.0, 3.0, 3.0, 6.0, 1.0] == found


def test_values_that_are_traced_outside_are_never_kept():
    def outer(s):
        f = cj.checkpoint(lambda x: lax.sin(x) * s)
        return f(1.0) + f(2.0) + f(3.0)
    slope = np.sin([1.0, 2.0, 3.0]).sum()
    np.testing.assert_allclose([slope] * 2, cj.vmap(cj.grad(outer))(np.ones(2)))
    np.testing.assert_allclose(slope, cj.jit(cj.grad(outer))(1.0))
    table = {}
    g = cj.checkpoint(lambda x: x * table["s"])
    for _ in range(3):
        def total(s):
            table["s"] = s
            return g(2.0) + g(3.0)
        assert 5.0 == cj.grad(total)(4.0) and 20.0 == cj.jit(total)(4.0)


# The table

def test_residuals_say_where_they_come_from(capsys):
    def f(point, *, scale):
        return lax.sin(checkpoint_name(point["x"] * scale, "scaled")).sum()
    rows = cj.saved_residuals(f, {"x": X}, scale=2.0)
    assert [(row.aval, row.nbytes, row.what) for row in rows] == [
        (ShapedArray((4,), "float64"), 32, "the argument point['x']"),
        (ShapedArray((), "float64", True), 8, "the argument scale"), (ShapedArray((4,), "float64"), 32, "cos")]
    assert 72 == rows.nbytes
    assert __file__ in rows[2].where and "(test_residuals_say_where_they_come_from.<locals>.f)" in rows[2].where
    saving = cj.checkpoint(f, policy=POLICIES.save_only_these_names("scaled"))
    ad_checkpoint.print_saved_residuals(saving, {"x": X}, scale=2.0)
    lines = capsys.readouterr().out.splitlines()
    assert ["f64[4]", "32", "B", "the", "argument", "point['x']"] == lines[0].split()
    assert "checkpoint_name 'scaled'" in lines[2] and 3 == len(lines)
    assert "" == str(cj.saved_residuals(lambda x: 2.0 * x, X)) == str(cj.saved_residuals(lambda: 1.0))
    shapes = cj.saved_residuals(lambda x: lax.sin(x), cj.ShapeDtypeStruct((10 ** 6, 10 ** 6), np.float32))
    assert 4 * 10 ** 12 == shapes.nbytes


def test_names_are_of_whatever_is_in_a_tree():
    found = checkpoint_name({"a": np.float32(1.0), "b": [2, None]}, "x")
    assert np.float32 == found["a"].dtype and 2 == found["b"][0] and found["b"][1] is None
    jaxpr = cj.make_jaxpr(lambda x: checkpoint_name((x, x), "x"))(1.0)
    assert ["checkpoint_name"] * 2 == [eqn.primitive.name for eqn in jaxpr.eqns]
    both = cj.make_jaxpr(lambda x, t: cj.jvp(lambda x: checkpoint_name(x, "x"), (x,), (t,)))(1.0, 1.0)
    assert 1 == count(both.jaxpr, "checkpoint_name")


# Wrong uses

def of_policy(policy):
    return cj.grad(cj.checkpoint(lambda x: lax.sin(lax.sin(x)), policy=policy))(1.0)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: of_policy(lambda *_, **__: 1), "must say whether results are saved"),
    (lambda: of_policy(lambda *_, **__: None), "must say whether results are saved"),
    (lambda: of_policy(POLICIES.save_only_these_names), "wanted: strings, as checkpoint_name"),
    (lambda: POLICIES.save_only_these_names(3), "names_which_can_be_saved are names"),
    (lambda: POLICIES.save_any_names_but_these(["a"]), "names_not_to_save are names"),
    (lambda: POLICIES.save_anything_except_these_names(None), "names_not_to_save are names"),
    (lambda: POLICIES.save_from_both_policies(POLICIES.dots_saveable, "x"), "policy_2 must be a policy"),
    (lambda: POLICIES.offload_dot_with_no_batch_dims("device", 3), "offload_dst is a kind of memory"),
    (lambda: POLICIES.save_and_offload_only_these_names(
        names_which_can_be_saved=["a"], names_which_can_be_offloaded=["a"], offload_src="device",
        offload_dst="pinned_host"), "either saved or offloaded"),
    (lambda: checkpoint_name(1.0, 2), "the name must be a string"),
    (lambda: checkpoint_name("x", "name"), "x is a str"),
    (lambda: cj.saved_residuals(3, 1.0), "expected a function"),
    (lambda: cj.saved_residuals(lambda x: x), "doesn't take these arguments"),
])
def test_wrong_uses_are_refused_by_name(call, message):
    with pytest.raises(CorejaxError, match=message) as caught:
        call()
    assert __file__ in caught.value.where


def test_a_policy_that_raises_is_told_from_ours():
    with pytest.raises(ZeroDivisionError):
        of_policy(lambda *_, **__: operator.truediv(1, 0))


def test_a_flag_for_each_part_of_an_argument():
    def f(given, y):
        return lax.sin(lax.dot(lax.sin(given["w"]), given["x"]) * y).sum()
    given = {"w": W, "x": X}
    text = {str(flags): cj.jit(cj.grad(cj.checkpoint(f, prevent_cse=flags))).lower(given, 2.0).as_text()
            for flags in (({"w": True, "x": False}, False), (True, False), ({"w": False, "x": False}, False))}
    sizes = [sum([line.count("tensor<") for line in each.splitlines() if "optimization_barrier" in line])
             for each in text.values()]
    assert sizes[2] < sizes[0] < sizes[1]
    with pytest.raises(CorejaxError, match="the structure of prevent_cse doesn't fit the arguments"):
        cj.checkpoint(f, prevent_cse=({"w": True}, False))(given, 2.0)
    with pytest.raises(CorejaxError, match="prevent_cse must be True or False"):
        cj.checkpoint(f, prevent_cse=({"w": 1, "x": True}, False))


def test_values_that_a_function_closed_over_before_are_not_kept():
    given = {"w": cj.device_put(np.ones(3))}
    f = cj.checkpoint(lambda x: lax.sin(x * given["w"]).sum())
    seen = []
    for _ in range(4):
        for _ in range(3):
            cj.grad(f)(2.0)
        seen.append(weakref.ref(given["w"]))
        given["w"] = given["w"] + 1.0
    gc.collect()
    assert [None] * 4 == [each() for each in seen]
    np.testing.assert_allclose(5.0 * np.cos(10.0) * 3, cj.grad(f)(2.0))
    rows = np.arange(3.0)  # becomes another array at each call
    g = cj.checkpoint(lambda x: lax.sin(x * rows).sum())
    assert 1 == len({cj.grad(g)(2.0).item() for _ in range(4)})
