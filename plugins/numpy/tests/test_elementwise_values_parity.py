"""Values of functions of elements at special points beside jax's: where they aren't NumPy's, they are XLA's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from elementwise_points import BINARY, UNARY, is_subnormal, many, off, pairs, report, special

jax = pytest.importorskip("jax")


#: What jax doesn't take, or never returns from; and what has another dtype there.
LEFT_OUT = {"gcd", "lcm", "float_power", "positive", "square"}

#: Whose zeros have NumPy's signs.
SIGNS_OF_ZEROS = {"sign", "floor_divide", "divmod", "mod"}

#: Where ours aren't jax's, and why.
OTHERS: dict[str, tuple[Callable[..., Any], str]] = {
    "modf": (lambda x: np.signbit(x) | ~np.isfinite(x), "the fraction has the sign of x, and of infinities is 0"),
    "pow": (lambda x, y: (x.dtype.kind in "iu") & ((y < 0) | (y > 63)),
            "there, six bits of an integer exponent count; here all, and negative powers are 0 but for 1 and -1"),
    "logaddexp2": (lambda x, y: x == y, "1 more than both, exactly"),
}


def _values(namespace: Any, compiled: Any, names: list[str], operands: Any) -> dict[str, Any]:
    taken = [name for name in names if _takes(name, operands)]
    found = compiled(lambda *xs: [getattr(namespace, name)(*xs) for name in taken])(*operands)
    return dict(zip(taken, map(many, found), strict=True))


def _takes(name: str, operands: Any) -> bool:
    try:
        ours = many(cj.eval_shape(lambda *xs: getattr(jnp, name)(*xs), *operands))
        theirs = many(jax.eval_shape(lambda *xs: getattr(jax.numpy, name)(*xs), *operands))
    except (TypeError, ValueError):
        return False
    return [out.dtype for out in ours] == [out.dtype for out in theirs]


MORE = [pytest.param(dtype, marks=pytest.mark.exhaustive) for dtype in ("bool", "uint8", "bfloat16", "complex64")]


@pytest.mark.parametrize("dtype", ["int32", "float32", *MORE])
@pytest.mark.parametrize("count", [1, 2])
def test_values_are_those_of_jax(count: int, dtype: str) -> None:
    operands = (special(dtype),) if count == 1 else pairs(dtype)
    plain = ~np.any([is_subnormal(x) for x in operands], axis=0)
    operands = tuple([x[plain] for x in operands])
    names = [name for name in (UNARY if count == 1 else BINARY) if name not in LEFT_OUT]
    wanted, found, wrong = _values(jax.numpy, jax.jit, names, operands), _values(jnp, cj.jit, names, operands), []
    for name, outs in found.items():
        mask = ~OTHERS[name][0](*operands) if name in OTHERS else True
        for out, expected in zip(outs, wanted[name], strict=True):
            differs = off(out, expected, 64.0, signed=name not in SIGNS_OF_ZEROS, flushed=True)
            wrong += report(name, differs & mask, operands, out, expected)
    assert len(found) >= 20
    assert [] == wrong
