"""What later packs rely on from the first commit: effects are respected, and vmap offers named axes to rules."""

from __future__ import annotations

import numpy as np
import pytest
from calculus import add, calculus, mul, sin

from corejax.core import (
    Array,
    NamedAxis,
    ShapedArray,
    context,
    eval_jaxpr,
    jvp_jaxpr,
    named_scope,
    partial_eval_jaxpr,
    stage,
    vmap_jaxpr,
)
from corejax.interpreters import batching, linearize
from corejax.ir.surgery import dce
from corejax.plugin import Effect, define, hookimpl

NOTED = Effect("note")

F64 = ShapedArray((), np.float64)


@pytest.fixture(autouse=True)
def _roles():
    with calculus():
        yield


def value(x):
    return Array.from_host(np.asarray(x, np.float64), ShapedArray(np.shape(x), np.float64))


class NoteTangent:
    """Writes a tangent down."""

    name = "note_tangent"
    multiple_results = True

    @hookimpl
    def impl(self, args):
        note_plugin._seen.append(float(args[0]))
        return []

    @hookimpl
    def abstract_eval(self, avals):
        return []

    @hookimpl
    def effects(self, avals):
        return frozenset({NOTED})


note_tangent = define(NoteTangent())


class Note:
    """note(x) = x, and it writes x down, and its tangent."""

    name = "note"

    def __init__(self):
        self._seen = []

    @hookimpl
    def impl(self, args):
        self._seen.append(float(args[0]))
        return args[0]

    @hookimpl
    def abstract_eval(self, avals):
        return avals[0]

    @hookimpl
    def jvp(self, primals, tangents):
        note_tangent(tangents[0])
        return note(primals[0]), tangents[0]

    @hookimpl
    def effects(self, avals):
        return frozenset({NOTED})


class AxisLength:
    """axis_length(x, name=...) = x times the size of the named axis."""

    name = "axis_length"

    @hookimpl
    def impl(self, args, *, name):
        raise AssertionError("the axis is gone when this is evaluated")

    @hookimpl
    def abstract_eval(self, avals, *, name):
        return avals[0]

    @hookimpl
    def vmap(self, axis, args, dims, *, name):
        if axis.name != name:  # another vmap's axis: leave the call to it
            return axis_length(*args, name=name), dims[0]
        assert dims[0] is None
        return mul(args[0], value(np.full(args[0].shape, float(axis.size)))), None


note_plugin = Note()
note = define(note_plugin)
axis_length = define(AxisLength())


def test_effects_show_on_equations_and_jaxprs():
    jaxpr = stage(lambda x: [sin(note(x))], [F64]).jaxpr
    assert frozenset({NOTED}) == jaxpr.effects == jaxpr.eqns[0].effects
    assert frozenset() == jaxpr.eqns[1].effects


def test_dead_code_with_an_effect_is_kept():
    def fun(x):
        note(x)
        sin(x)
        return [mul(x, x)]

    jaxpr, _ = dce(stage(fun, [F64]).jaxpr, (True,))
    assert ["note", "mul"] == [eqn.primitive.name for eqn in jaxpr.eqns]


def test_partial_evaluation_keeps_the_effects_of_both_parts():
    def fun(x, y):
        note(x)
        note(y)
        return [mul(x, y)]

    known, staged, _, _ = partial_eval_jaxpr(stage(fun, [F64, F64]).jaxpr, (False, True))
    assert ["note"] == [eqn.primitive.name for eqn in known.eqns]
    assert ["note", "mul"] == [eqn.primitive.name for eqn in staged.eqns]
    assert known.effects == staged.effects == frozenset({NOTED})


def test_a_linear_map_repeats_the_effects_on_tangents():
    note_plugin._seen.clear()

    def fun(x):
        note(x)  # the result is not used
        return [add(x, x)]

    _, linear_map = linearize.linearize(fun, [value(1.0)])
    assert [1.0] == note_plugin._seen
    linear_map(value(5.0))
    assert [1.0, 5.0] == note_plugin._seen


def test_vmap_asks_the_rule_of_a_primitive_that_names_the_axis_even_if_nothing_is_mapped():
    outs, dims = batching.vmap(lambda x: [axis_length(value(2.0), name="i"), x], 3, "i", [value(np.zeros(3))], [0])
    assert [None, 0] == dims
    assert 6.0 == float(outs[0])


def test_an_inner_vmap_leaves_another_axis_to_the_outer_one():
    def inner(x):
        outs, dims = batching.vmap(lambda y: [axis_length(y, name="outer")], 2, "inner", [value(np.ones(2))], [0])
        return [batching.to_dim(outs[0], dims[0], 0, 2)]

    outs, dims = batching.vmap(inner, 5, "outer", [value(np.zeros(5))], [0])
    assert [None] == dims
    np.testing.assert_array_equal([5.0, 5.0], outs[0])


def test_the_axis_is_found_in_a_jaxpr_in_the_params_too():
    class Call:
        name = "call"
        multiple_results = True

        @hookimpl
        def abstract_eval(self, avals, *, jaxpr):
            return jaxpr.out_avals

        @hookimpl
        def impl(self, args, *, jaxpr):
            return [np.asarray(x) for x in eval_jaxpr(jaxpr, (), *[value(x) for x in args])]

        @hookimpl
        def vmap(self, axis, args, dims, *, jaxpr):
            mapped, out_dims = vmap_jaxpr(jaxpr, axis.size, axis.name, dims)
            return call(*args, jaxpr=mapped), out_dims

    call = define(Call())
    jaxpr = stage(lambda x: [axis_length(x, name="i")], [F64]).jaxpr
    outs, _ = batching.vmap(lambda x: call(value(2.0), jaxpr=jaxpr), 7, "i", [value(np.zeros(7))], [0])
    assert 14.0 == float(outs[0])


def test_the_axis_environment_is_scoped_and_part_of_what_transformed_jaxprs_are_cached_by():
    jaxpr = stage(lambda x: [sin(x)], [F64]).jaxpr
    alone = jvp_jaxpr(jaxpr, (True,))[0]
    inside = []

    def fun(x):
        assert (NamedAxis("i", 3),) == context.axes
        inside.append(jvp_jaxpr(jaxpr, (True,))[0])
        return [x]

    batching.vmap(fun, 3, "i", [value(np.zeros(3))], [0])
    assert () == context.axes
    assert alone is jvp_jaxpr(jaxpr, (True,))[0]
    assert alone is not inside[0]


def test_equations_remember_the_named_scopes_they_were_traced_in():
    def fun(x):
        with named_scope("outer"):
            y = sin(x)
            with named_scope("inner"):
                z = sin(y)
        return [mul(y, z)]

    assert [("outer",), ("outer", "inner"), ()] == [eqn.scope for eqn in stage(fun, [F64]).jaxpr.eqns]
