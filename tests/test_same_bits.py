"""The same call gives the same bits: for all public functions, in all forms of operands, again, and in any thread."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import lax
from corejax.eager import direct
from tests import same_bits
from tests.numpy_search import Call

every_function = pytest.mark.parametrize("name", same_bits.NAMES)


@pytest.mark.sample(90)
@every_function
def test_a_call_gives_the_same_bits_each_time_and_in_each_form(name: str) -> None:
    assert [] == same_bits.differing(name, [*same_bits.drawn(name, 4)])


@pytest.mark.exhaustive
@every_function
def test_many_calls_give_the_same_bits_each_time_and_in_each_form(name: str) -> None:
    assert [] == same_bits.differing(name, [*same_bits.drawn(name, 40, seed=1)])


@pytest.mark.sample(12)
@pytest.mark.parametrize("part", range(48))
def test_bits_do_not_depend_on_what_else_was_called_nor_on_the_thread(part: int) -> None:
    """Each call alone, with empty caches, beside all in turn, and all backward in several threads at once."""
    calls = [(same_bits.function(name), call) for name in same_bits.NAMES[part::48] for call in
             same_bits.drawn(name, 3, seed=2)]
    alone = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for function, call in calls:
            same_bits.forget()
            alone.append(same_bits.result(function, call))
        assert alone == [same_bits.result(function, call) for function, call in calls]
        same_bits.forget()
        found: list[Any] = []

        def backward() -> None:
            found.append([same_bits.result(function, call) for function, call in calls[::-1]][::-1])
        threads = [threading.Thread(target=backward) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [alone] * 3 == found


def test_all_public_functions_of_arrays_are_called() -> None:
    called = {name.removeprefix("numpy.") for name in same_bits.NAMES}
    assert [] == [name for name in same_bits.public_functions() if name not in called]


X = np.linspace(0.1, 7.0, 57)

#: The functions that changed their bits at the second call, and those whose bits depended on the form of operands.
CALLS = {
    "pinv": lambda x: jnp.linalg.pinv(x(np.sin(X[:54]).reshape(9, 6))), "convolve": lambda x: jnp.convolve(x(X), x(X)),
    "einsum": lambda x: jnp.einsum("i,ij->j", x(X[:9]), x(X[:54].reshape(9, 6))),
    "hypot": lambda x: jnp.hypot(x(X), x(X)),
    "logaddexp": lambda x: jnp.logaddexp(x(X), x(X[::-1])), "sinc": lambda x: jnp.sinc(x(X)),
    "log2": lambda x: jnp.log2(x(X)), "log10": lambda x: jnp.log10(x(X)), "i0": lambda x: jnp.i0(x(X)),
    "logaddexp2": lambda x: jnp.logaddexp2(x(X), 0.3), "rad2deg": lambda x: jnp.rad2deg(x(X)),
    "fft": lambda x: jnp.fft.rfft(x(X)), "interp": lambda x: jnp.interp(x(X[:5]), x(X), x(np.sin(X))),
    "sin of complex numbers": lambda x: jnp.sin(x(X * (1 + 0.3j))),
    "arcsin of a reversed array": lambda x: jnp.arcsin(x(X[::-1] / 9.0)),
    "a sum over two axes": lambda x: lax.reduce_prod(x(X[:54].reshape(9, 6).T), (0, 1)),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_first_call_gives_what_later_calls_give_in_whichever_form(name: str) -> None:
    def made(x: Any) -> Any:
        return lax.copy(np.ascontiguousarray(x))
    expected = np.asarray(CALLS[name](made)).tobytes()
    for form in (made, np.asarray, np.ascontiguousarray, np.ndarray.tolist, tuple, np.asfortranarray):
        if name == "a sum over two axes" and form in (np.ndarray.tolist, tuple):
            continue  # functions of lax take no lists
        cj.clear_caches()
        assert [expected] * 3 == [np.asarray(CALLS[name](form)).tobytes() for _ in range(3)], form


@pytest.mark.parametrize("name", ["log2", "log10", "sinc", "i0", "log1p", "rad2deg"])
@pytest.mark.parametrize("bits", [64, 32])
def test_numbers_give_the_bits_of_arrays(name: str, bits: int) -> None:
    function = getattr(jnp, name)
    with cj.config(default_bits=bits):
        dtype = np.dtype(f"float{bits}")
        for value in (0.3, 2.7, 11.0):
            expected = function(lax.copy(dtype.type(value)))
            assert dtype == expected.dtype == function(value).dtype
            assert float(expected) == float(function(dtype.type(value)))
            if bits == 64 or np.float32(value) == value:
                assert float(expected) == float(function(value))


@pytest.mark.parametrize("bits", [64, 32])
def test_weak_arrays_give_the_bits_of_numbers(bits: int) -> None:
    with cj.config(default_bits=bits):
        x = lax.copy(X.astype(np.float32))
        weak = lax.add(0.25, 0.5)
        assert weak.aval.weak_type
        np.testing.assert_array_equal(jnp.hypot(x, 0.75), jnp.hypot(x, weak))
        np.testing.assert_array_equal(jnp.logaddexp(0.75, 0.75), jnp.logaddexp(weak, weak))


def test_operands_by_keyword_give_the_bits_of_operands_in_their_places() -> None:
    x, y = lax.copy(X), lax.copy(np.sin(X))
    for by_place, by_name in (
            (lambda: jnp.interp(x, x, y), lambda: jnp.interp(x, fp=y, xp=x)),
            (lambda: jnp.linalg.pinv(x[:54].reshape(9, 6)), lambda: jnp.linalg.pinv(a=x[:54].reshape(9, 6))),
            (lambda: jnp.convolve(x, y), lambda: jnp.convolve(v=y, a=x)),
            (lambda: jnp.sum(x, initial=2.5), lambda: jnp.sum(a=x, initial=lax.copy(np.array(2.5)))),
            (lambda: jnp.fft.fftn(x, axes=(0,)), lambda: jnp.fft.fftn(a=x, axes=[0])),
            (lambda: jnp.quantile(x, 0.3), lambda: jnp.quantile(q=0.3, a=x))):
        assert np.asarray(by_place()).tobytes() == np.asarray(by_name()).tobytes()


def test_within_numpys_functions_calls_give_the_bits_that_they_give_outside() -> None:
    outside = np.asarray(jnp.log2(X)).tobytes()
    inside = direct.directly(lambda x: np.asarray(jnp.log2(x)))(lambda x: jnp.log2(x))
    assert [outside] * 2 == [np.asarray(inside(X)).tobytes() for _ in range(2)]


def test_the_law_finds_a_function_whose_first_call_is_computed_in_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def planted(x: Any) -> Any:
        planted.times += 1  # type: ignore[attr-defined]
        return lax.add(x, 1e-15 * (planted.times > 1))  # type: ignore[attr-defined]
    planted.times = 0  # type: ignore[attr-defined]
    monkeypatch.setattr(same_bits, "function", lambda name: same_bits.Function(name, planted))
    found = same_bits.differing("planted", [Call((np.ones(3),))])
    assert found
    assert "planted: Array, first time" in found[0]
