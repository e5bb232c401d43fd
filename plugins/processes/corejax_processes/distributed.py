"""`corejax.distributed`: several processes compute together."""

from __future__ import annotations

import atexit
import os
import socket
import sys
import threading
from collections.abc import Sequence
from time import monotonic
from typing import Any

import corejax
from corejax.config import config
from corejax.core import here
from corejax.errors import CorejaxRuntimeError, CorejaxTypeError, CorejaxValueError
from corejax.plugin import peers, public
from corejax_processes import _environment, _interrupts
from corejax_processes._cluster import Cluster
from corejax_processes._errors import PeerError
from corejax_processes._link import Absent, Refused
from corejax_processes._service import ServiceProcess, start_service
from corejax_processes._wire import joined_address, split_address

NAMESPACE = "distributed"

__all__ = ["PeerError", "initialize", "is_initialized", "shutdown"]


#: How often to look whether others are gone, and how long a service may take to end, in seconds.
_LOOK, _SOON = 0.02, 3.0

#: What `launch` sets: the service's process is there already; and a time-out for all.
_SERVICE_RUNS, _HEARTBEAT = "COREJAX_COORDINATOR_SERVICE", "COREJAX_HEARTBEAT_TIMEOUT_SECONDS"


class _State:
    """What `initialize` has made."""

    cluster: Cluster | None = None
    service: ServiceProcess | None = None
    #: What it has found out about the processes, once it has succeeded.
    found: _environment.Found | None = None
    shutdown_seconds = 0.0


_state = _State()


@public
def initialize(coordinator_address: str | None = None, num_processes: int | None = None, process_id: int | None = None,
               local_device_ids: int | Sequence[int] | None = None, cluster_detection_method: str | None = None,
               initialization_timeout: float = 300.0, heartbeat_timeout_seconds: float | None = None,
               shutdown_timeout_seconds: float = 300.0, coordinator_bind_address: str | None = None) -> None:
    """Let this process compute together with others, which all must call this before they use a device.

        cj.distributed.initialize("10.0.0.1:1234", num_processes=4, process_id=0)

    `coordinator_address` is where they meet, `host:port`: process 0 starts a service there, in a process of its own.
    `process_id` counts from 0. What isn't given is taken from variables, COREJAX_COORDINATOR_ADDRESS,
    COREJAX_NUM_PROCESSES and COREJAX_PROCESS_ID, or from what Open MPI, Slurm or Kubernetes say;
    `cluster_detection_method` chooses one of these: "ompi", "slurm", "k8s", "mpi4py", or "deactivate" for none.

    `local_device_ids`: which of the machine's GPUs are this process's. `initialization_timeout`: for how long to wait
    for the others, in seconds. A process of which nothing is heard for `heartbeat_timeout_seconds`, 100 by default,
    counts as gone: the others get a `PeerError`. `shutdown_timeout_seconds`: for how long processes wait for each other
    at their ends. `coordinator_bind_address`: where the service listens, if not at the host of
    `coordinator_address`.
    """
    given = {"coordinator_address": coordinator_address, "num_processes": num_processes, "process_id": process_id,
             "local_device_ids": local_device_ids, "coordinator_bind_address": coordinator_bind_address}
    if _state.found is not None:
        _check_same(given, _state.found)
        return
    heartbeat = _heartbeat() if heartbeat_timeout_seconds is None else heartbeat_timeout_seconds
    for name, seconds in (("initialization_timeout", initialization_timeout),
                          ("heartbeat_timeout_seconds", heartbeat),
                          ("shutdown_timeout_seconds", shutdown_timeout_seconds)):
        _check_seconds(name, seconds)
    found = _environment.detect(cluster_detection_method, **given)
    if found is None:
        raise CorejaxValueError("nothing says which processes there are", where=here(),
                                got="no arguments, no COREJAX_* variables, no Open MPI, Slurm or Kubernetes",
                                wanted="coordinator_address, num_processes and process_id",
                                todo="pass them; or start processes of one machine with "
                                     "`python -m corejax launch -n 2 script.py`")
    peers.check_can_join()
    if found.num_processes == 1:
        _state.found = found
        return
    _meet(found, initialization_timeout, heartbeat, shutdown_timeout_seconds)


@public
def is_initialized() -> bool:
    """Whether `initialize` has been called, and `shutdown` hasn't.

    >>> import corejax as cj
    >>> cj.distributed.is_initialized()
    False
    """
    return _state.found is not None


@public
def shutdown() -> None:
    """Wait for the other processes, and compute together no more. It is called by itself when Python ends.

    >>> import corejax as cj
    >>> cj.distributed.shutdown()  # nothing, where nothing was initialized
    """
    _end("")


def _check_same(given: dict[str, Any], known: _environment.Found) -> None:
    """Raise unless this call says what `initialize` was called with before, perhaps by `launch`."""
    for name, value in given.items():
        if value is not None and value != getattr(known, name):
            raise CorejaxRuntimeError(
                "initialize has been called already, with other arguments", got=f"{name}={value!r:.80}", where=here(),
                wanted=f"{name}={getattr(known, name)!r:.80}, as process {known.process_id} of {known.num_processes} "
                       f"(by {known.source})", todo="call it once; under launch, without arguments or not at all")


def _heartbeat() -> float:
    """What a variable says about the time-out, for which `launch` sets it."""
    text = os.environ.get(_HEARTBEAT) or "100"
    try:
        return float(text)
    except ValueError:
        raise CorejaxValueError(f"{_HEARTBEAT} is not a number", got=repr(text)[:80], where=here(),
                                wanted="a number of seconds above 0", todo="set it to a number, or unset it") from None


def _check_seconds(name: str, seconds: object) -> None:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not seconds > 0:
        raise CorejaxTypeError(f"initialize: {name} must be a time", got=repr(seconds)[:80], where=here(),
                               wanted="a number of seconds above 0", todo="leave it out for the default")


# The beginning

def _meet(found: _environment.Found, patience: float, heartbeat: float, shutdown_seconds: float) -> None:
    """Meet the others, and hand them to the kernel."""
    until = monotonic() + patience
    host, port = split_address(found.coordinator_address)
    hello = {"hello": found.process_id, "count": found.num_processes, "heartbeat": heartbeat,
             "compares": config.compare_programs, "pid": os.getpid(), "host": socket.gethostname(),
             "corejax": corejax.__version__, "jaxlib": peers.version()}
    cluster = Cluster(hello, config.compare_programs, found.local_device_ids)
    started = os.environ.get(_SERVICE_RUNS) and found.coordinator_address == os.environ.get(_environment.ADDRESS)
    if found.process_id == 0 and not started:
        _state.service = start_service(found.coordinator_bind_address or found.coordinator_address, found.num_processes)
    threading.Thread(target=peers.load, name="corejax: loads the runtime").start()  # meanwhile
    try:
        service = cluster.link.open(host, port, until - monotonic())
        cluster.host = cluster.link.own_host
        cluster.client = _connected(cluster, joined_address(host, int(service)), until)
        peers.join(cluster)
    except BaseException as error:
        told: BaseException = error
        if isinstance(error, Refused):
            told = _refused(error.args[0], found)
        elif isinstance(error, Absent):
            told = _absent(error.args, found, patience)
        cluster.leave(_first_line(told))
        if _state.service is not None:
            _state.service.end(_SOON)  # so that it may be tried again
            _state.service = None
        if told is error:
            raise
        raise told from None
    _state.cluster, _state.found, _state.shutdown_seconds = cluster, found, shutdown_seconds
    atexit.register(_at_exit)
    _interrupts.watch(cluster.interrupted)


def _connected(cluster: Cluster, address: str, until: float) -> Any:
    """The runtime's client, connected, for which it waits for all others: not in this thread, as one may be gone."""
    client = peers.client(address, cluster.index)
    done = threading.Event()
    problem: list[BaseException] = []

    def connect() -> None:
        try:
            client.connect()
        except BaseException as error:
            problem.append(error)
        done.set()

    threading.Thread(target=connect, name="corejax: connects", daemon=True).start()
    while not done.wait(_LOOK):
        if cluster.link.failure is not None:
            raise cluster.link.failure.again()
        if monotonic() > until:
            raise Absent(range(cluster.count))
    if problem:
        raise CorejaxRuntimeError(f"the runtime can't connect with the service: {problem[0]!s:.300}", where=here(),
                                  got=cluster.link.hello["host"], wanted="a service that answers", todo="start again")
    return client


def _refused(told: dict[str, Any], found: _environment.Found) -> CorejaxRuntimeError:
    """The error for what the service says instead of a welcome."""
    if told["what"] == "other":
        if told["reason"]["what"] == "failed":  # it may be because of a third one
            return PeerError("another process has given up", where=here(), todo="look at what the others have printed",
                             got=f"process {told['index']}: {told['reason']['text']}", wanted="all processes to come")
        return PeerError(f"process {told['index']} has come and can't take part", (told["index"],), where=here(),
                         got=_WHY[told["reason"]["what"]].format(**told["reason"]),
                         wanted="processes that fit together", todo="look at what it has printed")
    me = f"process {found.process_id} of {found.num_processes}"
    if told["what"] == "id":
        by = told["by"]
        other = f"process {by.get('pid')} on {by.get('host')}" if by else "one that is gone"
        return PeerError(f"there is a process {told['index']} already", (told["index"],), where=here(),
                         got=f"{me}, and {other} has the same number", wanted="another process_id for each process",
                         todo="number them from 0 to num_processes - 1")
    if told["what"] == "count":
        return PeerError("the processes don't agree on how many they are", where=here(),
                         got=f"{me}; the service waits for {told['count']}",
                         wanted="the same num_processes everywhere", todo="pass the same number to all")
    if told["what"] == "common":
        return PeerError(f"the processes have different {_plural(told['called'])}", (told["index"],), where=here(),
                         got=f"{told['mine']} here, {told['theirs']} in process {told['index']}",
                         wanted="the same in every process", todo="install, or set, the same everywhere")
    return PeerError("the runtime's service can't be started", where=here(), got=f"{told['text']:.300}",
                     wanted="a free port of the service's host", todo="start again")


#: Why another process can't take part.
_WHY = {"id": "there is a process {index} already", "count": "it says another num_processes than {count}",
        "common": "it has another {called}: {mine}, and process {index} has {theirs}"}


def _plural(called: str) -> str:
    return called.replace("version", "versions", 1) if called.startswith("version") else f"values of the {called}"


def _absent(said: Sequence[Any], found: _environment.Found, patience: float) -> CorejaxRuntimeError:
    """The error for processes that haven't come in time."""
    there: Sequence[int] | None = said[0]
    if there is None:
        return PeerError(f"nobody listens at {found.coordinator_address}", (0,), where=here(),
                         got=f"{said[1]}, for {patience:.0f} s, as process {found.process_id} of "
                             f"{found.num_processes}",
                         wanted="process 0, which starts the service there",
                         todo="start process 0; check the address; or pass a longer initialization_timeout")
    missing = [i for i in range(found.num_processes) if i not in there]
    named = ", ".join(map(str, missing[:20])) + (", ..." if len(missing) > 20 else "")
    return PeerError(f"process{'es' * (len(missing) != 1)} {named} did not come" if missing else
                     "the runtime's clients did not find each other", tuple(missing), where=here(),
                     got=f"{len(there)} of {found.num_processes} within {patience:.0f} s",
                     wanted="all processes to call initialize",
                     todo="look at what they have printed; or pass a longer initialization_timeout")


def _forget() -> None:
    """A forked child takes no part, and doesn't hold the connection of its parent."""
    cluster, _state.cluster, _state.found, _state.service = _state.cluster, None, None, None
    if cluster is not None:
        cluster.link.forget()
        _interrupts.forget()


os.register_at_fork(after_in_child=_forget)


# The end

def _at_exit() -> None:
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    try:
        _end("" if error is None else _first_line(error))
    except PeerError as error:  # nobody must take what came out for the results of a program that went well
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)


def _first_line(error: BaseException) -> str:
    """What is wrong, in a line for others."""
    first = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {first:.300}" if first else type(error).__name__


def _end(why: str) -> None:
    """Leave the others: wait for them, unless something went wrong."""
    cluster = _state.cluster
    _state.cluster = _state.found = None
    if cluster is None:
        return
    atexit.unregister(_at_exit)
    try:
        if not why:
            cluster.finish(_state.shutdown_seconds)
    finally:
        cluster.leave(why)
        _release()


def _release() -> None:
    """Let the service end once all are gone."""
    if _state.service is not None:
        _state.service.release()
        _state.service = None
