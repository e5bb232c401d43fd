"""Train a network to read digits: images of 8 by 8 pixels, as scikit-learn has them.

    python examples/jnp/digits.py     (where scikit-learn is installed)
"""

from __future__ import annotations

from typing import Any

import numpy as np

import corejax as cj
import corejax.numpy as jnp
from corejax import lax

Params = list[tuple[Any, Any]]


def network(rng: np.random.Generator, *widths: int) -> Params:
    """Weights and biases of layers with these widths."""
    return [(jnp.array(rng.normal(size=(m, n)) * np.sqrt(2.0 / m)), jnp.zeros(n)) for m, n in zip(widths, widths[1:])]


def logits(params: Params, images: Any) -> Any:
    """A number for each image and digit; images are rows of pixels."""
    *hidden, (weights, bias) = params
    x = images
    for w, b in hidden:
        x = jnp.maximum(jnp.dot(x, w) + b, 0.0)
    return jnp.dot(x, weights) + bias


def loss(params: Params, images: Any, digits: Any) -> Any:
    """The mean cross entropy, with a small penalty for large weights."""
    z = logits(params, images)
    z = z - jnp.max(z, axis=1, keepdims=True)
    chosen = jnp.take_along_axis(z, digits[:, None], axis=1)[:, 0]
    penalty = sum(jnp.sum(jnp.square(w)) for w, _ in params)
    return jnp.mean(jnp.log(jnp.sum(jnp.exp(z), axis=1)) - chosen) + 1e-4 * penalty


def step(params: Params, moments: tuple[Any, Any], turn: Any, images: Any, digits: Any) -> tuple[Any, Any, Any]:
    """One step by Adam's rule: parameters, moments of the slopes, and the loss before it."""
    value, slopes = cj.value_and_grad(loss)(params, images, digits)
    mean = cj.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], slopes)
    square = cj.tree.map(lambda s, g: 0.99 * s + 0.01 * jnp.square(g), moments[1], slopes)
    first, second = 1.0 - 0.9 ** (turn + 1.0), 1.0 - 0.99 ** (turn + 1.0)
    params = cj.tree.map(lambda p, m, s: p - 0.005 * (m / first) / (jnp.sqrt(s / second) + 1e-8), params, mean, square)
    return params, (mean, square), value


@cj.jit
def trained(params: Params, images: Any, digits: Any, batches: Any) -> tuple[Params, Any]:
    """The network after a step for each batch, a row of indices of images; and the losses."""
    still = cj.tree.map(jnp.zeros_like, params)

    def body(carry: Any, each: Any) -> tuple[Any, Any]:
        turn, batch = each
        params, moments, value = step(*carry, turn, jnp.take(images, batch, axis=0), digits[batch])
        return (params, moments), value

    (params, _), losses = lax.scan(body, (params, (still, still)), (jnp.arange(len(batches)), batches))
    return params, losses


@cj.jit
def accuracy(params: Params, images: Any, digits: Any) -> Any:
    """The share of images that are read right."""
    return jnp.mean(jnp.argmax(logits(params, images), axis=1) == digits)


def drawn(rng: np.random.Generator, count: int, size: int, epochs: int) -> np.ndarray:
    """Batches of indices: each image once in an epoch, but for those that don't fill a batch."""
    used = count // size * size
    return np.concatenate([rng.permutation(count)[:used].reshape(-1, size) for _ in range(epochs)])


def experiment(images: np.ndarray, digits: np.ndarray, epochs: int = 20) -> tuple[Any, Any]:
    """Train on four fifths of the images, in random order: the losses, and the share of the rest that is read right."""
    rng = np.random.default_rng(0)
    order = rng.permutation(len(images))
    cut = len(images) * 4 // 5
    x, y = jnp.asarray(images[order] / 16.0), jnp.asarray(digits[order])
    params, losses = trained(network(rng, x.shape[1], 64, 32, 10), x[:cut], y[:cut], drawn(rng, cut, 64, epochs))
    return losses, accuracy(params, x[cut:], y[cut:])


def main() -> None:
    from sklearn.datasets import load_digits

    data = load_digits()
    losses, share = experiment(data.data, data.target)
    print(f"loss {float(losses[0]):.3f} -> {float(losses[-1]):.3f}; {float(share):.1%} of new digits read right")


if __name__ == "__main__":
    main()
