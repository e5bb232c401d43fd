"""The loop that the first seed shows, `func11`: its structure and its results."""

from __future__ import annotations

import numpy as np

import corejax as cj
from corejax import lax
from corejax.core import Literal
from corejax.ir import typecheck


def func11(arr, extra):
    ones = lax.full(arr.shape, 1.0)  # a constant

    def body(carry, elements):
        a, b = elements
        return carry + a * b + extra, carry

    return lax.scan(body, 0.0, (arr, ones))


def test_func11_is_one_scan_of_a_constant_a_literal_and_two_inputs():
    closed = cj.make_jaxpr(func11)(np.ones(16), 5.0)
    typecheck(closed.jaxpr)
    assert () == closed.jaxpr.constvars
    arr, extra = closed.jaxpr.invars
    broadcast, scan = closed.jaxpr.eqns
    assert ["broadcast_in_dim", "scan"] == [broadcast.primitive.name, scan.primitive.name]
    (ones,) = broadcast.outvars
    assert (16,) == ones.aval.shape
    first, init, *inputs = scan.invars
    assert extra is first
    assert isinstance(init, Literal) and 0.0 == init.val
    assert [arr, ones] == inputs
    assert list(closed.jaxpr.outvars) == list(scan.outvars)
    assert ["f64[]", "f64[16]"] == [str(v.aval).lstrip("~") for v in scan.outvars]


def test_func11s_params_are_those_of_the_document():
    (scan,) = [eqn for eqn in cj.make_jaxpr(func11)(np.ones(16), 5.0).eqns if eqn.primitive.name == "scan"]
    params = dict(scan.params)
    body = params.pop("jaxpr")
    assert {"length": 16, "num_carry": 1, "num_consts": 1, "reverse": False, "unroll": 1} == params
    extra, carry, a, b = body.invars
    product, *_, total = body.eqns
    assert "mul" == product.primitive.name and [a, b] == list(product.invars)
    assert ["add", "add"] == [eqn.primitive.name for eqn in body.eqns if eqn.primitive.name != "convert_element_type"
                              ][1:]
    assert [total.outvars[0], carry] == list(body.outvars)


def test_func11_runs_sums_and_keeps_each_carry():
    arr = np.arange(4.0)
    total, before = func11(arr, 5.0)
    np.testing.assert_allclose([total, *before], [26.0, 0.0, 5.0, 11.0, 18.0])
    np.testing.assert_allclose(cj.grad(lambda arr, extra: func11(arr, extra)[0], (0, 1))(arr, 5.0)[0], np.ones(4))
    np.testing.assert_allclose(cj.grad(lambda arr, extra: func11(arr, extra)[0], 1)(arr, 5.0), 4.0)


def test_it_prints_as_a_scan_with_its_program_inside():
    text = str(cj.make_jaxpr(func11)(np.ones(16), 5.0))
    for part in ("scan[", "jaxpr={ lambda ;", "length=16", "num_carry=1", "num_consts=1", "reverse=False", "unroll=1"):
        assert part in text
