"""Random programs of collectives under vmap have jax's values and derivatives."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from exhaustive import exhaustive_unless
from random_collectives import program

jax: Any = pytest.importorskip("jax")

#: How many programs there are, and each how many of them `make test` tries.
ALL, EVERY = 240, 8


@pytest.fixture(autouse=True)
def _doubles() -> Any:
    with jax.enable_x64(True):
        yield


@pytest.mark.sample(12)
@pytest.mark.parametrize("seed", exhaustive_unless(lambda seed: seed % EVERY == 0, range(ALL)))
def test_random_programs_agree_with_jax_in_values_and_derivatives(seed: int) -> None:
    subject, rng = program(seed), np.random.default_rng(seed)
    ours, theirs = subject.mapped(lax, cj.vmap), subject.mapped(jax.lax, jax.vmap)
    x = subject.operand(rng)
    x_dot, y_bar = rng.standard_normal(x.shape), rng.standard_normal(jax.eval_shape(theirs, x).shape)

    def everything(ad: Any, function: Any, x: Any, x_dot: Any, y_bar: Any) -> list[Any]:
        out, out_dot = ad.jvp(function, (x,), (x_dot,))
        second = ad.jvp(ad.grad(lambda x: (function(x) * y_bar).sum()), (x,), (x_dot,))[1]
        return [out, out_dot, ad.vjp(function, x)[1](y_bar)[0], second]

    wanted = jax.jit(partial(everything, jax, theirs))(x, x_dot, y_bar)
    for found in (everything(cj, ours, x, x_dot, y_bar), cj.jit(partial(everything, cj, ours))(x, x_dot, y_bar)):
        for what, theirs_out, out in zip(("value", "tangent", "cotangent", "second order"), wanted, found, strict=True):
            compare(f"{what} of {subject}", theirs_out, out)
    jitted_within = subject.mapped(lax, lambda f, **how: cj.vmap(cj.jit(f), **how))
    compare(f"compiled within: {subject}", wanted[0], jitted_within(x))


@pytest.mark.parametrize("seed", exhaustive_unless(lambda seed: seed % EVERY == 1, range(ALL)))
def test_gradients_within_the_maps_agree_with_jax(seed: int) -> None:
    subject, rng = program(seed), np.random.default_rng(seed)
    if "all_to_all" in str(subject):
        pytest.skip("jax 0.10 fails to transpose all_to_all within maps")

    def mapped(grad: Any, vmap: Any, lax: Any) -> Any:
        function = grad(lambda x: (subject.body(lax, x) * 1.5).sum())
        for name, dim in zip(reversed(subject.names), reversed(subject.dims), strict=True):
            function = vmap(function, in_axes=dim, axis_name=name)
        return function

    x = subject.operand(rng)
    compare(str(subject), jax.jit(mapped(jax.grad, jax.vmap, jax.lax))(x), mapped(cj.grad, cj.vmap, lax)(x))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.uint8, np.bool_, np.complex64])
def test_results_have_jaxs_types(dtype: Any) -> None:
    x = (np.arange(12).reshape(3, 4) % 3).astype(dtype)
    calls = [lambda lax, x: lax.psum(x, "i"), lambda lax, x: lax.pmean(x, "i"), lambda lax, x: lax.pmax(x, "i"),
             lambda lax, x: lax.all_gather(x, "i"), lambda lax, x: lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 0)]),
             lambda lax, x: lax.axis_index("i")]
    for call in calls:
        wanted = jax.vmap(lambda x, call=call: call(jax.lax, x), axis_name="i")(x)
        found = cj.vmap(lambda x, call=call: call(lax, x), axis_name="i")(x)
        assert (wanted.shape, np.dtype(wanted.dtype)) == (found.shape, found.dtype)
        np.testing.assert_allclose(np.asarray(wanted, np.complex128), np.asarray(found, np.complex128), rtol=1e-3)


def compare(subject: str, wanted: Any, found: Any) -> None:
    scale = max(1.0, float(np.abs(np.asarray(wanted)).max(initial=0.0)))
    np.testing.assert_allclose(np.asarray(found) / scale, np.asarray(wanted) / scale, rtol=1e-9, atol=1e-11,
                               err_msg=subject)
