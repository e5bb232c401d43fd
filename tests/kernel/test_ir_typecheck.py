"""What the type checker of jaxprs accepts, and how it refuses the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from toys import IO, Toy, add, anything, call, chain, emit, f64, mul, pair, record, sin, total, vec, weak

from corejax.base.avals import ShapedArray
from corejax.errors import CorejaxTypeError
from corejax.ir import Jaxpr, JaxprEqn, Literal, Var, close, typecheck


def refused(jaxpr: Jaxpr, message: str) -> CorejaxTypeError:
    with pytest.raises(CorejaxTypeError, match=message) as caught:
        typecheck(jaxpr)
    return caught.value


def test_what_staging_makes_is_well_typed() -> None:
    inner = record(lambda x: [emit.bind(x, tag="t"), sin.bind(x)][1:], vec)
    jaxpr = record(lambda x, y: [*pair.bind(total.bind(add.bind(x, mul.bind(y, 2.0)), axes=(0,))),
                                 *call.bind(x, jaxpr=inner)], vec, weak)
    typecheck(jaxpr)
    typecheck(close(record(lambda c, x: add.bind(c, x), vec, vec), [np.ones(3)]).jaxpr)


def test_a_checked_jaxpr_is_not_checked_again() -> None:
    calls = []
    counting = Toy("counting", lambda avals: calls.append(1) or avals[0], lambda x: x)
    inner = record(lambda x: counting.bind(x), f64)
    calls.clear()
    outer = record(lambda x: [*call.bind(x, jaxpr=inner), *call.bind(x, jaxpr=inner)], f64)
    typecheck(outer)
    typecheck(outer)
    assert [1] == calls


def test_a_wrong_output_type_shows_the_equation_and_both_types() -> None:
    x = Var(vec)
    out = Var(ShapedArray((4,), "float32"))
    error = refused(Jaxpr((), [x], [out], [JaxprEqn(sin, [x], [out], {}, source=(refused.__code__, 0))]),
                    r"equation 0 has outputs of different types than its primitive infers\n    b:f32\[4\] = sin a\n"
                    r"  got:    f32\[4\]\n  wanted: f64\[3\]\n  where:  .*test_ir_typecheck.py:\d+ \(refused\)")
    assert "sin" == error.primitive


def test_weak_types_count() -> None:
    x, out = Var(weak), Var(f64)
    refused(Jaxpr((), [x], [out], [JaxprEqn(sin, [x], [out], {})]), r"got:    f64\[\]\n  wanted: ~f64\[\]")


def test_the_number_of_outputs_counts() -> None:
    x, out = Var(f64), Var(f64)
    refused(Jaxpr((), [x], [out], [JaxprEqn(pair, [x], [out], {})]), r"got:    f64\[\]\n  wanted: f64\[\], f64\[\]")
    refused(Jaxpr((), [x], [], [JaxprEqn(sin, [x], [], {})]), r"\(\) = sin a\n  got:    no outputs")


def test_variables_are_bound_once_and_before_their_use() -> None:
    x, y, z = Var(f64), Var(f64), Var(f64)
    refused(Jaxpr((), [x, x], [], []), "its head binds `a` a second time")
    refused(Jaxpr([x], [x], [], []), "its head binds `a` a second time")
    refused(Jaxpr((), [x], [x], [JaxprEqn(sin, [x], [x], {})]), "equation 0 binds `a` a second time\n    a:f64")
    refused(Jaxpr((), [x], [z], [JaxprEqn(sin, [y], [z], {}), JaxprEqn(sin, [x], [y], {})]),
            "equation 0 uses `c`, which is not bound before it\n    b:f64\\[\\] = sin c")
    refused(Jaxpr((), [x], [y], []), "its list of outputs uses `b`, which is not bound")
    refused(Jaxpr((), [x], [], [JaxprEqn(sin, [x], [Literal(1.0, f64)], {})]), "binds something that isn't a variable")


@pytest.mark.parametrize(("value", "aval", "message"), [
    (1, weak,
     r"has a literal that isn't of the type that it states(.|\n)*1 of type int\n  wanted: a value of type ~f64"),
    (True, ShapedArray((), "int64", True), "True of type bool"),
    (np.float32(1), f64, r"1.0 of type f32\[\]\n  wanted: a value of type f64"),
    (np.ones(2), vec, r"\[1. 1.\] of type f64\[2\]\n  wanted: a value of type f64\[3\]"),
])
def test_literals_are_typed(value: Any, aval: ShapedArray, message: str) -> None:
    refused(Jaxpr((), (), [Literal(value, aval)], []), message)


def test_literals_of_the_right_type_pass() -> None:
    for value, aval in ((1.0, weak), (2, ShapedArray((), "uint8")), (np.float64(1), weak), (np.ones(3), vec)):
        typecheck(Jaxpr((), (), [Literal(value, aval)], []))


def test_operands_that_the_primitive_refuses_say_why() -> None:
    x, y, out = Var(vec), Var(ShapedArray((3,), "float32")), Var(vec)
    refused(Jaxpr((), [x, y], [out], [JaxprEqn(add, [x, y], [out], {})]),
            r"has operands or params that add rejects\n    c:f64\[3\] = add a b\n"
            r"  got:    operands differ in type\n      got:    f64\[3\], f32\[3\]")


def test_params_are_those_of_the_primitive() -> None:
    x, out = Var(vec), Var(f64)
    refused(Jaxpr((), [x], [out], [JaxprEqn(total, [x], [out], {"axis": (0,)})]),
            r"doesn't have the params of its primitive\n.*total\[axis=\(0,\)\] a\n  got:    axis\n  wanted: axes")


def test_jaxprs_in_params_are_checked_and_closed_over_nothing() -> None:
    x, y = Var(f64), Var(f64)
    bad = Jaxpr((), [x], [y], [])
    out = Var(f64)
    refused(Jaxpr((), [x], [out], [JaxprEqn(call, [x], [out], {"jaxpr": bad})]),
            r"equation 0 has an ill-typed jaxpr among its params\n(.|\n)*list of outputs uses `b`, which is not bound")
    open_ = close(record(lambda x: x, f64), [1.0]).jaxpr
    refused(Jaxpr((), (), [out], [JaxprEqn(call, [], [out], {"jaxpr": open_})]),
            r"has a jaxpr with constvars among its params(.|\n)*to do:  make them operands")


def test_effects_are_those_of_the_primitive_and_add_up() -> None:
    x = Var(f64)
    io = frozenset([IO])
    eqn = JaxprEqn(emit, [x], [], {"tag": "t"}, io)
    typecheck(Jaxpr((), [x], [], [eqn], io))
    refused(Jaxpr((), [x], [], [eqn]), r"a jaxpr must have the effects of its equations\n  got:    {}\n  wanted: {io}")
    refused(Jaxpr((), [x], [], [], io), r"got:    {io}\n  wanted: {}")
    refused(Jaxpr((), [x], [], [eqn.replace(effects=frozenset())]), r"has different effects than its primitive\n")
    silent = Toy("silent", lambda avals, *, jaxpr: (), list, ["jaxpr"], multiple_results=True)
    inner = Jaxpr((), [x], [], [eqn], io)
    refused(Jaxpr((), (), (), [JaxprEqn(silent, [], [], {"jaxpr": inner})]), r"got:    {}\n  wanted: {io}")


def test_the_typecheck_hook_replaces_inference() -> None:
    def hook(avals: Any, *, to: str) -> ShapedArray:
        if avals[0].dtype.kind != "f":
            raise CorejaxTypeError("cast takes floats")
        return avals[0].update(dtype=to)

    cast = Toy("cast", lambda avals, *, to: pytest.fail("infer was asked"), None, ["to"], typecheck=hook)
    x, out = Var(f64), Var(ShapedArray((), "float32"))
    typecheck(Jaxpr((), [x], [out], [JaxprEqn(cast, [x], [out], {"to": "float32"})]))
    refused(Jaxpr((), [x], [out], [JaxprEqn(cast, [x], [out], {"to": "float16"})]), r"wanted: f16\[\]")
    y = Var(ShapedArray((), "int64"))
    refused(Jaxpr((), [y], [out], [JaxprEqn(cast, [y], [out], {"to": "float32"})]), "cast takes floats")


def test_a_hundred_thousand_equations_are_checked() -> None:
    typecheck(chain(100_000))


def test_primitives_without_declared_params_take_any() -> None:
    typecheck(record(lambda x: anything().bind(x, whatever=1), f64))
