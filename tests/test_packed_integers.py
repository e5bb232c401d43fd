"""Integers of less than a byte, and float4: the same in every form, eager or compiled (decision 0057)."""

from __future__ import annotations

import copy
import pickle
from contextlib import suppress
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import lax
from corejax.core import ShapedArray, dtypes
from corejax.errors import CorejaxOverflowError, CorejaxTypeError
from corejax.plugin import define, find, hookimpl
from corejax_testing import other_types
from corejax_testing.case import Case
from corejax_testing.packs import primitives_of
from corejax_testing.report import NotApplicable
from corejax_testing.specification import samples_of
from tests.packed_programs import NAMES, compared
from tests.shared.exhaustive import exhaustive_unless

ALL = (*NAMES, "float4_e2m1fn")
PACKS = ("lax-basic", "reductions", "special", "sorting", "windows", "linear-algebra", "fft", "nn")
PRIMITIVES = [name for pack in PACKS for name in primitives_of(f"corejax-{pack}")]
SEEDS = exhaustive_unless(lambda case: case[1] % 100 == NAMES.index(case[0]), [
    (name, seed) for name in NAMES for seed in range(200)])


@pytest.mark.parametrize("case", SEEDS, ids=lambda case: f"{case[0]}-{case[1]}")
def test_random_programs_are_those_of_bytes_whose_lowest_bits_are_taken(case: tuple[str, int]) -> None:
    assert compared(*case) is None


@pytest.mark.parametrize("name", ALL)
def test_arrays_are_the_same_wherever_they_are(name: str) -> None:
    host = np.array([[1, 0, 1], [0, 1, 1]]).astype(dtypes.canonical(name))
    on_device, in_memory = cj.device_put(host), cj.jit(lambda x: x)(host)
    for x in (on_device, in_memory, lax.convert_element_type(host, name), pickle.loads(pickle.dumps(in_memory)),
              copy.deepcopy(on_device), cj.device_put(in_memory, cj.devices()[0]), jnp.asarray(host)):
        assert (x.dtype, x.shape) == (host.dtype, host.shape)
        np.testing.assert_array_equal(host, np.asarray(x))
        np.testing.assert_array_equal(host, cj.device_get(x))
        assert str(x) == "[[1 0 1]\n [0 1 1]]"
        assert repr(x) == f"Array([[1, 0, 1],\n       [0, 1, 1]], dtype={name})"
        assert x.tolist() == [[1, 0, 1], [0, 1, 1]] and x[1, 2].item() == 1
        assert [row.tolist() for row in x] == [[1, 0, 1], [0, 1, 1]]
        assert (int(x[0, 0]), float(x[0, 1]), bool(x[0, 2])) == (1, 0.0, True)
        assert x.T.tolist() == [[1, 0], [0, 1], [1, 1]]
        assert x.nbytes == 6


@pytest.mark.parametrize("name", ALL)
def test_memory_is_not_shared_with_libraries_that_have_no_such_dtype(name: str) -> None:
    with pytest.raises(BufferError, match="DLPack has no such dtype"):
        np.from_dlpack(cj.device_put(np.zeros(3).astype(dtypes.canonical(name))))


def test_a_deleted_array_is_deleted() -> None:
    x = jnp.ones(3, jnp.int4)
    x.delete()
    assert x.is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(x)


@pytest.mark.parametrize("name", NAMES)
def test_numbers_of_python_that_do_not_fit_are_refused(name: str) -> None:
    limits, x = jnp.iinfo(name), jnp.zeros(2, name)
    for number in (limits.min, limits.max):
        assert (x + number).tolist() == [number, number] == jnp.full(2, number, name).tolist()
        assert cj.jit(lambda x, n: x + n, static_argnums=1)(x, int(number)).tolist() == [number, number]
    for number in (limits.min - 1, limits.max + 1):
        with pytest.raises(CorejaxOverflowError, match=f"{number} doesn't fit"):
            x + number


def test_no_other_dtype_is_promoted_to_one() -> None:
    x = jnp.ones(2, jnp.int4)
    assert (x + 1).dtype == (x + True).dtype == jnp.int4
    for other in (jnp.ones(2, jnp.int8), jnp.ones(2, jnp.uint4), jnp.ones(2, jnp.int2), jnp.ones(2, jnp.float32)):
        with pytest.raises(CorejaxTypeError, match="have no common dtype"):
            x + other


def test_what_is_compiled_takes_the_lowest_bits_before_a_conversion() -> None:
    """Where XLA's own types are used, it doesn't."""
    x = np.arange(-8, 8).astype("int4")
    wanted = [((n * n + n + 8) & 15) - 8 for n in range(-8, 8)]
    assert cj.jit(lambda x: lax.convert_element_type(x * x + x, np.int8))(x).tolist() == wanted
    y = np.array([1, -2, 0, -1]).astype("int2")
    assert cj.jit(lambda y: jnp.max(y + y))(y).item() == 0


@pytest.mark.parametrize("name", NAMES)
def test_bits_are_those_of_the_narrow_dtype(name: str) -> None:
    bits, limits = dtypes.bits_of(dtypes.canonical(name)), jnp.iinfo(name)
    numbers, per = list(range(limits.min, limits.max + 1)), 8 // bits
    x = np.array(numbers).astype(dtypes.canonical(name))
    unsigned = [n % 2 ** bits for n in numbers]

    def signed(n: int) -> int:
        return (n - limits.min) % 2 ** bits + limits.min
    for run in (lambda f: f, cj.jit):
        assert run(lax.population_count)(x).tolist() == [signed(n.bit_count()) for n in unsigned]
        assert run(lax.clz)(x).tolist() == [signed(bits - n.bit_length()) for n in unsigned]
        one = np.ones((), x.dtype)
        assert run(lax.shift_right_logical)(x, one).tolist() == [signed(n >> 1) for n in unsigned]
        arithmetic = [(n >> 1) | (n & 2 ** (bits - 1)) for n in unsigned]
        assert run(lax.shift_right_arithmetic)(x, one).tolist() == [*map(signed, arithmetic)]
        assert run(lax.shift_left)(x, one).tolist() == [signed(n << 1) for n in unsigned]
        assert run(lax.mulhi)(x, x).tolist() == [n * n >> bits for n in numbers]
        in_bytes = run(lambda x: lax.bitcast_convert_type(x, np.uint8))(x.reshape(-1, per))
        assert in_bytes.tolist() == [sum(n << (k * bits) for k, n in enumerate(unsigned[i:i + per]))
                                     for i in range(0, len(numbers), per)]


def test_floats_are_rounded_towards_zero_and_kept_in_range() -> None:
    x = np.array([1.9, -1.9, 300.0, -300.0, np.nan, np.inf])
    for run in (lambda f: f, cj.jit):
        assert run(lambda x: x.astype(jnp.int4))(jnp.asarray(x)).tolist() == [1, -1, 7, -8, 0, 7]
        assert run(lambda x: x.astype(jnp.uint2))(jnp.asarray(x)).tolist() == [1, 0, 3, 0, 0, 3]
        assert run(lambda x: x.astype(jnp.float4_e2m1fn).astype(jnp.int32))(jnp.array([6.0, 5.1, -9.0])).tolist() == [
            6, 6, -6]


@pytest.mark.parametrize("name", NAMES)
def test_transformations_take_them(name: str) -> None:
    x = np.array([1, 0, 1, 1]).astype(dtypes.canonical(name))
    assert cj.vmap(lambda x: x * x)(x).tolist() == [1, 0, 1, 1]
    assert cj.grad(lambda w: jnp.sum(w * jnp.asarray(x).astype(float)))(2.0) == 3.0
    out, tangent = cj.jvp(lambda x: x + x, (x,), (np.zeros(4, dtypes.float0),))
    assert out.dtype == x.dtype and tangent.dtype == dtypes.float0
    total, steps = lax.scan(lambda c, x: (c | x, c), jnp.zeros((), name), x)
    assert (total.item(), steps.tolist()) == (jnp.ones((), name).item(), [0, 1, 1, 1])
    jaxpr = cj.make_jaxpr(lambda x: x + jnp.ones((), name))(x)
    assert str(ShapedArray((4,), name)) in str(jaxpr)
    assert cj.core.eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, x)[0].dtype == x.dtype


def test_a_rule_that_only_evaluates_gets_the_narrow_dtype() -> None:
    seen = []

    class Doubled:
        name = "doubled_by_numpy"

        @hookimpl
        def abstract_eval(self, avals: list[ShapedArray]) -> ShapedArray:
            return avals[0]

        @hookimpl
        def impl(self, args: list[np.ndarray]) -> np.ndarray:
            seen.append(args[0].dtype)
            return args[0] + args[0]

    x = np.array([3, -4, 5, 1]).astype("int4")
    with pytest.warns(UserWarning, match="no xla_translation"):
        assert cj.jit(define(Doubled()))(x).tolist() == [6, -8, -6, 2]
    assert set(seen) == {np.dtype(ml_dtypes.int4)}


@pytest.mark.sample(40)
@pytest.mark.parametrize("name", PRIMITIVES)
def test_primitives_of_the_standard_packs_take_them_or_refuse_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other_types, "_TRIED", [*map(dtypes.canonical, ("int4", "uint4"))])
    check = other_types.every_dtype_that_is_accepted_works
    samples = samples_of(find(name))
    for i, sample in enumerate(samples):
        if sample.error is None:
            with suppress(NotApplicable):
                check.run(Case(find(name), sample, i, samples=samples))


class Narrowed:
    name = "narrowed_by_numpy"

    @hookimpl
    def abstract_eval(self, avals: list[ShapedArray]) -> ShapedArray:
        return avals[0].update(dtype="int4")

    @hookimpl
    def impl(self, args: list[np.ndarray]) -> np.ndarray:
        return args[0].astype(ml_dtypes.int4)

    @hookimpl
    def xla_translation(self, ctx: Any, args: list[Any]) -> Any:
        return ctx.op("stablehlo.convert", args)


def test_numpy_computes_nothing_of_them_however_they_were_made() -> None:
    narrowed, wide = define(Narrowed()), jnp.asarray(np.array([3, -8, 9], np.int32))
    made = (lambda: narrowed(wide), lambda: wide.astype(jnp.int4), lambda: jnp.array([3, -8, -7], dtype=jnp.int4),
            lambda: jnp.full(3, 3, jnp.int4) * jnp.array([1, 0, -5], dtype=jnp.int4) + jnp.array([0, -8, -8], jnp.int4))
    for make in made:
        for _ in range(3):
            assert make().tolist() == [3, -8, -7]
            assert (-make()).tolist() == [-3, -8, 7] and (-make()).dtype == jnp.int4
            assert jnp.maximum(make(), 0).tolist() == [3, 0, 0] and (make() & 1).tolist() == [1, 0, 1]


def test_exported_programs_take_them() -> None:
    x = np.array([3, -4, 5, 1]).astype("int4")
    exported = cj.export.export(cj.jit(lambda x: x + x))(x)
    assert cj.export.deserialize(exported.serialize()).call(x).tolist() == [6, -8, -6, 2]
