"""Programs as people write them with NumPy, which know nothing of corejax: no other import, no rewriting."""

from __future__ import annotations

import numpy as np


def rosenbrock(x):
    """The valley that optimizers are tried on."""
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def logistic_regression(weights, features, labels):
    """The mean negative log-likelihood, with a penalty for large weights."""
    logits = np.dot(features, weights[:-1]) + weights[-1]
    return np.mean(np.logaddexp(0.0, -(2 * labels - 1) * logits)) + 0.1 * np.linalg.norm(weights) ** 2


def pendulum(state, length=1.3, step=0.05, steps=12):
    """A damped pendulum by the classical Runge-Kutta method: its energy at the end."""
    gravity = 9.81

    def slope(y):
        angle, speed = y
        return np.array([0.0, 0.0]) + np.stack([speed, -gravity / length * np.sin(angle) - 0.1 * speed])

    y = state
    for _ in range(steps):
        k1 = slope(y)
        k2 = slope(y + step / 2 * k1)
        k3 = slope(y + step / 2 * k2)
        k4 = slope(y + step * k3)
        y = y + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return 0.5 * (length * y[1]) ** 2 + gravity * length * (1.0 - np.cos(y[0]))


def softmax(logits):
    """Along the last axis, without overflow."""
    shifted = logits - np.max(logits, axis=-1, keepdims=True)
    return np.exp(shifted) / np.sum(np.exp(shifted), axis=-1, keepdims=True)


def perceptron(weights, features, classes):
    """The cross entropy of a network with one hidden layer."""
    hidden = np.maximum(np.einsum("ni,ih->nh", features, weights[:, :-1]), 0.01 * features @ weights[:, :-1])
    probabilities = softmax(hidden * weights[:1, -1])
    return -np.mean(np.log(probabilities[np.arange(len(classes)), classes]))


def soft_clusters(centres, points, temperature=0.5):
    """How far points are from centres, near ones counting more."""
    squares = np.sum(np.square(np.expand_dims(points, 1) - centres), axis=-1)
    near = softmax(-squares / temperature)
    return np.average(np.sum(near * squares, axis=1), weights=np.linspace(1.0, 2.0, len(points)))


def heat(profile, rounds=6):
    """Heat in a ring after some rounds, where it is above a threshold, by way of a Toeplitz matrix."""
    size = np.shape(profile)[0]
    kernel = np.zeros(size)
    kernel[[0, 1, -1]] = 0.6, 0.2, 0.2
    spread = np.stack([np.roll(kernel, i) for i in range(size)])
    for _ in range(rounds):
        profile = spread @ profile + 0.05 * np.tanh(np.concatenate([profile[1:], profile[:1]]))
    return np.sum(np.where(profile > 0.2, profile, np.zeros_like(profile)) * np.hypot(profile, 1.0))


def marginal_likelihood(scales, places, values):
    """The logarithm of a Gaussian process's likelihood, through a Cholesky factor."""
    length, height, noise = np.exp(scales)
    apart = np.subtract.outer(places, places) / length
    lower = np.linalg.cholesky(height * np.exp(-0.5 * apart ** 2) + noise * np.eye(len(places)))
    whitened = np.linalg.solve(lower, values)
    volume = np.sum(np.log(np.diagonal(lower)))
    return -0.5 * np.vdot(whitened, whitened) - volume - 0.5 * len(places) * np.log(2 * np.pi)


def denoised(signal, cutoff=0.2):
    """How rough a signal is without its high frequencies, and how much that leaves out."""
    waves = np.fft.rfft(signal)
    kept = waves * np.exp(-(np.fft.rfftfreq(len(signal)) / cutoff) ** 4)
    smooth = np.fft.irfft(kept, len(signal))
    bends = np.diff(np.concatenate([smooth, smooth[:1]]), n=2)
    lost = np.sum(np.abs(waves - kept) ** 2)
    return np.sum(bends ** 2) + 0.01 * lost + np.trapezoid(np.cumsum(smooth) ** 2, dx=0.1)


def portfolio(weights, returns):
    """What is feared of shares: their variance, the mean of the worst days, and the deepest fall, less the median gain.
    """
    shares = np.exp(weights) / np.sum(np.exp(weights))
    gains = returns @ shares
    variance = np.dot(shares, np.matmul(np.cov(returns, rowvar=False), shares))
    worst = np.mean(np.sort(gains)[:len(gains) // 10])
    wealth = np.cumprod(1.0 + gains)
    falls = 1.0 - wealth / np.maximum.accumulate(wealth)
    return variance - worst + 0.1 * np.max(falls) - np.quantile(gains, 0.5) + np.std(gains)


_RNG = np.random.default_rng(7)
_FEATURES = _RNG.standard_normal((9, 4))

#: Each program with its first argument, which is the one to differentiate by, and the others.
PROGRAMS = {
    "rosenbrock": (rosenbrock, _RNG.standard_normal(5), ()),
    "logistic regression": (logistic_regression, _RNG.standard_normal(5), (_FEATURES, np.arange(9) % 2)),
    "pendulum": (pendulum, np.array([0.7, -0.4]), ()),
    "perceptron": (perceptron, _RNG.standard_normal((4, 4)), (_FEATURES, np.arange(9) % 3)),
    "soft clusters": (soft_clusters, _RNG.standard_normal((3, 2)), (_RNG.standard_normal((8, 2)),)),
    "heat": (heat, _RNG.uniform(0.0, 1.0, 7), ()),
    "marginal likelihood": (marginal_likelihood, np.array([0.1, 0.2, -1.0]),
                            (np.linspace(0.0, 2.0, 7), _RNG.standard_normal(7))),
    "denoised": (denoised, _RNG.standard_normal(16), ()),
    "portfolio": (portfolio, _RNG.standard_normal(4), (0.02 * _RNG.standard_normal((30, 4)),)),
}
