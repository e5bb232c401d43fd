"""A program that several processes run, in which the last one misbehaves: `python misbehaving.py KIND`.

Each prints what becomes of it as lines of JSON, with the time of day.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
import time
from typing import Any

import numpy as np

import corejax as cj
from corejax import P, lax
from corejax_processes import _cluster, distributed

KIND = sys.argv[1]
ME, COUNT = int(os.environ["COREJAX_PROCESS_ID"]), int(os.environ["COREJAX_NUM_PROCESSES"])
CULPRIT = ME == COUNT - 1
HEARTBEAT, PATIENCE = 2.0, 4.0


def say(what: str, **more: Any) -> None:
    """Tell the test."""
    print(json.dumps({"what": what, "time": time.time(), **more}), flush=True)


def in_a_moment(function: Any) -> None:
    """Misbehave while the main thread computes."""
    def act() -> None:
        say("misbehaves")
        function()
    threading.Timer(0.3, act).start()


def myself(number: int) -> Any:
    return lambda: os.kill(os.getpid(), number)


def arguments() -> dict[str, Any]:
    """What `initialize` is called with."""
    if KIND == "late" and CULPRIT:
        time.sleep(2.0)
    if KIND == "never" and CULPRIT:
        sys.exit()
    if KIND == "other count" and CULPRIT:
        return {"num_processes": COUNT + 1}
    if KIND == "equal ids" and CULPRIT:
        os.environ["COREJAX_COORDINATOR_SERVICE"] = "running"  # it would be the second one to start it
        return {"process_id": 0}
    if KIND == "other version" and CULPRIT:
        cj.__version__ = "9.9"
    if KIND == "other setting" and CULPRIT:
        cj.config.compare_programs = False
    return {}


def main() -> None:
    """Compute together, and misbehave."""
    given = arguments()
    cj.distributed.initialize(initialization_timeout=PATIENCE, heartbeat_timeout_seconds=HEARTBEAT, **given)
    if KIND == "raised before devices" and CULPRIT:
        say("misbehaves")
        raise ValueError("it is wrong")
    mesh = cj.make_mesh((cj.device_count(),), ("x",))
    n = cj.device_count()
    x = cj.make_array_from_process_local_data(cj.NamedSharding(mesh, P("x")), np.ones(n // COUNT))
    total, double = cj.jit(lambda x: x.sum()), cj.jit(lambda x: (2.0 * x).sum())
    assert float(total(x)) == n and float(double(x)) == 2 * n
    if KIND == "service killed" or KIND == "service stopped":
        if ME == 0:
            assert distributed._state.service is not None
            pid = distributed._state.service.pid
            in_a_moment(lambda: os.kill(pid, signal.SIGKILL if KIND == "service killed" else signal.SIGSTOP))
    elif CULPRIT and KIND in _IN_A_MOMENT:
        in_a_moment(_IN_A_MOMENT[KIND])
    _WHAT.get(KIND, computes)(x, total, double, n)


def computes(x: Any, total: Any, double: Any, n: int) -> None:
    """As long as it goes well, for a while."""
    end = time.time() + {"late": 1.5, "stopped for a moment": 1.5, "all stopped": 7.0}.get(KIND, 40.0)
    going = True
    while going:
        going = bool(cj.multihost_utils.broadcast_one_to_all(np.array(time.time() < end)))
        assert float(total(x)) == n


def idles(x: Any, total: Any, double: Any, n: int) -> None:
    """Computes nothing together for longer than the time-out, then does."""
    time.sleep(HEARTBEAT + 2.0)
    say("computes again")
    float(total(x))


def raises(x: Any, total: Any, double: Any, n: int) -> None:
    if CULPRIT:
        say("misbehaves")
        raise ValueError("it is wrong")
    computes(x, total, double, n)


def exits(x: Any, total: Any, double: Any, n: int) -> None:
    if CULPRIT:
        say("misbehaves")
        sys.exit(3)
    computes(x, total, double, n)


def differs(x: Any, total: Any, double: Any, n: int) -> None:
    say("misbehaves")
    float(cj.jit(lambda x: (x * (7.0 + CULPRIT)).sum())(x))


def differs_in_shape(x: Any, total: Any, double: Any, n: int) -> None:
    say("misbehaves")
    float(cj.jit(lambda x: (lax.concatenate([x] * (1 + CULPRIT), 0) * 7.0).sum())(x))


def differs_in_options(x: Any, total: Any, double: Any, n: int) -> None:
    say("misbehaves")
    options = {"xla_cpu_enable_fast_math": True} if CULPRIT else {"xla_cpu_enable_fast_math": False}
    float(cj.jit(lambda x: (x * 7.0).sum()).lower(x).compile(compiler_options=options)(x))


def in_another_order(x: Any, total: Any, double: Any, n: int) -> None:
    say("misbehaves")
    for function in (total, double) if CULPRIT else (double, total):
        function(x).block_until_ready()
        time.sleep(0.2)
    if KIND == "other order":
        computes(x, total, double, n)


def old_and_new(x: Any, total: Any, double: Any, n: int) -> None:
    say("misbehaves")
    float((cj.jit(lambda x: (x * 7.0).sum()) if CULPRIT else total)(x))
    computes(x, total, double, n)


def in_other_places(x: Any, total: Any, double: Any, n: int) -> None:
    """Some wait to compare a program, one waits for a name."""
    say("misbehaves")
    if CULPRIT:
        cj.multihost_utils.sync_global_devices("here")
    else:
        float(cj.jit(lambda x: (x * 7.0).sum())(x))


def in_another_order_of_groups(x: Any, total: Any, double: Any, n: int) -> None:
    """A program of all processes and one of the first and the last, the other way round in the last one."""
    some = [cj.local_devices(i)[0] for i in (0, COUNT - 1)]
    sharding = cj.NamedSharding(cj.sharding.Mesh(np.array(some, object), ("y",)), P("y"))
    y = cj.make_array_from_callback((2,), sharding, lambda index: np.ones(2)[index], np.float64)
    if ME in (0, COUNT - 1):
        assert float(total(y)) == 2.0
    cj.multihost_utils.sync_global_devices("all are here")
    say("misbehaves")
    for each in (y, x) if CULPRIT else (x, y):
        if each is x or ME in (0, COUNT - 1):
            float(total(each))
    computes(x, total, double, n)


def alone(x: Any, total: Any, double: Any, n: int) -> None:
    """Only some of the processes compute something together, the others come to their end."""
    if not CULPRIT:
        float(total(x))
    else:
        say("misbehaves")


def other_values(x: Any, total: Any, double: Any, n: int) -> None:
    say("misbehaves")
    cj.device_put(np.full(n, float(ME)), x.sharding)


def gone_before_connected(x: Any, total: Any, double: Any, n: int) -> None:
    """All have agreed on a program, over devices that have exchanged nothing yet."""
    agree = _cluster.Cluster._agree

    def and_go(*args: Any) -> None:
        agree(*args)
        if CULPRIT:
            say("misbehaves")
            os.kill(os.getpid(), signal.SIGKILL if KIND.startswith("killed") else signal.SIGSTOP)

    _cluster.Cluster._agree = and_go  # type: ignore[method-assign]
    mesh = cj.sharding.Mesh(np.array(cj.devices()[::-1], object), ("y",))
    y = cj.make_array_from_process_local_data(cj.NamedSharding(mesh, P("y")), np.ones(n // COUNT))
    float(cj.jit(lambda x: x.sum())(y))


def interrupted(x: Any, total: Any, double: Any, n: int) -> None:
    """Ctrl-C in a process that waits for another one within a program."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background jobs ignore
    if CULPRIT:
        in_a_moment(myself(signal.SIGINT))
    elif ME == 0:
        time.sleep(3.0)
    float(total(x))


_IN_A_MOMENT = {
    "killed": myself(signal.SIGKILL), "killed, others idle": myself(signal.SIGKILL),
    "stopped": myself(signal.SIGSTOP), "stopped, others idle": myself(signal.SIGSTOP),
    "stopped for a moment": myself(signal.SIGSTOP), "crashed": lambda: ctypes.string_at(0),
}

_WHAT = {
    "killed, others idle": idles, "stopped, others idle": idles, "raised": raises, "exited": exits,
    "other constant": differs, "other shape": differs_in_shape, "other options": differs_in_options,
    "other order": in_another_order, "other order at the end": in_another_order, "old and new": old_and_new,
    "other order of groups": in_another_order_of_groups,
    "alone": alone, "other places": in_other_places, "other values": other_values,
    "killed while connecting": gone_before_connected, "stopped while connecting": gone_before_connected,
    "Ctrl-C": interrupted,
}


if __name__ == "__main__":
    try:
        main()
    except BaseException as error:
        say("raises", type=type(error).__name__, message=str(error), processes=getattr(error, "processes", None))
        raise
    say("is done")
