"""The hook `jet`: rules that packs write or declare, what they may return, and how programs are gone through."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax, taylor
from corejax.core import subjaxprs
from corejax.errors import CorejaxError, MissingRuleError, RuleError
from corejax.plugin import Zero, define, families, find, hookimpl, not_differentiable, partials, transforming
from corejax.testing import ConformanceError, Sample, check_primitive

X = np.array([0.3, 0.7])

LAW = "jet: series are nested derivatives"


def row(name: str, rule: Any, **more: Any) -> Any:
    """exp by another name, with a rule of its own."""
    return define(families.unary(
        name, np.exp, dtypes="f", hlo="exponential", doc="e to the power of x.", rules={"jet": rule},
        **{"jvp": partials(lambda x_dot, out, x: x_dot * lax.exp(x)), **more}))


def exp_step(k: int, out: Any, x: Any) -> Any:
    """Of y' = y x'."""
    total: Any = 0.0
    for j in range(1, k + 1):
        if type(x[j]) is not Zero:
            total = total + x[j] * float(j) * out[k - j]
    return total / float(k)


def whole_exp(primals: Any, series: Any) -> Any:
    (x,), (terms,) = primals, series
    _, found = taylor.jet(lax.exp, (x,), [[_filled(c, x) for c in terms]], factorial_scaled=False)
    return lax.exp(x), found


def _filled(c: Any, x: Any) -> Any:
    return lax.full_like(x, 0) if type(c) is Zero else c


@pytest.mark.parametrize("name, rule, how", [
    ("hook_exp_by_recurrence", taylor.recurrence(exp_step), "declared"),
    ("hook_exp_by_composition", taylor.composition(lambda args: lax.exp(args[0] / 2.0) ** 2), "declared"),
    ("hook_exp_whole", whole_exp, "written"),
    ("hook_exp_none", lambda primals, series: None, "written")])
def test_a_row_has_a_rule_of_its_own(name: str, rule: Any, how: str) -> None:
    function = row(name, rule)
    assert how == taylor.JET.answer(function.primitive).how
    for found, wanted in zip(taylor.derivatives(lambda x: function(lax.sin(x)), X, 5),
                             taylor.derivatives(lambda x: lax.exp(lax.sin(x)), X, 5), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    report = check_primitive(function, checks=[LAW])
    assert report.outcomes[0].held


def test_params_that_a_recurrence_names_are_given_to_it() -> None:
    scaled = define(families.unary(
        "hook_scaled", lambda x, *, by: x * by, dtypes="f", params={"by": (2.0,)}, doc="x times `by`.",
        jvp=partials(lambda x_dot, out, x, *, by: x_dot * by), hlo=lambda ctx, args, *, by: ctx.lower(
            lambda x: x * by, *args), rules={"jet": taylor.recurrence(lambda k, out, x, *, by: x[k] * by)}))
    assert [0.6, 2.0, 0.0] == [d.item() for d in taylor.derivatives(lambda x: scaled(x, by=2.0), 0.3, 2)]


def _two(primals: Any, series: Any) -> Any:
    return [primals[0], primals[0]], [series[0], series[0]]


class Twice:
    """Both results are x."""

    name = "hook_twice"
    multiple_results = True
    jvp = partials(None)

    @hookimpl
    def abstract_eval(self, avals: Any) -> Any:
        return [avals[0], avals[0]]

    @hookimpl
    def impl(self, args: Any) -> Any:
        return [args[0], args[0]]

    @hookimpl
    def jet(self, primals: Any, series: Any) -> Any:
        return _two(primals, series)


def test_a_rule_of_several_results_returns_several_series() -> None:
    twice = define(Twice())
    _, (one, other) = taylor.jet(lambda x: twice(lax.sin(x)), (X,), ([np.ones(2), np.zeros(2)],))
    np.testing.assert_allclose(one, other)
    np.testing.assert_allclose(one[1], -np.sin(X))


WRONG: dict[str, tuple[Callable[..., Any], str]] = {
    "no pair": (lambda primals, series: primals[0], "parts of (results, coefficients)"),
    "too few terms": (lambda primals, series: (primals[0], series[0][:1]), "coefficients"),
    "too many terms": (lambda primals, series: (primals[0], [*series[0], series[0][0]]), "coefficients"),
    "no terms": (lambda primals, series: (primals[0], None), "coefficients"),
    "the value's shape": (lambda primals, series: (lax.reduce_sum(primals[0], axes=(0,)), series[0]),
                          "returned f64[], wanted"),
    "a term's shape": (lambda primals, series: (primals[0], [c[:1] for c in series[0]]),
                       "returned f64[1], wanted f64[2]"),
    "a term's dtype": (lambda primals, series: (primals[0], [
        lax.convert_element_type(c, "float32") for c in series[0]]), "returned f32[2], wanted f64[2]"),
    "a string": (lambda primals, series: (primals[0], ["a", "b"]), "jet"),
    "another operand's arguments": (lambda primals, series, terms: None, "jet"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_a_written_rule_returns_is_checked(name: str) -> None:
    rule, message = WRONG[name]
    function = row("hook_wrong_" + name.replace(" ", "_").replace("'", ""), rule)
    with pytest.raises(CorejaxError) as caught:
        taylor.jet(function, (X,), ([np.ones(2), np.ones(2)],))
    said = str(caught.value)
    assert message in said and function.__name__ in said


@pytest.mark.parametrize("step, message", [
    (lambda k, out, x: x[k][:1], "f64[1]"),
    (lambda k, out, x: "a", "hook_step"),
    (lambda k, out, x: lax.convert_element_type(x[k], "float32"), "f32[2]"),
    (lambda k, out, x: None, "hook_step"),
])
def test_what_a_recurrence_returns_is_checked(step: Any, message: str) -> None:
    function = row(f"hook_step_{abs(hash(step))}", taylor.recurrence(step))
    with pytest.raises(CorejaxError, match="jet") as caught:
        taylor.jet(function, (X,), ([np.ones(2), np.ones(2)],))
    assert message in str(caught.value)


def test_a_rule_that_raises_is_not_hidden() -> None:
    def rule(primals: Any, series: Any) -> Any:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        taylor.jet(row("hook_raises", rule), (X,), ([np.ones(2)],))


def test_the_law_finds_a_wrong_rule() -> None:
    wrong = row("hook_wrong_law", taylor.recurrence(lambda k, out, x: x[k] if k > 1 else x[1] * out[0]))
    with pytest.raises(ConformanceError, match="its derivative of order 2 along a curve isn't that of nested jvps"):
        check_primitive(wrong, checks=[LAW])


def test_rules_that_somebody_wrote_are_held_to_the_law_in_the_quick_mode() -> None:
    wrong = row("hook_wrong_quick", taylor.recurrence(lambda k, out, x: x[k]))
    outcomes = []
    with pytest.raises(ConformanceError) as caught:
        outcomes.append(check_primitive(wrong))
    assert LAW in {failure.check for failure in caught.value.failures}


def test_what_has_no_derivative_is_absent_with_its_reason() -> None:
    function = row("hook_none", transforming.absent("nobody knows"))
    with pytest.raises(MissingRuleError, match="has no jet: nobody knows"):
        taylor.derivatives(function, 0.3, 2)
    undifferentiable = define(families.unary("hook_undifferentiable", np.exp, dtypes="f", hlo="exponential", doc="e.",
                                             jvp=not_differentiable("an example")))
    with pytest.raises(CorejaxError, match="an example"):
        taylor.derivatives(undifferentiable, 0.3, 2)
    assert "absent" == taylor.JET.answer(undifferentiable.primitive).how


def test_derivatives_along_a_direction() -> None:
    v = np.array([2.0, -1.0])
    found = taylor.derivatives(lambda x: lax.reduce_sum(lax.sin(x) * x, axes=(0,)), X, 3, v)
    wanted = taylor.derivatives(lambda t: lax.reduce_sum(lax.sin(X + t * v) * (X + t * v), axes=(0,)), 0.0, 3)
    np.testing.assert_allclose(found, wanted, rtol=1e-13)
    cubes = cj.vmap(lambda v: taylor.derivatives(lambda x: lax.reduce_sum(x * x * x, axes=(0,)), X, 2, v)[2])
    np.testing.assert_allclose(cubes(np.eye(2)), 6.0 * X, rtol=1e-14)


# Programs

def _equations(jaxpr: Any) -> int:
    return sum([1 + sum(map(_equations, subjaxprs(eqn.params))) for eqn in jaxpr.eqns])


def _nested(x: Any) -> Any:
    return cj.jit(lambda y: lax.sin(cj.jit(lambda z: lax.tanh(z) * z)(y)) * y)(x)


LOOPS: dict[str, Callable[[Any], Any]] = {
    "calls": _nested,
    "scan": lambda x: lax.scan(lambda c, t: (lax.sin(c) * x, c * t), x, np.arange(1.0, 4.0))[1],
    "while": lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, lax.exp(-s[1]) * x), (0, x))[1],
    "branches": lambda x: lax.switch(lax.convert_element_type(x, "int32"), [lax.sin, _nested, lax.exp], x),
    "checkpoint": cj.checkpoint(_nested),
}


@pytest.mark.parametrize("name", LOOPS)
def test_programs_grow_as_squares_of_the_order(name: str) -> None:
    sizes = [_equations(cj.make_jaxpr(partial(taylor.derivatives, LOOPS[name], order=n))(0.3).jaxpr) for n in (2, 4, 8)]
    assert sizes[2] < 5 * sizes[1] < 25 * sizes[0]


@pytest.mark.parametrize("name", LOOPS)
def test_they_are_derivatives_of_derivatives(name: str) -> None:
    f, derivative, wanted = LOOPS[name], LOOPS[name], []
    for _ in range(5):
        wanted.append(derivative(0.3))
        derivative = (lambda g: lambda x: cj.jvp(g, (x,), (1.0,))[1])(derivative)
    for how in (lambda x: taylor.derivatives(f, x, 4), cj.jit(lambda x: taylor.derivatives(f, x, 4)),
                lambda x: taylor.derivatives(cj.jit(f), x, 4)):
        for found, right in zip(how(0.3), wanted, strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-11)


def test_a_rule_of_its_own_counts_within_a_program() -> None:
    function = cj.custom_jvp(lambda x: lax.sin(x))
    function.defjvp(lambda primals, tangents: (function(*primals), 3.0 * lax.cos(primals[0]) * tangents[0]))
    for f in (function, cj.jit(function), lambda x: lax.scan(lambda c, t: (function(c), None), x, None, length=1)[0]):
        assert [3.0, 0.0] == [d.item() for d in taylor.derivatives(f, 0.0, 2)[1:]]


def test_effects_within_a_program_happen_once(capfd: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        cj.debug.print("x is {}", x)
        return lax.sin(x)

    for each in (f, cj.jit(f)):
        taylor.derivatives(each, 0.5, 3)[3].block_until_ready()
        cj.effects_barrier()
        assert 1 == capfd.readouterr().out.count("x is 0.5")


def test_axes_of_maps_are_known_within_programs() -> None:
    summed = cj.vmap(lambda x: taylor.derivatives(cj.jit(lambda y: lax.sin(y) * lax.psum(y, "i")), x, 2), axis_name="i")
    nested = cj.vmap(lambda x: cj.jvp(lambda z: cj.jvp(lambda y: lax.sin(y) * lax.psum(y, "i"), (z,), (1.0,))[1],
                                      (x,), (1.0,))[1], axis_name="i")
    np.testing.assert_allclose(summed(X)[2], nested(X), rtol=1e-12)


def test_every_installed_primitive_has_an_answer() -> None:
    wanted = {"sin": "derived", "scan": "derived", "div": "declared", "cholesky": "derived", "rng_uniform": "absent"}
    assert wanted == {name: taylor.JET.answer(find(name)).how for name in wanted}


def test_a_sample_may_be_exempt_by_the_name_of_the_law() -> None:
    wrong = row("hook_exempt", taylor.recurrence(lambda k, out, x: x[k]))
    sample = Sample([X], exempt={LAW: "an example"})
    assert check_primitive(wrong, [sample], checks=[LAW])


def test_rule_errors_are_of_the_pack_that_wrote_the_rule() -> None:
    with pytest.raises(RuleError, match=r"hook_named\.jet \(defined in test_hook\)"):
        taylor.derivatives(row("hook_named", lambda primals, series: 3), 0.5, 1)


@pytest.mark.parametrize("step, message", [
    (lambda k, out, x: x[k + 1], "the coefficient of t^2 isn't known"),
    (lambda k, out, x: out[k], "the coefficient of t^1 isn't known"),
    (lambda k, out, x: x[-1], "the coefficient of t^-1 isn't known")])
def test_a_recurrence_reads_what_is_known(step: Any, message: str) -> None:
    with pytest.raises(CorejaxError) as caught:
        taylor.derivatives(row(f"hook_reads_{abs(hash(step))}", taylor.recurrence(step)), X, 2)
    assert message in str(caught.value)


@pytest.mark.parametrize("function, message", [
    (lambda args: args[0][:1], "its composition returns f64[1], wanted f64[2]"),
    (lambda args: lax.convert_element_type(args[0], "float32"), "its composition returns f32[2], wanted f64[2]")])
def test_what_a_composition_returns_is_checked(function: Any, message: str) -> None:
    with pytest.raises(RuleError) as caught:
        taylor.derivatives(row(f"hook_made_{abs(hash(function))}", taylor.composition(function)), X, 2)
    assert message in str(caught.value)


@pytest.mark.parametrize("wrong", [lambda: taylor.recurrence(3), lambda: taylor.composition(None)])
def test_declarations_need_functions(wrong: Any) -> None:
    with pytest.raises(CorejaxError, match="it must be a function"):
        wrong()
