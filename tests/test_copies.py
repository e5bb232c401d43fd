"""What users hold on to can be copied and pickled, or says by name why not."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax import lax
from corejax.core import ClosedJaxpr, Linear, ShapedArray, Var, Zero, eval_jaxpr
from corejax.errors import CorejaxTypeError
from corejax.kernel.keys import structural_key

LARGE = np.arange(100.0)
PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


def branching(x):
    y = cj.jit(lambda x: lax.sin(x) * 2.0)(x)
    last, steps = lax.scan(lambda c, v: (lax.cond(v > 0.0, lax.cos, lax.sin, c), c * v), y.sum(), LARGE)
    return last, steps, lax.while_loop(lambda c: c.sum() < 3.0, lambda c: c + 1.0, x), x[0]


def gradient(x):
    return cj.grad(lambda x: cj.checkpoint(lax.sin)(x).sum())(x)


def mapped(x):
    return cj.vmap(lambda x: lax.exp(x) / 3.0)(x).astype("float32")


def pickled(x, protocol=pickle.HIGHEST_PROTOCOL):
    return pickle.loads(pickle.dumps(x, protocol))


@pytest.mark.parametrize("fun", [branching, gradient, mapped], ids=lambda f: f.__name__)
def test_programs_are_pickled(fun):
    x = np.array([0.1, 0.2, 0.3])
    closed = cj.make_jaxpr(fun)(x)
    for protocol in PROTOCOLS:
        read = pickled(closed, protocol)
        assert type(read) is ClosedJaxpr
        assert str(closed) == str(read)
        assert structural_key(closed.jaxpr) is structural_key(read.jaxpr)
    for y, z in zip(eval_jaxpr(closed.jaxpr, closed.consts, x), eval_jaxpr(read.jaxpr, read.consts, x), strict=True):
        assert_array_equal(y, z)


def test_programs_are_copied():
    closed = cj.make_jaxpr(branching)(np.ones(3))
    for copied in (copy.copy(closed), copy.deepcopy(closed)):
        assert str(closed) == str(copied)
        assert closed.jaxpr is copied.jaxpr
    nested = copy.deepcopy({"program": closed, "eqns": [closed.eqns[0]], "var": closed.jaxpr.invars[0]})
    assert nested["var"] is nested["program"].jaxpr.invars[0]


def test_variables_that_are_pickled_together_stay_the_same():
    jaxpr = cj.make_jaxpr(branching)(np.ones(3)).jaxpr
    read, first, eqn = pickled((jaxpr, jaxpr.invars[0], jaxpr.eqns[0]))
    assert type(first) is Var
    assert first is read.invars[0] is eqn.invars[0]


def test_a_pickled_equation_knows_where_it_came_from():
    eqn = cj.make_jaxpr(branching)(np.ones(3)).eqns[0]
    assert cj.make_jaxpr(branching)(np.ones(3)).jaxpr.eqns[0].scope == pickled(eqn).scope
    code, _ = pickled(eqn).source
    assert (eqn.source[0].co_filename, "branching") == (code.co_filename, code.co_qualname)
    assert code.co_firstlineno == branching.__code__.co_firstlineno + 1
    assert pickled(pickled(eqn)).source == pickled(eqn).source


@pytest.mark.parametrize("x", [
    cj.ShapeDtypeStruct((3,), "bfloat16"), cj.ShapeDtypeStruct((), float, weak_type=True), ShapedArray((2,), "int8"),
    ShapedArray((), "float64", True), lax.sin.primitive, cj.float0, np.dtype("float64")], ids=str)
def test_types_and_primitives_are_copied_and_pickled(x):
    for copied in (copy.copy(x), copy.deepcopy(x), *[pickled(x, protocol) for protocol in PROTOCOLS]):
        assert (type(x), x) == (type(copied), copied)


@pytest.mark.parametrize("kind", [Zero, Linear])
def test_placeholders_are_copied_and_pickled(kind):
    x = kind(ShapedArray((2,), "float32"))
    assert [x.aval] * 3 == [copied.aval for copied in (copy.copy(x), copy.deepcopy(x), pickled(x))]


def test_pullbacks_are_pickled():
    x = np.array([0.1, 0.2, 0.3])
    _, pullback = cj.vjp(lambda x: lax.sin(x) / (1.0 + x), x)
    for protocol in PROTOCOLS:
        read = pickled(pullback, protocol)
        assert_array_equal(pullback(x)[0], read(x)[0])
        assert cj.tree.structure(pullback) == cj.tree.structure(read)
    _, f_lin = cj.linearize(branching, x)
    for y, z in zip(f_lin(x), pickled(f_lin)(x), strict=True):
        assert_allclose(y, z)


def test_a_program_says_which_param_can_not_be_pickled():
    sine = cj.custom_jvp(lambda x: lax.sin(x))
    sine.defjvp(lambda primals, tangents: (sine(*primals), tangents[0]))
    for opaque in (cj.make_jaxpr(sine)(1.0), cj.make_jaxpr(cj.jit(sine))(1.0)):
        with pytest.raises(CorejaxTypeError, match=r"custom_call: its param 'call' can't be pickled(.|\n)*lambda"):
            pickle.dumps(opaque)
        assert str(opaque) == str(copy.deepcopy(opaque))


@pytest.mark.parametrize("act", [copy.copy, copy.deepcopy, pickle.dumps])
def test_stages_refuse_to_be_copied_by_name(act):
    traced = cj.jit(lax.sin).trace(1.0)
    lowered = traced.lower()
    for stage in (traced, lowered, lowered.compile()):
        with pytest.raises(CorejaxTypeError, match=f"a {type(stage).__name__.lower()} function can't be pickled"):
            act(stage)
