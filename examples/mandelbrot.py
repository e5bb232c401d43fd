"""The Mandelbrot set as text: a `while_loop` for one point, and `vmap` over the plane.

    python examples/mandelbrot.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import corejax as cj
from corejax import lax

SHADES = " .:-=+*%#@"


def steps_inside(c: Any, limit: Any) -> Any:
    """How often z -> z² + c can be applied to zero before leaving the circle of radius 2; at most `limit` times."""
    def inside(state: Any) -> Any:
        z, count = state
        return (z.real * z.real + z.imag * z.imag <= 4.0) & (count < limit)

    def step(state: Any) -> Any:
        z, count = state
        return z * z + c, count + 1

    return lax.while_loop(inside, step, (c, 0))[1]


def picture(points: Any, limit: Any) -> Any:
    """The same for each point of an array with rows and columns: the loop runs while any of them is inside."""
    over_columns = cj.vmap(steps_inside, in_axes=(0, None))
    return cj.vmap(over_columns, in_axes=(0, None))(points, limit)


def plane(rows: int, columns: int) -> np.ndarray:
    """Complex numbers on a grid around the whole set; its area is 3 by 2.4."""
    return np.linspace(-2.2, 0.8, columns) + 1j * np.linspace(1.2, -1.2, rows)[:, None]


def main() -> None:
    """Draw the set, and estimate its area."""
    draw = cj.jit(picture)
    counts = np.asarray(draw(plane(25, 75), 60))
    shades = np.floor(np.log1p(counts) / np.log1p(60) * (len(SHADES) - 1)).astype(int)
    print("\n".join("".join(SHADES[shade] for shade in row).rstrip() for row in shades))
    inside = np.asarray(draw(plane(500, 625), 300)) == 300
    print(f"its area is about {inside.mean() * 3.0 * 2.4:.2f}")


if __name__ == "__main__":
    main()
