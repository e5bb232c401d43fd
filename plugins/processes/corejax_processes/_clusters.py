"""The clusters whose variables say which process this is: Open MPI, Slurm, Kubernetes; and mpi4py, which asks MPI."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import socket
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from corejax.errors import CorejaxValueError

#: Replaces the port that is made of the job's number.
PORT: Final = "COREJAX_COORDINATOR_PORT"

#: The ports that jobs get: the last 4096 ones, which few programs use.
_PORTS: Final = range(61440, 65536)

#: Kubernetes gives each pod an address of its own, so the port may always be the same.
_POD_PORT: Final = 55527


class Fact(NamedTuple):
    """A value, the variable that says it, and whose variable that is."""

    value: Any
    origin: str
    source: str


Reader: TypeAlias = Callable[[], tuple[Any, str]]


class Cluster(NamedTuple):
    """How to know a cluster, and who knows what there: each reader gives a value and where it is from."""

    title: str
    wanted: str
    variables: tuple[str, ...]
    seen: Callable[[], bool]
    readers: dict[str, Reader]

    def facts(self, names: Collection[str]) -> Iterator[tuple[str, Fact]]:
        """What the cluster says about these."""
        for name, read in self.readers.items():
            if name in names:
                yield name, Fact(*read(), self.title)

    def missing(self) -> str:
        """By what one sees that the cluster isn't there."""
        absent = [variable for variable in self.variables or (self.title,) if not os.environ.get(variable)]
        return f"no {' and no '.join(absent)}" if absent else f"{', '.join(self.variables)} of something else"


def integer(variable: str, text: str, wanted: str = "an integer") -> int:
    """The number in a variable."""
    if re.fullmatch(r"\s*\d{1,18}\s*", text, re.ASCII) is None:
        raise CorejaxValueError(f"{variable} is not {'an integer' if wanted == 'an integer' else 'a list of integers'}",
                                got=repr(os.environ.get(variable, text)), wanted=wanted, todo="set it anew")
    return int(text)


def _number(variable: str) -> Reader:
    return lambda: (integer(variable, os.environ.get(variable, "")), variable)


def _numbers(variable: str) -> Reader:
    return lambda: ((integer(variable, os.environ.get(variable, "")),), variable)


def _all_set(*variables: str) -> Callable[[], bool]:
    return lambda: all([os.environ.get(each) for each in variables])


def _port(otherwise: int) -> int:
    """The port that is set, or this one."""
    text = os.environ.get(PORT)
    return integer(PORT, text) if text else otherwise


def _port_of_job(number: int) -> int:
    """The port of a job: the one that is set, or one that all of its processes find by its number."""
    return _port(_PORTS[number % len(_PORTS)])


def _host(name: str) -> str:
    return f"[{name}]" if ":" in name else name


# Open MPI

_HNP: Final = "OMPI_MCA_orte_hnp_uri"  # up to Open MPI 4
_NAMESPACE: Final = "PMIX_NAMESPACE"  # from Open MPI 5 on
_OMPI: Final = "OMPI_COMM_WORLD_{}"


def _ompi_seen() -> bool:
    return bool(os.environ.get(_HNP)) or (bool(os.environ.get(_OMPI.format("RANK"))) and _prrte_job() is not None)


def _ompi_address() -> tuple[str, str]:
    """Where mpirun runs, as process 0 does unless hosts are listed in another order."""
    uri = os.environ.get(_HNP)
    if not uri:
        return _prrte_address(), _NAMESPACE
    # Such as 1531576320.0;tcp://10.96.0.1,10.148.0.1:34911 or 1314521088.0;tcp6://[fe80::1,2620::2]:43370
    match = re.match(r"(\d+)\..*?;tcp6?://\[?([^\],\[]+?)(?:[,\]]|:\d+(?:;|$))", uri)
    if match is None:
        raise CorejaxValueError(f"{_HNP} says no address of mpirun", got=repr(uri),
                                wanted="such as 1531576320.0;tcp://10.96.0.1:34911",
                                todo="set COREJAX_COORDINATOR_ADDRESS to host:port of process 0")
    # Numbers of jobs are multiples of 4096.
    return f"{_host(match[2])}:{_port_of_job(int(match[1]) // len(_PORTS))}", _HNP


def _prrte_job() -> re.Match[str] | None:
    """Such as prterun-node001-27547@1: the host and the process of mpirun, the job's number."""
    return re.match(r"(?:prterun|prte)-(.+)-(\d+)@(\d+)", os.environ.get(_NAMESPACE, ""))


def _prrte_address() -> str:
    job = _prrte_job()
    assert job is not None
    sizes = [os.environ.get(_OMPI.format(name)) for name in ("SIZE", "LOCAL_SIZE")]
    # A host alone need not know its own name.
    return f"{'127.0.0.1' if sizes[0] == sizes[1] else _host(job[1])}:{_port_of_job(int(job[2]) + int(job[3]) - 1)}"


_OPEN_MPI: Final = Cluster("Open MPI", "the variables that mpirun sets", (_OMPI.format("RANK"), _OMPI.format("SIZE")),
                           _ompi_seen, {"coordinator_address": _ompi_address,
                                        "num_processes": _number(_OMPI.format("SIZE")),
                                        "process_id": _number(_OMPI.format("RANK")),
                                        "local_device_ids": _numbers(_OMPI.format("LOCAL_RANK"))})


# Slurm

_JOB: Final = "SLURM_JOB_ID"
_NODES: Final = "SLURM_STEP_NODELIST"


def _slurm_address() -> tuple[str, str]:
    """The first node of the step. Its list is such as node[001-003,7],gpu1 or rack[1-2]n[01-16]."""
    nodes = os.environ[_NODES]
    first = re.match(r"(?:[^,\[\]]|\[[^\]]*\])+", nodes)
    name = re.sub(r"\[([^\],-]+)[^\]]*\]", r"\1", first[0]) if first else ""
    if re.fullmatch(r"[\w.-]+", name) is None:
        raise CorejaxValueError(f"{_NODES} is not a list of nodes", got=repr(nodes), wanted="such as node[001-003,7]",
                                todo="set COREJAX_COORDINATOR_ADDRESS to host:port of process 0")
    return f"{name}:{_port_of_job(integer(_JOB, os.environ[_JOB]))}", _NODES


_SLURM_VARIABLES: Final = (_JOB, _NODES, "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID")

_SLURM: Final = Cluster("Slurm", "the variables that srun sets", _SLURM_VARIABLES, _all_set(*_SLURM_VARIABLES),
                        {"coordinator_address": _slurm_address, "num_processes": _number("SLURM_NTASKS"),
                         "process_id": _number("SLURM_PROCID"), "local_device_ids": _numbers("SLURM_LOCALID")})


# Kubernetes

_INDEX: Final = "JOB_COMPLETION_INDEX"


def _pod_address() -> tuple[str, str]:
    """The first pod of an indexed job: pods are called JOB-INDEX, in a domain if a headless service gives one."""
    index, name = os.environ[_INDEX], os.environ.get("HOSTNAME") or socket.gethostname()
    full = socket.getfqdn(name)  # from /etc/hosts, which Kubernetes writes
    job, dash, last = name.partition(".")[0].rpartition("-")
    if not dash or last != index or not full.startswith(f"{job}-{index}."):
        raise CorejaxValueError("the pods of this Kubernetes job can't find each other by name",
                                got=f"this pod is called {full!r}, {_INDEX}={index}",
                                wanted=f"such as JOB-{index}.SERVICE",
                                todo="make a headless service (clusterIP: None, publishNotReadyAddresses: true, "
                                     "selector: job-name: JOB) and name it in the job's template as spec.subdomain; "
                                     "or set COREJAX_COORDINATOR_ADDRESS to host:port of the first pod")
    return f"{job}-0.{full.partition('.')[2]}:{_port(_POD_PORT)}", _INDEX


def _pod_count() -> tuple[int, str]:
    raise CorejaxValueError("COREJAX_NUM_PROCESSES is missing: Kubernetes doesn't tell a pod how many there are",
                            got=f"{_INDEX}={os.environ[_INDEX]}", wanted="the parallelism of the job",
                            todo="set it in the job's template: env: [{name: COREJAX_NUM_PROCESSES, value: '4'}]")


_KUBERNETES: Final = Cluster("Kubernetes", "a pod of a job with completionMode: Indexed",
                             ("KUBERNETES_SERVICE_HOST", _INDEX), _all_set("KUBERNETES_SERVICE_HOST", _INDEX),
                             {"coordinator_address": _pod_address, "num_processes": _pod_count,
                              "process_id": _number(_INDEX)})


# mpi4py

def _world() -> Any:
    return importlib.import_module("mpi4py.MPI").COMM_WORLD


def _mpi_address() -> tuple[str, str]:
    """Process 0 takes a free port, and tells the others."""
    world, address = _world(), None
    if world.Get_rank() == 0:
        with socket.socket() as probe:
            probe.bind(("", 0))
            port = _port(probe.getsockname()[1])
        alone = world.Get_size() == _on_this_host().Get_size()
        address = f"{'127.0.0.1' if alone else socket.gethostname()}:{port}"
    else:
        _on_this_host()
    return world.bcast(address, root=0), "MPI.COMM_WORLD"


def _on_this_host() -> Any:
    return _world().Split_type(importlib.import_module("mpi4py.MPI").COMM_TYPE_SHARED)


_MPI4PY: Final = Cluster("mpi4py", "an environment with mpi4py", (),
                         lambda: importlib.util.find_spec("mpi4py") is not None,
                         {"coordinator_address": _mpi_address,
                          "num_processes": lambda: (_world().Get_size(), "MPI.COMM_WORLD"),
                          "process_id": lambda: (_world().Get_rank(), "MPI.COMM_WORLD"),
                          "local_device_ids": lambda: ((_on_this_host().Get_rank(),), "MPI.COMM_TYPE_SHARED")})


#: Those that are looked for, in this order.
AUTOMATIC: Final = (_OPEN_MPI, _SLURM, _KUBERNETES)

CLUSTERS: Final = {"ompi": _OPEN_MPI, "slurm": _SLURM, "k8s": _KUBERNETES, "mpi4py": _MPI4PY}
