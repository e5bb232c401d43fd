"""Running compiled programs: arguments go to the device, results come back wrapped, failures are told in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from corejax import dtypes
from corejax.avals import ShapedArray
from corejax.errors import CorejaxError, CorejaxValueError
from corejax.source import here
from corejax.xla import client
from corejax.xla.array import Array, as_array
from corejax.xla.callback import take_raised
from corejax.xla.failures import runtime_error
from corejax.xla.storage import deleted_error, is_on_device, to_numpy


class Calls(NamedTuple):
    """The ways to run a program: with its arguments, or with their buffers; for all results, or for the only one.

    The arguments go beside their buffers for the sake of errors.
    """

    call: Callable[[Sequence[Any]], list[Array]]
    call_for_one: Callable[[Sequence[Any]], Array]
    direct: Callable[[list[Any], Sequence[Any]], list[Array]]
    direct_for_one: Callable[[list[Any], Sequence[Any]], Array]


_new = object.__new__

#: Types of scalars whose buffers are kept, so that 2.0 need not be put on the device again. Not complex ones, as a
#: dictionary can't tell 1-0j from 1+0j.
_SCALARS = frozenset([kind for kind in (*dtypes.PYTHON_SCALARS, *[dtype.type for dtype in dtypes.ALL])
                      if not issubclass(kind, (complex, np.complexfloating, np.void))])

#: So many buffers of scalars a program keeps for each argument.
_MOST_SCALARS = 64


def make_calls(loaded: Any, place: client.Place, in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray],
               donated: Sequence[int], callbacks: Sequence[Any], consts: list[Any]) -> Calls:
    """The functions that run a program.

    Closures, since reading what they need from an object's slots would cost a tenth of the whole call. They don't
    refer to the executable, which so goes with its last reference.
    """
    execute = _waiting(loaded, callbacks) if callbacks else loaded.execute_sharded
    handlers = [place.handler(device_aval(aval)) for aval in out_avals]
    wrap = _wrap_float0 if any(aval.dtype == dtypes.float0 for aval in out_avals) else Array.from_device
    to_buffers = _make_to_buffers(place, in_avals, keep_scalars=not donated)
    from_host = False

    def buffers_of(args: Sequence[Any]) -> list[Any]:
        nonlocal from_host
        # Arguments tend to come from the same memory as last time; a wrong guess costs a caught AttributeError.
        if not from_host:
            try:
                return [x._buffer for x in args]
            except AttributeError:
                pass
        buffers, from_host = to_buffers(args)
        return buffers

    def direct(buffers: list[Any], args: Sequence[Any]) -> list[Array]:
        try:
            outs = execute(consts + buffers if consts else buffers).consume_with_handlers(handlers)
        except (RuntimeError, TypeError, ValueError) as error:
            raise _failure(error, args, place, donated, callbacks) from None
        return [wrap(out, aval) for out, aval in zip(outs, out_avals, strict=True)]

    def direct_for_one(buffers: list[Any], args: Sequence[Any]) -> Array:
        try:
            outs = execute(consts + buffers if consts else buffers).consume_with_handlers(handlers)
        except (RuntimeError, TypeError, ValueError) as error:
            raise _failure(error, args, place, donated, callbacks) from None
        array = _new(Array)  # `Array.from_device`, without the call
        array.aval = only_aval
        array._buffer = outs[0]
        return array

    def call(args: Sequence[Any]) -> list[Array]:
        return direct(buffers_of(args), args)

    def refuse(function: Callable[..., Any]) -> None:
        nonlocal execute, to_buffers
        execute = to_buffers = function

    client.refuse_after_fork(call, refuse)
    if len(out_avals) != 1 or wrap is _wrap_float0:
        return Calls(call, lambda args: call(args)[0], direct, lambda buffers, args: direct(buffers, args)[0])
    only_aval, = out_avals
    return Calls(call, lambda args: direct_for_one(buffers_of(args), args), direct, direct_for_one)


def device_aval(aval: ShapedArray) -> ShapedArray:
    """The type that stands for this one on a device: float0 has none there and travels as bool."""
    return ShapedArray(aval.shape, np.bool_) if aval.dtype == dtypes.float0 else aval


def _wrap_float0(buffer: Any, aval: ShapedArray) -> Array:
    if aval.dtype == dtypes.float0:
        return Array.from_host(np.zeros(aval.shape, dtypes.float0), aval)
    return Array.from_device(buffer, aval)


def _make_to_buffers(place: client.Place, in_avals: Sequence[ShapedArray],
                     keep_scalars: bool) -> Callable[[Sequence[Any]], tuple[list[Any], bool]]:
    """The function that puts arguments on the device: their buffers, and whether any came from host memory."""
    put, sharding, (devices, committed, force, copying, wide) = place.put, place.sharding, place.copying
    sharing = place.sharing[3]
    scalars: list[dict[Any, Any]] = [{} for _ in in_avals]
    in_types = [(aval, None if aval.dtype == dtypes.float0 else aval.dtype, kept)
                for aval, kept in zip(in_avals, scalars, strict=True)]
    ndarray = np.ndarray

    def to_buffers(args: Sequence[Any]) -> tuple[list[Any], bool]:
        buffers = []
        from_host = False
        for x, (aval, dtype, kept) in zip(args, in_types, strict=True):
            kind = type(x)
            if kind is ndarray and x.dtype is dtype:
                from_host = True
                buffers.append(put(aval, sharding, (x,), devices, committed, force, copying, wide))
                continue
            if kind is Array and dtype is not None:
                buffer = getattr(x, "_buffer", None)
                if buffer is not None:
                    buffers.append(buffer)
                    continue
                host = x._host
                if type(host) is ndarray:
                    from_host = True
                    # An Array's storage never changes, so the device may read it where it is; memory that the runtime
                    # didn't allocate is not written to, not even if it is donated.
                    buffers.append(put(aval, sharding, (host,), devices, committed, force, sharing, wide))
                    continue
                x, kind = host, type(host)
            from_host = True
            if keep_scalars and kind in _SCALARS and x:  # not zeros: 0.0 and -0.0 are equal
                found = kept.get(x)
                if found is None:
                    found = _put(x, aval, place)
                    if len(kept) < _MOST_SCALARS:
                        kept[x] = found
                buffers.append(found)
            else:
                buffers.append(_put(x, aval, place))
        return buffers, from_host

    return to_buffers


def _put(x: Any, aval: ShapedArray, place: client.Place) -> Any:
    """The buffer of an argument that is no plain case."""
    if aval.dtype == dtypes.float0:
        return place.put_shared(device_aval(aval), np.zeros(aval.shape, np.bool_))
    if type(x) in dtypes.PYTHON_SCALARS:
        if type(x) is int:
            dtypes.check_python_int(x, aval.dtype)
        return place.put_copy(aval, np.asarray(x, aval.dtype))
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
