"""Prices of options and their Greeks: the formula is written once, and `grad` and `vmap` make the table.

    python examples/black_scholes.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import corejax as cj
from corejax import lax

NODES, WEIGHTS = np.polynomial.legendre.leggauss(32)
GREEKS = ("price", "delta", "gamma", "vega", "theta", "rho")


def density(x: Any) -> Any:
    """The density of the normal distribution."""
    return lax.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi)


@cj.custom_jvp
def cumulative(x: Any) -> Any:
    """The cumulative normal distribution: an integral, by Gaussian quadrature."""
    return 0.5 + 0.5 * x * (WEIGHTS * density(0.5 * x * (1.0 + NODES))).sum()


@cumulative.defjvp
def _its_derivative_is_known(primals: Any, tangents: Any) -> Any:
    (x,), (x_dot,) = primals, tangents
    return cumulative(x), density(x) * x_dot


def call(spot: Any, strike: Any, volatility: Any, years: Any, rate: Any) -> Any:
    """The price of the right to buy at `strike` in some years, by the Black-Scholes-Merton formula."""
    spread = volatility * lax.sqrt(years)
    up = (lax.log(spot / strike) + (rate + 0.5 * volatility * volatility) * years) / spread
    return spot * cumulative(up) - strike * lax.exp(-rate * years) * cumulative(up - spread)


def greeks(*option: Any) -> tuple[Any, ...]:
    """The price, and its derivatives: by the spot (first and second), the volatility, the passing of time, the rate."""
    price, (delta, vega, by_years, rho) = cj.value_and_grad(call, argnums=(0, 2, 3, 4))(*option)
    gamma = cj.grad(cj.grad(call))(*option)
    return price, delta, gamma, vega, -by_years, rho


def main() -> None:
    """Print a table by strike."""
    strikes = np.linspace(80.0, 120.0, 9)
    table = cj.jit(cj.vmap(greeks, in_axes=(None, 0, None, None, None)))(100.0, strikes, 0.2, 0.5, 0.03)
    print("strike" + "".join(f"{name:>9}" for name in GREEKS))
    for strike, *row in zip(strikes, *map(np.asarray, table), strict=True):
        print(f"{strike:6.1f}" + "".join(f"{x:9.4f}" for x in row))


if __name__ == "__main__":
    main()
