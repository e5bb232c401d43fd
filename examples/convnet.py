"""Train a convolutional network to tell shapes apart: convolutions, pooling and their gradients, compiled as a whole.

    python examples/convnet.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import corejax as cj
from corejax import lax

Params = dict[str, Any]

SHAPES = ("square", "disc", "cross", "stripes")
SIZE = 16


def drawn(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Noisy images of shapes of random sizes at random places, and which shape each has."""
    kinds = rng.integers(0, len(SHAPES), count)
    y, x = np.mgrid[:SIZE, :SIZE]
    images = []
    for kind in kinds:
        size = rng.uniform(2.5, 5.0)
        down, right = y - rng.uniform(5, SIZE - 6), x - rng.uniform(5, SIZE - 6)
        square = np.maximum(abs(down), abs(right)) <= size
        image = (square, down ** 2 + right ** 2 <= size ** 2, square & (np.minimum(abs(down), abs(right)) <= 1),
                 square & (np.floor(down) % 3 == 0))[kind]
        images.append(image * rng.uniform(0.7, 1.3) + rng.normal(size=image.shape) * 0.2)
    return np.stack(images)[..., None].astype(np.float32), np.eye(len(SHAPES), dtype=np.float32)[kinds]


def network(rng: np.random.Generator) -> Params:
    """Windows for two layers of convolutions, and weights from what is left of an image to the classes."""
    def normal(*shape: int) -> np.ndarray:
        values: np.ndarray = rng.normal(size=shape) * np.sqrt(2 / np.prod(shape[:-1]))
        return values.astype(np.float32)
    last = (SIZE // 4) ** 2 * 16
    return {"first": normal(3, 3, 1, 8), "second": normal(3, 3, 8, 16), "weights": normal(last, len(SHAPES)),
            "biases": np.zeros(len(SHAPES), np.float32)}


def convolved(x: Any, window: Any) -> Any:
    """The images seen through windows, with negative values cut off."""
    return lax.max(lax.conv_general_dilated(x, window, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")), 0.0)


def pooled(x: Any) -> Any:
    """The largest of each square of four pixels."""
    return lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def logits(params: Params, images: Any) -> Any:
    """The network's output: one number for each image and shape."""
    x = pooled(convolved(images, params["first"]))
    x = pooled(convolved(x, params["second"]))
    return x.reshape(x.shape[0], -1) @ params["weights"] + params["biases"]


def loss(params: Params, images: Any, labels: Any) -> Any:
    """The mean cross entropy; `labels` has a one in the column of the right shape."""
    z = logits(params, images)
    z = z - z.max(axis=1, keepdims=True)
    return (lax.log(lax.exp(z).sum(axis=1)) - (z * labels).sum(axis=1)).mean()


def training_step(params: Params, velocity: Params, images: Any, labels: Any, rate: Any) -> tuple[Any, Any, Any]:
    """One step of gradient descent with momentum."""
    value, slopes = cj.value_and_grad(loss)(params, images, labels)
    velocity = cj.tree.map(lambda v, slope: 0.9 * v - rate * slope, velocity, slopes)
    return cj.tree.map(lambda p, v: p + v, params, velocity), velocity, value


def main() -> None:
    """Train, and print how many images of another sample the network gets right: in the end, more than 95%."""
    rng = np.random.default_rng(0)
    others, others_labels = drawn(rng, 500)
    params = network(rng)
    velocity = cj.tree.map(np.zeros_like, params)
    step, judge = cj.jit(training_step), cj.jit(logits)
    for turn in range(301):
        params, velocity, value = step(params, velocity, *drawn(rng, 64), np.float32(0.04 * (1 - turn / 300)))
        if turn % 60 == 0:
            right = (np.asarray(judge(params, others)).argmax(axis=1) == others_labels.argmax(axis=1)).mean()
            print(f"step {turn:3}: loss {float(value):.3f}, {right:.1%} of new images right")


if __name__ == "__main__":
    main()
