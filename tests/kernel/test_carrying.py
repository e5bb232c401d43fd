"""The kit for primitives that carry programs, with toy primitives and no pack."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from calculus import add, calculus, mul, sin
from toys import IO, call

from corejax.core import (
    Array,
    Jaxpr,
    JaxprEqn,
    Linear,
    NamedAxis,
    ShapedArray,
    Var,
    Zero,
    context,
    eval_jaxpr,
    jvp_jaxpr,
    partial_eval_jaxpr,
    stage,
    transpose_jaxpr,
    vmap_jaxpr,
)
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.ir import jaxpr_text
from corejax.plugin import carrying

F64, F32 = ShapedArray((), np.float64), ShapedArray((), np.float32)


@pytest.fixture(autouse=True)
def _roles():
    with calculus():
        yield


def value(x):
    return Array.from_host(np.asarray(x, np.float64), F64)


def record(fun, *avals):
    return stage(fun, avals).jaxpr


def evaluated(jaxpr, operands):
    return eval_jaxpr(jaxpr, (), *operands)


def product():
    return record(lambda x, y, z: [mul(x, y), z], F64, F64, F64)


def equation(jaxpr, effects=frozenset()):
    return JaxprEqn(call, [Var(aval) for aval in jaxpr.in_avals], [Var(aval) for aval in jaxpr.out_avals],
                    {"jaxpr": jaxpr}, effects)


def remake(eqn):
    return lambda jaxpr, invars, outvars: carrying.with_jaxpr(eqn, jaxpr, invars, outvars)


# Tangents

def test_a_jvp_rule_passes_on_nonzero_tangents_and_fills_in_the_others():
    jaxpr = product()
    outs, dots = carrying.jvp([value(2.0), value(3.0), value(5.0)], [value(1.0), Zero(F64), Zero(F64)],
                              lambda nonzero: jvp_jaxpr(jaxpr, nonzero), evaluated)
    assert [6.0, 5.0] == [float(x) for x in outs]
    assert 3.0 == float(dots[0])
    assert type(dots[1]) is Zero and dots[1].aval is F64


def test_a_transpose_rule_gives_a_cotangent_for_each_linear_operand():
    jaxpr = product()
    back = carrying.transpose([value(10.0), Zero(F64)], [value(2.0), Linear(F64), Linear(F64)],
                              lambda linear, nonzero: transpose_jaxpr(jaxpr, linear, nonzero), evaluated)
    assert back[0] is None
    assert 20.0 == float(back[1])
    assert type(back[2]) is Zero


def test_a_transposed_program_without_results_and_effects_is_not_bound():
    jaxpr = product()
    back = carrying.transpose([Zero(F64), Zero(F64)], [value(2.0), Linear(F64), Linear(F64)],
                              lambda linear, nonzero: transpose_jaxpr(jaxpr, linear, nonzero), None)
    assert [type(None), Zero, Zero] == [type(x) for x in back]


def test_groups_keep_their_tangents_beside_them():
    jaxpr = record(lambda w, c, x: [mul(w, c), sin(x)], F64, F64, F64)
    operands, results = ((True,), (False, True)), ((True,), (True,))
    grouped = carrying.in_groups(jvp_jaxpr(jaxpr, (True, False, True))[0], operands, results)
    w, c, x = value(2.0), value(3.0), value(0.0)
    xs = carrying.with_tangents([[w], [c, x]], [[value(1.0)], [Zero(F64), value(5.0)]])
    assert [2.0, 1.0, 3.0, 0.0, 5.0] == [float(v) for v in xs]
    outs, dots = carrying.part_tangents(evaluated(grouped, xs), results)
    assert ([6.0, 0.0], [3.0, 5.0]) == ([float(v) for v in outs], [float(t) for t in dots])


def test_what_has_no_tangent_gets_a_zero_of_its_type():
    outs, dots = carrying.part_tangents([value(1.0), value(2.0), value(7.0)], [(False, True)])
    assert [1.0, 2.0] == [float(x) for x in outs]
    assert dots[0].aval is F64 and 7.0 == float(dots[1])


# Equations

def test_an_equation_is_divided_into_what_is_known_and_what_waits():
    def program(x, y):
        s = sin(x)
        return [s, mul(s, y)]

    eqn = equation(record(program, F64, F64))
    known, staged, unknown_out, residuals = carrying.divide(
        eqn, carrying.split_jaxpr(eqn.params["jaxpr"], (False, True)), remake(eqn))
    assert (False, True) == unknown_out
    assert [eqn.invars[0]] == list(known.invars) and [eqn.outvars[0]] == list(known.outvars)
    assert [eqn.outvars[0], eqn.invars[1]] == list(staged.invars) and [eqn.outvars[1]] == list(staged.outvars)
    assert [eqn.outvars[0]] == residuals  # a result that the second part reads is handed on, not returned twice


def test_a_part_with_nothing_to_do_is_none_unless_it_has_effects():
    eqn = equation(record(lambda x: [sin(x)], F64))
    split = carrying.split_jaxpr(eqn.params["jaxpr"], (True,))
    assert carrying.divide(eqn, split, remake(eqn))[0] is None
    with_effect = split._replace(known=Jaxpr((), (), (), (), frozenset({IO})))
    known = carrying.divide(eqn, with_effect, remake(eqn))[0]
    assert ((), {IO}) == (tuple(known.outvars), known.effects)


def test_dead_results_and_operands_go():
    eqn = equation(product())
    jaxpr = eqn.params["jaxpr"]
    used_in, smaller = carrying.shorten(eqn, (True, False), carrying.without_dead_code(jaxpr, (True, False)),
                                        remake(eqn))
    assert [True, True, False] == used_in
    assert (list(eqn.invars[:2]), [eqn.outvars[0]]) == (list(smaller.invars), list(smaller.outvars))
    assert carrying.without_dead_code(jaxpr, (True, True)) is None
    assert ([True] * 3, eqn) == carrying.shorten(eqn, (True, True), None, remake(eqn))
    assert ([False] * 3, None) == carrying.shorten(eqn, (False, False), None, remake(eqn))


def test_operands_that_do_not_fit_are_refused():
    with pytest.raises(CorejaxTypeError, match="my_call: the operands don't fit the called jaxpr"):
        carrying.check_operands("my_call", product(), [F64, F32, F64])


# Loops

@pytest.mark.parametrize("transform, entries", [
    (lambda j: jvp_jaxpr(j, (True,)), "nonzeros must have one entry for each input\n  got:    1\n  wanted: 3"),
    (lambda j: jvp_jaxpr(j, (True,) * 3, (True,)), "jvp_jaxpr: instantiate_outs must have one entry for each output"),
    (lambda j: transpose_jaxpr(j, (True,) * 2, (True,) * 2), "linear must have one entry for each input"),
    (lambda j: transpose_jaxpr(j, (True, False, False), (True,)), "ct_nonzero must have one entry for each output"),
    (lambda j: transpose_jaxpr(j, (True, False, False), (True,) * 2, (True,) * 2), "one entry for each linear input"),
    (lambda j: vmap_jaxpr(j, 3, None, (0,)), "vmap_jaxpr: in_dims must have one entry for each input"),
    (lambda j: vmap_jaxpr(j, 3, None, (0,) * 3, (0,)), "vmap_jaxpr: out_dims must have one entry for each output"),
    (lambda j: partial_eval_jaxpr(j, (True,)), "partial_eval_jaxpr: unknown_in must have one entry for each input"),
    (lambda j: carrying.split_jaxpr(j, (True,)), "split_jaxpr: unknown_in must have one entry for each input"),
    (lambda j: carrying.split_jaxpr(j, (True,) * 3, (True,)), "instantiate must have one entry for each output"),
    (lambda j: carrying.without_dead_code(j, (True,)), "dce: one flag for each output")])
def test_flags_for_a_program_are_one_for_each_input_or_output(transform, entries):
    with pytest.raises(CorejaxValueError, match=entries):
        transform(product())


@pytest.mark.parametrize("transform", [
    lambda j: jvp_jaxpr(j, (True,)), lambda j: transpose_jaxpr(j, (True,), (True,)),
    lambda j: vmap_jaxpr(j, 3, None, (0,)), lambda j: partial_eval_jaxpr(j, (True,)),
    lambda j: carrying.split_jaxpr(j, (True,)), lambda j: carrying.without_dead_code(j, (True,))])
def test_a_program_with_constants_is_refused_with_what_to_do(transform):
    closed = stage(lambda x: [sin(x)], [F64])
    with pytest.raises(CorejaxTypeError, match="must be a Jaxpr without constants(.|\n)*consts_to_operands"):
        transform(closed)


def test_a_fixed_point_grows_until_a_step_adds_nothing():
    seen = []

    def step(flags):
        seen.append(flags)
        return len(seen), (flags[0], flags[0] or flags[1], flags[1])

    assert ((True, True, True), 3) == carrying.fixed_point([True, False, False], step)
    assert [(True, False, False), (True, True, False), (True, True, True)] == seen


def test_what_is_the_same_in_each_step_is_taken_out():
    body = record(lambda w, c: [add(c, sin(w))], F64, F64)
    outside, inside = carrying.hoist(body, 1)
    assert "{ lambda ; a:f64[]. let b:f64[] = sin a in (b,) }" == jaxpr_text(outside, pretty=False)
    assert 3 == len(inside.invars) and 1 == len(inside.eqns)
    assert carrying.hoist(record(lambda w, c: [add(c, w)], F64, F64), 1) is None


# Programs that are remembered

def test_what_is_made_of_a_program_lives_as_long_as_it():
    made = []

    @carrying.remembered
    def forward(program, nonzero):
        made.append(nonzero)
        return [len(program.eqns) if type(program) is not tuple else len(program)]

    one, two = product(), product()
    assert forward(one, (True,)) is forward(one, (True,))
    assert forward((one, two, one), (True,)) is forward((one, two, one), (True,))
    assert forward((one, two, two), (True,)) is not forward((one, two, one), (True,))
    assert 3 == len(made)
    ref = weakref.ref(one)
    del one
    gc.collect()
    assert ref() is None


def test_what_is_made_of_a_program_depends_on_the_axes_in_scope():
    axes = carrying.remembered(lambda program: [context.axes])
    jaxpr = product()
    before, found = context.axes, axes(jaxpr)
    context.axes = (NamedAxis("i", 3),)
    try:
        assert [(NamedAxis("i", 3),)] == axes(jaxpr)
    finally:
        context.axes = before
    assert axes(jaxpr) is found
