"""Regression by a Gaussian process: its scales are found by the gradient of the likelihood, through Cholesky factors.

    python examples/gaussian_process.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import corejax as cj
from corejax import lax
from corejax.lax import linalg

#: Logarithms of the scale of places, the scale of values, and the deviation of the noise.
START = np.log(np.array([3.0, 0.3, 0.5]))


def truth(x: Any) -> Any:
    """The function that is to be found."""
    return np.sin(2.0 * x) + 0.3 * x


def observed(rng: np.random.Generator, count: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Places, and noisy values of the function there."""
    x = np.sort(rng.uniform(-3.0, 3.0, count))
    return x, truth(x) + noise * rng.standard_normal(count)


def covariance(scales: Any, x: Any, y: Any) -> Any:
    """How the values at two sets of places vary together: the less, the farther these are apart."""
    apart = (lax.expand_dims(x, (1,)) - y) / lax.exp(scales[0])
    return lax.exp(2.0 * scales[1] - 0.5 * apart * apart)


def factor(scales: Any, x: Any) -> Any:
    """The Cholesky factor of the covariance of the observations, noise included."""
    return linalg.cholesky(covariance(scales, x, x) + np.eye(x.shape[0]) * lax.exp(2.0 * scales[2]))


def loss(scales: Any, x: Any, values: Any) -> Any:
    """Minus the logarithm of the likelihood of the observations, for each of them."""
    lower = factor(scales, x)
    whitened = linalg.triangular_solve(lower, values, left_side=True, lower=True)
    volume = lax.log((lower * np.eye(x.shape[0])).sum(axis=1)).sum()
    return (0.5 * (whitened * whitened).sum() + volume) / x.shape[0] + 0.5 * np.log(2.0 * np.pi)


@cj.jit
def fitted(start: Any, x: Any, values: Any) -> tuple[Any, Any]:
    """The scales after 200 steps along the gradient, by Adam's rule; and the loss before each step."""
    def step(carry: Any, i: Any) -> tuple[Any, Any]:
        scales, mean, square = carry
        now, slope = cj.value_and_grad(loss)(scales, x, values)
        mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope * slope
        corrected = mean / (1.0 - 0.9 ** (i + 1.0)), square / (1.0 - 0.99 ** (i + 1.0))
        return (scales - 0.05 * corrected[0] / (lax.sqrt(corrected[1]) + 1e-8), mean, square), now
    (scales, _, _), losses = lax.scan(step, (start, start * 0.0, start * 0.0), np.arange(200.0))
    return scales, losses


@cj.jit
def predicted(scales: Any, x: Any, values: Any, places: Any) -> tuple[Any, Any]:
    """The mean and the deviation of the function at new places, given the observations."""
    lower = factor(scales, x)
    across = linalg.triangular_solve(lower, covariance(scales, x, places), left_side=True, lower=True)
    whitened = linalg.triangular_solve(lower, values, left_side=True, lower=True)
    variance = lax.exp(2.0 * scales[1]) - (across * across).sum(axis=0)
    return whitened @ across, lax.sqrt(lax.max(variance, 0.0))


def main() -> None:
    rng, noise = np.random.default_rng(0), 0.1
    x, values = observed(rng, 100, noise)
    scales, losses = fitted(START, x, values)
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}")
    found = np.exp(np.asarray(scales))
    print(f"scale of places {found[0]:.2f}, of values {found[1]:.2f}, noise {found[2]:.3f} (made with {noise})")
    places = np.linspace(-2.8, 2.8, 200)
    mean, deviation = predicted(scales, x, values, places)
    errors = np.asarray(mean) - truth(places)
    print(f"root mean square error at {len(places)} new places: {np.sqrt((errors ** 2).mean()):.3f}")
    within = np.abs(errors) <= 2.0 * np.asarray(deviation)
    print(f"within two deviations: {100.0 * within.mean():.0f}%")


if __name__ == "__main__":
    main()
