"""The other processes that this one computes with, if there are any.

A pack lets processes find each other and hands the result in with `join`, before a client is made. From then on the
devices of all are those of one client, and programs over several processes are started as this pack says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from corejax.base import _jaxlib
from corejax.base.errors import CorejaxRuntimeError
from corejax.base.source import here
from corejax.xla.runtime import launching


class Program(NamedTuple):
    """What processes must have in common in order to run a program together."""

    name: str
    content: bytes
    """The program as bytes that are the same in every process."""
    options: bytes
    """How it is compiled, including its devices."""
    processes: tuple[int, ...]
    """Those that run it, in ascending order."""
    exchanges: bool
    """Whether they wait for each other in it."""


class PeerFailure(CorejaxRuntimeError):
    """It is because of other processes, whatever else may be tried."""


class Peers(Protocol):
    """What a pack hands in: this process among others."""

    index: int
    """The number of this process."""
    count: int
    """How many there are."""

    def client_options(self, platform: str) -> Mapping[str, Any]:
        """What a client for a platform is made with, by the names of jaxlib's arguments."""

    def started_together(self, start: Callable[..., Any], program: Program) -> Callable[..., Any]:
        """A function that starts a program of several processes, in the place of `start`.

        It may raise a `PeerFailure` instead: if others run another program, or are gone.
        """

    def check(self) -> None:
        """Raise if others are gone."""

    def reason(self, error: BaseException) -> PeerFailure | None:
        """The error that says why the runtime failed in this way, if it is because of another process."""

    def check_equal(self, what: str, value: str, processes: Sequence[int], always: bool) -> None:
        """Raise unless these processes, of which this is one, have the same value; each of them must call it.

        Unless `always`, the user may have switched such comparisons off.
        """


class _State:
    peers: Peers | None = None
    started = False


_state = _State()


def join(peers: Peers) -> None:
    """Compute with these from now on. It is refused once a client has been made, and a second time."""
    check_can_join()
    _state.peers = peers


def check_can_join() -> None:
    """Raise if it is too late for that."""
    if _state.started:
        raise CorejaxRuntimeError(
            "processes can't join once the runtime is started", got="devices are in use in this process already",
            wanted="to join before the first array goes to a device, and before devices are asked for", where=here(),
            todo="call it first in the program, before anything is computed")
    if _state.peers is not None:
        raise CorejaxRuntimeError("this process has joined others already", where=here(),
                                  got=f"process {_state.peers.index} of {_state.peers.count}", wanted="to join once",
                                  todo="leave the second call out")


def joined() -> Peers | None:
    """The others, if there are any."""
    return _state.peers


def starting() -> None:
    """From now on nobody can join."""
    _state.started = True


def client_options(platform: str) -> Mapping[str, Any]:
    """What a client for a platform is made with."""
    return {} if _state.peers is None else _state.peers.client_options(platform)


def started_together(start: Callable[..., Any], program: Program) -> Callable[..., Any]:
    """The function to start a program with that runs in several processes."""
    assert _state.peers is not None  # else there is no device of another process
    return _state.peers.started_together(start, program)


def check() -> None:
    """Raise if others are gone."""
    if _state.peers is not None:
        _state.peers.check()


def reason(error: BaseException) -> PeerFailure | None:
    """Why the runtime failed in this way, if it is because of another process."""
    return None if _state.peers is None else _state.peers.reason(error)


def check_equal(what: str, value: str, processes: Sequence[int], always: bool = False) -> None:
    """Raise unless these processes have the same value; unless `always`, only if the user wants that compared."""
    if _state.peers is not None:
        _state.peers.check_equal(what, value, processes, always)


# The runtime's part

def all_ended(seconds: float) -> bool:
    """Whether no program in which devices exchange data is under way any more after so many seconds."""
    return launching.all_ended(seconds)


def version() -> str:
    """The runtime's release."""
    return str(_jaxlib.version)


def load() -> None:
    """Load the runtime, which takes a while."""
    _ = _jaxlib.runtime


def text_of(program: Program) -> str:
    """A program as text."""
    return _jaxlib.program_text(program.content)


def service(address: str, count: int) -> Any:
    """A service by which the clients of so many processes find each other: it listens at this address, `host:port`.

    It ends with the process that it is in, and the processes that use it with it.
    """
    return _jaxlib.distributed_service(address, count)


def client(address: str, index: int) -> Any:
    """A client of such a service for the process of this number. `connect()` waits for good for the others."""
    return _jaxlib.distributed_client(address, index)


def cpu_collectives(client: Any, host: str) -> Any:
    """By what the processors of several processes exchange data: it listens at an address of this host."""
    return _jaxlib.cpu_collectives(client, host)
