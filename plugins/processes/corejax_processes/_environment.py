"""What the environment says about the processes that compute together: how many, which is this one, where they meet.

First come the arguments of `initialize`, then the variables of corejax, then a cluster's: Open MPI, Slurm, Kubernetes,
the first of these that is there; mpi4py only if it is asked for. What a cluster says is in `_clusters`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from corejax.errors import CorejaxError, CorejaxValueError, suggestion
from corejax_processes import _clusters
from corejax_processes._clusters import Cluster, Fact

ADDRESS: Final = "COREJAX_COORDINATOR_ADDRESS"
COUNT: Final = "COREJAX_NUM_PROCESSES"
PROCESS: Final = "COREJAX_PROCESS_ID"
DEVICES: Final = "COREJAX_LOCAL_DEVICE_IDS"
BIND: Final = "COREJAX_COORDINATOR_BIND_ADDRESS"

#: What there must be, with the variable that says it.
_NEEDED: Final = {"coordinator_address": ADDRESS, "num_processes": COUNT, "process_id": PROCESS}

_VARIABLES: Final = {**_NEEDED, "local_device_ids": DEVICES, "coordinator_bind_address": BIND}

#: All that `corejax.distributed` and `launch` read.
VARIABLES: Final = (*_VARIABLES.values(), _clusters.PORT, "COREJAX_COORDINATOR_SERVICE",
                    "COREJAX_HEARTBEAT_TIMEOUT_SECONDS")

_OWN: Final = "COREJAX_* variables"
_GIVEN: Final = "arguments"


class Found(NamedTuple):
    """Where processes meet, how many there are, and which of them this one is."""

    coordinator_address: str
    num_processes: int
    process_id: int
    local_device_ids: tuple[int, ...] | None
    coordinator_bind_address: str | None
    source: str


def detect(method: str | None = None, **given: Any) -> Found | None:
    """What arguments, variables and the cluster say; None if none of them says anything.

    `method` chooses the cluster: "slurm", "ompi", "k8s", "mpi4py"; "deactivate" asks none. `given` are the arguments of
    `initialize`, called as the attributes of `Found` are; those that are None count as not given.
    """
    chosen = _chosen(method)
    facts = {name: Fact(value, f"the argument {name}", _GIVEN) for name, value in given.items() if value is not None}
    own = _own_variables()
    facts = {**own, **facts}
    # Whoever sets all three, as the command `launch` does, may do so within a job of a cluster: it doesn't count then.
    if chosen is None and method is None and not own.keys() >= _NEEDED.keys():
        chosen = next((each for each in _clusters.AUTOMATIC if each.seen()), None)
    if chosen is not None:
        facts = {**dict(chosen.facts(_VARIABLES.keys() - facts.keys())), **facts}
    if not facts.keys() & _NEEDED.keys():
        return None
    return _whole(facts, chosen)


def summary() -> dict[str, str]:
    """What of this is seen here, and by which variables, for people to read. Never fails."""
    seen = [cluster for cluster in _clusters.AUTOMATIC if cluster.seen()]
    rows = {"clusters": ", ".join(f"{each.title} ({', '.join(each.variables)})" for each in seen) or "none"}
    rows |= {variable: os.environ[variable] for variable in VARIABLES if variable in os.environ}
    try:
        found = detect()
    except CorejaxError as error:
        return {**rows, "problem": str(error)}
    if found is not None:
        rows["this process"] = (f"{found.process_id} of {found.num_processes}, which meet at "
                                f"{found.coordinator_address} (by {found.source})")
    return rows


def _chosen(method: str | None) -> Cluster | None:
    """The cluster of this name, which must be there."""
    if method is None or method == "deactivate":
        return None
    cluster = _clusters.CLUSTERS.get(method) if isinstance(method, str) else None
    if cluster is None:
        known = [*_clusters.CLUSTERS, "deactivate"]
        raise CorejaxValueError("cluster_detection_method isn't a known one", got=repr(method),
                                wanted=f"None or one of: {', '.join(known)}", todo=suggestion(str(method), known))
    if not cluster.seen():
        raise CorejaxValueError(f"this process isn't one of {cluster.title}",
                                where=f"cluster_detection_method={method!r}", got=cluster.missing(),
                                wanted=cluster.wanted,
                                todo="start it as such, or leave cluster_detection_method out")
    return cluster


def _own_variables() -> dict[str, Fact]:
    """What the variables of corejax say. One that is empty says nothing."""
    readers: dict[str, Callable[[str, str], object]] = {
        COUNT: _clusters.integer, PROCESS: _clusters.integer, DEVICES: _integers}
    facts = {}
    for name, variable in _VARIABLES.items():
        text = os.environ.get(variable, "").strip()
        if text:
            facts[name] = Fact(readers[variable](variable, text) if variable in readers else text, variable, _OWN)
    return facts


def _integers(variable: str, text: str) -> tuple[int, ...]:
    return tuple([_clusters.integer(variable, each, "integers with commas between them, such as 0,1")
                  for each in text.split(",")])


def _whole(facts: dict[str, Fact], cluster: Cluster | None) -> Found:
    """The facts together, if none is missing and they make sense."""
    missing = [name for name in _NEEDED if name not in facts]
    if missing:
        present = [facts[name].origin for name in _NEEDED if name in facts]
        names = [_NEEDED[name] for name in missing]
        raise CorejaxValueError(f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} missing",
                                got=f"{', '.join(present)}; {cluster.title if cluster else 'no known cluster'}",
                                wanted="all three of " + ", ".join(_NEEDED.values()),
                                todo=f"set {'it' if len(names) == 1 else 'them'}, or give {', '.join(missing)} to "
                                     f"initialize()")
    count, process = facts["num_processes"], facts["process_id"]
    _check_integer(count, 1, "a number of processes, at least 1")
    _check_integer(process, 0, f"an integer from 0 to {count.value - 1}, as {count.origin} says")
    if process.value >= count.value:
        raise CorejaxValueError(f"{process.origin} is not below {count.origin}",
                                got=f"{process.value} of {count.value} processes",
                                wanted=f"an integer from 0 to {count.value - 1}",
                                todo="number the processes from 0 on, and tell all of them the same count")
    for name in ("coordinator_address", "coordinator_bind_address"):
        if name in facts:
            split_address(facts[name].value, facts[name].origin)
    devices = facts.get("local_device_ids")
    sources = list(dict.fromkeys(fact.source for fact in facts.values()))
    bind = facts.get("coordinator_bind_address")
    return Found(facts["coordinator_address"].value, count.value, process.value, devices and _device_ids(devices),
                 bind and bind.value, " and ".join(sources))


def _check_integer(fact: Fact, least: int, wanted: str) -> None:
    value = fact.value
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise CorejaxValueError(f"{fact.origin} makes no sense", got=repr(value), wanted=wanted)


def _device_ids(fact: Fact) -> tuple[int, ...]:
    """The numbers of devices, each once. A single one may come without a list."""
    value = fact.value
    ids = tuple(value) if isinstance(value, Iterable) else (value,)
    if not ids or len(set(ids)) < len(ids) or not all([isinstance(each, int) and each >= 0 for each in ids]):
        raise CorejaxValueError(f"{fact.origin} makes no sense", got=repr(value),
                                wanted="the numbers of this process's devices, each once, from 0 on")
    return ids


def split_address(address: object, origin: str, least_port: int = 1) -> tuple[str, int]:
    """The host and the port of an address; `origin` says who gave it, for errors.

    >>> split_address("[::1]:8000", "coordinator_address")
    ('::1', 8000)
    """
    match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|([\w.-]+)):(\d{1,5})", str(address), re.ASCII)
    if match is None or not least_port <= int(match[3]) < 65536:
        raise CorejaxValueError(f"{origin} is not an address", got=repr(address),
                                wanted="host:port, such as node1:8000, 10.0.0.1:8000 or [::1]:8000, with a port up to "
                                       "65535")
    return match[1] or match[2], int(match[3])
