"""Random programs of collectives over one to three mapped axes, for corejax and for jax alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

#: Every operand has this shape: a multiple of each number of positions, so that all can divide it.
SHAPE = (12, 12)

Step = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Program:
    """A function of `lax` and an array, to be mapped over axes of these names, the first one outermost."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    dims: tuple[int, ...]
    steps: tuple[tuple[str, Step], ...]

    def body(self, lax: Any, x: Any) -> Any:
        for _, step in self.steps:
            x = step(lax, x)
        return x

    def mapped(self, lax: Any, vmap: Any) -> Callable[[Any], Any]:
        """The program as a function of an array with an axis for each name."""
        def function(x: Any) -> Any:
            return self.body(lax, x)
        for name, dim in zip(reversed(self.names), reversed(self.dims), strict=True):
            function = vmap(function, in_axes=dim, axis_name=name)
        return function

    def operand(self, rng: np.random.Generator) -> np.ndarray:
        shape = list(SHAPE)
        for size, dim in zip(reversed(self.sizes), reversed(self.dims), strict=True):
            shape.insert(dim, size)
        return rng.standard_normal(shape)

    def __str__(self) -> str:
        axes = ", ".join([f"{name}={size}" for name, size in zip(self.names, self.sizes, strict=True)])
        return f"{axes}: {'; '.join([text for text, _ in self.steps])}"


def program(seed: int, groups: bool = False) -> Program:
    """The program of this number. jax takes groups only on devices, so programs with them are only for corejax."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 4))
    names = ("i", "j", "k")[:count]
    sizes = tuple([int(rng.choice([2, 3, 4] if count == 1 else [1, 2, 3])) for _ in names])
    dims = tuple([int(rng.integers(0, 3)) for _ in names])
    steps = [_step(rng, names, sizes, groups) for _ in range(int(rng.integers(1, 5)))]
    return Program(names, sizes, dims, tuple(steps))


def broadcast(lax: Any, x: Any, name: str, source: int) -> Any:
    """`pbroadcast`, which jax 0.10 can't map; there, what its documentation says is the same."""
    if not lax.__name__.startswith("jax"):
        return lax.pbroadcast(x, name, source)
    return lax.psum(x * (lax.axis_index(name) == source), name)


def _step(rng: np.random.Generator, names: tuple[str, ...], sizes: tuple[int, ...], groups: bool) -> tuple[str, Step]:
    chosen = [str(name) for name in rng.permutation(names)[:int(rng.integers(1, len(names) + 1))]]
    while 12 % np.prod([sizes[names.index(name)] for name in chosen]):
        chosen.pop()
    one, axis = chosen[0], int(rng.integers(0, 2))
    size, several = sizes[names.index(one)], tuple(chosen)
    total = int(np.prod([sizes[names.index(name)] for name in chosen]))
    order, source = [int(i) for i in rng.permutation(size)], int(rng.integers(0, size))
    pairs = list(zip(range(size), order, strict=True))
    given: dict[str, Any] = {}
    if groups:
        places = [int(i) for i in rng.permutation(total)]
        parts = [n for n in range(1, total + 1) if total % n == 0]
        length = int(rng.choice(parts))
        given = {"axis_index_groups": [places[k:k + length] for k in range(0, total, length)]}
        size = total = length
        one = several  # type: ignore[assignment]
    kinds: list[tuple[str, Step]] = [
        (f"sin * psum {several}", lambda lax, x: lax.sin(x) * lax.psum(x, several, **given)),
        (f"pmean {several}", lambda lax, x: x * 0.5 + lax.pmean(lax.sin(x), several, **given)),
        (f"x - psum of x * x {one}", lambda lax, x: x - lax.psum(x * x, one, **given) * 0.1),
        (f"all_gather {one}", lambda lax, x: lax.sin(lax.all_gather(x, one, axis=axis, **given)).sum(axis) + x),
        (f"tiled all_gather {one}", lambda lax, x: lax.slice_in_dim(
            lax.all_gather(x, one, axis=axis, tiled=True, **given), size * 12 - 12, size * 12, axis=axis) * x),
        (f"psum_scatter {one}", lambda lax, x: lax.all_gather(lax.sin(lax.psum_scatter(
            x, one, scatter_dimension=axis, tiled=True, **given)), one, axis=axis, tiled=True, **given) + x),
        (f"all_to_all {several}", lambda lax, x: lax.all_to_all(
            lax.all_to_all(lax.sin(x), several, axis, 1 - axis, tiled=True, **given) * 2.0, several, 1 - axis, axis,
            tiled=True, **given) + x),
        (f"axis_index {several}", lambda lax, x: x * (1.0 + lax.axis_index(several))),
    ]
    if not groups:
        kinds += [
            (f"ppermute {one} {pairs}", lambda lax, x: lax.sin(x) + lax.ppermute(x, one, pairs)),
            (f"pshuffle {one} {order}", lambda lax, x: x * lax.pshuffle(x, one, order)),
            (f"pbroadcast {one} {source}", lambda lax, x: x * broadcast(lax, lax.sin(x), one, source)),
        ]
    text, step = kinds[int(rng.integers(len(kinds)))]
    return f"{text} {given or ''}".strip(), step
