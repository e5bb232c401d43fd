"""Rows of the families of elementwise primitives, as a pack writes them."""

from __future__ import annotations

import doctest
import inspect
import math
from pathlib import Path

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxTypeError
from corejax.plugin import define, factors, families, partials
from corejax.testing import ConformanceError, check_primitive

doubled = define(families.unary(
    "doubled_in_a_row", None, hlo=lambda ctx, args: ctx.op("stablehlo.add", [args[0], args[0]]), dtypes="f",
    jvp=factors(lambda out, x: x * 0.0 + 2.0), results={1.5: 3.0}, doc="2 x"))
twice_the_sum = define(families.binary(
    "twice_the_sum", None, hlo=lambda ctx, args: ctx.op("stablehlo.add", [
        ctx.op("stablehlo.add", args), ctx.op("stablehlo.add", args)]), dtypes="f",
    jvp=factors(lambda out, x, y: out * 0.0 + 2.0, lambda out, x, y: out * 0.0 + 2.0), doc="2 (x + y)"))


def test_a_row_without_a_numpy_function_is_compiled_and_keeps_the_laws() -> None:
    check_primitive(doubled)
    check_primitive(twice_the_sum, checks=["jvp agrees with differences", "pullback is the adjoint of jvp",
                                           "a map is a loop", "no fallback is hidden"])


def test_a_row_without_a_numpy_function_takes_numbers_arrays_and_devices() -> None:
    assert 4.0 == float(doubled(2.0)) and [0.0, 2.0] == doubled(np.arange(2.0)).tolist()
    assert 6.0 == float(twice_the_sum(1.0, cj.device_put(2.0)))


def test_explain_says_in_which_row_a_rule_is_written() -> None:
    hooks = cj.plugins.explain(doubled).hooks
    assert {hooks[name].where.rpartition(":")[0] for name in ("vmap", "xla_translation", "jvp")} == {__file__}
    assert "corejax_lax_basic" in (cj.plugins.explain("sin").hooks["impl"].where or "")


# Params

def leak(x, slope):
    return lax.select(x < 0, x * slope, x)


leaky = define(families.unary(
    "leaky_in_a_row", lambda x, *, slope: np.where(x < 0, slope * x, x).astype(x.dtype), dtypes="f", singular=(0.0,),
    hlo=lambda ctx, args, *, slope: ctx.lower(lambda x: leak(x, slope), *args),
    jvp=factors(lambda out, x, *, slope: leak(lax.sign(x), -slope)),
    params={"slope": (0.1, 0.0, 2.0)}, results={-2.0: -0.2, 3.0: 3.0}, doc="x, times slope where it is negative."))
combined = define(families.binary(
    "combined_in_a_row", None, dtypes="f", jvp=None, linear=(0, 1), params={"a": (2.0, -1.0), "b": (1.0, 0.5)},
    hlo=lambda ctx, args, *, a, b: ctx.lower(lambda x, y: x * a + y * b, *args),
    transpose=(lambda ct, x, y, *, a: ct * a, lambda ct, x, y, *, b: ct * b), results={(3.0, 4.0): 10.0},
    doc="a x + b y"))
bent = define(families.binary(
    "bent_in_a_row", lambda x, y, *, n: x ** n * y, dtypes="f", params={"n": (1, 3), "scale": (1.0,)},
    hlo=lambda ctx, args, *, n: ctx.lower(lambda x, y: lax.integer_pow(x, n) * y, *args),
    jvp=partials(lambda t, out, x, y, *, n: t * n * lax.integer_pow(x, n - 1) * y,
                 lambda t, out, x, y, *, n: t * lax.integer_pow(x, n)), doc="x ** n y"))


@pytest.mark.parametrize("row", [leaky, combined, bent], ids=lambda row: row.primitive.name)
def test_a_row_with_params_keeps_the_laws_for_all_their_values(row):
    check_primitive(row, checks=None if row is leaky else [
        "impl and the compiled program agree", "results are those that the sample knows", "a map is a loop",
        "jvp agrees with differences", "second derivatives agree with differences", "pullback is the adjoint of jvp",
        "declared linear operands are linear", "transpose is the adjoint", "linearize equals jvp",
        "python scalars give the announced weak types", "orderings to depth two agree", "no fallback is hidden"])


def test_params_go_by_keyword_to_the_functions_that_name_them():
    x = np.array([-2.0, 3.0])
    assert [-0.2, 3.0] == leaky(x, slope=0.1).tolist() == cj.jit(lambda x: leaky(x, slope=0.1))(x).tolist()
    assert [0.1, 1.0] == cj.vmap(cj.grad(lambda x: leaky(x, slope=0.1)))(x).tolist()
    assert -0.5 == float(leaky(-1.0, slope=0.5)) and leaky(-1.0, slope=0.5).weak_type
    assert 10.0 == float(combined(3.0, 4.0, a=2.0, b=1.0))
    assert [2.0, 1.0] == [float(g) for g in cj.grad(lambda x, y: combined(x, y, a=2.0, b=1.0), (0, 1))(3.0, 4.0)]
    assert 3.0 == float(cj.grad(lambda x: bent(x, 1.0, n=3, scale=1.0))(1.0))
    assert 6.0 == float(cj.grad(cj.grad(lambda x: bent(x, 1.0, n=3, scale=1.0)))(1.0))


def test_wrong_params_are_refused_and_help_names_the_right_ones():
    with pytest.raises(CorejaxTypeError, match="leaky_in_a_row .* needs the param 'slope'"):
        leaky(1.0)
    with pytest.raises(CorejaxTypeError, match="has no param 'slop'"):
        leaky(1.0, slop=0.1)
    assert "(x: 'ArrayLike', /, *, slope) -> 'Array'" == str(inspect.signature(leaky))
    assert "(x: 'ArrayLike', y: 'ArrayLike', /, *, a, b) -> 'Array'" == str(inspect.signature(combined))
    assert cj.plugins.explain(leaky).hooks["impl"].how == "written"


@pytest.mark.parametrize("values", [0.1, "fast", (), None])
def test_a_row_says_which_values_its_params_take_in_samples(values):
    with pytest.raises(CorejaxTypeError, match="a_row: the row has no values of the param 'slope'") as caught:
        families.unary("a_row", None, hlo="cosine", dtypes="f", jvp=None, params={"slope": values}, doc="")
    assert "test_families.py" in caught.value.where


def test_rows_with_params_are_named_by_what_they_are_in_programs():
    program = cj.make_jaxpr(lambda x: leaky(x, slope=0.1))(1.0)
    assert "leaky_in_a_row[slope=0.1]" in str(program)


# Results

half = define(families.unary(
    "half_in_a_row", None, dtypes="iu", result=lambda dtype: np.dtype(np.float64), jvp=partials(None),
    hlo=lambda ctx, args: ctx.lower(lambda x: lax.convert_element_type(x, np.float64) * 0.5, *args),
    results={3: 1.5, -1: -0.5}, doc="x / 2, a float even for an integer"))
near = define(families.binary(
    "near_in_a_row", lambda x, y, *, tol: abs(x - y) <= tol, dtypes="f", result=lambda _: np.dtype(bool),
    hlo=lambda ctx, args, *, tol: ctx.lower(lambda x, y: lax.le(lax.abs(x - y), tol), *args), jvp=partials(None, None),
    params={"tol": (0.5, 0.0)}, results={(1.0, 1.25): True, (1.0, 2.0): False}, doc="whether |x - y| <= tol"))


def test_a_row_whose_result_has_another_dtype_keeps_the_laws():
    check_primitive(half)
    check_primitive(near)


def test_results_of_another_dtype_go_through_transformations():
    assert np.float64 == half(np.int8(3)).dtype and [0.0, 0.5, 1.0] == cj.vmap(half)(np.arange(3)).tolist()
    assert [0.5, 1.0] == cj.jit(lambda x: half(x))(np.array([1, 2], np.uint8)).tolist()
    assert [True, False] == cj.jit(cj.vmap(lambda x: near(x, 1.0, tol=0.5)))(np.array([1.5, 2.0])).tolist()
    assert 0.0 == cj.grad(lambda x: lax.select(near(x, 1.0, tol=0.5), 1.0, 0.0) * 1.0)(1.0)
    assert bool == cj.linearize(lambda x: near(x, 1.0, tol=0.5), 1.0)[0].dtype


def test_known_results_say_which_function_is_meant():
    wrong = define(families.unary(
        "wrong_in_a_row", None, hlo="cosine", dtypes="f", jvp=factors(lambda out, x: -lax.sin(x)), results={0.0: 0.0},
        doc="Meant to be a sine."))
    with pytest.raises(ConformanceError, match="results are those that the sample knows"):
        check_primitive(wrong)


# The row of the manual

def test_the_manual_has_erf_with_its_gradients_in_a_few_lines():
    page = (Path(__file__).parents[2] / "docs/writing-a-pack.md").read_text()
    example, = [example for example in doctest.DocTestParser().get_examples(page)
                if example.source.startswith("erf = define(")]
    imports = "import numpy as np\nfrom corejax import lax\nfrom corejax.plugin import define, factors, families\n"
    pack = imports + example.source
    assert len(pack.splitlines()) <= 15
    scope = {"__name__": __name__}
    exec(pack, scope)
    erf, x = scope["erf"], np.linspace(-3.0, 3.0, 13)
    np.testing.assert_allclose([math.erf(each) for each in x], erf(x), rtol=1e-13)
    np.testing.assert_allclose(2.0 / math.pi ** 0.5 * np.exp(-x * x), cj.vmap(cj.grad(erf))(x), rtol=1e-13)
    np.testing.assert_allclose(-4.0 / math.pi ** 0.5 * x * np.exp(-x * x), cj.jit(cj.vmap(cj.grad(cj.grad(erf))))(x),
                               rtol=1e-12)
    check_primitive(erf)
