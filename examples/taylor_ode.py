"""An orbit to thirteen digits: differential equations solved by Taylor series, whose terms `jet` finds one by one.

If y' = f(y), the coefficient of t^(k + 1) in y is that of t^k in f(y), over k + 1, and `jet` computes that one from y
up to t^k. Each order repeats what those before have computed. The compiler sees that: a step of order n takes about n^2
operations.

    python examples/taylor_ode.py

>>> [c.item() for c in coefficients(lambda y: y * y, np.ones(()), 4)]  # of 1 / (1 - t)
[1.0, 1.0, 1.0, 1.0, 1.0]
>>> y, steps = solve(lambda y: y * y, np.ones(()), 0.9)
>>> round(y.item(), 11)
10.0
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import corejax as cj
from corejax import lax, taylor

#: The last power of t of which the solver computes a coefficient.
ORDER = 12


class State(NamedTuple):
    """Where a solution has got to: the time, the value, what rounding has kept from it so far, and the steps taken."""

    t: Any
    y: Any
    lost: Any
    steps: Any


def coefficients(f: Callable[[Any], Any], y: Any, order: int) -> list[Any]:
    """The coefficients of t^0, t^1, ... of the solution of y' = f(y) that begins at y."""
    found = [y]
    for k in range(order):
        value, rest = taylor.jet(f, (y,), (found[1:],), factorial_scaled=False)
        found.append([value, *rest][k] / (k + 1))
    return found


def size(y: Any) -> Any:
    """The length of a vector, or of a number."""
    return lax.sqrt((y * y).sum())


def solve(f: Callable[[Any], Any], y: Any, t1: Any, *, order: int = ORDER, tol: float = 1e-16) -> tuple[Any, Any]:
    """The solution of y' = f(y) at a time t1 > 0, and how many steps led there.

    Steps are so long that neither of the last two terms is larger than the tolerance, relative to y. One alone tells
    too little: of an even function, each second coefficient is zero.
    """
    def advance(state: State) -> State:
        t, y, lost, steps = state
        terms = coefficients(f, y, order)
        longest = [(tol * size(y) / size(terms[k])) ** (1 / k) for k in (order - 1, order)]
        then = lax.min(t + lax.min(*longest), t1)
        dt = then - t  # without an error, so that times don't drift
        change = terms[-1]
        for c in terms[-2:0:-1]:
            change = change * dt + c
        change = change * dt + lost
        total = y + change
        return State(then, total, y - total + change, steps + 1)

    end = lax.while_loop(lambda state: state.t < t1, advance, State(0.0 * t1, y, 0.0 * y, 0))
    return end.y, end.steps


def runge_kutta(f: Callable[[Any], Any], y: Any, t1: Any, steps: int) -> Any:
    """The same by the method that everybody knows, of order 4, in steps of one length."""
    dt = t1 / steps

    def advance(y: Any, _: Any) -> tuple[Any, None]:
        a = f(y)
        b = f(y + 0.5 * dt * a)
        c = f(y + 0.5 * dt * b)
        d = f(y + dt * c)
        return y + dt / 6 * (a + 2.0 * b + 2.0 * c + d), None

    return lax.scan(advance, y, None, length=steps)[0]


def kepler(y: Any) -> Any:
    """Kepler's problem: how place and speed change of what moves around a sun."""
    place, speed = y[:2], y[2:]
    square = (place * place).sum()
    return lax.concatenate([speed, -place / (square * lax.sqrt(square))], 0)


def energy(y: Any) -> Any:
    """Kinetic and potential energy of what moves around a sun."""
    return 0.5 * (y[2:] * y[2:]).sum() - 1.0 / size(y[:2])


def orbit(eccentricity: float, t: float) -> np.ndarray:
    """The exact place and speed at time t on an ellipse of period 2 pi, which begins where it is next to the sun."""
    mean = np.remainder(t, 2 * np.pi)
    x = mean + eccentricity * np.sin(mean)
    for _ in range(20):
        x -= (x - eccentricity * np.sin(x) - mean) / (1.0 - eccentricity * np.cos(x))
    axis, near = np.sqrt(1.0 - eccentricity ** 2), 1.0 - eccentricity * np.cos(x)
    return np.array([np.cos(x) - eccentricity, axis * np.sin(x), -np.sin(x) / near, axis * np.cos(x) / near])


def main() -> None:
    """Go around ten times by either method, and print how far off they are, and after how long."""
    start, t1 = orbit(0.5, 0.0), 20 * np.pi

    def show(name: str, run: Callable[[Any], Any]) -> None:
        compiled = cj.jit(run).lower(start).compile()
        compiled(start)
        begin = time.perf_counter()
        y, steps = compiled(start)
        y = np.asarray(y)
        took = time.perf_counter() - begin
        off, drift = np.abs(y - orbit(0.5, t1)).max(), abs(energy(y) - energy(start))
        print(f"  {name}, {int(steps):6} steps: {took * 1e3:6.2f} ms, orbit off by {off:.1e}, energy by {drift:.1e}")

    def fixed(y: Any, steps: int) -> tuple[Any, Any]:
        return runge_kutta(kepler, y, t1, steps), steps

    print("ten times around the sun, on an ellipse of eccentricity 0.5")
    show(f"Taylor, order {ORDER}", partial(solve, kepler, t1=t1))
    for steps in (1_000, 10_000, 100_000):
        show("Runge and Kutta ", partial(fixed, steps=steps))


if __name__ == "__main__":
    main()
