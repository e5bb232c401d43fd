"""Hamiltonian Monte Carlo whose trajectories double until they turn back, with step sizes found while warming up.

    python examples/sampling/hamiltonian.py

A trajectory grows by as many steps as it has, forwards or backwards, until its ends, or those of any of its halves,
quarters and so on, approach each other. The next sample is one of its points, drawn by their weights. Only one state
for each size of a part is remembered.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import corejax as cj
import corejax.numpy as jnp
from corejax import lax, random

#: Minus the logarithm of a density, up to a constant, at a point.
Potential = Callable[[Any], Any]

#: How often a trajectory doubles at most, and the error of the energy at which it is given up.
DOUBLINGS, TOO_MUCH = 8, 1000.0


class Point(NamedTuple):
    """A place, with what moves it, and the slope of the potential there."""

    place: Any
    momentum: Any
    slope: Any


class Trajectory(NamedTuple):
    """Points in a row, of which the ends are kept, and one that was drawn by the points' weights."""

    first: Point
    last: Point
    drawn: Any
    weight: Any
    total: Any
    turned: Any
    accepted: Any
    count: Any


def moved(potential: Potential, point: Point, step: Any) -> Point:
    """The point after a step of the leapfrog method; a negative one goes back."""
    momentum = point.momentum - 0.5 * step * point.slope
    place = point.place + step * momentum
    slope = cj.grad(potential)(place)
    return Point(place, momentum - 0.5 * step * slope, slope)


def approach(first: Any, last: Any, total: Any) -> Any:
    """Whether the ends of a row of points, with these momenta and this sum of all, move towards each other."""
    middle = total - 0.5 * (first + last)
    return jnp.logical_or(jnp.dot(first, middle) <= 0.0, jnp.dot(last, middle) <= 0.0)


def grown(key: Any, potential: Potential, energy: Any, start: Point, step: Any, length: Any) -> Trajectory:
    """`length` points (a power of two) that follow `start`, in the direction of the step."""
    width = start.place.shape[0]

    def going(carry: Any) -> Any:
        _, trajectory, _, _ = carry
        return jnp.logical_and(trajectory.count < length, jnp.logical_not(trajectory.turned))

    def longer(carry: Any) -> Any:
        key, so_far, momenta, totals = carry
        key, subkey = random.split(key)
        point = moved(potential, so_far.last, step)
        gain = energy - potential(point.place) - 0.5 * jnp.dot(point.momentum, point.momentum)
        gain = jnp.where(jnp.isnan(gain), -jnp.inf, gain)
        weight = jnp.logaddexp(so_far.weight, gain)
        picked = jnp.log(random.uniform(subkey)) < gain - weight
        total = so_far.total + point.momentum
        # Parts that end here began at points of even number, kept by how many ones that number has in binary.
        n = so_far.count
        most = lax.population_count(n // 2)
        ending = lax.population_count(n ^ (n + 1)) - 1
        is_even = n % 2 == 0
        momenta = jnp.where(is_even, momenta.at[most].set(point.momentum), momenta)
        totals = jnp.where(is_even, totals.at[most].set(total - point.momentum), totals)

        def check(i: Any, turned: Any) -> Any:
            return jnp.logical_or(turned, approach(momenta[i], point.momentum, total - totals[i]))

        turned = lax.fori_loop(most - ending + 1, most + 1, check, gain < -TOO_MUCH)
        first = cj.tree.map(lambda new, old: jnp.where(n == 0, new, old), point, so_far.first)
        return key, Trajectory(first, point, jnp.where(picked, point.place, so_far.drawn), weight, total, turned,
                               so_far.accepted + jnp.minimum(1.0, jnp.exp(gain)), n + 1), momenta, totals

    nothing = Trajectory(start, start, start.place, jnp.array(-jnp.inf), jnp.zeros(width), jnp.array(False),
                         jnp.array(0.0), jnp.array(0))
    kept = jnp.zeros((DOUBLINGS, width))
    return lax.while_loop(going, longer, (key, nothing, kept, kept))[1]


def sampled(key: Any, potential: Potential, place: Any, step: Any) -> tuple[Any, Any, Any]:
    """The next place; the mean probability that a point of the trajectory would be accepted, and how many there are."""
    key, subkey = random.split(key)
    momentum = random.normal(subkey, place.shape)
    point = Point(place, momentum, cj.grad(potential)(place))
    energy = potential(place) + 0.5 * jnp.dot(momentum, momentum)

    def going(carry: Any) -> Any:
        _, trajectory, doublings = carry
        return jnp.logical_and(doublings < DOUBLINGS, jnp.logical_not(trajectory.turned))

    def doubled(carry: Any) -> Any:
        key, old, doublings = carry
        key, of_direction, of_growth, of_choice = random.split(key, 4)
        forward = random.bernoulli(of_direction)
        start = cj.tree.map(lambda last, first: jnp.where(forward, last, first), old.last, old.first)
        new = grown(of_growth, potential, energy, start, jnp.where(forward, step, -step), 2 ** doublings)
        total = old.total + new.total
        first = cj.tree.map(lambda old, new: jnp.where(forward, old, new), old.first, new.last)
        last = cj.tree.map(lambda old, new: jnp.where(forward, new, old), old.last, new.last)
        chosen = jnp.log(random.uniform(of_choice)) < new.weight - old.weight
        chosen = jnp.logical_and(chosen, jnp.logical_not(new.turned))
        return key, Trajectory(first, last, jnp.where(chosen, new.drawn, old.drawn),
                               jnp.logaddexp(old.weight, new.weight), total,
                               jnp.logical_or(new.turned, approach(first.momentum, last.momentum, total)),
                               old.accepted + new.accepted, old.count + new.count), doublings + 1

    alone = Trajectory(point, point, place, jnp.array(0.0), momentum, jnp.array(False), jnp.array(0.0), jnp.array(0))
    trajectory = lax.while_loop(going, doubled, (key, alone, jnp.array(0)))[1]
    return trajectory.drawn, trajectory.accepted / trajectory.count, trajectory.count


@partial(cj.jit, static_argnums=(1, 3, 4))
def chain(key: Any, potential: Potential, place: Any, warming: int, count: int) -> tuple[Any, Any, Any]:
    """`count` places after `warming` others, the step size that these led to, and the lengths of trajectories."""
    def warm(carry: Any, i: Any) -> Any:  # averages in the dual, of Nesterov, as Hoffman and Gelman use them
        key, place, error, mean, step = carry
        key, subkey = random.split(key)
        place, accepted, _ = sampled(subkey, potential, place, jnp.exp(step))
        error = error + (0.8 - accepted - error) / (i + 11.0)
        step = jnp.log(1.0) - jnp.sqrt(i + 1.0) / 0.05 * error
        share = (i + 1.0) ** -0.75
        return (key, place, error, share * step + (1.0 - share) * mean, step), None

    def draw(carry: Any, key: Any) -> Any:
        place, _, length = sampled(key, potential, carry, step)
        return place, (place, length)

    of_warming, of_draws = random.split(key)
    start = of_warming, place, jnp.array(0.0), jnp.array(0.0), jnp.log(0.1)
    (_, place, _, mean, _), _ = lax.scan(warm, start, jnp.arange(warming) * 1.0)
    step = jnp.exp(mean)
    _, (places, lengths) = lax.scan(draw, place, random.split(of_draws, count))
    return places, step, lengths


def banana(place: Any) -> Any:
    """A bent density: `x` is normal, and so is `y` around `x**2 / 2`; a third number is ten times as wide as the rest.
    """
    x, y, z = place
    return 0.5 * (x ** 2 + (y - 0.5 * x ** 2) ** 2 / 0.25 + z ** 2 / 100.0)


def experiment(warming: int, count: int) -> tuple[Any, Any, Any]:
    """The means and standard deviations along the banana, and the mean length of trajectories."""
    places, _, lengths = chain(random.key(3), banana, jnp.zeros(3), warming, count)
    return places.mean(0), places.std(0), lengths.mean()


def main() -> None:
    means, spreads, length = experiment(500, 4000)
    print(f"means {np.round(means, 2)}, which are 0, 0.5 and 0; standard deviations {np.round(spreads, 2)}, "
          f"which are 1, {np.sqrt(0.75):.2f} and 10; {float(length):.0f} steps for each sample")


if __name__ == "__main__":
    main()
