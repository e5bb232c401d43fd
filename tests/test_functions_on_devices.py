"""Public functions of arrays on a device: what they compute in host memory, by compiled programs."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import lax
from corejax.arrays.storage import is_on_device
from corejax.core import Array
from corejax.eager import whole
from corejax.plugin import directly
from tests import same_bits

NAMES = [name for name in same_bits.NAMES if not name.startswith("lax.")]

#: Their result depends on which of two signs or orders a library takes: what it means is tested where they are.
UP_TO_CHOICE = ("numpy.linalg.svd", "numpy.linalg.eig", "numpy.linalg.eigh", "numpy.linalg.qr")

#: Their results are rounding errors where all is well.
RESIDUALS = ("numpy.linalg.lstsq",)

#: Sums of products, of which neither library says where infinities make NaNs; and divisions, since the compiler takes a
#: product with a converted boolean for a choice: False / 0.0 is 0.0 then, as in JAX.
FINITE = ("dot", "matmul", "einsum", "vdot", "vecdot", "matvec", "vecmat", "inner", "outer", "tensordot", "kron", "fft",
          "divide", "multi_dot", "convolve", "correlate", "linalg")


COMPARED = [name for name in NAMES if name not in (*UP_TO_CHOICE, *RESIDUALS)]


def on_device(x: Any) -> Any:
    return cj.device_put(x) if isinstance(x, np.ndarray) and x.dtype.isbuiltin else x


def parts(out: Any) -> list[Any]:
    return [part for each in out for part in parts(each)] if isinstance(out, (tuple, list)) else [out]


def given(function: same_bits.Function, call: Any, convert: Any) -> list[Any] | str:
    """The results of a call; of an error its class."""
    try:
        return parts(call.apply(function.call, tuple([convert(x) for x in call.operands])))
    except Exception as error:
        return type(error).__name__


def differences(function: same_bits.Function, call: Any) -> str:
    """How the results of a call on a device differ from those in host memory; empty if they don't."""
    wanted = given(function, call, same_bits.FORMS["Array"])
    several = [given(function, call, on_device) for _ in range(5)]
    if isinstance(wanted, str) or isinstance(several[0], str):
        return "" if [wanted] * 5 == several else f"{wanted} and {several}"
    if any([same_bits.bits(several[0]) != same_bits.bits(found) for found in several]):
        return f"other bits at a later call: {several}"
    for one, other in zip(wanted, several[0], strict=True):
        if type(one) is not Array or type(other) is not Array:
            if type(one) is not type(other) or not np.array_equal(one, other):
                return f"{one!r} and {other!r}"
        elif one.aval != other.aval:
            return f"{one.aval} and {other.aval}"
        elif not _is_close(np.asarray(one), np.asarray(other), any([part in function.name for part in FINITE])):
            return f"{one} and {other}"
    return ""


def _is_close(x: np.ndarray, y: np.ndarray, only_finite: bool) -> bool:
    if x.dtype.kind not in "fcV":
        return np.array_equal(x, y)
    if only_finite:
        x, y = (np.where(np.isfinite(x) & np.isfinite(y), z, 0).astype(z.dtype) for z in (x, y))
    wide = "c16" if x.dtype.kind == "c" else "f8"
    precision = {2: 2e-2, 4: 2e-4, 8: 2e-4 if x.dtype.kind == "c" else 1e-9, 16: 1e-9, 1: 0.5}[x.dtype.itemsize]
    with np.errstate(all="ignore"):
        largest = np.nanmax(np.abs(np.where(np.isfinite(x), x, 0).astype(wide)), initial=0.0)
        return np.allclose(x.astype(wide), y.astype(wide), precision, precision * largest, equal_nan=True)


def check(name: str, count: int, seed: int) -> None:
    function = same_bits.function(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [(call, text) for call in same_bits.drawn(name, count, seed) if (text := differences(function, call))]
    assert [] == found


@pytest.mark.sample(60)
@pytest.mark.parametrize("name", COMPARED)
def test_a_function_of_arrays_on_a_device_computes_what_it_computes_in_host_memory(name: str) -> None:
    check(name, 3, 3)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", COMPARED)
def test_functions_of_many_arrays_on_a_device_compute_what_they_compute_in_host_memory(name: str) -> None:
    check(name, 20, 4)


X = np.linspace(0.1, 2.0, 12, dtype="f4").reshape(3, 4)


@pytest.fixture
def x() -> Array:
    return cj.device_put(X)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of functions that are compiled as a whole."""
    names: list[str] = []
    compile_jaxpr = whole.compile_jaxpr

    def compiling(closed: Any, *, name: str, **options: Any) -> Any:
        names.append(name)
        return compile_jaxpr(closed, name=name, **options)
    monkeypatch.setattr(whole, "compile_jaxpr", compiling)
    cj.clear_caches()
    return names


def test_a_function_of_several_operations_is_one_program_on_a_device(x: Array, compiled: list[str]) -> None:
    for _ in range(3):
        for axis in (0, 1, None):
            found = jnp.mean(x, axis)
            assert is_on_device(found)
            np.testing.assert_allclose(np.mean(X, axis), np.asarray(found), rtol=1e-6)
    assert ["mean"] * 3 == compiled


def test_what_is_static_is_told_apart_by_value_and_type(x: Array, compiled: list[str]) -> None:
    for _ in range(2):
        assert (3,) == jnp.var(x, 1).shape and (4,) == jnp.var(x, 0).shape
        np.testing.assert_allclose(np.var(X, 1, ddof=1), np.asarray(jnp.var(x, 1, ddof=1)), rtol=1e-5)
        assert np.float64 == jnp.var(x, dtype="f8").dtype and np.float32 == jnp.var(x, dtype="f4").dtype
    assert 5 == len(compiled)


def test_numbers_are_operands_of_the_same_program(x: Array, compiled: list[str]) -> None:
    for i in range(5):
        np.testing.assert_array_equal(np.where(X > 1, X, np.float32(i / 2)),
                                      np.asarray(jnp.where(cj.device_put(X > 1), x, i / 2)))
        found = jnp.where(cj.device_put(X > 1), x, i)
        np.testing.assert_array_equal(np.where(X > 1, X, np.float32(i)), np.asarray(found))
        assert np.float32 == found.dtype
    assert 2 == len(compiled)


def test_static_numbers_that_a_loop_changes_make_no_programs(x: Array, compiled: list[str]) -> None:
    for i in range(3):
        np.testing.assert_allclose(np.trapezoid(X, dx=0.5 + i), np.asarray(jnp.trapezoid(x, dx=0.5 + i)), rtol=1e-5)
        np.testing.assert_array_equal(X, np.asarray(jnp.nan_to_num(x, nan=float("nan"))))
    assert ["sum"] == compiled  # within trapezoid, once


def test_an_array_in_host_memory_is_no_operand_of_a_program_on_a_device(x: Array) -> None:
    """Whatever NumPy's function raises, the bits are those of host memory."""
    def fails(x: Any) -> Any:
        raise AttributeError("_hosts")
    f = directly(fails, whole=True)(lambda x: lax.exp(x) * 2.0)
    host = lax.copy(X)
    wanted = np.asarray(lax.exp(host) * 2.0).tobytes()
    for _ in range(4):
        assert is_on_device(f(x)) and not is_on_device(f(host))
        assert wanted == np.asarray(f(host)).tobytes()


@pytest.mark.parametrize("number", [300, -1, 2**70])
def test_integers_out_of_range_are_refused_as_in_host_memory(number: int) -> None:
    small = np.arange(4, dtype="u1")
    messages = []
    for convert in (same_bits.FORMS["Array"], cj.device_put):
        with pytest.raises(Exception) as error:
            jnp.where(convert(small > 1), convert(small), number)
        messages.append((error.type, str(error.value).split("\n")[0]))
    assert messages[0] == messages[1]


def test_wrong_calls_are_reported_as_in_host_memory(x: Array) -> None:
    host = same_bits.FORMS["Array"](X)
    for call in (lambda x: jnp.mean(x, 7), lambda x: jnp.mean(x, "rows"), lambda x: jnp.mean(x, axes=1),
                 lambda x: jnp.where(x > 1, x, np.ones(5)), lambda x: jnp.cumsum(x, [0, 1])):
        texts = []
        for value in (host, x, x):
            with pytest.raises(Exception) as error:
                call(value)
            texts.append((error.type, str(error.value).split("\n")[0]))
            assert error.value.__context__ is None or error.value.__suppress_context__
        assert 1 == len(set(texts))


def test_deleted_arrays_are_named(x: Array) -> None:
    jnp.mean(x)
    x.delete()
    for _ in range(3):
        with pytest.raises(cj.errors.CorejaxRuntimeError, match="deleted"):
            jnp.mean(x)


def test_sizes_that_vary_are_no_program_and_not_tried_again(x: Array, compiled: list[str],
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    staged: list[str] = []
    stage = whole.stage

    def staging(*args: Any, name: str) -> Any:
        staged.append(name)
        return stage(*args, name=name)
    monkeypatch.setattr(whole, "stage", staging)
    for _ in range(3):
        assert 2 == len(jnp.where(x > 1))
        assert 6 == len(jnp.where(x > 1)[0])
    assert [] == compiled and ["where"] == staged


@pytest.mark.parametrize(("result", "wanted"), [
    (lambda x: None, None), (lambda x: (x.sum(), {"twice": x * 2.0}), 15.0), (lambda x: [], []),
    (lambda x: "a text", "a text"), (lambda x: x.shape, (3, 4))], ids=["None", "a tree", "nothing", "text", "numbers"])
def test_whole_functions_may_have_results_of_any_kind_and_no_name(x: Array, result: Any, wanted: Any) -> None:
    f = directly(lambda x: result(x), whole=True)(partial(lambda result, x: result(x), result))
    for _ in range(4):
        found = f(x)
        if isinstance(wanted, float):
            assert 12.6 == pytest.approx(float(found[0])) and (3, 4) == found[1]["twice"].shape
        else:
            assert wanted == found and type(wanted) is type(found)
            assert [type(x) for x in cj.tree.leaves(wanted)] == [type(x) for x in cj.tree.leaves(found)]


def test_transformations_see_the_operations(x: Array) -> None:
    jnp.mean(x)
    np.testing.assert_allclose(np.full((3, 4), 1 / 12), np.asarray(cj.grad(lambda x: jnp.mean(x))(x)), rtol=1e-6)
    np.testing.assert_allclose(X.mean(1), np.asarray(cj.vmap(jnp.mean)(x)), rtol=1e-6)
    assert "reduce_sum" in str(cj.make_jaxpr(lambda x: jnp.mean(x))(x))
