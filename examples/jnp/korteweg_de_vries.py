"""Waves in shallow water: u_t + 6 u u_x + u_xxx = 0 in a ring, by Fourier transforms and exponential integration.

    python examples/jnp/korteweg_de_vries.py

The linear part is solved exactly; the other by the fourth-order method of Cox and Matthews, with its coefficients as
means over circles in the complex plane, after Kassam and Trefethen. Two solitons pass through each other, for which the
solution is known.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import corejax as cj
import corejax.numpy as jnp
from corejax import lax

WIDTH = 40.0


class Method(NamedTuple):
    """The coefficients for one step, a number for each wave."""

    full: Any
    half: Any
    quarter: Any
    first: Any
    middle: Any
    last: Any
    slope: Any


def places(count: int) -> Any:
    """Points in the ring."""
    return jnp.linspace(-WIDTH / 2, WIDTH / 2, count, endpoint=False)


def solitons(x: Any, t: Any) -> Any:
    """The wave of two solitons in an endless canal: the high one, 8 of height, overtakes the low one, 2, at t = 0."""
    above = 3.0 + 4.0 * jnp.cosh(2.0 * x - 8.0 * t) + jnp.cosh(4.0 * x - 64.0 * t)
    return 12.0 * above / jnp.square(3.0 * jnp.cosh(x - 28.0 * t) + jnp.cosh(3.0 * x - 36.0 * t))


def method(count: int, step: Any) -> Method:
    """For `count` points, of which the highest third of waves is left out."""
    waves = 2.0 * jnp.pi * jnp.fft.rfftfreq(count, WIDTH / count)
    linear = 1j * waves ** 3
    circle = jnp.exp(2j * jnp.pi * (jnp.arange(32) + 0.5) / 32)
    z = step * linear[:, None] + circle
    grown = jnp.exp(z)
    used = jnp.where(jnp.arange(waves.size) < count // 3, waves, 0.0)
    return Method(
        jnp.exp(step * linear), jnp.exp(step * linear / 2),
        step * jnp.mean((jnp.exp(z / 2) - 1.0) / z, axis=1),
        step * jnp.mean((-4.0 - z + grown * (4.0 - 3.0 * z + z ** 2)) / z ** 3, axis=1),
        step * jnp.mean((4.0 + 2.0 * z + grown * (2.0 * z - 4.0)) / z ** 3, axis=1),
        step * jnp.mean((-4.0 - 3.0 * z - z ** 2 + grown * (4.0 - z)) / z ** 3, axis=1), -3j * used)


def steepened(m: Method, v: Any, count: int) -> Any:
    """The part that isn't linear, for the transform of a wave."""
    return m.slope * jnp.fft.rfft(jnp.square(jnp.fft.irfft(v, count)))


def advanced(m: Method, v: Any, count: int) -> Any:
    """One step."""
    now = steepened(m, v, count)
    a = m.half * v + m.quarter * now
    at_a = steepened(m, a, count)
    b = m.half * v + m.quarter * at_a
    at_b = steepened(m, b, count)
    c = m.half * a + m.quarter * (2.0 * at_b - now)
    return m.full * v + m.first * now + m.middle * (at_a + at_b) + m.last * steepened(m, c, count)


@partial(cj.jit, static_argnums=2)
def travelled(u: Any, duration: Any, steps: int) -> Any:
    """The wave after this time."""
    count = u.shape[-1]
    m = method(count, duration / steps)
    return jnp.fft.irfft(lax.fori_loop(0, steps, lambda _, v: advanced(m, v, count), jnp.fft.rfft(u)), count)


def mass_and_energy(u: Any) -> Any:
    """What a wave keeps: its mass, its momentum and its energy."""
    waves = 2.0 * jnp.pi * jnp.fft.rfftfreq(u.size, WIDTH / u.size)
    slope = jnp.fft.irfft(1j * waves * jnp.fft.rfft(u), u.size)
    return jnp.stack([u, jnp.square(u), u ** 3 - jnp.square(slope) / 2.0]).mean(axis=1) * WIDTH


def experiment(count: int = 512, steps: int = 4000) -> tuple[Any, Any]:
    """The largest error after two solitons have passed, and how much of what they should keep was lost."""
    x = places(count)
    start = solitons(x, -0.4)
    end = travelled(start, 0.8, steps)
    lost = mass_and_energy(end) / mass_and_energy(start) - 1.0
    return jnp.max(jnp.abs(end - solitons(x, 0.4))), jnp.max(jnp.abs(lost))


def main() -> None:
    error, lost = experiment()
    print(f"largest error {float(error):.1e} of a height of 8; mass, momentum and energy kept to {float(lost):.1e}")


if __name__ == "__main__":
    main()
