"""Right rules whose results cancel, sum or mix: two ways of computing them differ by more than a few of their ulps, or
experiments with some of their elements say little about others.

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


# What looks elementwise to whoever looks at the first element, at one sample or at floats only


class Mixing(Seeded):
    """A primitive of whose results some elements depend on others than those at their places."""

    @hookimpl
    def abstract_eval(self, avals: Sequence[Any]) -> Any:
        return _checked(self.name, avals, 1)

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        mine = self._rng()
        yield Sample([mine.normal(size=(2, 3))], domain=(-2.0, 2.0))
        yield Sample([mine.normal(size=4)])


class Normalised(Mixing):
    """x by its length along the last axis."""

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return x / lax.expand_dims(lax.sqrt((x * x).sum(-1)), (x.ndim - 1,))

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        (x,) = args
        length = np.sqrt(np.square(x).sum(-1, keepdims=True, dtype=x.dtype))
        return (x / length).astype(x.dtype)

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        mine = self._rng()
        yield Sample([mine.uniform(0.5, 2.0, (2, 3))], domain=(0.5, 2.0))
        yield Sample([mine.uniform(0.5, 2.0, 4)], domain=(0.5, 2.0))


class Softmax(Mixing):
    """Positive numbers that add up to 1."""

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return lax.exp(x - lax.expand_dims(_log_sum_exp(x), (x.ndim - 1,)))

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        x = args[0].astype(np.float64)
        powers = np.exp(x - x.max(-1, keepdims=True))
        return (powers / powers.sum(-1, keepdims=True)).astype(args[0].dtype)

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        edges = {"nans and infinities agree": "infinities are subtracted from each other in one way only"}
        mine = self._rng()
        yield Sample([mine.normal(size=(2, 3))], domain=(-2.0, 2.0), exempt=edges)
        yield Sample([mine.normal(size=4)], exempt=edges)


class SumFromTheEnd(Mixing):
    """Each element and all behind it: the first one counts in no result but its own."""

    linear = (0,)

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return lax.cumsum(x, axis=x.ndim - 1, reverse=True)

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        return np.cumsum(args[0][..., ::-1], -1, dtype=args[0].dtype)[..., ::-1]


class Neighbors(Mixing):
    """Each element and the one behind it."""

    linear = (0,)

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return x + lax.concatenate([x[..., 1:], lax.full_like(x[..., :1], 0.0)], x.ndim - 1)

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return np.asarray(x + np.concatenate([x[..., 1:], np.zeros_like(x[..., :1])], -1), x.dtype)


class Rolled(Mixing):
    """The elements, each one place further on."""

    linear = (0,)

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return lax.concatenate([x[..., -1:], x[..., :-1]], x.ndim - 1)

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        return np.roll(args[0], 1, -1)


class Sorted(Mixing):
    """The elements in order. Where three are equal, the middle one has a slope in each direction, and no derivative."""

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return lax.sort(x, dimension=x.ndim - 1)

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        (x,) = args
        wide = x.astype(np.float64) if x.dtype.itemsize < 4 else x  # NumPy has no order for NaN of the small floats
        return np.sort(wide, -1).astype(x.dtype)

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample([self._rng().normal(size=(2, 3))], domain=(-2.0, 2.0))
        yield Sample([np.arange(4.0)])


class Centered(Mixing):
    """x without its mean."""

    linear = (0,)

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return x - lax.expand_dims(x.sum(-1) / x.shape[-1], (x.ndim - 1,))

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        x = args[0].astype(np.float64)
        return (x - x.mean(-1, keepdims=True)).astype(args[0].dtype)

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample([self._rng().normal(size=(2, 3))], domain=(-2.0, 2.0))
        yield Sample([np.zeros(4)])


class Squared(Mixing):
    """A square matrix by itself."""

    @hookimpl
    def abstract_eval(self, avals: Sequence[Any]) -> Any:
        x = _checked(self.name, avals, 1)
        if x.ndim != 2 or x.shape[0] != x.shape[1]:
            raise CorejaxTypeError(f"{self.name} takes a square matrix", got=str(x), wanted="a shape (n, n)")
        return x

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        return lax.dot(args[0], args[0])

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        return (args[0] @ args[0]).astype(args[0].dtype)

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample([self._rng().normal(size=(3, 3))], domain=(-2.0, 2.0))
        yield Sample([np.eye(2)])


class Shortened(Mixing):
    """x, but of length 10 at most: a sample of few elements is what it was."""

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        (x,) = args
        length = lax.sqrt((x * x).sum())
        return lax.select(lax.broadcast(length <= 10.0, x.shape), x, x * (10.0 / length))

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        (x,) = args
        length = np.sqrt(np.square(x).sum(dtype=x.dtype))
        return x if length <= 10.0 else (x * (x.dtype.type(10.0) / length)).astype(x.dtype)

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        mine = self._rng()
        yield Sample([mine.uniform(1.0, 2.0, (2, 3))], domain=(1.0, 2.0))
        yield Sample([mine.normal(size=4)])


class Ramp(Mixing):
    """Each element by its place, counted from 1."""

    linear = (0,)

    def _places(self, x: Any) -> Any:
        return np.arange(1.0, 1.0 + x.shape[-1]).astype(x.dtype)

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        return args[0] * self._places(args[0])

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        return args[0] * self._places(args[0])


class Beginning(Ramp):
    """The first ten elements, and 0 for the others: nobody sees the place in a small sample."""

    def _places(self, x: Any) -> Any:
        return (np.arange(x.shape[-1]) < 10).astype(x.dtype)


class Counted(Mixing):
    """The sum of integers so far."""

    @hookimpl
    def abstract_eval(self, avals: Sequence[Any]) -> Any:
        if len(avals) != 1 or avals[0].dtype.kind != "i" or not avals[0].ndim:
            raise CorejaxTypeError(f"{self.name} takes integers", got=", ".join(map(str, avals)), wanted="one array")
        return avals[0]

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        return lax.cumsum(args[0], axis=args[0].ndim - 1)

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        return np.cumsum(args[0], -1, dtype=args[0].dtype)

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        mine = self._rng()
        yield Sample([mine.integers(9, size=(2, 3))])
        yield Sample([np.full(4, 3)])


class SineAndSum(Mixing):
    """Two results, of which the first is elementwise."""

    multiple_results = True

    @hookimpl
    def abstract_eval(self, avals: Sequence[Any]) -> Any:
        return [_checked(self.name, avals, 1)] * 2

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return [lax.sin(x), lax.cumsum(x, axis=x.ndim - 1, reverse=True)]

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return [np.sin(x), np.cumsum(x[..., ::-1], -1, dtype=x.dtype)[..., ::-1]]


class Share(Mixing):
    """x by the sum of all: 1 for a single number, and its samples are single numbers."""

    @hookimpl
    def abstract_eval(self, avals: Sequence[Any]) -> Any:
        (x,) = avals
        return _checked(self.name, [x.update(shape=(*x.shape, 1))], 1).update(shape=x.shape)

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return x / lax.reduce_sum(x, tuple(range(x.ndim)))

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return np.asarray(x / x.sum(dtype=x.dtype), x.dtype)

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample([np.array(0.5)], domain=(1.0, 2.0))
        yield Sample([np.ones(1)], domain=(1.0, 2.0))


MIXING: list[type[Seeded]] = [Normalised, Softmax, SumFromTheEnd, Neighbors, Rolled, Sorted, Centered, Squared,
                              Shortened, Ramp, Beginning, Counted, SineAndSum, Share]

RIGHT: list[type[Seeded]] = [Gelu, Variance, Fft, LogSumExp, CrossEntropy]


def right(kind: type[Seeded], seed: int) -> Any:
    return define(kind(seed))
