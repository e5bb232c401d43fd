"""The laws that every structural primitive keeps, checked on a function and its arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj

Fun = Callable[..., Any]


def check_value(fun: Fun, args: Sequence[Any], expected: Any) -> None:
    """Eager and compiled give the expected array, dtype and shape included."""
    expected = np.asarray(expected)
    for call in (fun, cj.jit(fun)):
        out = call(*args)
        assert out.shape == expected.shape
        assert out.dtype == expected.dtype
        assert_allclose(np.asarray(out, _exact(out.dtype)), expected.astype(_exact(expected.dtype)), rtol=1e-12)


def _exact(dtype: Any) -> Any:
    return np.float64 if np.dtype(dtype).kind == "V" else dtype


def check_compiled(fun: Fun, args: Sequence[Any], rtol: float = 1e-12) -> None:
    """Eager and compiled agree."""
    for eager, compiled in zip(cj.tree.leaves(fun(*args)), cj.tree.leaves(cj.jit(fun)(*args)), strict=True):
        assert eager.shape == compiled.shape
        assert eager.dtype == compiled.dtype
        assert_allclose(np.asarray(eager, _exact(eager.dtype)), np.asarray(compiled, _exact(compiled.dtype)), rtol=rtol)


def check_vmap(fun: Fun, args: Sequence[Any], size: int = 3, seed: int = 0) -> None:
    """Mapped along every axis of every subset of operands, it equals a loop."""
    rng = np.random.default_rng(seed)
    places: list[list[int | None]] = [[None, *range(np.ndim(x) + 1)] for x in args]
    for in_axes in product(*places):
        if all(axis is None for axis in in_axes):
            continue
        mapped = [x if axis is None else _varied(rng, x, size, axis) for x, axis in zip(args, in_axes, strict=True)]
        slices = [[x if axis is None else np.take(x, i, axis) for x, axis in zip(mapped, in_axes, strict=True)]
                  for i in range(size)]
        expected = np.stack([np.asarray(fun(*one)) for one in slices])
        assert_allclose(np.asarray(cj.vmap(fun, in_axes=tuple(in_axes))(*mapped)), expected, rtol=1e-12,
                        err_msg=f"in_axes={in_axes}")
    assert_allclose(np.asarray(cj.jit(cj.vmap(fun, in_axes=tuple(in_axes), out_axes=-1))(*mapped)),
                    np.moveaxis(expected, 0, -1), rtol=1e-12)


def _varied(rng: np.random.Generator, x: Any, size: int, axis: int) -> Any:
    x = np.asarray(x)
    if x.dtype.kind in "iu":
        parts = [x + rng.integers(0, 3, x.shape).astype(x.dtype) for _ in range(size)]
    else:
        parts = [rng.standard_normal(x.shape).astype(x.dtype) for _ in range(size)]
    return np.stack(parts, axis)


def check_derivatives(fun: Fun, args: Sequence[Any], seed: int = 1) -> None:
    """jvp agrees with differences, vjp with jvp by the dot-product identity, both also when compiled."""
    rng = np.random.default_rng(seed)
    floats = [i for i, x in enumerate(args) if np.asarray(x).dtype.kind == "f"]

    def of_floats(*xs: Any) -> Any:
        full = list(args)
        for i, x in zip(floats, xs, strict=True):
            full[i] = x
        return fun(*full)

    xs = [np.asarray(args[i], np.float64) for i in floats]
    dots = [rng.standard_normal(x.shape) for x in xs]
    out, out_dot = cj.jvp(of_floats, tuple(xs), tuple(dots))
    h = 1e-4
    ends = [np.asarray(of_floats(*[x + s * h * d for x, d in zip(xs, dots, strict=True)])) for s in (1, -1)]
    assert_allclose(np.asarray(out_dot), (ends[0] - ends[1]) / (2 * h), rtol=1e-6, atol=1e-7)
    ct = rng.standard_normal(out.shape)
    for transform in (lambda f: f, cj.jit):
        backs = transform(lambda ct, *xs: cj.vjp(of_floats, *xs)[1](ct))(ct, *xs)
        together = sum(float(np.vdot(np.asarray(b), d)) for b, d in zip(backs, dots, strict=True))
        assert_allclose(together, float(np.vdot(ct, np.asarray(out_dot))), rtol=1e-9, atol=1e-9)
    # each operand alone, the others not differentiated
    for k, x in enumerate(xs):
        def alone(x: Any, k: int = k) -> Any:
            return of_floats(*[x if i == k else other for i, other in enumerate(xs)])
        (back,) = cj.vjp(alone, x)[1](ct)
        assert_allclose(np.asarray(back), np.asarray(backs[k]), rtol=1e-9, atol=1e-12)
        assert back.shape == x.shape


def check_all(fun: Fun, args: Sequence[Any], expected: Any) -> None:
    """Value, compilation, batching and derivatives."""
    check_value(fun, args, expected)
    check_derivatives(fun, args)
    check_vmap(fun, args)


__all__ = ["assert_allclose", "assert_array_equal", "check_all", "check_compiled", "check_derivatives", "check_value",
           "check_vmap"]
