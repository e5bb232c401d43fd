"""`cond` and `switch`: which branch, structure, partial evaluation, and what is refused."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import Jaxpr, Linear, ShapedArray, Var, Zero, eval_jaxpr, stage
from corejax.errors import CorejaxError
from corejax.ir import count_eqns, dce, jaxpr_text, parse_jaxpr, typecheck
from corejax.plugin import Effect, define, hookimpl
from corejax_control_flow import conditional

X = np.array([0.3, -0.7, 1.1])
V = np.array([0.5, 0.25, -1.0])
W = np.arange(9.0).reshape(3, 3) / 7
TABLE = np.array([2.0, -1.0, 0.5])


def conds(jaxpr: Jaxpr):
    return [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "cond"]


def names(jaxpr: Jaxpr):
    return [eqn.primitive.name for eqn in jaxpr.eqns]


def program_of(fun, *args):
    """The jaxpr of a function, which is well-typed and prints so that it parses back."""
    closed = cj.make_jaxpr(fun)(*args)
    typecheck(closed.jaxpr)
    text = jaxpr_text(closed, pretty=False)
    assert text == jaxpr_text(parse_jaxpr(text), pretty=False)
    return closed.jaxpr


def branch(fun, *args):
    return stage(fun, [ShapedArray(np.shape(x), np.asarray(x).dtype) for x in args], "branch").jaxpr


# Programs: with a conditional, and the same with a choice between the results of both branches

def choose(pred, on_true, on_false):
    pred = lax.convert_element_type(pred, np.bool_)
    return lax.select(lax.broadcast(pred, on_true.shape), on_true, on_false)


def smooth(x):
    return lax.cond(x.sum() > 0.5, lambda x: lax.sin(x) * x, lambda x: lax.exp(x), x).sum()


def smooth_by_select(x):
    return choose(x.sum() > 0.5, lax.sin(x) * x, lax.exp(x)).sum()


def closing_over(x):
    y = lax.cos(x)
    return lax.cond(y.sum() > 2.0, lambda: y * x, lambda: lax.dot(W, y) * TABLE).sum()


def closing_over_by_select(x):
    y = lax.cos(x)
    return choose(y.sum() > 2.0, y * x, lax.dot(W, y) * TABLE).sum()


def one_sided(x):
    return lax.cond(x[0] > 0.2, lambda x: x * x * x, lambda _: lax.full((3,), 2.0, np.float64), x).sum() * x[1]


def one_sided_by_select(x):
    return choose(x[0] > 0.2, x * x * x, lax.full((3,), 2.0, np.float64)).sum() * x[1]


def nested(x):
    def inner(x):
        return lax.cond(x[1] < 0.0, lambda: lax.tanh(x), lambda: x * lax.sin(x))

    def middle(x):
        return lax.switch(lax.convert_element_type(lax.floor(x[2]), np.int32), [inner, lambda x: inner(x) * x, lax.exp],
                          x)

    return lax.cond(x.sum() > 0.5, middle, lambda x: x * x, x).sum()


def nested_by_select(x):
    inner = choose(x[1] < 0.0, lax.tanh(x), x * lax.sin(x))
    middle = choose(x[2] < 1.0, inner, choose(x[2] < 2.0, inner * x, lax.exp(x)))
    return choose(x.sum() > 0.5, middle, x * x).sum()


def several_results(x):
    a, (b, c) = lax.cond(x[0] > 0.2, lambda x: (x, (lax.sin(x), x.sum())), lambda x: (x, (x, lax.cos(x[0]))), x)
    return (a * b).sum() * c


def several_results_by_select(x):
    pred = x[0] > 0.2
    return (x * choose(pred, lax.sin(x), x)).sum() * choose(pred, x.sum(), lax.cos(x[0]))


PROGRAMS = {"smooth": (smooth, smooth_by_select), "closing over": (closing_over, closing_over_by_select),
            "one sided": (one_sided, one_sided_by_select), "nested": (nested, nested_by_select),
            "several results": (several_results, several_results_by_select)}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_conditional_is_a_choice_of_results(program):
    conditional, selecting = PROGRAMS[program]
    for transform in (lambda f: f, cj.jit, cj.grad, cj.hessian):
        np.testing.assert_allclose(transform(conditional)(X), transform(selecting)(X), rtol=1e-9, atol=1e-12)
    xs = np.stack([X, X * 0.4, X * 1.3])
    np.testing.assert_allclose(cj.vmap(cj.grad(conditional))(xs), cj.vmap(cj.grad(selecting))(xs), rtol=1e-9,
                               atol=1e-12)


# Choosing the branch

@pytest.mark.parametrize("pred", [True, 1, -2, 0.5, np.True_, np.int8(3), np.float32(2), np.array(True), np.array(7)])
def test_a_predicate_is_a_boolean_or_a_number_that_counts_as_one(pred):
    def f(pred):
        return lax.cond(pred, lambda: 10, lambda: 20)

    assert 10 == int(f(pred)) == int(cj.jit(f)(pred))
    no = np.zeros_like(pred)
    assert 20 == int(f(no)) == int(cj.jit(f)(no)) == int(f(no.item()))


@pytest.mark.parametrize("index", [-7, -1, 0, 1, 2, 3, 100, np.uint8(200), np.int64(2 ** 40), np.uint32(2 ** 32 - 1),
                                   np.int64(-(2 ** 40)), np.array(1), np.int8(-128)])
def test_an_index_out_of_range_counts_as_the_nearest(index):
    def f(i):
        return lax.switch(i, [lambda: 10, lambda: 20, lambda: 30])

    nearest = min(max(int(index), 0), 2)
    assert [10, 20, 30][nearest] == int(f(index)) == int(cj.jit(f)(index))
    assert [10, 20, 30][nearest] == int(cj.vmap(f)(np.array([index]))[0])


class Explode:
    """explode(x) = x, and it must not be evaluated."""

    name = "explode"
    linear = (0,)

    @hookimpl
    def impl(self, args):
        raise AssertionError("evaluated")

    @hookimpl
    def abstract_eval(self, avals):
        return avals[0]


explode = define(Explode())


def test_on_values_only_the_branch_taken_is_evaluated_under_every_transformation():
    def f(x):
        return lax.cond(x.sum() > 0.5, lambda x: lax.sin(x), lambda x: explode(x), x).sum()

    np.testing.assert_allclose(f(X), np.sin(X).sum())
    np.testing.assert_allclose(cj.grad(f)(X), np.cos(X))
    np.testing.assert_allclose(cj.jvp(f, (X,), (V,))[1], (np.cos(X) * V).sum())
    np.testing.assert_allclose(cj.linearize(f, X)[1](V), (np.cos(X) * V).sum())
    mapped = cj.vmap(lambda x: lax.cond(True, lambda x: lax.sin(x), lambda x: explode(x), x))
    np.testing.assert_allclose(mapped(X), np.sin(X))
    np.testing.assert_allclose(cj.grad(lambda x: mapped(x).sum())(X), np.cos(X))
    jaxpr = cj.make_jaxpr(f)(X)
    np.testing.assert_allclose(eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, X)[0], np.sin(X).sum())
    np.testing.assert_allclose(
        cj.grad(lambda x: eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, x)[0])(X), np.cos(X))
    with pytest.raises(AssertionError, match="evaluated"):
        f(-X)


def test_a_batched_predicate_never_mixes_in_the_derivative_of_the_other_branch():
    def safe_log(x):
        return lax.cond(x > 0.0, lambda x: lax.log(x), lambda x: x * 0.0, x)

    def total(x):
        return cj.vmap(safe_log)(x).sum()

    x = np.array([1.0, 0.0, 2.0])
    for run in (cj.grad(total), cj.jit(cj.grad(total)), cj.grad(cj.jit(total)), cj.vmap(cj.grad(safe_log))):
        np.testing.assert_array_equal(run(x), [1.0, 0.0, 0.5])

    def shared(x):  # an operand that is the same for all elements
        return cj.vmap(lambda i: lax.switch(i, [lambda: 1.0, lambda: 1.0 / x, lambda: x]))(np.array([0, 2, 0])).sum()

    assert 1.0 == float(cj.grad(shared)(0.0)) == float(cj.jit(cj.grad(shared))(0.0))

    def by_two(x):
        return cj.vmap(lambda p: lax.cond(p, lambda: 0.0, lambda: 1.0 / x))(np.array([True, True])).sum()

    assert 0.0 == float(cj.grad(by_two)(0.0))
    assert -2.0 == float(cj.grad(lambda x: cj.vmap(lambda p: lax.cond(p, lambda: 0.0, lambda: 1.0 / x))(
        np.array([False, True, False])).sum())(1.0))


# Operands and results

def test_operands_and_results_are_pytrees():
    def f(p, tree, y):
        return lax.cond(p, lambda t, y: {"s": t["a"][0] + y, "none": None, "e": (), "t": [t["a"][1]]},
                        lambda t, y: {"s": t["b"], "none": None, "e": (), "t": [y]}, tree, y)

    tree = {"a": (1.0, 2.0), "b": 3.0}
    for run in (f, cj.jit(f)):
        assert {"s": 11.0, "none": None, "e": (), "t": [2.0]} == run(True, tree, 10.0)
        assert {"s": 3.0, "none": None, "e": (), "t": [10.0]} == run(False, tree, 10.0)


def test_no_operands_no_results_and_one_operand_by_keyword():
    assert lax.cond(True, lambda: None, lambda: None) is None
    assert () == cj.jit(lambda p: lax.cond(p, lambda: (), lambda: ()))(True)
    assert 4.0 == float(lax.cond(True, lambda x: x + 1.0, lambda x: x, operand=3.0))
    assert 1 == int(lax.cond(True, lambda none: 1, lambda none: 2, operand=None))
    assert 6.0 == float(lax.switch(1, [lambda x: x, lambda x: x * 2.0], operand=3.0))


def test_one_branch_is_no_conditional():
    assert ["sin"] == names(program_of(lambda i, x: lax.switch(i, [lambda x: lax.sin(x)], x), 5, X))
    np.testing.assert_allclose(lax.switch(9, [lambda x: x * TABLE], X), X * TABLE)


def test_a_result_is_weak_where_it_is_in_the_first_branch_by_number():
    def f(p, x):
        return lax.cond(p, lambda: (1.0, x), lambda: (np.float64(2.0), 3.0))

    jaxpr = program_of(f, True, np.float64(1.0))
    assert ["f64[]", "~f64[]"] == [str(aval) for aval in jaxpr.out_avals]
    for run in (f, cj.jit(f)):
        for pred in (True, False):
            assert [False, True] == [out.weak_type for out in run(pred, np.float64(1.0))]
    weak = lax.cond(True, lambda: 1.0, lambda: 2.0)
    assert weak.weak_type


def test_integer_operands_and_results_have_no_derivatives():
    def f(x, n):
        return lax.cond(n[0] > 0, lambda x, n: (x * lax.convert_element_type(n, np.float64), n + 1),
                        lambda x, n: (x, n), x, n)

    n = np.array([1, 2, 3])
    for run in (f, cj.jit(f)):
        np.testing.assert_allclose(cj.grad(lambda x, run=run: run(x, n)[0].sum())(X), n)
        (_, count), (x_dot, n_dot) = cj.jvp(lambda x, run=run: run(x, n), (X,), (V,))
        np.testing.assert_allclose(x_dot, V * n)
        np.testing.assert_array_equal(count, n + 1)
        assert np.asarray(n_dot).dtype == cj.float0
    out = cj.vmap(cj.jit(lambda x, n: cj.grad(lambda x: f(x, n)[0].sum())(x)))(np.stack([X, V]), np.stack([n, -n]))
    np.testing.assert_allclose(out, [n, np.ones(3)])


# Structure

def test_branches_take_the_same_operands_the_false_one_first():
    (eqn,) = conds(program_of(lambda p, x: lax.cond(p, lambda x: lax.sin(x), lambda x: lax.exp(x), x), True, X))
    assert {"branches"} == set(eqn.params)
    on_false, on_true = eqn.params["branches"]
    assert (["exp"], ["sin"]) == (names(on_false), names(on_true))
    assert ["i32[]", "f64[3]"] == [str(x.aval) for x in eqn.invars]


def test_what_branches_close_over_becomes_operands_once():
    table = cj.device_put(TABLE)

    def f(p, x):
        y = lax.sin(x)
        return lax.cond(p, lambda: y * table, lambda: lax.exp(x) + table * y)

    (eqn,) = conds(program_of(f, True, X))
    assert 4 == len(eqn.invars)  # index, table, x, y
    for one in eqn.params["branches"]:
        assert () == one.constvars and [x.aval for x in eqn.invars[1:]] == one.in_avals
    np.testing.assert_allclose(f(True, X), np.sin(X) * TABLE)
    np.testing.assert_allclose(cj.jit(f)(False, X), np.exp(X) + TABLE * np.sin(X))


def test_results_on_which_all_branches_agree_are_no_results_of_the_equation():
    def f(p, x, y):
        return lax.cond(p, lambda x, y: (x, lax.sin(x), 1.0, y), lambda x, y: (x, y, 1.0, y), x, y)

    jaxpr = program_of(f, True, X, V)
    (eqn,) = conds(jaxpr)
    assert 1 == len(eqn.outvars)
    assert jaxpr.invars[1] is jaxpr.outvars[0] and jaxpr.invars[2] is jaxpr.outvars[3]
    for got, wanted in zip(f(True, X, V), (X, np.sin(X), 1.0, V), strict=True):
        np.testing.assert_allclose(got, wanted)
    assert [] == conds(program_of(lambda p, x: lax.cond(p, lambda x: (x, 1.0), lambda x: (x, 1.0), x), True, X))


def test_a_result_that_is_returned_twice_is_computed_once():
    def f(p, x):
        return lax.cond(p, lambda: (lax.sin(x),) * 2, lambda: (lax.cos(x),) * 2)

    (eqn,) = conds(program_of(f, True, X))
    assert 1 == len(eqn.outvars)
    np.testing.assert_allclose(f(False, X), [np.cos(X)] * 2)


def test_operands_that_no_branch_uses_are_dropped():
    (eqn,) = conds(program_of(lambda p, x, y: lax.cond(p, lambda x, y: lax.sin(y), lambda x, y: y, x, y), True, X, V))
    assert 2 == len(eqn.invars)


def test_a_computed_index_is_clamped():
    def f(i):
        return lax.switch(i, [lambda: 1, lambda: 2, lambda: 3])

    assert ["clamp", "cond"] == names(program_of(f, np.int32(1)))
    assert ["convert_element_type", "clamp", "cond"] == names(program_of(f, np.int8(1)))
    assert ["clamp", "convert_element_type", "cond"] == names(program_of(f, np.int64(1)))
    assert ["convert_element_type", "cond"] == names(program_of(lambda p: lax.cond(p, lambda: 1, lambda: 2), True))
    assert ["ne", "convert_element_type", "cond"] == names(program_of(
        lambda p: lax.cond(p, lambda: 1, lambda: 2), 2.0))


def test_dead_results_and_operands_are_removed():
    def f(p, x, y):
        return lax.cond(p, lambda x, y: (lax.sin(x), lax.exp(y)), lambda x, y: (lax.cos(x), y), x, y)

    jaxpr = program_of(f, True, X, V)
    smaller, used = dce(jaxpr, [False, True])
    typecheck(smaller)
    (eqn,) = conds(smaller)
    assert (True, False, True) == used
    assert (2, 1) == (len(eqn.invars), len(eqn.outvars))
    assert [[], ["exp"]] == [names(one) for one in eqn.params["branches"]]
    assert 0 == count_eqns(dce(jaxpr, [False, False])[0])
    assert dce(jaxpr, [True, True])[0] is jaxpr


def test_no_tangent_is_passed_that_is_zero_and_none_is_returned_that_is_zero_in_all_branches():
    def f(p, x, y):
        return lax.cond(p, lambda x, y: (lax.sin(x), y * 2.0), lambda x, y: (x * y, y * y), x, y)

    (eqn,) = conds(program_of(lambda p, v: cj.jvp(lambda x: f(p, x, X), (X,), (v,)), True, V))
    assert 4 == len(eqn.invars)  # index, x, y, and the tangent of x
    assert 3 == len(eqn.outvars)  # both results, and the tangent of the first


# Partial evaluation

def split(branches, unknown_in, *args):
    """The equations that partial evaluation of a conditional between these functions gives."""
    branches = tuple([branch(fun, *args) for fun in branches])
    closed = stage(lambda i, *xs: lax.cond.primitive.bind(i, *xs, branches=branches),
                   [ShapedArray((), np.int32), *[ShapedArray(x.shape, x.dtype) for x in args]])
    (eqn,) = closed.jaxpr.eqns
    parts = eqn.primitive.partial_eval(eqn, tuple(unknown_in))
    for part in parts[:2]:
        if part is not None:
            part.primitive.infer(tuple([x.aval for x in part.invars]), part.params)
    return eqn, *parts


def test_branches_share_the_slots_of_residuals_of_one_type():
    eqn, known, staged, unknown_out, residuals = split(
        [lambda x, y: [lax.mul(lax.sin(x), y)], lambda x, y: [lax.mul(lax.exp(x), lax.mul(lax.cos(x), y))]],
        [False, False, True], X, V)
    assert (True,) == tuple(unknown_out)
    assert 2 == len(known.outvars) == len(residuals)  # two for the second branch, one of them for the first
    assert [eqn.invars[0], *residuals, eqn.invars[2]] == list(staged.invars)
    zeros = known.params["branches"][0].outvars[1]
    assert type(zeros) is Var and "broadcast_in_dim" == names(known.params["branches"][0])[-1]


def test_no_residual_is_an_operand_or_a_known_result():
    def product(x, y):
        s = lax.sin(x)
        return [s, lax.mul(s, lax.mul(x, y))]

    eqn, known, staged, unknown_out, residuals = split([product, lambda x, y: [x, lax.mul(x, y)]],
                                                       [False, False, True], X, V)
    assert (False, True) == tuple(unknown_out)
    assert [eqn.outvars[0]] == list(known.outvars) == list(residuals)
    assert {eqn.invars[0], eqn.invars[1], eqn.outvars[0], eqn.invars[2]} == set(staged.invars)
    assert [eqn.outvars[1]] == list(staged.outvars)


def test_a_result_is_unknown_if_it_is_in_one_branch():
    eqn, known, staged, unknown_out, _ = split(
        [lambda x, y: [lax.sin(x), x], lambda x, y: [y, x]], [False, False, True], X, V)
    assert (True, False) == tuple(unknown_out)
    assert [eqn.outvars[0]] == list(staged.outvars)
    assert eqn.outvars[1] in known.outvars


def test_an_unknown_index_leaves_everything_unknown():
    eqn, known, staged, unknown_out, residuals = split([lambda x: [lax.sin(x)], lambda x: [x]], [True, False], X)
    assert known is None and staged is eqn and (True,) == tuple(unknown_out) and [] == list(residuals)
    _, known, staged, unknown_out, _ = split([lambda x: [lax.sin(x)], lambda x: [x]], [False, False], X)
    assert staged is None and (False,) == tuple(unknown_out) and ["sin"] == names(known.params["branches"][0])


def test_grad_is_one_conditional_forward_and_one_backward_that_computes_nothing_again():
    jaxpr = program_of(cj.grad(lambda x, p: lax.cond(p, lambda x: lax.sin(lax.sin(x)), lambda x: x * 2.0, x).sum()),
                       X, True)
    forward, backward = conds(jaxpr)
    assert {"mul"} == {name for one in backward.params["branches"] for name in names(one)}
    assert ["cos", "cos"] == [name for name in names(forward.params["branches"][1]) if name == "cos"]


def test_transformed_branches_are_made_once():
    def on_true(x):
        return lax.sin(x) * 2.0

    def branches_of(transform):
        jaxpr = cj.make_jaxpr(transform(lambda x: lax.cond(x[0] > 0.0, on_true, lax.sin, x).sum()))(X).jaxpr
        return [one for eqn in conds(jaxpr) for one in eqn.params["branches"]]

    for transform in (lambda f: f, cj.grad, lambda f: lambda x: cj.jvp(f, (x,), (V,))):
        once, again = branches_of(transform), branches_of(transform)
        assert once and all([one is other for one, other in zip(once, again, strict=True)])


def test_the_transpose_rule_gives_zero_where_nothing_flows_in_any_branch():
    branches = branch(lambda x, y: [lax.mul(x, 2.0), y], X, V), branch(lambda x, y: [x, x], X, V)
    aval = ShapedArray((3,), np.float64)
    zero, linear = Zero(aval), [Linear(aval), Linear(aval)]
    for index, scale in ((0, 2.0), (1, 1.0)):
        none, x_bar, y_bar = lax.cond.primitive.transpose(
            [cj.device_put(V), zero], [np.int32(index), *linear], branches=branches)
        np.testing.assert_allclose(x_bar, scale * V)
        assert none is None and type(y_bar) is Zero
    _, x_bar, y_bar = lax.cond.primitive.transpose(
        [zero, cj.device_put(V)], [np.int32(0), *linear], branches=branches)
    np.testing.assert_allclose(y_bar, V)
    np.testing.assert_allclose(x_bar, np.zeros(3))  # there is a flow in the other branch


def test_linear_transpose_of_a_conditional():
    for p, scale in ((True, 3.0), (False, -1.0)):
        def f(x, p=p):
            return cj.jit(lambda x: lax.cond(p, lambda x: x * 3.0, lambda x: -x, x))(x)

        (back,) = cj.linear_transpose(f, X)(V)
        np.testing.assert_allclose(back, scale * V)


# Lowering and effects

def test_equal_branches_share_one_function_of_the_module():
    def f(p, x):
        def heavy(x):
            return lax.sin(lax.cos(lax.exp(x)))

        y = lax.cond(p, lambda x: heavy(x), lambda x: x * 2.0, x)
        return lax.cond(p, lambda x: x * 2.0, lambda x: heavy(x), y)

    text = cj.jit(f).lower(True, X).as_text()
    assert 2 == text.count("stablehlo.case")
    assert 1 == text.count("stablehlo.exponential")
    np.testing.assert_allclose(cj.jit(f)(True, X), np.sin(np.cos(np.exp(X))) * 2)


NOTED = Effect("noted_in_cond")


class Note:
    """note(x) = x, and it writes x down."""

    name = "note"

    def __init__(self):
        self._seen = []

    @hookimpl
    def impl(self, args):
        self._seen.append(args[0].tolist())
        return args[0]

    @hookimpl
    def xla_translation(self, ctx, args):
        return ctx.callback(lambda x: [self.impl([x])], args, ctx.avals_out)[0]

    @hookimpl
    def abstract_eval(self, avals):
        return avals[0]

    @hookimpl
    def effects(self, avals):
        return frozenset({NOTED})


def test_effects_of_a_branch_are_those_of_the_conditional_and_happen_for_the_elements_that_take_it():
    plugin = Note()
    note = define(plugin)

    def f(p, x):
        lax.cond(p, lambda: (note(x), None)[1], lambda: None)
        return x

    jaxpr = program_of_effects(f, True, 1.5)
    (eqn,) = conds(jaxpr)
    assert frozenset({NOTED}) == eqn.effects == jaxpr.effects
    assert 0 == len(eqn.outvars)
    assert 2 == len(names(dce(jaxpr, [False])[0]))  # the predicate's conversion, and the conditional
    eval_jaxpr(jaxpr, (), True, 1.5)
    eval_jaxpr(jaxpr, (), False, 2.5)
    f(True, 3.5)
    f(False, 4.5)
    assert [1.5, 3.5] == plugin._seen
    for mapped in (cj.vmap(f), cj.jit(cj.vmap(f)), cj.vmap(cj.jit(f))):
        plugin._seen.clear()
        cj.block_until_ready(mapped(np.array([True, False, True]), np.array([1.0, 2.0, 3.0])))
        assert [1.0, 3.0] == sorted(plugin._seen)


def program_of_effects(fun, *args):
    jaxpr = cj.make_jaxpr(fun)(*args).jaxpr
    typecheck(jaxpr)
    return jaxpr


def test_an_error_in_a_branch_leaves_everything_as_before():
    def fails(x):
        raise RuntimeError("mine")

    for run in (cj.grad(lambda x: lax.cond(True, fails, smooth, x)),
                cj.vmap(lambda x: lax.cond(x > 0, fails, fails, x)),
                cj.jit(lambda x: lax.cond(True, smooth, fails, x))):
        with pytest.raises(RuntimeError, match="mine"):
            run(X)
        np.testing.assert_allclose(smooth(X), smooth_by_select(X))


# Refusals

@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: lax.cond(None, lambda: 1, lambda: 2), TypeError, "the predicate is None"),
    (lambda: lax.cond("yes", lambda: 1, lambda: 2), TypeError, "the predicate is a str"),
    (lambda: lax.cond([True], lambda: 1, lambda: 2), TypeError, "the predicate is a list"),
    (lambda: lax.cond(X > 0, lambda: 1, lambda: 2), TypeError, r"the predicate must be a scalar[^$]*bool\[3\]"),
    (lambda: lax.cond(1j, lambda: 1, lambda: 2), TypeError, r"the predicate must be a boolean[^$]*c128\[\]"),
    (lambda: lax.cond(True, 1, lambda: 2), TypeError, "true_fun must be a function[^$]*an int: 1"),
    (lambda: lax.cond(True, lambda: 1, 2), TypeError, "false_fun must be a function"),
    (lambda: lax.cond(True, lambda x: x, lambda: 2, 1.0), TypeError, "false_fun: the function doesn't take these"),
    (lambda: lax.cond(True, lambda x: x, lambda x: x, 1.0, operand=2.0), TypeError, "is for a single operand"),
    (lambda: lax.cond(True, lambda x: 1, lambda x: 2, {"k": ["s"]}), TypeError, r"operands\[0\]\['k'\]\[0\] is a str"),
    (lambda: lax.cond(True, lambda: 1, lambda: {"k": "s"}), TypeError, r"false_fun: result\['k'\] is a str"),
    (lambda: lax.cond(True, lambda: (1, 2), lambda: [1, 2]), TypeError,
     "different structures, at result\n[^$]*from false_fun: .*a list of 2[^$]*true_fun: .*a tuple of 2"),
    (lambda: lax.cond(True, lambda: (1, {"k": 1}), lambda: (1, {"j": 1})), TypeError,
     r"different structures, at result\[1\]\n[^$]*the keys 'j'[^$]*the keys 'k'"),
    (lambda: lax.cond(True, lambda: 1, lambda: None), TypeError, "with None there[^$]*with an array there"),
    (lambda: lax.cond(True, lambda: 1.0, lambda: 1), TypeError, r"different types, at result\n[^$]*~i64\[\][^$]*~f64"),
    (lambda: lax.cond(True, lambda: (1, [X, 2]), lambda: (1, [X[:2], 2.0])), TypeError,
     r"at result\[1\]\[0\], result\[1\]\[1\]\n[^$]*f64\[2\] at result\[1\]\[0\]; ~f64\[\] at result\[1\]\[1\]"),
    (lambda: lax.switch(0, [lambda: 1, lambda: 1, lambda: 1.0]), TypeError,
     r"from branches\[2\]: ~f64\[\][^$]*as from branches\[0\]: ~i64\[\]"),
    (lambda: lax.switch(0, []), ValueError, "there are no branches"),
    (lambda: lax.switch(0, lambda: 1), TypeError, "the branches must be a sequence"),
    (lambda: lax.switch(0, [lambda: 1, 2]), TypeError, r"branches\[1\] must be a function"),
    (lambda: lax.switch(1.0, [lambda: 1, lambda: 2]), TypeError, r"the index must be an integer[^$]*~f64\[\]"),
    (lambda: lax.switch(True, [lambda: 1, lambda: 2]), TypeError, "the index must be an integer[^$]*use lax.cond"),
    (lambda: lax.switch(np.array([0, 1]), [lambda: 1, lambda: 2]), TypeError,
     r"the index must be a scalar[^$]*i64\[2\]"),
    (lambda: lax.switch(None, [lambda: 1]), TypeError, "the index is None")])
def test_wrong_calls_are_refused_by_name_and_path(call, error, message):
    for run in (call, lambda: cj.jit(lambda _: call())(1.0), lambda: cj.grad(lambda x: (call(), x)[1])(1.0)):
        with pytest.raises(error, match=message) as caught:
            run()
        assert isinstance(caught.value, CorejaxError)
        assert "test_cond.py" in str(caught.value)


@pytest.mark.parametrize(("args", "branches", "message"), [
    ((np.int32(0), X), (), "must be jaxprs"),
    ((np.int32(0), X), ("f",), "must be jaxprs"),
    ((np.int64(0), X), (branch(lambda x: [x], X),), "must be an index"),
    ((np.int32(0), X[:2]), (branch(lambda x: [x], X),), "don't fit a branch"),
    ((np.int32(0),), (branch(lambda x: [x], X),), "don't fit a branch"),
    ((np.int32(0), X), (branch(lambda x: [x], X), branch(lambda x: [x, x], X)), "different types"),
    ((np.int32(0), X), (branch(lambda x: [x], X), branch(lambda x: [x[0]], X)), "different types")])
def test_equations_that_are_no_conditionals_are_refused(args, branches, message):
    with pytest.raises(CorejaxError, match=message):
        stage(lambda: lax.cond.primitive.bind(*args, branches=branches), ())


def test_what_is_made_of_branches_is_forgotten_with_them():
    def product(x, y):
        return [lax.mul(lax.sin(x), y), y, y]

    one = branch(product, X, V)
    branches = one, branch(lambda x, y: [y, x, x], X, V), one
    results = [
        conditional._simpler(branches), conditional._shorter(branches, (False, True, True)),
        conditional.forward(branches, (True, False)), conditional.batched(branches, 2, None, (0, None)),
        conditional._split(branches, (False, True)),
        conditional.backward(branches, (False, True), (True, True, False))]
    assert all([result is not None for result in results])
    assert conditional.forward(branches, (True, False)) is results[2]
    refs = [weakref.ref(branch) for branch in branches]
    del branches, one, results
    gc.collect()
    assert [None] * 3 == [ref() for ref in refs]


@pytest.mark.parametrize("count", [2, 3])
def test_an_index_beyond_the_branches_takes_the_nearest_everywhere(count):
    branches = tuple([branch(lambda x, k=k: [x * (k + 1.0)], X) for k in range(count)])

    def f(i, x):
        return lax.cond.primitive.bind(i, x, branches=branches)[0]

    for index, factor in ((-2, 1.0), (count + 3, float(count))):
        i = np.int32(index)
        rows = [g(i[None], X[None])[0] for g in (cj.vmap(f), cj.jit(cj.vmap(f)))]
        for value in (f(i, X), cj.jit(f)(i, X), *rows):
            np.testing.assert_array_equal(X * factor, value)
        slopes = cj.jit(cj.grad(lambda x, i=i: cj.vmap(f, (0, None))(np.array([i, i]), x).sum()))(X)
        np.testing.assert_array_equal(np.full_like(X, 2 * factor), slopes)
