"""What the environment says about the processes that compute together.

The addresses are those that jax finds, but where what it finds is none: for `node[7]`, `rack[1-2]n[01-16]`, names that
go on after the brackets, and IPv6.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import types
from typing import Any

import pytest

from corejax.errors import CorejaxValueError
from corejax_processes import _environment
from corejax_processes._environment import Found, detect, split_address, summary

OWN = {"COREJAX_COORDINATOR_ADDRESS": "node1:8000", "COREJAX_NUM_PROCESSES": "4", "COREJAX_PROCESS_ID": "3"}
SLURM = {"SLURM_JOB_ID": "9000", "SLURM_STEP_NODELIST": "node[001-003,7],gpu1", "SLURM_NTASKS": "8",
         "SLURM_PROCID": "5", "SLURM_LOCALID": "1"}
OMPI = {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "0",
        "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
OMPI4 = {**OMPI, "OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1,10.148.0.1,10.108.0.1:34911"}
OMPI5 = {**OMPI, "PMIX_NAMESPACE": "prterun-node-1-27547@1"}
POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": "2", "HOSTNAME": "train-2",
       "COREJAX_NUM_PROCESSES": "3"}


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("COREJAX_", "SLURM_", "OMPI_", "PMIX_", "KUBERNETES_", "JOB_")):
            monkeypatch.delenv(name)


def given(monkeypatch: pytest.MonkeyPatch, *variables: dict[str, str]) -> None:
    for each in variables:
        for name, value in each.items():
            monkeypatch.setenv(name, value)


def refused(method: str | None = None, **arguments: Any) -> str:
    with pytest.raises(CorejaxValueError) as error:
        detect(method, **arguments)
    return str(error.value)


# Where it is from

def test_nothing_is_found_where_nothing_is_said() -> None:
    assert None is detect() is detect("deactivate")
    assert {"clusters": "none"} == summary()


def test_the_variables_of_corejax_say_all(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, OWN)
    assert Found("node1:8000", 4, 3, None, None, "COREJAX_* variables") == detect() == detect("deactivate")
    given(monkeypatch, {"COREJAX_LOCAL_DEVICE_IDS": "0, 2", "COREJAX_COORDINATOR_BIND_ADDRESS": "[::]:8000"})
    assert Found("node1:8000", 4, 3, (0, 2), "[::]:8000", "COREJAX_* variables") == detect()


def test_a_job_started_within_a_job_of_a_cluster_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, SLURM, OWN)
    assert Found("node1:8000", 4, 3, None, None, "COREJAX_* variables") == detect()


def test_arguments_come_first_then_variables_then_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, SLURM, {"COREJAX_COORDINATOR_ADDRESS": "node9:8000", "COREJAX_NUM_PROCESSES": "6"})
    assert Found("node9:8000", 7, 5, (1,), None, "Slurm and COREJAX_* variables and arguments") == detect(
        num_processes=7, process_id=None)
    assert Found("a:1", 2, 1, (4,), None, "arguments") == detect(
        coordinator_address="a:1", num_processes=2, process_id=1, local_device_ids=4)


@pytest.mark.parametrize("variables", [SLURM, OMPI4, OMPI5])
def test_a_deactivated_cluster_says_nothing(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    given(monkeypatch, variables)
    assert None is detect("deactivate")


def test_mpirun_counts_before_the_job_it_runs_in(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, SLURM, OMPI5)
    found = detect()
    assert found is not None and "Open MPI" == found.source
    chosen = detect("slurm")
    assert chosen is not None and "Slurm" == chosen.source


# Clusters

@pytest.mark.parametrize(("nodes", "first"), [
    ("node001", "node001"), ("node001,host2", "node001"), ("node[001-015],host2", "node001"),
    ("node[001,007-015],host2", "node001"), ("node[7]", "node7"), ("rack[2-3]n[04-09],x", "rack2n04"),
    ("a.b-c[1-2].example.org", "a.b-c1.example.org")])
def test_slurm_says_the_first_node(monkeypatch: pytest.MonkeyPatch, nodes: str, first: str) -> None:
    given(monkeypatch, SLURM, {"SLURM_STEP_NODELIST": nodes})
    assert Found(f"{first}:{9000 % 4096 + 61440}", 8, 5, (1,), None, "Slurm") == detect() == detect("slurm")


@pytest.mark.parametrize(("uri", "address"), [
    ("1531576320.0;tcp://10.96.0.1,10.148.0.1,10.108.0.1:34911", "10.96.0.1:62624"),
    ("1314521088.0;tcp6://[fe80::b9b:ac5d:9cf0:b858,2620:10d:c083:150e::3000:2]:43370",
     "[fe80::b9b:ac5d:9cf0:b858]:62880"),
    ("1531576320.0;tcp://10.96.0.1:34911", "10.96.0.1:62624")])
def test_open_mpi_4_says_where_mpirun_is(monkeypatch: pytest.MonkeyPatch, uri: str, address: str) -> None:
    given(monkeypatch, OMPI4, {"OMPI_MCA_orte_hnp_uri": uri})
    assert Found(address, 4, 2, (0,), None, "Open MPI") == detect() == detect("ompi")


@pytest.mark.parametrize(("namespace", "local", "address"), [
    ("prterun-node-1-27547@1", "2", f"node-1:{27547 % 4096 + 61440}"), ("prte-vm-5@3", "2", f"vm:{5 + 2 + 61440}"),
    ("prterun-vm-27547@1", "4", f"127.0.0.1:{27547 % 4096 + 61440}")])
def test_open_mpi_5_says_it_in_its_job(monkeypatch: pytest.MonkeyPatch, namespace: str, local: str,
                                       address: str) -> None:
    given(monkeypatch, OMPI5, {"PMIX_NAMESPACE": namespace, "OMPI_COMM_WORLD_LOCAL_SIZE": local})
    assert Found(address, 4, 2, (0,), None, "Open MPI") == detect()


def test_an_indexed_job_says_the_first_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, POD)
    monkeypatch.setattr(socket, "getfqdn", lambda name: f"{name}.pods.space.svc.cluster.local")
    first = "train-0.pods.space.svc.cluster.local:55527"
    assert Found(first, 3, 2, None, None, "Kubernetes and COREJAX_* variables") == detect()
    monkeypatch.delenv("COREJAX_NUM_PROCESSES")
    assert "set it in the job's template: env:" in refused()
    monkeypatch.setattr(socket, "getfqdn", lambda name: name)
    assert "make a headless service" in refused(num_processes=3)


def test_a_pod_of_another_kind_is_no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"})
    assert None is detect()
    assert "wanted: a pod of a job with completionMode: Indexed" in refused("k8s")


@pytest.mark.parametrize("variables", [SLURM, OMPI4, OMPI5, POD])
def test_a_port_may_be_set(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    monkeypatch.setattr(socket, "getfqdn", lambda name: f"{name}.pods")
    given(monkeypatch, variables, {"COREJAX_COORDINATOR_PORT": "1234"})
    found = detect()
    assert found is not None and found.coordinator_address.endswith(":1234")


def test_mpi4py_is_asked_by_name_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class World:
        Get_rank, Get_size = staticmethod(lambda: 0), staticmethod(lambda: 2)
        bcast = staticmethod(lambda value, root: value)
        Split_type = staticmethod(lambda kind: types.SimpleNamespace(Get_rank=lambda: 0, Get_size=lambda: 1))

    mpi = types.ModuleType("mpi4py.MPI")
    vars(mpi).update(COMM_WORLD=World, COMM_TYPE_SHARED=1)
    package = types.ModuleType("mpi4py")
    package.__spec__ = types.SimpleNamespace(name="mpi4py")  # type: ignore[assignment]
    monkeypatch.setitem(sys.modules, "mpi4py", package)
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", mpi)
    assert None is detect()
    found = detect("mpi4py")
    assert found is not None
    assert (2, 0, (0,), "mpi4py") == (found.num_processes, found.process_id, found.local_device_ids, found.source)
    assert found.coordinator_address.startswith(f"{socket.gethostname()}:")


def test_mpi4py_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "isn't one of mpi4py" in refused("mpi4py")


# What makes no sense

@pytest.mark.parametrize(("variables", "parts"), [
    ({"COREJAX_NUM_PROCESSES": "2"}, ["COREJAX_COORDINATOR_ADDRESS and COREJAX_PROCESS_ID are missing"]),
    ({"COREJAX_COORDINATOR_ADDRESS": "a:1", "COREJAX_PROCESS_ID": "0"}, ["COREJAX_NUM_PROCESSES is missing"]),
    ({**OWN, "COREJAX_NUM_PROCESSES": "two"}, ["COREJAX_NUM_PROCESSES is not an integer", "'two'"]),
    ({**OWN, "COREJAX_NUM_PROCESSES": "0", "COREJAX_PROCESS_ID": "0"}, ["COREJAX_NUM_PROCESSES makes no sense"]),
    ({**OWN, "COREJAX_PROCESS_ID": "4"}, ["COREJAX_PROCESS_ID is not below COREJAX_NUM_PROCESSES", "0 to 3"]),
    ({**OWN, "COREJAX_PROCESS_ID": "-1"}, ["COREJAX_PROCESS_ID is not an integer", "'-1'"]),
    ({**OWN, "COREJAX_PROCESS_ID": "1.0"}, ["COREJAX_PROCESS_ID is not an integer"]),
    ({**OWN, "COREJAX_COORDINATOR_ADDRESS": "node1"}, ["COREJAX_COORDINATOR_ADDRESS is not an address", "host:port"]),
    ({**OWN, "COREJAX_COORDINATOR_ADDRESS": "::1:80"}, ["COREJAX_COORDINATOR_ADDRESS is not an address"]),
    ({**OWN, "COREJAX_COORDINATOR_ADDRESS": "http://a:80"}, ["COREJAX_COORDINATOR_ADDRESS is not an address"]),
    ({**OWN, "COREJAX_COORDINATOR_BIND_ADDRESS": "a:0"}, ["COREJAX_COORDINATOR_BIND_ADDRESS is not an address"]),
    ({**OWN, "COREJAX_COORDINATOR_BIND_ADDRESS": "a:65536"}, ["COREJAX_COORDINATOR_BIND_ADDRESS is not an address"]),
    ({**OWN, "COREJAX_LOCAL_DEVICE_IDS": "0,x"}, ["COREJAX_LOCAL_DEVICE_IDS is not a list of integers", "'0,x'"]),
    ({**OWN, "COREJAX_LOCAL_DEVICE_IDS": "1,1"}, ["COREJAX_LOCAL_DEVICE_IDS makes no sense", "each once"]),
    ({**SLURM, "SLURM_PROCID": "x"}, ["SLURM_PROCID is not an integer"]),
    ({**SLURM, "SLURM_PROCID": "8"}, ["SLURM_PROCID is not below SLURM_NTASKS"]),
    ({**SLURM, "SLURM_STEP_NODELIST": "[1-2"}, ["SLURM_STEP_NODELIST is not a list of nodes", "'[1-2'"]),
    ({**OMPI4, "OMPI_MCA_orte_hnp_uri": "junk"}, ["OMPI_MCA_orte_hnp_uri says no address", "'junk'"]),
    ({**SLURM, "COREJAX_COORDINATOR_PORT": "x"}, ["COREJAX_COORDINATOR_PORT is not an integer"]),
    ({**SLURM, "COREJAX_COORDINATOR_PORT": "99999"}, ["is not an address", "99999"]),
])
def test_senseless_variables_are_named(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str],
                                       parts: list[str]) -> None:
    given(monkeypatch, variables)
    message = refused()
    for part in parts:
        assert part in message
    assert message == summary()["problem"]


@pytest.mark.parametrize("values", [
    {"num_processes": 0}, {"num_processes": True}, {"process_id": 2}, {"process_id": "1"}, {"coordinator_address": "a"},
    {"coordinator_address": 5}, {"local_device_ids": [-1]}, {"local_device_ids": "ab"}, {"local_device_ids": []},
    {"local_device_ids": 1.5}])
def test_senseless_arguments_are_named(values: dict[str, Any]) -> None:
    arguments = {"coordinator_address": "a:1", "num_processes": 2, "process_id": 1, **values}
    assert f"the argument {next(iter(values))}" in refused(**arguments)


def test_a_method_is_known_and_there() -> None:
    assert "did you mean 'slurm'?" in refused("slrum")
    assert "no SLURM_JOB_ID" in refused("slurm")
    assert "got:    3" in refused(3)  # type: ignore[arg-type]


def test_the_summary_names_what_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, SLURM, {"COREJAX_NUM_PROCESSES": "6"})
    assert {"clusters": f"Slurm ({', '.join(SLURM)})", "COREJAX_NUM_PROCESSES": "6",
            "this process": "5 of 6, which meet at node001:62248 (by Slurm and COREJAX_* variables)"} == summary()


@pytest.mark.parametrize(("address", "parts"), [
    ("localhost:1", ("localhost", 1)), ("10.0.0.1:65535", ("10.0.0.1", 65535)),
    ("[fe80::1%eth0]:80", ("fe80::1%eth0", 80))])
def test_addresses_have_a_host_and_a_port(address: str, parts: tuple[str, int]) -> None:
    assert parts == split_address(address, "it")


def test_looking_imports_no_runtime() -> None:
    code = f"import sys; from {_environment.__name__} import summary; summary(); print('jaxlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "False" == done.stdout.strip()
