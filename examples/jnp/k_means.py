"""Clusters of points by k-means: centres far apart to begin with, then Lloyd's iteration until no point moves.

    python examples/jnp/k_means.py
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import corejax as cj
import corejax.numpy as jnp
from corejax import lax


def squares(points: Any, centres: Any) -> Any:
    """The squared distances: a row for each point."""
    return (jnp.sum(points ** 2, axis=1)[:, None] - 2.0 * points @ centres.T + jnp.sum(centres ** 2, axis=1)).clip(0.0)


def far_apart(points: Any, count: int) -> Any:
    """Points as first centres: each the farthest from those before it, and the first from the mean of all."""
    def choose(i: Any, carry: Any) -> Any:
        centres, nearest = carry
        chosen = points[jnp.argmax(nearest)]
        return centres.at[i].set(chosen), jnp.minimum(nearest, jnp.sum(jnp.square(points - chosen), axis=1))
    centres = jnp.zeros((count, points.shape[1]), points.dtype)
    first = points[jnp.argmax(jnp.linalg.norm(points - points.mean(axis=0), axis=1))]
    start = centres.at[0].set(first), jnp.sum(jnp.square(points - first), axis=1)
    return lax.fori_loop(1, count, choose, start)[0]


def means(points: Any, labels: Any, centres: Any) -> Any:
    """The mean of the points with each label; an empty cluster keeps its centre."""
    sums = jnp.zeros_like(centres).at[labels].add(points)
    counts = jnp.zeros(len(centres)).at[labels].add(1.0)[:, None]
    return jnp.where(counts > 0.0, sums / jnp.maximum(counts, 1.0), centres)


@partial(cj.jit, static_argnums=(1, 2))
def clustered(points: Any, count: int, most: int = 300) -> tuple[Any, Any, Any]:
    """The centres, which points are whose, and how many rounds it took."""
    def going(carry: Any) -> Any:
        _, labels, before, rounds = carry
        return jnp.logical_and(jnp.any(labels != before), rounds < most)

    def again(carry: Any) -> Any:
        centres, labels, _, rounds = carry
        centres = means(points, labels, centres)
        return centres, jnp.argmin(squares(points, centres), axis=1), labels, rounds + 1

    centres = far_apart(points, count)
    labels = jnp.argmin(squares(points, centres), axis=1)
    centres, labels, _, rounds = lax.while_loop(going, again, (centres, labels, jnp.full_like(labels, -1), 0))
    return centres, labels, rounds


@cj.jit
def spread(points: Any, centres: Any) -> Any:
    """The mean squared distance from the nearest centre."""
    return jnp.mean(jnp.min(squares(points, centres), axis=1))


def blobs(rng: np.random.Generator, count: int, clusters: int, width: int) -> tuple[np.ndarray, ...]:
    """Points around centres, whose they are, and the centres."""
    centres = rng.uniform(-6.0, 6.0, (clusters, width))
    labels = rng.integers(0, clusters, count)
    return centres[labels] + rng.normal(size=(count, width)), labels, centres


def main() -> None:
    points, _, truth = blobs(np.random.default_rng(1), 5000, 10, 2)
    centres, _, rounds = clustered(jnp.asarray(points), 10)
    print(f"{int(rounds)} rounds; mean squared distance {float(spread(points, centres)):.4f}, "
          f"from the centres that the points were drawn around {float(spread(points, truth)):.4f}")


if __name__ == "__main__":
    main()
