"""From users' functions to programs, for calls and loops: `stage_call`, `stage_step`, `run`; and `structures`."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import aval_of, flatten, stage
from corejax.errors import CorejaxTypeError
from corejax.plugin import carrying, structures

Point = namedtuple("Point", "x y")


# Calls

def test_a_call_takes_values_that_are_closed_over_before_its_arguments():
    scale = np.array([2.0, 3.0])
    call = carrying.stage_call(lambda p, k: Point(p["x"] * scale, k), ({"x": np.ones(2)}, 4), "my_call")
    assert [[2.0, 3.0], [1.0, 1.0], 4] == [x.tolist() for x in call.operands]
    assert ["f64[2]", "f64[2]", "~i64[]"] == [str(aval) for aval in call.jaxpr.in_avals]
    assert Point("a", "b") == call.unflatten(["a", "b"])
    assert [[2.0, 3.0], 4] == [x.tolist() for x in carrying.run(call.jaxpr, call.operands)]


def test_traced_values_that_are_closed_over_become_operands():
    def twice_closed(y):
        call = carrying.stage_call(lambda x: x * y, (3.0,), "my_call")
        return call.unflatten(carrying.run(call.jaxpr, call.operands))
    assert 3.0 == float(cj.grad(twice_closed)(2.0)) == float(cj.jit(cj.grad(twice_closed))(2.0))
    assert [3.0, 6.0] == cj.vmap(twice_closed)(np.array([1.0, 2.0])).tolist()


def test_an_argument_that_is_no_array_is_named():
    with pytest.raises(CorejaxTypeError, match=r"my_call: args\[0\]\['x'\] is a str, not an array"):
        carrying.stage_call(lambda p: p, ({"x": "no"},), "my_call")
    with pytest.raises(CorejaxTypeError, match="my_call: the function doesn't take these arguments"):
        carrying.stage_call(lambda: 0, (1.0,), "my_call")


# Steps

def test_a_step_settles_numbers_to_what_it_makes_of_them():
    step = carrying.stage_step(lambda xy: (xy[1] * 0.5, xy[0]), (1, 2), "my_loop: the step")
    assert ["f64[]", "f64[]"] == [str(aval) for aval in step.jaxpr.in_avals] == [str(x.aval) for x in step.carry]
    assert [] == list(step.consts) and ("a", "b") == step.unflatten(["a", "b"])


def test_a_step_may_take_values_before_its_carry():
    step = carrying.stage_step(lambda i, x: x + i, np.zeros(2), "my_loop: the step", [aval_of(np.int32(0))])
    assert ["i32[]", "f64[2]"] == [str(aval) for aval in step.jaxpr.in_avals]


@pytest.mark.parametrize(("step", "start", "message"), [
    (lambda x: (x, x), 1.0, "my_loop: the step returns a carry of a different structure than it was given, at x"),
    (lambda x: {"a": x["b"]}, {"b": 1.0}, "different structure than it was given, at x"),
    (lambda x: x > 0, np.ones(2), r"my_loop: the step changes the type of what it carries\n  got:    bool\[2\] for x"),
    (lambda x: x[:1], np.ones(2), r"f64\[1\] for x\n  wanted: f64\[2\] for x, as it was given")])
def test_a_step_that_returns_another_carry_is_refused(step, start, message):
    with pytest.raises(CorejaxTypeError, match=message):
        carrying.stage_step(step, start, "my_loop: the step", root="x")


def test_what_a_loop_starts_from_is_named_without_its_step():
    with pytest.raises(CorejaxTypeError, match=r"^my_loop: init\['a'\] is a str"):
        carrying.stage_step(lambda x: x, {"a": "no"}, "my_loop: the step")


# Running

@pytest.mark.parametrize("weak", [True, False])
def test_a_program_runs_with_the_types_that_it_announces(weak):
    of_number, of_array = lax.sin(0.5), lax.sin(np.float64(0.5))
    program = stage(lambda x: [x + x, x * 2.0], [of_number.aval if weak else of_array.aval]).jaxpr
    for operand in (of_number, of_array, np.float64(0.5), 0.5):
        assert program.out_avals == [x.aval for x in carrying.run(program, [operand])]


def test_running_a_program_adds_nothing_where_types_fit():
    program = stage(lambda x: [lax.sin(x)], [aval_of(np.zeros(2))]).jaxpr
    again = cj.make_jaxpr(lambda x: carrying.run(program, [x]))(np.ones(2))
    assert ["sin"] == [eqn.primitive.name for eqn in again.eqns]


# Structures

def test_structures_that_differ_say_where():
    def tree(x):
        return flatten(x)[1]
    assert structures.tree_difference(tree({"a": (1, 2)}), tree({"a": (1, 2)})) is None
    assert ("['a'][1]", "None", "an array") == structures.tree_difference(tree({"a": (1, None)}), tree({"a": (1, 2)}))
    assert ("", "a dict with the keys 'b'", "a dict with the keys 'a'") == structures.tree_difference(
        tree({"b": 1}), tree({"a": 1}))
    assert [("['a']", "f64[]", "i32[]")] == structures.type_differences(
        tree({"a": 1}), [aval_of(np.float64(1))], [aval_of(np.int32(1))])
    assert ["['a'][0]", "['b'].x", "['b'].y"] == structures.leaf_paths(tree({"a": (1,), "b": Point(2, 3)}))
    assert "{'a': (*, *)}" == structures.shown(tree({"a": (1, 2)}))
