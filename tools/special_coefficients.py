"""Compute the polynomials of plugins/special, and write them into its module of coefficients.

    python tools/special_coefficients.py [--check]

Each is the polynomial through the values of a function at Chebyshev points, which is within a small factor of the best
one, or where that matters the best one by Remez' algorithm, or one of two whose quotient is nearly the best; 60 digits
are carried. `--check` writes nothing, and fails if the module differs from what would be written. Takes mpmath, and
some seconds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np

MODULE = Path(__file__).resolve().parent.parent / "plugins/special/corejax_special/_coefficients.py"
HEAD = '''"""Polynomials, written by tools/special_coefficients.py, which says what each approximates: don't edit.

A polynomial is (origin, coefficients of the powers of x - origin, from the highest to the lowest).
"""

from __future__ import annotations

Polynomial = tuple[float, tuple[float, ...]]

'''

mp.mp.dps = 60
Number = Any  # mpmath's numbers have no types


class Fit(NamedTuple):
    """A function on an interval, and the degree of its polynomial."""

    function: Callable[[Number], Number]
    low: float
    high: float
    degree: int
    direct: bool = False  # in powers of x, not of the distance from the middle


class Best(NamedTuple):
    """A function on an interval, the degree of its polynomial in powers of x - origin, and how much an error weighs."""

    function: Callable[[Number], Number]
    low: float
    high: float
    degree: int
    weight: Callable[[Number], Number]
    origin: float = 0.0


class Quotient(NamedTuple):
    """A function on an interval, the degrees of two polynomials, numerator first, and how much an error weighs.

    The errors are looked at where (x - middle) / (x + middle) is at Chebyshev points: so a wide interval has most of
    its points where the function changes most.
    """

    function: Callable[[Number], Number]
    low: float
    high: float
    middle: float
    degrees: tuple[int, int]
    weight: Callable[[Number], Number]


def removable(f: Callable[[Number], Number], *points: Number) -> Callable[[Number], Number]:
    """The function, continued to points at which its formula has no value."""
    def continued(x: Number) -> Number:
        if not any(abs(x - point) < mp.mpf(10) ** -45 for point in points):
            return f(x)
        step = mp.mpf(10) ** -25  # the error is of the order of its square
        return (f(x + step) + f(x - step)) / 2
    continued.__doc__ = f.__doc__
    return continued


# Error functions

def erfcx(x: Number) -> Number:
    """exp(x^2) erfc(x)."""
    return mp.erfc(x) * mp.exp(x * x)


def erf_excess(t: Number) -> Number:
    """erf(x) / x - 1, by x^2."""
    x = mp.sqrt(t)
    return 2 / mp.sqrt(mp.pi) - 1 if t == 0 else mp.erf(x) / x - 1


def erfcx_excess(x: Number) -> Number:
    """2 x exp(x^2) erfc(x) - 1."""
    return 2 * x * erfcx(x) - 1


def scaled_erfcx(z: Number) -> Number:
    """(x + 2) exp(x^2) erfc(x), by (x - 2) / (x + 2)."""
    x = 2 * (1 + z) / (1 - z)
    return erfcx(x) * (x + 2)


def erf_share(t: Number) -> Number:
    """How much of erf_excess(t) is left in 1 - erf(x)."""
    return mp.sqrt(t) / mp.erfc(mp.sqrt(t)) if t else mp.mpf(10) ** -9


def erfc_root(x: Number) -> Number:
    """erfc(x)^(1/4)."""
    return mp.erfc(x) ** (mp.mpf(1) / 4)


def erf_inv_of(w: Number) -> Number:
    """erf_inv(x) for x > 0, by w = -log(1 - x^2)."""
    rest = mp.exp(-w)  # 1 - x^2
    x = mp.sqrt(-mp.expm1(-w))
    if w < 2:
        return mp.erfinv(x)
    small = rest / (1 + x)  # 1 - x = erfc(y), by Newton's method
    y = mp.sqrt(w)
    for _ in range(60):
        step = (mp.erfc(y) - small) * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
        y += step / (1 - y * step)
        if abs(step) < mp.mpf(10) ** -50 * y:
            break
    return y


ERF_INV_SLOPE = mp.sqrt(mp.pi) / 2


def erf_inv_ratio(w: Number) -> Number:
    """(erf_inv(x) / x - sqrt(pi) / 2) / w, by w = -log(1 - x^2)."""
    return (erf_inv_of(w) / mp.sqrt(-mp.expm1(-w)) - ERF_INV_SLOPE) / w


def erf_inv_far(s: Number) -> Number:
    """erf_inv(x) for x > 0, by sqrt(-log(1 - x^2))."""
    return erf_inv_of(s * s)


def rising(r: Number) -> Number:
    """(exp(r) - 1) / r."""
    return mp.expm1(r) / r if r else mp.mpf(1)


# Gamma functions

def lgamma_quotient(t: Number) -> Number:
    """lgamma(1 + t) / (t (t - 1))."""
    return mp.loggamma(1 + t) / (t * (t - 1))


def stirling_rest(v: Number) -> Number:
    """(lgamma(x) - Stirling's formula) x, by v = 1/x."""
    if v == 0:
        return mp.mpf(1) / 12
    x = 1 / v
    return (mp.loggamma(x) - ((x - mp.mpf(1) / 2) * mp.log(x) - x + mp.log(2 * mp.pi) / 2)) * x


DIGAMMA_ROOT = mp.findroot(mp.digamma, 1.4616)


def digamma_quotient(x: Number) -> Number:
    """digamma(x) / (x - its zero)."""
    return mp.digamma(x) / (x - DIGAMMA_ROOT)


def digamma_rest(v: Number) -> Number:
    """(log x - digamma(x)) x, by v = 1/x."""
    return mp.mpf(1) / 2 if v == 0 else (mp.log(1 / v) - mp.digamma(1 / v)) / v


def sine_quotient(t: Number) -> Number:
    """sin(pi x) / (pi x), by x^2."""
    x = mp.sqrt(t)
    return mp.sin(mp.pi * x) / (mp.pi * x) if t else mp.mpf(1)


def cotangent_rest(t: Number) -> Number:
    """(1/x - pi cot(pi x)) / x, by x^2."""
    x = mp.sqrt(t)
    return (1 / x - mp.pi * mp.cot(mp.pi * x)) / x if t else mp.pi ** 2 / 3


# Incomplete gamma and beta functions

def atanh_rest(t: Number) -> Number:
    """(atanh(r) / r - 1) / r^2, by r^2."""
    r = mp.sqrt(t)
    return (mp.atanh(r) / r - 1) / t if t else mp.mpf(1) / 3


def temme(count: int) -> list[Number]:
    """The Taylor coefficients of eta / mu, by eta, where eta^2 / 2 = mu - log(1 + mu); see DLMF 8.12.

    The derivative of that equation, mu mu' = eta (1 + mu), gives those of mu, one after the other.
    """
    mu = [mp.mpf(0), mp.mpf(1)]
    for n in range(2, count + 1):
        known = mp.fsum(k * mu[k] * mu[n + 1 - k] for k in range(2, n))
        mu.append((mu[n - 1] - known) / (n + 1))
    quotient = [mp.mpf(1)]
    for n in range(1, count):
        quotient.append(-mp.fsum(mu[k + 1] * quotient[n - k] for k in range(1, n + 1)))
    return quotient


# Bessel functions

def i0e_near(x: Number) -> Number:
    """exp(-x) I_0(x)."""
    return mp.exp(-x) * mp.besseli(0, x)


def i1e_near(x: Number) -> Number:
    """exp(-x) I_1(x) / x."""
    return mp.exp(-x) * mp.hyp0f1(2, x * x / 4) / 2


def i0e_far(v: Number) -> Number:
    """sqrt(x) exp(-x) I_0(x), by v = 1/x."""
    return mp.besseli(0, 1 / v) * mp.exp(-1 / v) / mp.sqrt(v) if v else 1 / mp.sqrt(2 * mp.pi)


def i1e_far(v: Number) -> Number:
    """sqrt(x) exp(-x) I_1(x), by v = 1/x."""
    return mp.besseli(1, 1 / v) * mp.exp(-1 / v) / mp.sqrt(v) if v else 1 / mp.sqrt(2 * mp.pi)


BEST = {
    "ERF_NEAR_32": Best(erf_excess, 0.0, 1.125 ** 2, 6, lambda t: 1 / (1 + erf_excess(t))),
    "ERF_FAR_32": Best(erfc_root, 1.125, 4.0, 7, lambda x: 4 * erfc_root(x) ** 3),
    "ERFC_NEAR_32": Best(erf_excess, 0.0, 0.75 ** 2, 5, erf_share),
    "ERFC_NEAR_64": Best(erf_excess, 0.0, 0.75 ** 2, 9, erf_share),
    "ERFCX_64": Best(scaled_erfcx, -0.455, 0.861, 20, lambda z: 1 / scaled_erfcx(z), origin=0.25),
}
QUOTIENTS = {
    "ERFCX_32": Quotient(erfcx_excess, 0.75, 9.4, 2.5, (4, 4), lambda x: 1 / (1 + erfcx_excess(x))),
}
FITS = {
    "ERF_NEAR_64": Fit(erf_excess, 0.0, 1.0, 12, direct=True),
    "RISING_32": Fit(rising, -0.36, 0.36, 5, direct=True),
    "RISING_64": Fit(rising, -0.36, 0.36, 10, direct=True),
    "ERF_INV_NEAR_32": Fit(removable(erf_inv_ratio, 0), 0.0, 5.0, 10),
    "ERF_INV_NEAR_64": Fit(removable(erf_inv_ratio, 0), 0.0, 5.0, 21),
    "ERF_INV_FAR_32": Fit(erf_inv_far, 2.2, 4.1, 9),
    "ERF_INV_FAR_64": Fit(erf_inv_far, 2.2, 6.1, 27),
    "LGAMMA_NEAR_32": Fit(removable(lgamma_quotient, 0, 1), 0.0, 1.5, 11),
    "LGAMMA_NEAR_64": Fit(removable(lgamma_quotient, 0, 1), 0.0, 1.5, 23),
    "LGAMMA_FAR_32": Fit(stirling_rest, 0.0, 0.4, 5),
    "LGAMMA_FAR_64": Fit(stirling_rest, 0.0, 0.4, 15),
    "DIGAMMA_NEAR_32": Fit(removable(digamma_quotient, DIGAMMA_ROOT), 1.0, 2.0, 10),
    "DIGAMMA_NEAR_64": Fit(removable(digamma_quotient, DIGAMMA_ROOT), 1.0, 2.0, 21),
    "DIGAMMA_FAR_32": Fit(digamma_rest, 0.0, 0.5, 6),
    "DIGAMMA_FAR_64": Fit(digamma_rest, 0.0, 0.5, 17),
    "SINE_32": Fit(sine_quotient, 0.0, 0.25, 4, direct=True),
    "SINE_64": Fit(sine_quotient, 0.0, 0.25, 8, direct=True),
    "COTANGENT_32": Fit(cotangent_rest, 0.0, 0.25, 6),
    "COTANGENT_64": Fit(cotangent_rest, 0.0, 0.25, 13),
    "ATANH_REST_32": Fit(atanh_rest, 0.0, 1.0 / 9.0, 4, direct=True),
    "ATANH_REST_64": Fit(atanh_rest, 0.0, 1.0 / 9.0, 10, direct=True),
    "BESSEL_I0E_NEAR_32": Fit(i0e_near, 0.0, 1.25, 8),
    "BESSEL_I0E_NEAR_64": Fit(i0e_near, 0.0, 1.25, 15),
    "BESSEL_I0E_MIDDLE_32": Fit(i0e_near, 1.25, 3.0, 10),
    "BESSEL_I0E_MIDDLE_64": Fit(i0e_near, 1.25, 3.0, 18),
    "BESSEL_I0E_NEXT_32": Fit(i0e_near, 3.0, 8.0, 12),
    "BESSEL_I0E_NEXT_64": Fit(i0e_near, 3.0, 8.0, 22),
    "BESSEL_I1E_NEAR_32": Fit(i1e_near, 0.0, 1.25, 8),
    "BESSEL_I1E_NEAR_64": Fit(i1e_near, 0.0, 1.25, 15),
    "BESSEL_I1E_MIDDLE_32": Fit(i1e_near, 1.25, 3.0, 10),
    "BESSEL_I1E_MIDDLE_64": Fit(i1e_near, 1.25, 3.0, 18),
    "BESSEL_I1E_NEXT_32": Fit(i1e_near, 3.0, 8.0, 12),
    "BESSEL_I1E_NEXT_64": Fit(i1e_near, 3.0, 8.0, 22),
    "BESSEL_I0E_FAR_32": Fit(i0e_far, 0.0, 0.125, 6),
    "BESSEL_I0E_FAR_64": Fit(i0e_far, 0.0, 0.125, 24),
    "BESSEL_I1E_FAR_32": Fit(i1e_far, 0.0, 0.125, 6),
    "BESSEL_I1E_FAR_64": Fit(i1e_far, 0.0, 0.125, 24),
}
CONSTANTS: dict[str, Number] = {
    "DIGAMMA_ROOT": DIGAMMA_ROOT, "ERF_INV_SLOPE": ERF_INV_SLOPE, "LOG_2_REST": mp.log(2) - mp.mpf(355) / 512}


def polynomial(fit: Fit) -> tuple[float, list[Number]]:
    """An origin, and the coefficients of the powers of x - origin, from the highest to the lowest.

    The origin has few digits: so x - origin is exact, or nearly so, in float32, too.
    """
    low, high = mp.mpf(fit.low), mp.mpf(fit.high)
    middle, half, count = (low + high) / 2, (high - low) / 2, fit.degree + 1
    angles = [mp.pi * (2 * k + 1) / (2 * count) for k in range(count)]
    values = [fit.function(middle + half * mp.cos(angle)) for angle in angles]
    weights = [2 * mp.fsum(v * mp.cos(j * angle) for v, angle in zip(values, angles, strict=True)) / count
               for j in range(count)]
    weights[0] /= 2
    origin = 0.0 if fit.direct else round(float(middle) * 1024) / 1024
    return origin, in_powers(weights, 1 / half, (origin - middle) / half)


def best(fit: Best) -> tuple[list[Number], Number]:
    """The coefficients, from the highest power to the lowest, whose largest weighted error is least; and that error."""
    low, high, unknowns = mp.mpf(fit.low), mp.mpf(fit.high), fit.degree + 2
    count = 30 * unknowns
    points = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * k / count) for k in range(count + 1)]
    values, weights = [fit.function(x) for x in points], [fit.weight(x) for x in points]
    chosen = [round(count * k / (unknowns - 1)) for k in range(unknowns)]
    while True:
        system, right = mp.matrix(unknowns, unknowns), mp.matrix(unknowns, 1)
        for row, k in enumerate(chosen):
            for power in range(unknowns - 1):
                system[row, power] = (points[k] - fit.origin) ** power
            system[row, unknowns - 1] = (-1) ** row / weights[k]
            right[row] = values[k]
        solved = mp.lu_solve(system, right)
        coefficients = [solved[power] for power in range(unknowns - 1)][::-1]
        errors = [weight * (mp.polyval(coefficients, x - fit.origin) - value)
                  for x, value, weight in zip(points, values, weights, strict=True)]
        before, chosen = chosen, alternating(errors, unknowns)
        if before == chosen:
            return coefficients, max(map(abs, errors))


def quotient(fit: Quotient) -> tuple[list[Number], list[Number], Number]:
    """The coefficients of both polynomials, from the highest to the constant, and the largest weighted error.

    A sum of squares is minimized time and again, of errors times the new denominator by the one found before. Later
    on, each square weighs more where errors stay large (Lawson's method), which evens them out.
    """
    above, below = fit.degrees
    count, low, high, middle = above + below + 1, mp.mpf(fit.low), mp.mpf(fit.high), mp.mpf(fit.middle)
    first, last = ((end - middle) / (end + middle) for end in (low, high))
    size = 10 * count
    spread = [(first + last) / 2 - (last - first) / 2 * mp.cos(mp.pi * k / size) for k in range(size + 1)]
    points = [middle * (1 + z) / (1 - z) for z in spread]
    values, weights = [fit.function(x) for x in points], [fit.weight(x) for x in points]
    terms = [[x ** power for power in range(above + 1)] + [-value * x ** power for power in range(1, below + 1)]
             for x, value in zip(points, values, strict=True)]
    scales, extra = list(weights), [mp.mpf(1)] * len(points)
    for step in range(20):
        squares = [e * s * s for e, s in zip(extra, scales, strict=True)]
        columns = list(zip(*terms, strict=True))
        weighed = [[q * x for q, x in zip(squares, column, strict=True)] for column in columns]
        system = mp.matrix([[mp.fdot(one, other) for other in columns] for one in weighed])
        solved = list(mp.lu_solve(system, mp.matrix([mp.fdot(one, values) for one in weighed])))
        over, under = solved[above::-1], [*solved[:above:-1], mp.mpf(1)]
        parts = [mp.polyval(under, x) for x in points]
        errors = [w * abs(mp.polyval(over, x) / part - value)
                  for w, x, part, value in zip(weights, points, parts, values, strict=True)]
        scales = [w / part for w, part in zip(weights, parts, strict=True)]
        if step >= 10:
            extra = [e * error for e, error in zip(extra, errors, strict=True)]
            mean = mp.fsum(extra) / len(extra)
            extra = [e / mean for e in extra]
    return over, under, max(errors)


def alternating(errors: list[Number], count: int) -> list[int]:
    """Where the errors are largest, with one place for each run of equal signs."""
    places: list[int] = []
    for k, error in enumerate(errors):
        if not places or (error > 0) != (errors[places[-1]] > 0):
            places.append(k)
        elif abs(error) > abs(errors[places[-1]]):
            places[-1] = k
    while len(places) > count:
        places.pop(0 if abs(errors[places[0]]) < abs(errors[places[-1]]) else -1)
    return places


def in_powers(weights: list[Number], scale: Number, shift: Number) -> list[Number]:
    """The sum of Chebyshev polynomials of scale * x + shift, in powers of x, from the highest to the lowest."""
    total = [mp.mpf(0)] * len(weights)
    before, now = [mp.mpf(0)], [mp.mpf(1)]
    for j, weight in enumerate(weights):
        for i, c in enumerate(now):
            total[i] += weight * c
        times = [mp.mpf(0)] * (len(now) + 1)
        for i, c in enumerate(now):
            times[i] += shift * c
            times[i + 1] += scale * c
        after = [(2 if j else 1) * c for c in times]
        for i, c in enumerate(before):
            after[i] -= c if j else 0
        before, now = now, after
    return total[::-1]


def error_of(fit: Fit, origin: float, coefficients: list[Number]) -> float:
    """The largest error at points between those of the fit, relative to the largest value."""
    points = [mp.mpf(fit.low) + (mp.mpf(fit.high) - mp.mpf(fit.low)) * k / 97 for k in range(1, 97)]
    values = [fit.function(x) for x in points]
    return float(max(abs(mp.polyval(coefficients, x - origin) - value) / max(map(abs, values))
                     for x, value in zip(points, values, strict=True)))


def split(value: Number, dtype: type[np.floating[Any]]) -> tuple[float, float]:
    """A number as the sum of two: the nearest one of this type, and the rest."""
    high = float(dtype(float(value)))
    return high, float(value - high)


def tuple_of(values: list[Number]) -> str:
    """Numbers as Python writes them, some to a line."""
    texts = [repr(float(value)) for value in values]
    rows = [", ".join(texts[i:i + 4]) for i in range(0, len(texts), 4)]
    return "(\n    " + ",\n    ".join(rows) + ")"


def module() -> str:
    """The module's text."""
    parts = [HEAD]
    for name, fit in FITS.items():
        origin, coefficients = polynomial(fit)
        parts.append(f"# {(fit.function.__doc__ or '').strip()}\n")
        parts.append(f"{name}: Polynomial = ({origin!r}, {tuple_of(coefficients)})\n")
        print(f"{name}: degree {fit.degree}, error {error_of(fit, origin, coefficients):.1e}", file=sys.stderr)
    for name, each in BEST.items():
        coefficients, error = best(each)
        parts.append(f"# {(each.function.__doc__ or '').strip()}\n")
        parts.append(f"{name}: Polynomial = ({each.origin!r}, {tuple_of(coefficients)})\n")
        print(f"{name}: degree {each.degree}, weighted error {float(error):.1e}", file=sys.stderr)
    for name, whole in QUOTIENTS.items():
        over, under, error = quotient(whole)
        base, width = name.rsplit("_", 1)
        parts.append(f"# {(whole.function.__doc__ or '').strip()}\n")
        parts.append(f"{base}_OVER_{width}: Polynomial = (0.0, {tuple_of(over)})\n")
        parts.append(f"{base}_UNDER_{width}: Polynomial = (0.0, {tuple_of(under)})\n")
        print(f"{name}: degrees {whole.degrees}, weighted error {float(error):.1e}", file=sys.stderr)
    for bits, count in ((32, 5), (64, 12)):
        values = [mp.bernoulli(2 * k) / mp.factorial(2 * k) for k in range(1, count + 1)]
        parts.append(f"# B_2k / (2k)!, with B the Bernoulli numbers\nBERNOULLI_{bits} = {tuple_of(values)}\n")
    for bits, count in ((32, 12), (64, 27)):
        parts.append(f"# The Taylor coefficients of eta / mu, by eta, where eta^2 / 2 = mu - log(1 + mu), from the "
                     f"constant\nTEMME_{bits} = {tuple_of(temme(count))}\n")
    for name, value in CONSTANTS.items():
        parts.append(f"{name}_32 = {split(value, np.float32)!r}\n{name}_64 = {split(value, np.float64)!r}\n")
    return "".join(parts)


def main() -> int:
    """Write the module, or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    text = module()
    if MODULE.exists() and MODULE.read_text(encoding="utf-8") == text:
        return 0
    if options.check:
        print(f"{MODULE.name} is out of date: run python tools/special_coefficients.py", file=sys.stderr)
        return 1
    MODULE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
