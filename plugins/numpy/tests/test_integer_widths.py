"""Python's integers in dtypes: each is checked against the dtype that it gets, not against the default one first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import lax
from corejax.errors import CorejaxError

Call = Callable[[], Any]

TOP = 2 ** 63
GOLDEN = 0x9E3779B97F4A7C15


@pytest.fixture(params=[64, 32], ids=["64 bits", "32 bits"])
def default_bits(request: pytest.FixtureRequest) -> Iterator[int]:
    with cj.config(default_bits=request.param):
        yield request.param


def _u(*numbers: int) -> Any:
    return jnp.asarray(np.array(numbers, np.uint64))


MADE: dict[str, tuple[Any, str, Call]] = {
    "uint64()": (GOLDEN, "uint64", lambda: jnp.uint64(GOLDEN)),
    "uint32()": (0x9E3779B9, "uint32", lambda: jnp.uint32(0x9E3779B9)),
    "int64()": (2 ** 40, "int64", lambda: jnp.int64(2 ** 40)),
    "float32()": (2.0 ** 70, "float32", lambda: jnp.float32(2 ** 70)),
    "bfloat16()": (2.0 ** 70, "bfloat16", lambda: jnp.bfloat16(2 ** 70)),
    "complex64()": (2.0 ** 70, "complex64", lambda: jnp.complex64(2 ** 70)),
    "bool_()": (True, "bool", lambda: jnp.bool_(2 ** 70)),
    "asarray": (TOP, "uint64", lambda: jnp.asarray(TOP, "uint64")),
    "asarray of 32 bits": (3000000000, "uint32", lambda: jnp.asarray(3000000000, "uint32")),
    "array with axes": ([[TOP]], "uint64", lambda: jnp.array(TOP, ndmin=2, dtype="uint64")),
    "full": ([TOP, TOP], "uint64", lambda: jnp.full(2, TOP, "uint64")),
    "full of floats": ([2.0 ** 70] * 2, "float32", lambda: jnp.full(2, 2 ** 70, "float32")),
    "full_like": ([TOP], "uint64", lambda: jnp.full_like(_u(1), TOP)),
    "full_like in a dtype": ([TOP], "uint64", lambda: jnp.full_like(jnp.zeros(1), TOP, dtype="uint64")),
    "lax.full": ([TOP], "uint64", lambda: lax.full((1,), TOP, "uint64")),
    "lax.full of bfloat16": ([2.0 ** 70], "bfloat16", lambda: lax.full((1,), 2 ** 70, "bfloat16")),
    "lax.full_like": ([TOP], "uint64", lambda: lax.full_like(_u(1), TOP)),
    "convert_element_type": (TOP, "uint64", lambda: lax.convert_element_type(TOP, "uint64")),
    "convert_element_type to floats": (2.0 ** 70, "float32", lambda: lax.convert_element_type(2 ** 70, "float32")),
    "arange": ([TOP, TOP + 1], "uint64", lambda: jnp.arange(TOP, TOP + 2, dtype="uint64")),
    "linspace": ([0.0, 2.0 ** 69, 2.0 ** 70], "float64", lambda: jnp.linspace(jnp.float64(0), 2 ** 70, 3)),
    "a list": ([TOP, 1], "uint64", lambda: jnp.array([TOP, 1], "uint64")),
    "a list of both signs": ([-2 ** 40, 1], "int64", lambda: jnp.array([-2 ** 40, 1], "int64")),
    "a list of floats": ([2.0 ** 70], "float32", lambda: jnp.array([2 ** 70], "float32")),
    "a list of bfloat16s": ([2.0 ** 70], "bfloat16", lambda: jnp.array([2 ** 70], "bfloat16")),
    "a list of truths": ([True, False], "bool", lambda: jnp.array([2 ** 70, 0], bool)),
    "beside a complex number": ([2.0 ** 70, 1j], "complex64", lambda: jnp.array([2 ** 70, 1j], "complex64")),
    "beside a NumPy float": ([2.0 ** 70, 1.0], "float32", lambda: jnp.array([2 ** 70, np.float32(1)])),
    "beside an array of floats": ([2.0 ** 70, 1.0], "float32", lambda: jnp.array([2 ** 70, jnp.float32(1)])),
    "beside an array": ([TOP + 1, 1], "uint64", lambda: jnp.array([TOP + 1, jnp.uint64(1)])),
    "nested beside an array": ([[TOP + 1], [1]], "uint64", lambda: jnp.array([[TOP + 1], [jnp.uint64(1)]])),
    "beside a narrower array": ([1, TOP + 1], "uint64", lambda: jnp.array([jnp.uint8(1), TOP + 1], "uint64")),
    "beside a float": ([1, TOP + 1], "uint64", lambda: jnp.array([1.5, TOP + 1], "uint64")),
    "a NumPy scalar beside one": ([TOP + 1, 1], "uint64", lambda: jnp.array([np.uint64(TOP + 1), 1])),
    "a range": ([TOP, TOP + 1], "uint64", lambda: jnp.asarray(range(TOP, TOP + 2), "uint64")),
    "device_put": (TOP, "uint64", lambda: cj.device_put(np.uint64(TOP))),
}


@pytest.mark.parametrize("name", MADE)
def test_an_integer_is_checked_against_the_dtype_that_it_gets(name: str, default_bits: int) -> None:
    wanted, dtype, call = MADE[name]
    for found in (call(), cj.jit(call)()):
        assert dtype == found.dtype.name
        np.testing.assert_array_equal(np.array(wanted, np.dtype(found.dtype)), np.asarray(found))


def test_floats_beside_huge_integers_are_floats() -> None:
    for found in (jnp.array([2 ** 70, 1.5]), jnp.asarray([[2 ** 70], [1.5]]).ravel()):
        assert ([2.0 ** 70, 1.5], "float64") == (found.tolist(), found.dtype.name)
    assert [2.0 ** 63, 1.5] == jnp.array([TOP, 1.5]).tolist()
    assert [2.0 ** 70 + 0j, 1j] == jnp.array([2 ** 70, 1j]).tolist()


BESIDE: dict[str, tuple[Any, Call]] = {  # with arrays of uint64
    "^": ([TOP ^ 5], lambda: _u(5) ^ TOP), "reflected": ([TOP ^ 5], lambda: TOP ^ _u(5)),
    "*": ([5 * GOLDEN % 2 ** 64], lambda: _u(5) * GOLDEN), "&": ([TOP], lambda: _u(TOP + 5) & TOP),
    ">>": ([2], lambda: _u(TOP) >> 62), "%": ([5], lambda: _u(5) % TOP), "//": ([1], lambda: _u(TOP + 5) // TOP),
    "==": ([True], lambda: _u(TOP) == TOP), "== with more": ([False], lambda: _u(5) == 2 ** 64),
    "<": ([True], lambda: _u(5) < 2 ** 70), ">": ([True], lambda: _u(5) > -1),
    "bitwise_xor": ([TOP ^ 5], lambda: jnp.bitwise_xor(TOP, _u(5))),
    "maximum": ([TOP], lambda: jnp.maximum(_u(5), TOP)), "less": ([True], lambda: jnp.less(_u(5), 2 ** 70)),
    "lax.bitwise_xor": ([TOP ^ 5], lambda: lax.bitwise_xor(_u(5), TOP)),
    "lax.add": ([TOP], lambda: lax.add(TOP, _u(0))),
    "lax.clamp": ([TOP], lambda: lax.clamp(TOP, _u(1), 2 ** 64 - 1)),
    "lax.pad": ([TOP, 1], lambda: lax.pad(_u(1), TOP, [(1, 0, 0)])),
    "lax.reduce": (TOP + 1, lambda: lax.reduce(_u(1), TOP, lax.add, (0,))),
    "lax.dynamic_update_index_in_dim": ([TOP], lambda: lax.dynamic_update_index_in_dim(_u(1), TOP, 0, 0)),
    ".at.set": ([TOP, 2], lambda: _u(1, 2).at[0].set(TOP)), ".at.add": ([TOP + 1], lambda: _u(1).at[0].add(TOP)),
    ".at.max": ([TOP], lambda: _u(1).at[0].max(TOP)),
    ".at.get": (TOP, lambda: _u(1).at[5].get(mode="fill", fill_value=TOP)),
    "where": ([1, TOP], lambda: jnp.where(jnp.array([True, False]), _u(1, 2), TOP)),
    "select": ([1, TOP], lambda: jnp.select([jnp.array([True, False])], [_u(1, 2)], TOP)),
    "piecewise": ([TOP, 5], lambda: jnp.piecewise(_u(1, 2), [jnp.array([True, False])], [TOP, 5])),
    "choose": ([1, TOP], lambda: jnp.choose(jnp.array([0, 1]), [_u(1, 2), TOP])),
    "clip": ([TOP], lambda: jnp.clip(_u(1), TOP, 2 ** 64 - 1)),
    "clip above": ([1], lambda: jnp.clip(_u(1), 0, 2 ** 70)),
    "x.clip": ([TOP], lambda: _u(1).clip(TOP)), "append": ([1, TOP], lambda: jnp.append(_u(1), TOP)),
    "insert": ([TOP, 1], lambda: jnp.insert(_u(1), 0, TOP)),
    "stack": ([1, TOP], lambda: jnp.stack([jnp.uint64(1), TOP])),
    "hstack": ([1, TOP], lambda: jnp.hstack([jnp.uint64(1), TOP])),
    "concatenate a list": ([1, TOP], lambda: jnp.concatenate([_u(1), [TOP]])),
    "pad": ([TOP, 1, TOP], lambda: jnp.pad(_u(1), 1, constant_values=TOP)),
    "pad with two": ([TOP, 1, TOP + 1], lambda: jnp.pad(_u(1), 1, constant_values=(TOP, TOP + 1))),
    "searchsorted": (1, lambda: jnp.searchsorted(_u(1, TOP), TOP)),
    "isin": ([False, True], lambda: jnp.isin(_u(1, TOP), TOP)),
    "isin a list": ([False, True], lambda: jnp.isin(_u(1, TOP), [TOP])),
    "array_equal": (True, lambda: jnp.array_equal(_u(TOP), [TOP])),
    "sum from": (TOP + 3, lambda: jnp.sum(_u(1, 2), initial=TOP)),
    "max from": (TOP, lambda: jnp.max(_u(1), initial=TOP)),
    "ufunc.reduce from": (TOP + 3, lambda: jnp.add.reduce(_u(1, 2), initial=TOP)),
    "fill_diagonal": ([[TOP]], lambda: jnp.fill_diagonal(_u(1).reshape(1, 1), TOP, inplace=False)),
    "place": ([TOP], lambda: jnp.place(_u(1), jnp.array([True]), TOP, inplace=False)),
    "put": ([TOP], lambda: jnp.put(_u(1), 0, TOP, inplace=False)),
    "put_along_axis": ([TOP], lambda: jnp.put_along_axis(_u(1), jnp.array([0]), TOP, 0, inplace=False)),
    "take": (TOP, lambda: jnp.take(_u(1), 5, mode="fill", fill_value=TOP)),
    "unique": ([1, TOP], lambda: jnp.unique(_u(1), size=2, fill_value=TOP)),
    "dot": ([TOP], lambda: jnp.dot(_u(1), TOP)), "diff": ([2 ** 64 - TOP + 1], lambda: jnp.diff(_u(1), prepend=TOP)),
    "ediff1d": ([1, TOP], lambda: jnp.ediff1d(_u(1, 2), to_end=TOP)),
    "gcd": ([1], lambda: jnp.gcd(_u(5), TOP)), "polyval": (TOP + 2, lambda: jnp.polyval(_u(1, 2), TOP)),
}


@pytest.mark.parametrize("name", BESIDE)
def test_an_integer_beside_an_array_gets_its_dtype(name: str, default_bits: int) -> None:
    wanted, call = BESIDE[name]
    for found in (call(), cj.jit(call)()):
        assert wanted == found.tolist()
        assert wanted is True or found.dtype.kind in "bui"


MISFITS: dict[str, Call] = {
    "uint64()": lambda: jnp.uint64(2 ** 64), "of the other sign": lambda: jnp.uint64(-1),
    "int64()": lambda: jnp.int64(TOP), "int8()": lambda: jnp.int8(128), "float64()": lambda: jnp.float64(10 ** 400),
    "float32()": lambda: jnp.float32(10 ** 400), "complex64()": lambda: jnp.complex64(10 ** 400),
    "too long to print": lambda: jnp.uint8(10 ** 5000), "of the default dtype": lambda: jnp.array(TOP),
    "full": lambda: jnp.full(2, 2 ** 64, "uint64"), "full of the default": lambda: jnp.full(2, TOP),
    "full_like": lambda: jnp.full_like(_u(1), 2 ** 64), "lax.full": lambda: lax.full((2,), 256, "uint8"),
    "convert_element_type": lambda: lax.convert_element_type(2 ** 64, "uint64"),
    "a list": lambda: jnp.array([TOP]), "a list that NumPy makes floats of": lambda: jnp.array([TOP, 1]),
    "a list of negative numbers": lambda: jnp.array([TOP, -1]), "a list in a dtype": lambda: jnp.array([300], "uint8"),
    "beside a NumPy scalar": lambda: jnp.array([np.uint8(1), 300]),
    "beside a NumPy scalar, in a dtype": lambda: jnp.array([np.uint8(1), 300], "uint8"),
    "beside a narrow NumPy scalar": lambda: jnp.array([TOP, np.int8(1)]),
    "beside an array": lambda: jnp.array([jnp.uint8(1), 300]),
    "beside a float": lambda: jnp.array([300.5, 300], "uint8"),
    "negative beside a float": lambda: jnp.array([-1, 1.5], "uint64"),
    "a list of huge floats": lambda: jnp.array([10 ** 400, 1.5]),
    "a list too long to print": lambda: jnp.array([10 ** 5000]),
    "arange": lambda: jnp.arange(300, 303, dtype="uint8"),
    "arange from below": lambda: jnp.arange(-3, 3, dtype="uint8"),
    "arange of the default": lambda: jnp.arange(TOP, TOP + 2), "+": lambda: _u(1) + 2 ** 64,
    "+ below": lambda: _u(1) + -1,
    "* a float": lambda: jnp.ones(1) * 10 ** 400, ".at.set": lambda: _u(1).at[0].set(2 ** 64),
    "append": lambda: jnp.append(_u(1), 2 ** 64), "max from": lambda: jnp.max(jnp.array([1], "uint8"), initial=-1),
    "as an argument": lambda: cj.jit(lambda x: x)(TOP), "where": lambda: jnp.where(True, _u(1), 2 ** 64),
    "fori_loop": lambda: lax.fori_loop(0, 3, lambda i, x: x, TOP),
    "clip": lambda: jnp.clip(jnp.array([1], "uint8"), 300, 400),
}


@pytest.mark.parametrize("name", MISFITS)
def test_an_integer_that_a_dtype_cant_hold_is_an_overflow(name: str) -> None:
    with pytest.raises(CorejaxError, match=r"doesn't fit|out of bounds") as caught:
        MISFITS[name]()
    assert isinstance(caught.value, OverflowError)
    assert len(str(caught.value)) < 1000


def test_integers_of_32_bits_are_the_default_where_that_is_asked_for() -> None:
    with cj.config(default_bits=32):
        for wrong in (lambda: jnp.array(2 ** 31), lambda: jnp.array([2 ** 31]),
                      lambda: jnp.arange(2 ** 31, 2 ** 31 + 2)):
            with pytest.raises(CorejaxError, match="doesn't fit"):
                wrong()
        assert "float32" == jnp.sum([1.5, 2]).dtype.name  # type: ignore[list-item]
        assert "int32" == jnp.cumsum([1, 2]).dtype.name  # type: ignore[arg-type]


def test_shapes_of_huge_numbers_are_known() -> None:
    assert ((), 0, 1) == (jnp.shape(2 ** 70), jnp.ndim(2 ** 70), jnp.size(2 ** 70))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_select_n_takes_indices_of_every_integer_dtype(dtype: str) -> None:
    which = jnp.array([0, 1, 5, np.iinfo(dtype).max], dtype)
    cases = [jnp.full(4, float(k)) for k in range(300)]
    wanted = np.minimum(np.asarray(which, np.float64), 299.0).tolist()
    assert wanted == lax.select_n(which, *cases).tolist() == cj.jit(lax.select_n)(which, *cases).tolist()
    assert [1.0, 0.0] == lax.select_n(which[:2], jnp.ones(2), jnp.zeros(2)).tolist()
    below = np.array([np.iinfo(dtype).min], dtype)
    assert [0.0] == lax.select_n(below, *[case[:1] for case in cases]).tolist()


# Generators and hashes, which are full of such constants. `u` makes the words, `M` is what they are taken modulo.

def _splitmix64(u: Any, x: Any) -> Any:
    z = x + u(0x9E3779B97F4A7C15)
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    return z ^ (z >> 31)


def _pcg32(u: Any, x: Any) -> Any:
    state = x * 6364136223846793005 + u(1442695040888963407)
    shifted, turn = (((state >> 18) ^ state) >> 27) & 0xFFFFFFFF, state >> 59
    return ((shifted >> turn) | (shifted << ((u(32) - turn) & 31))) & 0xFFFFFFFF


def _xorshift64star(u: Any, x: Any) -> Any:
    x = x ^ (x >> 12)
    x = x ^ (x << 25)
    x = x ^ (x >> 27)
    return x * u(0x2545F4914F6CDD1D)


def _murmur64(u: Any, x: Any) -> Any:
    x = (x ^ (x >> 33)) * u(0xFF51AFD7ED558CCD)
    x = (x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53
    return x ^ (x >> 33)


def _fnv1a(u: Any, x: Any) -> Any:
    found = u(0xCBF29CE484222325)
    for k in range(8):
        found = (found ^ ((x >> (8 * k)) & 0xFF)) * 0x100000001B3
    return found


def _murmur32(u: Any, x: Any) -> Any:
    x = (x ^ (x >> 16)) * u(0x85EBCA6B)
    x = (x ^ (x >> 13)) * 0xC2B2AE35
    return x ^ (x >> 16)


def _lowbias32(u: Any, x: Any) -> Any:
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) * u(0x846CA68B)
    return (x ^ (x >> 16)) + u(0x9E3779B9)


class _Word:
    """A word of so many bits in Python's integers."""

    def __init__(self, value: int, bits: int) -> None:
        self.value, self.bits = value % 2 ** bits, bits

    def _with(self, operation: Callable[[int, int], int]) -> Any:
        return lambda other: _Word(operation(self.value, getattr(other, "value", other)), self.bits)

    def __add__(self, other: Any) -> _Word:
        return self._with(int.__add__)(other)  # type: ignore[no-any-return]

    def __sub__(self, other: Any) -> _Word:
        return self._with(int.__sub__)(other)  # type: ignore[no-any-return]

    def __mul__(self, other: Any) -> _Word:
        return self._with(int.__mul__)(other)  # type: ignore[no-any-return]

    def __xor__(self, other: Any) -> _Word:
        return self._with(int.__xor__)(other)  # type: ignore[no-any-return]

    def __and__(self, other: Any) -> _Word:
        return self._with(int.__and__)(other)  # type: ignore[no-any-return]

    def __or__(self, other: Any) -> _Word:
        return self._with(int.__or__)(other)  # type: ignore[no-any-return]

    def __lshift__(self, other: Any) -> _Word:
        return self._with(int.__lshift__)(other)  # type: ignore[no-any-return]

    def __rshift__(self, other: Any) -> _Word:
        return self._with(int.__rshift__)(other)  # type: ignore[no-any-return]


PROGRAMS = {"splitmix64": (_splitmix64, 64), "pcg32": (_pcg32, 64), "xorshift64*": (_xorshift64star, 64),
            "murmur's mixer": (_murmur64, 64), "fnv-1a": (_fnv1a, 64), "murmur's mixer of 32 bits": (_murmur32, 32),
            "lowbias32": (_lowbias32, 32)}


@pytest.mark.parametrize("name", PROGRAMS)
def test_generators_and_hashes_are_those_of_pythons_integers_and_of_numpy(name: str, default_bits: int) -> None:
    program, bits = PROGRAMS[name]
    seeds = [0, 1, 0xDEADBEEF, 2 ** bits - 1, 2 ** (bits - 1), GOLDEN % 2 ** bits]
    words, scalar = [_Word(seed, bits) for seed in seeds], getattr(jnp, f"uint{bits}")
    wanted = [program(lambda n: _Word(n, bits), word).value for word in words]
    host = np.array(seeds, f"uint{bits}")
    assert wanted == program(host.dtype.type, host).tolist()
    x = jnp.asarray(host)
    run: Callable[[Any], Any] = lambda x: program(scalar, x)
    for found in (run(x), cj.jit(run)(x), cj.vmap(run)(x), cj.jit(cj.vmap(run))(x), lax.map(run, x)):
        assert (wanted, host.dtype) == (found.tolist(), found.dtype)
    assert wanted[2] == int(run(scalar(seeds[2])))


def test_a_generator_in_a_loop_is_that_of_pythons_integers(default_bits: int) -> None:
    def step(state: Any, _: Any) -> Any:
        state = state + GOLDEN
        return state, _splitmix64(jnp.uint64, state)

    state, found = cj.jit(lambda seed: lax.scan(step, seed, None, 5))(jnp.uint64(2 ** 64 - 5))
    seeds = [2 ** 64 - 5 + GOLDEN * (k + 1) for k in range(5)]
    assert [_splitmix64(lambda n: _Word(n, 64), _Word(seed, 64)).value for seed in seeds] == found.tolist()
    assert seeds[-1] % 2 ** 64 == int(state)
