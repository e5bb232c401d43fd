"""Where heat came from: the heat equation on a torus, solved by Fourier transforms, and solved backwards by gradients.

    python examples/heat_fft.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import corejax as cj
from corejax import lax

#: Points along each side of a square of side 1 whose opposite sides are joined, and how much heat spreads: the time
#: that passes times the diffusivity.
SIZE, SPREAD = 64, 4e-4


def decay(spread: Any) -> Any:
    """The factor of each wave: one with k periods along an axis decays by exp(-(2 pi k)**2 spread)."""
    down, across = np.fft.fftfreq(SIZE, 1 / SIZE)[:, None], np.arange(SIZE // 2 + 1)
    return lax.exp(-(2 * np.pi) ** 2 * (down * down + across * across) * spread)


def heated(u: Any, spread: Any) -> Any:
    """The temperatures after heat has spread: of waves, each at its own rate."""
    waves = lax.fft(u, lax.FftType.RFFT, (SIZE, SIZE))
    return lax.fft(waves * decay(spread), lax.FftType.IRFFT, (SIZE, SIZE))


def temperatures() -> np.ndarray:
    """A warm ring, and beside it a hot spot."""
    x, y = np.meshgrid(*[np.arange(SIZE) / SIZE] * 2, indexing="ij")
    ring = np.exp(-((np.hypot(x - 0.4, y - 0.4) - 0.2) / 0.05) ** 2)
    return ring + 1.5 * np.exp(-((x - 0.75) ** 2 + (y - 0.8) ** 2) / 0.06 ** 2)


def loss(guess: Any, later: Any) -> Any:
    """How far the heat of a guess, a start and the logarithm of a spread, is from what was measured later."""
    start, log_spread = guess
    miss = heated(start, lax.exp(log_spread)) - later
    return 0.5 * (miss * miss).sum()


@cj.jit
def recovered(later: Any, start: Any, spread: Any) -> Any:
    """A start that explains what was measured later, if the spread is known: by conjugate gradients."""
    slope = cj.grad(lambda u: loss((u, lax.log(spread)), later))
    _, curved = cj.linearize(slope, start)  # the loss is quadratic: its gradient is linear, up to a constant

    def step(state: Any, _: Any) -> tuple[Any, Any]:
        u, rest, way, size = state
        bent = curved(way)
        length = size / (way * bent).sum()
        rest = rest - length * bent
        smaller = (rest * rest).sum()
        return (u + length * way, rest, rest + smaller / size * way, smaller), smaller

    rest = -slope(start)
    (u, *_), sizes = lax.scan(step, (start, rest, rest, (rest * rest).sum()), None, length=40)
    return u, sizes


@cj.jit
def measured_spread(before: Any, later: Any) -> Any:
    """The spread between two measurements, by Newton's method for its logarithm."""
    slope = cj.grad(lambda log_spread: loss((before, log_spread), later))

    def step(log_spread: Any, _: Any) -> tuple[Any, Any]:
        down, bend = cj.jvp(slope, (log_spread,), (1.0,))
        log_spread = log_spread - lax.clamp(-1.0, down / lax.abs(bend), 1.0)
        return log_spread, lax.exp(log_spread)

    _, spreads = lax.scan(step, np.log(3 * SPREAD), None, length=12)
    return spreads


def drawn(u: Any) -> str:
    """Temperatures as text, from cold to hot."""
    shades, rows = " .:-=+*#%@", np.asarray(u)[::4, ::2]
    return "\n".join("".join(shades[int(np.clip(t / 1.5, 0, 0.999) * 10)] for t in row) for row in rows)


def main() -> None:
    """Let heat spread, and find from the end how it began, and how much it spread."""
    start = temperatures()
    later = np.asarray(cj.jit(heated)(start, SPREAD))
    print(f"after heat has spread\n{drawn(later)}")
    print(f"the mean temperature was {start.mean():.6f} and is {later.mean():.6f}; the highest, {start.max():.3f}, is "
          f"{later.max():.3f}")
    spreads = np.asarray(measured_spread(start, later))
    print("the spread, from both, by Newton's method: " + ", ".join(f"{s:.3e}" for s in spreads[[0, 2, 4, 6, -1]])
          + f"; it was {SPREAD:.3e}")
    found, sizes = recovered(later, np.zeros_like(start), SPREAD)
    off = np.abs(np.asarray(found) - start)
    print(f"how it began, from the end alone, after 40 steps of conjugate gradients\n{drawn(found)}")
    print(f"off by {off.mean():.1e} on average and {off.max():.1e} at most; the gradient's size fell from "
          f"{np.sqrt(sizes[0]):.1e} to {np.sqrt(sizes[-1]):.1e}")


if __name__ == "__main__":
    main()
