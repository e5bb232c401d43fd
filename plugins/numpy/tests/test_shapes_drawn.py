"""Shapes, axes and dtypes that hypothesis draws: what is broadcast, joined, split, moved and edited is as in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import corejax as cj
import corejax.numpy as jnp
from corejax.core import from_array_like
from corejax.errors import CorejaxError

DTYPES = ["bool", "uint8", "int16", "int64", "float32", "float64", "complex64"]

fixed = settings(derandomize=True, deadline=None, max_examples=15, database=None,
                 suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

Draw = Callable[..., Any]


@st.composite
def shapes(draw: Draw, least: int = 0, most: int = 4, sizes: int = 4) -> tuple[int, ...]:
    return tuple(draw(st.lists(st.integers(0, sizes), min_size=least, max_size=most)))


@st.composite
def arrays(draw: Draw, shape: Any = None, dtypes: list[str] = DTYPES) -> np.ndarray:
    """Different elements in any shape and dtype, in any order in memory."""
    shape = draw(shapes()) if shape is None else shape
    dtype, size = draw(st.sampled_from(dtypes)), int(np.prod(shape, dtype=int))
    x = (np.arange(size) % 250 + 1).astype(dtype).reshape(shape) * np.ones((), dtype)
    return np.asfortranarray(x) if draw(st.booleans()) else x


@st.composite
def operands(draw: Draw) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays that broadcast together."""
    shape = draw(shapes())
    parts = [tuple([n if draw(st.integers(0, 3)) else 1 for n in shape])[draw(st.integers(0, len(shape))):]
             for _ in range(2)]
    first = draw(arrays(shape=parts[0], dtypes=["int16", "int64", "float32", "float64"]))
    return first, draw(arrays(shape=parts[1], dtypes=["int64", "float64", "complex64"]))


def _axis(draw: Draw, ndim: int) -> int:
    return int(draw(st.integers(-ndim, ndim - 1)))


def _agree(function: Callable[[Any, Any], Any], x: Any) -> None:
    """NumPy's results, or both refuse: twice, and the types of a program's results."""
    ours = [from_array_like(a) for a in x] if isinstance(x, (list, tuple)) else from_array_like(x)
    try:
        wanted = function(np, x)
    except (ValueError, IndexError, TypeError, ZeroDivisionError):
        with pytest.raises(CorejaxError):
            function(jnp, ours)
        return
    found = [function(jnp, ours), function(jnp, ours), cj.eval_shape(lambda y: function(jnp, y), ours)]
    for which, outs in enumerate(found):
        both = [(outs, wanted)] if hasattr(wanted, "dtype") else [*zip(outs, wanted, strict=True)]
        for out, expected in both:
            assert (expected.shape, expected.dtype) == (out.shape, out.dtype)
            if which < 2:
                np.testing.assert_allclose(out, expected, rtol=1e-14)  # ramps and means are rounded in another order


@fixed
@given(operands(), st.sampled_from(["add", "subtract", "multiply", "maximum", "not_equal", "where",
                                    "broadcast_arrays"]))
def test_operands_are_broadcast(xs: tuple[np.ndarray, np.ndarray], name: str) -> None:
    if name == "where":
        _agree(lambda m, xs: m.where(xs[1] != 2, xs[1], xs[0].astype(xs[1].dtype)), xs)
    elif name == "broadcast_arrays":
        _agree(lambda m, xs: m.broadcast_arrays(*xs), xs)
    elif not {"int64", "int16"} & {x.dtype.name for x in xs} or xs[0].dtype.kind == xs[1].dtype.kind:
        if name != "maximum" or xs[1].dtype.kind != "c":
            _agree(lambda m, xs: getattr(m, name)(*xs), xs)


@fixed
@given(st.data())
def test_arrays_are_joined(data: Any) -> None:
    shape = data.draw(shapes(least=1))
    axis = _axis(data.draw, len(shape))
    dtypes = data.draw(st.sampled_from([["int16", "int64", "bool"], ["float32", "float64", "complex64"]]))
    parts = []
    for _ in range(data.draw(st.integers(1, 3))):
        sizes = list(shape)
        sizes[axis] = data.draw(st.integers(0, 3))
        parts.append(data.draw(arrays(shape=tuple(sizes), dtypes=dtypes)))
    _agree(lambda m, xs: m.concatenate(xs, axis), parts)
    _agree(lambda m, xs: m.concatenate(xs, None), parts)
    for name in ("hstack", "vstack", "dstack", "column_stack"):
        _agree(lambda m, xs, name=name: getattr(m, name)(xs), parts)
    same = [np.zeros(shape, x.dtype) + np.ones((), x.dtype) for x in parts]
    _agree(lambda m, xs: m.stack(xs, axis), same)
    _agree(lambda m, xs: m.block([[xs[0], xs[-1]], [xs[-1], xs[0]]]), same)
    _agree(lambda m, xs: m.append(xs[0], xs[-1], axis), parts)


@fixed
@given(arrays(), st.data())
def test_arrays_are_split(x: np.ndarray, data: Any) -> None:
    axis = _axis(data.draw, x.ndim) if x.ndim else 0
    count, cuts = data.draw(st.integers(1, 5)), data.draw(st.lists(st.integers(-5, 6), max_size=3))
    for name in ("split", "array_split"):
        for where in (count, cuts):
            _agree(lambda m, x, name=name, where=where: getattr(m, name)(x, where, axis), x)
    for name in ("hsplit", "vsplit", "dsplit"):
        _agree(lambda m, x, name=name: getattr(m, name)(x, count), x)
    if x.ndim:
        _agree(lambda m, x: tuple(m.unstack(x, axis=axis)), x)


@fixed
@given(arrays(), st.data())
def test_elements_are_repeated(x: np.ndarray, data: Any) -> None:
    counts = tuple(data.draw(st.lists(st.integers(0, 3), max_size=4)))
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1)) if x.ndim else None
    size = x.size if axis is None else x.shape[axis]
    _agree(lambda m, x: m.tile(x, counts), x)
    _agree(lambda m, x: m.repeat(x, len(counts), axis), x)
    each = np.arange(size) % 3
    _agree(lambda m, x: m.repeat(x, each, axis), x)
    shape = data.draw(shapes())
    _agree(lambda m, x: m.resize(x, shape), x)
    _agree(lambda m, x: m.broadcast_to(x, (*counts, *x.shape)), x)


@fixed
@given(arrays(), st.data())
def test_elements_are_moved(x: np.ndarray, data: Any) -> None:
    ndim = x.ndim
    shift = data.draw(st.integers(-7, 7))
    _agree(lambda m, x: m.roll(x, shift), x)
    _agree(lambda m, x: m.flip(x), x)
    if not ndim:
        return
    axis, other = _axis(data.draw, ndim), _axis(data.draw, ndim)
    order = tuple(data.draw(st.permutations(range(ndim))))
    target = tuple(data.draw(st.permutations(range(-ndim, 0))))
    for function in (lambda m, x: m.roll(x, (shift, 2), (axis, other)), lambda m, x: m.roll(x, shift, axis),
                     lambda m, x: m.flip(x, axis), lambda m, x: m.swapaxes(x, axis, other),
                     lambda m, x: m.moveaxis(x, axis, other), lambda m, x: m.moveaxis(x, order, target),
                     lambda m, x: m.transpose(x, order), lambda m, x: m.transpose(x),
                     lambda m, x: m.rollaxis(x, axis, other), lambda m, x: m.rot90(x, shift, (axis, other)),
                     lambda m, x: m.expand_dims(x, (axis, ndim)), lambda m, x: m.squeeze(x),
                     lambda m, x: m.fliplr(x), lambda m, x: m.flipud(x), lambda m, x: m.matrix_transpose(x)):
        _agree(function, x)


@fixed
@given(arrays(), st.data())
def test_arrays_are_reshaped(x: np.ndarray, data: Any) -> None:
    factors, rest = [], x.size
    while rest > 1:
        factor = data.draw(st.sampled_from([d for d in range(2, rest + 1) if rest % d == 0]))
        factors.append(factor)
        rest //= factor
    shape = [*factors, 1] if x.size else [0, 3]
    unknown = list(shape)
    unknown[data.draw(st.integers(0, len(shape) - 1))] = -1
    for order in "CF":
        for sizes in (tuple(shape), tuple(unknown), -1):
            _agree(lambda m, x, order=order, sizes=sizes: m.reshape(x, sizes, order=order), x)
        _agree(lambda m, x, order=order: m.ravel(x, order), x)
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        _agree(lambda m, x, name=name: getattr(m, name)(x), x)


@fixed
@given(arrays(), st.data())
def test_elements_are_inserted_and_deleted(x: np.ndarray, data: Any) -> None:
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1)) if x.ndim else None
    size = x.size if axis is None else x.shape[axis]
    place = data.draw(st.integers(-size, size))
    places = data.draw(st.lists(st.integers(-size, size), max_size=4))
    part = slice(*data.draw(st.tuples(*[st.none() | st.integers(-6, 6)] * 2, st.sampled_from([None, 1, 2, -1, -2]))))
    for where in (place, places, part, np.arange(size) % 2 == 0):
        _agree(lambda m, x, where=where: m.delete(x, where, axis), x)
        _agree(lambda m, x, where=where: m.insert(x, where, 1, axis), x)
    if axis is not None and x.size:
        row = np.ones([n for d, n in enumerate(x.shape) if d != axis % x.ndim])
        _agree(lambda m, x: m.insert(x, place, row, axis), x)


WIDTHS = st.integers(0, 4)


@fixed
@given(arrays(dtypes=["int64", "float64", "uint8"]), st.data())
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap", "linear_ramp", "maximum",
                                  "minimum", "mean", "median"])
def test_arrays_are_padded(mode: str, x: np.ndarray, data: Any) -> None:
    pairs = [(data.draw(WIDTHS), data.draw(WIDTHS)) for _ in range(x.ndim)] or 1
    options: dict[str, Any] = {}
    if mode == "constant":
        options = {"constant_values": data.draw(st.sampled_from([0, 3, (1, 2)]))}
    elif mode in ("reflect", "symmetric"):
        options = {"reflect_type": data.draw(st.sampled_from(["even", "odd"]))}
    elif mode == "linear_ramp":
        options = {"end_values": data.draw(st.sampled_from([0, (1, 9)]))}
    elif mode not in ("edge", "wrap"):
        options = {"stat_length": data.draw(st.sampled_from([None, 1, (2, 3)]))}
    _agree(lambda m, x: m.pad(x, pairs, mode, **options), x)
