"""The stages of a compiled function: what can be read of each, compiling with options, calling what was compiled."""

from __future__ import annotations

import copy
import pickle
import re

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxError, CorejaxTypeError, CorejaxValueError

X = np.array([0.5, -1.0, 2.0])
LEVEL = "xla_backend_optimization_level"

#: Words of what lies beneath, which no message has.
BENEATH = re.compile(r"INVALID_ARGUMENT|NOT_FOUND|mlir|stablehlo|jaxlib|absl", re.IGNORECASE)


@cj.jit
def layer(params, x, *, scale):
    return {"y": lax.tanh(params["w"] * x) * scale, "sizes": (params["n"], None)}


ARGS = {"w": X, "n": np.int32(3)}, X


def stages():
    traced = layer.trace(*ARGS, scale=2.0)
    lowered = traced.lower()
    return traced, lowered, lowered.compile()


def refusal(kind, function, *args, **kwargs):
    with pytest.raises(kind) as caught:
        function(*args, **kwargs)
    error = caught.value
    assert isinstance(error, CorejaxError) and None not in (error.got, error.wanted, error.where, error.todo)
    assert not BENEATH.search(str(error)), str(error)
    return error


# What each stage tells

@pytest.mark.parametrize("stage", range(3), ids=["traced", "lowered", "compiled"])
def test_every_stage_knows_the_functions_types_and_structures(stage):
    found = stages()[stage]
    assert "layer" == found.fun_name
    assert ["i32[]", "f64[3]", "f64[3]", "~f64[]"] == list(map(str, found.in_avals))
    assert ["i32[]", "f64[3]"] == list(map(str, found.out_avals))
    assert cj.tree.structure((ARGS, {"scale": 2.0})) == found.in_tree
    assert cj.tree.structure({"y": 0, "sizes": (0, None)}) == found.out_tree
    f64 = cj.ShapeDtypeStruct((3,), np.float64)
    i32 = cj.ShapeDtypeStruct((), np.int32)
    weak = cj.ShapeDtypeStruct((), np.float64, weak_type=True)
    assert (({"w": f64, "n": i32}, f64), {"scale": weak}) == found.args_info
    assert {"y": f64, "sizes": (i32, None)} == found.out_info
    assert f"{type(found).__name__}(layer: (i32[], f64[3], f64[3], ~f64[]) -> (i32[], f64[3]))" == repr(found)


def test_the_structure_of_a_single_result_is_a_leaf():
    assert cj.tree.structure(0) == cj.jit(lax.sin).trace(X).out_tree


def test_donated_leaves_are_listed_by_number():
    lowered = cj.jit(lambda x, p: (x * 2.0, p["a"]), donate_argnums=1).lower(X, {"a": X, "b": 1.0})
    assert (1, 2) == lowered.donate_argnums == lowered.compile().donate_argnums


def test_types_are_enough_to_get_to_a_compiled_function():
    compiled = cj.jit(lambda x: x + 1.0).lower(cj.ShapeDtypeStruct((3,), "float64")).compile()
    np.testing.assert_array_equal(X + 1.0, compiled(X))


@pytest.mark.parametrize("stage", range(3), ids=["traced", "lowered", "compiled"])
@pytest.mark.parametrize("take", [pickle.dumps, copy.copy, copy.deepcopy])
def test_stages_are_not_pickled_and_the_error_says_what_is(stage, take):
    error = refusal(CorejaxTypeError, take, stages()[stage])
    assert "can't be pickled" in error.message and "cj.export" in error.todo


# Lowered

def test_the_text_of_a_lowered_function_is_of_the_dialect_that_was_asked_for():
    lowered = layer.lower(*ARGS, scale=2.0)
    assert "stablehlo.tanh" in lowered.as_text() == lowered.as_text("stablehlo") == str(lowered.module)
    hlo = lowered.as_text("hlo")
    assert "HloModule" in hlo and "tanh" in hlo and "stablehlo" not in hlo
    assert "cpu" == lowered.platform
    with pytest.raises(CorejaxValueError, match="unknown dialect") as caught:
        lowered.as_text("prose")
    assert ("'prose'", "'stablehlo' or 'hlo'") == (caught.value.got, caught.value.wanted)


def test_debug_information_says_of_operations_where_they_come_from():
    def inner(x):
        return lax.cos(x)

    def f(x):
        with cj.named_scope("head"):
            y = lax.sin(x)
        return cj.jit(inner)(y)

    lowered = cj.jit(f).lower(X)
    assert "loc(" not in lowered.as_text()
    text = lowered.as_text(debug_info=True)
    line = f.__code__.co_firstlineno + 2
    assert f'"{__file__}":{line}:0' in text and 'loc("head/sin"(' in text
    assert f'"{__file__}":{inner.__code__.co_firstlineno + 1}:0' in text and 'loc("cos"(' in text
    assert "head/sin" in lowered.as_text("hlo", debug_info=True)


def test_debug_information_changes_nothing_of_the_program():
    lowered = cj.jit(lambda x: lax.fori_loop(0, 3, lambda i, c: lax.sinh(c) * x, x)).lower(X)
    plain = [line for line in lowered.as_text().splitlines() if line.strip()]
    located = re.sub(r" ?loc\((?:[^()]|\([^()]*\))*\)", "", lowered.as_text(debug_info=True))
    assert plain == [line.rstrip() for line in located.splitlines() if line.strip() and not line.startswith("#")]


def test_work_is_estimated_before_and_after_optimisation():
    lowered = cj.jit(lambda x: x @ x).lower(np.ones((8, 8)))
    for estimate in (lowered.cost_analysis(), lowered.compile().cost_analysis()):
        assert 2 * 8 ** 3 == estimate["flops"]


def test_a_function_is_lowered_for_platforms_that_are_not_here_but_not_compiled():
    lowered = cj.jit(lax.sin).trace(X).lower("cuda")
    assert "cuda" == lowered.platform and "stablehlo.sine" in lowered.as_text()
    error = refusal(CorejaxValueError, lowered.compile)
    assert "lowered for cuda" in error.message and "lower(platform='cpu')" in error.todo
    refusal(CorejaxTypeError, cj.jit(lax.sin).trace(X).lower, 3)


def test_a_program_is_lowered_for_one_platform_by_the_name_that_jax_has_too():
    traced = cj.jit(lambda x: lax.platform_dependent(x, cpu=lax.sin, tpu=lax.cos)).trace(X)
    for names in (("tpu",), ["tpu"], "tpu"):
        lowered = traced.lower(lowering_platforms=names)
        assert "tpu" == lowered.platform and traced.lower("tpu").as_text() == lowered.as_text()
    assert "cpu" == traced.lower(lowering_platforms=None).platform == traced.lower(lowering_platforms=()).platform
    for given in ({"lowering_platforms": ("cpu", "tpu")}, {"platform": "cpu", "lowering_platforms": ("tpu",)}):
        with pytest.raises(CorejaxValueError, match="for one platform(.|\n)*cj.export.export"):
            traced.lower(**given)
    with pytest.raises(CorejaxTypeError, match="by its name"):
        traced.lower(lowering_platforms=(3,))


# Options for the compiler

def test_options_change_what_the_compiler_does():
    lowered = cj.jit(lambda x: lax.sin(x) + lax.sin(x)).lower(X)
    once, twice = (lowered.compile(options).as_text().count(" sine(") for options in (
        None, {"xla_disable_hlo_passes": "cse"}))
    assert 2 * once == twice > 0


WRONG_OPTIONS = [
    ({"xla_backend_optimization_levl": 1}, CorejaxValueError, "has no option", LEVEL),
    ({"abacus": 1}, CorejaxValueError, "has no option", "XLA"),
    ({LEVEL: "much"}, CorejaxTypeError, "a different type", "an int"),
    ({LEVEL: 1.5}, CorejaxTypeError, "a different type", "an int"),
    ({LEVEL: True}, CorejaxTypeError, "a different type", "an int"),
    ({"xla_cpu_enable_fast_math": 3}, CorejaxTypeError, "a different type", "True or False"),
    ({"xla_dump_to": 3}, CorejaxTypeError, "a different type", "a str"),
    ({"xla_dump_to": None}, CorejaxTypeError, "a compiler option must be", "None"),
    ({3: 3}, CorejaxTypeError, "a compiler option must be", "3: 3"),
    ("fast", CorejaxTypeError, "options must be a dict", "'fast'"),
]


@pytest.mark.parametrize("options, kind, problem, says", WRONG_OPTIONS, ids=[str(case[0]) for case in WRONG_OPTIONS])
def test_wrong_options_are_refused_by_name(options, kind, problem, says):
    lowered = cj.jit(lambda x: x * 3.0).lower(X)
    for call in (lambda: lowered.compile(options), lambda: cj.jit(lambda x: x * 3.0, compiler_options=options)(X)):
        error = refusal(kind, call)
        assert problem in error.message and says in str(error)


def test_an_option_of_the_right_value_and_the_wrong_type_is_refused_after_a_right_one():
    def f(x):
        return x * 5.0

    np.testing.assert_array_equal(5 * X, cj.jit(f, compiler_options={LEVEL: 1})(X))
    refusal(CorejaxTypeError, cj.jit(f, compiler_options={LEVEL: True}), X)


def test_options_of_jit_hold_for_calls_and_stages_and_those_of_compile_before_them():
    f = cj.jit(lambda x: x * 7.0, compiler_options={"abacus": 1})
    refusal(CorejaxValueError, f, X)
    refusal(CorejaxValueError, f.lower(X).compile)
    g = cj.jit(compiler_options={LEVEL: "much"})(lambda x: x * 7.0)
    np.testing.assert_array_equal(7 * X, g.lower(X).compile({LEVEL: 0})(X))


def test_options_of_an_inner_jit_give_way_to_those_of_the_program_around_it():
    inner = cj.jit(lambda x: x * 9.0, compiler_options={LEVEL: 0})
    np.testing.assert_array_equal(9 * X, cj.jit(inner, compiler_options={LEVEL: 1})(X))
    np.testing.assert_array_equal([9.0] * 3, cj.grad(lambda x: inner(x).sum())(X))


# Compiled

def test_what_the_compiler_made_can_be_read():
    compiled = stages()[2]
    assert "HloModule" in compiled.as_text() and "tanh" in compiled.as_text()
    memory = compiled.memory_analysis()
    assert 4 + 24 + 24 + 8 == memory.argument_size_in_bytes and 4 + 24 <= memory.output_size_in_bytes
    assert cj.devices()[0] == compiled.device
    assert compiled.runtime_executable().hlo_modules()


def test_a_compiled_function_computes_what_the_function_does():
    out = stages()[2](*ARGS, scale=2.0)
    np.testing.assert_allclose(2.0 * np.tanh(X * X), out["y"], rtol=1e-15)
    assert 3 == out["sizes"][0] and out["sizes"][1] is None


WRONG_CALLS = {
    "a leaf of another shape": (lambda c: c({"w": X[:2], "n": np.int32(3)}, X, scale=2.0), "args[0]['w']", "f64[2]",
                                "f64[3]"),
    "a leaf of another dtype": (lambda c: c({"w": X, "n": 3}, X, scale=2.0), "args[0]['n']", "~i64[]", "i32[]"),
    "a keyword of another type": (lambda c: c(*ARGS, scale=X), "kwargs['scale']", "f64[3]", "~f64[]"),
    "a leaf that is no array": (lambda c: c(ARGS[0], "x", scale=2.0), "args[1]", "'x'", "an array"),
    "a key too many": (lambda c: c({"w": X, "n": 3, "m": X}, X, scale=2.0), "(args, kwargs)[0][0]", "'m'",
                       "['n', 'w']"),
    "another container": (lambda c: c([X, 3], X, scale=2.0), "(args, kwargs)[0][0]", "a list of 2", "a dict"),
    "a missing argument": (lambda c: c(ARGS[0], scale=2.0), "(args, kwargs)[0]", "a tuple of 1", "a tuple of 2"),
    "a missing keyword": (lambda c: c(*ARGS), "(args, kwargs)[1]", "the keys []", "['scale']"),
}


@pytest.mark.parametrize("call, place, got, wanted", WRONG_CALLS.values(), ids=WRONG_CALLS)
def test_wrong_arguments_are_named(call, place, got, wanted):
    error = refusal(CorejaxTypeError, call, stages()[2])
    assert place in error.message and got in str(error.got) and wanted in str(error.wanted)
    assert str(error.where).startswith(__file__)


def test_a_compiled_function_is_not_transformed():
    compiled = cj.jit(lambda x: x * 2.0).lower(X).compile()
    for transformed in (cj.grad(lambda x: compiled(x).sum()), cj.jit(lambda x: compiled(x))):
        error = refusal(CorejaxTypeError, transformed, X)
        assert "args[0] is a traced value" in error.message and "jitted function itself" in error.todo
    error = refusal(CorejaxTypeError, cj.vmap(compiled), np.stack([X, X]))
    assert "args[0] is a traced value" in error.message


def test_static_arguments_are_left_out_or_as_they_were():
    f = cj.jit(lambda n, x, mode="a": x ** n if mode == "a" else x, static_argnums=0, static_argnames="mode")
    compiled = f.lower(3, X, mode="a").compile()
    np.testing.assert_array_equal(X ** 3, compiled(X))
    np.testing.assert_array_equal(X ** 3, compiled(3, X, mode="a"))
    for wrong in (lambda: compiled(2, X, mode="a"), lambda: compiled(3.0, X, mode="a"),
                  lambda: compiled(3, X, mode="b"), lambda: compiled(3, X)):
        error = refusal(CorejaxValueError, wrong)
        assert "static arguments" in error.message and "args[0]=3" in error.wanted and "mode='a'" in error.wanted


def test_a_donated_array_is_gone_and_says_so():
    compiled = cj.jit(lambda x: x * 2.0, donate_argnums=0).lower(X).compile()
    for x in (cj.device_put(X), lax.add(X, 0.0)):
        np.testing.assert_array_equal(2 * X, compiled(x))
        assert x.is_deleted()
        with pytest.raises(CorejaxError, match="donated|deleted"):
            compiled(x)


def test_arguments_that_the_program_ignores_are_checked_all_the_same():
    compiled = cj.jit(lambda x, unused: x + 1.0).lower(X, X).compile()
    np.testing.assert_array_equal(X + 1.0, compiled(X, X))
    assert "args[1]" in refusal(CorejaxTypeError, compiled, X, 1).message


def test_constants_of_any_size_travel_with_a_compiled_function():
    large = np.arange(1000.0)
    compiled = cj.jit(lambda x: x + large).lower(1.0).compile()
    large[:] = 0.0
    np.testing.assert_array_equal(1.0 + np.arange(1000.0), compiled(1.0))
