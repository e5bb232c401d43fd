"""Batches: several inputs for a primitive, and the axes along which they can be mapped."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax import jvp, make_jaxpr
from corejax.core import Array, ShapedArray, aval_of, dtypes, with_axis
from corejax.ir import subjaxprs
from corejax.plugin import elements
from corejax_testing.case import Case
from corejax_testing.comparing import host
from corejax_testing.report import NotApplicable

Dims = tuple[int | None, ...]


class Batch:
    """Several inputs for a primitive: `rows[k][i]` is operand i of the k-th. The first input is the sample itself."""

    def __init__(self, case: Case, size: int) -> None:
        self.case, self.size = case, size
        self.rows = [list(case.args), *[another(case) for _ in range(size - 1)]][:size]

    def row(self, k: int, dims: Dims) -> list[Any]:
        """The operands of slice `k` of a map along `dims`. Those that aren't mapped come from the first row."""
        return [x if dim is None else y for x, y, dim in zip(self.case.args, self.rows[k], dims, strict=True)]

    def operands(self, dims: Dims) -> list[Any]:
        """The operands for the map: mapped ones are stacked along their dims."""
        return [x if dim is None else stacked([row[i] for row in self.rows], aval, dim)
                for i, (x, aval, dim) in enumerate(zip(self.case.args, self.case.avals, dims, strict=True))]

    def loop(self, dims: Dims) -> list[list[Any]]:
        """The results of each slice, computed one by one."""
        return [self.case.apply(*self.row(k, dims)) for k in range(self.size)]


def carries_programs(case: Case) -> bool:
    """Whether there are programs in its params, so that each transformation of it compiles another program."""
    return any([True for _ in subjaxprs(case.params)])


def compiles_programs(case: Case) -> bool:
    """Whether each transformation of it compiles another program, because of programs in its params or derivative."""
    if carries_programs(case):
        return True
    try:
        xs = [case.args[i] for i in case.differentiable]
        derivative = make_jaxpr(lambda *xs: jvp(case.function_of(case.differentiable), xs, xs)[1])(*xs).jaxpr
    except Exception:  # it has none, or checks say what is wrong with it
        return False
    return any([True for eqn in derivative.eqns for _ in subjaxprs(eqn.params)])


def another(case: Case) -> list[Any]:
    """Other operands of the same types: drawn from the domain, or else the given ones reordered and scaled down.

    Operands whose own domain is declared as None don't change.
    """
    drawn = case.drawn()
    return [x if case.keeps(i) else new if new is not x else _varied(case, x) for i, (x, new) in
            enumerate(zip(case.args, drawn, strict=True))]


def _varied(case: Case, x: object) -> np.ndarray:
    aval, rng = aval_of(x), case.rng
    values = host(x).astype(aval.dtype)
    shuffled = rng.permutation(values.ravel()).reshape(values.shape)
    if elements.find(aval.dtype) is not None:
        return shuffled  # what else is a valid element isn't known
    if dtypes.is_inexact(aval.dtype):
        return np.asarray(shuffled * rng.uniform(0.5, 1.0, values.shape)).astype(aval.dtype)
    if aval.dtype == np.bool_:
        return shuffled ^ (rng.random(values.shape) < 0.5)
    return shuffled if values.ndim else np.asarray(values + rng.integers(1, 3, dtype=np.int8).astype(aval.dtype))


def stacked(values: Sequence[object], aval: ShapedArray, dim: int) -> Array:
    """Values of the same type, stacked along a new axis; weak if they are."""
    batched = with_axis(aval, dim, len(values))
    data = np.stack([host(x) for x in values], dim) if values else np.zeros(batched.shape)
    return Array.from_host(np.ascontiguousarray(data.astype(aval.dtype)).reshape(batched.shape), batched)


def layouts(case: Case, most: int) -> list[Dims]:
    """Choices of each operand's mapped axis: all, or `most` of them with as many subsets of operands as possible."""
    if not case.avals:
        raise NotApplicable("it has no operands")
    choices: list[list[int | None]] = [[None, *range(aval.ndim + 1)] for aval in case.avals]
    if math.prod(map(len, choices)) <= most + 1:
        return [dims for dims in itertools.product(*choices) if set(dims) != {None}]
    subsets = itertools.islice(itertools.product((True, False), repeat=len(choices)), 2 ** min(len(choices), 12) - 1)
    first, *others = [subset for subset in subsets if any(subset)]
    chosen = [first, *[others[k] for k in case.rng.permutation(len(others))]]
    return [random_dims(case, chosen[k % len(chosen)]) for k in range(most)]


def random_dims(case: Case, mapped: Sequence[bool]) -> Dims:
    """A random axis for each mapped operand."""
    return tuple([int(case.rng.integers(aval.ndim + 1)) if flag else None
                  for flag, aval in zip(mapped, case.avals, strict=True)])
