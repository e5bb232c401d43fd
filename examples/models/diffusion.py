"""A diffusion model of points in the plane: it learns to take noise away, and so makes two moons out of noise.

    python examples/models/diffusion.py [moons.png]     (a picture by matplotlib, where that is installed)

Points on two half circles turn into noise in 100 steps. From a point and the number of its step, a network learns to
tell the noise in it. Then points that are nothing but noise go back, by what the network tells. Less than 2% of them
end off the moons, where 65% began; as distributions, both are as far apart as two draws of data are.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import numpy as np

import corejax as cj
import corejax.numpy as jnp
from corejax import lax, nn, random, tree_util

Params = list[dict[str, Any]]

#: How many steps there are, and what share of a point's variance becomes noise in each.
STEPS = 100
SHARES = jnp.linspace(1e-4, 0.1, STEPS, dtype=jnp.float32)

#: What is left of the variance after each step.
LEFT = jnp.cumprod(1.0 - SHARES)


def moons(key: Any, count: int) -> Any:
    """Points on two half circles that reach into each other, with some noise."""
    of_moons, of_places, of_noise = random.split(key, 3)
    upper = random.randint(of_moons, (count,), 0, 2, jnp.int32)
    angles = jnp.pi * (random.uniform(of_places, (count,), jnp.float32) + upper)
    centres = jnp.stack([0.5 - upper, 0.25 - 0.5 * upper], axis=1)
    points = jnp.stack([jnp.cos(angles), -jnp.sin(angles)], axis=1) + centres
    return 1.2 * points + 0.05 * random.normal(of_noise, (count, 2), jnp.float32)


def network(key: Any, *widths: int) -> Params:
    """Layers of these widths, the last of which begins with zeros."""
    sizes = list(zip(random.split(key, len(widths) - 1), widths[:-1], widths[1:], strict=True))
    layers = [{"weights": nn.initializers.he_normal()(key, (m, n), jnp.float32), "biases": jnp.zeros(n, jnp.float32)}
              for key, m, n in sizes]
    return [*layers[:-1], tree_util.tree_map(jnp.zeros_like, layers[-1])]


def waves(steps: Any, count: int) -> Any:
    """Sines and cosines of the number of a step, from slow ones to fast ones."""
    angles = steps[..., None] * jnp.exp(-jnp.log(1000.0) * jnp.arange(count, dtype=jnp.float32) / count)
    return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=-1)


def told_noise(params: Params, points: Any, steps: Any) -> Any:
    """The noise that is in points after so many steps, as the network tells it."""
    x = jnp.concatenate([points, jnp.sin(3.0 * points), jnp.cos(3.0 * points), waves(steps, 8)], axis=-1)
    for layer in params[:-1]:
        x = nn.silu(x @ layer["weights"] + layer["biases"])
    return x @ params[-1]["weights"] + params[-1]["biases"]


def loss(params: Params, key: Any, points: Any) -> Any:
    """The mean square of what is wrong in the noise that is told, for a random step of each point."""
    of_steps, of_noise = random.split(key)
    steps = random.randint(of_steps, points.shape[:1], 0, STEPS, jnp.int32)
    noise = random.normal(of_noise, points.shape, points.dtype)
    left = LEFT[steps][:, None]
    noisy = jnp.sqrt(left) * points + jnp.sqrt(1.0 - left) * noise
    return jnp.mean(jnp.sum((told_noise(params, noisy, steps) - noise) ** 2, axis=1))


@partial(cj.jit, static_argnums=(2, 3))
def trained(params: Params, key: Any, steps: int, batch: int) -> tuple[Params, Any]:
    """The mean of the parameters in the last steps of so many by Adam's rule, each with new points; and the losses."""
    def step(carry: Any, given: Any) -> Any:
        params, mean, square, slow = carry
        i, key = given
        of_points, of_loss = random.split(key)
        value, slopes = cj.value_and_grad(loss)(params, of_loss, moons(of_points, batch))
        mean = tree_util.tree_map(lambda m, g: 0.9 * m + 0.1 * g, mean, slopes)
        square = tree_util.tree_map(lambda s, g: 0.999 * s + 0.001 * g * g, square, slopes)
        rate = 0.005 * (1.0 - i / steps) * jnp.sqrt(1.0 - 0.999 ** i) / (1.0 - 0.9 ** i)
        params = tree_util.tree_map(lambda p, m, s: p - rate * m / (jnp.sqrt(s) + 1e-8), params, mean, square)
        slow = tree_util.tree_map(lambda a, p: a + (p - a) / jnp.minimum(i, 100.0), slow, params)
        return (params, mean, square, slow), value

    still = tree_util.tree_map(jnp.zeros_like, params)
    given = jnp.arange(1, steps + 1, dtype=jnp.float32), random.split(key, steps)
    (_, _, _, slow), losses = lax.scan(step, (params, still, still, still), given)
    return slow, losses


@cj.jit
def sampled(params: Params, key: Any, noise: Any) -> Any:
    """Where points that are noise get to, step by step back."""
    def back(points: Any, given: Any) -> Any:
        step, key = given
        share, left = SHARES[step], LEFT[step]
        told = told_noise(params, points, jnp.full(points.shape[:1], step))
        points = (points - share / jnp.sqrt(1.0 - left) * told) / jnp.sqrt(1.0 - share)
        fresh = random.normal(key, points.shape, points.dtype)
        return points + jnp.where(step > 0, jnp.sqrt(share), 0.0) * fresh, None

    return lax.scan(back, noise, (jnp.arange(STEPS), random.split(key, STEPS)), reverse=True)[0]


@cj.jit
def distance(x: Any, y: Any) -> Any:
    """The mean Wasserstein distance of shadows of as many points, in 64 directions: sorted, each has its partner."""
    angles = jnp.linspace(0.0, jnp.pi, 64, endpoint=False, dtype=x.dtype)
    ways = jnp.stack([jnp.cos(angles), jnp.sin(angles)])
    return jnp.mean(jnp.abs(jnp.sort(x @ ways, axis=0) - jnp.sort(y @ ways, axis=0)))


@cj.jit
def astray(x: Any, y: Any) -> Any:
    """The share of points that have no point of the others within 0.15."""
    apart = jnp.min(jnp.sum((x[:, None] - y) ** 2, axis=-1), axis=1)
    return jnp.mean(apart > 0.15 ** 2, dtype=jnp.float32)


def drawn(points: Any, size: int = 24) -> list[str]:
    """A picture of points, in characters."""
    places = jnp.clip((points + 2.0) / 4.0 * size, 0, size - 1).astype(int)
    counts = jnp.zeros((size, size), int).at[places[:, 1], places[:, 0]].add(1)
    return ["".join([" .:#"[min(count, 3)] * 2 for count in row]) for row in counts.tolist()]


def experiment(steps: int, batch: int, width: int, count: int) -> tuple[Any, Any, Any, Any]:
    """The losses while learning; noise and points made from it; for both, the distance to new points of the moons, and
    the share that is off these.
    """
    of_model, of_training, of_noise, of_samples, of_data = random.split(random.key(4), 5)
    params, losses = trained(network(of_model, 6 + 16, width, width, width, 2), of_training, steps, batch)
    noise = random.normal(of_noise, (count, 2), jnp.float32)
    clouds, data = (noise, sampled(params, of_samples, noise)), moons(of_data, count)
    return losses, clouds, [distance(points, data) for points in clouds], [astray(points, data) for points in clouds]


def painted(clouds: Any, path: str) -> None:
    """The same picture, by matplotlib."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4), layout="constrained")
    for axes, points, title in zip(figure.subplots(1, 2), clouds, ("noise", "made from it"), strict=True):
        axes.scatter(*np.asarray(points).T, s=4, alpha=0.5)
        axes.set(title=title, xlim=(-3, 3), ylim=(-3, 3), aspect="equal")
    figure.savefig(path)


def main() -> None:
    losses, clouds, (before, after), (off_before, off_after) = experiment(4000, 256, 128, 2000)
    print(f"loss {float(losses[0]):.2f} at first, {float(losses[-100:].mean()):.2f} in the end; "
          f"distance {float(before):.3f} of noise, {float(after):.3f} of what is made from it; "
          f"{100 * float(off_before):.1f}% and {100 * float(off_after):.1f}% are off the moons")
    if sys.argv[1:]:
        return painted(clouds, sys.argv[1])
    for row in zip(*[drawn(points[:600]) for points in clouds], strict=True):
        print("   ".join(row).rstrip())


if __name__ == "__main__":
    main()
