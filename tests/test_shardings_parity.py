"""Which part of an array is on which device: the same as jax says, for random meshes, specs and shapes."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import textwrap
from math import prod
from typing import Any

import numpy as np
import pytest
from grids import DEVICES

from corejax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

#: A process asks its own library: jax there, corejax here.
ANSWERS = """
def listed(index):
    return [[part.start, part.stop] for part in index]

def sharding_of(case, devices, Mesh, P, NamedSharding, SingleDeviceSharding):
    if isinstance(case, int):
        return SingleDeviceSharding(devices[case])
    ids, sizes, names, spec = case
    grid = np.array([devices[i] for i in ids]).reshape(sizes)
    return NamedSharding(Mesh(grid, tuple(names)), P(*[tuple(e) if isinstance(e, list) else e for e in spec]))

def answer(case, devices, *kinds):
    one, other = [sharding_of(each, devices, *kinds) for each in case["shardings"]]
    shape = tuple(case["shape"])
    found = {"equal": one == other, "replicated": one.is_fully_replicated, "number": one.num_devices}
    for name, ask in {
        "part": lambda: list(one.shard_shape(shape)),
        "indices": lambda: {str(d.id): listed(index) for d, index in one.devices_indices_map(shape).items()},
        "equivalent": lambda: one.is_equivalent_to(other, len(shape)),
    }.items():
        try:
            found[name] = ask()
        except (ValueError, IndexError):
            found[name] = "refused"
    return found
"""

JAX = """
import json, sys
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding
jax.config.update("jax_num_cpu_devices", 8)
kinds = Mesh, PartitionSpec, NamedSharding, SingleDeviceSharding
print(json.dumps([answer(case, jax.devices(), *kinds) for case in json.load(sys.stdin)]))
"""


def random_spec(names: list[str], ndim: int, draw: random.Random) -> list[Any]:
    """A spec of at most `ndim` entries in which no axis is used twice. (With more, jax only refuses to put arrays.)"""
    left = draw.sample(names, len(names))
    spec: list[Any] = []
    for _ in range(draw.randint(0, ndim)):
        kind = draw.random()
        if kind < 0.3 or not left:
            spec.append(None)
        elif kind < 0.7:
            spec.append(left.pop())
        else:
            spec.append([left.pop() for _ in range(draw.randint(0, len(left)))])
    return spec


def random_sharding(ndim: int, draw: random.Random) -> Any:
    if draw.random() < 0.1:
        return draw.randrange(8)
    sizes = draw.choice([[8], [2, 4], [4, 2], [2, 2, 2], [1, 8], [2, 1, 4], [1], [2], [1, 1], [2, 2], [3], [6], [3, 2]])
    ids = list(range(8)) if draw.random() < 0.7 else draw.sample(range(8), 8)
    names = ["x", "y", "z"][:len(sizes)]
    return ids[:prod(sizes)], sizes, names, random_spec(names, ndim, draw)


def random_case(draw: random.Random) -> dict[str, Any]:
    shape = [draw.choice([0, 1, 2, 4, 6, 8, 8, 16, 24, 24]) for _ in range(draw.randint(0, 3))]
    one = random_sharding(len(shape), draw)
    other = random_sharding(len(shape), draw)
    if draw.random() < 0.6 and not isinstance(one, int):  # of the same devices
        other = *one[:3], random_spec(one[2], len(shape), draw)
    if draw.random() < 0.2 and not isinstance(one, int):
        other = *one[:3], [*one[3], *[None] * max(0, len(shape) - len(one[3]))]
    return {"shape": shape, "shardings": [one, other]}


def asked_of_jax() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Cases, with what jax answers."""
    draw = random.Random(16)
    cases = [random_case(draw) for _ in range(600)]
    program = textwrap.dedent(ANSWERS).join(["import numpy as np\n", JAX])
    done = subprocess.run([sys.executable, "-c", program], input=json.dumps(cases), capture_output=True, text=True,
                          env={**os.environ, "JAX_PLATFORMS": "cpu"})
    assert done.returncode == 0, done.stderr
    return list(zip(cases, json.loads(done.stdout), strict=True))


def test_parity_of_shards_indices_and_equality() -> None:
    pytest.importorskip("jax")
    asked = asked_of_jax()
    names: dict[str, Any] = {"np": np}
    exec(ANSWERS, names)
    kinds = Mesh, PartitionSpec, NamedSharding, SingleDeviceSharding
    different = []
    for case, theirs in asked:
        ours = json.loads(json.dumps(names["answer"](case, DEVICES, *kinds)))
        if ours != theirs:
            different.append((case, ours, theirs))
    assert [] == different[:3]
    for part in ("equal", "replicated", "equivalent"):  # the cases are of both kinds
        assert 40 < sum(theirs[part] is True for _, theirs in asked) < 500
    assert 40 < sum(theirs["part"] == "refused" for _, theirs in asked) < 400
