"""The meeting of processes, as the service sees it: who is there, who is gone, and what they tell each other.

It knows nothing of sockets: whatever is to be sent to a member goes through a function, and time comes from a clock.

A process says `hello`; when all have come, each gets a `welcome`. From then on it says `beat` now and then, and
what it has started. `exchange` gives a value to some others and gets theirs, once all of these have given one. `ending`
is said before the end, `bye` at the end. Who is silent for too long is gone, and so is who hangs up without `bye`: that
is told to everybody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Message = dict[str, Any]

#: What all processes must have in common, by its name in `hello`, and how it is called.
_COMMON = {"count": "num_processes", "corejax": "version of corejax", "jaxlib": "version of jaxlib",
           "compares": "setting compare_programs"}

#: If it hasn't looked for so long, in seconds, the service was stopped itself, and knows nothing of others' silence.
_AWAY = 1.0


@dataclass(eq=False, slots=True)
class Member:
    """A process that has said hello."""

    index: int
    hello: Message
    send: Callable[[Message], None]
    heard: float
    #: For each group of processes: how many programs it has started with these, and which were the last.
    started: dict[str, tuple[int, list[str]]] = field(default_factory=dict)
    ending: bool = False


@dataclass(slots=True)
class _Exchange:
    """Values that have been given, and how many programs those who gave them had started before.

    It may be `last`: those who give a value start none afterwards.
    """

    group: str
    last: bool
    values: dict[int, str] = field(default_factory=dict)
    started: dict[int, int] = field(default_factory=dict)


class Meeting:
    """All of these processes."""

    def __init__(self, count: int, open_service: Callable[[], str], now: Callable[[], float]) -> None:
        self.count, self._open_service, self._now = count, open_service, now
        self._looked = now()
        self.members: dict[int, Member] = {}
        self.gone: dict[int, Message] = {}
        self.complete = False
        #: Why they will never be complete: what everybody is told who waits, or comes.
        self.spoiled: Message | None = None
        self._exchanges: dict[str, _Exchange] = {}
        self._told: set[str] = set()

    # Who is there

    def hello(self, message: Message, send: Callable[[Message], None]) -> Member | None:
        """Let a process in; None if it is refused, which it is told."""
        index = message["hello"]
        reason = self._why_not(index, message)
        if reason is not None:
            send({"refused": reason})
            self._spoil(index, reason)
            return None
        member = self.members[index] = Member(index, message, send, self._now())
        self._tell({"here": sorted(self.members)})
        if len(self.members) == self.count:
            self._begin()
        return member

    def _spoil(self, index: int, reason: Message) -> None:
        """Because of this process, the others would wait in vain for all to come."""
        if not self.complete and self.spoiled is None:
            self.spoiled = {"what": "other", "index": index, "reason": reason}
            self._tell({"refused": self.spoiled})

    def _begin(self) -> None:
        """All are there."""
        try:
            port = self._open_service()
        except Exception as error:
            self._tell({"refused": {"what": "service", "text": str(error)}})
            return
        self.complete = True
        self._tell({"welcome": port})

    def _why_not(self, index: int, message: Message) -> Message | None:
        """Why a process can't be let in; raises ValueError for what isn't a hello."""
        if not (isinstance(message.get("heartbeat"), (int, float)) and 0 < message["heartbeat"] < float("inf")):
            raise ValueError("a hello without a heartbeat")
        if self.spoiled is not None:
            return self.spoiled
        other = self.members.get(index)
        if other is not None or index in self.gone:
            return {"what": "id", "index": index, "by": {} if other is None else other.hello}
        if not 0 <= index < self.count or message["count"] != self.count:
            return {"what": "count", "index": index, "count": self.count}
        first = next(iter(self.members.values()), None)
        for name, called in _COMMON.items():
            if first is not None and first.hello.get(name) != message.get(name):
                return {"what": "common", "called": called, "mine": message.get(name), "theirs": first.hello.get(name),
                        "index": first.index}
        return None

    def receive(self, member: Member, message: Message) -> None:
        """Take a message of a member."""
        member.heard = self._now()
        if "started" in message:
            member.started = {group: (count, last) for group, (count, last) in message["started"].items()}
            self._compare(member)
            self._compare_orders(member)
        if "beat" in message:
            member.send({"beat": message["beat"]})
        elif "exchange" in message:
            self._give(member, message)
        elif "ending" in message:
            member.ending = True
            self._tell({"ending": member.index, "started": {group: n for group, (n, _) in member.started.items()}})
        elif "bye" in message:
            self._leave(member, "failed" if message["bye"] else "ended", message["bye"] or "")

    def hung_up(self, member: Member) -> None:
        """A member's connection has ended."""
        if self.members.get(member.index) is member:
            self._leave(member, "hung up", "")

    def tick(self) -> None:
        """Look who has been silent for too long. Until all have come, each says itself for how long it waits."""
        away, self._looked = self._now() - self._looked, self._now()
        if not self.complete:
            return
        for member in list(self.members.values()):
            if away > _AWAY:
                member.heard = self._looked
            elif self._looked - member.heard > member.hello["heartbeat"]:
                self._leave(member, "silent", "")

    def _leave(self, member: Member, how: str, text: str) -> None:
        del self.members[member.index]
        told = {"gone": member.index, "how": how, "text": text, "heard": round(self._now() - member.heard, 3),
                "hello": member.hello}
        if not self.complete:
            if how == "failed":
                self._spoil(member.index, {"what": "failed", "text": text})
            self._tell({"here": sorted(self.members)})
            return
        self.gone[member.index] = told
        member.send(told)  # one that was only stopped for a while must know
        self._tell(told)

    def _tell(self, message: Message) -> None:
        for member in list(self.members.values()):
            member.send(message)

    # What they tell each other

    def _give(self, member: Member, message: Message) -> None:
        key, group = message["exchange"], message["group"]
        found = self._exchanges.setdefault(key, _Exchange(group, message["last"]))
        found.values[member.index] = message["value"]
        found.started[member.index] = member.started.get(group, (0, []))[0]
        wanted = [int(i) for i in group.split(",")]
        if all([i in found.values for i in wanted]):
            del self._exchanges[key]
            for i in wanted:
                if i in self.members:
                    self.members[i].send({"exchanged": key, "values": found.values})
        else:
            self._check_same(key, found)
            for i in wanted:
                if i in self.members:
                    self._compare(self.members[i])

    def _check_same(self, key: str, found: _Exchange) -> None:
        """Tell everybody if members of the same processes wait for each other in different places."""
        for other, there in self._exchanges.items():
            if other != key and there.group == found.group and not (there.last or found.last):
                for i in found.values.keys() - there.values.keys():
                    for j in there.values.keys() - found.values.keys():
                        self._differ(found.group, found.started[i], {i: f"to agree on {key}",
                                                                     j: f"to agree on {other}"})

    # Whether they start the same programs

    def _compare(self, member: Member) -> None:
        """Tell everybody if a member has started another program than others have at the same time."""
        for group, (count, last) in member.started.items():
            for exchange in self._exchanges.values():
                if exchange.group == group and not exchange.last and member.index not in exchange.values:
                    for i, so_far in exchange.started.items():
                        if count > so_far:
                            self._differ(group, so_far, {member.index: last[max(so_far - count, -len(last))],
                                                                  i: ""})
            for other in self.members.values():
                theirs, those = other.started.get(group, (0, []))
                for number in range(max(count - len(last), theirs - len(those)), min(count, theirs)):
                    mine, yours = last[number - count], those[number - theirs]
                    if mine != yours:
                        self._differ(group, number, {member.index: mine, other.index: yours})
                        break

    def _compare_orders(self, member: Member) -> None:
        """Tell everybody if a member waits for another one that waits for it, each with a program of other processes.

        As all start the same programs in one order, whoever is ahead is so in every group that both are in.
        """
        for other in self.members.values():
            shared = [group for group in {*member.started, *other.started}
                      if {str(member.index), str(other.index)} <= {*group.split(",")}]
            counts = {group: [one.started.get(group, (0, []))[0] for one in (member, other)] for group in shared}
            ahead = [group for group, (mine, theirs) in counts.items() if mine > theirs]
            behind = [group for group, (mine, theirs) in counts.items() if mine < theirs]
            if ahead and behind:
                self._differ(ahead[0], counts[ahead[0]][1], {member.index: member.started[ahead[0]][1][-1],
                                                             other.index: other.started[behind[0]][1][-1]})

    def _differ(self, group: str, number: int, programs: Mapping[int, str]) -> None:
        if group not in self._told:
            self._told.add(group)
            self._tell({"differ": group, "number": number, "programs": programs})
