"""Train a multilayer perceptron to tell two spirals apart: `grad` of a loss over a list of layers, compiled as a whole.

    python examples/mlp_training.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import corejax as cj
from corejax import lax

Layer = dict[str, Any]


def layers(rng: np.random.Generator, *widths: int) -> list[Layer]:
    """Weights and biases of a network of these widths."""
    return [{"w": rng.normal(size=(m, n)) / np.sqrt(m), "b": np.zeros(n)}
            for m, n in zip(widths[:-1], widths[1:], strict=True)]


def logits(params: list[Layer], x: Any) -> Any:
    """The network's output for points: one number for each point and class."""
    *hidden, last = params
    for layer in hidden:
        x = lax.tanh(x @ layer["w"] + layer["b"])
    return x @ last["w"] + last["b"]


def loss(params: list[Layer], x: Any, labels: Any) -> Any:
    """The mean cross entropy; `labels` has a one in the column of the right class."""
    z = logits(params, x)
    z = z - z.max(axis=1, keepdims=True)
    return (lax.log(lax.exp(z).sum(axis=1)) - (z * labels).sum(axis=1)).mean()


def training_step(params: list[Layer], velocity: list[Layer], x: Any, labels: Any) -> tuple[Any, Any, Any]:
    """One step of gradient descent with momentum."""
    value, slopes = cj.value_and_grad(loss)(params, x, labels)
    velocity = cj.tree.map(lambda v, slope: 0.9 * v - 0.2 * slope, velocity, slopes)
    return cj.tree.map(lambda p, v: p + v, params, velocity), velocity, value


def spirals(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Noisy points on two spirals that wind around each other, and which spiral each is on."""
    which = np.arange(count) % 2
    turn = rng.uniform(0.5, 3.0, count) * np.pi
    angle = turn + np.pi * which
    x = turn[:, None] / 4 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return x + rng.normal(size=x.shape) * 0.05, np.eye(2)[which]


def main() -> None:
    """Train, and print how many points of another sample the network gets right."""
    rng = np.random.default_rng(0)
    x, labels = spirals(rng, 512)
    others, others_labels = spirals(rng, 512)
    params = layers(rng, 2, 32, 32, 2)
    velocity = cj.tree.map(np.zeros_like, params)
    step = cj.jit(training_step)
    for turn in range(1501):
        params, velocity, value = step(params, velocity, x, labels)
        if turn % 300 == 0:
            found = np.asarray(logits(params, others)).argmax(axis=1)
            right = (found == others_labels.argmax(axis=1)).mean()
            print(f"step {turn:4}: loss {float(value):.4f}, {right:.0%} of new points right")


if __name__ == "__main__":
    main()
