"""A small transformer that takes less memory: with `checkpoint`, the backward pass recomputes each block.

    python examples/attention_block.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import corejax as cj
from corejax import lax

Block = dict[str, Any]


def blocks(rng: np.random.Generator, count: int, width: int, heads: int) -> Block:
    """The weights of all blocks, stacked along the first axis. Queries, keys and values also have an axis of heads."""
    def normal(*shape: int) -> np.ndarray:
        return rng.normal(size=(count, *shape)) / np.sqrt(width)

    each = (heads, width, width // heads)
    return {"query": normal(*each), "key": normal(*each), "value": normal(*each), "mix": normal(width, width),
            "up": normal(width, 4 * width), "down": normal(4 * width, width) / 2}


def normalized(x: Any) -> Any:
    """Each row scaled so that the mean of its squares is 1."""
    return x * lax.rsqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6)


def attend(x: Any, query: Any, key: Any, value: Any) -> Any:
    """One head: each position takes values from itself and those before it, mostly where keys fit its query."""
    seen = np.tril(np.ones((x.shape[0], x.shape[0]), bool))
    scores = (x @ query) @ (x @ key).T / np.sqrt(query.shape[1])
    scores = lax.select(seen, scores, lax.full_like(scores, -1e30))
    weights = lax.exp(scores - scores.max(axis=1, keepdims=True))
    return weights @ (x @ value) / weights.sum(axis=1, keepdims=True)


def apply_block(x: Any, block: Block) -> Any:
    """Attention with all heads, then a layer of 4 times the width, each added to its input."""
    heads = cj.vmap(attend, in_axes=(None, 0, 0, 0))(normalized(x), block["query"], block["key"], block["value"])
    x = x + heads.transpose(1, 0, 2).reshape(x.shape) @ block["mix"]
    return x + lax.max(normalized(x) @ block["up"], 0.0) @ block["down"]


def loss(params: Block, x: Any, target: Any, again: bool) -> Any:
    """How far the outputs are from `target`; with `again`, the backward pass recomputes each block."""
    one = cj.checkpoint(apply_block) if again else apply_block

    def through(x: Any) -> Any:
        return lax.scan(lambda x, block: (one(x, block), None), x, params)[0]

    error = cj.vmap(through)(x) - target
    return (error * error).mean()


def main() -> None:
    """Compare both ways: the same gradient, less memory."""
    rng = np.random.default_rng(0)
    params = blocks(rng, count=6, width=64, heads=4)
    x = rng.normal(size=(8, 64, 64))
    target = np.roll(x, 1, axis=1)  # each position should predict its neighbour
    for again in (False, True):
        slopes = cj.jit(cj.value_and_grad(loss), static_argnames="again")
        compiled = slopes.lower(params, x, target, again=again).compile()
        value, found = compiled(params, x, target)
        size = np.sqrt(sum([float((g * g).sum()) for g in cj.tree.leaves(found)]))
        memory = compiled.memory_analysis().temp_size_in_bytes / 1e6
        print(f"{'with' if again else 'without'} checkpoint: loss {float(value):.6f}, length of its slopes {size:.6f}, "
              f"{memory:.1f} MB of memory")


if __name__ == "__main__":
    main()
