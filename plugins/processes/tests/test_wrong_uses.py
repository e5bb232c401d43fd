"""What users get wrong about processes, and what they are told: what was got, what is wanted, what to do."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import corejax as cj
from corejax.errors import CorejaxError
from together import free_port

HERE, NOBODY = Path(__file__).parent, free_port()
ADDRESS = f"127.0.0.1:{NOBODY}"


def initialize(**given: object) -> None:
    """As a process of two, unless something else is said."""
    cj.distributed.initialize(**{"coordinator_address": ADDRESS, "num_processes": 2, "process_id": 1,
                                 "initialization_timeout": 0.3, **given})


def taken() -> str:
    """An address at which somebody else listens."""
    if not hasattr(taken, "socket"):
        taken.socket = socket.create_server(("127.0.0.1", 0))  # type: ignore[attr-defined]
    return f"127.0.0.1:{taken.socket.getsockname()[1]}"  # type: ignore[attr-defined]


def mesh() -> cj.sharding.Mesh:
    return cj.sharding.Mesh(np.array(cj.devices()[:1], object), ("x",))


def by_x() -> cj.NamedSharding:
    return cj.NamedSharding(mesh(), cj.P("x"))


BEFORE = {
    "cj.distributed.initialize()": "nothing says which processes there are.*launch -n 2",
    "cj.distributed.initialize('127.0.0.1:1')": "num_processes.*missing|NUM_PROCESSES.*missing",
    "cj.distributed.initialize(num_processes=2, process_id=0)": "ADDRESS is missing",
    "cj.distributed.initialize(ADDRESS, 2)": "PROCESS_ID is missing",
    "initialize(coordinator_address='127.0.0.1')": "is not an address.*host:port",
    "initialize(coordinator_address='127.0.0.1:99999')": "is not an address.*65535",
    "initialize(coordinator_address='::1:80')": "is not an address.*host:port",
    "initialize(coordinator_address=8080)": "is not an address",
    "initialize(coordinator_address='')": "is not an address",
    "initialize(num_processes=0)": "num_processes makes no sense.*at least 1",
    "initialize(num_processes='2')": "num_processes makes no sense.*got: *'2'",
    "initialize(num_processes=True)": "num_processes makes no sense",
    "initialize(num_processes=2.0)": "num_processes makes no sense",
    "initialize(process_id=-1)": "process_id makes no sense.*from 0 to 1",
    "initialize(process_id=2)": "process_id is not below.*2 of 2 processes",
    "initialize(process_id='1')": "process_id makes no sense",
    "initialize(local_device_ids=[])": "local_device_ids makes no sense",
    "initialize(local_device_ids=[0, 0])": "local_device_ids makes no sense.*each once",
    "initialize(local_device_ids=[-1])": "local_device_ids makes no sense",
    "initialize(cluster_detection_method='slrum')": "isn't a known one.*slurm",
    "initialize(cluster_detection_method='slurm')": "isn't one of Slurm.*no SLURM",
    "initialize(cluster_detection_method=3)": "isn't a known one",
    "initialize(initialization_timeout=0)": "initialization_timeout must be a time.*above 0",
    "initialize(heartbeat_timeout_seconds=-1)": "heartbeat_timeout_seconds must be a time",
    "initialize(heartbeat_timeout_seconds=float('nan'))": "heartbeat_timeout_seconds must be a time",
    "initialize(shutdown_timeout_seconds='long')": "shutdown_timeout_seconds must be a time",
    "initialize(coordinator_bind_address='0.0.0.0')": "coordinator_bind_address is not an address",
    "initialize()": "nobody listens at .*process 0, which starts the service",
    "initialize(process_id=0)": "process 1 did not come.*1 of 2 within 0 s",
    "initialize(process_id=0, coordinator_address='nowhere.invalid:1234')": "can't start.*no such host",
    "initialize(process_id=0, coordinator_address='192.0.2.1:1234')": "can't start.*isn't this machine",
    "initialize(process_id=0, coordinator_address=taken())": "can't start.*the port is taken.*another port",
    "setattr(cj.config, 'compare_programs', 'sometimes')": "compare_programs can't be 'sometimes'.*True",
    "cj.multihost_utils.process_allgather(1.0, tiled=True)": "scalars can't be concatenated.*leave tiled out",
    "cj.local_devices(3)": "there is no process 3.*from 0 to 0",
    "cj.device_count('abacus')": "no device of platform 'abacus'",
    "cj.make_array_from_process_local_data(cj.P('x'), np.ones(2))": "expected a sharding.*NamedSharding",
    "cj.make_array_from_process_local_data(by_x(), np.ones(2), (2, 2))": "another rank",
    "cj.make_array_from_process_local_data(by_x(), np.ones(2), (3,))": "wrong size.*got: *size 2",
    "cj.multihost_utils.host_local_array_to_global_array((np.ones(2), np.ones(2)), mesh(), (cj.P('x'),))": "don't fit",
    "cj.multihost_utils.global_array_to_host_local_array({'a': np.ones(2)}, mesh(), [cj.P('x')])": "don't fit",
}

VARIABLES = {
    "COREJAX_NUM_PROCESSES=two COREJAX_PROCESS_ID=0 COREJAX_COORDINATOR_ADDRESS=a:1": "NUM_PROCESSES is not an integer",
    "COREJAX_HEARTBEAT_TIMEOUT_SECONDS=soon": "HEARTBEAT_TIMEOUT_SECONDS is not a number.*'soon'",
    "COREJAX_NUM_PROCESSES=2": "ADDRESS and COREJAX_PROCESS_ID are missing",
    "COREJAX_NUM_PROCESSES=2 COREJAX_PROCESS_ID=5 COREJAX_COORDINATOR_ADDRESS=a:1": "is not below.*5 of 2",
    "COREJAX_NUM_PROCESSES=2 COREJAX_PROCESS_ID=0 COREJAX_COORDINATOR_ADDRESS=a": "is not an address",
    "COREJAX_NUM_PROCESSES=2 COREJAX_PROCESS_ID=0 COREJAX_COORDINATOR_ADDRESS=a:1 COREJAX_LOCAL_DEVICE_IDS=x":
        "integers",
}


@pytest.mark.parametrize("code", BEFORE)
def test_wrong_use_is_told(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corejax.xla.runtime.peers.check_can_join", lambda: None)  # devices are in use here
    with pytest.raises(CorejaxError) as caught:
        eval(code)
    assert re.search(BEFORE[code], str(caught.value), re.DOTALL), caught.value
    assert {"got", "wanted", "where"} <= {line.split(":")[0].strip() for line in str(caught.value).splitlines()[1:]}
    assert not cj.distributed.is_initialized()


@pytest.mark.parametrize("variables", VARIABLES)
def test_wrong_variables_are_told(variables: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for each in variables.split():
        monkeypatch.setenv(*each.split("="))
    with pytest.raises(CorejaxError, match=re.compile(VARIABLES[variables], re.DOTALL)):
        cj.distributed.initialize()


#: In two processes with two devices each; `x` is divided among all, `y` is a copy on each.
TOGETHER = {
    "np.asarray(x)": "doesn't hold the whole array.*process_allgather",
    "float(x.sum() * 0 + x[0]) + float(x)": "needs a scalar",
    "x.tolist()": "doesn't hold the whole array",
    "cj.device_get(x)": "doesn't hold the whole array",
    "pickle.dumps(x)": "doesn't hold the whole array",
    "copy.deepcopy(x)": "doesn't hold the whole array",
    "np.from_dlpack(x)": "several devices|doesn't hold",
    "x + np.ones(3)": "shapes|broadcast",
    "cj.device_put(np.ones(2), cj.local_devices(1 - me)[0])": "belongs to another process.*cj.local_devices",
    "x.addressable_data(2)": "no such shard.*from 0 to 1",
    "cj.jit(lambda x, z: x + z)(x, cj.device_put(np.ones(4), cj.local_devices()[1]))": "different|devices",
    "cj.jit(lambda x: x, in_shardings=x.sharding)(np.ones(4))": "can't be divided among several.*process_local_data",
    "cj.distributed.initialize('127.0.0.1:1', 3, 0)": "called already, with other arguments.*as process . of 2",
    "cj.multihost_utils.sync_global_devices(f'here {me}')": "names that sync_global_devices.*differ",
    "cj.multihost_utils.assert_equal(np.float64(me), 'the seeds')": "the seeds differ.*process",
    "cj.multihost_utils.broadcast_one_to_all(np.ones(2), is_source=True)": "exactly one process.*2 of 2",
    "cj.device_put(np.full(4, float(me)), x.sharding)": "values differ",
    "cj.make_array_from_process_local_data(x.sharding, np.ones(3))": "isn't known|wrong size",
    "cj.make_array_from_single_device_arrays((4,), x.sharding, [x.addressable_data(0)])": "on each device",
    "cj.make_array_from_callback((4,), x.sharding, lambda i: np.ones(3))": "wrong shape",
}

PROGRAM = """
import copy, json, pickle, sys
import numpy as np
import corejax as cj
from corejax import P
cj.distributed.initialize()
me = cj.process_index()
mesh = cj.make_mesh((4,), ("x",))
x = cj.make_array_from_process_local_data(cj.NamedSharding(mesh, P("x")), np.arange(2.0) + 2 * me)
found = {}
for code in json.loads(sys.argv[1]):
    try:
        found[code] = f"no error: {eval(code)!r}"
    except cj.errors.CorejaxError as error:
        found[code] = str(error)
    except Exception as error:
        found[code] = f"another error: {error!r}"
print(json.dumps(found))
"""


def test_wrong_uses_of_what_is_in_several_processes_are_told() -> None:
    port = free_port()
    processes = [subprocess.Popen([sys.executable, "-c", PROGRAM, json.dumps([*TOGETHER])], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, env={
                                      **os.environ, "COREJAX_COORDINATOR_ADDRESS": f"127.0.0.1:{port}",
                                      "COREJAX_NUM_PROCESSES": "2", "COREJAX_PROCESS_ID": str(i),
                                      "COREJAX_NUM_CPU_DEVICES": "2"}) for i in range(2)]
    told = [each.communicate(timeout=60) for each in processes]
    for out, errors in told:
        assert out, errors
        found = json.loads(out.splitlines()[-1])
        wrong = {code: found[code] for code, wanted in TOGETHER.items()
                 if re.search(wanted, found[code], re.DOTALL) is None or "error:" in found[code].partition("\n")[0]}
        assert not wrong
