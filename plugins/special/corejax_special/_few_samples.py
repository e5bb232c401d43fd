"""The family of elementwise functions, for those whose programs take long to compile."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from corejax.plugin import Sample, families, hookimpl

#: Where an operand is drawn from; None stands for small whole numbers, which are kept.
Domain = tuple[float, float] | None


class FewSamples(families.Elementwise):
    """Its samples have four types of operands, as laws compile several programs for each."""

    _domains: tuple[Domain, ...] = ((1.3, 4.0), (1.3, 4.0))

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        count = len(self._domains)
        for shapes in ([()] * count, [(3,)] * count, [(0,)] * count, [*[()] * (count - 1), (3,)]):
            yield Sample([_drawn(rng, *each) for each in zip(self._domains, shapes, strict=True)], domain=self._domains)
        for operands, result in self._results.items():
            yield Sample([*map(np.asarray, operands)], results=np.asarray(result))
        yield Sample([np.ones(2, int)] * count, error=TypeError)
        yield Sample([np.ones(2), *[np.ones(3)] * (count - 1)], error=TypeError)


def _drawn(rng: np.random.Generator, domain: Domain, shape: tuple[int, ...]) -> np.ndarray:
    return rng.integers(0, 4, shape).astype(float) if domain is None else np.asarray(rng.uniform(*domain, shape))
