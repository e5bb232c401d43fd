"""`make_jaxpr`, `eval_shape`, `ShapeDtypeStruct`, `device_put` and the rest of the public names."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxError, CorejaxTypeError, CorejaxValueError

X = np.array([1.0, 2.0, 3.0])


# Programs

def test_make_jaxpr_gives_a_closed_program():
    closed = cj.make_jaxpr(lambda x, d: {"y": x * d["k"], "z": 2})(X, {"k": 2.0})
    assert isinstance(closed, cj.core.ClosedJaxpr)
    assert (["f64[3]", "~f64[]"], ["f64[3]", "~i64[]"]) == tuple(
        [[str(a) for a in avals] for avals in (closed.in_avals, closed.out_avals)])
    assert ["mul"] == [eqn.primitive.name for eqn in closed.eqns]


def test_make_jaxpr_takes_types_and_gives_shapes():
    f = cj.make_jaxpr(lambda x, n: (x * n, None), static_argnums=1, return_shape=True)
    closed, shape = f(cj.ShapeDtypeStruct((2, 3), "float32"), 2)
    assert (cj.ShapeDtypeStruct((2, 3), np.float32), None) == shape
    assert [("mul", 2)] == [(eqn.primitive.name, int(eqn.invars[1].val)) for eqn in closed.eqns]
    assert "f32[3]" == str(cj.make_jaxpr(lambda x: x)(cj.core.ShapedArray((3,), "float32")).in_avals[0])


def test_everything_that_the_function_binds_is_in_the_program():
    closed = cj.make_jaxpr(lambda x: x + lax.sin(1.0))(2.0)
    assert ["sin", "add"] == [eqn.primitive.name for eqn in closed.eqns]
    assert 1 == len(cj.make_jaxpr(lambda: lax.full((3,), 1.0))().eqns)


def test_scopes_of_the_caller_do_not_enter_a_kept_program():
    @cj.jit
    def f(x):
        with cj.named_scope("inner"):
            return lax.sin(x)

    with cj.named_scope("outer"):
        (eqn,) = cj.make_jaxpr(f)(1.0).eqns
    assert [("inner",)] == [e.scope for e in eqn.params["jaxpr"].eqns]


def test_staged_programs_are_checked_on_demand():
    with cj.config(debug_typecheck=True):
        cj.make_jaxpr(lambda x: lax.sin(x) * x)(X)
        cj.jit(lambda x: x * 2.0)(X)


def test_make_jaxpr_names_what_is_no_array():
    with pytest.raises(CorejaxTypeError, match=r"make_jaxpr: args\[0\]\[1\] is a str"):
        cj.make_jaxpr(lambda x: x)((1.0, "text"))
    with pytest.raises(CorejaxTypeError, match=r"eval_shape: kwargs\['x'\] is a str"):
        cj.eval_shape(lambda x: x, x="text")


def test_eval_shape_computes_nothing():
    big = cj.ShapeDtypeStruct((1_000_000, 1_000_000), np.float32)
    assert {"y": cj.ShapeDtypeStruct((1_000_000,), np.float32)} == cj.eval_shape(lambda x: {"y": x.sum(axis=0)}, big)


def test_types_as_users_see_them():
    struct = cj.ShapeDtypeStruct([2, np.int64(3)], float)
    assert ((2, 3), np.dtype("float64"), 2, 6, 2) == (struct.shape, struct.dtype, struct.ndim, struct.size, len(struct))
    assert "ShapeDtypeStruct(shape=(2, 3), dtype=float64)" == repr(struct)
    assert struct == cj.ShapeDtypeStruct((2, 3), "float64") != cj.ShapeDtypeStruct((2, 3), "float32")
    assert 1 == len({struct, cj.ShapeDtypeStruct((2, 3), "float64")})
    with pytest.raises(CorejaxError):
        cj.ShapeDtypeStruct((2.5,), float)
    with pytest.raises(TypeError):
        len(cj.ShapeDtypeStruct((), float))


def test_a_type_is_no_value():
    for call in (lambda s: cj.jit(lambda x: x)(s), lambda s: cj.grad(lambda x: x)(s), lambda s: lax.sin(s)):
        with pytest.raises(CorejaxTypeError):
            call(cj.ShapeDtypeStruct((), float))


# Arrays

def test_device_put_and_get_go_through_pytrees():
    put = cj.device_put({"a": X, "b": (1.0, [2])})
    assert all(type(x) is cj.Array and x.devices() == {cj.devices()[0]} for x in cj.tree.leaves(put))
    got = cj.device_get(put)
    np.testing.assert_array_equal(X, got["a"])
    assert type(got["a"]) is np.ndarray and not got["a"].flags.writeable
    assert put is cj.block_until_ready(put)


def test_device_put_copies_what_may_change():
    x = X.copy()
    y = cj.device_put(x)
    x[:] = 0.0
    np.testing.assert_array_equal(X, y)


def test_device_put_of_tracers_does_nothing():
    assert 2.0 == float(cj.grad(lambda x: cj.device_put(x) * 2.0)(1.0))


def test_device_put_names_what_is_no_array_and_what_is_no_device():
    with pytest.raises(CorejaxTypeError, match=r"device_put: x\['a'\]\[0\] is a str"):
        cj.device_put({"a": ["text"]})
    with pytest.raises(CorejaxValueError, match="is not a device"):
        cj.device_put(1.0, "tpu")
    for put in (cj.device_put(1.0).to_device, lambda device: cj.device_put(1.0, device)):
        with pytest.raises(CorejaxValueError, match=r"'cpu' is not a device(.|\n)*pass cj.devices\('cpu'\)\[0\]"):
            put("cpu")
    with pytest.raises(CorejaxValueError, match="no device of platform 'tpu'"):
        cj.devices("tpu")


# Names and imports

def test_all_public_names_are_there():
    for name in cj.__all__:
        assert getattr(cj, name) is not None
    assert len(cj.__all__) == len(set(cj.__all__))


def printed_by(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_import_loads_nothing_late():
    code = ("import sys, corejax; print([m for m in sys.modules if m.partition('.')[0] in "
            "('jaxlib', 'jax', 'pluggy', 'importlib_metadata', 'scipy') or m.startswith('corejax_')])")
    assert "[]" == printed_by(code)


def test_eager_computation_and_grad_on_the_host_need_no_jaxlib():
    code = ("import sys, corejax as cj; assert 12.0 == float(cj.grad(lambda x: x * x * x)(2.0)); "
            "print('jaxlib' in sys.modules)")
    assert "False" == printed_by(code)
