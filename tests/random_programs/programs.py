"""A random program with its inputs and transformations: what a seed stands for."""

from __future__ import annotations

import itertools
import linecache
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from . import calls, closures, control_flow, custom_rules, saving  # noqa: F401  they fill the table of kinds
from .making import USUAL, Flavour, Maker
from .slots import Slot, constants, of_width
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
    bits: int = 64
    #: The text of a program that came from another process, where statements can't go.
    written: str = ""

    @property
    def text(self) -> str:
        return self.written or narrowed(text(self.block, self.slots), self.bits)

    @property
    def types(self) -> dict[str, Slot]:
        """What the slots are."""
        return of_width(self.bits)

    def for_another_process(self) -> Program:
        """The same, of its text alone."""
        return replace(self, block=(), written=self.text)

    def function(self, api: Any, lax: Any) -> Callable[..., Any]:
        """The program itself, of that library."""
        source, name = self.text, f"<random program {self.seed}>"
        linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
        space = {**constants(self.bits), "MATRIX": MATRIX.astype(self.types["u"].dtype), "api": api, "lax": lax,
                 "np": np, "bfloat16": ml_dtypes.bfloat16}
        if "jnp." in source:
            space["jnp"] = api.numpy
        if "bounded(" in source:
            space["bounded"] = getattr(lax, "bounded_while_loop", None) or partial(masked_loop, lax)
        exec(compile(source, name, "exec"), space)
        return space["program"]  # type: ignore[no-any-return]

    def run(self, api: Any, lax: Any, put: Callable[[Any], Any], inputs: dict[str, Any] | None = None) -> Any:
        """Its results under the transformations; `put` makes a value of the library of one of Python or NumPy."""
        given = inputs or self.inputs
        return self.transformed(api, lax)(*[put(given[key]) for key in self.slots])

    def transformed(self, api: Any, lax: Any) -> Callable[..., Any]:
        """The function of its slots that it is under the transformations."""
        table = Transformations(api, lax, [self.types[key] for key in self.slots], self.argnums, self.mapped)
        return table.apply(self.transformations, self.function(api, lax))

    def __str__(self) -> str:
        wrt = ", ".join([self.slots[k] for k in self.argnums])
        rows = ", ".join([key for key, mapped in zip(self.slots, self.mapped, strict=True) if mapped])
        given = "".join([f"# {key} = {shown(self.inputs[key])}\n" for key in self.slots])
        done = " of ".join([*self.transformations, "program"])
        return f"{self.text}\n# seed {self.seed}: {done}, differentiable in {wrt}, mapped over {rows}\n{given}"


def shown(x: Any) -> str:
    return repr(x) if type(x) in (bool, int, float, complex) else f"np.array({x.tolist()}, {str(x.dtype)!r})"


#: What derivatives may be needed: of the programs of a seed, half go through both.
DERIVATIVES = [("reverse", "forward"), ("reverse", "forward"), ("forward",), ("reverse",)]
EMPTY_LOOP = re.compile(r"fori_loop\((-?\d), \1,|None, 0")
SPECIAL = [0.0, -0.0, 0.0, np.inf, -np.inf, np.nan, 1.0, -1.5, 1e300, 0.25]


def program(seed: int, depth: int = 2, flavour: Flavour = USUAL) -> Program:
    """The program of a seed."""
    rng = np.random.default_rng(seed)
    needs = frozenset(DERIVATIVES[seed % len(DERIVATIVES)])
    make = Maker(rng, needs, flavour)
    block = make.block(depth, int(rng.integers(1, 4)))
    ordinary = not make.chance(0.35)
    types = of_width(flavour.bits)
    inputs = {key: given(make, types[key], ordinary) for key in make.slots}
    orderings = [names for names in ORDERINGS if {NEEDS[n] for n in names if n in NEEDS} <= needs
                 and len(names) <= flavour.transformations]
    floats = [make.slots.index(key) for key in differentiable(make.slots)]
    argnums = tuple(sorted(int(k) for k in rng.permutation(floats)[:int(rng.integers(1, len(floats) + 1))]))
    transformations = make.choice(orderings)
    if EMPTY_LOOP.search(text(block, make.slots)) and make.chance(0.5):  # what it doesn't compute may be infinite
        inputs["s"], ordinary = types["s"].dtype.type(0.0), False
        transformations = ("jit", *transformations[:2])
    if make.divides and "jit" not in transformations:
        transformations = ("jit", *transformations[:2])
    while "grad" in transformations and any(types[make.slots[k]].dtype.kind == "c" for k in argnums):
        argnums = tuple(k for k in argnums if types[make.slots[k]].dtype.kind != "c") or (0,)
    mapped = [make.chance(0.5) for _ in make.slots]
    mapped[int(rng.integers(len(mapped)))] = True
    return Program(seed, block, make.slots, inputs, transformations, argnums, tuple(mapped), ordinary, make.divides,
                   flavour.bits)


def masked_loop(lax: Any, cond: Callable[[Any], Any], body: Callable[[Any], Any], init: Any, max_steps: int) -> Any:
    """A loop of at most so many steps, for a library that has none."""
    return lax.scan(lambda c, _: (lax.cond(cond(c), body, lambda c: c, c), None), init, None, max_steps)[0]


def narrowed(source: str, bits: int) -> str:
    """The text with 32 bits where it says 64, and with NumPy's own arrays as narrow."""
    if bits == 64:
        return source
    source = WIDE.sub(lambda found: f"{found[1]}{int(found[2]) // 2}", source)
    return source.replace("np.array([1.0, 0.5])", "np.array([1.0, 0.5], np.float32)").replace(
        "np.arange(2)", "np.arange(2, dtype=np.int32)")


WIDE = re.compile(r"(?<=np\.)(float|int|uint|complex)(64|128)\b")


def given(make: Maker, slot: Slot, ordinary: bool) -> Any:
    """A value for a slot: one near one, or one at which functions are special; scalars may be weak."""
    key = slot.name
    if key == "d":
        return make.rng.integers(0, np.iinfo(slot.dtype).max, slot.shape, slot.dtype, endpoint=True)
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
