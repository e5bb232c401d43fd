"""Tests with eight devices, in a process of their own: `COREJAX_NUM_CPU_DEVICES=8 pytest tests/devices`."""

import os

import numpy as np
import pytest

import corejax as cj

collect_ignore_glob = [] if os.environ.get("COREJAX_NUM_CPU_DEVICES") == "8" else ["test_*.py"]
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")


@pytest.fixture(scope="session")
def line():
    """A mesh with one axis."""
    return cj.make_mesh((8,), ("x",))


@pytest.fixture(scope="session")
def grid():
    """A mesh with two axes."""
    return cj.make_mesh((2, 4), ("x", "y"))


@pytest.fixture(scope="session")
def cube():
    """A mesh with three axes."""
    return cj.make_mesh((2, 2, 2), ("x", "y", "z"))


@pytest.fixture
def rng():
    return np.random.default_rng(0)
