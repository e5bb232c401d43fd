"""Compiling and running: from a jaxpr to an `Executable`.

Programs are shared by structure: what counts is the jaxpr's canonical form with its types, the constants baked into
it, and where and how it is compiled; not which Python function it came from. Each is compiled once however many
threads ask for it at the same time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from corejax import _jaxlib, dtypes
from corejax.avals import ShapedArray
from corejax.caches import BoundedCache
from corejax.errors import CorejaxError, CorejaxRuntimeError, CorejaxTypeError, CorejaxValueError
from corejax.ir.jaxpr import ClosedJaxpr
from corejax.ir.keys import structural_key
from corejax.source import here
from corejax.xla import client
from corejax.xla.array import Array, as_array, deleted_error, is_on_device, runtime_error
from corejax.xla.callback import take_raised
from corejax.xla.lowering import Lowering, bake, lower_module

V = TypeVar("V")


class Executable:
    """A compiled program: called with a sequence of arrays, it returns the list of its results without waiting.

    Arguments are trusted to have the types in `in_avals`; those that are not on the device are put there.
    """

    __slots__ = ("in_avals", "out_avals", "loaded", "place", "donated", "callbacks", "_execute", "_handlers",
                 "_consts", "_wrap", "__weakref__")

    def __init__(self, loaded: Any, place: client.Place, in_avals: Sequence[ShapedArray],
                 out_avals: Sequence[ShapedArray], donated: Sequence[int] = (), callbacks: Sequence[Any] = (),
                 consts: Sequence[Any] = ()) -> None:
        self.loaded, self.place, self.donated, self.callbacks = loaded, place, frozenset(donated), tuple(callbacks)
        self.in_avals, self.out_avals = tuple(in_avals), tuple(out_avals)
        self._consts = list(consts)
        self._handlers = [place.handler(_device_aval(aval)) for aval in out_avals]
        self._execute = self._run_and_wait if callbacks else loaded.execute_sharded
        float0 = any(aval.dtype == dtypes.float0 for aval in out_avals)
        self._wrap = _wrap_float0 if float0 else Array.from_device
        client.refuse_after_fork(self)

    def with_consts(self, consts: Sequence[Any]) -> Executable:
        """The same program with other values for the constants that are arguments."""
        return Executable(self.loaded, self.place, self.in_avals, self.out_avals, tuple(self.donated),
                          self.callbacks, consts)

    def __call__(self, args: Sequence[Any]) -> list[Any]:
        try:
            buffers = [x._buffer for x in args]
        except AttributeError:
            buffers = self._put(args)
        if self._consts:
            buffers = self._consts + buffers
        try:
            outs = self._execute(buffers).consume_with_handlers(self._handlers)
        except Exception as error:
            raise self._failure(error, args) from error
        if len(outs) == 1:
            return [self._wrap(outs[0], self.out_avals[0])]
        return [self._wrap(out, aval) for out, aval in zip(outs, self.out_avals)]  # noqa: B905 (once a call)

    def _put(self, args: Sequence[Any]) -> list[Any]:
        """The buffers of arguments of which some are in host memory."""
        copy = self.place.put_copy
        return [copy(aval, x) if type(x) is np.ndarray and x.dtype is aval.dtype else self._put_any(x, aval)
                for x, aval in zip(args, self.in_avals, strict=True)]

    def _put_any(self, x: Any, aval: ShapedArray) -> Any:
        """The buffer of an argument that may be anything."""
        array = x if type(x) is Array else as_array(x, copy=False)
        if aval.dtype == dtypes.float0:
            return self.place.put_shared(_device_aval(aval), np.zeros(aval.shape, np.bool_))
        try:
            host = array._host
        except AttributeError:
            return array._buffer
        if x is not array:
            return self.place.put_copy(aval, host.astype(aval.dtype, copy=False))
        # An Array's storage never changes, so the device may read it where it is; donated memory isn't written to
        # unless the runtime itself allocated it.
        return self.place.put_shared(aval, host)

    def _run_and_wait(self, buffers: Sequence[Any]) -> Any:
        """Run to the end, so that what a callback raises is raised here."""
        results = self.loaded.execute_sharded(buffers, with_tokens=True)
        results.consume_token().block_until_ready()
        return results

    def _failure(self, error: Exception, args: Sequence[Any]) -> BaseException:
        """What to raise when execution failed with `error`."""
        if isinstance(error, CorejaxError):
            return error
        raised = take_raised(self.callbacks)
        if raised is not None:
            return raised
        arrays = [x for x in args if type(x) is Array]
        for x in arrays:
            if x.is_deleted():
                return deleted_error(x)
        twice = [i for i in self.donated if sum(x is args[i] for x in args) > 1]
        if twice:
            return CorejaxValueError(f"argument {twice[0]} is donated, and passed a second time in the same call",
                                     where=here(), todo="pass a copy, or don't donate it")
        elsewhere = [x for x in arrays if is_on_device(x) and x.device != self.place.device]
        if elsewhere:
            return CorejaxValueError("arguments live on different devices", where=here(),
                                     got=f"{elsewhere[0].aval} on {elsewhere[0].device}", wanted=self.place.device,
                                     todo="move them with cj.device_put(x, device)")
        return runtime_error(error)

    def refuse(self, function: Callable[..., Any]) -> None:
        """From now on call `function` instead of running."""
        self._execute = function

    def as_text(self) -> str:
        """The program as the compiler optimised it, in HLO."""
        return "\n\n".join(module.to_string() for module in self.loaded.hlo_modules())

    def cost_analysis(self) -> dict[str, float]:
        """The compiler's estimates: `flops`, `bytes accessed` and others."""
        return dict(self.loaded.cost_analysis())

    def memory_analysis(self) -> Any:
        """What memory the program takes: arguments, outputs, temporaries, its code."""
        return self.loaded.get_compiled_memory_stats()


def _wrap_float0(buffer: Any, aval: ShapedArray) -> Array:
    if aval.dtype == dtypes.float0:
        return Array.from_host(np.zeros(aval.shape, dtypes.float0), aval)
    return Array.from_device(buffer, aval)


def _device_aval(aval: ShapedArray) -> ShapedArray:
    """The type that stands for this one on a device: float0 has none there and travels as bool."""
    return ShapedArray(aval.shape, np.bool_) if aval.dtype == dtypes.float0 else aval


class _OncePerKey:
    """A bounded cache that computes a missing value in one thread while others that want it wait.

    A computation that fails leaves nothing behind: the next in line tries anew.
    """

    def __init__(self, maxsize: int) -> None:
        self._cache: BoundedCache[Any, Any] = BoundedCache(maxsize)
        self._pending: dict[Any, tuple[int, threading.Event]] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, compute: Callable[[], V]) -> V:
        me = threading.get_ident()
        while True:
            found = self._cache.get(key)
            if found is not None:
                return found  # type: ignore[no-any-return]
            with self._lock:
                owner, done = self._pending.setdefault(key, (me, threading.Event()))
                mine = owner == me
            if mine:
                break
            done.wait()
        try:
            # The last owner may have finished between the look-up and the claim.
            found = self._cache.get(key)
            return found if found is not None else self._cache.put(key, compute())
        finally:
            with self._lock:
                self._pending.pop(key, None)
            done.set()


_executables = _OncePerKey(2048)


def compile_jaxpr(closed: ClosedJaxpr, *, donated: Sequence[int] = (), name: str = "fn",
                  options: Mapping[str, Any] | None = None, device: Any = None) -> Executable:
    """The executable of a closed jaxpr on a device; `donated` are the indices of arguments it may overwrite."""
    place = client.place_of(device)
    baked = bake(closed.consts)
    settings = _settings(options)
    key = (structural_key(closed.jaxpr), tuple(None if c is None else (c.dtype, c.tobytes()) for c in baked),
           tuple(donated), settings, place)

    def make() -> Executable:
        lowered = lower_module(closed.jaxpr, baked, name, place.platform, donated)
        return compile_lowered(lowered, closed, place, donated, settings)

    shared = _executables.get(key, make)
    hoisted = hoisted_consts(closed, baked, place)
    return shared.with_consts(hoisted) if hoisted else shared


def hoisted_consts(closed: ClosedJaxpr, baked: Sequence[Any], place: client.Place) -> list[Any]:
    """The buffers of the constants that are arguments, put on the device."""
    arrays = [as_array(const, copy=True) for const, host in zip(closed.consts, baked, strict=True) if host is None]
    return [x._buffer if is_on_device(x) else place.put_shared(x.aval, x._host) if x.aval.dtype != dtypes.float0
            else place.put_shared(_device_aval(x.aval), np.zeros(x.aval.shape, np.bool_)) for x in arrays]


def compile_lowered(lowered: Lowering, closed: ClosedJaxpr, place: client.Place, donated: Sequence[int] = (),
                    settings: Sequence[tuple[str, Any]] = (), consts: Sequence[Any] = ()) -> Executable:
    """Compile a lowered module for a place."""
    options = _jaxlib.compile_options(place.device.id, settings)
    with lowered.context, lowered._location:
        try:
            loaded = _jaxlib.compile_module(place.client, lowered.module, place.device, options, lowered.callbacks)
        except _jaxlib.RuntimeFailure as error:
            raise CorejaxRuntimeError("the compiler refused the program", got=str(error), where=here(),
                                      todo="look at its text with jit(f).lower(...).as_text()") from error
    return Executable(loaded, place, closed.in_avals, closed.out_avals, donated, lowered.callbacks, consts)


def _settings(options: Mapping[str, Any] | None) -> tuple[tuple[str, Any], ...]:
    """Compiler options as part of a key."""
    if not options:
        return ()
    for name, value in options.items():
        if not isinstance(name, str) or not isinstance(value, (bool, int, float, str)):
            raise CorejaxTypeError("a compiler option is a name with a bool, int, float or str", where=here(),
                                   got=f"{name!r}: {value!r}")
    return tuple(sorted(options.items()))
