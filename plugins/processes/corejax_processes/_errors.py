"""Errors that are because of other processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import localtime, strftime, time
from typing import Any

from corejax.core import here, warn
from corejax.plugin import peers, public


@public
class PeerError(peers.PeerFailure):
    """Another process is why a computation over several processes can't go on.

    >>> error = PeerError("process 1 is gone", processes=(1,))
    >>> error.processes
    (1,)
    """

    __module__ = "corejax.distributed"  # where users find it
    processes: tuple[int, ...]
    """The numbers of these processes."""
    spoils = False
    """Whether what was computed together just before may be nonsense."""

    def __init__(self, message: str, processes: Sequence[int] = (), **parts: Any) -> None:
        super().__init__(message, **parts)
        self.processes = tuple(processes)

    def again(self) -> PeerError:
        """The same error, to be raised here."""
        same = PeerError(self.message, self.processes, got=self.got, wanted=self.wanted, where=here(), todo=self.todo)
        same.spoils = self.spoils
        return same


_HOW = {
    "hung up": "ended without a word, as if it were killed",
    "silent": "has not been heard of, as if it were stopped, or its machine gone",
    "failed": "has failed",
    "ended": "has come to its end",
}


def gone(told: Mapping[str, Any]) -> PeerError:
    """The error for a process that is gone, as the service tells it."""
    index, hello, since = told["gone"], told["hello"], told["heard"]
    text = f": {told['text']}" if told["text"] else ""
    return PeerError(f"process {index} {_HOW[told['how']]}{text}", (index,), where=here(),
                     got=f"nothing from it for {since:.1f} s, since {_clock(since)}; it was process "
                         f"{hello.get('pid')} on {hello.get('host')}",
                     wanted="all processes to compute together until the end",
                     todo="look at what it has printed; start all processes again")


def myself_gone(told: Mapping[str, Any], me: int) -> PeerError:
    """The error for this process if it was silent for too long."""
    return PeerError("the other processes have given up this one: it was silent for too long", (me,), where=here(),
                     got=f"nothing was heard from process {me} for {told['heard']:.1f} s",
                     wanted="a sign of life within heartbeat_timeout_seconds",
                     todo="start all processes again; if it is stopped at times, pass a longer time to initialize")


def service_gone(silent: float | None) -> PeerError:
    """The error for a service that can't be reached any more."""
    return PeerError("the service at which the processes meet is gone", where=here(),
                     got="the connection has ended" if silent is None else f"nothing from it for {silent:.1f} s",
                     wanted="a service that lives until all processes have ended",
                     todo="start all processes again; the service is a process of its own, of process 0 or launch")


def ended_first(index: int, what: str) -> PeerError:
    """The error for what can't happen any more, since a process has ended."""
    return PeerError(f"{what}: process {index} is at its end, and will not take part", (index,), where=here(),
                     got=f"process {index} has run to the end of its program",
                     wanted="every process to do the same, as long as they compute together",
                     todo=f"look for what only some processes do, such as `if cj.process_index() == {index}: ...`")


def other_programs(number: int, programs: Mapping[int, str], me: int) -> PeerError:
    """The error for processes that run different programs at the same time."""
    others = tuple([i for i in programs if i != me])
    told = [f"{'this one, ' * (i == me)}process {i} "
            + (f"is about {name}" if name.startswith("to ") else f"runs {name}" if name else
               "is about to run a program for the first time, or to compare values")
            for i, name in sorted(programs.items(), key=lambda one: one[0] == me)]
    error = PeerError("the processes run different programs at the same time", others, where=here(),
                      got=f"{'; '.join(told)} (number {number + 1} of those that they run together)",
                      wanted="the same programs in the same order in every process; what was computed since may be "
                             "nonsense",
                      todo="look for what only some processes do; and for threads, which may come in another order")
    error.spoils = True
    return error


def interrupted() -> PeerError:
    """The error for what was under way at Ctrl-C."""
    return PeerError("a program of several processes was interrupted by Ctrl-C", where=here(),
                     got="SIGINT while it waited for others", wanted="no interruption",
                     todo="start all processes again")


def left() -> PeerError:
    """The error for computing together after `shutdown`."""
    return PeerError("this process has left the others", where=here(), got="a call after distributed.shutdown()",
                     wanted="to leave when nothing is computed together any more",
                     todo="call shutdown later, or not at all: it is called when Python ends")


def unequal(what: str, other: int, theirs: str, me: int, mine: str) -> PeerError:
    """The error for values that should be the same in all processes."""
    return PeerError(f"{what} differ between processes", (other,), where=here(),
                     got=f"process {other} has {theirs:.500}; this one, process {me}, has {mine:.500}",
                     wanted="the same value in every process",
                     todo="make it in the same way everywhere, from the same seed; or put parts together with "
                          "cj.make_array_from_process_local_data")


def connection_lost(error: BaseException) -> PeerError:
    """The error for a connection that has ended, although all are alive."""
    return PeerError("a connection with another process has ended, and all are alive", where=here(),
                     got=f"{error!s:.300}", wanted="connections that hold until the end",
                     todo="look at the network between the machines; start all processes again")


def say_waiting(what: str, group: Sequence[int], seconds: float) -> None:
    """Warn that others take long."""
    warn(f"corejax has waited for {seconds:.0f} s {what}, for what the others of the processes "
         f"{', '.join(map(str, group))} have to say. They are alive.")


def _clock(ago: float) -> str:
    return strftime("%H:%M:%S", localtime(time() - ago))
