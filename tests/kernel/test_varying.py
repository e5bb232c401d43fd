"""Types that say along which axes of a mesh values vary, and what the kernel makes of them, without any pack."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from calculus import add, calculus, mul, sin, square

from corejax.core import (
    Linear,
    NamedAxis,
    ShapedArray,
    Zero,
    binding,
    eval_jaxpr,
    instantiate,
    jvp_jaxpr,
    partial_eval_jaxpr,
    stage,
    transpose_jaxpr,
)
from corejax.errors import CorejaxTypeError, RuleError
from corejax.interpreters import forward, linearize, reverse
from corejax.ir import parse_jaxpr
from corejax.ir.typecheck import typecheck
from corejax.plugin import define, hookimpl, linear, partials, provide

S, SX, SY = [ShapedArray((), np.float64, varying=axes) for axes in ((), ("x",), ("y",))]
SXY = ShapedArray((), np.float64, varying=("x", "y"))


class Cast:
    """cast(x) is x, of a type that varies along these axes too."""

    name = "cast"
    jvp = linear(0)
    tracks_varying = True

    @hookimpl
    def impl(self, args, *, axes):
        return args[0]

    @hookimpl
    def abstract_eval(self, avals, *, axes):
        return avals[0].update(varying=avals[0].varying.union(axes))

    @hookimpl
    def transpose(self, cotangents, args, *, axes):
        return [cotangents]


class Total:
    """total(x) is the sum over devices along these axes."""

    name = "total"
    jvp = linear(0)
    tracks_varying = True

    @hookimpl
    def impl(self, args, *, axes):
        raise AssertionError("there are no devices here")

    @hookimpl
    def abstract_eval(self, avals, *, axes):
        return avals[0].update(varying=avals[0].varying.difference(axes))

    @hookimpl
    def transpose(self, cotangents, args, *, axes):
        return [cast(cotangents, axes=axes)]


cast, total = define(Cast()), define(Total())


@pytest.fixture(autouse=True)
def _roles():
    with calculus(), provide(vary=lambda x, axes: cast(x, axes=axes), sum_varying=lambda x, axes: total(x, axes=axes)):
        yield


def staged(fun, *avals):
    with binding((NamedAxis("x", 4, None, True), NamedAxis("y", 2, None, True))):
        jaxpr = stage(lambda *xs: [*fun(*xs)], avals).jaxpr
    typecheck(jaxpr)
    return jaxpr


def names(jaxpr):
    return [eqn.primitive.name for eqn in jaxpr.eqns]


# Types

def test_a_type_says_along_which_axes_a_value_varies():
    aval = ShapedArray((3,), np.float32, True, ["y", "x"])
    assert "~f32[3]{x,y}" == str(aval)
    assert {"x", "y"} == aval.varying and frozenset() == aval.invariant.varying
    assert ShapedArray((3,), np.float32, True) is aval.invariant
    assert aval is ShapedArray([3], "float32", weak_type=True, varying=("x", "y", "x"))
    assert aval.update(shape=()) is ShapedArray((), np.float32, True, ("x", "y"))


def test_types_that_vary_differently_are_different_types_of_matching_values():
    assert SX is not S and SX != S and SX.matches(S) and S.matches(SX)
    assert S.fits(SX) and SX.fits(SXY) and SX.fits(SX)
    assert not SX.fits(S) and not SX.fits(SY) and not S.fits(ShapedArray((2,), np.float64, varying=("x",)))


def test_tangents_vary_as_their_primals():
    assert SX is SX.tangent
    assert SX is ShapedArray((), np.float64, True, ("x",)).tangent
    assert {"x"} == ShapedArray((), np.int32, varying=("x",)).tangent.varying


def test_types_are_pickled_with_and_without_axes():
    for aval in (S, SXY, ShapedArray((2,), np.int8, True)):
        assert aval is pickle.loads(pickle.dumps(aval)) is copy.deepcopy(aval)
    assert 3 == len(S.__reduce__()[1]), "older versions read it"


def test_types_are_printed_and_parsed():
    text = "{ lambda ; a:f64[2]{x,y} b:f64[]. let c:f64[2]{x} = total[axes=('y',)] a in (c, 1.0:~f64[]) }"
    jaxpr = parse_jaxpr(text)
    assert [{"x", "y"}, frozenset()] == [aval.varying for aval in jaxpr.in_avals]
    assert text.split() == str(jaxpr).split()


# Inference

def test_results_vary_along_the_axes_of_all_operands():
    jaxpr = staged(lambda a, b, c: [mul(a, b), add(a, a), mul(mul(a, b), c), sin(2.0)], S, SX, SY)
    assert ["f64[]{x}", "f64[]", "f64[]{x,y}", "~f64[]"] == [str(aval) for aval in jaxpr.out_avals]


def test_a_primitive_that_tracks_axes_says_itself_what_varies():
    jaxpr = staged(lambda a: [total(a, axes=("x",)), cast(total(a, axes=("x", "y")), axes=("x",))], SXY)
    assert [SY, SX] == jaxpr.out_avals


def test_other_primitives_see_types_without_axes():
    seen = []

    class Look:
        name = "look"
        jvp = partials(None)

        @hookimpl
        def impl(self, args):
            return args[0]

        @hookimpl
        def abstract_eval(self, avals):
            seen.extend(avals)
            return ShapedArray(avals[0].shape, avals[0].dtype)

    look = define(Look())
    assert [SX] == staged(lambda a: [look(a)], SX).out_avals
    assert [S] == seen


def test_variables_may_vary_more_than_is_inferred_but_not_less():
    jaxpr = staged(lambda a, b: [mul(a, b)], S, SX)
    (eqn,) = jaxpr.eqns
    typecheck(jaxpr.replace(eqns=[eqn.replace(invars=[eqn.invars[0]] * 2)]))
    narrow = staged(lambda a, b: [mul(a, a)], S, SX)
    (eqn,) = narrow.eqns
    with pytest.raises(CorejaxTypeError, match="different types than its primitive infers"):
        typecheck(narrow.replace(eqns=[eqn.replace(invars=narrow.invars)]))


# Reverse mode

def test_the_cotangent_of_what_is_the_same_is_summed_for_each_use():
    back = staged(lambda w, x, ct: reverse.vjp(lambda w, x: [mul(w, x)], [w, x])[1]([ct]), S, SX, SX)
    assert [S, SX] == back.out_avals
    assert 1 == names(back).count("total") and "cast" not in names(back)


def test_a_cotangent_is_summed_before_it_is_added_to_others():
    back = staged(lambda w, x, ct: reverse.vjp(lambda w: [mul(w, mul(w, w)), mul(w, x)], [w])[1]([ct, x]), S, SX, S)
    assert [S] == back.out_avals
    eqns = back.eqns
    made = {v: eqn for eqn in eqns for v in eqn.outvars}
    assert all([made[x].outvars[0].aval is S for eqn in eqns if eqn.primitive.name == "add"
                for x in eqn.invars if x in made])


def test_the_cotangent_of_what_varies_is_made_to_vary():
    back = staged(lambda w, x, ct: reverse.vjp(lambda w: [total(mul(w, x), axes=("x",))], [w])[1]([ct]), S, SX, S)
    assert [S] == back.out_avals
    assert ["cast", "total"] == [name for name in names(back) if name in ("cast", "total")][-2:]


def test_cotangents_from_outside_are_given_in_the_type_of_the_output():
    back = staged(lambda x, ct: reverse.vjp(lambda x: [sin(x)], [x])[1]([ct]), SX, S)
    assert [SX] == back.out_avals and "cast" in names(back)
    back = staged(lambda w, ct: reverse.vjp(lambda w: [sin(w)], [w])[1]([ct]), S, SXY)
    assert [S] == back.out_avals and ("x", "y") == back.eqns[-2].params["axes"]


def test_a_transposed_program_has_cotangents_of_the_types_of_its_inputs():
    jaxpr = staged(lambda w, x: [mul(w, x)], S, SX)
    back, nonzero = transpose_jaxpr(jaxpr, (True, False), (True,))
    assert ([SX, SX], [S], (True,)) == (back.in_avals, back.out_avals, nonzero)


def test_zeros_vary_as_their_types_say():
    assert [SXY] == staged(lambda: [instantiate(Zero(SXY))]).out_avals


# Forward mode

def test_tangents_are_made_to_vary_as_their_primals():
    outs = staged(lambda x, t: [*forward.jvp(lambda x: [sin(x)], [x], [t])[1]], SX, S)
    assert [SX] == outs.out_avals
    dual, _ = jvp_jaxpr(staged(lambda w, x: [add(w, x)], S, SX), (True, False))
    assert [SX, SX] == dual.out_avals


def test_a_linear_map_takes_tangents_that_vary_less():
    program = staged(lambda x, t: linearize.linearize(lambda x: [total(square(x), axes=("x",))], [x])[1](t), SX, S)
    assert [S] == program.out_avals and "cast" in names(program)


def test_a_tangent_that_varies_more_than_its_primal_is_an_error():
    with pytest.raises(CorejaxTypeError, match="a tangent varies along x, but its primal is the same there"):
        staged(lambda w, x: forward.jvp(lambda w: [sin(w)], [w], [x])[1], S, SX)


def test_a_rule_whose_result_varies_more_than_it_should_is_named():
    class Off:
        name = "off"
        tracks_varying = True

        @hookimpl
        def impl(self, args):
            return args[0]

        @hookimpl
        def abstract_eval(self, avals):
            return avals[0].invariant

        @hookimpl
        def jvp(self, primals, tangents):
            return off(*primals), tangents[0]

    off = define(Off())
    with pytest.raises(RuleError, match=r"off\.jvp .*: returned tangent f64\[\]\{x\}.*: it varies along x"):
        staged(lambda x: forward.jvp(lambda x: [off(x)], [x], [x])[1], SX)


# Programs

def test_a_program_is_evaluated_with_inputs_that_vary_as_it_says():
    jaxpr = staged(lambda x: [total(x, axes=("x",))], SX)
    outer = staged(lambda w: eval_jaxpr(jaxpr, (), w), S)
    assert ["cast", "total"] == names(outer)


def test_the_parts_of_a_divided_program_have_the_types_of_the_whole():
    jaxpr = staged(lambda w, x: [mul(sin(w), x), mul(sin(w), sin(w))], S, SX)
    known, waiting, unknown, count = partial_eval_jaxpr(jaxpr, (False, True))
    assert ([S, S], [S, SX], [SX]) == (known.out_avals, waiting.in_avals, waiting.out_avals)
    assert ((True, False), 1) == (unknown, count)


def test_a_linear_operand_has_the_type_of_its_variable():
    assert {"x"} == Linear(SX).aval.varying
