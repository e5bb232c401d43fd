"""That the kernel computes what it says. test_native_rules.py checks the primitive's rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax.errors import CorejaxRuntimeError, CorejaxTypeError
from corejax.plugin import define, hookimpl
from corejax_native import DecayingSum, decaying_sum
from corejax_native.benchmark import by_callback

X = np.random.default_rng(0).normal(size=(3, 4, 5))


def by_numpy(x: Any, decay: float, reverse: bool) -> Any:
    """The sums, one step at a time."""
    out, steps = np.zeros_like(x), range(x.shape[-1])
    before = np.zeros_like(x[..., 0])
    for t in reversed(steps) if reverse else steps:
        before = out[..., t] = x[..., t] + x.dtype.type(decay) * before
    return out


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("params", [{}, {"decay": 0.5}, {"decay": 0.5, "reverse": True}])
def test_it_is_the_sum_that_forgets(dtype: Any, params: Any) -> None:
    x = X.astype(dtype)
    wanted = by_numpy(x, **{"decay": 0.9, "reverse": False, **params})
    for function in (decaying_sum, by_callback):
        out = cj.jit(lambda x, function=function: function(x, **params))(x)
        assert out.dtype == dtype
        np.testing.assert_allclose(out, wanted, rtol=1e-5 if dtype is np.float32 else 1e-13)


def test_any_axis_may_be_the_batch() -> None:
    for axis in range(3):
        mapped = cj.vmap(decaying_sum, in_axes=axis)(X)
        np.testing.assert_allclose(mapped, by_numpy(np.moveaxis(X, axis, 0), 0.9, False), rtol=1e-13)


def test_the_operand_is_left_alone_though_the_kernel_may_write_there() -> None:
    kept, total = cj.jit(lambda x: (x + 1.0, decaying_sum(x + 1.0)))(X)
    np.testing.assert_allclose(kept, X + 1.0)
    np.testing.assert_allclose(total, by_numpy(X + 1.0, 0.9, False), rtol=1e-13)


@pytest.mark.parametrize("operand", [np.ones(3, np.int32), np.float64(1.0)])
def test_it_refuses_what_the_kernel_can_not_sum(operand: Any) -> None:
    with pytest.raises(CorejaxTypeError, match="decaying_sum: wrong operand"):
        decaying_sum(operand)


def test_a_call_that_the_kernel_can_not_read_is_an_error() -> None:
    class Mistaken(DecayingSum):
        name = "mistaken_sum"

        @hookimpl
        def xla_translation(self, ctx: Any, args: Any, *, decay: float, reverse: bool) -> Any:
            wrong = {"decay": 1, "reverse": False}  # the kernel reads a double
            return ctx.custom_call("corejax-native.decaying_sum", args, backend_config=wrong)[0]

    with pytest.raises(CorejaxRuntimeError, match="a native kernel can't read the call") as caught:
        np.asarray(define(Mistaken())(X))
    assert "expected F64 but got S64" in str(caught.value.got)
