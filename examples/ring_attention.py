"""Attention over a sequence that no device holds: keys and values go around a ring of devices.

    python examples/ring_attention.py

Each device has a part of the sequence. It compares its queries with the keys that it has right now, then hands these on
to its neighbour. The largest score so far is kept beside the sums, so that exponentials don't overflow: after a round,
each device has exactly what it would have got from the whole sequence.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import corejax as cj
from corejax import P, lax


def attention(query: Any, key: Any, value: Any) -> Any:
    """Attention of one head, in which each position sees itself and those before it."""
    scores = query @ key.T / np.sqrt(query.shape[1])
    scores = lax.select(np.tril(np.ones(scores.shape, bool)), scores, lax.full_like(scores, -1e30))
    weights = lax.exp(scores - scores.max(axis=1, keepdims=True))
    return weights @ value / weights.sum(axis=1, keepdims=True)


def ring(mesh: Any) -> Any:
    """The same of a sequence that is divided along the axis "ring"."""
    def part(query: Any, key: Any, value: Any) -> Any:
        size, mine, count = lax.axis_size("ring"), lax.axis_index("ring"), query.shape[0]
        here = lax.iota("int32", count)

        def turn(carry: Any, i: Any) -> tuple[Any, None]:
            key, value, largest, total, weighted = carry
            whose = (mine - i) % size  # these keys have come i devices far
            seen = (mine * count + here)[:, None] >= (whose * count + here)[None, :]
            scores = query @ key.T / np.sqrt(query.shape[1])
            scores = lax.select(seen, scores, lax.full_like(scores, -1e30))
            larger = lax.max(largest, scores.max(axis=1))
            weights, before = lax.exp(scores - larger[:, None]), lax.exp(largest - larger)
            onward = [(j, (j + 1) % size) for j in range(size)]
            return (lax.ppermute(key, "ring", onward), lax.ppermute(value, "ring", onward), larger,
                    total * before + weights.sum(axis=1), weighted * before[:, None] + weights @ value), None

        nothing = lax.full_like(query[:, 0], 0.0)
        start = (key, value, nothing - 1e30, nothing, lax.full_like(value, 0.0))
        (_, _, _, total, weighted), _ = lax.scan(turn, start, np.arange(size, dtype=np.int32))
        return weighted / total[:, None]

    return cj.shard_map(part, mesh=mesh, in_specs=P("ring"), out_specs=P("ring"))


def main() -> None:
    """Both ways: the same values, the same slopes."""
    cj.config.num_cpu_devices = 8
    rng = np.random.default_rng(0)
    query, key, value = rng.normal(size=(3, 512, 32))
    around = ring(cj.make_mesh((8,), ("ring",)))

    def both(function: Any) -> Any:
        return cj.jit(cj.value_and_grad(lambda q, k, v: (function(q, k, v) ** 2).sum(), argnums=(0, 1, 2)))(
            query, key, value)

    (total, slopes), (total_there, slopes_there) = both(attention), both(around)
    print(f"512 positions, 64 on each device: {float(total):.10f} on one device, {float(total_there):.10f} in the ring")
    for name, one, other in zip(("queries", "keys", "values"), slopes, slopes_there, strict=True):
        print(f"slopes of {name} differ by {np.abs(np.asarray(one) - np.asarray(other)).max():.1e}")


if __name__ == "__main__":
    main()
