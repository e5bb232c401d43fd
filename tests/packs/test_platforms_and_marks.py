"""platform_dependent, composite, dce_sink, stage and tokens."""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj
from corejax import export, lax
from corejax.ir import atom, dce
from corejax.plugin import define, hookimpl


class OnlyElsewhere:
    """A primitive that can't be lowered for the CPU."""

    name = "only_elsewhere"

    @hookimpl
    def abstract_eval(self, avals):
        return avals[0]

    @hookimpl
    def vmap(self, axis, args, dims):
        return only_elsewhere(args[0]), dims[0]

    @hookimpl
    def xla_translation(self, ctx, args):
        if ctx.platform == "cpu":
            raise NotImplementedError("not on this platform")
        return ctx.op("stablehlo.negate", args)


only_elsewhere = define(OnlyElsewhere())


def by_platform(x):
    return lax.platform_dependent(x, cpu=lambda x: x * lax.sin(x), default=lambda x: x * 2.0)


# platform_dependent

def test_the_function_for_the_platform_is_taken():
    x = np.array([0.5, 1.0])
    for f in (by_platform, cj.jit(by_platform), cj.vmap(by_platform), cj.jit(cj.vmap(by_platform))):
        np.testing.assert_allclose(x * np.sin(x), f(x), rtol=1e-15)
    assert 2.0 == lax.platform_dependent(1.0, cuda=lambda x: x, tpu=lambda x: x, default=lambda x: x * 2.0).item()


def test_derivatives_of_the_function_taken():
    slope = np.sin(0.5) + 0.5 * np.cos(0.5)
    for f in (cj.grad(by_platform), cj.jit(cj.grad(by_platform)), cj.grad(cj.jit(by_platform)), cj.jacfwd(by_platform),
              cj.grad(cj.checkpoint(by_platform)), lambda x: cj.linearize(cj.jit(by_platform), x)[1](1.0)):
        np.testing.assert_allclose(slope, f(0.5), rtol=1e-14)
    second = cj.jit(cj.grad(cj.grad(by_platform)))(0.5)
    np.testing.assert_allclose(2 * np.cos(0.5) - 0.5 * np.sin(0.5), second, rtol=1e-14)


def test_a_function_that_can_not_be_lowered_here_does_no_harm():
    def f(x):
        return lax.platform_dependent(x, cpu=lax.neg, default=only_elsewhere)
    assert [-1.0, -2.0] == cj.jit(cj.vmap(f))(np.array([1.0, 2.0])).tolist()
    exported = export.export(cj.jit(f), platforms=("cpu", "cuda"))(1.0)
    assert -1.0 == exported.call(1.0)


def test_an_exported_program_has_one_function_for_each_platform():
    exported = export.export(cj.jit(by_platform), platforms=("cpu", "cuda", "rocm"))(1.0)
    assert [True, False, False] == ["sine" in exported.as_text(name) for name in exported.platforms]


def test_outside_of_programs_only_the_function_taken_is_called():
    called = []
    lax.platform_dependent(1.0, cpu=lambda x: called.append("cpu") or x, cuda=lambda x: called.append("cuda") or x)
    assert ["cpu"] == called


def test_one_function_for_several_platforms_is_one_branch():
    f, g = lax.sin, lax.cos
    eqn, = cj.make_jaxpr(lambda x: lax.platform_dependent(x, cuda=f, cpu=g, rocm=f))(1.0).eqns
    assert (("cuda", "rocm"), ("cpu",)) == eqn.params["platforms"]
    assert 2 == len(eqn.params["branches"])


@pytest.mark.parametrize("f", [lambda f: f, cj.jit], ids=["eager", "jit"])
def test_no_function_for_the_platform_is_an_error_that_lists_them(f):
    with pytest.raises(NotImplementedError, match=r"the platform cpu(.|\n)*functions for cuda, tpu"):
        f(lambda x: lax.platform_dependent(x, cuda=lax.sin, tpu=lax.cos))(1.0)


def test_unused_results_and_arguments_leave_it():
    def f(x, y):
        return lax.platform_dependent(x, y, cpu=lambda x, y: (x, lax.exp(y)), default=lambda x, y: (x, y))[0]
    smaller, used = dce(cj.make_jaxpr(f)(1.0, 2.0).jaxpr, [True])
    assert "exp" not in str(smaller)
    assert (True, False) == used


# composite

softmax = lax.composite(lambda x, *, axis: lax.exp(x) / lax.exp(x).sum(axis, keepdims=True), "test.softmax", version=3)


def test_a_composite_computes_its_decomposition():
    x = np.array([[0.0, 1.0], [2.0, 0.5]])
    expected = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    for f in (softmax, cj.jit(softmax, static_argnames="axis")):
        np.testing.assert_allclose(expected, f(x, axis=1), rtol=1e-14)
    np.testing.assert_allclose(expected, cj.vmap(lambda row: softmax(row, axis=0))(x), rtol=1e-14)


def test_a_composite_is_differentiated_as_its_decomposition():
    x = np.array([0.3, 0.1, 0.7])
    plain = softmax.__wrapped__
    for transform in (cj.jacfwd, cj.jacrev, lambda f: cj.jit(cj.jacrev(f))):
        np.testing.assert_allclose(transform(lambda x: plain(x, axis=0))(x), transform(lambda x: softmax(x, axis=0))(x),
                                   rtol=1e-13)


@pytest.mark.parametrize(("value", "text"), [
    (True, "true"), (3, "3 : i64"), (0.5, "5.000000e-01 : f64"), ("log", '"log"'),
    (np.float32(1), "1.000000e+00 : f32"), (np.arange(3), "dense<[0, 1, 2]> : tensor<3xi64>"),
    ([1, "a"], '[1, "a"]'), ({"a": (1.0,)}, "{a = [1.000000e+00]}"), (np.dtype("float32"), "f32"),
    (np.uint8(3), "3 : ui8"),
], ids=str)
def test_attributes_of_the_operation(value, text):
    def f(x):
        return lax.composite(lambda x, *, k: lax.sin(x), "test.f", 2)(x, k=value)
    lowered = cj.jit(f).lower(1.0).as_text()
    assert f'"test.f" %arg0 {{composite_attributes = {{k = {text}}}, decomposition = @test.f, version = 2' in lowered
    assert np.sin(1.0) == pytest.approx(cj.jit(f)(1.0))


def test_equal_composites_are_compiled_once():
    f = lax.composite(lambda x, *, k: x, "test.f")
    params = [cj.make_jaxpr(lambda x, n=n: f(x, k=np.arange(n)))(1.0).eqns[0].params for n in (2, 2, 3)]
    one, other, third = [atom(p["attributes"]) for p in params]
    assert one == other != third


def test_a_composite_that_closes_over_traced_values():
    def f(x, y):
        return lax.composite(lambda x: x * y, "test.f")(x)
    assert (3.0, 2.0) == tuple(g.item() for g in cj.jit(cj.grad(f, (0, 1)))(2.0, 3.0))


# dce_sink, stage, tokens

def test_what_a_sink_takes_is_kept():
    def f(x, prevent):
        lax.dce_sink({"x": lax.exp(x)}, prevent_mlir_dce=prevent)
        return x * 2.0
    for prevent in (False, True):
        g = cj.jit(lambda x, p=prevent: f(x, p))
        assert 2.0 == g(1.0)
        assert "exponential" in g.lower(1.0).as_text()
        assert prevent == ("dce_sink" in g.lower(1.0).as_text())
        assert (2.0, 2.0, [2.0]) == (cj.grad(g)(1.0), cj.jit(cj.grad(g))(1.0), cj.vmap(g)(np.ones(1)).tolist())
    assert "kept" in str(cj.make_jaxpr(lambda x: f(x, False))(1.0))


def test_stage_makes_a_value_of_the_program():
    assert type(lax.stage(1.0)) is cj.Array
    assert (True, np.float64) == (lax.stage(1.0).weak_type, lax.stage(np.ones(2)).dtype)
    eqn, = cj.make_jaxpr(lambda: lax.stage(1.0))().eqns
    assert "stage_value" == eqn.primitive.name


def test_tokens_pass_through_programs_and_are_nothing_to_compute_with():
    def f(x):
        token = lax.after_all(lax.create_token(), lax.create_token(None))
        return lax.scan(lambda t, x: (lax.after_all(t, lax.create_token()), x), token, x)
    token, x = cj.jit(f)(np.ones(2))
    assert ("token[]", "token[2]") == (str(token.aval), str(cj.vmap(lambda _: lax.create_token())(x).aval))
    assert lax.after_all(*[cj.vmap(lambda _: lax.create_token())(x)] * 2).shape == (2,)
    assert "token" in str(cj.make_jaxpr(lax.after_all)())
    with pytest.raises(TypeError, match="token"):
        token + 1
    with pytest.raises(TypeError, match="must be tokens"):
        lax.after_all(1.0)
    assert "optimization_barrier" in cj.jit(lax.after_all).lower(token, token).as_text()
