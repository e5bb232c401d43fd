"""What the special functions are, by mpmath, to any number of digits; where each is tested, and how far it may be off.

Takes mpmath. Operands and results are mpmath's numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np

DIGITS = 50
Number = Any  # mpmath's numbers have no types
Grid = Callable[[type[np.floating[Any]]], tuple[list[float], ...]]


class Function(NamedTuple):
    """A function of one or two numbers, the derivatives that its condition is made of, and operands to test it at."""

    value: Callable[..., Number]
    slopes: Callable[..., tuple[Number, ...]]
    points: Grid


# Values

def erf_inv(x: Number) -> Number:
    """By Halley's method for erfc where x is near 1, as mpmath's starts too far away there."""
    if abs(x) < mp.mpf("0.9"):
        return mp.erfinv(x)
    small, y = 1 - abs(x), mp.sqrt(-mp.log(1 - x * x))
    for _ in range(60):
        step = (mp.erfc(y) - small) * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
        y += step / (1 - y * step)
        if abs(step) < mp.mpf(10) ** (5 - mp.mp.dps) * y:
            break
    return mp.sign(x) * y


def lgamma(x: Number) -> Number:
    """Also at negative numbers."""
    return mp.re(mp.loggamma(x)) if x > 0 else mp.log(abs(mp.gamma(x)))


def hurwitz(s: Number, q: Number) -> Number:
    """The sum of (q + k)^-s, by Euler and Maclaurin, from where numbers are large; q may be negative if s is whole."""
    terms = max(0, int(mp.ceil(s + 40 - q)))
    a = q + terms
    series, factor = 1 / (s - 1) + 1 / (2 * a), s / a
    for k in range(1, 40):
        series += mp.bernoulli(2 * k) / mp.factorial(2 * k) * factor / a
        factor *= (s + 2 * k - 1) * (s + 2 * k) / a ** 2
    return mp.fsum((q + k) ** -s for k in range(terms)) + a ** (1 - s) * series


def polygamma(n: Number, x: Number) -> Number:
    """The derivative of digamma of order n."""
    return (-1) ** (int(n) + 1) * mp.factorial(n) * hurwitz(n + 1, x) if n else mp.digamma(x)


def bessel(order: int) -> Callable[[Number], Number]:
    """exp(-|x|) I_n(x)."""
    return lambda x: mp.besseli(order, x) * mp.exp(-abs(x))


def incomplete_gamma(a: Number, x: Number) -> tuple[Number, Number]:
    """P and Q: the smaller one by its series or continued fraction, the other one by the rest, with digits to spare."""
    with mp.extradps(30):
        scale = mp.exp(a * mp.log(x) - x - mp.loggamma(a + 1))
        if x < a + 1 or x < 2:
            term = total = mp.mpf(1)
            k = 0
            while term > total * mp.eps:
                k += 1
                term *= x / (a + k)
                total += term
            return scale * total, 1 - scale * total
        inverse = change = quotient = 1 / (x + 1 - a)
        k = 0
        while abs(change) > abs(quotient) * mp.eps:  # Steed's method
            k += 1
            denominator = x + 2 * k + 1 - a - k * (k - a) * inverse
            inverse = 1 / denominator
            change *= (x + 2 * k + 1 - a) * inverse - 1
            quotient += change
        return 1 - a * scale * quotient, a * scale * quotient


def gamma_slope(a: Number, x: Number) -> Number:
    """The derivative of P by a, by differences of the smaller one of P and Q."""
    with mp.extradps(30):
        step = a * mp.mpf(10) ** -25
        lower = x < a + 1
        above, below = incomplete_gamma(a + step, x), incomplete_gamma(a - step, x)
        return (above[0] - below[0]) / (2 * step) if lower else (below[1] - above[1]) / (2 * step)


def gamma_density(a: Number, x: Number) -> Number:
    """The derivative of P by x."""
    return mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a))


def gamma_variate_slope(a: Number, x: Number) -> Number:
    """The derivative of x by a where P stays the same."""
    return -gamma_slope(a, x) / gamma_density(a, x)


def slopes_by_differences(function: Callable[..., Number]) -> Callable[..., tuple[Number, ...]]:
    """The derivatives, to some digits."""
    def slopes(*args: Number) -> tuple[Number, ...]:
        found = []
        for k, x in enumerate(args):
            step = x * mp.mpf(10) ** -10
            low, high = [function(*args[:k], x + shift, *args[k + 1:]) for shift in (-step, step)]
            found.append((high - low) / (2 * step))
        return tuple(found)
    return slopes


def incomplete_beta(a: Number, b: Number, x: Number) -> Number:
    """By the series of DLMF 8.17.8, whose terms have one sign, on the side where it takes few enough of them."""
    with mp.extradps(30):
        swapped = x > 0.9 or x > 0.1 and x * (a + b + 2) > a + 1
        c, d, p = (b, a, 1 - x) if swapped else (a, b, x)
        scale = mp.exp(c * mp.log(p) + d * mp.log(1 - p) + mp.loggamma(a + b) - mp.loggamma(a) - mp.loggamma(b)) / c
        term = total = mp.mpf(1)
        k = 0
        while term > total * mp.eps:
            term *= p * (a + b + k) / (c + 1 + k)
            k += 1
            total += term
        return 1 - scale * total if swapped else scale * total


# Points

def both_signs(values: list[float]) -> list[float]:
    """Every other number, with the other sign."""
    return [x if k % 2 else -x for k, x in enumerate(values)]


def spread(low: float, high: float, count: int) -> list[float]:
    """Numbers between two, none of which is round."""
    return [low + (high - low) * ((k + 0.5 + 0.31 * ((k * 7919) % 13 / 13 - 0.5)) / count) for k in range(count)]


def powers(low: float, high: float, count: int) -> list[float]:
    """The same, evenly spaced by their logarithms."""
    return [float(np.exp(x)) for x in spread(np.log(low), np.log(high), count)]


def limits(dtype: type[np.floating[Any]]) -> tuple[float, float]:
    found = np.finfo(dtype)
    return float(found.smallest_normal), float(found.max)


def around_zero(low: float, high: float) -> Grid:
    """Small numbers down to the smallest normal one, and numbers up to `high`."""
    def grid(dtype: type[np.floating[Any]]) -> tuple[list[float], ...]:
        smallest, largest = limits(dtype)
        return (both_signs([smallest, 1.5 * smallest, *powers(smallest * 4, low, 12), *spread(low, high, 110),
                            *powers(high, largest / 2, 8)]),)
    return grid


def erfc_points(dtype: type[np.floating[Any]]) -> tuple[list[float], ...]:
    end = 9.19 if dtype is np.float32 else 26.54  # beyond, results are subnormal
    return ([*powers(1e-9, 0.3, 10), *(-x for x in powers(1e-9, 7.0, 40)), *spread(0.0, end, 160)],)


def erf_inv_points(dtype: type[np.floating[Any]]) -> tuple[list[float], ...]:
    eps = float(np.finfo(dtype).eps)
    tail = [1.0 - x for x in [eps / 2, eps, 1.5 * eps, 2 * eps, *powers(4 * eps, 0.3, 50)]]
    return (both_signs([*powers(limits(dtype)[0] * 2, 1e-3, 12), *spread(0.0, 1.0, 60), *tail]),)


def gamma_points(dtype: type[np.floating[Any]]) -> tuple[list[float], ...]:
    smallest, largest = limits(dtype)
    near = [c + s * d for c in (1.0, 1.4616321449683623, 2.0) for d in powers(1e-7, 0.1, 6) for s in (-1.0, 1.0)]
    poles = [-c + s * d for c in (1.0, 2.0, 5.0, 20.0) for d in powers(1e-4, 0.1, 4) for s in (-1.0, 1.0)]
    return ([smallest * 4, *powers(smallest * 8, 1e-3, 8), *spread(0.001, 8.0, 60), *powers(8.0, largest / 1e4, 24),
             *near, *(-x for x in powers(1e-12, 0.3, 8)), *spread(-6.0, 0.0, 50), *spread(-40.0, -6.0, 10), *poles],)


def zeta_points(dtype: type[np.floating[Any]]) -> tuple[list[float], ...]:
    s = [*spread(1.01, 3.0, 40), *spread(3.0, 20.0, 40), *powers(20.0, 60.0, 10), *spread(1.5, 9.0, 20)]
    q = [*powers(0.02, 90.0, 40)] * 2
    pairs = list(zip(s, [*q, *spread(0.6, 1.5, 10), *powers(1e2, 1e4, 20)], strict=True))
    pairs += [(float(n), x) for n in (2, 3, 4, 7) for x in spread(-5.0, 0.0, 6)]
    return [s for s, _ in pairs], [q for _, q in pairs]


def polygamma_points(dtype: type[np.floating[Any]]) -> tuple[list[float], ...]:
    pairs = [(float(n), x) for n in (0, 1, 2, 3, 5, 8, 15, 30)
             for x in [*powers(0.2, 60.0, 12), *spread(1.0, 3.0, 4)]]
    pairs += [(float(n), x) for n in (0, 1, 2, 3, 4) for x in spread(-5.0, 0.0, 8)]
    return [n for n, _ in pairs], [x for _, x in pairs]


def incomplete_gamma_points(dtype: type[np.floating[Any]]) -> tuple[list[float], ...]:
    """Where each formula holds, and both sides of what is between them."""
    pairs = [(a, a * ratio) for a in powers(2e-3, 60.0, 12)
             for ratio in (0.05, 0.29, 0.31, 0.6, 0.95, 1.02, 1.4, 2.3, 2.5, 5.0)]
    pairs += [(a, x) for a in (1e-8, 1e-3, 0.1, 0.5, 0.99, 1.5) for x in (1e-6, 0.1, 0.56, 1.1, 1.13, 1.9, 9.0, 60.0)]
    pairs += [(a, a + shift * a ** 0.5) for a in (80.0, 1e3, 1e5, 1e7) for shift in (-5.0, -1.1, 0.0, 0.3, 4.0)]
    return [a for a, _ in pairs], [x for _, x in pairs]


def incomplete_beta_points(dtype: type[np.floating[Any]]) -> tuple[list[float], ...]:
    """Of small and large exponents, near the mean, in the tails, and where one formula meets another."""
    exponents = (1e-6, 0.02, 0.4, 1.0, 2.4, 2.6, 30.0, 1e3)
    found = [(a, b, x) for a in exponents for b in exponents for x in (1e-6, 0.2, 0.51, 0.97)]
    for a, b in ((8.0, 5.0), (40.0, 0.3), (0.3, 40.0), (300.0, 7e3), (2e4, 2e4), (3e5, 2.0), (1e-3, 1e5), (2e5, 9e7)):
        mean, deviation = a / (a + b), (a * b / (a + b)) ** 0.5 / (a + b)
        around = [mean + z * deviation for z in (-5.0, -1.0, 0.0, 0.7, 3.0)]
        found += [(a, b, x) for x in around if 0 < x < 1]
    return [a for a, _, _ in found], [b for _, b, _ in found], [x for _, _, x in found]


FUNCTIONS = {
    "erf": Function(mp.erf, lambda x: (2 / mp.sqrt(mp.pi) * mp.exp(-x * x),), around_zero(1e-4, 6.5)),
    "erfc": Function(mp.erfc, lambda x: (2 / mp.sqrt(mp.pi) * mp.exp(-x * x),), erfc_points),
    "erf_inv": Function(erf_inv, lambda x: (mp.sqrt(mp.pi) / 2 * mp.exp(erf_inv(x) ** 2),), erf_inv_points),
    "bessel_i0e": Function(bessel(0), lambda x: (bessel(1)(x) - mp.sign(x) * bessel(0)(x),), around_zero(1e-4, 30.0)),
    "bessel_i1e": Function(bessel(1), lambda x: (bessel(0)(x) - bessel(1)(x) / x - mp.sign(x) * bessel(1)(x),),
                           around_zero(1e-4, 30.0)),
    "lgamma": Function(lgamma, lambda x: (mp.digamma(x),), gamma_points),
    "digamma": Function(mp.digamma, lambda x: (mp.psi(1, x),), gamma_points),
    "zeta": Function(hurwitz, lambda s, q: (_by_exponent(s, q), -s * hurwitz(s + 1, q)), zeta_points),
    "igamma": Function(lambda a, x: incomplete_gamma(a, x)[0], lambda a, x: (gamma_slope(a, x), gamma_density(a, x)),
                       incomplete_gamma_points),
    "igammac": Function(lambda a, x: incomplete_gamma(a, x)[1], lambda a, x: (gamma_slope(a, x), gamma_density(a, x)),
                        incomplete_gamma_points),
    "igamma_grad_a": Function(gamma_slope, slopes_by_differences(gamma_slope), incomplete_gamma_points),
    "random_gamma_grad": Function(gamma_variate_slope, slopes_by_differences(gamma_variate_slope),
                                  incomplete_gamma_points),
    "betainc": Function(incomplete_beta, slopes_by_differences(incomplete_beta), incomplete_beta_points),
    "polygamma": Function(polygamma, lambda n, x: (mp.mpf(0), polygamma(n + 1, x)), polygamma_points),
}


def _by_exponent(s: Number, q: Number) -> Number:
    """The derivative of zeta by its exponent, by differences; none for negative q, where exponents are whole."""
    step = mp.mpf(10) ** -20
    return (hurwitz(s + step, q) - hurwitz(s - step, q)) / (2 * step) if q > 0 else mp.mpf(0)


def condition(function: Function, args: tuple[Number, ...], value: Number) -> Number:
    """How many times larger than relative errors of the operands, the one of the result is."""
    if value == 0:
        return mp.mpf(0)
    return mp.fsum(abs(x * slope / value) for x, slope in zip(args, function.slopes(*args), strict=True))
