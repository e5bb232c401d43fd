"""Compiling and running: from a jaxpr to an `Executable`.

Programs are shared by structure: what counts is the jaxpr's canonical form with its types, the constants baked into
it, and where and how it is compiled; not which Python function it came from. Each is compiled once however many
threads ask for it at the same time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from corejax import _jaxlib, dtypes
from corejax.avals import ShapedArray
from corejax.caches import BoundedCache
from corejax.errors import CorejaxError, CorejaxTypeError, CorejaxValueError
from corejax.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var, subjaxprs
from corejax.ir.keys import compiled_key
from corejax.source import here
from corejax.xla import client
from corejax.xla.array import Array, as_array
from corejax.xla.callback import take_raised
from corejax.xla.failures import failed_lowering, refused_program, runtime_error
from corejax.xla.lowering import Lowering, bake, lower_module
from corejax.xla.storage import deleted_error, is_on_device, to_numpy


class Executable:
    """A compiled program. `call(args)` takes a sequence of arrays and returns the list of results without waiting.

    Arguments are trusted to have the types in `in_avals`; those that are not on the device are put there.
    """

    __slots__ = ("in_avals", "out_avals", "loaded", "place", "donated", "callbacks", "call", "_consts", "__weakref__")
    call: Callable[[Sequence[Any]], list[Array]]

    def __init__(self, loaded: Any, place: client.Place, in_avals: Sequence[ShapedArray],
                 out_avals: Sequence[ShapedArray], donated: Sequence[int] = (), callbacks: Sequence[Any] = (),
                 consts: Sequence[Any] = ()) -> None:
        self.loaded, self.place, self.donated, self.callbacks = loaded, place, tuple(donated), tuple(callbacks)
        self.in_avals, self.out_avals = tuple(in_avals), tuple(out_avals)
        self._consts = list(consts)
        self.call = _make_call(self)

    def with_consts(self, consts: Sequence[Any]) -> Executable:
        """The same program with other values for the constants that are arguments."""
        return Executable(self.loaded, self.place, self.in_avals, self.out_avals, self.donated, self.callbacks, consts)

    def __call__(self, args: Sequence[Any]) -> list[Array]:
        return self.call(args)

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


def _make_call(executable: Executable) -> Callable[[Sequence[Any]], list[Array]]:
    """The function that runs a program.

    A closure, since reading what it needs from an object's slots would cost a tenth of the whole call. It doesn't
    refer to the executable, which so goes with its last reference.
    """
    place, donated, callbacks = executable.place, executable.donated, executable.callbacks
    execute = _waiting(executable.loaded, callbacks) if callbacks else executable.loaded.execute_sharded
    out_avals, consts = executable.out_avals, executable._consts
    handlers = [place.handler(_device_aval(aval)) for aval in out_avals]
    float0 = any(aval.dtype == dtypes.float0 for aval in out_avals)
    wrap = _wrap_float0 if float0 else Array.from_device
    only_aval = out_avals[0] if len(out_avals) == 1 else None
    to_buffers = _make_to_buffers(place, executable.in_avals)
    from_host = False

    def call(args: Sequence[Any]) -> list[Array]:
        nonlocal from_host
        # Arguments tend to come from the same memory as last time; a wrong guess costs a caught AttributeError.
        if from_host:
            buffers, from_host = to_buffers(args)
        else:
            try:
                buffers = [x._buffer for x in args]
            except AttributeError:
                buffers, from_host = to_buffers(args)
        try:
            outs = execute(consts + buffers if consts else buffers).consume_with_handlers(handlers)
        except (RuntimeError, TypeError, ValueError) as error:
            raise _failure(error, args, place, donated, callbacks) from None
        if only_aval is not None:
            return [wrap(outs[0], only_aval)]
        return [wrap(out, aval) for out, aval in zip(outs, out_avals, strict=True)]

    def refuse(function: Callable[..., Any]) -> None:
        nonlocal execute, to_buffers
        execute = to_buffers = function

    client.refuse_after_fork(call, refuse)
    return call


def _make_to_buffers(place: client.Place,
                     in_avals: Sequence[ShapedArray]) -> Callable[[Sequence[Any]], tuple[list[Any], bool]]:
    """The function that puts arguments on the device: their buffers, and whether any came from host memory."""
    put, sharding, (devices, committed, force, copying, wide) = place.put, place.sharding, place.copying
    sharing = place.sharing[3]
    in_types = [(aval, None if aval.dtype == dtypes.float0 else aval.dtype) for aval in in_avals]
    ndarray = np.ndarray

    def to_buffers(args: Sequence[Any]) -> tuple[list[Any], bool]:
        buffers = []
        from_host = False
        for x, (aval, dtype) in zip(args, in_types, strict=True):
            kind = type(x)
            if kind is ndarray and x.dtype is dtype:
                from_host = True
                buffers.append(put(aval, sharding, (x,), devices, committed, force, copying, wide))
            elif kind is Array and dtype is not None:
                try:
                    host = x._host
                except AttributeError:
                    buffers.append(x._buffer)
                    continue
                # An Array's storage never changes, so the device may read it where it is; memory that the runtime
                # didn't allocate is not written to, not even if it is donated.
                host = host if type(host) is ndarray else np.asarray(host)
                buffers.append(put(aval, sharding, (host,), devices, committed, force, sharing, wide))
                from_host = True
            else:
                buffers.append(_put(x, aval, place))
        return buffers, from_host

    return to_buffers


def _put(x: Any, aval: ShapedArray, place: client.Place) -> Any:
    """The buffer of an argument that is no plain case."""
    if aval.dtype == dtypes.float0:
        return place.put_shared(_device_aval(aval), np.zeros(aval.shape, np.bool_))
    array = as_array(x, copy=False)
    if is_on_device(array):
        return array._buffer
    return place.put_copy(aval, to_numpy(array).astype(aval.dtype, copy=False))


def _waiting(loaded: Any, callbacks: Sequence[Any]) -> Callable[[Sequence[Any]], Any]:
    """How to run a program that calls back: to its end, so that what a callback raises is raised here."""
    announced = [callback.before for callback in callbacks if callback.before is not None]

    def execute(buffers: Sequence[Any]) -> Any:
        for before in announced:
            before()
        results = loaded.execute_sharded(buffers, with_tokens=True)
        results.consume_token().block_until_ready()
        return results
    return execute


def _failure(error: Exception, args: Sequence[Any], place: client.Place, donated: Sequence[int],
             callbacks: Sequence[Any]) -> BaseException:
    """What to raise when execution failed with `error`."""
    if isinstance(error, CorejaxError):
        return error
    raised = take_raised(callbacks)
    if raised is not None:
        return raised
    arrays = [x for x in args if type(x) is Array]
    for x in arrays:
        if x.is_deleted():
            return deleted_error(x)
    twice = [i for i in donated if sum(x is args[i] for x in args) > 1]
    if twice:
        return CorejaxValueError(f"argument {twice[0]} is donated, and passed a second time in the same call",
                                 where=here(), todo="pass a copy, or don't donate it")
    elsewhere = [x for x in arrays if is_on_device(x) and x.device != place.device]
    if elsewhere:
        return CorejaxValueError("arguments live on different devices", where=here(),
                                 got=f"{elsewhere[0].aval} on {elsewhere[0].device}", wanted=place.device,
                                 todo="move them with cj.device_put(x, device)")
    return runtime_error(error)


class _OncePerKey:
    """A bounded cache that computes a missing value in one thread while others that want it wait.

    A computation that fails leaves nothing behind: the next in line tries anew.
    """

    def __init__(self, maxsize: int) -> None:
        self._cache: BoundedCache[Any, Any] = BoundedCache(maxsize)
        self._pending: dict[Any, tuple[int, threading.Event]] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        me = threading.get_ident()
        while True:
            found = self._cache.get(key)
            if found is not None:
                return found
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
    settings = settings_of(options)
    key = (compiled_key(closed.jaxpr), tuple(None if c is None else (c.dtype, c.tobytes()) for c in baked),
           tuple(donated), settings, place)

    def make() -> Executable:
        lowered = lower_module(closed.jaxpr, baked, name, place.compiler, donated)
        return compile_lowered(lowered, closed, place, donated, settings)

    shared: Executable = _executables.get(key, make)
    hoisted = hoisted_consts(closed, baked, place)
    return shared.with_consts(hoisted) if hoisted else shared


def hoisted_consts(closed: ClosedJaxpr, baked: Sequence[Any], place: client.Place) -> list[Any]:
    """The buffers of the constants that are arguments, put on the device."""
    arrays = [as_array(const, copy=True) for const, host in zip(closed.consts, baked, strict=True) if host is None]
    return [x._buffer if is_on_device(x) else place.put_shared(x.aval, to_numpy(x)) if x.aval.dtype != dtypes.float0
            else place.put_shared(_device_aval(x.aval), np.zeros(x.aval.shape, np.bool_)) for x in arrays]


def compile_lowered(lowered: Lowering, closed: ClosedJaxpr, place: client.Place, donated: Sequence[int] = (),
                    settings: Sequence[tuple[str, Any]] = (), consts: Sequence[Any] = ()) -> Executable:
    """Compile a lowered module for a place."""
    options = _jaxlib.compile_options(place.device.id, settings)
    with lowered.context, lowered._location:
        try:
            loaded = _jaxlib.compile_module(place.client, lowered.module, place.device, options, lowered.callbacks)
        except _jaxlib.RuntimeFailure as error:
            eqn = _first_invalid(closed.jaxpr, place.compiler)
            raise (refused_program(error) if eqn is None else failed_lowering(eqn, error)) from error
    return Executable(loaded, place, closed.in_avals, closed.out_avals, donated, lowered.callbacks, consts)


def _first_invalid(jaxpr: Jaxpr, platform: str) -> JaxprEqn | None:
    """The first equation whose lowering by itself makes no valid program."""
    for eqn in jaxpr.eqns:
        for inner in subjaxprs(eqn.params):
            found = _first_invalid(inner, platform)
            if found is not None:
                return found
        operands = list(dict.fromkeys([x for x in eqn.invars if type(x) is Var]))
        try:
            alone = Jaxpr((), operands, eqn.outvars, (eqn,), eqn.effects)
            lower_module(alone, (), "one", platform).module.operation.verify()
        except Exception:  # whatever is wrong with it, this is the one
            return eqn
    return None


def settings_of(options: Mapping[str, Any] | None) -> tuple[tuple[str, Any], ...]:
    """Compiler options as part of a key."""
    if not options:
        return ()
    for name, value in options.items():
        if not isinstance(name, str) or not isinstance(value, (bool, int, float, str)):
            raise CorejaxTypeError("a compiler option is a name with a bool, int, float or str", where=here(),
                                   got=f"{name!r}: {value!r}")
    return tuple(sorted(options.items()))
