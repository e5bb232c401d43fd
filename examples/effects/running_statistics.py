"""Statistics that a loop updates in place: references which its body reads and writes."""

import numpy as np

import corejax as cj
from corejax import lax, numpy as jnp


def standardized(values):
    """Each value less the mean so far, over the deviation so far, by Welford's method; and the last mean."""
    count = cj.new_ref(jnp.zeros(()))
    mean = cj.new_ref(jnp.zeros(()))
    squares = cj.new_ref(jnp.zeros(()))

    def step(_, value):
        count[...] += 1.0
        off = value - mean[...]
        mean[...] += off / count[...]
        squares[...] += off * (value - mean[...])
        return None, (value - mean[...]) / jnp.sqrt(squares[...] / count[...] + 1e-6)

    _, scores = lax.scan(step, None, values)
    return scores, mean[...], jnp.sqrt(squares[...] / count[...])


def histogram(values, bins=5):
    """How many values there are in each part of the unit interval, counted in place."""
    counts = cj.new_ref(jnp.zeros(bins, jnp.int32))

    def step(i, _):
        place = jnp.clip((values[i] * bins).astype(jnp.int32), 0, bins - 1)
        counts[place] += 1

    lax.fori_loop(0, values.shape[0], step, None)
    return cj.freeze(counts)


def experiment():
    """Scores, mean and deviation of some values, and their histogram, from compiled programs."""
    values = jnp.asarray(np.random.default_rng(0).uniform(size=64))
    scores, mean, deviation = cj.jit(standardized)(values)
    return scores, mean, deviation, cj.jit(histogram)(values)


if __name__ == "__main__":
    scores, mean, deviation, counts = experiment()
    print(f"mean {float(mean):.4f}, deviation {float(deviation):.4f}, last score {float(scores[-1]):.3f}, {counts}")
