"""Functions of elements beside NumPy's, for every dtype at its special values; each eagerly twice, and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax.core import from_array_like
from corejax.errors import CorejaxError
from elementwise_points import BINARY, DTYPES, UNARY, is_subnormal, many, off, pairs, report, special

Operands = tuple[np.ndarray, ...]

#: Whose zeros may have the other sign: of two zeros, either is the larger.
SIGNS_OF_ZEROS = {"maximum", "minimum", "fmax", "fmin", "nextafter"}

#: Where results are XLA's, and not NumPy's.
DIFFERENT: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("floor_divide", "divmod"), lambda x, y: (y == 0) & (x.dtype.kind in "biu")),
    **dict.fromkeys(("pow", "float_power"), lambda x, y: (x == 0) & (x.dtype.kind == "c")),
    "divide": lambda x, y: (y == 0) & (x.dtype.kind == "c"),
    "reciprocal": lambda x: (x == 0) & (x.dtype.kind == "c"),
    "spacing": lambda x: (x < 0) & (x.dtype == np.float16),  # NumPy's has a sign of its own there
}

#: What NumPy refuses; and the conjugates of booleans are integers there.
REFUSED_BY_NUMPY = {("positive", "bool"), ("conj", "bool"), ("logaddexp", "complex64"),
                    ("logaddexp", "complex128"), ("logaddexp2", "complex64"), ("logaddexp2", "complex128"),
                    ("ldexp", "uint64")}

#: Computed step by step in bfloat16; and what depends on the distance of numbers.
INEXACT_IN_BFLOAT16 = {"sinc", "spacing", "nextafter"}


def _usual(name: str, operands: Operands) -> Operands:
    """Without what NumPy refuses as a whole: negative powers of integers."""
    if name == "pow" and operands[0].dtype.kind == "i":
        return operands[0], np.where(operands[1] < 0, 2, operands[1])
    return operands


def _of_numpy(name: str, operands: Operands, out: np.dtype) -> tuple[np.ndarray, ...]:
    """NumPy's results, from operands in the dtype that the result has here if it is of a wider kind."""
    dtype, kinds = operands[0].dtype, "biufVc"
    if dtype == "bfloat16":
        found = many(getattr(np, name)(*[x.astype(np.float32) for x in operands]))
        return tuple([x.astype(dtype) if x.dtype == np.float32 else x for x in found])
    if out.kind != "b" and kinds.index(out.kind) > max(kinds.index(dtype.kind), 2 * (dtype.kind == "i")):
        operands = tuple([x if name == "ldexp" and i else x.astype(out) for i, x in enumerate(operands)])
    return tuple([np.asarray(x) for x in many(getattr(np, name)(*operands))])


def _refuses(function: Callable[..., Any], *args: Any) -> bool:
    try:
        function(*args)
    except (CorejaxError, TypeError):
        return True
    return False


def _check(names: list[str], operands: Operands) -> None:
    dtype, found, wrong = operands[0].dtype, {}, []
    usual = {name: _usual(name, operands) for name in names}
    for name in names:
        arrays, f = [from_array_like(x) for x in usual[name]], getattr(jnp, name)
        by_numpy = (name, dtype.name) in REFUSED_BY_NUMPY or _refuses(_of_numpy, name, usual[name], dtype)
        if _refuses(f, *arrays):
            wrong += [f"{name} of {dtype} is refused"] if not by_numpy else []
            continue
        found[name] = many(f(*arrays))
        if by_numpy:
            wrong += [f"{name} of {dtype} is not refused"] if (name, dtype.name) not in REFUSED_BY_NUMPY else []
            continue
        outs, signed = found[name], name not in SIGNS_OF_ZEROS
        mask = ~DIFFERENT.get(name, lambda *xs: False)(*usual[name])
        for again, out in zip(many(f(*arrays)), outs, strict=True):
            wrong += report(f"{name}, again", off(again, out, signed=signed), usual[name], again, out)
        if dtype == "bfloat16" and name in INEXACT_IN_BFLOAT16:
            continue
        for expected, out in zip(_of_numpy(name, usual[name], outs[0].dtype), outs, strict=True):
            wrong += report(name, off(out, expected, signed=signed) & mask, usual[name], out, expected)
    plain = ~np.any([is_subnormal(x) for x in operands], axis=0)
    compiled = cj.jit(lambda operands: {name: getattr(jnp, name)(*operands[name]) for name in found})(
        {name: [x[plain] for x in usual[name]] for name in found})
    for name, outs in found.items():
        for out, eager in zip(many(compiled[name]), outs, strict=True):
            eager = np.asarray(eager)[plain]
            differs = off(out, eager, signed=name not in SIGNS_OF_ZEROS, flushed=True, ulps=64.0)
            wrong += report(f"{name}, compiled", differs, tuple([x[plain] for x in usual[name]]), out, eager)
    assert [] == wrong


def _dtypes(quick: str) -> list[Any]:
    """All of them; those not named are tested by `make test-all`."""
    return [dtype if dtype in quick.split() else pytest.param(dtype, marks=pytest.mark.exhaustive) for dtype in DTYPES]


@pytest.mark.parametrize("dtype", _dtypes("bool uint8 int32 bfloat16 float32 float64"))
def test_functions_of_one_operand_are_numpys(dtype: str) -> None:
    _check(UNARY, (special(dtype),))


@pytest.mark.parametrize("dtype", _dtypes("bool uint8 int32 bfloat16 float32 complex128"))
def test_functions_of_two_operands_are_numpys(dtype: str) -> None:
    _check(BINARY, pairs(dtype))
