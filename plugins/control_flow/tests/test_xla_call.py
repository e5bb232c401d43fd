"""Nested jit: what `xla_call` leaves in jaxprs, under every transformation; and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import Jaxpr, Linear, ShapedArray, Zero, eval_jaxpr, stage
from corejax.errors import CorejaxError
from corejax.ir import count_eqns, dce, jaxpr_text, parse_jaxpr, typecheck

X = np.array([0.3, -0.7, 1.1])
V = np.array([0.5, 0.25, -1.0])


@cj.jit
def inner(x, y):
    return lax.sin(x) * y, x * 2.0


def program(x):
    a, b = inner(x, lax.cos(x))
    return (a * b).sum()


def unjitted(x):
    return (lax.sin(x) * lax.cos(x) * (x * 2.0)).sum()


def calls(jaxpr: Jaxpr):
    return [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "xla_call"]


def names(jaxpr: Jaxpr):
    return [eqn.primitive.name for eqn in jaxpr.eqns]


def called(fun, *args):
    """The jaxpr of `fun`, to be called by lax.xla_call."""
    return stage(lambda *xs: fun(*xs), [ShapedArray(np.shape(x), np.asarray(x).dtype) for x in args], "f").jaxpr


# Structure

def test_a_jitted_function_is_one_equation_that_carries_its_jaxpr():
    closed = cj.make_jaxpr(program)(X)
    (call,) = calls(closed.jaxpr)
    assert {"jaxpr", "name", "donated", "inline", "keep_unused"} == set(call.params)
    assert "inner" == call.params["name"]
    assert ["sin", "mul", "mul"] == names(call.params["jaxpr"])
    assert () == call.params["jaxpr"].constvars
    typecheck(closed.jaxpr)


def test_what_the_function_closes_over_becomes_operands():
    table = cj.device_put(np.arange(3.0))

    def outer(x):
        return cj.jit(lambda y: y * x + table)(x)

    closed = cj.make_jaxpr(outer)(X)
    (call,) = calls(closed.jaxpr)
    assert () == call.params["jaxpr"].constvars
    assert len(call.invars) == len(call.params["jaxpr"].invars)
    np.testing.assert_allclose(eval_jaxpr(closed.jaxpr, closed.consts, X)[0], X * X + np.arange(3.0))
    np.testing.assert_allclose(cj.grad(lambda x: outer(x).sum())(X), 2 * X)


def test_printing_leaves_out_params_at_their_default_and_parses_back_in_full():
    closed = cj.make_jaxpr(lambda x: cj.jit(lambda y: lax.sin(y))(x))(X)
    text = str(closed)
    assert "xla_call[" in text
    assert "donated" not in text and "inline" not in text and "keep_unused" not in text
    full = jaxpr_text(closed, pretty=False)
    assert full == jaxpr_text(parse_jaxpr(full), pretty=False)


def test_inline_calls_are_evaluated_in_place_under_a_transformation_only():
    f = cj.jit(lambda x: lax.sin(x) * 2.0, inline=True)
    assert ["sin", "mul"] == names(cj.make_jaxpr(f)(X).jaxpr)
    np.testing.assert_allclose(f(X), 2 * np.sin(X))
    np.testing.assert_allclose(cj.vmap(f)(X), 2 * np.sin(X))
    np.testing.assert_allclose(cj.grad(lambda x: f(x).sum())(X), 2 * np.cos(X), rtol=1e-12)


# Forward mode

def test_jvp_passes_no_tangent_that_is_zero():
    closed = cj.make_jaxpr(lambda x, v: cj.jvp(lambda x: inner(x, X), (x,), (v,)))(X, V)
    (call,) = calls(closed.jaxpr)
    assert 3 == len(call.invars)  # x, y and the tangent of x
    assert 4 == len(call.outvars)
    closed = cj.make_jaxpr(lambda y, v: cj.jvp(lambda y: inner(X, y), (y,), (v,)))(X, V)
    (call,) = calls(closed.jaxpr)
    assert 3 == len(call.outvars)  # the second result does not depend on y


# Partial evaluation and reverse mode

def test_grad_of_a_call_is_one_call_forward_and_one_backward():
    closed = cj.make_jaxpr(cj.grad(lambda x: cj.jit(lambda x: lax.sin(lax.sin(x)).sum())(x)))(X)
    typecheck(closed.jaxpr)
    forward, backward = calls(closed.jaxpr)
    assert not {"cos"} & set(names(backward.params["jaxpr"]))
    assert {"sin", "cos"} <= set(names(forward.params["jaxpr"]))
    assert ["cos", "cos"] == [n for n in names(forward.params["jaxpr"]) if n == "cos"]


def split(fun, unknown_in, *args):
    """The equations that partial evaluation of a call of `fun` gives."""
    closed = cj.make_jaxpr(lambda *xs: lax.xla_call(*xs, jaxpr=called(fun, *args), name="f"))(*args)
    (eqn,) = closed.eqns
    return eqn, *eqn.primitive.partial_eval(eqn, tuple(unknown_in))


def test_partial_evaluation_returns_no_residual_that_is_an_operand_or_a_result():
    eqn, known, staged, unknown_out, residuals = split(
        lambda x, y: (lax.sin(x), lax.mul(lax.sin(x), lax.mul(x, y))), [False, True], X, V)
    assert (False, True) == tuple(unknown_out)
    # sin(x) occurs twice in the program: one is the known result, the other a residual; x is an operand anyway
    assert eqn.outvars[0] in known.outvars and len(known.outvars) <= 2
    assert eqn.invars[0] in staged.invars and eqn.invars[1] in staged.invars
    assert eqn.invars[0] not in residuals
    assert [eqn.outvars[1]] == list(staged.outvars)


def test_a_residual_that_is_a_known_result_is_that_result():
    def f(x, y):
        s = lax.sin(x)
        return s, lax.mul(s, y)

    eqn, known, staged, unknown_out, residuals = split(f, [False, True], X, V)
    assert [eqn.outvars[0]] == list(known.outvars)
    assert [eqn.outvars[0], eqn.invars[1]] == list(staged.invars)
    assert [eqn.outvars[0]] == list(residuals)


def test_a_call_of_which_all_is_unknown_has_no_known_part_and_the_reverse():
    def f(x, y):
        return (lax.mul(x, y),)

    _, known, staged, unknown_out, residuals = split(f, [True, True], X, V)
    assert known is None and staged is not None and [] == list(residuals) and (True,) == tuple(unknown_out)
    _, known, staged, unknown_out, residuals = split(f, [False, False], X, V)
    assert known is not None and staged is None and [] == list(residuals) and (False,) == tuple(unknown_out)


def test_the_known_part_computes_nothing_that_is_not_used():
    _, known, staged, _, _ = split(lambda x, y: (lax.mul(lax.add(x, x), y),), [False, True], X, V)
    assert ["add"] == names(known.params["jaxpr"])
    assert ["mul"] == names(staged.params["jaxpr"])


def test_an_operand_that_is_still_needed_is_not_donated():
    jaxpr = called(lambda x, y: (lax.mul(x, y),), X, V)
    closed = cj.make_jaxpr(lambda x, y: lax.xla_call(x, y, jaxpr=jaxpr, donated=(True, True)))(X, V)
    (eqn,) = closed.eqns
    known, staged, _, _ = eqn.primitive.partial_eval(eqn, (False, True))
    assert known is None or True not in known.params["donated"]
    assert True not in staged.params["donated"]


def test_transposing_skips_cotangents_that_are_zero():
    def f(x):
        a, b = cj.jit(lambda x: (x * 2.0, lax.sin(x)))(x)
        return a.sum()  # nothing flows back through b

    closed = cj.make_jaxpr(cj.grad(f))(X)
    backward = calls(closed.jaxpr)[-1]
    assert ["mul"] == [n for n in names(backward.params["jaxpr"]) if n != "convert_element_type"]


def test_linear_transpose_of_a_call():
    f = cj.jit(lambda x: (x * 3.0, x.sum()))
    (back,) = cj.linear_transpose(f, X)((V, np.float64(2.0)))
    np.testing.assert_allclose(back, 3 * V + 2.0)


def test_the_transpose_rule_gives_zero_where_nothing_flows():
    jaxpr = called(lambda x, y: (lax.mul(x, 2.0), y), X, V)
    aval = ShapedArray((3,), np.float64)
    back = lax.xla_call.primitive.transpose(
        [cj.device_put(V), Zero(aval)], [Linear(aval), Linear(aval)],
        jaxpr=jaxpr, name="f", donated=(False, False), inline=False, keep_unused=False)
    np.testing.assert_allclose(back[0], 2 * V)
    assert type(back[1]) is Zero


def test_transformed_programs_are_made_once():
    f = cj.jit(lambda x: lax.sin(x).sum())

    def backward():
        return calls(cj.make_jaxpr(cj.grad(f))(X).jaxpr)[-1].params["jaxpr"]

    assert backward() is backward()


# Dead code

def test_dead_results_and_operands_of_a_call_are_removed():
    jaxpr = cj.make_jaxpr(lambda x, y: inner(x, y)[1])(X, V).jaxpr
    smaller, used = dce(jaxpr, [True])
    (call,) = calls(smaller)
    assert (True, False) == used
    assert (1, 1) == (len(call.invars), len(call.outvars))
    assert 2 == count_eqns(smaller)
    typecheck(smaller)
    assert 0 == count_eqns(dce(jaxpr, [False])[0])


# Refusals

@pytest.mark.parametrize(("args", "options", "message"), [
    ((np.ones(4),), {}, "don't fit the called jaxpr"),
    ((X, X), {}, "don't fit the called jaxpr"),
    ((X.astype(np.float32),), {}, "don't fit the called jaxpr"),
    ((X,), {"donated": (True, False)}, "one flag for each operand")])
@pytest.mark.parametrize("inline", [False, True])
def test_operands_that_do_not_fit_are_refused(args, options, message, inline):
    jaxpr = called(lambda x: (lax.sin(x),), X)
    with pytest.raises(TypeError, match=message) as caught:
        lax.xla_call(*args, jaxpr=jaxpr, inline=inline, **options)
    assert isinstance(caught.value, CorejaxError)


def test_an_error_inside_a_nested_function_leaves_everything_as_before():
    def fails(x):
        raise RuntimeError("mine")

    for run in (cj.grad(lambda x: cj.jit(fails)(x)), cj.vmap(cj.jit(fails)), cj.jit(cj.jit(fails))):
        with pytest.raises(RuntimeError, match="mine"):
            run(X)
        np.testing.assert_allclose(program(X), unjitted(X))
