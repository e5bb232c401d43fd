"""An adaptive Runge-Kutta solver and Newton's method, differentiated in reverse mode through their while loops.

How many steps either takes depends on its arguments: `bounded_while_loop` stops as early as `while_loop` does.

    python examples/adaptive_solver.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import corejax as cj
from corejax import lax

#: The method of Dormand and Prince: where it looks, from which earlier slopes, and what it makes of them.
NODES = np.array([0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0])
STAGES = [
    np.array(row) for row in (
        [1 / 5], [3 / 40, 9 / 40], [44 / 45, -56 / 15, 32 / 9],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
        [35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84])]
ERROR = np.array([71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40])


class State(NamedTuple):
    """Where a solution has got to: the time, the value and its slope, and the size of the next step."""

    t: Any
    y: Any
    slope: Any
    dt: Any
    steps: Any


def solve(f: Callable[[Any, Any], Any], y: Any, t0: Any, t1: Any, *, tol: float = 1e-8, max_steps: int = 1000,
          lax: Any = lax, while_loop: Any = lax.bounded_while_loop) -> Any:
    """The solution of y' = f(t, y) at t1, and how many steps were tried; steps are as long as the tolerance allows."""
    def advance(s: State) -> State:
        dt = lax.min(s.dt, t1 - s.t)
        slopes = [s.slope]
        for node, row in zip(NODES[1:], STAGES, strict=True):
            y = s.y + dt * sum(a * k for a, k in zip(row, slopes, strict=True))
            slopes.append(f(s.t + node * dt, y))
        error = dt * sum(e * k for e, k in zip(ERROR, slopes, strict=True))
        ratio = (error * error).sum() / (tol * tol * (1.0 + (y * y).sum())) + 1e-30
        right = ratio <= 1.0
        factor = lax.clamp(0.2, 0.9 * ratio ** -0.1, 5.0)

        def chosen(new: Any, old: Any) -> Any:
            return lax.select(lax.broadcast(right, new.shape), new, old)
        return State(chosen(s.t + dt, s.t), chosen(y, s.y), chosen(slopes[-1], s.slope), dt * factor, s.steps + 1)

    start = State(t0, y, f(t0, y), (t1 - t0) * 0.01, 0)
    end = while_loop(lambda s: s.t < t1, advance, start, max_steps=max_steps)
    return end.y, end.steps


def newton(f: Callable[[Any], Any], x: Any, *, tol: float = 1e-12, max_steps: int = 50) -> Any:
    """A root of a function of one number, by as many of Newton's steps as it takes."""
    def step(state: tuple[Any, Any]) -> tuple[Any, Any]:
        x, _ = state
        value, slope = cj.value_and_grad(f)(x)
        move = value / slope
        return x - move, abs(move)

    return lax.bounded_while_loop(lambda s: s[1] > tol, step, (x, np.inf), max_steps=max_steps)[0]


def prey(rates: Any) -> Callable[[Any, Any], Any]:
    """Lotka's and Volterra's equations: prey are born and eaten, predators are fed and die."""
    born, eaten, fed, die = rates[0], rates[1], rates[2], rates[3]

    def f(t: Any, y: Any) -> Any:
        both = y[0] * y[1]
        return lax.stack([born * y[0] - eaten * both, fed * both - die * y[1]], 0)
    return f


def final(rates: Any, y: Any, t1: Any = 10.0) -> Any:
    """Prey and predators after some time, and how many steps were tried."""
    return solve(prey(rates), y, 0.0 * t1, t1)


def main() -> None:
    """Fit the rates of Lotka's and Volterra's equations to what is seen at the end, and print the way."""
    rates, start = np.array([1.1, 0.4, 0.1, 0.4]), np.array([10.0, 5.0])
    (prey_left, hunters), steps = cj.jit(final)(rates, start)
    print(f"after {steps} steps: {prey_left:.4f} prey and {hunters:.4f} predators")

    slopes = cj.jit(cj.grad(lambda rates: final(rates, start)[0][0]))(rates)
    h = 1e-5 * np.eye(4)
    numeric = [(final(rates + e, start)[0][0] - final(rates - e, start)[0][0]) / 2e-5 for e in h]
    for name, slope, beside in zip(("born", "eaten", "fed", "die"), slopes, numeric, strict=True):
        print(f"  prey by {name:5}: {slope:9.4f}, by differences {beside:9.4f}")

    times = np.array([2.0, 5.0, 10.0])
    found, counts = cj.jit(cj.vmap(lambda t1: final(rates, start, t1)))(times)
    for t1, y, count in zip(times, found, counts, strict=True):
        print(f"  at {t1:4.1f}: {y[0]:8.4f} and {y[1]:8.4f}, after {count} steps")

    def kepler(e: Any) -> Any:
        """The eccentric anomaly at a mean anomaly of 1."""
        return newton(lambda x: x - e * lax.sin(x) - 1.0, 1.0)
    x, slope = cj.value_and_grad(kepler)(0.5)
    print(f"Kepler: {x:.6f}, changes with e by {slope:.6f}, exactly {np.sin(x) / (1.0 - 0.5 * np.cos(x)):.6f}")


if __name__ == "__main__":
    main()
