"""Right rules whose results cancel, sum or mix: two ways of computing them differ by more than a few of their ulps.

Each function makes such a primitive, whose name and samples depend on a seed, as do the kit's own random numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.errors import CorejaxTypeError
from corejax.plugin import Sample, define, hookimpl


class Seeded:
    """A primitive with random samples of its own."""

    def __init__(self, seed: int) -> None:
        self.name = f"{type(self).__name__.lower()}_{seed}"
        self._rng = lambda: np.random.default_rng(seed)


def _checked(name: str, avals: Sequence[Any], count: int) -> Any:
    """The type of operands, which must be of one type: floats with elements along the last axis."""
    x = avals[0]
    if len(avals) != count:
        raise CorejaxTypeError(f"{name} takes {count} operands", got=len(avals), wanted=count)
    alike = len({(each.shape, each.dtype) for each in avals}) == 1
    if x.dtype.kind in "cibu" or not x.shape or not x.shape[-1] or not alike:
        raise CorejaxTypeError(f"{name} takes floats of one type", got=", ".join(map(str, avals)),
                               wanted="arrays of one shape and dtype, not empty")
    return x.update(weak_type=all([each.weak_type for each in avals]))


class Gelu(Seeded):
    """x (1 + tanh(...)) / 2, by `decompose` alone: left of zero it cancels."""

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return 0.5 * x * (1.0 + lax.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        x = self._rng().normal(size=(2, 3))
        yield Sample([x], domain=(-3.0, 3.0), results=x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))


class Variance(Seeded):
    """The mean of squares without the square of the mean: of equal numbers it is 0, or nearly."""

    @hookimpl
    def abstract_eval(self, avals: Sequence[Any]) -> Any:
        x = _checked(self.name, avals, 1)
        return x.update(shape=x.shape[:-1])

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        (x,) = args
        n = x.shape[-1]
        mean = x.sum(-1) / n
        apart = x - lax.expand_dims(mean, (x.ndim - 1,))
        return (apart * apart).sum(-1) / n

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return ((x * x).mean(-1) - x.mean(-1) ** 2).astype(x.dtype)

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        mine = self._rng()
        yield Sample([mine.normal(size=(2, 3))], domain=(-1.0, 1.0))
        yield Sample([np.full(3, mine.uniform())])


class Fft(Seeded):
    """The real part of a Fourier transform along the last axis."""

    linear = (0,)

    @hookimpl
    def abstract_eval(self, avals: Sequence[Any]) -> Any:
        return _checked(self.name, avals, 1)

    def _cosines(self, n: int, dtype: Any) -> Any:
        return np.cos(2 * np.pi / n * np.outer(np.arange(n), np.arange(n))).astype(dtype)

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        (x,) = args
        table = self._cosines(x.shape[-1], x.dtype)
        return (lax.expand_dims(x, (x.ndim - 1,)) * table).sum(-1)

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return np.fft.fft(x, axis=-1).real.astype(x.dtype)

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        mine = self._rng()
        mixed = {"nans and infinities agree": "by the fast algorithm, a NaN or an infinity reaches other elements"}
        yield Sample([mine.normal(size=(2, 5))], exempt=mixed)
        yield Sample([np.full(4, mine.uniform())], exempt=mixed)
        yield Sample([mine.normal(size=8).astype(np.float32)], exempt=mixed)


def _log_sum_exp(x: Any) -> Any:
    """Shifted by the largest element, so that nothing overflows."""
    top = lax.reduce_max(x, (x.ndim - 1,))
    top = lax.select(lax.is_finite(top), top, lax.full_like(top, 0.0))
    return lax.log(lax.reduce_sum(lax.exp(x - lax.expand_dims(top, (x.ndim - 1,))), (x.ndim - 1,))) + top


class LogSumExp(Seeded):
    """Near 0 where the exponentials sum to about 1."""

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return _log_sum_exp(x)

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return np.asarray(np.logaddexp.reduce(x.astype(np.float64), axis=-1)).astype(x.dtype)

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        mine = self._rng()
        yield Sample([mine.normal(size=(2, 3))], domain=(-2.0, 2.0))
        x = mine.normal(size=4)
        yield Sample([x - np.log(np.exp(x).sum())])  # the result is 0, or nearly


class CrossEntropy(Seeded):
    """Of the softmax of logits, and labels: nearly 0 for sure guesses that are right."""

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        x, labels = args
        return _log_sum_exp(x) - (labels * x).sum(-1)

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        x, labels = [each.astype(np.float64) for each in args]
        return np.asarray(np.logaddexp.reduce(x, axis=-1) - np.vecdot(labels, x)).astype(args[0].dtype)

    @hookimpl
    def abstract_eval(self, avals: Sequence[Any]) -> Any:
        x = _checked(self.name, avals, 2)
        return x.update(shape=x.shape[:-1])

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        mine = self._rng()
        labels = np.eye(3)[mine.integers(3, size=2)]
        yield Sample([mine.normal(size=(2, 3)), labels], domain=[(-2.0, 2.0), None])
        yield Sample([10.0 * labels + mine.normal(size=(2, 3)), labels])


RIGHT: list[type[Seeded]] = [Gelu, Variance, Fft, LogSumExp, CrossEntropy]


def right(kind: type[Seeded], seed: int) -> Any:
    return define(kind(seed))
