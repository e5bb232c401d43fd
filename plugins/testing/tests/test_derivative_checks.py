"""Each fault of a tangent rule is caught by the check whose law it breaks; true rules raise no alarm."""

from __future__ import annotations

import numpy as np
import pytest

from corejax import lax
from corejax.base import dtypes
from corejax.core import Zero
from corejax.plugin import Sample, define, hookimpl, not_differentiable, not_linear, partials
from corejax.testing import ConformanceError, check_primitive, derivatives, differences, tangent_rules
from corejax_testing.check import Check

CHECKS = [found.name for module in (derivatives, tangent_rules) for found in vars(module).values()
          if isinstance(found, Check)]
RNG = np.random.default_rng(0)
PAIR = Sample([RNG.uniform(0.5, 2, 3), RNG.uniform(0.5, 2, 3)], domain=(0.5, 2.0))
ONE = Sample([RNG.uniform(0.5, 2, 3)], domain=(0.5, 2.0))
POINT = Sample([np.array(0.75)], domain=(0.5, 2.0))
COMPLEX = Sample([RNG.standard_normal(3) + 1j * RNG.standard_normal(3)], domain=(-2.0, 2.0))


class Wave:
    """sin(x) * y."""

    name = "wave"

    @hookimpl
    def decompose(self, args):
        return lax.mul(lax.sin(args[0]), args[1])


class TrueWave(Wave):
    """The same, with a rule."""

    @hookimpl
    def jvp(self, primals, tangents):
        (x, y), (x_dot, y_dot) = primals, tangents
        return bound(self, x, y), lax.add(lax.mul(lax.mul(lax.cos(x), y), x_dot), lax.mul(lax.sin(x), y_dot))


class Power:
    """x to the fourth."""

    name = "power"

    @hookimpl
    def decompose(self, args):
        return lax.square(lax.square(args[0]))


_handles = {}


def bound(plugin, *args):
    return _handles[type(plugin)].primitive.bind(*args)


def failures(plugin, *samples, checks=None, full=False):
    """The failures by check."""
    handle = _handles[type(plugin)] = define(plugin)
    try:
        check_primitive(handle, samples, checks=checks or [name for name in CHECKS if full or "third" not in name],
                        full=full)
    except ConformanceError as error:
        assert "PluginError" not in str(error)
        return {failure.check: failure for failure in error.failures}
    return {}


def test_true_rules_raise_no_alarm():
    assert {} == failures(Wave(), PAIR, full=True)
    assert {} == failures(TrueWave(), PAIR, full=True)
    assert {} == failures(Power(), ONE, POINT, COMPLEX, full=True)


@pytest.mark.parametrize("name", ["abs", "add", "clamp", "conj", "div", "dot_general", "max", "mul", "pad", "pow",
                                  "scatter_add", "select_n", "sign", "stop_gradient", "reduce_max", "cumsum", "cond"])
@pytest.mark.exhaustive  # test_conformance.py runs all checks on all of them
def test_shipped_primitives_raise_no_alarm(name):
    assert check_primitive(name, checks=CHECKS[:-1]).failures == []


def test_a_wrong_sign_is_caught_by_differences():
    class Flipped(Wave):
        @hookimpl
        def jvp(self, primals, tangents):
            (x, y), (x_dot, y_dot) = primals, tangents
            return bound(self, x, y), lax.sub(lax.mul(lax.mul(lax.cos(x), y), x_dot), lax.mul(lax.sin(x), y_dot))
    found = failures(Flipped(), PAIR)["jvp agrees with differences"]
    assert ("wave", "jvp") == (found.primitive, found.hook)
    assert "the tangent along operand 1 is not what differences say" == found.problem
    assert "result 0" in found.got
    assert "wave(f64[3]" in found.sample


def test_a_dropped_term_is_caught_by_differences():
    class Dropped(Wave):
        jvp = partials(None, lambda y_dot, out, x, y: lax.mul(lax.sin(x), y_dot))
    found = failures(Dropped(), PAIR)
    assert "the tangent along operand 0 is not what differences say" == found["jvp agrees with differences"].problem


def test_a_missing_conjugation_is_caught_by_differences():
    class Norm:
        name = "norm"

        @hookimpl
        def decompose(self, args):
            return lax.real(lax.mul(args[0], lax.conj(args[0])))

    class Unconjugated(Norm):
        @hookimpl
        def jvp(self, primals, tangents):
            (x,), (x_dot,) = primals, tangents
            return bound(self, x), lax.mul(2.0, lax.real(lax.mul(x, x_dot)))
    assert {} == failures(Norm(), COMPLEX)
    assert "jvp agrees with differences" in failures(Unconjugated(), COMPLEX)


def test_a_constant_with_too_few_digits_is_caught_by_complex_steps():
    class Imprecise(Power):
        @hookimpl
        def jvp(self, primals, tangents):
            (x,), (x_dot,) = primals, tangents
            return bound(self, x), lax.mul(lax.mul(lax.convert_element_type(3.99999999, x.dtype),
                                                   lax.integer_pow(x, 3)), x_dot)
    found = failures(Imprecise(), ONE)
    assert ["jvp agrees with complex steps"] == list(found)
    assert "wanted: the same to 1e-12" in str(found["jvp agrees with complex steps"])


def test_an_affine_rule_is_caught_by_its_value_at_zero():
    class Affine(Power):
        @hookimpl
        def jvp(self, primals, tangents):
            (x,), (x_dot,) = primals, tangents
            return bound(self, x), lax.add(lax.mul(lax.mul(lax.integer_pow(x, 3), x_dot), _number(4, x)),
                                           lax.mul(x, _number(1e-8, x)))
    found = failures(Affine(), ONE)
    assert "the tangent of zero tangents is not zero" == found["jvp is linear"].problem
    assert "is not linear in the tangents" in found["linearize equals jvp"].got


def test_a_rule_that_is_not_linear_is_caught():
    class Rectified(Power):
        @hookimpl
        def jvp(self, primals, tangents):
            (x,), (x_dot,) = primals, tangents
            return bound(self, x), lax.mul(lax.mul(lax.integer_pow(x, 3), lax.abs(x_dot)), _number(4, x))
    assert "the tangent of -2 v is not -2 times that of v" == failures(Rectified(), ONE)["jvp is linear"].problem


def test_a_tangent_that_is_wide_at_float32_is_caught():
    class Wide(Power):
        @hookimpl
        def jvp(self, primals, tangents):
            (x,), (x_dot,) = primals, tangents
            four = np.full(x.shape, 4.0)
            wide = lax.convert_element_type(lax.mul(lax.integer_pow(x, 3), x_dot), np.float64)
            return bound(self, x), lax.mul(four, wide)
    assert "returned tangent f64[3], wanted f32[3]" in failures(Wide(), ONE)["jvp is linear"].got


def test_a_primal_that_is_not_the_result_is_caught():
    class Off(TrueWave):
        @hookimpl
        def jvp(self, primals, tangents):
            out, out_dot = super().jvp(primals, tangents)
            return lax.mul(out, _number(1 + 1e-14, out)), out_dot
    found = failures(Off(), PAIR)
    assert ["jvp computes the primal"] == list(found)
    assert "beside the tangent in jvp is not what binding gives" in found["jvp computes the primal"].problem


def test_a_primal_that_loses_its_weak_type_is_caught():
    class Strong(Power):
        @hookimpl
        def jvp(self, primals, tangents):
            (x,), (x_dot,) = primals, tangents
            out = lax.convert_element_type(bound(self, x), x.dtype)
            return out, lax.mul(lax.mul(lax.integer_pow(x, 3), x_dot), _number(4, x))
    found = failures(Strong(), POINT)
    assert ["jvp computes the primal"] == list(found)
    assert "returned f64[], wanted ~f64[]" in found["jvp computes the primal"].got


def test_a_symbolic_zero_that_hides_a_term_is_caught():
    class Hidden(Wave):
        symbolic_zeros = True

        @hookimpl
        def jvp(self, primals, tangents):
            (x, y), (x_dot, y_dot) = primals, tangents
            out = bound(self, x, y)
            if type(y_dot) is Zero:
                return out, Zero(y_dot.aval)
            by_y = lax.mul(lax.sin(x), y_dot)
            return out, by_y if type(x_dot) is Zero else lax.add(lax.mul(lax.mul(lax.cos(x), y), x_dot), by_y)
    found = failures(Hidden(), PAIR)["symbolic zeros equal instantiated ones"]
    assert "tangents of operand 0: a symbolic zero gives a different result than zeros" in found.problem


def test_a_rule_that_looks_at_values_is_caught_by_tracing():
    class Curious(Power):
        @hookimpl
        def jvp(self, primals, tangents):
            (x,), (x_dot,) = primals, tangents
            slope = lax.mul(_number(4 if float(x[0]) > 0 else 5, x), lax.integer_pow(x, 3))
            return bound(self, x), lax.mul(slope, x_dot)
    found = failures(Curious(), ONE)["jvp under jit equals eager"]
    assert ("power", "jvp", "it raised ConcretizationError") == (found.primitive, found.hook, found.problem)


def test_a_second_derivative_that_is_missing_is_caught():
    class Frozen(Power):
        @hookimpl
        def jvp(self, primals, tangents):
            (x,), (x_dot,) = primals, tangents
            slope = lax.stop_gradient(lax.mul(_number(4, x), lax.integer_pow(x, 3)))
            return bound(self, x), lax.mul(slope, x_dot)
    found = failures(Frozen(), ONE)
    assert ["second derivatives agree with differences"] == list(found)


def test_a_second_derivative_of_one_order_of_transformations_is_caught_as_asymmetric():
    class Lopsided(Wave):
        jvp = partials(lambda x_dot, out, x, y: lax.mul(lax.mul(lax.cos(x), lax.stop_gradient(y)), x_dot),
                       lambda y_dot, out, x, y: lax.mul(lax.sin(x), y_dot))
    found = failures(Lopsided(), PAIR)
    assert {"second derivatives agree with differences", "hessians are symmetric"} == set(found)
    assert "second derivatives are not symmetric" in found["hessians are symmetric"].problem


def test_a_third_derivative_that_is_wrong_is_caught_in_full_mode():
    class Slope:
        name = "slope"

        @hookimpl
        def decompose(self, args):
            return lax.mul(_number(4, args[0]), lax.integer_pow(args[0], 3))

        @hookimpl
        def jvp(self, primals, tangents):
            (x,), (x_dot,) = primals, tangents
            return bound(self, x), lax.mul(lax.stop_gradient(lax.mul(_number(12, x), lax.square(x))), x_dot)

    class Late(Power):
        @hookimpl
        def jvp(self, primals, tangents):
            (x,), (x_dot,) = primals, tangents
            return bound(self, x), lax.mul(_handles[Slope](x), x_dot)
    _handles[Slope] = define(Slope())
    assert {} == failures(Late(), ONE)
    assert ["third derivatives agree with differences"] == list(failures(Late(), ONE, full=True))


def test_a_linearize_rule_that_differs_from_jvp_is_caught():
    class Twice(TrueWave):
        @hookimpl
        def linearize(self, primals, nonzero):
            x, y = primals
            return bound(self, x, y), (lax.mul(lax.cos(x), y), lax.cos(x)), self._apply

        def _apply(self, residuals, tangents):
            terms = [lax.mul(w, t) for w, t in zip(residuals, tangents, strict=True) if type(t) is not Zero]
            return terms[0] if len(terms) == 1 else lax.add(*terms)
    found = failures(Twice(), PAIR)["linearize equals jvp"]
    assert ("linearize", "linearize gives a different tangent than jvp") == (found.hook, found.problem)


def test_an_operand_without_derivative_that_is_not_declared_is_caught():
    class Half:
        name = "half"
        linear = (0,)

        @hookimpl
        def abstract_eval(self, avals):
            return avals[0]

        @hookimpl
        def impl(self, args):
            return args[0] * np.sin(args[1])

        @hookimpl
        def xla_translation(self, ctx, args):
            return ctx.op("stablehlo.multiply", [args[0], ctx.op("stablehlo.sine", [args[1]])])

        @hookimpl
        def transpose(self, cotangents, args):
            return [lax.mul(cotangents, lax.sin(args[1])), None]
    found = failures(Half(), PAIR)["jvp agrees with differences"]
    assert "it raised MissingRuleError" == found.problem
    assert "operand 1 has a tangent, but the primitive is declared linear in (0,) only" in found.got


def test_what_is_declared_not_differentiable_is_not_applicable():
    class Steps:
        name = "steps"
        jvp = not_differentiable("it jumps")
        transpose = not_linear()

        @hookimpl
        def abstract_eval(self, avals):
            return avals[0]

        @hookimpl
        def impl(self, args):
            return np.floor(args[0])
    report = check_primitive(define(Steps()), [ONE], checks=CHECKS)
    assert {"not applicable"} == {outcome.status for outcome in report.outcomes}
    assert "it jumps" in report.outcomes[0].not_applicable[0]


def test_ties_that_count_twice_are_caught_along_the_line_of_ties():
    class Larger:
        name = "larger"

        @hookimpl
        def decompose(self, args):
            x, y = args
            return lax.select(lax.ge(x, y), x, y)  # of real numbers alone

        @hookimpl
        def jvp(self, primals, tangents):
            (x, y), (x_dot, y_dot) = primals, tangents
            zeros = lax.mul(_number(0, x), x)
            return bound(self, x, y), lax.add(lax.select(lax.ge(x, y), x_dot, zeros),
                                              lax.select(lax.ge(y, x), y_dot, zeros))
    found = failures(Larger(), PAIR)
    assert ["derivatives agree at special points"] == list(found)
    assert found["derivatives agree at special points"].got.startswith("2.0 instead of ")


def test_a_derivative_that_is_not_a_number_where_there_is_one_is_caught():
    class Cubic:
        name = "cubic"

        @hookimpl
        def decompose(self, args):
            x, y = args
            return lax.mul(lax.integer_pow(x, 3), y)

        @hookimpl
        def jvp(self, primals, tangents):
            (x, y), (x_dot, y_dot) = primals, tangents
            slope = lax.div(lax.mul(lax.mul(_number(3, x), lax.integer_pow(x, 3)), y), x)
            return bound(self, x, y), lax.add(lax.mul(slope, x_dot), lax.mul(lax.integer_pow(x, 3), y_dot))
    wide = Sample(PAIR.args, domain=(-2.0, 2.0))
    found = failures(Cubic(), wide)
    assert ["derivatives agree at special points"] == list(found)
    assert found["derivatives agree at special points"].got.startswith("nan instead of 0.0")


def test_operands_at_singular_points_need_a_domain():
    name, at_zero = ["jvp agrees with differences"], np.zeros(3)
    with pytest.raises(ConformanceError, match=r"abs\.samples .*differences can't be trusted") as error:
        check_primitive("abs", [Sample([at_zero])], checks=name)
    assert "singular=" in str(error.value) and "domain=" in str(error.value)
    assert [] == check_primitive("abs", [Sample([at_zero], domain=(-1.0, 1.0), singular=(0.0,))], checks=name).failures


def test_special_values_have_no_derivatives_to_compare():
    report = check_primitive("exp", [Sample([np.array([np.nan, np.inf, 1.0])])], checks=["jvp agrees with differences"])
    assert ("not all operands are finite",) == report.outcomes[0].not_applicable


# Differences themselves

@pytest.mark.parametrize("slope, line", [
    (np.exp(1.0), lambda t: np.exp(1 + t)), (-np.sin(2.0), lambda t: np.cos(2 + t)),
    (2e4, lambda t: (100 + t) ** 2 * 100), (1e4, lambda t: np.log(1e-4 + t)), (3j, lambda t: np.exp(3j * t))])
def test_differences_know_smooth_functions(slope, line):
    found = differences.along(lambda t: np.array([line(t)]))
    assert found.trusted.all()
    assert abs(found.slope[0] - slope) <= found.tolerance[0] <= 3e-6 * abs(slope)


@pytest.mark.parametrize("line", [np.abs, np.floor, np.sign, lambda t: max(t, 0.0), lambda t: np.log(t), np.sqrt,
                                  lambda t: abs(t) ** 0.5, lambda t: np.nan * t, lambda t: 1 / t if t else 0.0])
def test_differences_do_not_believe_jumps_and_kinks(line):
    assert not differences.along(lambda t: np.array([line(t)])).trusted.any()


def test_differences_believe_a_function_that_is_smooth_up_to_a_kink_nearby():
    found = differences.along(lambda t: np.abs(np.array([1e-4, -1e-4]) + t))
    assert [1.0, -1.0] == found.slope.round(6).tolist()
    assert found.trusted.all()


def test_differences_are_not_deceived_by_teeth_at_regular_distances():
    rng = np.random.default_rng(0)
    x, y, v = rng.uniform(-3, 3, 2000), rng.uniform(-0.5, 0.5, 2000), rng.standard_normal(2000)
    found = differences.along(lambda t: np.fmod(x, y + t * v))
    wrong = np.abs(found.slope + np.trunc(x / y) * v) > found.tolerance
    assert not (wrong & found.trusted).any()
    assert found.trusted.mean() > 0.9


def _number(value, like):
    return lax.convert_element_type(value, like.dtype) if dtypes.is_inexact(like.dtype) else value


def test_results_of_several_precisions_have_tolerances_of_theirs():
    report = check_primitive("convert_element_type", [Sample([np.array([0.5, 1.5])], {
        "new_dtype": np.dtype(np.float32), "weak_type": False})], checks=["jvp agrees with differences"])
    assert "held" == report.outcomes[0].status
