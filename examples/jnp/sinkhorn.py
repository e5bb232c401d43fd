"""Optimal transport by Sinkhorn's iteration, on logarithms; along a line, where the exact cost is known.

    python examples/jnp/sinkhorn.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import corejax as cj
import corejax.numpy as jnp
from corejax import lax


def log_sum(x: Any, axis: int) -> Any:
    """The logarithm of a sum of exponentials, without overflow."""
    most = lax.stop_gradient(jnp.max(x, axis=axis, keepdims=True))
    return jnp.log(jnp.sum(jnp.exp(x - most), axis=axis)) + jnp.squeeze(most, axis)


def potentials(costs: Any, a: Any, b: Any, blur: Any, tolerance: float = 1e-9, most: int = 5000) -> tuple[Any, Any]:
    """Prices at both ends, which make the plan's sums right to this tolerance."""
    def again(carry: Any) -> Any:
        f, g, _, turn = carry
        f = -blur * log_sum((g - costs) / blur + jnp.log(b), 1)
        new = -blur * log_sum((f[:, None] - costs) / blur + jnp.log(a)[:, None], 0)
        return f, new, jnp.max(jnp.abs(new - g)), turn + 1

    start = jnp.zeros_like(a), jnp.zeros_like(b), jnp.inf, 0
    f, g, _, _ = lax.while_loop(lambda c: (c[2] > tolerance) & (c[3] < most), again, start)
    return f, g


def plan(costs: Any, a: Any, b: Any, blur: Any) -> Any:
    """How much goes from where to where."""
    f, g = potentials(costs, a, b, blur)
    return jnp.exp(jnp.add.outer(f, g) / blur - costs / blur) * jnp.outer(a, b)


@cj.jit
def transported(x: Any, y: Any, blur: Any) -> tuple[Any, Any]:
    """The cost of moving points to points, all equally heavy, by squared distances; and the plan."""
    costs = jnp.sum(jnp.square(x[:, None] - y), axis=-1)
    weights = [jnp.full(len(z), 1.0 / len(z)) for z in (x, y)]
    moved = plan(costs, *weights, blur)
    return jnp.sum(moved * costs), moved


def exact(x: np.ndarray, y: np.ndarray) -> float:
    """The least cost for as many points along a line: in order."""
    return float(np.mean((np.sort(x.ravel()) - np.sort(y.ravel())) ** 2))


def experiment(count: int = 100, blur: float = 0.005) -> tuple[Any, float]:
    """The cost that is found, and the least there is."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(count, 1)), 1.0 + 0.5 * rng.normal(size=(count, 1))
    return transported(x, y, blur)[0], exact(x, y)


def main() -> None:
    found, least = experiment()
    print(f"cost {float(found):.4f}, at least {least:.4f}")


if __name__ == "__main__":
    main()
