"""Convolutions with random params, and what they compute by the definition: loops over results and windows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

LETTERS = "HWDXY"


@dataclass(frozen=True)
class Case:
    """Shapes of the operands, and the options of `conv_general_dilated`; dimension numbers are words or None."""

    lhs: tuple[int, ...]
    rhs: tuple[int, ...]
    strides: tuple[int, ...]
    padding: Any
    options: dict[str, Any]

    def of(self, lax: Any, **others: Any) -> Any:
        """The convolution by either library's lax."""
        return lambda x, y: lax.conv_general_dilated(x, y, self.strides, self.padding, **self.options, **others)

    def numbers(self) -> tuple[tuple[int, ...], ...]:
        words = self.options.get("dimension_numbers")
        if words is None:
            return (tuple(range(len(self.lhs))),) * 3
        space = [letter for letter in words[1] if letter not in "OI"]
        return tuple([tuple([word.index(letter) for letter in (*first, *space)])
                      for word, first in zip(words, ("NC", "OI", "NC"), strict=True)])


def words(rng: np.random.Generator, count: int) -> tuple[str, str, str]:
    space = [*LETTERS[:count]]
    return tuple(["".join(rng.permutation([*first, *space])) for first in ("NC", "OI", "NC")])


def random_case(rng: np.random.Generator, zeros: bool = True) -> Case:
    """Windows larger than the operand, strides beyond it, groups of one channel each, sizes of 0 and 1, ..."""
    count = int(rng.choice([0, 1, 2, 3], p=[0.1, 0.4, 0.4, 0.1]))
    groups = int(rng.choice([1, 2, 3]))
    which = rng.choice(["none", "features", "batch"]) if groups > 1 else "none"
    few = [0, 1, 2, 3] if zeros and rng.integers(8) == 0 else [1, 2, 3]
    batch, features, outs = [int(rng.choice(few)) for _ in range(3)]
    ins = features
    if which == "features":
        ins, features, outs = (features, features * groups, outs * groups)
        if rng.integers(3) == 0:  # as many groups as channels
            ins, features = 1, groups
    elif which == "batch":
        batch, outs = batch * groups, outs * groups
    space = [int(n) for n in rng.choice([*few, 4, 5, 7], count)]
    window = [int(n) for n in rng.choice([1, 2, 3, 5] if count < 3 else [1, 2, 3], count)]
    strides = tuple([int(n) for n in rng.choice([1, 1, 2, 3, 9], count)])
    spread = tuple([int(n) for n in rng.choice([1, 1, 2, 3], count)])
    apart = tuple([int(n) for n in rng.choice([1, 1, 2, 3], count)])
    padding: Any = [(int(rng.integers(-(n // 2), 5)), int(rng.integers(-(n // 2), 5))) if n else (
        int(rng.integers(0, 3)), int(rng.integers(0, 3))) for n in space]
    if rng.integers(3) == 0:
        padding, spread = str(rng.choice(["SAME", "SAME_LOWER", "VALID", "same"])), (1,) * count
    named = words(rng, count) if rng.integers(3) else None
    case = Case((), (), strides, padding, {
        "lhs_dilation": None if spread == (1,) * count else spread, "rhs_dilation": apart, "dimension_numbers": named,
        **({"feature_group_count": groups} if which == "features" else {}),
        **({"batch_group_count": groups} if which == "batch" else {})})
    lhs, rhs = (batch, features, *space), (outs, ins, *window)
    axes = Case(lhs, rhs, strides, padding, case.options).numbers()
    placed = [tuple([shape[own.index(d)] for d in range(len(shape))])
              for shape, own in zip((lhs, rhs), axes[:2], strict=True)]
    return Case(*placed, strides, padding, case.options)


def pads_of(case: Case, space: Any, window: Any) -> list[tuple[int, int]]:
    """The padding in numbers: after dilation of the window, which is what SAME refers to."""
    if not isinstance(case.padding, str):
        return list(case.padding)
    kind, pads = case.padding.upper(), []
    apart = case.options["rhs_dilation"] or (1,) * len(space)
    for n, k, step, d in zip(space, window, case.strides, apart, strict=True):
        missing = max(0, (-(-n // step) - 1) * step + (k - 1) * d + 1 - n) if kind != "VALID" else 0
        low = missing // 2 if kind == "SAME" else missing - missing // 2
        pads.append((low, missing - low))
    return pads


def by_definition(case: Case, lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """The sum over every window, element by element in space."""
    a, b, c = case.numbers()
    x, y = lhs.transpose(a), rhs.transpose(b)
    space, window = x.shape[2:], y.shape[2:]
    ones = (1,) * len(space)
    spread, apart = case.options.get("lhs_dilation") or ones, case.options.get("rhs_dilation") or ones
    pads = pads_of(case, space, window)
    wide = [max(0, (n - 1) * s + 1) + low + high for n, s, (low, high) in zip(space, spread, pads, strict=True)]
    sizes = [max(0, (n - ((k - 1) * d + 1)) // step + 1)
             for n, k, d, step in zip(wide, window, apart, case.strides, strict=True)]
    f_groups, b_groups = case.options.get("feature_group_count", 1), case.options.get("batch_group_count", 1)
    out = np.zeros((x.shape[0] // b_groups, y.shape[0], *sizes), np.result_type(x, y))
    for at, of in product(np.ndindex(*sizes), np.ndindex(*window)):
        places = [o * step + k * d - low for o, step, k, d, (low, _) in zip(
            at, case.strides, of, apart, pads, strict=True)]
        if any([p % s or not 0 <= p // s < n for p, s, n in zip(places, spread, space, strict=True)]):
            continue
        here = x[(slice(None), slice(None), *[p // s for p, s in zip(places, spread, strict=True)])]
        there = y[(slice(None), slice(None), *of)]
        groups, parts = f_groups * b_groups, []
        for g, kernel in enumerate(np.split(there, groups)):
            own = np.split(here, groups, 1 if f_groups > 1 else 0)[g] if groups > 1 else here
            parts.append(own @ kernel.T)
        out[(slice(None), slice(None), *at)] += np.concatenate(parts, 1)
    return out.transpose(np.argsort(c))
