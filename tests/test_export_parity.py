"""What corejax exports runs in jax: the artifact alone in its runtime, and as a function that jax itself exported."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.export import export

jax = pytest.importorskip("jax")
jax_export = pytest.importorskip("jax.export")

X = np.linspace(-1.0, 1.5, 4)
W = np.arange(12.0).reshape(3, 4) / 7.0


def network(w, x):
    hidden = lax.tanh(w @ x)
    grown = lax.fori_loop(0, 4, lambda i, c: lax.sinh(c) * 0.25 + x.sum(), hidden)
    return grown, lax.cond(x[0] < 0.0, lambda: hidden.sum(), lambda: grown.max())


def sorts(w, x):
    return lax.argmax(w, 1, np.int32), lax.atan(w) * lax.acos(x * 0.5), (w > 1.0)


def gradient(w, x):
    return cj.grad(lambda w, x: (network(w, x)[0] ** 2).sum(), (0, 1))(w, x)


FUNCTIONS = [network, sorts, gradient]


@pytest.fixture(autouse=True)
def wide():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def run_in_jaxs_runtime(artifact, *args):
    """The results of a portable artifact, read by jax's bindings and run by jax's client."""
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jaxlib.mlir.dialects import stablehlo

    device = jax.devices("cpu")[0]
    module = stablehlo.deserialize_portable_artifact(mlir.make_ir_context(), artifact)
    loaded = device.client.compile_and_load(module, xla_client.DeviceList((device,)), xla_client.CompileOptions())
    outs = loaded.execute_sharded([jax.device_put(x, device) for x in args])
    return [np.asarray(out[0]) for out in outs.disassemble_into_single_device_arrays()]


def as_jaxs_own(exported, *args):
    """An exported function of jax's of the same types, with our program in it."""
    outs = [np.zeros(aval.shape, aval.dtype) for aval in exported.out_avals]
    stand_in = jax_export.export(jax.jit(lambda *xs: outs), platforms=["cpu"])(*args)
    return dataclasses.replace(stand_in, mlir_module_serialized=exported.portable_artifact(),
                               module_kept_var_idx=tuple(range(len(args))), _get_vjp=None)


@pytest.mark.parametrize("fun", FUNCTIONS, ids=lambda fun: fun.__name__)
def test_jaxs_runtime_gives_the_same_values(fun):
    exported = export(fun)(W, X)
    wanted = cj.tree.leaves(exported.call(W, X))
    got = run_in_jaxs_runtime(exported.portable_artifact(), W, X)
    for x, y in zip(wanted, got, strict=True):
        assert np.asarray(x).dtype == y.dtype
        np.testing.assert_array_equal(np.asarray(x), y)


@pytest.mark.parametrize("fun", FUNCTIONS, ids=lambda fun: fun.__name__)
def test_jax_calls_it_as_a_function_of_its_own_within_its_programs(fun):
    exported = export(fun)(W, X)
    loaded = as_jaxs_own(exported, W, X)
    wanted = cj.tree.leaves(cj.jit(lambda w, x: exported.call(w, x * 2.0))(W, X))
    got = jax.tree.leaves(jax.jit(lambda w, x: loaded.call(w, x * 2.0))(W, X))
    for x, y in zip(wanted, got, strict=True):
        np.testing.assert_allclose(np.asarray(x, np.float64), np.asarray(y, np.float64), rtol=1e-13)


def test_bytes_that_jax_has_exported_are_told_apart():
    pytest.importorskip("flatbuffers")  # jax writes its bytes with it
    data = jax_export.export(jax.jit(lambda x: x + 1.0))(X).serialize()
    with pytest.raises(cj.errors.CorejaxValueError, match="not an exported function of corejax") as caught:
        cj.export.deserialize(bytes(data))
    assert "use jax.export" in caught.value.todo
