"""Jaxprs as text, and back."""

from __future__ import annotations

import re
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from toys import IO, add, anything, call, chain, emit, free, hidden, mul, pair, record, sin, total, toys, vec, weak

from corejax.arrays.meshes import AbstractMesh
from corejax.arrays.partitions import P
from corejax.arrays.shardings import NamedSharding
from corejax.base import dtypes
from corejax.base.avals import ShapedArray
from corejax.ir import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    JaxprSyntaxError,
    Literal,
    Var,
    close,
    eval_jaxpr,
    jaxpr_text,
    parse_jaxpr,
    structural_key,
)
from corejax.kernel.printing import Style, literal_text, value_lines

f64, i64 = ShapedArray((), "float64"), ShapedArray((), "int64")


def parse(text: str) -> Jaxpr:
    return parse_jaxpr(text, toys.__getitem__)


def assert_round_trip(jaxpr: Jaxpr) -> None:
    text = str(jaxpr)
    parsed = parse(text)
    assert text == str(parsed)
    assert structural_key(jaxpr) is structural_key(parsed)


def test_one_equation_prints_on_one_line_in_the_normative_form() -> None:
    closed = close(record(lambda a, b: mul.bind(b, 3.0), vec, f64), [np.ones(3)])
    assert str(closed) == "{ lambda a:f64[3] ; b:f64[]. let c:f64[] = mul b 3.0:~f64[] in (c,) }"
    assert str(closed) == repr(closed) == str(closed.jaxpr) == repr(closed.jaxpr)


def test_more_equations_print_indented() -> None:
    jaxpr = record(lambda x, y: (total.bind(add.bind(sin.bind(x), y), axes=(0,)), y), vec, weak)
    assert str(jaxpr) == """\
{ lambda ; a:f64[3] b:~f64[]. let
    c:f64[3] = sin a
    d:f64[3] = add c b
    e:f64[] = total[axes=(0,)] d
  in (e, b) }"""
    assert_round_trip(jaxpr)


def test_programs_without_equations_inputs_or_outputs() -> None:
    assert str(record(lambda x: x, f64)) == "{ lambda ; a:f64[]. let in (a,) }"
    assert str(record(lambda: ())) == "{ lambda ; . let in () }"
    assert str(record(lambda: 3.0)) == "{ lambda ; . let in (3.0:~f64[],) }"
    for fun in (lambda: (), lambda: 3.0, lambda: (True, 2)):
        assert_round_trip(record(fun))


def test_params_are_sorted_and_jaxprs_nested_with_names_of_their_own() -> None:
    inner = record(lambda x: sin.bind(x), f64)
    longer = record(lambda x: sin.bind(sin.bind(x)), f64)
    jaxpr = record(lambda x: free.bind(x, zeta=1, branches=(inner, longer), alpha=longer), f64)
    assert str(jaxpr) == """\
{ lambda ; a:f64[]. let
    b:f64[] = free[
      alpha={ lambda ; a:f64[]. let
          b:f64[] = sin a
          c:f64[] = sin b
        in (c,) }
      branches=(
        { lambda ; a:f64[]. let b:f64[] = sin a in (b,) },
        { lambda ; a:f64[]. let
            b:f64[] = sin a
            c:f64[] = sin b
          in (c,) },
      )
      zeta=1
    ] a
  in (b,) }"""
    assert_round_trip(jaxpr)


def test_unused_outputs_print_as_underscore() -> None:
    jaxpr = record(lambda x: pair.bind(x)[1], f64)
    assert str(jaxpr) == "{ lambda ; a:f64[]. let _:f64[] b:f64[] = pair a in (b,) }"
    assert_round_trip(jaxpr)


def test_effects_are_shown() -> None:
    assert str(record(lambda x: emit.bind(x, tag="t") or x, f64)) == (
        "{ lambda ; a:f64[]. let () = emit[tag='t'] a with {io} in (a,) }")
    jaxpr = record(lambda x: [emit.bind(x, tag="it's \"so\"\n"), x][1], f64)
    assert_round_trip(jaxpr)
    assert frozenset([IO]) == parse(str(jaxpr)).effects == parse(str(jaxpr)).eqns[0].effects


def test_an_equation_and_a_literal_print_by_themselves() -> None:
    jaxpr = record(lambda x: mul.bind(x, -0.0), f64)
    assert str(jaxpr.eqns[0]) == "b:f64[] = mul a -0.0:~f64[]"
    assert str(jaxpr.eqns[0].invars[1]) == "-0.0:~f64[]"


def test_variable_names_go_on_with_two_letters_and_skip_the_words_of_the_grammar() -> None:
    names = [line.split(":")[0].strip() for line in str(chain(400)).splitlines()[1:-1]]
    assert names[:25] == list("bcdefghijklmnopqrstuvwxyz") and names[25:28] == ["aa", "ab", "ac"]
    assert "in" not in names and "im" in names and "io" in names


def test_the_pretty_hook_decides_what_is_printed() -> None:
    jaxpr = record(lambda x: hidden.bind(x, size=3, secret=4), f64)
    assert "hidden[size=3] a" in str(jaxpr)
    assert "hidden[secret=4 size=3] a" in jaxpr_text(jaxpr, pretty=False)
    parsed = parse(jaxpr_text(jaxpr, pretty=False))
    assert structural_key(jaxpr) is structural_key(parsed)
    with pytest.raises(JaxprSyntaxError, match=r"these are not the params of hidden\n(.|\n)*pretty=False"):
        parse(str(jaxpr))


def test_values_out_of_the_closed_set_are_opaque_and_refused_by_name() -> None:
    for value in (object(), len, [1], {"a": 1}, np.float64(1), np.dtype("S3"), b"bytes", frozenset()):
        assert value_lines(value, Style()) == ["<opaque>"]
    jaxpr = Jaxpr((), (), (), [JaxprEqn(free, (), (), {"fun": len, "n": (1, (len,))})])
    assert "free[fun=<opaque> n=(1, (<opaque>,))]" in str(jaxpr)
    with pytest.raises(JaxprSyntaxError, match=r"param `fun` of free is <opaque>: it has no text that could be parsed"):
        parse(str(jaxpr))


def test_specs_of_meshes_parse_back_and_what_holds_devices_is_refused_by_name() -> None:
    spec = P("x", None, ("y", "z"), P.UNCONSTRAINED)
    jaxpr = record(lambda x: free.bind(x, specs=(P(), spec)), f64)
    assert "free[specs=(P(), P('x', None, ('y', 'z'), UNCONSTRAINED))] a" in str(jaxpr)
    assert_round_trip(jaxpr)
    sharding = NamedSharding(AbstractMesh((2,), ("x",)), P("x"))
    for value, text in ((sharding.mesh, "AbstractMesh('x': 2)"), (sharding, repr(sharding))):
        jaxpr = record(lambda x, value=value: free.bind(x, held=value), f64)
        assert f"free[held={text}] a" in str(jaxpr)
        exact = jaxpr_text(jaxpr, pretty=False)
        assert f"free[held=<{text}>] a" in exact
        with pytest.raises(JaxprSyntaxError, match=rf"param `held` of free is <{re.escape(text)}>: it has no text"):
            parse(exact)


def test_closed_jaxprs_in_params_parse_back_unless_they_hold_constants() -> None:
    inner = record(lambda x: sin.bind(x), f64)
    jaxpr = record(lambda x: free.bind(x, jaxpr=ClosedJaxpr(inner), pair=(ClosedJaxpr(inner), inner)), f64)
    assert "jaxpr=closed { lambda ; a:f64[]. let" in str(jaxpr)
    assert_round_trip(jaxpr)
    jaxpr = record(lambda x: free.bind(x, jaxpr=close(inner, [3.0])), f64)
    assert "jaxpr=closed <opaque> { lambda a:f64[] ; . let" in str(jaxpr)
    with pytest.raises(JaxprSyntaxError, match="param `jaxpr` of free closes over constants, which have no text"):
        parse(str(jaxpr))


def test_arrays_written_into_the_program_are_opaque() -> None:
    assert literal_text(Literal(np.ones(3), vec)) == "<opaque>:f64[3]"
    jaxpr = record(lambda x: mul.bind(x, np.ones(3)), vec)
    with pytest.raises(JaxprSyntaxError, match="an array was written into the program"):
        parse(str(jaxpr))


def test_source_info_appends_the_users_line() -> None:
    place = (test_source_info_appends_the_users_line.__code__, 0)
    jaxpr = record(lambda x: sin.bind(x), f64)
    jaxpr = jaxpr.replace(eqns=[jaxpr.eqns[0].replace(source=place)])
    text = jaxpr_text(jaxpr, source_info=True)
    assert "sin a  # " in text and "test_ir_printing.py:" in text
    assert "(test_source_info_appends_the_users_line)" in text
    assert str(jaxpr) == str(parse(text))


def test_comments_and_line_breaks_are_spaces() -> None:
    text = "{lambda;a:f64[ ].let # what follows\n b:f64[]=sin a\n\n c:f64[] = mul\n b b in(c,)}"
    assert str(parse(text.replace("[ ]", "[]"))) == (
        "{ lambda ; a:f64[]. let\n    b:f64[] = sin a\n    c:f64[] = mul b b\n  in (c,) }")


def bits(dtype: np.dtype) -> st.SearchStrategy[Any]:
    size = dtype.itemsize
    edge = [np.array(x).astype(dtype)[()] for x in (0, 1)]
    if dtypes.is_inexact(dtype):
        edge += [np.array(x).astype(dtype)[()] for x in (-1.5, 0.1, 1e-3, 256.0)]
        edge += [np.array(x).astype(dtype)[()] for x in (-0.0, np.inf, np.nan)]
    if dtype == dtypes.bool_:
        return st.sampled_from(edge)
    unused = 8 * size - dtypes.bits_of(dtype)  # above a number of less than a byte, in memory
    return st.sampled_from(edge) | st.binary(min_size=size, max_size=size).map(
        lambda b: np.frombuffer(bytes([b[0] >> unused, *b[1:]]), dtype)[0])


numeric = [dtype for dtype in dtypes.ALL if dtype is not dtypes.float0]
typed_numbers = st.sampled_from(numeric).flatmap(lambda dtype: st.tuples(bits(dtype), st.booleans()))


@pytest.mark.parametrize("dtype", numeric, ids=dtypes.short_name)
@settings(max_examples=60)
@given(data=st.data())
def test_literals_of_every_dtype_come_back_to_the_last_bit(dtype: np.dtype, data: st.DataObject) -> None:
    number = data.draw(bits(dtype))
    literal = Literal(number, ShapedArray((), dtype, data.draw(st.booleans())))
    parsed = parse(f"{{ lambda ; . let in ({literal},) }}").outvars[0]
    assert literal.aval is parsed.aval
    assert number.tobytes() == np.asarray(parsed.val, dtype).tobytes()
    assert str(literal) == str(parsed)


floats = st.floats() | st.binary(min_size=8, max_size=8).map(lambda b: np.frombuffer(b)[0].item())
atoms = (st.none() | st.booleans() | st.integers() | floats | st.text() | st.complex_numbers()
         | st.builds(complex, floats, floats) | st.sampled_from(dtypes.ALL))


@st.composite
def programs(draw: Any, depth: int = 2) -> Jaxpr:
    values = st.recursive(atoms | (programs(depth - 1) if depth else atoms),
                          lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4)
    params = st.dictionaries(st.sampled_from(["a", "axes", "jaxpr", "in", "let", "None_", "true"]), values, max_size=3)
    avals = st.builds(ShapedArray, st.lists(st.integers(0, 4), max_size=2).map(tuple), st.sampled_from(numeric),
                      st.booleans())
    scope = [Var(aval) for aval in draw(st.lists(avals, max_size=3))]
    constvars = [Var(aval) for aval in draw(st.lists(avals, max_size=1))]
    invars = list(scope)
    scope += constvars

    def operands() -> list[Any]:
        literals = typed_numbers.map(lambda n: Literal(n[0], ShapedArray((), n[0].dtype, n[1])))
        return draw(st.lists(st.sampled_from(scope) | literals if scope else literals, max_size=3))

    eqns = []
    for _ in range(draw(st.integers(0, 4))):
        outvars = [Var(aval) for aval in draw(st.lists(avals, max_size=2))]
        eqns.append(JaxprEqn(free, operands(), outvars, draw(params)))
        scope += outvars
    return Jaxpr(constvars if depth == 2 else (), invars if depth == 2 else [*constvars, *invars], operands(), eqns)


@settings(max_examples=150, deadline=None)
@given(programs())
def test_any_program_with_params_of_the_closed_set_comes_back_exactly(jaxpr: Jaxpr) -> None:
    assert_round_trip(jaxpr)


def test_a_hundred_thousand_equations_print_and_parse_in_linear_time() -> None:
    jaxpr = chain(100_000)
    start = time.perf_counter()
    text = str(jaxpr)
    printed = time.perf_counter() - start
    assert 100_002 == text.count("\n") + 1
    assert printed < 10
    parsed = parse(text)
    assert structural_key(jaxpr) is structural_key(parsed)
    assert time.perf_counter() - start < 60


@pytest.mark.parametrize(("text", "message"), [
    ("lambda", r"line 1, column 1: expected `{`\n    lambda\n    \^\n  got:    `lambda`"),
    ("{ lambda ; a:f64[] let in () }", r"line 1, column 20: expected `\.`"),
    ("{ lambda ; a:f65[]. let in () }", r"line 1, column 14: 'f65' is not a dtype"),
    ("{ lambda ; a:3. let in () }", r"column 14: expected a type, as in f64\[3\]"),
    ("{ lambda ; a:f64[] a:f64[]. let in () }", r"column 20: `a` is bound twice"),
    ("{ lambda ; in:f64[]. let in () }", r"column 12: `in` is not a name for a variable"),
    ("{ lambda ; a:f64[]. let a:f64[] = sin a in () }", r"column 25: `a` is bound twice"),
    ("{ lambda ; a:f64[]. let\n  b:f64[] = sin q\n in () }",
     r"line 2, column 17: `q` is not bound here\n      b:f64\[\] = sin q\n                    \^\n(.|\n)*local to"),
    ("{ lambda ; . let 3 in () }", r"expected an equation or `in`\n(.|\n)*got:    `3 in \(\) }`"),
    ("{ lambda ; . let () = sine in () }", r"column 23: there is no primitive `sine`"),
    ("{ lambda ; . let () = [] in () }", "expected the name of a primitive"),
    ("{ lambda ; . let () = free[3] in () }", r"expected the name of a param or `\]`"),
    ("{ lambda ; . let () = free[a=1 a=2] in () }", r"column 32: param `a` of free is given twice"),
    ("{ lambda ; . let () = free[a=what] in () }", "expected the value of param `a` of free"),
    ("{ lambda ; . let () = free[a=(1 2)] in () }", r"expected `\)`"),
    ("{ lambda ; a:f64[3]. let b:f64[] = total a in () }", r"these are not the params of total\n(.|\n)*wanted: axes"),
    ("{ lambda ; a:f64[]. let () = emit[tag='x'] a in () }", r"the effects of emit\n(.|\n)*got:    none\n  wanted: io"),
    ("{ lambda ; a:f64[]. let b:f64[] = sin a with {io} in () }", r"not the effects of sin\n(.|\n)*wanted: none"),
    ("{ lambda ; a:f64[]. let b:f64[] = sin a with {! in () }", r"expected an effect or `}`"),
    ("{ lambda ; . let in (1.5:i64[],) }", "`1.5` is no i64"),
    ("{ lambda ; . let in (1.5:bool[],) }", "`1.5` is no bool"),
    ("{ lambda ; . let in (True:f64[],) }", "`True` is no f64"),
    ("{ lambda ; . let in (300:u8[],) }", "`300` is no u8"),
    ("{ lambda ; . let in (1.5:c64[],) }", "`1.5` is no c64"),
    ("{ lambda ; . let in (nan(0x7ff8):f32[],) }", "is no f32"),
    ("{ lambda ; . let in (!,) }", r"expected an output or `\)`"),
    ("{ lambda ; . let in ()", r"column 23: expected `}`\n(.|\n)*got:    the end"),
    ("{ lambda ; . let in () } more", "expected the end of the text"),
    ("{ lambda ; a:f64[]. let () = call[jaxpr={ lambda ; . let in (a,) }] in () }", "`a` is not bound here"),
])
def test_a_text_that_is_no_jaxpr_is_refused_where_it_goes_wrong(text: str, message: str) -> None:
    with pytest.raises(JaxprSyntaxError, match=message) as caught:
        parse(text)
    place, line, caret = str(caught.value).split("\n")[:3]
    assert place.startswith(f"line {caught.value.line}, column {caught.value.column}: ")
    assert line.strip() in text and caret.index("^") == 4 + caught.value.column - 1


def test_plain_primitives_are_enough_to_look_at_a_program_but_not_to_run_it() -> None:
    jaxpr = parse_jaxpr("{ lambda ; a:f64[]. let b:f64[] = unheard.of-thing[k=1] a in (b,) }")
    assert "unheard.of-thing[k=1]" in str(jaxpr)
    assert structural_key(jaxpr) is structural_key(parse_jaxpr(str(jaxpr)))
    with pytest.raises(NotImplementedError, match="unheard.of-thing: only the name of this primitive is known"):
        eval_jaxpr(jaxpr, (), 1.0)


def test_the_values_of_literals_are_made_as_wanted() -> None:
    text = "{ lambda ; . let in (1:~i64[], 1:i64[], 1.0:~f32[], 1:~u64[]) }"
    assert [int, np.int64, np.float32, np.uint64] == [type(x.val) for x in parse(text).outvars]
    boxed = parse_jaxpr(text, toys.__getitem__, lambda array, aval: (array.item(), aval))
    assert (1, i64) == boxed.outvars[1].val


def test_primitives_with_odd_names_print_and_parse() -> None:
    odd = anything("scatter-add.2")
    jaxpr = record(lambda x: odd.bind(x, mode="clip"), f64)
    assert str(jaxpr) == str(parse_jaxpr(str(jaxpr), {"scatter-add.2": odd}.__getitem__))


def test_primitives_of_one_name_are_told_apart_by_their_owners_wherever_they_are() -> None:
    one, two, three, four = (anything("erf", pack=pack, module="demo") for pack in ("special", "other", None, None))
    inner = record(lambda x: two.bind(sin.bind(x)), f64)
    assert "= erf a in" in str(record(lambda x: one.bind(x), f64))
    jaxpr = record(lambda x: free.bind(one.bind(x), jaxpr=inner), f64)
    text = str(jaxpr)
    assert "b:f64[] = special/erf a" in text and "c:f64[] = other/erf b" in text and "b:f64[] = sin a" in text
    owners = toys | {"special/erf": one, "other/erf": two}
    assert structural_key(jaxpr) is structural_key(parse_jaxpr(text, owners.__getitem__))
    assert structural_key(jaxpr) is not structural_key(parse_jaxpr(text, (owners | {"other/erf": one}).__getitem__))
    assert text == str(parse_jaxpr(text)) == jaxpr_text(jaxpr)
    alike = str(record(lambda x: four.bind(three.bind(one.bind(x))), f64))
    assert re.findall(r"= (\S+)", alike) == ["special/erf", "demo/erf.1", "demo/erf.2"]
    assert alike == str(parse_jaxpr(alike))
    assert str(jaxpr.eqns[0]) == "b:f64[] = erf a" and "other/erf" not in str(jaxpr.eqns[1])


def test_nested_calls_round_trip() -> None:
    jaxpr = record(lambda x: sin.bind(x), f64)
    for _ in range(30):
        inner = jaxpr
        jaxpr = record(lambda x: call.bind(x, jaxpr=inner), f64)  # noqa: B023
    assert_round_trip(jaxpr)
