"""What `ctx` offers to lowering rules: programs within rules, regions, and the parts of custom calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.base.avals import ShapedArray
from corejax.errors import CorejaxError, CorejaxTypeError, CorejaxValueError, RuleError
from corejax.plugin import define, hookimpl

X = np.arange(6.0).reshape(2, 3)


def primitive(rule: Any, type_rule: Any = lambda avals: avals[0], several: bool = False) -> Any:
    """A primitive with this lowering, a function of `ctx` and operands."""
    class Lowered:
        name, multiple_results = "lowered", several

        @hookimpl
        def abstract_eval(self, avals):
            return type_rule(avals)

        @hookimpl
        def xla_translation(self, ctx, args):
            return rule(ctx, *args)
    return define(Lowered())


def text(function: Any, *args: Any) -> str:
    return cj.jit(function).lower(*args).as_text()


# lower

def test_a_function_is_inserted_where_the_rule_is():
    f = primitive(lambda ctx, x: ctx.lower(lambda x: lax.sin(x) + 1.0, x))
    np.testing.assert_allclose(f(X), np.sin(X) + 1.0)
    assert "call @" not in text(f, X) and "stablehlo.sine" in text(f, X)


def test_several_results_are_a_list():
    f = primitive(lambda ctx, x: ctx.lower(lambda x: (x + 1.0, -x), x), lambda avals: (avals[0], avals[0]), True)
    plus, minus = f(X)
    np.testing.assert_allclose(plus, X + 1.0)
    np.testing.assert_allclose(minus, -X)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint32, np.float16, cj.bfloat16, np.complex64])
def test_the_function_sees_the_types_of_the_values(dtype):
    seen = []
    f = primitive(lambda ctx, x: ctx.lower(lambda x: seen.append(x.aval) or x, x))
    assert dtype == f(np.ones((2, 3), dtype)).dtype
    assert [ShapedArray((2, 3), np.dtype(dtype))] == seen


def test_programs_within_it_and_values_closed_over_are_lowered_too():
    table = np.arange(100.0)

    def program(x):
        chosen = lax.cond(x[0, 0] > 0.0, lambda: x, lambda: x + table[99])
        return chosen + lax.fori_loop(0, 3, lambda i, s: s + 1.0, 0.0)

    f = primitive(lambda ctx, x: ctx.lower(program, x))
    np.testing.assert_allclose(cj.jit(lambda x: f(f(x)))(X), np.where(X[0, 0] + 102 > 0, X + 102.0 + 3.0, 0.0))


def test_constants_of_a_region_are_not_used_outside():
    def rule(ctx, x):
        scalar = ctx.type_of(ShapedArray((), np.float64))
        out = ctx.op("stablehlo.reduce", [x, ctx.constant(np.float64(0.0))],
                     {"dimensions": ctx.attribute("array<i64: 1>")}, regions=1)
        ctx.fill(out.owner.regions[0], [scalar, scalar], lambda a, b: [ctx.lower(lambda a, b: a + b * 2.0, a, b)])
        return ctx.lower(lambda out: out * 2.0, out)

    f = primitive(rule, lambda avals: avals[0].update(shape=avals[0].shape[:1]))
    assert (2,) == np.asarray(cj.jit(lambda x: f(x) + 2.0)(X)).shape


def test_a_function_that_applies_the_primitive_itself_is_refused():
    f = primitive(lambda ctx, x: ctx.lower(lambda x: f(x) + 1.0, x))
    with pytest.raises(RuleError, match="lowered.xla_translation .* lowers a function that applies the primitive its"):
        f(X)
    halves = primitive(lambda ctx, x: ctx.lower(
        lambda x: x.sum() if x.shape[0] == 1 else halves(x[: x.shape[0] // 2]) + halves(x[x.shape[0] // 2:]), x),
        lambda avals: avals[0].update(shape=()))
    assert 28.0 == halves(np.arange(8.0))


def test_the_type_of_what_it_gives_is_checked_as_any_other():
    f = primitive(lambda ctx, x: ctx.lower(lambda x: x.sum(), x))
    with pytest.raises(RuleError, match="returned something other than what abstract_eval says"):
        f(X)


@pytest.mark.parametrize("rule, problem", [
    (lambda ctx, x: ctx.lower(lambda x: x, X), "isn't a value of the program"),
    (lambda ctx, x: ctx.lower(lambda x: "text", x), "text"),
    (lambda ctx, x: ctx.lower(lambda x: 1 / 0, x), "ZeroDivisionError|division"),
])
def test_what_is_wrong_within_is_an_error(rule, problem):
    with pytest.raises((CorejaxError, ZeroDivisionError), match=problem):
        primitive(rule)(X)


# custom_call

def call(**options: Any) -> Any:
    """A primitive that calls a kernel that isn't there."""
    return primitive(lambda ctx, x: ctx.custom_call("toys.call", [x], **options)[0])


def test_arrays_are_in_row_major_order_unless_a_layout_says_otherwise():
    rows, columns = "dense<[1, 0]> : tensor<2xindex>", "dense<[0, 1]> : tensor<2xindex>"
    for operands, results, wanted in (
            (None, None, (rows, rows)), ("column", ["row"], (columns, rows)), ([None], [(0, 1)], (rows, columns))):
        said = text(call(operand_layouts=operands, result_layouts=results), X)
        assert f"operand_layouts = [{wanted[0]}], result_layouts = [{wanted[1]}]" in said
    batch = text(call(operand_layouts="column"), np.zeros((2, 3, 4, 5)))
    assert "operand_layouts = [dense<[2, 3, 1, 0]>" in batch
    assert "operand_layouts = [dense<0> : tensor<1xindex>]" in text(call(operand_layouts="column"), X[0])
    assert "operand_layouts = [dense<> : tensor<0xindex>]" in text(call(operand_layouts=[()]), 1.0)


@pytest.mark.parametrize("layout", ["columns", ["row", "row"], [], [(0, 0)], [(1,)], [3]])
def test_a_wrong_layout_is_an_error(layout):
    with pytest.raises(CorejaxValueError, match="custom_call toys.call: wrong operand_layouts"):
        text(call(operand_layouts=layout), X)


def test_python_values_are_passed_typed():
    said = text(call(backend_config={
        "a": True, "b": 3, "c": np.int32(3), "d": np.uint8(3), "e": 0.5, "f": np.float32(0.5), "g": "text", "h": [1, 2],
        "i": (0.5,), "j": np.array([1], np.int16), "k": np.array([], np.int64), "l": {"m": 1}}), X)
    for wanted in ('{a = true, b = 3 : i64, c = 3 : i32, d = 3 : ui8, e = 5.000000e-01 : f64, f = 5.000000e-01 : f32, ',
                   'g = "text", h = array<i64: 1, 2>, i = array<f64: 5.000000e-01>, j = array<i16: 1>, ',
                   "k = array<i64>, l = {m = 1 : i64}}"):
        assert wanted in said


@pytest.mark.parametrize("value", [None, b"x", [], [[1, 2]], ["a"], [True], 2**63, np.float16(1.0), 1j,
                                   np.zeros((2, 2)), [1, "a"], [[1], [1, 2]], {"x": None}, object], ids=repr)
def test_a_value_that_kernels_can_not_read_is_an_error_that_names_it(value):
    with pytest.raises(CorejaxTypeError, match=r"custom_call toys.call: the value of 'x' in backend_config"):
        text(call(backend_config={"x": value}), X)


def test_a_result_may_have_the_memory_of_an_operand():
    assert "output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, " \
           "operand_tuple_indices = []>]" in text(call(aliases={0: 0}), X)
    two = primitive(lambda ctx, x, y: ctx.custom_call("toys.call", [x, y], aliases={0: 1, 1: 0}),
                    lambda avals: (avals[1], avals[0]), True)
    said = text(two, X, np.float32(1.0))
    assert "output_tuple_indices = [1], operand_index = 0" in said
    assert "output_tuple_indices = [0], operand_index = 1" in said


@pytest.mark.parametrize("aliases, got", [({0: 1}, "{0: 1}"), ({-1: 0}, "{-1: 0}"), ({True: 0}, "{True: 0}"),
                                          ({0: 0, 1: 0}, "{1: 0}")])
def test_an_alias_of_nothing_is_an_error(aliases, got):
    f = primitive(lambda ctx, x, y: ctx.custom_call("toys.call", [x, y], aliases=aliases)[0])
    with pytest.raises(CorejaxValueError, match="custom_call toys.call: wrong aliases") as caught:
        text(f, X, X)
    assert got == caught.value.got


def test_an_alias_of_another_type_is_an_error():
    f = primitive(lambda ctx, x: ctx.custom_call("toys.call", [x], aliases={0: 0})[0],
                  lambda avals: avals[0].update(dtype=np.dtype(np.float32)))
    with pytest.raises(CorejaxValueError, match="wrong aliases") as caught:
        text(f, X)
    assert "operand 0, f64[2,3], for result 0, f32[2,3]" == caught.value.got


def test_a_target_that_nobody_provides_is_named_with_the_primitive():
    with pytest.raises(CorejaxError, match=r"lowered \(.*\) needs the kernel 'toys.call', which is missing") as caught:
        cj.jit(lambda x: call()(x) + 1.0)(X)
    assert "pip install toys" == caught.value.todo and "test_lowering_rules.py" in caught.value.where
