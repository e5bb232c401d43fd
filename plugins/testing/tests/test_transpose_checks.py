"""Each fault of a transpose rule is caught by the check whose law it breaks; true rules raise no alarm."""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import Linear, Zero
from corejax.errors import MissingRuleError
from corejax.plugin import Sample, define, hookimpl, not_linear
from corejax.testing import ConformanceError, check_primitive, transposes
from corejax_testing.check import Check

CHECKS = [found.name for found in vars(transposes).values() if isinstance(found, Check)]
RNG = np.random.default_rng(0)
ROWS = Sample([RNG.standard_normal((2, 3)), RNG.standard_normal(3)])
COMPLEX = Sample([x + 1j * RNG.standard_normal(x.shape) for x in ROWS.args])


class Weighted:
    """Each row of a matrix times a vector: linear in either operand."""

    name = "weighted"

    @hookimpl
    def impl(self, args):
        return args[0] * args[1]

    @hookimpl
    def abstract_eval(self, avals):
        return avals[0]

    @hookimpl
    def jvp(self, primals, tangents):
        (x, y), (x_dot, y_dot) = primals, tangents
        bind = _handles[type(self)].primitive.bind
        return bind(x, y), lax.add(bind(x_dot, y), bind(x, y_dot))

    @hookimpl
    def transpose(self, cotangents, args):
        x, y = args
        if type(x) is Linear:
            return [self._of_x(cotangents, y), None]
        return [None, self._of_y(cotangents, x)]

    def _of_x(self, ct, y):
        return lax.mul(ct, self._rows(y, ct))

    def _of_y(self, ct, x):
        return cj.lax.reduce_sum(lax.mul(ct, x), (0,))

    def _rows(self, y, like):
        return lax.broadcast_in_dim(y, like.shape, (1,))


class Pair:
    """(x + y, x - y)."""

    name = "pair"
    multiple_results = True
    linear = (0, 1)

    @hookimpl
    def impl(self, args):
        return [args[0] + args[1], args[0] - args[1]]

    @hookimpl
    def abstract_eval(self, avals):
        return [avals[0], avals[0]]

    @hookimpl
    def transpose(self, cotangents, args):
        total, difference = cotangents
        both = [lax.add(total, difference), lax.sub(total, difference)]
        return [ct if type(x) is Linear else None for ct, x in zip(both, args, strict=True)]


SAME = Sample([RNG.standard_normal(3), RNG.standard_normal(3)])
_handles = {}


def failures(plugin, *samples):
    """The failures by check."""
    handle = _handles[type(plugin)] = define(plugin)
    try:
        check_primitive(handle, samples, checks=CHECKS)
    except ConformanceError as error:
        assert "PluginError" not in str(error)
        return {failure.check: failure for failure in error.failures}
    return {}


def test_true_rules_raise_no_alarm():
    assert {} == failures(Weighted(), ROWS, COMPLEX)
    assert {} == failures(Pair(), SAME)


@pytest.mark.parametrize("name", ["add", "complex", "concatenate", "conj", "convert_element_type", "cumsum", "div",
                                  "dot_general", "gather", "imag", "max", "mul", "optimization_barrier", "pad",
                                  "reduce_sum", "scatter", "select_n", "sin", "sub", "transpose", "cond"])
@pytest.mark.exhaustive  # test_conformance.py runs all checks on all of them
def test_shipped_primitives_raise_no_alarm(name):
    assert check_primitive(name, checks=CHECKS).failures == []


def test_a_wrong_sign_is_caught_by_the_rule_alone_and_by_the_pullback():
    class Flipped(Weighted):
        def _of_y(self, ct, x):
            return lax.neg(super()._of_y(ct, x))
    found = failures(Flipped(), ROWS)
    assert ("weighted", "transpose") == (found["transpose is the adjoint"].primitive,
                                         found["transpose is the adjoint"].hook)
    assert "with respect to operand 1 it is not the adjoint" == found["transpose is the adjoint"].problem
    assert "the pullback to operand 1 is not the adjoint of jvp" == found["pullback is the adjoint of jvp"].problem


def test_a_missing_sum_over_what_was_broadcast_is_caught():
    class Unsummed(Weighted):
        def _of_y(self, ct, x):
            return lax.mul(ct, x)
    found = failures(Unsummed(), ROWS)
    assert ("the cotangent of operand 1 doesn't have its type", "f64[2,3]", "f64[3]") == (
        found["transpose is the adjoint"].problem, found["transpose is the adjoint"].got,
        found["transpose is the adjoint"].wanted)
    assert "returned cotangent f64[2,3] for operand 1, wanted f64[3]" in found["pullback is the adjoint of jvp"].got


def test_a_conjugation_too_many_is_caught_with_complex_operands_that_no_sample_has():
    class Conjugated(Weighted):
        def _of_x(self, ct, y):
            return super()._of_x(ct, y if y.dtype != np.complex128 else lax.conj(y))
    found = failures(Conjugated(), ROWS)
    assert "with respect to operand 0 it is not the adjoint" == found["transpose is the adjoint"].problem
    assert "without conjugation" in found["transpose is the adjoint"].wanted


def test_a_conjugation_that_is_missing_is_caught():
    class Conj:
        name = "conjugate"
        linear = (0,)

        @hookimpl
        def impl(self, args):
            return np.conj(args[0])

        @hookimpl
        def abstract_eval(self, avals):
            return avals[0]

        @hookimpl
        def transpose(self, cotangents, args):
            return [lax.conj(cotangents)]

    class Plain(Conj):
        @hookimpl
        def transpose(self, cotangents, args):
            return [cotangents]
    one = Sample(COMPLEX.args[1:])
    assert {} == failures(Conj(), one)
    assert {"transpose is the adjoint", "pullback is the adjoint of jvp"} <= set(failures(Plain(), one))


def test_swapped_cotangents_are_caught():
    class Swapped(Pair):
        @hookimpl
        def transpose(self, cotangents, args):
            return Pair.transpose(self, cotangents[::-1], args)
    found = failures(Swapped(), SAME)
    assert {"transpose is the adjoint", "pullback is the adjoint of jvp"} <= set(found)
    assert "with respect to operand 1 it is not the adjoint" == found["transpose is the adjoint"].problem


def test_a_cotangent_of_an_operand_that_is_a_value_is_caught():
    class Generous(Pair):
        @hookimpl
        def transpose(self, cotangents, args):
            total, difference = cotangents
            return [lax.add(total, difference), lax.sub(total, difference)]
    found = failures(Generous(), SAME)["transpose is the adjoint"]
    assert "it returns a cotangent for operand 1, which is a value" == found.problem


def test_a_rule_that_is_not_linear_in_the_cotangent_is_caught():
    class Rectified(Weighted):
        def _of_x(self, ct, y):
            return super()._of_x(lax.abs(ct), y)
    found = failures(Rectified(), ROWS)
    assert {"transpose is the adjoint", "pullback is linear"} <= set(found)
    assert "the pullback of u + v is not the sum of theirs" == found["pullback is linear"].problem


def test_an_affine_rule_is_caught():
    class Affine(Weighted):
        def _of_x(self, ct, y):
            return lax.add(super()._of_x(ct, y), lax.convert_element_type(np.full(ct.shape, 1e-3), ct.dtype))
    found = failures(Affine(), ROWS)
    assert {"transpose is the adjoint", "pullback is linear"} <= set(found)


def test_a_cotangent_that_is_wide_at_float32_is_caught():
    class Wide(Weighted):
        def _of_x(self, ct, y):
            return lax.convert_element_type(super()._of_x(ct, y), np.float64)
    found = failures(Wide(), ROWS)
    assert ("f64[2,3]", "f32[2,3]") == (found["transpose is the adjoint"].got, found["transpose is the adjoint"].wanted)
    assert "returned cotangent f64[2,3] for operand 0, wanted f32[2,3]" in found["pullback is the adjoint of jvp"].got


def test_a_result_without_cotangent_is_a_result_with_zeros():
    class Forgetful(Pair):
        symbolic_zeros = True

        @hookimpl
        def transpose(self, cotangents, args):
            total, difference = cotangents
            if type(total) is Zero or type(difference) is Zero:
                return [None, None]
            return Pair.transpose(self, cotangents, args)
    found = failures(Forgetful(), SAME)
    assert ["pullback is linear"] == list(found)
    assert "with a cotangent of result 0 alone" in found["pullback is linear"].problem


def test_a_rule_that_needs_values_is_caught_by_tracing():
    class Eager(Weighted):
        def _of_x(self, ct, y):
            return super()._of_x(np.asarray(ct), y)
    found = failures(Eager(), ROWS)
    assert "it raised ConcretizationError" == found["pullback under jit equals eager"].problem
    assert "transpose is the adjoint" not in found


class Direction:
    """x / |x|, 0 at 0; its pullback divides by 0 there if it is `careless`."""

    name = "direction"

    def __init__(self, careless):
        self._careless = careless

    @hookimpl
    def abstract_eval(self, avals):
        return lax.floor.primitive.infer(tuple(avals), {})  # which refuses complex numbers

    @hookimpl
    def decompose(self, args):
        (x,) = args
        return lax.sign(x)

    @hookimpl
    def jvp(self, primals, tangents):
        (x,), (t,) = primals, tangents
        at_zero, size = lax.eq(x, 0.0), lax.abs(x)
        safe = size if self._careless else lax.select(at_zero, lax.full_like(size, 1.0), size)
        slope = lax.mul(lax.div(t, safe), 0.0)
        return lax.sign(x), lax.select(at_zero, lax.full_like(slope, 0.0), slope)


@pytest.mark.parametrize("careless", [True, False])
def test_a_pullback_of_nan_where_the_tangent_is_finite_is_caught(careless):
    sample = Sample([np.array([0.5, -1.5])], domain=(-2.0, 2.0), singular=(0.0,))
    assert ["pullbacks at special points are adjoint"] * careless == list(failures(Direction(careless), sample))


def test_a_cotangent_of_a_wrong_type_for_no_elements_is_caught():
    class Unsummed(Weighted):
        def _of_y(self, ct, x):
            return ct if not ct.size else super()._of_y(ct, x)
    empty = Sample([np.ones((0, 3)), np.ones(3)])
    assert "transpose is the adjoint" in failures(Unsummed(), ROWS, empty)
    assert "transpose is the adjoint" not in failures(Weighted(), ROWS, empty)


def test_a_transpose_that_cannot_be_transposed_is_caught():
    class Once(Weighted):
        def _of_x(self, ct, y):
            return _mute(ct, self._rows(y, ct))

    class Mute:
        name = "mute"
        transpose = not_linear("it is the end")

        @hookimpl
        def impl(self, args):
            return args[0] * args[1]

        @hookimpl
        def abstract_eval(self, avals):
            return avals[0]
    _mute = define(Mute())
    found = failures(Once(), ROWS)
    assert ["transposing twice gives the original"] == list(found)
    assert "mute" in found["transposing twice gives the original"].got


def test_a_transpose_that_is_declared_missing_must_not_be_needed():
    class Refused(Weighted):
        transpose = not_linear("nobody asks")
    found = failures(Refused(), ROWS)
    assert {"pullback is the adjoint of jvp", "pullback is linear", "pullback under jit equals eager"} == set(found)
    assert "is not linear" in found["pullback is linear"].got


def test_an_operand_in_which_it_is_linear_and_that_is_never_transposed_is_caught():
    class Partial(Weighted):
        @hookimpl
        def jvp(self, primals, tangents):
            x, y = primals
            return _handles[type(self)].primitive.bind(x, y), lax.add(
                lax.mul(tangents[0], self._rows(y, x)), lax.mul(self._rows(tangents[1], x), x))

        def _of_y(self, ct, x):
            raise MissingRuleError("not written", primitive="weighted", hook="transpose")
    found = failures(Partial(), ROWS)
    assert {"transpose is the adjoint", "transposing twice gives the original"} == set(found)
    assert "it raised MissingRuleError" == found["transpose is the adjoint"].problem


def test_linear_is_a_promise():
    class Square:
        name = "squared"
        linear = (0,)

        @hookimpl
        def impl(self, args):
            return args[0] * args[0]

        @hookimpl
        def abstract_eval(self, avals):
            return avals[0]

        @hookimpl
        def transpose(self, cotangents, args):
            return [cotangents]
    found = failures(Square(), Sample(SAME.args[:1]))["transpose is the adjoint"]
    assert ("linear", "it isn't linear in the operands that it declares") == (found.hook, found.problem)


def test_integers_among_operands_and_results_have_no_cotangents():
    class Shifted:
        name = "shifted"
        multiple_results = True

        @hookimpl
        def decompose(self, args):
            x, n = args
            return [lax.mul(x, lax.convert_element_type(n, x.dtype)), lax.add(n, n)]
    assert {} == failures(Shifted(), Sample([RNG.standard_normal(3), np.arange(3)]))


@pytest.mark.parametrize("name", ["real", "imag", "conj", "abs", "square", "sin"])
def test_the_pairing_is_that_of_jax_for_complex_operands(name):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    z, v = [RNG.standard_normal(3) + 1j * RNG.standard_normal(3) for _ in range(2)]
    ours, theirs = [], []
    for found, module, function in ((ours, cj, getattr(cj.lax, name)), (theirs, jax, getattr(jax.lax, name))):
        out, dot = module.jvp(function, (z,), (v,))
        ct = np.linspace(1, 2, 3) + (1j if np.iscomplexobj(out) else 0)
        back = module.vjp(function, z)[1](ct)[0]
        found += [np.asarray(x) for x in (out, dot, back)]
        assert transposes.inner([ct], [dot])[0] == pytest.approx(transposes.inner([back], [v])[0], rel=1e-12)
    for a, b in zip(theirs, ours, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-12)
