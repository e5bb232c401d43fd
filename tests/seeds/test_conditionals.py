"""The conditionals of the seeds: each cell of the didactic system's part on `cond`, and the examples about jaxprs.

Structure is compared, not text: primitives in order, operands, params, the equations of each branch. Where corejax has
a name or a step of its own, the test says so.
"""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj
from corejax import config, lax
from corejax.core import Jaxpr, Literal, Var, eval_jaxpr
from corejax.ir import jaxpr_text, parse_jaxpr, typecheck


def wiring(jaxpr):
    """Each equation as (primitive, operands), a variable as its number in order of binding, a literal as its value."""
    number = {v: i for i, v in enumerate([*jaxpr.constvars, *jaxpr.invars])}
    rows = []
    for eqn in jaxpr.eqns:
        rows.append((eqn.primitive.name, [float(a.val) if type(a) is Literal else number[a] for a in eqn.invars]))
        for var in eqn.outvars:
            number[var] = len(number)
    return rows, [number[a] if type(a) is Var else float(a.val) for a in jaxpr.outvars]


def the_cond(closed):
    """The only conditional of a program, which is well-typed and whose branches are closed."""
    typecheck(closed.jaxpr)
    (eqn,) = [eqn for eqn in closed.eqns if eqn.primitive.name == "cond"]
    assert {"branches"} == set(eqn.params)
    assert all([isinstance(branch, Jaxpr) and not branch.constvars for branch in eqn.params["branches"]])
    return eqn


# The didactic system, part 5. Its conditional takes a boolean and two jaxprs; here an index takes its place, and the
# false branch is the first.

def square_or_zero(x):
    return lax.cond(True, lambda: x * x, lambda: 0.0)


def identity_or_zero(x):
    return lax.cond(True, lambda: x, lambda: 0.0)


def test_evaluation():
    assert 3 == int(lax.cond(True, lambda: 3, lambda: 4))
    assert 4 == int(lax.cond(False, lambda: 3, lambda: 4))


def test_branches_are_staged_with_what_they_close_over_as_operands():
    closed = cj.make_jaxpr(lambda x: square_or_zero(x))(1.0)
    eqn = the_cond(closed)
    assert 1 == int(eqn.invars[0].val) and closed.jaxpr.invars[0] is eqn.invars[1]
    assert [([], [0.0]), ([("mul", [0, 0])], [1])] == [wiring(branch) for branch in eqn.params["branches"]]


def test_constants_of_both_branches_are_joined():
    closed = cj.make_jaxpr(lambda p, x, y: lax.cond(p, lambda: lax.sin(x), lambda: lax.cos(y)))(True, 1.0, 2.0)
    eqn = the_cond(closed)
    on_false, on_true = eqn.params["branches"]
    assert on_false.in_avals == on_true.in_avals and {*closed.jaxpr.invars[1:]} == {*eqn.invars[1:]}
    assert {"sin": [1], "cos": [2]} == {
        row[0]: [closed.jaxpr.invars.index(eqn.invars[1:][row[1][0]])] for branch in (on_false, on_true)
        for row in wiring(branch)[0]}


def test_branches_of_different_structures_or_types_are_type_errors():
    with pytest.raises(TypeError, match="different structures"):
        lax.cond(True, lambda: (1, 2), lambda: 1)
    with pytest.raises(TypeError, match="different types"):
        lax.cond(True, lambda: 1, lambda: 1.0)


def test_jvp():
    out, out_tan = cj.jvp(square_or_zero, (1.0,), (1.0,))
    assert (1.0, 2.0) == (float(out), float(out_tan))
    closed = cj.make_jaxpr(lambda x, x_dot: cj.jvp(square_or_zero, (x,), (x_dot,)))(1.0, np.float64(1.0))
    eqn = the_cond(closed)
    assert 3 == len(eqn.invars) and 2 == len(eqn.outvars)  # index, primal, tangent; primal, tangent
    on_false, on_true = eqn.params["branches"]
    assert ([], [0.0, 0.0]) == wiring(on_false)
    assert {"mul"} <= {row[0] for row in wiring(on_true)[0]}
    out, out_tan = eval_jaxpr(closed.jaxpr, closed.consts, 3.0, 1.0)
    assert (9.0, 6.0) == (float(out), float(out_tan))


def test_vmap():
    xs = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal([2.0, 3.0, 4.0],
                                  cj.vmap(lambda x: lax.cond(True, lambda: x + 1.0, lambda: 0.0), (0,))(xs))
    eqn = the_cond(cj.make_jaxpr(cj.vmap(lambda x: lax.cond(True, lambda: x + 1.0, lambda: 0.0)))(xs))
    for branch in eqn.params["branches"]:
        assert [((3,), np.float64)] == [(aval.shape, aval.dtype) for aval in branch.out_avals]
    assert ["~f64[3]"] == [str(v.aval) for v in eqn.outvars]  # as weak as the branch for False


def test_vmap_of_the_predicate_which_the_document_leaves_out_selects():
    xs = np.array([1.0, -2.0, 3.0])
    np.testing.assert_array_equal(
        [2.0, 0.0, 4.0], cj.vmap(lambda x: lax.cond(x > 0.0, lambda: x + 1.0, lambda: 0.0))(xs))


def test_compilation():
    assert 2 == int(cj.jit(lambda: lax.cond(False, lambda: 1, lambda: 2))())
    assert 1 == int(cj.jit(lambda: lax.cond(True, lambda: 1, lambda: 2))())
    assert "stablehlo.case" in cj.jit(lambda p: lax.cond(p, lambda: 1, lambda: 2)).lower(True).as_text()


def test_linearize():
    out, f_lin = cj.linearize(identity_or_zero, 1.0)
    assert (1.0, 3.14) == (float(out), float(f_lin(3.14)))


def test_linearize_of_jit():
    out, f_lin = cj.linearize(cj.jit(identity_or_zero), 1.0)
    assert (1.0, 3.14) == (float(out), float(f_lin(3.14)))


def test_grad():
    assert 2.0 == float(cj.grad(square_or_zero)(1.0))
    assert 2.0 == float(cj.grad(cj.jit(square_or_zero))(1.0))
    assert 0.0 == float(cj.grad(lambda x: lax.cond(False, lambda: x * x, lambda: 0.0))(1.0))


def test_partial_evaluation_divides_both_branches():
    closed = cj.make_jaxpr(lambda x: cj.grad(lambda x: lax.cond(x > 0.0, lambda: lax.sin(x), lambda: 0.0))(x))(1.0)
    typecheck(closed.jaxpr)
    forward, backward = [eqn for eqn in closed.eqns if eqn.primitive.name == "cond"]
    assert forward.invars[0] is backward.invars[0]
    assert [[], ["sin", "cos"]] == [[row[0] for row in wiring(b)[0]] for b in forward.params["branches"]]
    assert [[], ["mul"]] == [[row[0] for row in wiring(b)[0]] for b in backward.params["branches"]]
    assert forward.outvars[1] in backward.invars


def test_printing_shows_each_branch_and_parses_back():
    closed = cj.make_jaxpr(lambda p, x: lax.cond(p, lambda x: lax.sin(x), lambda x: x, x))(True, np.float64(1.0))
    text = str(closed)
    assert "= cond[\n" in text and "branches=(\n" in text
    assert "{ lambda ; a:f64[]. let in (a,) }" in text and "sin a in (b,)" in text
    full = jaxpr_text(closed, pretty=False)
    assert full == jaxpr_text(parse_jaxpr(full), pretty=False)


# The document about jaxprs

def one_of_three(index, arg):
    return lax.switch(index, [lambda x: x + 1.0, lambda x: x - 2.0, lambda x: x + 3.0], arg)


def test_one_of_three_converts_and_clamps_its_index():
    with config(default_bits=32):  # as in the document; a 64-bit index is clamped before it is converted
        closed = cj.make_jaxpr(one_of_three)(1, 5.0)
    eqn = the_cond(closed)
    assert ([("convert_element_type", [0]), ("clamp", [0.0, 2, 2.0]), ("cond", [3, 1])], [4]) == wiring(closed.jaxpr)
    assert {"new_dtype": np.dtype(np.int32), "weak_type": False} == closed.eqns[0].params
    assert [([("add", [0, 1.0])], [1]), ([("sub", [0, 2.0])], [1]), ([("add", [0, 3.0])], [1])] == [
        wiring(branch) for branch in eqn.params["branches"]]
    for index, expected in [(0, 6.0), (1, 3.0), (2, 8.0), (7, 8.0), (-1, 6.0)]:
        assert expected == float(one_of_three(index, 5.0)) == float(cj.jit(one_of_three)(index, 5.0))


def test_func7_has_the_false_branch_first():
    def func7(arg):
        return lax.cond(arg >= 0.0, lambda xtrue: xtrue + 3.0, lambda xfalse: xfalse - 3.0, arg)

    closed = cj.make_jaxpr(func7)(5.0)
    eqn = the_cond(closed)
    assert ([("ge", [0, 0.0]), ("convert_element_type", [1]), ("cond", [2, 0])], [3]) == wiring(closed.jaxpr)
    assert {"new_dtype": np.dtype(np.int32), "weak_type": False} == closed.eqns[1].params
    assert [([("sub", [0, 3.0])], [1]), ([("add", [0, 3.0])], [1])] == [wiring(b) for b in eqn.params["branches"]]
    assert (8.0, -8.0) == (float(func7(5.0)), float(func7(-5.0)))
    assert (8.0, -8.0) == (float(cj.jit(func7)(5.0)), float(cj.jit(func7)(-5.0)))


def test_func8_flattens_its_operand_and_passes_the_constant_of_one_branch_to_both():
    one = cj.device_put(np.array([1]))

    def func8(arg1, arg2):  # arg2 is a pair
        return lax.cond(arg1 >= 0.0, lambda xtrue: xtrue[0], lambda xfalse: one + xfalse[1], arg2)

    closed = cj.make_jaxpr(func8)(5.0, (np.zeros(1), 2.0))
    eqn = the_cond(closed)
    (constant,), (_, first, second) = closed.jaxpr.constvars, closed.jaxpr.invars
    rows, outs = wiring(closed.jaxpr)
    assert [("ge", [1, 0.0]), ("convert_element_type", [4])] == rows[:2] and [6] == outs
    assert [constant, first, second] == list(eqn.invars[1:])
    on_false, on_true = eqn.params["branches"]
    assert ([], [1]) == wiring(on_true)
    # integers and a Python float meet in a conversion, as in the document; the scalar is broadcast by `add` itself
    assert ([("convert_element_type", [0]), ("add", [3, 2])], [4]) == wiring(on_false)
    np.testing.assert_array_equal([0.0], func8(5.0, (np.zeros(1), 2.0)))
    np.testing.assert_array_equal([3.0], func8(-5.0, (np.zeros(1), 2.0)))
    np.testing.assert_array_equal([3.0], cj.jit(func8)(-5.0, (np.zeros(1), 2.0)))
