"""The examples for several devices: they compute what one device does."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

import corejax as cj

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("name", "said"), [
    ("data_parallel", r"largest difference of losses: (\S+)"),
    ("tensor_parallel", r"differs by (\S+) of its largest"),
    ("pipeline", r"slopes differ by (\S+)"),
    ("ring_attention", r"slopes of \w+ differ by (\S+)"),
])
def test_several_devices_compute_what_one_does(name, said, capsys):
    load(name).main()
    found = re.findall(said, capsys.readouterr().out)
    assert found and max(map(float, found)) < 1e-12


def test_ring_attention_is_the_attention_of_loops_over_positions(line, rng):
    module = load("ring_attention")
    query, key, value = rng.standard_normal((3, 16, 4))
    rows = []
    for i in range(16):
        scores = query[i] @ key[: i + 1].T / 2.0
        weights = np.exp(scores - scores.max())
        rows.append(weights @ value[: i + 1] / weights.sum())
    mesh = cj.make_mesh((8,), ("ring",))
    np.testing.assert_allclose(rows, np.asarray(module.ring(mesh)(query, key, value)), rtol=1e-12)


def test_the_pipeline_is_the_layers_one_after_the_other(rng):
    module = load("pipeline")
    weights, batches = rng.standard_normal((8, 3, 3)), rng.standard_normal((5, 2, 3))
    wanted = batches
    for weight in weights:
        wanted = wanted + np.tanh(wanted @ weight)
    mesh = cj.make_mesh((8,), ("stage",))
    np.testing.assert_allclose(wanted, np.asarray(module.pipelined(mesh)(weights, batches)), rtol=1e-12)
