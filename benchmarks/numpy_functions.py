"""Functions of jax.numpy called eagerly: corejax's beside NumPy's and jax's.

    JAX_ENABLE_X64=1 python -m benchmarks.numpy_functions [ROUNDS [WORD]]

The fifty functions, with their arguments, were fixed before corejax.numpy was written and before anything was measured:
those that programs call most, from every family. Each is called with arrays of 10 and of 1,000 elements (matrices are
the largest squares within them). All three libraries take turns in one process, on their own arrays: ours and NumPy's
in host memory, jax's on the CPU device. Printed are medians per call in µs; what a call of ours costs above NumPy's,
which should be at most 5 µs; and jax's time divided by ours, which should be at least 5. With a word, only functions
with it in their names run.
"""

from __future__ import annotations

import gc
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from itertools import repeat
from math import isqrt
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.rows import ready

SIZES = (10, 1000)
MOST_ABOVE_NUMPY = 5.0
LEAST_BELOW_JAX = 5.0
_SAMPLE_SECONDS = 0.001

#: The arguments for a number of elements.
Arguments = Callable[[int], tuple[Any, ...]]


def vectors(count: int, *rest: Any, low: float = -1.0, high: float = 1.0) -> Arguments:
    """So many rows of numbers between these; and the rest."""
    return lambda size: (*np.random.default_rng(0).uniform(low, high, (count, size)), *rest)


def matrices(count: int, *rest: Any) -> Arguments:
    """So many square matrices of at most `size` elements, far from singular; and the rest."""
    def drawn(size: int) -> tuple[Any, ...]:
        side = isqrt(size)
        return *np.random.default_rng(1).uniform(-1.0, 1.0, (count, side, side)) + 2.0 * side * np.eye(side), *rest
    return drawn


def integers(size: int, most: int) -> np.ndarray:
    """Integers from zero up."""
    return np.random.default_rng(2).integers(0, most, size)


def pair(size: int) -> tuple[Any, ...]:
    """Two rows in a list."""
    return (list(TWO(size)),)


def choice(size: int) -> tuple[Any, ...]:
    """A condition, and two rows to choose from."""
    x, y = TWO(size)
    return x > 0.0, x, y


def search(size: int) -> tuple[Any, ...]:
    """A sorted row, and values to find the places of."""
    x, y = TWO(size)
    return np.sort(x), y


def indexed(*rest: Any) -> Arguments:
    """A row, and as many indices into it; and the rest."""
    return lambda size: (*ONE(size), integers(size, size), *rest)


ONE, TWO, POSITIVE = vectors(1), vectors(2), vectors(1, low=0.1, high=2.0)

FUNCTIONS: dict[str, Arguments] = {
    # creation
    "zeros": lambda size: (size,), "arange": lambda size: (size,), "linspace": lambda size: (0.0, 1.0, size),
    "eye": lambda size: (isqrt(size),),
    # elementwise
    "add": TWO, "multiply": TWO, "divide": TWO, "maximum": TWO, "power": vectors(1, 1.5, low=0.1, high=2.0), "exp": ONE,
    "log": POSITIVE, "sin": ONE, "tanh": ONE, "isfinite": ONE, "where": choice, "clip": vectors(1, -0.5, 0.5),
    # reductions
    "sum": ONE, "mean": ONE, "max": ONE, "prod": POSITIVE, "std": ONE, "argmax": ONE, "cumsum": ONE,
    # shapes
    "reshape": vectors(1, (2, -1)), "transpose": matrices(1), "expand_dims": vectors(1, 0),
    "broadcast_to": lambda size: (*ONE(size // 10), (10, size // 10)), "flip": ONE, "roll": vectors(1, 3),
    # joining
    "concatenate": pair, "stack": pair, "tile": lambda size: (*ONE(size // 2), 2), "pad": vectors(1, 2),
    # sorting and searching
    "sort": ONE, "argsort": ONE, "searchsorted": search,
    # indexing
    "take": indexed(), "take_along_axis": indexed(0),
    # statistics
    "median": ONE, "quantile": vectors(1, 0.25), "bincount": lambda size: (integers(size, 10),),
    # products
    "dot": TWO, "matmul": matrices(2), "tensordot": matrices(2, 1),
    "einsum": lambda size: ("ij,jk->ik", *matrices(2)(size)),
    # linear algebra
    "linalg.norm": ONE, "linalg.solve": lambda size: (*matrices(1)(size), *ONE(isqrt(size))), "linalg.inv": matrices(1),
    # Fourier transforms
    "fft.fft": ONE, "fft.rfft": ONE}


@dataclass(frozen=True, slots=True)
class Found:
    """The medians of a function, in µs per call."""

    name: str
    size: int
    ours: float
    numpy: float
    jax: float

    @property
    def above_numpy(self) -> float:
        return self.ours - self.numpy

    @property
    def below_jax(self) -> float:
        return self.jax / self.ours

    def shown(self) -> str:
        """A line of the table; what misses its target is marked."""
        above = f"{self.above_numpy:7.2f}{' !'[self.above_numpy > MOST_ABOVE_NUMPY]}"
        below = f"{self.below_jax:7.1f}{' !'[self.below_jax < LEAST_BELOW_JAX]}"
        return f"{self.name:16} {self.size:5} {self.ours:8.2f} {self.numpy:8.2f} {self.jax:8.2f} {above:>9} {below:>9}"


def own(argument: Any, array: Callable[[Any], Any]) -> Any:
    """An argument with arrays of one library instead of ndarrays."""
    if isinstance(argument, list):
        return [own(each, array) for each in argument]
    return array(argument) if isinstance(argument, np.ndarray) else argument


def sample(function: Callable[..., Any], args: tuple[Any, ...], runs: int) -> float:
    """The mean time of some calls, with one wait for the last result."""
    out = None
    begun = perf_counter()
    for _ in repeat(None, runs):
        out = function(*args)
    ready(out)
    return (perf_counter() - begun) / runs


def measured(name: str, size: int, rounds: int, libraries: dict[str, Any]) -> Found:
    """One function for one size, the libraries in turns."""
    args = FUNCTIONS[name](size)
    tasks = {library: (reduce(getattr, name.split("."), module), tuple(own(each, module.asarray) for each in args))
             for library, module in libraries.items()}
    runs = {}
    for library, (function, operands) in tasks.items():
        sample(function, operands, 3)
        runs[library] = max(3, min(1000, round(_SAMPLE_SECONDS / sample(function, operands, 20))))
    times: dict[str, list[float]] = {library: [] for library in tasks}
    gc.collect()
    gc.disable()
    try:
        for turn in range(rounds):
            order = list(tasks)
            for library in order[turn % 3:] + order[:turn % 3]:
                times[library].append(1e6 * sample(*tasks[library], runs[library]))
    finally:
        gc.enable()
    medians = {library: statistics.median(found) for library, found in times.items()}
    return Found(name, size, medians["corejax"], medians["numpy"], medians["jax"])


def rows(rounds: int, word: str = "") -> Iterator[Found]:
    """All functions, at both sizes."""
    import_module("jax").config.update("jax_enable_x64", True)
    libraries = {"corejax": import_module("corejax.numpy"), "numpy": np, "jax": import_module("jax.numpy")}
    for name in FUNCTIONS:
        for size in SIZES if word in name else ():
            yield measured(name, size, rounds, libraries)


def main(rounds: int, word: str) -> None:
    """Print a line for each function and size, and how many reach their targets."""
    print(f"{'function':16} {'size':>5} {'ours':>8} {'NumPy':>8} {'jax':>8} {'-NumPy':>9} {'jax/ours':>9}")
    found = []
    for row in rows(rounds, word):
        found.append(row)
        print(row.shown(), flush=True)
    above = sum(row.above_numpy <= MOST_ABOVE_NUMPY for row in found)
    below = sum(row.below_jax >= LEAST_BELOW_JAX for row in found)
    print(f"of {len(found)} rows, {above} are at most {MOST_ABOVE_NUMPY} µs above NumPy, and {below} at least "
          f"{LEAST_BELOW_JAX} times faster than jax; median {statistics.median(row.below_jax for row in found):.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15, sys.argv[2] if len(sys.argv) > 2 else "")
