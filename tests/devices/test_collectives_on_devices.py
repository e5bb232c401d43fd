"""Collectives between devices give what they give under maps: values and gradients of random programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax import P, lax
from exhaustive import exhaustive_unless
from random_collectives import Program, program

PROGRAMS = [(seed, groups) for seed in range(130) for groups in (False, True)
            if 1 < np.prod(program(seed, groups).sizes) <= 8]
LOCAL = (12, 12)


def mapped(subject: Program, x: Any) -> Any:
    """The program under maps, whose axes lead."""
    function = lambda x: subject.body(lax, x)
    for name in reversed(subject.names):
        function = cj.vmap(function, axis_name=name)
    return function(x)


def on_devices(subject: Program, check_vma: bool) -> Any:
    """The program for the devices of a mesh with the same axes."""
    def part(x: Any) -> Any:
        return subject.body(lax, x.reshape(LOCAL)).reshape((1,) * len(subject.names) + LOCAL)

    spec = P(*subject.names)
    mesh = cj.make_mesh(subject.sizes, subject.names)
    return cj.shard_map(part, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=check_vma)


@pytest.mark.sample(6)
@pytest.mark.parametrize("check_vma", [True, False])
@pytest.mark.parametrize("which", exhaustive_unless(PROGRAMS[::24].__contains__, PROGRAMS))
def test_devices_compute_what_maps_compute(which: tuple[int, bool], check_vma: bool) -> None:
    subject, rng = program(*which), np.random.default_rng(which[0])
    x, weights = rng.standard_normal((2, *subject.sizes, *LOCAL))
    function = on_devices(subject, check_vma)
    for derive in (lambda f: f, lambda f: cj.grad(lambda x: (f(x) * weights).sum())):
        wanted = np.asarray(derive(lambda x: mapped(subject, x))(x))
        scale = max(1.0, float(np.abs(wanted).max()))
        assert_allclose(np.asarray(derive(function)(x)) / scale, wanted / scale, rtol=1e-9, atol=1e-9,
                        err_msg=str(subject))


@pytest.mark.parametrize("check_vma", [True, False])
def test_operations_that_only_gpus_have_are_computed_by_others(line: Any, check_vma: bool) -> None:
    def part(x: Any, offsets: Any, targets: Any) -> Any:
        ones = np.ones(8, np.int32)
        sent = lax.ragged_all_to_all(x, x * 0.0, offsets[0], ones, targets[0], ones, axis_name="x")
        return sent + 100.0 * lax.pbroadcast(x, "x", 3)

    x = np.arange(64.0)
    senders, receivers = np.indices((8, 8), np.int32)
    # what is sent to k is the k-th of each; it arrives at the sender's place
    out = cj.shard_map(part, mesh=line, in_specs=P("x"), out_specs=P("x"), check_vma=check_vma)(x, receivers, senders)
    assert_array_equal(x.reshape(8, 8).T.reshape(-1) + 100.0 * np.tile(x[24:32], 8), out)


def test_results_that_are_the_same_everywhere_need_no_axis_in_their_spec(grid: Any) -> None:
    def part(x: Any) -> Any:
        return (lax.psum(x, ("x", "y")), lax.pmax(x, ("y", "x")), lax.all_gather(x, "y", to="invarying"),
                lax.pmean(lax.axis_index(("x", "y")), ("x", "y")), lax.psum(1, "y"))

    x = np.arange(8.0)
    total, largest, gathered, mean, size = cj.shard_map(
        part, mesh=grid, in_specs=P(("x", "y")), out_specs=(P(), P(), P(None, "x"), P(), P()))(x)
    assert 28.0 == total.item() and 7.0 == largest.item() and 3.5 == mean.item() and 4 == int(size)
    assert_array_equal(x.reshape(2, 4).T, gathered)


def test_maps_within_devices_and_devices_within_maps(grid: Any) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 4))

    def part(x: Any) -> Any:
        return x - lax.pmean(x, ("x", "i"))

    spec = P("x", None, "y")
    wanted = x - x.mean((0, 1), keepdims=True)
    within = cj.shard_map(cj.vmap(part, in_axes=1, out_axes=1, axis_name="i"), mesh=grid, in_specs=spec, out_specs=spec)
    assert_allclose(within(x), wanted, rtol=1e-12)
    around = cj.vmap(cj.shard_map(part, mesh=grid, in_specs=P("x", "y"), out_specs=P("x", "y")), in_axes=1, out_axes=1,
                     axis_name="i")
    assert_allclose(around(x), wanted, rtol=1e-12)
