"""Fit a logistic regression with Newton's method: `hessian` gives the curvature, and with it the standard errors.

    python examples/logistic_hessian.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import corejax as cj
from corejax import lax


def loss(w: Any, x: Any, y: Any) -> Any:
    """The negative log likelihood of outcomes `y`, which are -1 or 1, plus a small penalty on large weights."""
    return -lax.log(lax.logistic(y * (x @ w))).sum() + 0.5 * (w * w).sum()


def slope_and_curvature(w: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """The gradient and the Hessian of the loss with respect to the weights."""
    return cj.grad(loss)(w, x, y), cj.hessian(loss)(w, x, y)


def newton(x: np.ndarray, y: np.ndarray, steps: int) -> list[np.ndarray]:
    """The weights after 0, 1, ..., `steps` steps: each step goes to the minimum of the parabola that fits best."""
    derivatives = cj.jit(slope_and_curvature)
    found = [np.zeros(x.shape[1])]
    for _ in range(steps):
        slope, curvature = derivatives(found[-1], x, y)
        found.append(found[-1] - np.linalg.solve(np.asarray(curvature), np.asarray(slope)))
    return found


def observations(rng: np.random.Generator, count: int, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Random inputs, and outcomes drawn from a logistic model with these weights."""
    x = rng.normal(size=(count, truth.size))
    return x, np.where(rng.uniform(size=count) < 1 / (1 + np.exp(-x @ truth)), 1.0, -1.0)


def main() -> None:
    """Show how fast Newton's method converges, and the weights with their standard errors."""
    truth = np.array([1.5, -2.0, 0.0, 0.5])
    x, y = observations(np.random.default_rng(0), 2000, truth)
    steps = newton(x, y, 6)
    for turn, w in enumerate(steps):
        slope = np.abs(np.asarray(cj.grad(loss)(w, x, y))).max()
        print(f"step {turn}: loss {float(loss(w, x, y)):.6f}, largest slope {slope:.1e}")
    errors = np.sqrt(np.diag(np.linalg.inv(np.asarray(cj.hessian(loss)(steps[-1], x, y)))))
    for w, error, true in zip(steps[-1], errors, truth, strict=True):
        print(f"weight {w:6.3f} ± {error:.3f}, truly {true:4.1f}")


if __name__ == "__main__":
    main()
