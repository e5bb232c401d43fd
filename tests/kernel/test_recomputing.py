"""Programs whose second part computes everything again but for what is saved, with toy primitives and no pack."""

from __future__ import annotations

import numpy as np
import pytest
from calculus import add, calculus, mul, sin

from corejax.core import Array, JaxprEqn, ShapedArray, Var, eval_jaxpr, stage
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.interpreters.recomputing import Decision, Offloadable, Recompute, Saveable
from corejax.ir import jaxpr_text
from corejax.plugin import carrying

F64 = ShapedArray((), np.float64)


@pytest.fixture(autouse=True)
def _roles():
    with calculus():
        yield


def record(fun, count):
    return stage(fun, [F64] * count, "f").jaxpr


def program():
    def f(x, y):
        s = sin(x)
        t = sin(s)
        return [mul(t, y), s, add(t, s)]
    return record(f, 2)


def saves(*names):
    return lambda primitive, *avals, **params: primitive.name in names


def run(jaxpr, *args):
    values = [Array.from_host(np.asarray(x, np.float64), F64) for x in args]
    return [float(x) for x in eval_jaxpr(jaxpr, (), *values)]


def test_the_second_part_computes_all_results_again():
    whole = program()
    wanted = run(whole, 0.3, 0.7)
    for policy, saved in (
            (saves(), []), (saves("sin"), [("result", 1), ("fresh", 0)]), (saves("add"), [("result", 2)])):
        parts = carrying.split_saving(whole, (False, True), policy)
        assert (True, False, False) == parts.unknown_out and saved == list(parts.saved)
        now = run(parts.known, 0.3)
        assert wanted[1:] == now[:2]
        results, fresh = {1: now[0], 2: now[1]}, now[2:]
        kept = [results[i] if where == "result" else fresh[i] for where, i in parts.saved]
        assert wanted == run(parts.staged, *kept, 0.3, 0.7)
        assert [F64] * (len(now) - 2) == list(parts.fresh_avals)


def test_what_is_saved_is_left_out_and_nothing_else():
    def names(jaxpr):
        return [eqn.primitive.name for eqn in jaxpr.eqns]
    whole = program()
    assert names(whole) == names(carrying.split_saving(whole, (False, True), saves()).staged)
    assert ["mul"] == names(carrying.split_saving(whole, (False, True), saves("sin", "add")).staged)


def test_a_split_has_no_more_than_the_unknown_results_need():
    found = carrying.split_again(program(), (False, True), saves("sin", "add"))
    assert [("fresh", 0)] == list(found.residuals) and (1,) == found.staged_operands and (0,) == found.known_operands
    assert "{ lambda ; a:f64[] b:f64[]. let c:f64[] = mul a b in (c,) }" == jaxpr_text(found.staged)
    assert 3 == len(found.known.outvars)
    found = carrying.split_again(program(), (False, True), saves())
    assert [] == list(found.residuals) and (0, 1) == found.staged_operands
    assert 2 == len(found.known.outvars) and 3 == len(found.staged.eqns)


def test_an_equation_has_a_variable_of_its_own_for_a_result_that_is_saved():
    whole = record(lambda x, y: [sin(x), mul(sin(x), y)], 2)
    eqn = JaxprEqn(sin.primitive, [Var(F64), Var(F64)], [Var(F64), Var(F64)], {"jaxpr": whole})
    parts = carrying.split_saving(whole, (False, True), saves("sin"))
    made = []

    def remake(part, invars, outvars):
        made.append((part, invars, outvars))
        return eqn.replace(invars=invars, outvars=outvars)
    known, staged, unknown_out, saved = carrying.recompute(eqn, parts, (False, True), remake)
    assert (False, True) == unknown_out and 2 == len(saved) and eqn.outvars[0] is saved[0]
    assert known.outvars == (eqn.outvars[0], saved[1]) or list(known.outvars) == [eqn.outvars[0], saved[1]]
    assert list(staged.invars) == [*saved, *eqn.invars]
    assert staged.outvars[0] is not eqn.outvars[0] and staged.outvars[1] is eqn.outvars[1]
    assert [parts.known, parts.staged] == [part for part, _, _ in made]


def test_decisions_are_true_if_they_save():
    assert Saveable and not Recompute and Offloadable("device", "pinned_host")
    whole = program()
    as_bools = carrying.split_saving(whole, (False, True), saves("sin"))
    named = carrying.split_saving(
        whole, (False, True), lambda primitive, *_, **__: Saveable if primitive.name == "sin" else Recompute)
    assert as_bools.saved == named.saved
    assert ["Saveable", "Recompute"] == list(map(repr, (Saveable, Recompute))) and isinstance(Saveable, Decision)


@pytest.mark.parametrize("answer", [1, None, "yes", np.True_])
def test_another_answer_is_refused(answer):
    with pytest.raises(CorejaxTypeError, match="must say whether results are saved(.|\n)*for sin"):
        carrying.split_saving(program(), (False, True), lambda *_, **__: answer)


def test_there_is_a_flag_for_each_input():
    with pytest.raises(CorejaxValueError, match="split_saving: unknown_in must have one entry for each input"):
        carrying.split_saving(program(), (True,), saves())
