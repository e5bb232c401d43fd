"""Three bodies on a figure of eight: `scan` moves them, and `jacfwd` shows how their positions depend on the start.

    python examples/n_body.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import corejax as cj
from corejax import lax

#: The positions of Chenciner and Montgomery's three equal masses, their speeds, and their period.
PLACES = np.array([[0.97000436, -0.24308753], [-0.97000436, 0.24308753], [0.0, 0.0]])
SPEEDS = np.array([[0.466203685, 0.43236573], [0.466203685, 0.43236573], [-0.93240737, -0.86473146]])
PERIOD = 6.32591398


def accelerations(x: Any, masses: Any) -> Any:
    """The acceleration of each body by the others; `x` has a row for each body."""
    away = x[None, :, :] - x[:, None, :]
    squares = (away * away).sum(axis=2) + np.eye(len(masses))  # bodies don't attract themselves: avoids 0 / 0
    return (masses * away.transpose(2, 0, 1) / (squares * lax.sqrt(squares))).sum(axis=2).T


def energy(x: Any, v: Any, masses: Any) -> Any:
    """Kinetic plus potential energy, which is conserved."""
    away = x[None, :, :] - x[:, None, :]
    others = 1.0 - np.eye(len(masses))
    distances = lax.sqrt((away * away).sum(axis=2) + np.eye(len(masses)))
    pairs = masses[:, None] * masses * others
    return 0.5 * (masses * (v * v).sum(axis=1)).sum() - 0.5 * (pairs / distances).sum()


def travel(x: Any, v: Any, masses: Any, dt: Any, steps: int) -> tuple[Any, Any, Any]:
    """Positions and speeds after some leapfrog steps, which conserve energy, and all positions on the way."""
    def step(state: Any, _: Any) -> tuple[Any, Any]:
        x, v, a = state
        v = v + 0.5 * dt * a
        x = x + dt * v
        a = accelerations(x, masses)
        return (x, v + 0.5 * dt * a, a), x

    (x, v, _), way = lax.scan(step, (x, v, accelerations(x, masses)), None, length=steps)
    return x, v, way


def main() -> None:
    """Draw the orbit, and print what is conserved and how sensitive it is."""
    masses, steps = np.ones(3), 2000
    run = cj.jit(lambda x, v: travel(x, v, masses, PERIOD / steps, steps))
    x, v, way = run(PLACES, SPEEDS)
    canvas = [[" "] * 64 for _ in range(13)]
    for place in np.asarray(way)[::10].reshape(-1, 2):
        canvas[round(6 - place[1] * 16)][round(32 + place[0] * 28)] = "."
    for place, name in zip(np.asarray(x), "ABC", strict=True):
        canvas[round(6 - place[1] * 16)][round(32 + place[0] * 28)] = name
    print("\n".join("".join(line).rstrip() for line in canvas))
    before, after = float(energy(PLACES, SPEEDS, masses)), float(energy(x, v, masses))
    print(f"after one period the bodies are within {np.abs(np.asarray(x) - PLACES).max():.1e} of where they began")
    print(f"energy {before:.6f} before, {after - before:+.1e} after")
    change = np.asarray(cj.jit(cj.jacfwd(lambda x: run(x, SPEEDS)[0]))(PLACES))
    print(f"a small shift of one body at the start grows up to {np.abs(change).max():.0f}-fold in one period")


if __name__ == "__main__":
    main()
