"""Arrays of rational numbers: an element type of a pack's own, stored as numerators and denominators.

>>> import corejax as cj
>>> from corejax_rational import rational, rational_add, rational_to_float
>>> thirds = rational([1, 2, 5], 3)
>>> thirds
Array([1/3, 2/3, 5/3], dtype=rational)
>>> rational_add(thirds, thirds[::-1])
Array([2, 4/3, 2], dtype=rational)
>>> cj.jit(lambda x: rational_to_float(x[1:]))(thirds)
Array([0.66666667, 1.66666667], dtype=float64)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, ShapedArray
from corejax.errors import CorejaxTypeError
from corejax.plugin import ElementType, Sample, define, elements, hookimpl, not_differentiable, public

__all__ = ["RATIONAL", "rational", "rational_add", "rational_less", "rational_mul", "rational_of", "rational_parts",
           "rational_to_float"]


def _shown(parts: np.ndarray) -> str:
    numerator, denominator = parts.tolist()
    return f"{numerator}/{denominator}" if denominator != 1 else str(numerator)


#: In lowest terms, with a positive denominator. Neither exceeds 64 bits: what does wraps around.
RATIONAL = ElementType("rational", "int64", (2,), show=_shown,
                       todo="use lax.rational_add, rational_mul or rational_less, or convert with rational_to_float")

rational_of = define(elements.Wrap("rational_of", RATIONAL))
rational_parts = define(elements.Unwrap("rational_parts", RATIONAL))


@public
def rational(numerator: ArrayLike | Sequence[int], denominator: ArrayLike | Sequence[int] = 1) -> Array:
    """Rational numbers, from integers.

    >>> rational([2, -3], [4, -6])
    Array([1/2, 1/2], dtype=rational)
    """
    both = [lax.convert_element_type(np.asarray(x) if isinstance(x, Sequence) else x, "int64")
            for x in (numerator, denominator)]
    zeros = np.zeros(np.broadcast_shapes(*[x.shape for x in both]), "int64")
    return _lowest(both[0] + zeros, both[1] + zeros)


def _lowest(numerator: Array, denominator: Array) -> Array:
    """In lowest terms, by Euclid's algorithm on all of them at once."""
    def remainder(pair: Any) -> Any:
        x, y = pair
        zero = y == 0
        return lax.select(zero, x, y), lax.select(zero, y, lax.rem(x, lax.select(zero, y + 1, y)))

    divisor, _ = lax.while_loop(lambda pair: (pair[1] != 0).any(), remainder, (numerator, denominator))
    divisor = lax.abs(divisor) * lax.sign(denominator)
    divisor = lax.select(divisor == 0, divisor + 1, divisor)
    return _of(lax.div(numerator, divisor), lax.div(denominator, divisor))


def _of(numerator: Array, denominator: Array) -> Array:
    return rational_of(lax.concatenate(  # type: ignore[no-any-return]
        [numerator[..., None], denominator[..., None]], numerator.ndim))


def _parts(x: Any) -> tuple[Array, Array]:
    both = rational_parts(x)
    return both[..., 0], both[..., 1]


class _OfTwo:
    """A function of two arrays of rationals: what it is of their numerators and denominators."""

    element_types = ("rational",)
    operands = ("x", "y")
    jvp = not_differentiable("rational numbers have no derivatives")

    def _check(self, args: Sequence[Any]) -> None:
        if len({(x.shape, x.dtype) for x in args}) > 1 or args[0].dtype != RATIONAL.dtype:
            raise CorejaxTypeError(f"{self.name}: this takes rationals of one shape", got=", ".join(  # type: ignore[attr-defined]
                str(x.aval) for x in args), wanted="two arrays of dtype rational", todo="make them with lax.rational")

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((3,), (), (2, 0), (2, 3)):
            draws = [rational(rng.integers(-9, 10, shape), rng.integers(1, 10, shape)) for _ in range(2)]
            yield Sample(draws)
        known = {"rational_add": rational(7, 6), "rational_mul": rational(1, 3), "rational_less": np.array(True)}
        yield Sample([rational(1, 2), rational(2, 3)], results=known[self.name])  # type: ignore[attr-defined]
        yield Sample([rational([1, 2]), np.ones(2)], error=TypeError)


class Add(_OfTwo):
    """rational_add(x, y): x + y.

    >>> rational_add(rational(1, 2), rational(1, 3))
    Array(5/6, dtype=rational)
    """

    name = "rational_add"

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        self._check(args)
        (a, b), (c, d) = map(_parts, args)
        return _lowest(a * d + c * b, b * d)

    @hookimpl
    def impl(self, args: Sequence[np.ndarray]) -> np.ndarray:
        # What is stored, as in a lowering: numerators and denominators along the last axis.
        (a, b), (c, d) = [(x[..., 0], x[..., 1]) for x in args]
        numerator, denominator = a * d + c * b, b * d
        divisor = np.maximum(np.gcd(numerator, denominator), 1)
        return np.stack([numerator // divisor, denominator // divisor], -1)


class Mul(_OfTwo):
    """rational_mul(x, y): x * y.

    >>> rational_mul(rational(2, 3), rational(3, 4))
    Array(1/2, dtype=rational)
    """

    name = "rational_mul"

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        self._check(args)
        (a, b), (c, d) = map(_parts, args)
        return _lowest(a * c, b * d)


class Less(_OfTwo):
    """rational_less(x, y): x < y.

    >>> rational_less(rational(1, 3), rational(1, 2))
    Array(True, dtype=bool)
    """

    name = "rational_less"

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        self._check(args)
        (a, b), (c, d) = map(_parts, args)
        return a * d < c * b


class ToFloat:
    """rational_to_float(x): the nearest floats.

    >>> rational_to_float(rational(1, 4))
    Array(0.25, dtype=float64)
    """

    name = "rational_to_float"
    element_types = ("rational",)
    operands = ("x",)
    jvp = not_differentiable("rational numbers have no derivatives")

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray]) -> ShapedArray:
        (x,) = avals
        if x.dtype != RATIONAL.dtype:
            raise CorejaxTypeError("rational_to_float: this isn't rational", got=str(x), wanted="dtype rational",
                                   todo="make it with lax.rational")
        return ShapedArray(x.shape, "float64")

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        numerator, denominator = _parts(args[0])
        return lax.convert_element_type(numerator, "float64") / lax.convert_element_type(denominator, "float64")

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((3,), (), (2, 0)):
            yield Sample([rational(rng.integers(-9, 10, shape), rng.integers(1, 10, shape))])
        yield Sample([rational([1, -2], [4, 5])], results=np.array([0.25, -0.4]))
        yield Sample([np.ones(2)], error=TypeError)


rational_add = define(Add())
rational_mul = define(Mul())
rational_less = define(Less())
rational_to_float = define(ToFloat())
