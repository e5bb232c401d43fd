"""Rules and native functions that write to their operands are found, whichever call does it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.base import _jaxlib
from corejax.plugin import Sample, define, hookimpl
from corejax.testing import ConformanceError, check_primitive
from tests.plugin import ffi

WRITES = "no rule writes to its operands"


def handler(compute: Callable[[Any, Any], None]) -> Any:
    """A native function of an operand and a result, both float64."""
    def call(frame: Any) -> None:
        asked = frame[0].extension
        if asked:
            asked[0].metadata[0].major, asked[0].metadata[0].minor = ffi._VERSION
        else:
            compute(frame[0].operands.buffers[0][0].array(), frame[0].results.buffers[0][0].array())

    name = b"xla._CUSTOM_CALL_TARGET"
    made = ffi._Handler(call)
    ffi._kept.extend((made, name))
    return ffi._new(ctypes.cast(made, ctypes.c_void_p), name, None)


def doubles(x: Any, out: Any) -> None:
    out[...] = 2.0 * x


def doubles_and_clears(x: Any, out: Any) -> None:
    out[...] = 2.0 * x
    x[...] = -1.0


@pytest.fixture(scope="module")
def native() -> dict[str, str]:
    """The targets of native functions, by the names of what they compute."""
    cj.devices()  # a client takes functions
    targets = {}
    for compute in (doubles, doubles_and_clears):
        targets[compute.__name__] = f"tests-memory.{compute.__name__}"
        _jaxlib.register_function(targets[compute.__name__], handler(compute), "cpu")
    return targets


class Native:
    """2 x, by a native function."""

    linear = (0,)

    def __init__(self, name: str, target: str, backward: str | None = None) -> None:
        self.name, self._target, self._backward = name, target, backward

    @hookimpl
    def abstract_eval(self, avals: Sequence[Any]) -> Any:
        (x,) = avals
        if x.dtype != np.float64:
            raise cj.errors.CorejaxTypeError("only float64 can be doubled", got=str(x), wanted="float64")
        return x

    @hookimpl
    def transpose(self, cotangents: Any, args: Sequence[Any]) -> Any:
        return [self._other(cotangents)]

    def _other(self, x: Any) -> Any:
        if self._backward is None:
            return made(self)(x)
        return made(Native(f"{self.name}_backward", self._backward))(x)

    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[Any]) -> Any:
        return made(self)(args[0]), dims[0]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Sequence[Any]) -> Any:
        return ctx.custom_call(self._target, args)[0]

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample([np.array([1.0, 2.0, 3.0])], domain=(-2.0, 2.0), results=np.array([2.0, 4.0, 6.0]))
        yield Sample([rng.normal(size=(2, 3))])


_made: dict[str, Any] = {}


def made(plugin: Native) -> Any:
    if plugin.name not in _made:
        _made[plugin.name] = define(plugin)
    return _made[plugin.name]


def failures(primitive: Any, **options: Any) -> list[Any]:
    try:
        check_primitive(primitive, **options)
    except ConformanceError as error:
        return list(error.failures)
    return []


def test_native_function_that_writes_to_its_results_alone_passes(native: dict[str, str]) -> None:
    assert [] == list(map(str, failures(made(Native("native_right", native["doubles"])))))


@pytest.mark.parametrize("full", [False, True])
def test_native_function_that_writes_to_its_operand_is_found_and_blamed(native: dict[str, str], full: bool) -> None:
    found = failures(made(Native("native_clears", native["doubles_and_clears"])), checks=[WRITES], full=full)
    assert {("native_clears", "xla_translation", "it writes to operand 0")} == {
        (each.primitive, each.hook, each.problem) for each in found}
    assert "aliases=" in str(found[0]) and "got:    [[-1.0, -1.0, -1.0]" in str(found[-1])


def test_each_call_is_looked_at_and_not_only_those_of_one_check(native: dict[str, str]) -> None:
    found = failures(made(Native("native_clears", native["doubles_and_clears"])),
                     checks=["operands on the device give the same"])
    assert {"it writes to operand 0"} == {each.problem for each in found}


def test_write_that_happens_for_some_values_only_is_found() -> None:
    class Cleared:
        """2 x; of NaN it makes 0 where it found it."""

        name = "cleared"

        @hookimpl
        def decompose(self, args: Sequence[Any]) -> Any:
            (x,) = args
            return 2.0 * x

        @hookimpl
        def impl(self, args: Sequence[Any]) -> Any:
            (x,) = args
            out = np.asarray(2 * x, x.dtype)
            if x.dtype == np.float64 and np.isnan(x).any():
                ctypes.memset(x.ctypes.data, 0, x.nbytes)  # whatever the array's flags say
            return out

        @hookimpl
        def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
            yield Sample([rng.normal(size=(2, 3))], domain=(-2.0, 2.0))

    found = failures(define(Cleared()))
    assert ("cleared", "impl", "it writes to operand 0") in {
        (each.primitive, each.hook, each.problem) for each in found}


def test_impl_that_lifts_the_flag_of_read_only_memory_is_found() -> None:
    class Lifted:
        name = "lifted"

        @hookimpl
        def decompose(self, args: Sequence[Any]) -> Any:
            return lax.sin(args[0])

        @hookimpl
        def impl(self, args: Sequence[Any]) -> Any:
            (x,) = args
            out = np.sin(x)
            ctypes.memset(x.ctypes.data, 0, x.nbytes)
            return out

        @hookimpl
        def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
            yield Sample([rng.normal(size=(2, 3))], domain=(-2.0, 2.0))

    for check in (WRITES, "impl and the compiled program agree", "memory layout makes no difference"):
        found = failures(define(Lifted()), checks=[check])
        assert ("impl", "it writes to operand 0") in {(each.hook, each.problem) for each in found}


def test_callback_that_writes_to_its_operand_changes_a_copy_of_its_own() -> None:
    class CalledBack:
        """2 x, computed on the host by a compiled program."""

        name = "called_back"

        @hookimpl
        def abstract_eval(self, avals: Sequence[Any]) -> Any:
            return lax.floor.primitive.infer(tuple(avals), {})

        @hookimpl
        def xla_translation(self, ctx: Any, args: Sequence[Any]) -> Any:
            def compute(x: np.ndarray) -> list[np.ndarray]:
                out = np.asarray(2 * x, x.dtype)
                ctypes.memset(x.ctypes.data, 0, x.nbytes)
                return [out]
            return ctx.callback(compute, args, ctx.avals_out)[0]

        @hookimpl
        def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
            yield Sample([np.array([1.0, 2.0])], results=np.array([2.0, 4.0]))

    assert [] == failures(define(CalledBack()), checks=[WRITES])


def test_fault_in_the_kernel_of_a_transpose_is_found(native: dict[str, str]) -> None:
    found = failures(made(Native("native_half", native["doubles"], native["doubles_and_clears"])), checks=[WRITES])
    assert {("transpose", "it writes to operand 1 of vjp")} == {(each.hook, each.problem) for each in found}


def test_samples_are_the_same_after_a_rule_wrote_to_them() -> None:
    class Ending:
        name = "ending"

        @hookimpl
        def decompose(self, args: Sequence[Any]) -> Any:
            return lax.sin(args[0])

        @hookimpl
        def impl(self, args: Sequence[Any]) -> Any:
            (x,) = args
            out = np.sin(x)
            ctypes.memset(x.ctypes.data, 0, x.nbytes)
            return out

    x = np.array([1.0, 2.0])
    assert failures(define(Ending()), samples=[Sample([x])])
    assert [1.0, 2.0] == x.tolist()
