"""A particle filter: what is known of a hidden state by observations, as a cloud of weighted guesses.

    python examples/sampling/particle_filter.py

Each turn, particles move as the model says, are weighted by what is observed, and drawn again by their weights. Where
the model is linear and its noise normal, the Kalman filter gives the exact answer; where it isn't, only particles do.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import corejax as cj
import corejax.numpy as jnp
from corejax import lax, random


class Model(NamedTuple):
    """How a state begins and moves on, by a key; and the logarithm of the density of what is observed of it."""

    begin: Callable[[Any], Any]
    move: Callable[[Any, Any], Any]
    log_density: Callable[[Any, Any], Any]


def swinging(keep: float = 0.95, push: float = 0.5, blur: float = 0.7) -> Model:
    """A number that is drawn back to zero, and seen with noise."""
    return Model(lambda key: random.normal(key) * push / np.sqrt(1.0 - keep ** 2),
                 lambda key, x: keep * x + push * random.normal(key),
                 lambda x, y: -0.5 * ((y - x) / blur) ** 2 - np.log(blur * np.sqrt(2.0 * np.pi)))


def volatile(keep: float = 0.97, push: float = 0.2, scale: float = 0.6) -> Model:
    """Changes of a price, whose size is the exponential of a hidden number."""
    def log_density(x: Any, y: Any) -> Any:
        width = scale * jnp.exp(0.5 * x)
        return -0.5 * (y / width) ** 2 - jnp.log(width * np.sqrt(2.0 * np.pi))
    return Model(lambda key: random.normal(key) * push / np.sqrt(1.0 - keep ** 2),
                 lambda key, x: keep * x + push * random.normal(key), log_density)


def drawn_again(key: Any, weights: Any) -> Any:
    """The positions of particles to go on with: each about as often as its weight says, by one number for all."""
    count = len(weights)
    marks = (jnp.arange(count) + random.uniform(key)) / count
    return jnp.clip(jnp.searchsorted(jnp.cumsum(weights), marks), 0, count - 1)


@partial(cj.jit, static_argnums=(1, 3))
def filtered(key: Any, model: Model, observed: Any, count: int) -> tuple[Any, Any]:
    """The mean of the state after each observation, and an estimate of the log-likelihood of all of them."""
    def turn(carry: Any, given: Any) -> Any:
        particles, total = carry
        key, y = given
        of_moves, of_draws = random.split(key)
        moved = cj.vmap(model.move)(random.split(of_moves, count), particles)
        logs = model.log_density(moved, y)
        most = jnp.max(logs)
        weights = jnp.exp(logs - most)
        total = total + most + jnp.log(jnp.mean(weights))
        weights = weights / jnp.sum(weights)
        return (moved[drawn_again(of_draws, weights)], total), jnp.sum(weights * moved)

    of_begin, of_turns = random.split(key)
    particles = cj.vmap(model.begin)(random.split(of_begin, count))
    (_, total), means = lax.scan(turn, (particles, 0.0), (random.split(of_turns, len(observed)), observed))
    return means, total


def drawn(key: Any, length: int, keep: float = 0.95, push: float = 0.5, blur: float = 0.7) -> tuple[Any, Any]:
    """States of the model `swinging`, and what is observed of them."""
    of_begin, of_moves, of_blur = random.split(key, 3)
    model = swinging(keep, push, blur)

    def step(x: Any, key: Any) -> Any:
        x = model.move(key, x)
        return x, x

    _, states = lax.scan(step, model.begin(of_begin), random.split(of_moves, length))
    return states, states + blur * random.normal(of_blur, (length,))


def exact(observed: Any, keep: float = 0.95, push: float = 0.5, blur: float = 0.7) -> tuple[np.ndarray, float]:
    """The same of the model `swinging`, by the Kalman filter."""
    mean, spread, total, means = 0.0, push ** 2 / (1.0 - keep ** 2), 0.0, []
    for y in np.asarray(observed).tolist():
        mean, spread = keep * mean, keep ** 2 * spread + push ** 2
        width = spread + blur ** 2
        total -= 0.5 * ((y - mean) ** 2 / width + np.log(2.0 * np.pi * width))
        mean, spread = mean + spread / width * (y - mean), spread - spread ** 2 / width
        means.append(mean)
    return np.array(means), total


def experiment(length: int, count: int) -> tuple[Any, Any, Any]:
    """The largest error of a mean, that of the log-likelihood, and how much likelier each change of a price is, in
    nats, where its size varies.
    """
    of_data, of_filter, of_prices, of_sizes = random.split(random.key(11), 4)
    _, observed = drawn(of_data, length)
    means, total = filtered(of_filter, swinging(), observed, count)
    right, likelihood = exact(observed)
    sizes, _ = drawn(of_sizes, length, 0.97, 0.2)
    changes = 0.6 * jnp.exp(0.5 * sizes) * random.normal(of_prices, (length,))
    _, varying = filtered(random.fold_in(of_filter, 1), volatile(), changes, count)
    width = jnp.std(changes)
    fixed = -length * (jnp.log(width * np.sqrt(2.0 * np.pi)) + 0.5)
    return jnp.max(jnp.abs(means - right)), total - likelihood, (varying - fixed) / length


def main() -> None:
    error, apart, gain = experiment(500, 4000)
    print(f"means are right to {float(error):.3f}, the log-likelihood to {float(apart):.2f}; "
          f"a model with varying sizes is {float(gain):.3f} nats likelier for each change")


if __name__ == "__main__":
    main()
