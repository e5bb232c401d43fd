"""Operations on jaxprs."""

from __future__ import annotations

import time
from typing import Any

import pytest
from toys import IO, Toy, add, call, chain, cos, emit, f64, mul, neg, pair, record, sin, toys, vec, weak

from corejax.errors import CorejaxValueError, RuleError
from corejax.ir import (
    ClosedJaxpr,
    Jaxpr,
    Literal,
    Var,
    close,
    consts_to_operands,
    count_eqns,
    dce,
    dce_closed,
    dedup_consts,
    eval_jaxpr,
    forwarded_outputs,
    inline,
    join_consts,
    move_invars,
    parse_jaxpr,
    reorder_invars,
    select_outputs,
    structural_key,
    substitute,
    typecheck,
)


def test_closing_over_undoes_moving_constants_to_operands() -> None:
    closed = close(record(lambda c, d, x: add.bind(mul.bind(c, x), d), f64, f64, f64), [2.0, 3.0])
    jaxpr, consts = consts_to_operands(closed)
    assert (2.0, 3.0) == consts and not jaxpr.constvars and 3 == len(jaxpr.invars)
    assert eval_jaxpr(closed.jaxpr, closed.consts, 5.0) == eval_jaxpr(jaxpr, (), *consts, 5.0)
    again = close(jaxpr, consts)
    assert structural_key(closed.jaxpr) is structural_key(again.jaxpr) and closed.consts == again.consts


def test_a_jaxpr_without_constants_is_left_alone() -> None:
    jaxpr = record(lambda x: x, f64)
    assert (jaxpr, ()) == consts_to_operands(ClosedJaxpr(jaxpr))
    assert jaxpr is close(jaxpr, ()).jaxpr
    assert jaxpr is substitute(jaxpr, {})
    closed = ClosedJaxpr(jaxpr)
    assert closed is dedup_consts(closed)


def test_joined_constants_are_passed_once_to_all() -> None:
    shared, own = [object(), object()]
    one = close(record(lambda c, x: add.bind(c, x), f64, f64), [shared])
    two = close(record(lambda c, d, e, x: add.bind(add.bind(c, d), mul.bind(e, x)), f64, f64, f64, f64),
                [own, shared, own])
    none = ClosedJaxpr(record(lambda x: x, f64))
    jaxprs, consts = join_consts([one, two, none])
    assert (shared, own) == consts
    values = {id(shared): 7.0, id(own): 11.0}
    args = [values[id(c)] for c in consts]
    assert [10.0] == eval_jaxpr(jaxprs[0], (), *args, 3.0)
    assert [11.0 + 7.0 + 33.0] == eval_jaxpr(jaxprs[1], (), *args, 3.0)
    assert [3.0] == eval_jaxpr(jaxprs[2], (), *args, 3.0)
    for jaxpr in jaxprs:
        typecheck(jaxpr)


def test_inlining_is_evaluating_and_binds_fresh_variables() -> None:
    inner = record(lambda x, y: (add.bind(sin.bind(x), y), x, 3.0), f64, f64)
    x = Var(f64)
    first, outs = inline(inner, [x, Literal(1.5, weak)])
    second, more = inline(inner, [outs[0], x])
    jaxpr = Jaxpr((), [x], [*outs, *more], [*first, *second])
    typecheck(jaxpr)
    mid = eval_jaxpr(inner, (), 2.0, 1.5)
    assert [*mid, *eval_jaxpr(inner, (), mid[0], 2.0)] == eval_jaxpr(jaxpr, (), 2.0)


def test_inlining_takes_atoms_for_constants() -> None:
    inner = close(record(lambda c, x: mul.bind(c, x), f64, f64), [0.0]).jaxpr
    x = Var(f64)
    eqns, outs = inline(inner, [x], [Literal(4.0, f64)])
    assert [8.0] == eval_jaxpr(Jaxpr((), [x], outs, eqns), (), 2.0)


def test_substituting_leaves_other_equations_as_they_are() -> None:
    jaxpr = record(lambda x, y: (sin.bind(x), cos.bind(y), y), f64, f64)
    new = substitute(jaxpr, {jaxpr.invars[1]: jaxpr.invars[0]})
    assert jaxpr.eqns[0] is new.eqns[0] and 1 == len(new.invars) and new.outvars[2] is jaxpr.invars[0]
    typecheck(new)


def test_binders_move() -> None:
    jaxpr = record(lambda a, b, c: (a, b, c), f64, vec, weak)
    assert [vec, weak, f64] == reorder_invars(jaxpr, [1, 2, 0]).in_avals
    assert [f64, weak, vec] == move_invars(jaxpr, [True, False, True]).in_avals
    with pytest.raises(CorejaxValueError, match=r"permutation\n  got:    \[0, 0, 1\]\n  wanted: each of 0 to 2 once"):
        reorder_invars(jaxpr, [0, 0, 1])
    with pytest.raises(CorejaxValueError, match=r"one flag for each invar\n  got:    1\n  wanted: 3"):
        move_invars(jaxpr, [True])


def test_forwarded_outputs_are_found() -> None:
    assert (None, 1, None, 0) == forwarded_outputs(record(lambda x, y: (sin.bind(x), y, 3.0, x), f64, f64))
    assert (None,) == forwarded_outputs(close(record(lambda x: x, f64), [1.0]).jaxpr)


def test_equations_are_counted_also_in_nested_jaxprs() -> None:
    inner = record(lambda x: [sin.bind(cos.bind(x))], f64)
    jaxpr = record(lambda x: [*call.bind(x, jaxpr=inner), *call.bind(x, jaxpr=inner), neg.bind(x)], f64)
    assert 7 == count_eqns(jaxpr) and 3 == count_eqns(jaxpr, recursive=False)


def test_dead_equations_and_inputs_go() -> None:
    jaxpr = record(lambda x, y, z: (sin.bind(x), cos.bind(neg.bind(y)), add.bind(x, z)), f64, f64, f64)
    new, used = dce(jaxpr, [True, False, True])
    assert (True, False, True) == used and ["sin", "add"] == [eqn.primitive.name for eqn in new.eqns]
    assert jaxpr.eqns[0] is new.eqns[0]
    new, used = dce(jaxpr, [True, False, True], instantiate=True)
    assert (True, True, True) == used and 3 == len(new.invars)
    new, used = dce(jaxpr, [False, False, False], instantiate=[False, False, True])
    assert (False, False, True) == used and not new.eqns and not new.outvars


def test_nothing_dead_gives_the_same_object() -> None:
    jaxpr = record(lambda x, y: (sin.bind(x), y), f64, f64)
    assert (jaxpr, (True, True)) == dce(jaxpr, [True, True])


def test_effects_are_kept_alive_with_what_they_need() -> None:
    jaxpr = record(lambda x, y: [emit.bind(sin.bind(x), tag="t"), cos.bind(y)][1], f64, f64)
    new, used = dce(jaxpr, [False])
    assert (True, False) == used and ["sin", "emit"] == [eqn.primitive.name for eqn in new.eqns]
    assert jaxpr.effects == new.effects == frozenset([IO])
    typecheck(new)


def test_one_used_output_keeps_an_equation_whole() -> None:
    new, _ = dce(record(lambda x: pair.bind(x), f64), [False, True])
    assert "_:f64[] b:f64[] = pair a" in str(new)


def test_the_dce_hook_shortens_its_equation() -> None:
    inner = record(lambda x, y: (sin.bind(x), cos.bind(y)), f64, f64)
    jaxpr = record(lambda x, y: call.bind(neg.bind(x), neg.bind(y), jaxpr=inner), f64, f64)
    new, used = dce(jaxpr, [False, True])
    assert (False, True) == used
    assert str(new) == """\
{ lambda ; a:f64[]. let
    b:f64[] = neg a
    c:f64[] = call[
      jaxpr={ lambda ; a:f64[]. let b:f64[] = cos a in (b,) }
    ] b
  in (c,) }"""
    typecheck(new)
    assert 5 == count_eqns(jaxpr) and 2 == count_eqns(dce(jaxpr, [True, False])[0]) - 1


@pytest.mark.parametrize(("result", "message"), [
    (None, r"bad.dce \(toys 1.0\): didn't return a pair\n  got:    None"),
    (lambda eqn, used: ((True,), eqn), r"bad.dce \(toys 1.0\): doesn't say for each operand whether it is used"),
    (lambda eqn, used: ((False, False), None), r"dropped an equation that is needed"),
    (lambda eqn, used: ((True, True), eqn.replace(outvars=[])), r"dropped an output that is used"),
    (lambda eqn, used: ((True, False), eqn), r"kept different operands than it says"),
])
def test_what_a_dce_hook_returns_is_checked(result: Any, message: str) -> None:
    bad = Toy("bad", lambda avals: (f64, f64), None, multiple_results=True,
              dce=result if callable(result) else lambda eqn, used: None)
    jaxpr = record(lambda x, y: bad.bind(x, y), f64, f64)
    with pytest.raises(RuleError, match=message):
        dce(jaxpr, [True, False])


def test_the_flags_of_dce_are_counted() -> None:
    jaxpr = record(lambda x: x, f64)
    with pytest.raises(CorejaxValueError, match=r"dce: one flag for each output\n  got:    2\n  wanted: 1"):
        dce(jaxpr, [True, False])
    with pytest.raises(CorejaxValueError, match="one flag for each invar"):
        dce(jaxpr, [True], instantiate=[])


def test_dead_constants_go_from_a_closed_jaxpr() -> None:
    closed = close(record(lambda c, d, x, y: (mul.bind(c, x), mul.bind(d, y)), f64, f64, f64, f64), [2.0, 3.0])
    new, used = dce_closed(closed, [False, True])
    assert (3.0,) == new.consts and (False, True) == used
    assert [15.0] == eval_jaxpr(new.jaxpr, new.consts, 5.0)


def test_outputs_are_selected() -> None:
    assert [f64, f64] == select_outputs(record(lambda x, y: (x, y), vec, f64), [1, 1]).out_avals


def test_a_hundred_thousand_equations_are_pruned_in_linear_time() -> None:
    jaxpr = chain(100_000)
    start = time.perf_counter()
    assert jaxpr is dce(jaxpr, [True])[0]
    assert 0 == len(dce(jaxpr, [False])[0].eqns)
    assert time.perf_counter() - start < 10


def test_the_parser_reads_what_surgery_made() -> None:
    jaxpr = parse_jaxpr("{ lambda ; a:f64[] b:f64[]. let c:f64[] = sin b in (c, 1.0:f64[]) }", toys.__getitem__)
    assert "{ lambda ; a:f64[]. let b:f64[] = sin a in (b,) }" == str(dce(jaxpr, [True, False])[0])
