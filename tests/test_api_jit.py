"""`jit`: what is traced when, what is kept, static and donated arguments, the stages."""

from __future__ import annotations

import functools
import gc
import os
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxError, CorejaxRuntimeError, CorejaxTypeError, CorejaxValueError, LeakedTracerError

X = np.array([1.0, 2.0, 3.0])


class Traces:
    """Counts how often a function is traced."""

    def __init__(self, function=lambda x: x * 2.0):
        self.count, self.function = 0, function

    def __call__(self, *args, **kwargs):
        self.count += 1
        return self.function(*args, **kwargs)


def test_results_have_the_structure_of_the_functions():
    @cj.jit
    def f(x, pair, *, scale):
        return {"sum": x + pair[0], "pair": (pair[1] * scale, None)}

    result = f(1.0, (2.0, X), scale=3.0)
    assert 3.0 == float(result["sum"]) and None is result["pair"][1]
    np.testing.assert_array_equal(result["pair"][0], 3 * X)
    assert () == cj.jit(lambda: ())() and None is cj.jit(lambda x: None)(1.0)
    assert (1.0, 2.0) == tuple(map(float, cj.jit(lambda x, y: (x, y))(1.0, 2.0)))


def test_jit_is_a_decorator_with_and_without_options():
    @cj.jit
    def f(x):
        """The doc."""
        return x + 1

    @cj.jit(static_argnames="n")
    def g(x, n):
        return x + n

    @functools.partial(cj.jit, static_argnums=1)
    def h(x, n):
        return x + n

    assert ("f", "The doc.") == (f.__name__, f.__doc__)
    assert [2, 3, 3, 3] == [int(f(1)), int(g(1, 2)), int(g(1, n=2)), int(h(1, 2))]


def test_jitted_methods_are_methods():
    class Model:
        def __init__(self, w):
            self.w = w

        @functools.partial(cj.jit, static_argnums=0)
        def apply(self, x):
            return self.w * x

    assert 6.0 == float(Model(3.0).apply(2.0))


def test_a_function_is_traced_once_for_each_signature():
    traces = Traces()
    f = cj.jit(traces)
    for x in (X, X + 1.0, cj.device_put(X)):
        np.testing.assert_array_equal(f(x), 2 * np.asarray(x))
    assert 1 == traces.count
    f(X.astype(np.float32)), f(X[:2]), f(1.0), f(2.0), f(np.float64(2.0)), f(x=X)
    assert 6 == traces.count
    f.clear_cache()
    f(X)
    assert 7 == traces.count


def test_jit_made_anew_of_one_function_traces_once():
    traces = Traces()
    for _ in range(3):
        cj.jit(traces)(X)
    assert 1 == traces.count
    cj.jit(traces, keep_unused=True)(X)
    assert 2 == traces.count


def test_the_default_width_is_part_of_the_signature():
    f, g = cj.jit(lambda x: x), cj.jit(lambda: lax.full((2,), 1))
    for _ in range(2):
        assert ("float64", "int64") == (f(1.0).dtype.name, g().dtype.name)
        with cj.config(default_bits=32):
            assert ("float32", "int32") == (f(1.0).dtype.name, g().dtype.name)


def test_what_is_kept_dies_with_the_function():
    def f(x):
        return x + 1

    alive = weakref.ref(f)
    cj.jit(f)(X)
    del f
    gc.collect()
    assert alive() is None


def test_an_exception_while_tracing_leaves_nothing():
    fail = True

    @cj.jit
    def f(x):
        if fail:
            raise KeyError("mine")
        return x

    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            f(X)
    fail = False
    np.testing.assert_array_equal(X, f(X))


def test_threads_may_trace_and_call_at_once():
    f = cj.jit(lambda x: lax.sin(x) * x)
    found, threads = [], []
    for _ in range(8):
        threads.append(threading.Thread(target=lambda: found.append(np.asarray(f(X)))))
        threads[-1].start()
    for thread in threads:
        thread.join()
    assert 8 == len(found)
    for y in found:
        np.testing.assert_allclose(np.sin(X) * X, y)


# What a function closes over

def test_closed_over_arrays_are_constants_as_they_were():
    w = X.copy()
    f = cj.jit(lambda x: x * w)
    np.testing.assert_array_equal(X * X, f(X))
    w[:] = 0.0
    np.testing.assert_array_equal(X * X, f(X))


def test_closed_over_tracers_are_operands_and_nothing_is_kept():
    def f(x):
        return cj.jit(lambda y: y * x)(3.0)

    assert 3.0 == float(cj.grad(f)(2.0)) == float(cj.jit(cj.grad(f))(2.0)) == float(cj.grad(cj.jit(f))(2.0))
    np.testing.assert_array_equal(3 * X, cj.vmap(f)(X))
    assert (6.0, 3.0) == tuple(map(float, cj.jvp(f, (2.0,), (1.0,))))

    kept = []

    def g(x):
        if not kept:
            kept.append(cj.jit(lambda y: y * held[0]))
        return kept[0](1.0)

    held = [5.0]

    def outer(x):
        held[0] = x
        return g(x)

    assert 1.0 == float(cj.grad(outer)(2.0))
    assert 1.0 == float(cj.grad(outer)(4.0))
    held[0] = 7.0
    assert 7.0 == float(kept[0](1.0))


def test_nested_jit_is_a_call_unless_it_is_inline():
    outer = cj.make_jaxpr(lambda x: cj.jit(lax.sin)(x) + 1.0)(1.0)
    assert ["xla_call", "add"] == [eqn.primitive.name for eqn in outer.eqns]
    inline = cj.make_jaxpr(lambda x: cj.jit(lax.sin, inline=True)(x) + 1.0)(1.0)
    assert ["sin", "add"] == [eqn.primitive.name for eqn in inline.eqns]


def test_the_name_of_the_called_function_is_in_the_program():
    def my_function(x):
        return lax.sin(x)

    (eqn,) = cj.make_jaxpr(cj.jit(my_function))(1.0).eqns
    assert "my_function" == eqn.params["name"]


# Static arguments

def test_static_arguments_are_python_values():
    @cj.jit(static_argnums=(1, 2))
    def f(x, n, flag=True):
        for _ in range(n):
            x = x + 1.0
        return x if flag else -x

    assert [3.0, -3.0, 4.0] == [float(f(1.0, 2)), float(f(1.0, 2, False)), float(f(1.0, n=3))]


def test_static_values_that_only_look_equal_are_told_apart():
    f = cj.jit(lambda x, n: x * n, static_argnums=1)
    assert ["int64", "float64", "int64"] == [f(2, n).dtype.name for n in (1, 1.0, True)]
    g = cj.jit(lambda x, z: x / z, static_argnums=1)
    assert [np.inf, -np.inf] == [float(g(1.0, 0.0)), float(g(1.0, -0.0))]


def test_negative_positions_and_names_of_static_arguments():
    f = cj.jit(lambda x, mode: x if mode == "id" else -x, static_argnums=-1)
    assert [1.0, -1.0] == [float(f(1.0, "id")), float(f(1.0, "neg"))]
    g = cj.jit(lambda x, *, mode, other=1: x if mode == "id" else -x, static_argnames=("mode", "other"))
    assert [1.0, -1.0] == [float(g(1.0, mode="id")), float(g(1.0, mode="neg", other="text"))]


def test_static_arguments_must_be_hashable():
    f = cj.jit(lambda x, sizes: x, static_argnums=1)
    with pytest.raises(CorejaxValueError, match=r"static argument args\[1\] can't be hashed") as caught:
        f(1.0, [1, 2])
    assert "list" in caught.value.got and "test_api_jit.py" in caught.value.where


def test_options_that_name_no_argument_are_refused():
    def f(x, y):
        return x

    with pytest.raises(CorejaxValueError, match="static_argnums has 2"):
        cj.jit(f, static_argnums=2)
    with pytest.raises(CorejaxValueError, match="static_argnames has 'yy'.*\n(.*\n)*.*did you mean 'y'"):
        cj.jit(f, static_argnames="yy")
    with pytest.raises(CorejaxValueError, match="donate_argnums has 5"):
        cj.jit(f, donate_argnums=5)
    with pytest.raises(CorejaxTypeError, match="static_argnums must be positions"):
        cj.jit(f, static_argnums="y")
    with pytest.raises(CorejaxTypeError, match="static_argnames must be names"):
        cj.jit(f, static_argnames=(1,))
    with pytest.raises(CorejaxValueError, match="both static and donated"):
        cj.jit(f, static_argnums=0, donate_argnums=0)


# Wrong arguments

def test_a_leaf_that_is_no_array_is_named():
    f = cj.jit(lambda x, d: x)
    with pytest.raises(CorejaxTypeError, match=r"jit: args\[1\]\['mode'\] is a str, not an array") as caught:
        f(1.0, {"mode": "train"})
    assert "static_argnums" in caught.value.todo and "test_api_jit.py" in caught.value.where
    with pytest.raises(TypeError, match=r"jit: kwargs\['d'\] is an object, not an array"):
        f(1.0, d=object())
    with pytest.raises(CorejaxTypeError, match=r"jit: result\[0\] is a str, not an array"):
        cj.jit(lambda x: ("no", x))(1.0)


def test_integers_that_do_not_fit_are_refused():
    with pytest.raises(CorejaxError, match="doesn't fit"):
        cj.jit(lambda x: x)(2 ** 70)


def test_a_leaked_tracer_is_refused():
    leaked = []
    cj.jit(lambda x: leaked.append(x) or x)(1.0)
    with pytest.raises(LeakedTracerError):
        cj.jit(lambda x: x + 1.0)(leaked[0])


def test_what_is_no_function_is_refused():
    with pytest.raises(CorejaxTypeError, match="jit: expected a function"):
        cj.jit(3.0)


def test_static_fields_of_nodes_must_compare():
    @cj.tree.register_node_class
    class Box:
        def __init__(self, x, static):
            self.x, self.static = x, static

        def tree_flatten(self):
            return (self.x,), self.static

        @classmethod
        def tree_unflatten(cls, static, children):
            return cls(*children, static)

    f = cj.jit(lambda b: b.x)
    assert [1.0, 2.0] == [float(f(Box(1.0, "a"))), float(f(Box(2.0, "a")))]
    with pytest.raises(CorejaxTypeError, match="static part of a pytree node, can't be compared"):
        f(Box(1.0, X)), f(Box(1.0, X.copy()))


# Donation

def test_donated_arrays_are_gone():
    f = cj.jit(lambda x, y: x + y, donate_argnums=0)
    x, y = cj.device_put(X), cj.device_put(X)
    np.testing.assert_array_equal(2 * X, f(x, y))
    assert x.is_deleted() and not y.is_deleted()
    with pytest.raises(CorejaxRuntimeError, match="deleted, or donated"):
        f(x, y)
    with pytest.raises(CorejaxRuntimeError, match="deleted, or donated"):
        np.asarray(x)


USES_OF_DONATED = """
import pickle, sys
import numpy as np
import corejax as cj

def donated():
    x = cj.device_put(np.ones(4))
    cj.jit(lambda x: x * 2, donate_argnums=0)(x)
    yield x
    x = cj.device_put(np.ones(4))
    cj.jit(lambda *, x: x * 2, donate_argnames="x")(x=x)
    yield x
    x = cj.device_put(np.ones(4))
    cj.jit(lambda x, y: (x * 2, y), donate_argnums=0)(x, 1.0)
    yield x
    x = cj.device_put(np.ones(4))
    cj.jit(lambda t: {"a": t["a"] * 2}, donate_argnums=0)({"a": x})
    yield x
    x = cj.device_put(np.ones(4))
    cj.jit(lambda x: x * 2, donate_argnums=0).lower(x).compile()(x)
    yield x
    x = cj.device_put(np.ones(4), cj.devices()[0])
    cj.jit(lambda x: x * 2, donate_argnums=0)(x)
    yield x

live = cj.device_put(np.ones(4))
f, g, donating = cj.jit(lambda x: x + 1), cj.jit(lambda x, y: (x + y, x)), cj.jit(lambda x: x + 1, donate_argnums=0)
compiled = f.lower(live).compile()
uses = [
    f, lambda x: g(live, x), lambda x: g(np.ones(4), x), lambda x: f(x=x), compiled, donating, lambda x: x + 1,
    lambda x: live == x, lambda x: x[0], lambda x: x.at[0].set(1.0), lambda x: -x, cj.lax.sin, np.asarray, np.sin,
    cj.device_get, cj.vmap(lambda x: x * x), cj.grad(lambda x: (x * x).sum()), lambda x: x.sum().item(),
    lambda x: cj.jvp(lambda y: y * y, (live,), (x,)), lambda x: cj.vjp(lambda y: y * 2, live)[1](x),
    lambda x: cj.jit(lambda y: y + x)(live), lambda x: cj.tree.map(lambda y: y + 1, {"a": x}), pickle.dumps,
    lambda x: cj.lax.scan(lambda c, y: (c + y, c), 0.0, x), lambda x: cj.device_put(x, cj.devices()[0])]
for i, use in enumerate(uses):
    for x in donated():
        repr(x)
        try:
            use(x)
        except cj.errors.CorejaxRuntimeError as error:
            assert "deleted, or donated" in str(error), (i, error)
        else:
            raise AssertionError(i)
"""


def test_a_use_of_a_donated_array_writes_nothing_to_stderr():
    env = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}  # which would hide it
    done = subprocess.run([sys.executable, "-c", USES_OF_DONATED], env=env, capture_output=True, text=True, check=False)
    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)


def test_donation_reaches_the_leaves_by_position_and_name():
    f = cj.jit(lambda n, d, *, e: d["x"] + e * n, static_argnums=0, donate_argnums=1, donate_argnames="e")
    d, e = {"x": cj.device_put(X)}, cj.device_put(X)
    np.testing.assert_array_equal(3 * X, f(2, d, e=e))
    assert d["x"].is_deleted() and e.is_deleted()


def test_donating_numpy_arrays_leaves_them_alone():
    x = X.copy()
    f = cj.jit(lambda x: x * 2.0, donate_argnums=0)
    np.testing.assert_array_equal(2 * X, f(x))
    np.testing.assert_array_equal(X, x)


def test_unused_arguments_are_not_passed_on_unless_wanted():
    f, g = (cj.jit(lambda x, unused: x + 1.0, keep_unused=keep) for keep in (False, True))
    for fun in (f, g):
        for _ in range(2):
            np.testing.assert_array_equal(X + 1, fun(X, np.zeros(5)))
    assert (False, True) == tuple(["%arg1" in fun.lower(X, 1.0).as_text() for fun in (f, g)])


# Stages

def test_trace_lower_compile():
    @cj.jit
    def f(x, d):
        return {"y": x * d["w"]}

    traced = f.trace(cj.ShapeDtypeStruct((3,), np.float64), {"w": 2.0})
    assert ["f64[3]", "~f64[]"] == [str(a) for a in traced.in_avals]
    assert {"y": cj.ShapeDtypeStruct((3,), np.float64)} == traced.out_info == f.eval_shape(X, {"w": 2.0})
    assert "stablehlo.multiply" in f.lower(X, {"w": 2.0}).as_text()
    compiled = traced.lower().compile()
    np.testing.assert_array_equal(2 * X, compiled(X, {"w": 2.0})["y"])
    assert "multiply" in compiled.as_text() and "flops" in compiled.cost_analysis()


def test_a_compiled_function_takes_only_what_it_was_compiled_for():
    compiled = cj.jit(lambda x, n: x["a"] * n, static_argnums=1).lower({"a": X}, 2).compile()
    np.testing.assert_array_equal(2 * X, compiled({"a": X}, 2))
    with pytest.raises(CorejaxTypeError, match=r"args\[0\]\['a'\] has a different type") as caught:
        compiled({"a": X[:2]}, 2)
    assert ("f64[2]", "f64[3]") == (caught.value.got, caught.value.wanted)
    with pytest.raises(CorejaxTypeError, match="doesn't have the structure"):
        compiled({"b": X}, 2)


def test_clear_caches_forgets_all():
    traces = Traces()
    f = cj.jit(traces)
    f(X)
    cj.clear_caches()
    f(X)
    assert 2 == traces.count
