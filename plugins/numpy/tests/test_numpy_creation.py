"""What creates, chooses, compares and asks about arrays, beside NumPy: each call eagerly twice, and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax.core import from_array_like
from corejax.errors import CorejaxError

Call = Callable[[Any], Any]

X = np.array([[1.5, -2.0, np.nan], [np.inf, 0.0, -np.inf]])
N = np.array([[1, -2, 300], [0, 5, -7]])


def _check(call: Call, wanted: Any, exact: bool = True) -> None:
    for out in (call(jnp), call(jnp), cj.jit(lambda: call(jnp))()):
        both = zip(out, wanted, strict=True) if isinstance(wanted, (tuple, list)) else [(out, wanted)]
        for found, expected in both:
            if not hasattr(expected, "dtype"):
                assert expected == found
                continue
            assert (np.shape(expected), expected.dtype) == (found.shape, found.dtype)
            np.testing.assert_allclose(np.asarray(found).astype(complex), np.asarray(expected).astype(complex),
                                       rtol=0 if exact else 1e-13, atol=0 if exact else 1e-13)


RANGES: dict[str, Call] = {
    "arange": lambda m: m.arange(5), "of nothing": lambda m: m.arange(3, 3), "backwards": lambda m: m.arange(5, -2, -3),
    "the wrong way": lambda m: m.arange(0, 5, -1), "of floats": lambda m: m.arange(0.0, 1.0, 0.1),
    "by a fraction": lambda m: m.arange(1, 3, 0.3), "from a float": lambda m: m.arange(-0.5, 3),
    "of a dtype": lambda m: m.arange(3, dtype="uint8"), "of a float dtype": lambda m: m.arange(1, 7, 2, np.float32),
    "with a large start": lambda m: m.arange(2 ** 53, 2 ** 53 + 4),
    "linspace": lambda m: m.linspace(0.0, 1.0, 7), "without the end": lambda m: m.linspace(-1, 1, 5, endpoint=False),
    "one number": lambda m: m.linspace(3, 9, 1), "no numbers": lambda m: m.linspace(3, 9, 0),
    "with the step": lambda m: m.linspace(0, 9, 4, retstep=True),
    "of integers": lambda m: m.linspace(-2, 3, 4, dtype=int), "between arrays": lambda m: m.linspace(N, 2.0, 3, axis=1),
    "between rows and columns": lambda m: m.linspace(N[0], N[:, :1], 4, axis=-1),
    "of complex numbers": lambda m: m.linspace(0, 1 + 1j, 3), "logspace": lambda m: m.logspace(0, 2, 5),
    "of a base": lambda m: m.logspace(-1, 1, 3, base=2.0, endpoint=False),
    "of an array of bases": lambda m: m.logspace(0, 2, 3, base=np.array([2.0, 10.0])),
    "geomspace": lambda m: m.geomspace(1, 1000, 4), "of negative numbers": lambda m: m.geomspace(-1.0, -16.0, 5),
    "without its end": lambda m: m.geomspace(1.0, 16.0, 4, endpoint=False),
    "of complex factors": lambda m: m.geomspace(1 + 0j, 1j, 3), "along an axis": lambda m: m.geomspace(
        np.array([1.0, 2.0]), 8.0, 3, axis=1), "of two numbers": lambda m: m.geomspace(2.0, 3.0, 2),
}


@pytest.mark.parametrize("name", RANGES)
def test_ranges_are_numpys(name: str) -> None:
    _check(RANGES[name], RANGES[name](np), exact=False)


def test_ranges_have_the_dtype_of_their_bounds_and_perhaps_no_step() -> None:
    assert np.int8 == jnp.arange(np.int8(3), np.int8(9), np.int8(2)).dtype  # int64 in NumPy
    assert np.isnan(jnp.linspace(1.0, 9.0, 1, retstep=True)[1])


FILLED: dict[str, Call] = {
    "zeros": lambda m: m.zeros((2, 0, 3)), "ones": lambda m: m.ones(3, "int16"), "full": lambda m: m.full((2, 2), 1.5),
    "full of a row": lambda m: m.full((2, 3), N[0]), "full of a dtype": lambda m: m.full(2, 3, "complex64"),
    "full of truth": lambda m: m.full((), True), "full of another kind": lambda m: m.full(2, 2.7, int),
    "zeros_like": lambda m: m.zeros_like(N), "ones_like of a shape": lambda m: m.ones_like(X, shape=(1, 2)),
    "full_like": lambda m: m.full_like(N, 7), "full_like of a dtype": lambda m: m.full_like(N, 0.5, dtype=float),
    "full_like of a row": lambda m: m.full_like(X, [1, 2, 3]), "full_like, cut off": lambda m: m.full_like(N, 2.9),
    "of lists": lambda m: m.array([[1, 2], [3, 4]]), "of mixed numbers": lambda m: m.array([1, 2.5, True]),
    "of complex numbers": lambda m: m.array([1, 2j]), "of booleans": lambda m: m.array([True, False]),
    "of nothing": lambda m: m.array([]), "of empty lists": lambda m: m.array([[], []]),
    "of a dtype": lambda m: m.array([1, 2], "float32"), "with more axes": lambda m: m.array([1, 2], ndmin=3),
    "of arrays": lambda m: m.array([N[0], [1, 2, 3]]), "of NumPy's scalars": lambda m: m.array([np.int8(1)] * 2),
    "of a range": lambda m: m.array(range(3)), "of an ndarray": lambda m: m.asarray(X),
    "another dtype": lambda m: m.asarray(N, dtype="float32"), "copy": lambda m: m.copy(X),
    "of a buffer": lambda m: m.frombuffer(b"\x01\x02\x03\x04", "uint16"), "of an iterable": lambda m: m.fromiter(
        range(4), float), "of a text": lambda m: m.fromstring("1 2 3", int, sep=" "),
    "of a function": lambda m: m.fromfunction(lambda i, j: 10.0 * i + j, (2, 3)),
    "eye": lambda m: m.eye(3, 4, 1), "identity": lambda m: m.identity(2, "int8"), "tri": lambda m: m.tri(2, 4, 1),
}


@pytest.mark.parametrize("name", FILLED)
def test_new_arrays_are_numpys(name: str) -> None:
    _check(FILLED[name], FILLED[name](np))


CHOSEN: dict[str, Call] = {
    "where": lambda m: m.where(N > 0, N, 0.5), "where of rows": lambda m: m.where(N[0] > 0, X, N[:, :1]),
    "where of numbers": lambda m: m.where(X, 1.0, N), "where of nothing": lambda m: m.where(N[:0] > 0, N[:0], X[:0]),
    "select": lambda m: m.select([m.asarray(N) > 3, m.asarray(N) < 0], [N, X], 9),
    "select the first": lambda m: m.select([m.asarray(N) > 0, m.asarray(N) > -3], [N, -N]),
    "piecewise": lambda m: m.piecewise(m.asarray(X), [m.asarray(X) < 0, m.asarray(X) > 1], [lambda x: -x, 7.0]),
    "piecewise of integers": lambda m: m.piecewise(m.asarray(N), [m.asarray(N) < 0], [-0.5, lambda x: x * 2]),
    "choose": lambda m: m.choose(np.array([[0, 1, 2], [2, 1, 0]]), [N, X, 4]),
    "choose, wrapped": lambda m: m.choose(N, [1, 2], mode="wrap"), "choose, clipped": lambda m: m.choose(
        N, [1.5, 2.0, -N], mode="clip"),
    "clip": lambda m: m.clip(X, -1.0, 1.0), "clip from below": lambda m: m.clip(N, 0, None),
    "clip with crossed bounds": lambda m: m.clip(N, 5, 1), "clip by arrays": lambda m: m.clip(N, N[0], N[1]),
    "nan_to_num": lambda m: m.nan_to_num(X), "nan_to_num by numbers": lambda m: m.nan_to_num(X, nan=1.0, posinf=2.0,
                                                                                             neginf=3.0),
    "nan_to_num of complex numbers": lambda m: m.nan_to_num(X + 1j * X[::-1]), "fix": lambda m: m.fix(X * 1.3),
    "round": lambda m: m.round(X * 1.234, 2), "round of integers": lambda m: m.round(N, -1),
    "round of complex numbers": lambda m: m.round(np.array([1.25 + 2.35j]), 1),
    "packbits": lambda m: m.packbits(N > 0, 1),
    "packbits of all": lambda m: m.packbits(N, bitorder="little"), "unpackbits": lambda m: m.unpackbits(
        np.array([[7, 200]], "uint8"), 1, 11, "little"), "unpackbits, but the last": lambda m: m.unpackbits(
        np.array([7, 200], "uint8"), count=-3),
    "isclose": lambda m: m.isclose(X, X + 1e-9), "isclose of NaN": lambda m: m.isclose(X, X, equal_nan=True),
    "allclose": lambda m: m.allclose(N, N + 1e-9), "array_equal": lambda m: np.bool_(m.array_equal(N, N)),
    "array_equal of NaN": lambda m: np.bool_(m.array_equal(X, X, equal_nan=True)),
    "array_equal of other shapes": lambda m: np.bool_(m.array_equal(N, N[0])),
    "array_equiv": lambda m: np.bool_(m.array_equiv(N[:1], np.stack([N[0]] * 3))),
    "apply_along_axis": lambda m: m.apply_along_axis(lambda v: v[::-1] * 2, 1, N),
    "apply_along_axis, to numbers": lambda m: m.apply_along_axis(lambda v: v.sum(), 0, N),
    "apply_over_axes": lambda m: m.apply_over_axes(m.sum, N, (0, 1)),
    "vectorize": lambda m: m.vectorize(lambda x, y: x * 2.0 + y)(N, 0.5),
    "vectorize of vectors": lambda m: m.vectorize(lambda x, y: x.sum() * y, signature="(n),()->()")(N, N[:, 0]),
}


@pytest.mark.parametrize("name", [name for name in CHOSEN if "array_equ" not in name])
def test_choices_are_numpys(name: str) -> None:
    _check(CHOSEN[name], CHOSEN[name](np), exact="complex" not in name)


@pytest.mark.parametrize("name", [name for name in CHOSEN if "array_equ" in name])
def test_equality_is_numpys(name: str) -> None:
    assert CHOSEN[name](np) == CHOSEN[name](jnp)


def test_floats_become_the_nearest_integers_that_are_there() -> None:
    for name, most in {"uint8": 255, "int16": 2 ** 15 - 1, "int64": 2 ** 63 - 1}.items():
        least = 0 if name[0] == "u" else -most - 1
        for out in (jnp.astype(X, name), from_array_like(X).astype(name), jnp.array(X.tolist(), name),
                    jnp.full((2, 3), X, name), jnp.full_like(X, X, dtype=name), cj.jit(jnp.astype, static_argnums=1)(
                        X, name)):
            assert [[1, max(-2, least), 0], [most, 0, least]] == out.tolist(), name


QUESTIONS: dict[str, Call] = {
    "can_cast": lambda m: m.can_cast("int32", "float32"),
    "to less": lambda m: m.can_cast("float64", "float32", "same_kind"),
    "issubdtype": lambda m: m.issubdtype("float32", m.floating), "of another kind": lambda m: m.issubdtype(
        np.int8, m.inexact), "isdtype": lambda m: m.isdtype(np.dtype("int8"), ("integral", "bool")),
    "iscomplexobj": lambda m: m.iscomplexobj(X * 1j), "isrealobj": lambda m: m.isrealobj(N),
    "isscalar": lambda m: m.isscalar(3.0), "of an array": lambda m: m.isscalar(N), "iterable": lambda m: m.iterable(X),
    "of numbers": lambda m: m.iterable(3), "shape": lambda m: m.shape([[1, 2]]), "ndim": lambda m: m.ndim(X),
    "size": lambda m: m.size(X, 1), "iinfo": lambda m: (m.iinfo("int16").min, m.iinfo("int16").max),
    "finfo": lambda m: (float(m.finfo("float32").eps), float(m.finfo("float32").max)),
    "broadcast_shapes": lambda m: m.broadcast_shapes((2, 1), (3,), 1),
    "result_type": lambda m: m.result_type(np.int8(1), np.int16(1), 3), "promote_types": lambda m: m.promote_types(
        "uint8", "int8"), "of strings": lambda m: m.promote_types("float16", "float32"),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_answers_are_numpys(name: str) -> None:
    assert QUESTIONS[name](np) == QUESTIONS[name](jnp)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int8", "uint64", "complex128", "bool_"])
def test_types_make_arrays_of_theirs(name: str) -> None:
    kind, number = getattr(jnp, name), 0 if name == "bool_" else 1
    dtype = np.dtype(name.rstrip("_"))
    for found in (kind(number), jnp.zeros(2, kind)[0] + kind(number), jnp.asarray([number], kind)[0],
                  jnp.full((), number, dtype=kind), cj.jit(kind)(number)):
        assert (dtype, number) == (found.dtype, complex(found).real)
    assert kind == dtype and jnp.dtype(kind) == dtype and jnp.result_type(kind) == dtype
    assert ml_dtypes.bfloat16 == jnp.bfloat16


@pytest.mark.parametrize(("call", "message"), [
    (lambda: jnp.arange(0, 1, 0), "the step is 0"), (lambda: jnp.arange(np.nan), "can't be counted"),
    (lambda: jnp.arange(N), "start"), (lambda: jnp.linspace(0, 1, -1), "so many"), (lambda: jnp.zeros(-1), "negative"),
    (lambda: jnp.array([[1, 2], [3]]), "array"), (lambda: jnp.array("text"), "not an array"),
    (lambda: jnp.full(2, N), "doesn't fit"), (lambda: jnp.asarray(N, float, copy=False), "needs a copy"),
    (lambda: jnp.choose(N, [1, 2]), "out of range"), (lambda: jnp.where(N > 0, N), "two arguments"),
    (lambda: jnp.clip(X * 1j, 0, 1), "only real"), (lambda: jnp.select([N > 0], []), "needs a choice"),
    (lambda: jnp.packbits(X), "integers or booleans"), (lambda: jnp.unpackbits(N), "only bytes"),
    (lambda: jnp.array(300, "uint8"), "300"), (lambda: jnp.fromstring("1 x", int, sep=" "), "can't be read"),
    (lambda: cj.jit(jnp.arange)(3), "known when the program is traced"),
])
def test_wrong_uses_say_what_is_wrong(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(CorejaxError, match=message):
        call()


MADE = {"array": lambda: jnp.array(0, jnp.int32), "int32": lambda: jnp.int32(0),
        "asarray": lambda: jnp.asarray(0, "int32"),
        "full": lambda: jnp.full((), 0, "int32"), "zeros": lambda: jnp.zeros((), "int32"),
        "full_like": lambda: jnp.full_like(np.int32(1), 0), "arange": lambda: jnp.arange(1)[0].astype("int32")}


@pytest.mark.parametrize("name", MADE)
def test_a_number_that_was_donated_can_be_made_again(name):
    count = cj.jit(lambda x: x + 1, donate_argnums=0)
    other = MADE[name]()
    for _ in range(3):
        assert 1 == count(MADE[name]())
    assert 0 == other == MADE[name]()


@pytest.mark.parametrize("place", ["host", "device"])
@pytest.mark.parametrize("copied", [jnp.array, jnp.copy, lambda x: jnp.asarray(x, copy=True), lambda x: x.copy(),
                                    lambda x: jnp.array(x, x.dtype)])
def test_a_copy_outlives_an_array_that_is_donated(copied, place):
    x = jnp.arange(3.0)
    x = cj.device_put(x) if place == "device" else x
    copy = copied(x)
    cj.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted()
    assert [0, 1, 2] == copy.tolist()
