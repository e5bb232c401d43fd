"""This process among others, as the kernel sees it: what its client is made with, and how programs are started."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any

from corejax.plugin import peers
from corejax_processes import _errors, _interrupts, _programs, _sockets
from corejax_processes._errors import PeerError
from corejax_processes._link import Link

#: How many of the last programs the service is told.
_WINDOW = 32

#: How long news take from one process to another, at most, in seconds.
_MOMENT = 2.0


class _Started:
    """The programs that this process has started together with a group of others."""

    __slots__ = ("count", "last", "agreed", "lock", "asked")

    def __init__(self) -> None:
        self.count, self.last = 0, deque[str](maxlen=_WINDOW)
        self.agreed: set[str] = set()
        self.lock = threading.RLock()
        self.asked = 0


class Cluster:
    """The `Peers` that the kernel gets."""

    def __init__(self, hello: Mapping[str, Any], compares: bool, local_device_ids: Sequence[int] | None) -> None:
        self.index: int = hello["hello"]
        self.count: int = hello["count"]
        self.compares = compares
        self.link = Link(hello, self._interrupt, self._ending, self.started)
        self.client: Any = None
        self.host = ""
        self.has_left = False
        self._local_device_ids = local_device_ids
        self._groups: dict[tuple[int, ...], _Started] = {}
        self._ports: set[int] = set()

    # What the client is made with

    def client_options(self, platform: str) -> Mapping[str, Any]:
        self.check()
        options = {"distributed_client": self.client, "node_id": self.index, "num_nodes": self.count}
        if platform == "cpu":
            options["collectives"], ports = _sockets.listening_of(lambda: peers.cpu_collectives(self.client, self.host))
            everybody = range(self.count)
            told = self.link.exchange("ports", everybody, ",".join(map(str, ports)), "to learn where the others listen")
            self._ports = {int(port) for text in told.values() for port in text.split(",") if port}
        elif self._local_device_ids is not None:
            options["visible_devices"] = list(self._local_device_ids)
        return options

    # Starting programs

    def started_together(self, start: Callable[..., Any], program: peers.Program) -> Callable[..., Any]:
        group = self._groups.setdefault(program.processes, _Started())
        fingerprint = _programs.fingerprint(program)
        name = f"{program.name!r} {fingerprint[:12]}"
        ended, members = self.link.ended, frozenset(program.processes)
        first = True

        def agreed(buffers: Sequence[Any]) -> Any:
            nonlocal first
            if first:
                self._agree(group, program, fingerprint, name)
                first = False
            return start(buffers)

        def counted(buffers: Sequence[Any]) -> Any:
            self.check()
            with group.lock:
                for late in ended.keys() & members:
                    if ended[late].get(_text(program.processes), 0) <= group.count:
                        raise _errors.ended_first(late, f"{name} can't run")
                group.count += 1
                group.last.append(name)
            return run(buffers)

        run, start = start, counted if program.exchanges else start
        return agreed

    def check(self) -> None:
        if self.has_left:
            raise _errors.left()
        if self.link.failure is not None:
            raise self.link.failure.again()

    def _agree(self, group: _Started, program: peers.Program, fingerprint: str, name: str) -> None:
        """See to it that all processes run the same program next."""
        with group.lock:
            if not self.compares or fingerprint in group.agreed:
                return
            self.check()
            group.asked += 1
            key, members = f"program {group.asked} of {_text(program.processes)}", program.processes
            what = f"to run {name} for the first time"
            names = self.link.exchange(key, members, name, what)
            if len({each.split()[-1] for each in names.values()}) > 1:
                contents = self.link.exchange(f"{key}, whole", members, _programs.packed(program), what)
                raise _programs.different(program, self.index, names, contents)
            group.agreed.add(fingerprint)

    def started(self) -> dict[str, Any]:
        """What the service is told of the programs that were started, by group."""
        return {_text(members): (group.count, list(group.last)) for members, group in list(self._groups.items())}

    def check_equal(self, what: str, value: str, processes: Sequence[int], always: bool) -> None:
        if not (self.compares or always):
            return
        self.check()
        group = self._groups.setdefault(tuple(processes), _Started())
        with group.lock:
            group.asked += 1
            key = f"value {group.asked} of {_text(processes)}"
            given = self.link.exchange(key, processes, value, f"for {what}")
        for other, theirs in given.items():
            if theirs != value:
                raise _errors.unequal(what, other, theirs, self.index, value)

    # What goes wrong

    def _interrupt(self) -> None:
        """Let programs raise that wait for other processes: for their data, or to be connected with them."""
        _sockets.shut_down(self._ports)
        self._disconnect()
        failure = self.link.failure
        assert failure is not None
        _interrupts.end_if_stuck(f"{type(failure).__name__}: {failure.message}\n  got:    {failure.got}")

    def interrupted(self) -> None:
        """Ctrl-C, while a program waits: this process takes part no more."""
        self.link.fail(_errors.interrupted())

    def _ending(self, index: int, started: Mapping[str, int]) -> None:
        """A process will start no more programs: what this one has started and it hasn't will wait for good."""
        for members, group in list(self._groups.items()):
            if index in members and index != self.index and started.get(_text(members), 0) < group.count:
                self.link.fail(_errors.ended_first(index, f"{group.last[-1]} can't go on"))

    def reason(self, error: BaseException) -> PeerError | None:
        if "gloo" not in str(error).lower():
            return None
        found = self.link.wait_for_failure(_MOMENT)
        if found is None and self.link.ended.keys() - {self.index}:
            ended = min(self.link.ended.keys() - {self.index})
            found = _errors.ended_first(ended, "a program of several processes failed")
        if found is None:  # the service may not know yet
            found = self.link.wait_for_failure(self.link.heartbeat + _MOMENT)
        return _errors.connection_lost(error) if found is None else found.again()

    def _disconnect(self) -> None:
        """Let the runtime's client forget the service."""
        client, self.client = self.client, None
        if client is not None:
            try:
                client.shutdown()
            except Exception:  # the service is gone
                pass

    # The end

    def finish(self, seconds: float) -> None:
        """Wait until all processes are at their ends, but no longer than this."""
        self.link.say_ending()
        try:
            self.link.exchange("end", range(self.count), "", "at the end", monotonic() + seconds, last=True)
        except (TimeoutError, PeerError):
            pass  # a program that has come to its end has nothing to be told, unless its results are wrong
        if self.link.failure is not None and self.link.failure.spoils:
            raise self.link.failure.again()

    def leave(self, why: str) -> None:
        """Compute with the others no more."""
        self.has_left = True
        self._disconnect()  # else the runtime ends this process when the service ends
        self.link.close(why)


def _text(processes: Sequence[int]) -> str:
    return ",".join(map(str, processes))
