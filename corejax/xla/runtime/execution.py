"""Running compiled programs: arguments go to the device, results come back wrapped, failures get an explanation."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from corejax.arrays.array import Array, new_array
from corejax.arrays.storage import deleted_error, is_on_device
from corejax.base import _jaxlib, dtypes, ending
from corejax.base.avals import ShapedArray
from corejax.base.errors import CorejaxError, CorejaxValueError
from corejax.base.source import here
from corejax.xla.lowering.callback import take_raised
from corejax.xla.runtime import client, peers
from corejax.xla.runtime.failures import runtime_error
from corejax.xla.runtime.launching import in_turn
from corejax.xla.runtime.places import Division, Place
from corejax.xla.runtime.transfers import Divided, Transfers


@dataclass(slots=True)
class Parts:
    """The parts of a call, for a caller that inlines it.

    They put arguments on the device, run the program with their buffers after those of constants, extract the results'
    buffers, give their types, and explain a failure.
    """

    transfers: Transfers | Divided
    execute: Callable[[list[Any]], Any]
    consts: Sequence[Any]
    handlers: list[Any]
    avals: Sequence[ShapedArray]
    failure: Callable[[Exception, Sequence[Any]], BaseException]


class Calls(NamedTuple):
    """The ways to run a program: for all its results, for its only one, and in parts if all results are buffers."""

    call: Callable[[Sequence[Any]], list[Array]]
    call_for_one: Callable[[Sequence[Any]], Array]
    parts: Parts | None



#: How many programs were started. The runtime notes where in Python each one was, some 100 bytes, and only frees that
#: in a transfer or when asked to; whoever starts a program asks each `TIDY` times.
started = count(1).__next__
TIDY = 256

#: The exceptions that running a program can raise.
FAILURES = (RuntimeError, TypeError, ValueError)


def make_calls(loaded: Any, at: Place | Division, in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray],
               donated: Sequence[int], callbacks: Sequence[Any], consts: list[Any]) -> Calls:
    """The functions that run a program at a place, or divided among devices.

    They are closures, since reading from an object's slots would cost a tenth of the whole call. They don't refer to
    the executable, so it is freed with its last reference.
    """
    if callbacks:
        execute = _waiting(loaded, callbacks, at)
    elif type(at) is Division and at.exchanges and at.group.platform == "cpu":
        execute = in_turn(loaded)
    else:
        execute = loaded.execute_sharded
    if type(at) is Division and at.program is not None:
        execute = peers.started_together(execute, at.program)
    without_elements = [i for i, aval in enumerate(out_avals) if aval.dtype == dtypes.float0]
    transfers: Transfers | Divided
    if type(at) is Division:
        handlers = [home.handler(aval) for home, aval in zip(at.results, out_avals, strict=True)]
        transfers = Divided(at.arguments[len(consts):], in_avals)
    else:
        handlers = [at.handler(aval) for aval in out_avals]
        transfers = Transfers(at, in_avals, donated, waits=not without_elements)
    only_aval: Any = out_avals[0] if out_avals else None

    def direct(buffers: list[Any], args: Sequence[object]) -> list[Array]:
        try:
            outs = execute(consts + buffers if consts else buffers).consume_with_handlers(handlers)
        except FAILURES as error:
            raise failure(error, args) from None
        if not started() % TIDY:
            _jaxlib.collect_garbage()
        arrays = []
        for out, aval in zip(outs, out_avals, strict=True):
            array = new_array()  # `Array.from_device`, without the call
            array.aval = aval
            array._buffer = out
            arrays.append(array)
        for i in without_elements:
            arrays[i] = Array.from_host(np.zeros(out_avals[i].shape, dtypes.float0), out_avals[i])
        return arrays

    def direct_for_one(buffers: list[Any], args: Sequence[object]) -> Array:
        if without_elements:
            return direct(buffers, args)[0]
        try:
            outs = execute(consts + buffers if consts else buffers).consume_with_handlers(handlers)
        except FAILURES as error:
            raise failure(error, args) from None
        if not started() % TIDY:
            _jaxlib.collect_garbage()
        array = new_array()
        array.aval = only_aval
        array._buffer = outs[0]
        return array

    def failure(error: Exception, args: Sequence[object]) -> BaseException:
        return _failure(error, args, at, donated, callbacks)

    start, finish = transfers.start, transfers.finish

    def call(args: Sequence[object]) -> list[Array]:
        buffers, box = start(args)
        arrays = direct(buffers, args)
        if box is not None:
            finish(box, arrays[0]._buffer if arrays else None)
        return arrays

    def call_for_one(args: Sequence[object]) -> Array:
        buffers, box = start(args)
        array = direct_for_one(buffers, args)
        if box is not None:
            finish(box, array._buffer)
        return array

    parts = None if without_elements else Parts(transfers, execute, consts, handlers, out_avals, failure)

    def change(by: ending.By) -> None:
        nonlocal execute
        execute = by(execute)
        if parts is not None:
            parts.execute = execute

    client.exchangeable(direct, change)
    return Calls(call, call_for_one, parts)


def _waiting(loaded: Any, callbacks: Sequence[Any], at: Place | Division) -> Callable[[Sequence[Any]], Any]:
    """A function that runs a program with callbacks to its end, so that an exception of theirs is raised here.

    On the processor, what comes before it is awaited first. Then the runtime runs it in this thread, where callbacks
    can be interrupted; else it would take one of its own few threads, and callbacks that start programs could wait for
    good for another one.
    """
    announced = [callback.before for callback in callbacks if callback.before is not None]
    nothing = _nothing_at(at) if type(at) is Place and at.platform == "cpu" else None

    def execute(buffers: Sequence[Any]) -> Any:
        for before in announced:
            before()
        if nothing is not None:
            for buffer in buffers:
                if not buffer.is_ready():
                    buffer.block_until_ready()
            nothing((), with_tokens=True).consume_token().block_until_ready()
        results = loaded.execute_sharded(buffers, with_tokens=True)
        results.consume_token().block_until_ready()
        return results
    return execute if type(at) is Place or not at.exchanges else _to_the_end(execute, callbacks, at)


def _to_the_end(execute: Callable[[Sequence[Any]], Any], callbacks: Sequence[Any], at: Division
                ) -> Callable[[Sequence[Any]], Any]:
    """The same for devices that wait for each other: the program goes on if a callback fails, and fails in the end.

    So does it in all processes. It runs once at a time, so that it is known which run an exception belongs to.
    """
    for callback in callbacks:
        callback.goes_on = True
    lock = threading.Lock()

    def run(buffers: Sequence[Any]) -> Any:
        with lock:
            results = execute(buffers)
            first = take_raised(callbacks)
            while take_raised(callbacks) is not None:
                pass
        if at.group.meets:
            told = "nothing" if first is None else f"{type(first).__name__}: {first!s:.200}"
            try:
                peers.check_equal("what a program's callbacks have raised", told, at.group.processes, always=True)
            except CorejaxError:
                if first is None:
                    raise
        if first is not None:
            raise _CallbackFailed(first)
        return results
    return run


class _CallbackFailed(RuntimeError):
    """A callback has raised the argument, and the program went on."""


#: By device, a program that does nothing. The runtime starts it when those have ended that this thread started before.
_nothing: dict[Any, Callable[..., Any]] = {}


def _nothing_at(at: Place) -> Callable[..., Any]:
    found = _nothing.get(at.device)
    if found is None:
        with _jaxlib.mlir_context() as context:
            module = _jaxlib.ir.Module.parse("module @nothing { func.func public @main() { return } }", context)
            options = _jaxlib.compile_options([at.device.id], at.options, first=_jaxlib.first_id(at.client))
            found = _jaxlib.compile_module(at.client, module, at.devices, options).execute_sharded
        _nothing[at.device] = found
    return found


def _failure(error: Exception, args: Sequence[object], at: Place | Division, donated: Sequence[int],
             callbacks: Sequence[Any]) -> BaseException:
    """The exception to raise when execution failed with `error`."""
    if isinstance(error, CorejaxError):
        return error
    if isinstance(error, _CallbackFailed):
        return error.args[0]  # type: ignore[no-any-return]
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
    wanted = list(at.group.devices if type(at) is Division else at.devices)
    for x in arrays:
        if is_on_device(x) and x.sharding.device_set != set(wanted):
            return CorejaxValueError("an argument lives on a different device than the program was compiled for",
                                     got=f"{x.aval} on {x.device}", wanted=", ".join(map(str, wanted)), where=here(),
                                     todo="move it with cj.device_put(x, device), or compile for its device: "
                                          ".lower(...).compile(device=x.device)")
    return runtime_error(error)
