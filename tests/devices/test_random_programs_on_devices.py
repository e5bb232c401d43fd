"""Random programs of arrays that are divided among devices compute what they compute on one device."""

import random
from collections.abc import Callable
from math import prod

import numpy as np
import pytest

import corejax as cj
from corejax import P, lax
from corejax.sharding import Mesh, NamedSharding

MESHES = [(8,), (2, 4), (4, 2), (2, 2, 2)]
SHAPES = [(16,), (64,), (8, 16), (16, 4), (8, 8, 4)]


def random_mesh(draw: random.Random) -> Mesh:
    """All devices, half of the time in another order than theirs."""
    sizes = draw.choice(MESHES)
    devices = cj.devices() if draw.random() < 0.5 else draw.sample(cj.devices(), 8)
    return Mesh(np.array(devices).reshape(sizes), ("x", "y", "z")[:len(sizes)])


def random_spec(mesh: Mesh, shape: tuple[int, ...], draw: random.Random) -> P:
    """A spec by which the shape can be divided."""
    left = draw.sample(mesh.axis_names, mesh.ndim)
    entries = []
    for size in shape:
        names: list[str] = []
        while left and draw.random() < 0.5 and size % prod([mesh.shape[name] for name in (*names, left[-1])]) == 0:
            names.append(left.pop())
        entries.append(tuple(names))
    return P(*entries)


def random_step(shape: tuple[int, ...], draw: random.Random) -> Callable:
    """A function of an array of this shape."""
    size = prod(shape)
    axes = tuple(draw.sample(range(len(shape)), len(shape)))
    other = draw.choice([(size,), (2, size // 2), (size // 2, 2), (size // 4, 4), (2, 2, size // 4)])
    steps = [lax.sin, lambda x: x * 2.0, lambda x: lax.transpose(x, axes), lambda x: x[::2] + x[1::2]]
    if size % 4 == 0:
        steps.append(lambda x: lax.reshape(x, other))
    if len(shape) > 1:
        steps.append(lambda x: x.sum(axis=0))
    if len(shape) == 2:
        steps.append(lambda x: x @ lax.transpose(x, (1, 0)))
    return draw.choice(steps if shape[0] % 2 == 0 else steps[:3])


@pytest.mark.parametrize("seed", range(30))
def test_a_random_program_computes_the_same_on_eight_devices(seed: int) -> None:
    draw = random.Random(seed)
    mesh, shape = random_mesh(draw), draw.choice(SHAPES)
    whole = wanted = np.random.default_rng(seed).standard_normal(shape)
    steps: list[Callable] = []
    for _ in range(draw.randint(1, 4)):
        steps.append(random_step(wanted.shape, draw))
        wanted = np.asarray(steps[-1](cj.device_put(wanted)))

    def program(x):
        for step in steps:
            x = step(x)
        return x

    x = cj.device_put(whole, NamedSharding(mesh, random_spec(mesh, shape, draw)))
    loss = lambda x: (program(x) ** 2).sum()
    for y in (cj.jit(program)(x), program(x)):
        assert set(cj.devices()) == y.devices()
        np.testing.assert_allclose(np.asarray(y), wanted, 1e-9, 1e-9)
        for shard in y.addressable_shards:
            np.testing.assert_allclose(np.asarray(shard.data), wanted[shard.index], 1e-9, 1e-9)
        np.testing.assert_allclose(np.asarray(y + y), 2 * wanted, 1e-9, 1e-9)
    np.testing.assert_allclose(np.asarray(cj.jit(cj.grad(loss))(x)), np.asarray(cj.grad(loss)(whole)), 1e-8, 1e-8)
