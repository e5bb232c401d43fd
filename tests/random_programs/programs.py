"""A random program with its inputs and transformations: what a seed stands for."""

from __future__ import annotations

import itertools
import linecache
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from . import calls, control_flow, custom_rules  # noqa: F401  they fill the table of kinds
from .making import Maker
from .slots import CONSTANTS, SLOTS
from .transforming import MATRIX, NAMES, NEEDS, Transformations
from .writing import Block, Keys, differentiable, text

ORDERINGS = [names for depth in range(4) for names in itertools.product(NAMES, repeat=depth)]


@dataclass(frozen=True)
class Program:
    """Statements, what they are run on, and what is done to them. `inputs` are Python or NumPy values by slot."""

    seed: int
    block: Block
    slots: Keys
    inputs: dict[str, Any]
    transformations: tuple[str, ...]
    argnums: tuple[int, ...]
    mapped: tuple[bool, ...]
    ordinary: bool
    divides: bool

    @property
    def text(self) -> str:
        return text(self.block, self.slots)

    def function(self, api: Any, lax: Any) -> Callable[..., Any]:
        """The program itself, of that library."""
        source, name = self.text, f"<random program {self.seed}>"
        linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
        space = {**CONSTANTS, "MATRIX": MATRIX, "api": api, "lax": lax, "np": np, "bfloat16": ml_dtypes.bfloat16}
        exec(compile(source, name, "exec"), space)
        return space["program"]  # type: ignore[no-any-return]

    def run(self, api: Any, lax: Any, put: Callable[[Any], Any], inputs: dict[str, Any] | None = None) -> Any:
        """Its results under the transformations; `put` makes a value of the library of one of Python or NumPy."""
        table = Transformations(api, lax, self.slots, self.argnums, self.mapped)
        given = inputs or self.inputs
        return table.apply(self.transformations, self.function(api, lax))(*[put(given[key]) for key in self.slots])

    def __str__(self) -> str:
        wrt = ", ".join([self.slots[k] for k in self.argnums])
        rows = ", ".join([key for key, mapped in zip(self.slots, self.mapped, strict=True) if mapped])
        given = "".join([f"# {key} = {shown(self.inputs[key])}\n" for key in self.slots])
        done = " of ".join([*self.transformations, "program"])
        return f"{self.text}\n# seed {self.seed}: {done}, differentiable in {wrt}, mapped over {rows}\n{given}"


def shown(x: Any) -> str:
    return repr(x) if type(x) in (bool, int, float, complex) else f"np.array({x.tolist()}, {str(x.dtype)!r})"


#: What derivatives may be needed: of the programs of a seed, half go through both.
MODES = [("reverse", "forward"), ("reverse", "forward"), ("forward",), ("reverse",)]
EMPTY_LOOP = re.compile(r"fori_loop\((-?\d), \1,|None, 0")
SPECIAL = [0.0, -0.0, 0.0, np.inf, -np.inf, np.nan, 1.0, -1.5, 1e300, 0.25]


def program(seed: int, depth: int = 2) -> Program:
    """The program of a seed."""
    rng = np.random.default_rng(seed)
    needs = frozenset(MODES[seed % len(MODES)])
    make = Maker(rng, needs)
    block = make.block(depth, int(rng.integers(1, 4)))
    ordinary = not make.chance(0.35)
    inputs = {key: given(make, key, ordinary) for key in make.slots}
    orderings = [names for names in ORDERINGS if {NEEDS[n] for n in names if n in NEEDS} <= needs]
    floats = [make.slots.index(key) for key in differentiable(make.slots)]
    argnums = tuple(sorted(int(k) for k in rng.permutation(floats)[:int(rng.integers(1, len(floats) + 1))]))
    transformations = make.choice(orderings)
    if EMPTY_LOOP.search(text(block, make.slots)) and make.chance(0.5):  # what it doesn't compute may be infinite
        inputs["s"], ordinary = np.float64(0.0), False
        transformations = ("jit", *transformations[:2])
    if make.divides and "jit" not in transformations:
        transformations = ("jit", *transformations[:2])
    while "grad" in transformations and any(SLOTS[make.slots[k]].dtype.kind == "c" for k in argnums):
        argnums = tuple(k for k in argnums if SLOTS[make.slots[k]].dtype.kind != "c") or (0,)
    mapped = [make.chance(0.5) for _ in make.slots]
    mapped[int(rng.integers(len(mapped)))] = True
    return Program(seed, block, make.slots, inputs, transformations, argnums, tuple(mapped), ordinary, make.divides)


def given(make: Maker, key: str, ordinary: bool) -> Any:
    """A value for a slot: one near one, or one at which functions are special; scalars may be weak."""
    slot = SLOTS[key]
    if slot.dtype.kind == "b":
        return np.array(make.rng.random(slot.shape) < 0.5)
    if slot.dtype.kind in "iu":
        value = np.array(make.rng.integers(0 if slot.dtype.kind == "u" else -3, 5, slot.shape), slot.dtype)
        return int(value) if key == "n" and make.chance(0.25) else value
    value = np.round(make.rng.uniform(-2, 2, slot.shape), 3)
    if slot.dtype.kind == "c":
        value = value + 1j * np.round(make.rng.uniform(-2, 2, slot.shape), 3)
    if not ordinary and make.chance(0.7):
        value = np.array([make.choice(SPECIAL) for _ in range(value.size)]).reshape(slot.shape)
    return float(value) if key == "s" and make.chance(0.3) else np.asarray(value).astype(slot.dtype)
