"""The loop that the first seed shows, `func10`: a count that is known only when the program runs.

Two differences from the document: the primitive's name is `while_loop`, as `while` is no identifier; and the upper
bound, which no step changes, is a constant of the condition where the document carries it along.
"""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import Literal
from corejax.ir import typecheck


def func10(arg, n):
    ones = lax.full(arg.shape, 1.0)  # a constant
    return lax.fori_loop(0, n, lambda i, carry: carry + ones * 3.0 + arg, arg + ones)


def test_func10_is_one_while_loop_of_two_programs():
    closed = cj.make_jaxpr(func10)(np.ones(16), 5)
    typecheck(closed.jaxpr)
    assert () == closed.jaxpr.constvars
    arg, n = closed.jaxpr.invars
    broadcast, add, loop = closed.jaxpr.eqns
    assert ["broadcast_in_dim", "add", "while_loop"] == [eqn.primitive.name for eqn in closed.jaxpr.eqns]
    (ones,), (start,) = broadcast.outvars, add.outvars
    assert [arg, ones] == list(add.invars)
    bound, *constants, first, init = loop.invars
    assert n is bound
    assert {arg, ones} == set(constants)
    assert isinstance(first, Literal) and 0 == first.val
    assert start is init
    assert ["i64[]", "f64[16]"] == [str(v.aval).lstrip("~") for v in loop.outvars]
    assert [loop.outvars[1]] == list(closed.jaxpr.outvars)


def test_func10s_params_are_those_of_the_document():
    loop = cj.make_jaxpr(func10)(np.ones(16), 5).eqns[-1]
    params = dict(loop.params)
    cond, body = params.pop("cond_jaxpr"), params.pop("body_jaxpr")
    assert {"cond_nconsts": 1, "body_nconsts": 2} == params
    assert ["lt"] == [eqn.primitive.name for eqn in cond.eqns]
    upper, i, _ = cond.invars
    assert [i, upper] == list(cond.eqns[0].invars)
    assert ["add", "mul", "add", "add"] == [eqn.primitive.name for eqn in body.eqns]
    count, product, with_product, total = body.eqns
    constants, (i, carry) = body.invars[:2], body.invars[2:]
    assert i is count.invars[0] and 1 == count.invars[1].val
    assert product.invars[0] in constants and 3.0 == product.invars[1].val
    assert [carry, product.outvars[0]] == list(with_product.invars)
    assert with_product.outvars[0] is total.invars[0] and total.invars[1] in constants
    assert [count.outvars[0], total.outvars[0]] == list(body.outvars)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_func10_runs(n):
    arg = np.arange(4.0)
    wanted = arg + 1.0 + n * (3.0 + arg)
    for call in (func10, cj.jit(func10)):
        np.testing.assert_allclose(call(arg, n), wanted)
    np.testing.assert_allclose(cj.jvp(lambda arg: func10(arg, n), (arg,), (np.ones(4),))[1], np.full(4, 1.0 + n))


def test_it_prints_with_both_programs_inside():
    text = str(cj.make_jaxpr(func10)(np.ones(16), 5))
    for part in ("while_loop[", "body_jaxpr={ lambda ;", "body_nconsts=2", "cond_jaxpr={ lambda ;", "cond_nconsts=1"):
        assert part in text
