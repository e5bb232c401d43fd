"""A Kalman filter and smoother in logarithmic time: what single steps know, combined by an associative scan.

    python examples/jnp/kalman_filter.py

After "Temporal parallelization of Bayesian smoothers" by Särkkä and García-Fernández. A body moves in a plane, and its
place is seen with noise; the sequential filter and smoother are there to compare with.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import corejax as cj
import corejax.numpy as jnp
from corejax import lax


class Model(NamedTuple):
    """x' = F x + noise(Q), y = H x + noise(R), and the first x is drawn from (m, P)."""

    F: Any
    Q: Any
    H: Any
    R: Any
    m: Any
    P: Any


def moving(interval: float, jolt: Any, noise: Any) -> Model:
    """A body with a place and a speed in a plane, of which the place is seen."""
    one, two = jnp.eye(2), jnp.array([[interval ** 3 / 3, interval ** 2 / 2], [interval ** 2 / 2, interval]])
    return Model(jnp.kron(jnp.array([[1.0, interval], [0.0, 1.0]]), one), jolt * jnp.kron(two, one),
                 jnp.eye(2, 4), noise * one, jnp.zeros(4), jnp.eye(4))


def transposed(x: Any) -> Any:
    """Each matrix."""
    return jnp.swapaxes(x, -1, -2)


def times(a: Any, x: Any) -> Any:
    """Matrices with vectors."""
    return jnp.einsum("...ij,...j->...i", a, x)


def known(model: Model, y: Any, first: Any) -> tuple[Any, Any, Any, Any, Any]:
    """What one observation says: A, b, C of the state given the one before; eta, J of the one before, given it."""
    F, Q, H, R, m, P = model
    F, Q = jnp.where(first, jnp.zeros_like(F), F), jnp.where(first, P, Q)
    before = jnp.where(first, m, jnp.zeros_like(m))
    S = H @ Q @ H.T + R
    K = jnp.linalg.solve(S, H @ Q).T
    left = jnp.eye(len(m)) - K @ H
    backward = F.T @ H.T @ jnp.linalg.inv(S)
    b = before + K @ (y - H @ before)
    return left @ F, b, left @ Q, backward @ y, backward @ H @ F


def joined(early: Any, late: Any) -> tuple[Any, Any, Any, Any, Any]:
    """What two neighbouring stretches of time know together."""
    A1, b1, C1, eta1, J1 = early
    A2, b2, C2, eta2, J2 = late
    eye = jnp.eye(A1.shape[-1])
    forward = transposed(jnp.linalg.solve(transposed(eye + C1 @ J2), transposed(A2)))
    back = transposed(jnp.linalg.solve(transposed(eye + J2 @ C1), A1))
    return (forward @ A1, times(forward, b1 + times(C1, eta2)) + b2, forward @ C1 @ transposed(A2) + C2,
            times(back, eta2 - times(J2, b1)) + eta1, back @ J2 @ A1 + J1)


def filtered(model: Model, ys: Any) -> tuple[Any, Any]:
    """Means and covariances of the states, each given the observations until then."""
    first = jnp.arange(len(ys)) == 0
    elements = cj.vmap(known, in_axes=(None, 0, 0))(model, ys, first)
    _, means, covariances, _, _ = lax.associative_scan(joined, elements)
    return means, covariances


def smoothed(model: Model, means: Any, covariances: Any) -> tuple[Any, Any]:
    """Means and covariances given all observations, from the filtered ones."""
    F, Q = model.F, model.Q
    predicted = F @ covariances @ F.T + Q
    last = (jnp.arange(len(means)) == len(means) - 1)[:, None, None]
    E = jnp.where(last, 0.0, transposed(jnp.linalg.solve(predicted, F @ covariances)))
    g = means - times(E, times(F, means))
    L = covariances - E @ F @ covariances

    def both(late: Any, early: Any) -> tuple[Any, Any, Any]:
        E2, g2, L2 = late
        E1, g1, L1 = early
        return E1 @ E2, times(E1, g2) + g1, E1 @ L2 @ transposed(E1) + L1

    _, g, L = lax.associative_scan(both, (E, g, L), reverse=True)
    return g, L


def by_steps(model: Model, ys: Any) -> tuple[Any, Any, Any]:
    """Filtered means and covariances step by step, and the logarithm of the likelihood of the observations."""
    F, Q, H, R, m, P = model

    def step(carry: Any, y: Any) -> tuple[Any, Any]:
        m, P = carry
        S, miss = H @ P @ H.T + R, y - H @ m
        K = jnp.linalg.solve(S, H @ P).T
        _, volume = jnp.linalg.slogdet(2.0 * jnp.pi * S)
        m, P_new = m + K @ miss, P - K @ S @ K.T
        return (F @ m, F @ P_new @ F.T + Q), (m, P_new, -0.5 * (volume + miss @ jnp.linalg.solve(S, miss)))

    _, (means, covariances, likelihoods) = lax.scan(step, (m, P), ys)
    return means, covariances, jnp.sum(likelihoods)


def smoothed_by_steps(model: Model, means: Any, covariances: Any) -> tuple[Any, Any]:
    """Smoothed means and covariances step by step, from the filtered ones."""
    def step(carry: Any, each: Any) -> tuple[Any, Any]:
        later, later_P = carry
        m, P = each
        ahead = model.F @ P @ model.F.T + model.Q
        G = jnp.linalg.solve(ahead, model.F @ P).T
        m, P = m + G @ (later - model.F @ m), P + G @ (later_P - ahead) @ G.T
        return (m, P), (m, P)

    end = means[-1], covariances[-1]
    _, (m, P) = lax.scan(step, end, (means[:-1], covariances[:-1]), reverse=True)
    return jnp.append(m, end[0][None], axis=0), jnp.append(P, end[1][None], axis=0)


def likelihood(model: Model, ys: Any, means: Any, covariances: Any) -> Any:
    """The logarithm of the likelihood of the observations, from all filtered states at once."""
    F, Q, H, R, m, P = model
    ahead = jnp.concatenate([m[None], times(F, means[:-1])])
    spread = jnp.concatenate([P[None], F @ covariances[:-1] @ F.T + Q])
    S, miss = H @ spread @ H.T + R, ys - ahead @ H.T
    _, volumes = jnp.linalg.slogdet(2.0 * jnp.pi * S)
    return -0.5 * jnp.sum(volumes + jnp.sum(miss * jnp.linalg.solve(S, miss[..., None])[..., 0], axis=-1))


@cj.jit
def tracked(model: Model, ys: Any) -> tuple[Any, Any, Any]:
    """Smoothed means and covariances, and the logarithm of the likelihood, in logarithmic time."""
    means, covariances = filtered(model, ys)
    return *smoothed(model, means, covariances), likelihood(model, ys, means, covariances)


def drawn(rng: np.random.Generator, model: Model, count: int) -> tuple[np.ndarray, np.ndarray]:
    """States and observations."""
    F, Q, H, R, m, P = map(np.asarray, model)
    x, states = rng.multivariate_normal(m, P), []
    for _ in range(count):
        states.append(x)
        x = F @ x + rng.multivariate_normal(np.zeros(len(m)), Q)
    found = np.stack(states)
    return found, found @ H.T + rng.multivariate_normal(np.zeros(len(R)), R, count)


def main() -> None:
    model = moving(0.1, 0.5, 0.2)
    states, ys = drawn(np.random.default_rng(0), model, 200)
    means, _, value = tracked(model, ys)
    misses = [float(jnp.sqrt(jnp.mean(jnp.square(found - states[:, :2])))) for found in (ys, means[:, :2])]
    print(f"root mean square error of what is seen {misses[0]:.3f}, smoothed {misses[1]:.3f}")
    print(f"log likelihood {float(value):.2f}")


if __name__ == "__main__":
    main()
