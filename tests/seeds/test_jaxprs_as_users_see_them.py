"""The first-order examples of the seed about jaxprs, and its `xla_call`: the same functions give the same programs.

Structure is compared, not text: primitives in order, what feeds what, params. Where the library that the document
describes has a name or a step that corejax has not (dtype conversions for 32-bit defaults), the test says so.
"""

from __future__ import annotations

import numpy as np

import corejax as cj
from corejax import lax
from corejax.core import Jaxpr, Literal, Var


def names(jaxpr):
    return [eqn.primitive.name for eqn in jaxpr.eqns]


def wiring(jaxpr):
    """Each equation as (primitive, operands), a variable as its number in order of binding, a literal as its value."""
    number = {v: i for i, v in enumerate([*jaxpr.constvars, *jaxpr.invars])}
    rows = []
    for eqn in jaxpr.eqns:
        rows.append((eqn.primitive.name, [float(a.val) if type(a) is Literal else number[a] for a in eqn.invars]))
        for var in eqn.outvars:
            number[var] = len(number)
    return rows, [number[a] if type(a) is Var else float(a.val) for a in jaxpr.outvars]


SUM_OF_A_PLUS_3_SIN_B = (
    [("sin", [1]), ("mul", [2, 3.0]), ("add", [0, 3]), ("reduce_sum", [4])],
    [5],
)


def func1(first, second):
    temp = first + lax.sin(second) * 3.0
    return temp.sum()


def test_func1_is_four_equations_without_constants():
    closed = cj.make_jaxpr(func1)(np.zeros(8), np.ones(8))
    assert () == closed.consts
    assert SUM_OF_A_PLUS_3_SIN_B == wiring(closed.jaxpr)
    assert (0,) == closed.eqns[-1].params["axes"]
    assert ["f64[8]", "f64[8]"] == [str(a) for a in closed.in_avals]
    assert ["f64[]"] == [str(a) for a in closed.out_avals]


def test_func3_inlines_python_functions_and_conditionals():
    def func2(inner, first, second):
        temp = first + inner(second) * 3.0
        return temp.sum()

    def inner(second):
        if second.shape[0] > 4:
            return lax.sin(second)
        raise AssertionError("not reached for 8 elements")

    def func3(first, second):
        return func2(inner, first, second)

    assert SUM_OF_A_PLUS_3_SIN_B == wiring(cj.make_jaxpr(func3)(np.zeros(8), np.ones(8)).jaxpr)


def test_func4_flattens_a_pair_into_two_inputs():
    def func4(arg):
        temp = arg[0] + lax.sin(arg[1]) * 3.0
        return temp.sum()

    assert SUM_OF_A_PLUS_3_SIN_B == wiring(cj.make_jaxpr(func4)((np.zeros(8), np.ones(8))).jaxpr)


def test_scalar_constants_are_inline_and_arrays_become_constvars():
    table = np.arange(8.0)
    closed = cj.make_jaxpr(lambda x: x * 2.0 + table)(np.zeros(8))
    assert 1 == len(closed.jaxpr.constvars) == len(closed.consts)
    np.testing.assert_array_equal(table, closed.consts[0])
    assert [("mul", [1, 2.0]), ("add", [2, 0])] == wiring(closed.jaxpr)[0]


def test_func12_xla_call_carries_the_inner_jaxpr_with_its_closed_over_argument():
    def func12(arg):
        @cj.jit
        def inner(x):
            return x + arg * lax.full((1,), 1.0, np.float64)

        return arg + inner(arg - 2.0)

    closed = cj.make_jaxpr(func12)(1.0)
    assert ["sub", "xla_call", "add"] == [n for n in names(closed.jaxpr) if n not in BROADCASTS]
    (call,) = [eqn for eqn in closed.eqns if eqn.primitive.name == "xla_call"]
    inner = call.params["jaxpr"]
    assert isinstance(inner, Jaxpr) and () == inner.constvars
    assert "inner" == call.params["name"]
    (sub,) = [eqn for eqn in closed.eqns if eqn.primitive.name == "sub"]
    assert {closed.jaxpr.invars[0], sub.outvars[0]} == set(call.invars)
    assert ["mul", "add"] == [n for n in names(inner) if n not in BROADCASTS]
    assert ["f64[1]"] == [str(a) for a in inner.out_avals]
    np.testing.assert_allclose(func12(1.0), [1.0 + (1.0 - 2.0 + 1.0)])


#: How scalars meet the array of ones: the document broadcasts and converts to 32 bits, corejax does what it needs.
BROADCASTS = {"broadcast_in_dim", "convert_element_type", "full"}


def test_func13_xla_pmap_carries_the_program_of_one_row():
    def func13(arr, extra):
        def inner(x):  # `lax.full` stands for the document's jnp.ones(1)
            return (x + extra + lax.full((1,), 1.0)) / lax.psum(x, axis_name="rows")
        return cj.pmap(inner, axis_name="rows")(arr)

    arr = np.full((1, 3), 2.0)
    jaxpr = cj.make_jaxpr(func13)(arr, 5.0).jaxpr
    (eqn,) = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "xla_pmap"]
    inner = eqn.params["call_jaxpr"]
    wanted = {"axis_name": "rows", "axis_size": 1, "backend": None, "devices": None, "global_axis_size": None,
              "name": "inner", "out_axes": (0,), "donated_invars": (False,) * len(eqn.invars)}
    assert wanted == {name: eqn.params[name] for name in wanted}
    assert 0 == eqn.params["in_axes"][-1] and {None} == set(eqn.params["in_axes"][:-1])  # closed-over values come first
    assert len(inner.invars) == len(eqn.invars)
    assert ["add", "add", "psum", "div"] == [name for name in names(inner) if name != "broadcast_in_dim"]
    psum = next(eqn for eqn in inner.eqns if eqn.primitive.name == "psum")
    assert {"axes": ("rows",), "axis_index_groups": None} == dict(psum.params)
    assert [inner.invars[-1]] == list(psum.invars)
    text = str(jaxpr)
    assert all([f"{name}=" in text for name in (*wanted, "in_axes", "call_jaxpr")])
    np.testing.assert_allclose((arr + 6.0) / arr, np.asarray(func13(arr, 5.0)))
