"""Programs with control flow as text: what they look like, and that the text is the program."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import eval_jaxpr
from corejax.ir import ClosedJaxpr, count_eqns, jaxpr_text, parse_jaxpr, structural_key, typecheck
from corejax.ir.parsing import JaxprSyntaxError
from corejax.plugin import find
from structured_programs import PROGRAMS, Structured

X = np.array([0.6, -0.3, 0.8])
MODES: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "plain": lambda fun: fun,
    "jvp": lambda fun: lambda x: cj.jvp(fun, (x,), (x,)),
    "grad": cj.grad,
    "vmap": lambda fun: lambda x: cj.vmap(fun)(lax.stack([x, x])),
    "jit of grad": lambda fun: cj.jit(cj.grad(fun)),
}
CASES = [(program, mode) for program in PROGRAMS for mode in MODES if program.allows(mode.split()[-1:])]
WITHOUT_RULES = [case for case in CASES if "custom" not in case[0].name]


def assert_reads(text: str, fun: Callable[..., Any], *args: Any) -> None:
    """The program has this text, and the text is read as this program."""
    closed = cj.make_jaxpr(fun)(*args)
    assert textwrap.dedent(text).strip() == jaxpr_text(closed)
    assert structural_key(closed.jaxpr) is structural_key(parse_jaxpr(text, find))


def traced(program: Structured, mode: str) -> ClosedJaxpr:
    return cj.make_jaxpr(MODES[mode](lambda x: program.structured(cj, lax, x)))(X)  # type: ignore[no-any-return]


# What they look like

def test_branches_stand_below_each_other_and_a_short_one_on_one_line() -> None:
    def squared(x: Any) -> Any:
        y = lax.sin(x)
        return lax.mul(y, y)

    assert_reads("""
        { lambda ; a:bool[] b:f64[3]. let
            c:i32[] = convert_element_type[new_dtype=i32 weak_type=False] a
            d:f64[3] = cond[
              branches=(
                { lambda ; a:f64[3]. let b:f64[3] = cos a in (b,) },
                { lambda ; a:f64[3]. let
                    b:f64[3] = sin a
                    c:f64[3] = mul b b
                  in (c,) },
              )
            ] c b
          in (d,) }
    """, lambda p, x: lax.cond(p, squared, lax.cos, x), np.bool_(True), X)


def test_a_switch_has_as_many_branches_as_it_was_given() -> None:
    def fun(i: Any, x: Any) -> Any:
        return lax.switch(i, [lambda x: x, lax.sin, lambda x: lax.mul(x, 2.0)], x)

    assert_reads("""
        { lambda ; a:i32[] b:f64[3]. let
            c:i32[] = clamp 0:~i32[] a 2:~i32[]
            d:f64[3] = cond[
              branches=(
                { lambda ; a:f64[3]. let in (a,) },
                { lambda ; a:f64[3]. let b:f64[3] = sin a in (b,) },
                { lambda ; a:f64[3]. let b:f64[3] = mul a 2.0:~f64[] in (b,) },
              )
            ] c b
          in (d,) }
    """, fun, np.int32(1), X)


def test_a_scan_shows_its_body_and_how_it_goes() -> None:
    def fun(x: Any, xs: Any) -> Any:
        return lax.scan(lambda c, e: (lax.mul(c, e), c), x, xs, reverse=True, unroll=2)

    assert_reads("""
        { lambda ; a:f64[] b:f64[3]. let
            c:f64[] d:f64[3] = scan[
              jaxpr={ lambda ; a:f64[] b:f64[]. let c:f64[] = mul a b in (c, a) }
              length=3
              num_carry=1
              num_consts=0
              reverse=True
              unroll=2
            ] a b
          in (c, d) }
    """, fun, np.float64(0.5), X)


def test_a_while_loop_shows_its_condition_and_its_body() -> None:
    def fun(x: Any) -> Any:
        return lax.while_loop(lambda s: lax.lt(s[1], 3.0), lambda s: (lax.add(s[0], 1), lax.mul(s[1], x)), (0, x))

    assert_reads("""
        { lambda ; a:f64[]. let
            b:~i64[] c:f64[] = while_loop[
              body_jaxpr={ lambda ; a:f64[] b:~i64[] c:f64[]. let
                  d:~i64[] = add b 1:~i64[]
                  e:f64[] = mul c a
                in (d, e) }
              body_nconsts=1
              cond_jaxpr={ lambda ; a:~i64[] b:f64[]. let c:bool[] = lt b 3.0:~f64[] in (c,) }
              cond_nconsts=0
            ] a 0:~i64[] a
          in (b, c) }
    """, fun, np.float64(2.0))


def test_a_checkpoint_shows_its_program() -> None:
    assert_reads("""
        { lambda ; a:f64[3]. let
            b:f64[3] = checkpoint_call[
              differentiated=False
              jaxpr={ lambda ; a:f64[3]. let
                  b:f64[3] = sin a
                  c:f64[3] = cos b
                in (c,) }
              prevent_cse=True
            ] a
          in (b,) }
    """, cj.checkpoint(lambda x: lax.cos(lax.sin(x))), X)


def test_programs_within_programs_are_indented_by_their_depth() -> None:
    def grown(c: Any) -> Any:
        return lax.while_loop(lambda c: lax.lt(c, 9.0), lambda c: lax.mul(c, 2.0), c)

    def body(c: Any, p: Any) -> Any:
        return lax.cond(p, grown, lax.neg, c), None

    assert_reads("""
        { lambda ; a:f64[] b:bool[3]. let
            c:f64[] = scan[
              jaxpr={ lambda ; a:f64[] b:bool[]. let
                  c:i32[] = convert_element_type[new_dtype=i32 weak_type=False] b
                  d:f64[] = cond[
                    branches=(
                      { lambda ; a:f64[]. let b:f64[] = neg a in (b,) },
                      { lambda ; a:f64[]. let
                          b:f64[] = while_loop[
                            body_jaxpr={ lambda ; a:f64[]. let b:f64[] = mul a 2.0:~f64[] in (b,) }
                            body_nconsts=0
                            cond_jaxpr={ lambda ; a:f64[]. let b:bool[] = lt a 9.0:~f64[] in (b,) }
                            cond_nconsts=0
                          ] a
                        in (b,) },
                    )
                  ] c a
                in (d,) }
              length=3
              num_carry=1
              num_consts=0
              reverse=False
              unroll=1
            ] a b
          in (c,) }
    """, lambda c, p: lax.scan(body, c, p)[0], np.float64(1.0), np.array([True, False, True]))


@pytest.mark.parametrize(("program", "mode"), CASES, ids=str)
def test_lines_within_a_param_are_indented_below_it_and_brackets_match(program: Structured, mode: str) -> None:
    opened: list[int] = []
    for line in jaxpr_text(traced(program, mode)).splitlines():
        indent = len(line) - len(line.lstrip())
        if line.lstrip()[0] in "])":
            assert opened.pop() == indent
        assert not opened or indent > opened[-1]
        if line[-1] in "[(":
            opened.append(indent)
    assert not opened


# The text is the program

@pytest.mark.sample(24)
@pytest.mark.parametrize(("program", "mode"), WITHOUT_RULES, ids=str)
def test_text_reads_back_as_the_same_program_and_runs(program: Structured, mode: str) -> None:
    closed = traced(program, mode)
    text = jaxpr_text(closed, pretty=False)
    back = parse_jaxpr(text, find)
    typecheck(back)
    assert text == jaxpr_text(back, pretty=False)
    assert structural_key(back) is structural_key(closed.jaxpr)
    assert count_eqns(back) == count_eqns(closed.jaxpr)
    outs, expected = [eval_jaxpr(jaxpr, closed.consts, X) for jaxpr in (back, closed.jaxpr)]
    for x, y in zip(outs, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


@pytest.mark.parametrize(("program", "mode"), WITHOUT_RULES, ids=str)
def test_what_pretty_hooks_leave_out_is_filled_in_again(program: Structured, mode: str) -> None:
    closed = traced(program, mode)
    assert structural_key(closed.jaxpr) is structural_key(parse_jaxpr(jaxpr_text(closed), find))


def test_a_program_that_was_read_can_be_differentiated_and_compiled() -> None:
    fun = next(p for p in PROGRAMS if p.name == "scan_in_cond")
    closed = traced(fun, "plain")
    back = parse_jaxpr(jaxpr_text(closed), find)

    def again(x: Any) -> Any:
        return eval_jaxpr(back, closed.consts, x)[0]

    expected = cj.grad(lambda x: fun.structured(cj, lax, x))(X)
    np.testing.assert_allclose(cj.jit(cj.grad(again))(X), expected, rtol=1e-12)


# Rules of users are Python functions, which have no text

def _with_rules() -> tuple[Callable[..., Any], Callable[..., Any]]:
    @cj.custom_jvp
    def sine(x: Any) -> Any:
        return lax.sin(x)

    sine.defjvp(lambda primals, tangents: (sine(*primals), lax.mul(lax.cos(primals[0]), tangents[0])))

    @cj.custom_vjp
    def cosine(x: Any) -> Any:
        return lax.cos(x)

    cosine.defvjp(lambda x: (lax.cos(x), x), lambda x, ct: (lax.mul(ct, lax.neg(lax.sin(x))),))
    return sine, cosine


def test_a_call_with_rules_shows_its_program_and_which_rules_it_has() -> None:
    sine, cosine = _with_rules()
    assert textwrap.dedent("""
        { lambda ; a:f64[3]. let
            b:f64[3] = custom_call[
              jaxpr={ lambda ; a:f64[3]. let b:f64[3] = sin a in (b,) }
              jvp=<opaque>
              name='sine'
            ] a
            c:f64[3] = custom_call[
              jaxpr={ lambda ; a:f64[3]. let b:f64[3] = cos a in (b,) }
              name='cosine'
              vjp=<opaque>
            ] b
          in (c,) }
    """).strip() == jaxpr_text(cj.make_jaxpr(lambda x: cosine(sine(x)))(X))


@pytest.mark.parametrize(("which", "rule"), [(0, "jvp"), (1, "vjp")])
def test_a_call_with_rules_is_refused_by_the_name_of_the_rule(which: int, rule: str) -> None:
    text = jaxpr_text(cj.make_jaxpr(_with_rules()[which])(X))
    with pytest.raises(JaxprSyntaxError, match=rf"param `{rule}` of custom_call is <opaque>"):
        parse_jaxpr(text, find)
