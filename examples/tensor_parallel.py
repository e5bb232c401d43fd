"""A transformer block over a mesh of 2 x 4 devices: the batch along one axis, heads and hidden units along the other.

    python examples/tensor_parallel.py
    python -m corejax launch -n 2 --devices 2 examples/tensor_parallel.py

The block is written for one device. How its weights are divided is said beside it, in a few lines; the compiler
divides the work in the same way, and adds up what several devices have a part of.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import corejax as cj
from corejax import P, lax

Block = dict[str, Any]

#: How each weight is divided: by heads, or by hidden units.
DIVIDED = {"query": P(None, "model"), "key": P(None, "model"), "value": P(None, "model"), "mix": P("model"),
           "up": P(None, "model"), "down": P("model")}


def block_weights(rng: np.random.Generator, width: int, heads: int) -> Block:
    """The weights of a block; those of attention have an axis of heads."""
    def normal(*shape: int) -> np.ndarray:
        return rng.normal(size=shape) / np.sqrt(width)

    part = width // heads
    return {"query": normal(width, heads, part), "key": normal(width, heads, part), "value": normal(width, heads, part),
            "mix": normal(heads, part, width), "up": normal(width, 4 * width), "down": normal(4 * width, width)}


def normalized(x: Any) -> Any:
    """Each row scaled so that the mean of its squares is 1."""
    return x * lax.rsqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6)


def contracted(x: Any, y: Any, of_x: tuple[int, ...], of_y: tuple[int, ...]) -> Any:
    """The sum of products over these axes."""
    return lax.dot_general(x, y, ((of_x, of_y), ((), ())))


def attend(x: Any, block: Block) -> Any:
    """Attention with all heads, of one sequence: x is positions by width."""
    query, key, value = [contracted(x, block[name], (1,), (0,)).transpose(1, 0, 2)
                         for name in ("query", "key", "value")]
    scores = lax.dot_general(query, key, (((2,), (2,)), ((0,), (0,)))) / np.sqrt(query.shape[2])
    seen = np.tril(np.ones(scores.shape[1:], bool))
    scores = lax.select(lax.broadcast_in_dim(seen, scores.shape, (1, 2)), scores, lax.full_like(scores, -1e30))
    scores = lax.exp(scores - scores.max(axis=2, keepdims=True))
    weighted = lax.dot_general(scores / scores.sum(axis=2, keepdims=True), value, (((2,), (1,)), ((0,), (0,))))
    return contracted(weighted.transpose(1, 0, 2), block["mix"], (1, 2), (0, 1))


def apply_block(block: Block, x: Any) -> Any:
    """Attention, then a layer of four times the width, each added to its input; x is a batch of sequences."""
    x = x + cj.vmap(lambda one: attend(normalized(one), block))(x)
    return x + lax.max(normalized(x) @ block["up"], 0.0) @ block["down"]


def loss(block: Block, x: Any, target: Any) -> Any:
    """How far the outputs are from the target."""
    error = apply_block(block, x) - target
    return (error * error).mean()


def main() -> None:
    """Compute the loss and its slopes on one device and on all."""
    if cj.config.num_cpu_devices is None:
        cj.config.num_cpu_devices = 8
    rng = np.random.default_rng(0)
    block, x = block_weights(rng, 64, 8), rng.normal(size=(4, 32, 64))
    target = np.roll(x, 1, axis=1)
    mesh = cj.make_mesh((2, cj.device_count() // 2), ("data", "model"))
    slopes = cj.jit(cj.value_and_grad(loss))

    value, found = slopes(block, x, target)
    placed = {name: cj.device_put(w, cj.NamedSharding(mesh, DIVIDED[name])) for name, w in block.items()}
    batch = [cj.device_put(part, cj.NamedSharding(mesh, P("data"))) for part in (x, target)]
    value_there, found_there = slopes(placed, *batch)

    print(f"loss on one device {float(value):.12f}, on {mesh.size} {float(value_there):.12f}")
    for name, slope in found_there.items():
        one, several = np.asarray(found[name]), cj.multihost_utils.process_allgather(slope, tiled=True)
        error = np.abs(several - one).max() / np.abs(one).max()
        print(f"  slope of {name + ':':<7} {str(slope.sharding.spec):<18} differs by {error:.1e} of its largest")
    cj.debug.visualize_array_sharding(found_there["up"])


if __name__ == "__main__":
    main()
