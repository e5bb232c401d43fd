"""A pipeline: each device has one layer of a network, and hands what it has computed on to the next one.

    python examples/pipeline.py

A batch is cut into small ones, so that all devices work at a time but at the beginning and at the end. `ppermute` hands
results on; its derivative hands slopes back, so the whole network is trained with `grad`, as one on a single device.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import corejax as cj
from corejax import P, lax


def layer(weight: Any, x: Any) -> Any:
    """One layer, with a connection past it."""
    return x + lax.tanh(x @ weight)


def one_device(weights: Any, batches: Any) -> Any:
    """All layers, one after the other; the batches are stacked along the first axis."""
    return cj.vmap(lambda x: lax.scan(lambda x, w: (layer(w, x), None), x, weights)[0])(batches)


def pipelined(mesh: Any) -> Any:
    """The same on as many devices as there are layers: each has the weight of its own layer."""
    def stage(weights: Any, batches: Any) -> Any:
        (weight,), count = weights, batches.shape[0]
        depth, mine = lax.axis_size("stage"), lax.axis_index("stage")
        onward = [(i, i + 1) for i in range(depth - 1)]

        def tick(carry: tuple[Any, Any], time: Any) -> tuple[tuple[Any, Any], None]:
            received, done = carry
            fresh = lax.dynamic_index_in_dim(batches, lax.clamp(0, time, count - 1), keepdims=False)
            out = layer(weight, lax.select(mine == 0, fresh, received))
            finished = time - (depth - 1)  # which batch leaves the last stage now
            at = lax.clamp(0, finished, count - 1)
            before = lax.dynamic_index_in_dim(done, at, keepdims=False)
            kept = lax.select((finished >= 0) & (mine == depth - 1), out, before)
            return (lax.ppermute(out, "stage", onward), lax.dynamic_update_index_in_dim(done, kept, at, 0)), None

        empty = lax.pcast(lax.full_like(batches, 0.0), "stage", to="varying")
        (_, done), _ = lax.scan(tick, (empty[0], empty), np.arange(count + depth - 1))
        return lax.psum(done, "stage")  # only the last stage has something in it

    return cj.shard_map(stage, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P())


def main() -> None:
    """Both ways: the same results, the same slopes."""
    cj.config.num_cpu_devices = 8
    rng = np.random.default_rng(0)
    weights, batches = rng.normal(size=(8, 16, 16)) / 4.0, rng.normal(size=(6, 10, 16))
    several = pipelined(cj.make_mesh((8,), ("stage",)))

    def loss(run: Any) -> Any:
        return cj.jit(cj.value_and_grad(lambda w: (run(w, batches) ** 2).mean()))

    (value, slope), (value_there, slope_there) = loss(one_device)(weights), loss(several)(weights)
    print(f"8 layers, 6 batches of 10: loss {float(value):.12f} on one device, {float(value_there):.12f} in a pipeline")
    print(f"slopes differ by {np.abs(np.asarray(slope) - np.asarray(slope_there)).max():.1e}")


if __name__ == "__main__":
    main()
