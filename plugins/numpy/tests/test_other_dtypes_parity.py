"""Dtypes and weak types of what creates, chooses, joins and edits beside jax's: with 64-bit types, and without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax.errors import CorejaxError
from elementwise_points import many

jax = pytest.importorskip("jax")

OPERANDS = ("bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64")

#: Of a namespace, an array, and a Python number.
CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "where": lambda m, x, n: m.where(x != 0, x, n), "where of numbers": lambda m, x, n: m.where(x != 0, n, 2),
    "where of the other": lambda m, x, n: m.where(x != 0, n, x),
    "clip": lambda m, x, n: m.clip(x, 0, n) if type(n) is not complex else x,
    "select": lambda m, x, n: m.select([x != 0], [x], n),
    "choose": lambda m, x, n: m.choose(np.array([0, 1]), [x, n], mode="clip"),
    "nan_to_num": lambda m, x, n: m.nan_to_num(x), "round": lambda m, x, n: m.round(x, 1) if x.dtype != bool else x,
    "asarray": lambda m, x, n: m.asarray(n), "array": lambda m, x, n: m.array([n, 1]),
    "full": lambda m, x, n: m.full(2, n),
    "full of a dtype": lambda m, x, n: m.full(2, 1, x.dtype), "full_like": lambda m, x, n: m.full_like(x, 1),
    "full_like of a number": lambda m, x, n: m.full_like(n, 1), "zeros": lambda m, x, n: m.zeros(2),
    "zeros_like of a number": lambda m, x, n: m.zeros_like(n), "ones of int": lambda m, x, n: m.ones(2, int),
    "arange": lambda m, x, n: m.arange(3), "arange of floats": lambda m, x, n: m.arange(0.0, 2.5),
    "arange of numbers": lambda m, x, n: m.arange(0, 3, n) if type(n) is not complex else x,
    "arange of a dtype": lambda m, x, n: m.arange(3, dtype=np.float32),
    "linspace": lambda m, x, n: m.linspace(0, n, 3), "linspace of arrays": lambda m, x, n: m.linspace(x, 3, 4),
    "logspace": lambda m, x, n: m.logspace(0, 2, 3), "geomspace": lambda m, x, n: m.geomspace(1, 8, 3),
    "concatenate": lambda m, x, n: m.concatenate([x, np.ones(2, "int32")]), "stack": lambda m, x, n: m.stack([x, x]),
    "stack of numbers": lambda m, x, n: m.stack([m.asarray(n), m.asarray(2)]),
    "append": lambda m, x, n: m.append(x, m.asarray(n)), "hstack": lambda m, x, n: m.hstack([x, m.asarray(n)]),
    "vstack": lambda m, x, n: m.vstack([x, x]), "block": lambda m, x, n: m.block([x, m.asarray(n)]),
    "insert": lambda m, x, n: m.insert(x, 1, 1), "delete": lambda m, x, n: m.delete(x, 0),
    "repeat": lambda m, x, n: m.repeat(x, 2), "tile": lambda m, x, n: m.tile(m.asarray(n), 2),
    "pad": lambda m, x, n: m.pad(x, 1), "pad by means": lambda m, x, n: m.pad(x, 1, mode="mean"),
    "roll": lambda m, x, n: m.roll(x, 1), "reshape": lambda m, x, n: m.reshape(m.asarray(n), (1, 1)),
    "atleast_2d": lambda m, x, n: m.atleast_2d(m.asarray(n)), "broadcast_to": lambda m, x, n: m.broadcast_to(n, (2,)),
    "broadcast_arrays": lambda m, x, n: m.broadcast_arrays(x, m.asarray(n)), "isclose": lambda m, x, n: m.isclose(x, n),
    "allclose": lambda m, x, n: m.allclose(x, n), "array_equal": lambda m, x, n: m.array_equal(x, x),
    "astype": lambda m, x, n: m.astype(m.asarray(n), "complex64"), "copy": lambda m, x, n: m.copy(m.asarray(n)),
    "vectorize": lambda m, x, n: m.vectorize(lambda x: x * n)(x), "fromfunction": lambda m, x, n: m.fromfunction(
        lambda i: i * n, (3,)), "piecewise": lambda m, x, n: m.piecewise(x, [x != 0], [1, 0]),
    "squeeze": lambda m, x, n: m.squeeze(m.asarray(n)), "unstack": lambda m, x, n: m.unstack(x),
    "eye": lambda m, x, n: m.eye(2), "tri": lambda m, x, n: m.tri(2), "diag": lambda m, x, n: m.diag(x),
    "meshgrid": lambda m, x, n: m.meshgrid(x, m.asarray(n)), "unpackbits": lambda m, x, n: m.unpackbits(
        np.zeros(2, "uint8")), "apply_along_axis": lambda m, x, n: m.apply_along_axis(lambda v: v[0] * n, 0, x),
    "sum": lambda m, x, n: m.sum(x), "mean": lambda m, x, n: m.mean(x), "cumsum": lambda m, x, n: m.cumsum(x),
}

#: What isn't jax's, and why.
OTHERS: dict[str, str] = {
    "choose": "weak where the choices are weak together, as in `where`", "tri": "float64, as in NumPy; there float32",
    **dict.fromkeys(("isclose", "allclose"), "weak for weak operands, as comparisons are"),
}


def _types(outs: Any) -> Any:
    return [(x.shape, np.dtype(x.dtype).name, x.weak_type) for x in many(outs)]


def _dtypes(types: Any) -> Any:
    return [(shape, dtype) for shape, dtype, _ in types]


@pytest.mark.parametrize("bits", [64, 32])
@pytest.mark.parametrize("name", CALLS)
def test_dtypes_are_those_of_jax(name: str, bits: int) -> None:
    call, wrong = CALLS[name], []
    with jax.enable_x64(bits == 64), cj.config(default_bits=bits):
        for dtype in OPERANDS:
            x = np.ones(2, np.dtype(dtype))
            if bits == 32 and x.dtype.itemsize == 8 and dtype != "complex64":
                continue
            for n in (3, 0.5, 1 + 2j):
                try:
                    there = _types(jax.eval_shape(lambda x, n=n: call(jax.numpy, x, n), x))
                except (TypeError, ValueError):
                    continue
                try:
                    here = _types(cj.eval_shape(lambda x, n=n: call(jnp, x, n), x))
                except CorejaxError as error:
                    here = str(error).splitlines()[0]
                if name in OTHERS and here != there:
                    assert _dtypes(here) == _dtypes(there) or name == "tri"
                elif here != there and f"{name}: {here}, not {there}" not in wrong:
                    wrong.append(f"{name}: {here}, not {there}")
    assert [] == wrong
