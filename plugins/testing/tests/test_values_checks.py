"""Small primitives with one fault each: the checks of values, special values and memory find it, and say where."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import Array, ShapedArray
from corejax.plugin import define, hookimpl
from corejax.testing import CHECKS, ConformanceError, Failure, Sample, check_primitive
from corejax_testing.running import run_check

MODULES = ("values", "special", "memory")


class Doubled:
    """2 x, right in every way; each test spoils one thing."""

    name = "doubled"

    @hookimpl
    def impl(self, args: Any) -> Any:
        return args[0] * args[0].dtype.type(2)

    @hookimpl
    def abstract_eval(self, avals: Any) -> Any:
        return avals[0]

    @hookimpl
    def jvp(self, primals: Any, tangents: Any) -> Any:
        return lax.mul(primals[0], 2), lax.mul(tangents[0], 2)

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any) -> Any:
        return lax.mul(args[0], 2), dims[0]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any) -> Any:
        return ctx.op("stablehlo.add", [args[0], args[0]])

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for shape in ((), (2, 3), (0,)):
            yield Sample([rng.standard_normal(shape)])
        yield Sample([np.array([1, -2], np.int32)])


def failures(plugin: Any, check: str, full: bool = False) -> list[Failure]:
    """What one check finds in the primitive of a plugin."""
    primitive: Any = define(plugin).primitive  # type: ignore[attr-defined]
    return list(run_check(CHECKS[check], primitive, list(primitive.samples(np.random.default_rng(0))), full).failures)


def with_impl(impl: Callable[[Any], Any]) -> Any:
    class Spoilt(Doubled):
        @hookimpl
        def impl(self, args: Any) -> Any:
            return impl(args[0])
    return Spoilt()


@pytest.mark.parametrize("check", [
    name for name, check in CHECKS.items() if check.run.__module__.rpartition(".")[2] in MODULES])
def test_a_right_primitive_passes(check: str) -> None:
    assert [] == failures(Doubled(), check, full=True)


def test_an_impl_that_differs_from_the_compiled_program_is_found_with_the_place() -> None:
    found = failures(with_impl(lambda x: x * x.dtype.type(2) + (x.dtype == np.float64) * x.dtype.type(1e-9)),
                     "impl and the compiled program agree")
    assert found
    assert "impl" == found[0].hook
    assert "8 ulps" in str(found[0])
    assert "doubled(f64[]" in found[0].sample


def test_a_difference_in_a_narrow_dtype_only_is_found() -> None:
    found = failures(with_impl(lambda x: x * x.dtype.type(2 if x.dtype != np.float32 else 2.001)),
                     "impl and the compiled program agree")
    assert found
    assert all("ulps" in failure.problem for failure in found)


def test_ulps_of_a_sample_allow_a_difference() -> None:
    class Loose(Doubled):
        impl = with_impl(lambda x: x * x.dtype.type(2) * (1 + 64 * np.finfo(x.dtype).eps)).impl

        @hookimpl
        def samples(self, rng: Any) -> Iterator[Sample]:
            yield Sample([rng.standard_normal(3).astype(np.float32)], ulps=200)
            yield Sample([rng.standard_normal(3).astype(np.float32)], ulps=0)

    found = failures(Loose(), "impl and the compiled program agree")
    assert ["sample 1"] == [failure.sample.partition(":")[0] for failure in found]


def test_a_dtype_that_abstract_eval_takes_and_impl_cannot_compute_is_found_in_the_full_mode() -> None:
    def impl(x: Any) -> Any:
        if x.dtype == np.float16:
            raise ValueError("no half precision")
        return x * x.dtype.type(2)

    assert [] == failures(with_impl(impl), "impl and the compiled program agree")
    found = failures(with_impl(impl), "every dtype that is accepted works", full=True)
    assert "no half precision" in str(found[0])


def test_an_impl_that_fails_for_empty_arrays_is_found_though_no_sample_is_empty() -> None:
    class Unprepared(Doubled):
        @hookimpl
        def impl(self, args: Any) -> Any:
            return args[0] * args[0].dtype.type(2) + 0 * args[0].max()

        @hookimpl
        def samples(self, rng: Any) -> Iterator[Sample]:
            yield Sample([rng.standard_normal((2, 3))])

    (found,) = failures(Unprepared(), "empty arrays and scalars work")
    assert "impl" == found.hook
    assert "zero-size" in found.got


def test_a_decomposition_that_computes_something_else_is_found() -> None:
    class Decomposed(Doubled):
        @hookimpl
        def decompose(self, args: Any) -> Any:
            return lax.mul(args[0], 3)

    found = failures(Decomposed(), "the decomposition agrees")
    assert ["decompose"] == list({failure.hook for failure in found})


def test_a_result_that_depends_on_where_operands_live_is_found() -> None:
    found = failures(with_impl(lambda x: x * x.dtype.type(3)), "operands on the device give the same")
    assert found
    assert "compiled program" in found[0].problem


def test_an_impl_that_takes_no_scalars_which_python_numbers_become_is_found() -> None:
    def impl(x: Any) -> Any:
        out = x + x
        if isinstance(x, np.ndarray):
            return out
        out[...] = 0
        return out

    found = failures(with_impl(impl), "python scalars give the announced weak types")
    assert ["impl"] == [failure.hook for failure in found]
    assert "doubled(f64[]" in found[0].sample


# Special values

@pytest.mark.parametrize(("check", "impl"), [
    ("nans and infinities agree", lambda x: np.nan_to_num(x) * x.dtype.type(2)),
    ("nans and infinities agree", lambda x: np.where(np.isinf(x), np.nan, x * x.dtype.type(2)).astype(x.dtype)),
    ("zeros keep their signs", lambda x: x * x.dtype.type(2) + x.dtype.type(0)),
    ("extreme numbers agree", lambda x: np.clip(x * x.dtype.type(2), -3e38, 3e38).astype(x.dtype)),
    ("subnormal numbers agree or count as zero", lambda x: np.where(
        np.abs(x) < 1e-300, 1, x * x.dtype.type(2)).astype(x.dtype)),
    ("extreme integers agree", lambda x: np.clip(x.astype(np.int64) * 2, -2**31, 2**31 - 1).astype(x.dtype)
     if x.dtype == np.int32 else x * x.dtype.type(2))])
def test_what_goes_wrong_for_special_values_only_is_found(check: str, impl: Callable[[Any], Any]) -> None:
    assert [] == failures(with_impl(impl), "impl and the compiled program agree")
    found = failures(with_impl(impl), check)
    assert found
    assert "impl" == found[0].hook
    assert "instead of" in found[0].got
    assert "doubled(" in found[0].got


def test_special_values_meet_in_all_combinations() -> None:
    class Larger(Doubled):
        """The larger one; wrong for two infinities of different signs, and for nothing else."""

        name = "larger"

        @hookimpl
        def impl(self, args: Any) -> Any:
            x, y = args
            return np.where(np.isinf(x) & np.isinf(y) & (x != y), -np.inf, np.maximum(x, y)).astype(x.dtype)

        @hookimpl
        def xla_translation(self, ctx: Any, args: Any) -> Any:
            return ctx.op("stablehlo.maximum", args)

        @hookimpl
        def samples(self, rng: Any) -> Iterator[Sample]:
            yield Sample([rng.standard_normal(3), rng.standard_normal(3)])

    found = failures(Larger(), "nans and infinities agree")
    assert 1 == len(found)
    assert "-inf instead of inf" in found[0].got


def test_operands_that_the_sample_keeps_get_no_special_values() -> None:
    class Kept(Doubled):
        @hookimpl
        def samples(self, rng: Any) -> Iterator[Sample]:
            yield Sample([rng.standard_normal(3)], domain=[None])

    spoilt = with_impl(lambda x: np.nan_to_num(x) * x.dtype.type(2))
    spoilt.samples = Kept().samples
    assert [] == failures(spoilt, "nans and infinities agree")


# Memory

def test_an_impl_that_writes_to_its_operand_is_found_by_name() -> None:
    def impl(x: Any) -> Any:
        if x.ndim and x.flags.writeable:
            x *= x.dtype.type(2)
            return x.copy()
        return x * x.dtype.type(2)

    found = failures(with_impl(impl), "no rule writes to its operands")
    assert "impl" == found[0].hook
    assert "writes to operand 0" in found[0].problem


def test_rules_that_change_the_sequences_they_get_are_found() -> None:
    class JVP(Doubled):
        @hookimpl
        def jvp(self, primals: Any, tangents: Any) -> Any:
            t = tangents.pop() if type(tangents) is list else tangents[0]
            return lax.mul(primals[0], 2), lax.mul(t, 2)

    class VMap(Doubled):
        @hookimpl
        def vmap(self, axis: Any, args: Any, dims: Any) -> Any:
            d = dims[0]
            if type(dims) is list:
                dims[0] = None
            return lax.mul(args[0], 2), d

    class Transpose(Doubled):
        @hookimpl
        def transpose(self, cotangents: Any, args: Any) -> Any:
            if type(args) is list:
                args[0] = None
            return [lax.mul(cotangents, 2)]

    for plugin, hook in ((JVP(), "jvp"), (VMap(), "vmap"), (Transpose(), "transpose")):
        found = failures(plugin, "no rule writes to its operands")
        assert hook == found[0].hook
        assert "changes the sequence" in found[0].problem


def test_an_impl_that_computes_into_memory_of_its_own_is_found() -> None:
    memory = np.zeros(100)

    def impl(x: Any) -> Any:
        if x.dtype != np.float64:
            return x * x.dtype.type(2)
        out = memory[:x.size].reshape(x.shape)
        memory[:x.size] = (x * 2).ravel()
        return out

    found = failures(with_impl(impl), "results keep their values")
    assert "the primitive is applied again" in found[0].problem


def test_a_result_that_has_the_callers_memory_by_another_name_is_copied() -> None:
    class Hidden:
        def __init__(self, x: Any) -> None:
            self.__array_interface__ = {**x.__array_interface__, "data": (x.ctypes.data, True)}
            self.kept = x

    plugin = with_impl(lambda x: np.asarray(Hidden(x)) if x.ndim else x)  # of rank 0 it is no ndarray
    assert [] == failures(plugin, "results keep their values")
    x = np.ones(3)
    out = define(plugin)(x)
    x[0] = 5.0
    assert [1.0, 1.0, 1.0] == out.tolist()


def test_returning_the_operand_leaves_the_callers_array_writable() -> None:
    assert [] == failures(with_impl(lambda x: x), "results keep their values")
    x = np.ones(3)
    out = lax.stop_gradient(x)
    x[0] = 5.0
    assert [1.0, 1.0, 1.0] == out.tolist()
    out = lax.cond(True, lambda x: x, lambda x: x * 2, x)
    x[0] = 7.0
    assert [5.0, 1.0, 1.0] == out.tolist()


def test_known_results_that_are_arrays_say_which_type_is_right() -> None:
    law = "results are those that the sample knows"
    strong, weak = [ShapedArray((), np.dtype(np.float64), weak) for weak in (False, True)]
    for known in (3.0, np.float32(3.0), Array.from_host(np.array(3.0), strong)):
        assert check_primitive("neg", [Sample([np.float64(-3.0)], results=known)], checks=[law])
    with pytest.raises(ConformanceError, match=r"result 0 is not what the sample states(.|\n)*got: +f64\[\]"):
        check_primitive("neg", [Sample([np.float64(-3.0)], results=Array.from_host(np.array(3.0), weak))], checks=[law])


# Faults that these checks found in the shipped packs

def test_integer_powers_that_wrap_around_agree_when_compiled() -> None:
    for dtype in (np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64):
        bits = 8 * np.dtype(dtype).itemsize
        y = np.array([0, 1, 63, 64, 65, 100, 255 if bits > 8 else 250, np.iinfo(dtype).max], dtype)
        for base in (2, 3, 7):
            wanted = [pow(base, int(n), 2**bits) for n in y]
            got = np.asarray(cj.jit(lax.pow)(np.full_like(y, base), y)).view(f"u{bits // 8}")
            assert wanted == [int(n) for n in got]


def test_a_half_as_one_exponent_for_all_gives_powers_not_square_roots() -> None:
    x = np.array([-np.inf, -0.0, 4.0])
    for half in (np.float64(0.5), np.broadcast_to(np.float64(0.5), (3,)), np.full(3, 0.5)):
        for f in (lax.pow, cj.jit(lax.pow)):
            out = np.asarray(f(x, half))
            assert [np.inf, 0.0, 2.0] == out.tolist()
            assert not np.signbit(out[1])


def test_complex_signs_and_reciprocal_roots_of_infinities_agree_when_compiled() -> None:
    x = np.array([complex(np.inf, 0), complex(0, -np.inf), 3 + 4j])
    for f in (lax.sign, lax.rsqrt):
        np.testing.assert_allclose(np.isnan(cj.jit(f)(x)), np.isnan(f(x)))
