"""Principal components, and ridge regression with the penalty that predicts best, by `jnp.linalg`.

    python examples/jnp/linear_models.py
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import corejax as cj
import corejax.numpy as jnp


@partial(cj.jit, static_argnums=1)
def principal_components(x: Any, count: int) -> tuple[Any, Any, Any]:
    """The directions in which rows vary most, the shares of the variance there, and the rows' places along them."""
    centred = x - jnp.mean(x, axis=0)
    u, s, vt = jnp.linalg.svd(centred, full_matrices=False)
    signs = jnp.sign(vt[jnp.arange(vt.shape[0]), jnp.argmax(jnp.abs(vt), axis=1)])
    shares = jnp.square(s) / jnp.sum(jnp.square(s))
    return (vt * signs[:, None])[:count], shares[:count], (u * s * signs)[:, :count]


@partial(cj.jit, static_argnums=1)
def by_covariance(x: Any, count: int) -> tuple[Any, Any]:
    """The same directions and shares, as eigenvectors of the covariance."""
    values, vectors = jnp.linalg.eigh(jnp.cov(x, rowvar=False))
    found = jnp.flip(vectors, axis=1).T
    signs = jnp.sign(jnp.take_along_axis(found, jnp.argmax(jnp.abs(found), axis=1, keepdims=True), axis=1))
    return (found * signs)[:count], (values[::-1] / jnp.trace(jnp.diag(values)))[:count]


def ridge(x: Any, y: Any, penalty: Any) -> Any:
    """The weights that fit best, large ones penalised; the last one is the constant."""
    ones = jnp.ones((x.shape[0], 1))
    wide = jnp.hstack([x, ones])
    penalties = penalty * jnp.diag(jnp.append(jnp.ones(x.shape[1]), 0.0))
    return jnp.linalg.solve(wide.T @ wide + penalties, wide.T @ y)


def predicted(weights: Any, x: Any) -> Any:
    """Values for rows."""
    return jnp.dot(x, weights[:-1]) + weights[-1]


def left_out(x: Any, y: Any, penalty: Any, folds: int = 5) -> Any:
    """The mean squared error for rows that weren't fitted, each fold by the others."""
    rows = x.shape[0] // folds * folds
    parts, values = x[:rows].reshape(folds, -1, x.shape[1]), y[:rows].reshape(folds, -1)

    def error(i: Any) -> Any:
        rest = jnp.nonzero(jnp.arange(folds) != i, size=folds - 1)[0]
        weights = ridge(parts[rest].reshape(-1, x.shape[1]), values[rest].ravel(), penalty)
        return jnp.mean(jnp.square(predicted(weights, parts[i]) - values[i]))
    return jnp.mean(cj.vmap(error)(jnp.arange(folds)))


@cj.jit
def best(x: Any, y: Any, penalties: Any) -> tuple[Any, Any, Any]:
    """The penalty that predicts best, the weights with it, and the errors for all penalties."""
    errors = cj.vmap(left_out, in_axes=(None, None, 0))(x, y, penalties)
    penalty = penalties[jnp.argmin(errors)]
    return penalty, ridge(x, y, penalty), errors


def observed(rng: np.random.Generator, rows: int, width: int, rank: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows near a plane of some rank, values that depend on them, and the weights of that."""
    x = rng.normal(size=(rows, rank)) * np.linspace(3.0, 1.0, rank) @ rng.normal(size=(rank, width))
    weights = rng.normal(size=width)
    return x + 0.1 * rng.normal(size=x.shape), x @ weights + rng.normal(size=rows), weights


def main() -> None:
    x, y, _ = observed(np.random.default_rng(0), 400, 30, 5)
    _, shares, _ = principal_components(x, 5)
    penalty, _, errors = best(x, y, jnp.logspace(-4.0, 4.0, 17))
    print(f"five components of thirty hold {float(jnp.sum(shares)):.2%} of the variance")
    print(f"best penalty {float(penalty):.3g}, mean squared error {float(jnp.min(errors)):.3f} of 1 at least")


if __name__ == "__main__":
    main()
