"""Regression by a Gaussian process, as one writes it with jax.numpy: its scales by the gradient of the likelihood.

    python examples/jnp/gaussian_process.py
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import corejax as cj
import corejax.numpy as jnp
from corejax import lax

Scales = dict[str, Any]

#: Logarithms of the scales of places (one for each coordinate), of values, and of the noise.
START = {"length": np.zeros(2), "value": np.array(0.0), "noise": np.array(-1.0)}


def covariance(scales: Scales, x: Any, y: Any) -> Any:
    """How values at two sets of places vary together."""
    apart = (x[:, None, :] - y[None, :, :]) / jnp.exp(scales["length"])
    return jnp.exp(2.0 * scales["value"] - 0.5 * jnp.sum(apart ** 2, axis=-1))


def factor(scales: Scales, x: Any) -> Any:
    """The Cholesky factor of the covariance of observations, noise included."""
    return jnp.linalg.cholesky(covariance(scales, x, x) + jnp.exp(2.0 * scales["noise"]) * jnp.eye(x.shape[0]))


def solved(lower: Any, right: Any) -> Any:
    """The solution of a triangular system."""
    return lax.linalg.triangular_solve(lower, right, left_side=True, lower=True)


def log_likelihood(scales: Scales, x: Any, values: Any) -> Any:
    """The logarithm of the marginal likelihood of the observations."""
    lower = factor(scales, x)
    whitened = solved(lower, values[:, None])[:, 0]
    return -(0.5 * jnp.vdot(whitened, whitened) + jnp.sum(jnp.log(jnp.diagonal(lower)))
             + 0.5 * values.size * jnp.log(2.0 * jnp.pi))


@partial(cj.jit, static_argnums=3)
def fitted(scales: Scales, x: Any, values: Any, steps: int) -> tuple[Scales, Any]:
    """The scales after steps along the gradient, by Adam's rule, and the logarithms of the likelihood before each."""
    def step(carry: Any, i: Any) -> tuple[Any, Any]:
        scales, mean, square = carry
        value, slopes = cj.value_and_grad(log_likelihood)(scales, x, values)
        mean = cj.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, slopes)
        square = cj.tree.map(lambda s, g: 0.99 * s + 0.01 * jnp.square(g), square, slopes)
        rate = 0.05 * jnp.sqrt(1.0 - 0.99 ** (i + 1.0)) / (1.0 - 0.9 ** (i + 1.0))
        scales = cj.tree.map(lambda p, m, s: p + rate * m / (jnp.sqrt(s) + 1e-8), scales, mean, square)
        return (scales, mean, square), value
    still = cj.tree.map(jnp.zeros_like, scales)
    (scales, _, _), likelihoods = lax.scan(step, (scales, still, still), jnp.arange(steps))
    return scales, likelihoods


@cj.jit
def predicted(scales: Scales, x: Any, values: Any, places: Any) -> tuple[Any, Any]:
    """The mean and the deviation at new places, given the observations."""
    lower, across = factor(scales, x), covariance(scales, x, places)
    whitened, weights = solved(lower, values[:, None])[:, 0], solved(lower, across)
    variance = jnp.exp(2.0 * scales["value"]) - jnp.einsum("ij,ij->j", weights, weights)
    return whitened @ weights, jnp.sqrt(jnp.maximum(variance, 0.0))


def truth(x: Any) -> Any:
    """The function that is to be found: it varies faster along one coordinate."""
    return np.sin(3.0 * x[:, 0]) + 0.5 * np.cos(x[:, 1])


def observed(rng: np.random.Generator, count: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Places, and noisy values there."""
    x = rng.uniform(-2.0, 2.0, (count, 2))
    return x, truth(x) + noise * rng.normal(size=count)


def experiment(count: int = 120, steps: int = 150, noise: float = 0.1) -> tuple[Scales, Any, Any]:
    """The scales found, the logarithms of the likelihood on the way, and the error at new places."""
    rng = np.random.default_rng(0)
    x, values = observed(rng, count, noise)
    scales, likelihoods = fitted(START, x, values, steps)
    places = rng.uniform(-1.8, 1.8, (300, 2))
    mean, _ = predicted(scales, x, values, places)
    return scales, likelihoods, jnp.sqrt(jnp.mean(jnp.square(mean - truth(places))))


def main() -> None:
    scales, likelihoods, error = experiment()
    print(f"log likelihood {float(likelihoods[0]):.1f} -> {float(likelihoods[-1]):.1f}")
    print(f"scales of places {np.exp(np.asarray(scales['length'])).round(2)}, noise {np.exp(scales['noise']):.3f}")
    print(f"root mean square error at new places: {float(error):.3f}")


if __name__ == "__main__":
    main()
