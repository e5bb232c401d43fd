"""The functions that a random program consists of, while they are written: the values that they see.

Of each value the shape, the kind and the axes of a mesh are known along which it may differ from device to device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple

Names = tuple[str, ...]


@dataclass(frozen=True)
class Value:
    """A variable of the program. `kind` is that of its dtype: "f", "i" or "b"."""

    name: str
    shape: tuple[int, ...]
    kind: str
    varying: frozenset[str]


class Kinds(NamedTuple):
    """Functions that write a statement each: of one device, of devices together, of functions within the function."""

    plain: Sequence[Callable[[Scope], None]]
    together: Sequence[Callable[[Scope], None]]
    nested: Sequence[Callable[[Scope], None]]


class Writer:
    """The text of a program, and what its choices depend on."""

    def __init__(self, rng: Any, mesh: dict[str, int], tracked: bool, kinds: Kinds) -> None:
        self.rng, self.mesh, self.tracked, self.kinds = rng, mesh, tracked, kinds
        self.lines: list[str] = []
        self.indent = 0
        self.count = 0
        self.forward_only = False

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    @contextmanager
    def function(self, name: str, params: list[str]) -> Iterator[None]:
        self.line(f"def {name}({', '.join(params)}):")
        self.indent += 1
        yield
        self.indent -= 1

    def shape(self) -> tuple[int, ...]:
        """A shape for a part of an argument."""
        ndim = int(self.rng.choice(4, p=[0.15, 0.4, 0.35, 0.1]))
        return tuple([int(n) for n in self.rng.choice([0, 1, 2, 3, 4, 8], ndim, p=[0.02, 0.13, 0.35, 0.2, 0.25, 0.05])])

    def text(self) -> str:
        return "\n".join(self.lines)


@dataclass
class Scope:
    """A function that is being written: the values that it sees, and where it is.

    `manual` are the axes of the mesh of which it sees parts, `mapped` the names and sizes of axes of vmaps around it;
    `apart`: whether devices may be at different places in the program, so that they can't communicate; `forward`:
    whether it is differentiated in forward mode.
    """

    writer: Writer
    values: list[Value]
    manual: Names
    mapped: tuple[tuple[str, int], ...]
    apart: bool
    depth: int
    forward: bool = False

    @property
    def rng(self) -> Any:
        return self.writer.rng

    # Choosing

    def any(self, kind: str = "", ndim: int = 0, most: int = 4000) -> Value:
        """One of the values, later ones rather; a float if there is none of these."""
        fit = [v for v in self.values if v.kind in (kind or v.kind) and len(v.shape) >= ndim and prod(v.shape) <= most]
        if not fit:
            shape = (2,) * ndim
            return self.keep(f"lax.full({shape}, 0.5)", shape, "f", frozenset())
        return fit[-1 - min(int(self.rng.geometric(0.35)) - 1, len(fit) - 1)]

    def float(self, ndim: int = 0) -> Value:
        value = self.any(ndim=ndim)
        return value if value.kind == "f" else self.as_float(value)

    def keep(self, text: str, shape: Any, kind: str, varying: Any) -> Value:
        """Write an assignment."""
        value = Value(self.writer.fresh("v"), tuple(shape), kind, frozenset(varying))
        self.writer.line(f"{value.name} = {text}")
        self.values.append(value)
        return value

    def as_float(self, v: Value) -> Value:
        return self.keep(f"lax.convert_element_type({v.name}, 'float64') * 0.25", v.shape, "f", v.varying)

    def fitted(self, v: Value, shape: tuple[int, ...], varying: frozenset[str]) -> Value:
        """A float of this shape that varies at most along these axes, made of the value."""
        v = v if v.kind == "f" else self.as_float(v)
        if v.varying - varying:
            v = self.reduced(v, v.varying - varying)
        if v.shape != shape:
            v = self.keep(f"lax.broadcast_in_dim(lax.tanh({v.name}.sum()), {shape}, ())", shape, "f", v.varying)
        return v

    def mixed(self) -> Value:
        """A float that depends on several of the values that were made last."""
        v = self.float()
        for _ in range(int(self.rng.integers(4))):
            u = self.float()
            v = self.keep(f"{v.name} + lax.tanh({u.name}.sum()) * 0.3", v.shape, "f", v.varying | u.varying)
        return v

    def reduced(self, v: Value, axes: frozenset[str]) -> Value:
        names = self.order(axes)
        how = self.rng.choice(["pmean", "psum"]) if v.kind == "f" else "pmax"
        return self.keep(f"lax.{how}({self.given(v, names)}, {names!r})", v.shape, v.kind, v.varying - axes)

    def order(self, axes: Any) -> Names:
        return tuple([str(name) for name in self.rng.permutation(sorted(axes))])

    # Statements

    def statements(self, count: int) -> None:
        """Write statements of any kind; some of them add no value since what they need isn't there."""
        kinds = self.writer.kinds
        for _ in range(count):
            table = kinds.plain if self.rng.random() < 0.45 or self.apart else kinds.together
            if self.depth < 3 and self.rng.random() < (0.45, 0.3, 0.15)[self.depth]:
                table = kinds.nested
            table[self.rng.integers(len(table))](self)

    # Functions within the function, and what collectives take

    def inner(self, params: list[Value], apart: bool = False, **changes: Any) -> Scope:
        seen = [v for v in self.values if not apart or v.varying.issuperset(self.manual)]
        return replace(self, values=[*seen, *params], apart=self.apart or apart, depth=self.depth + 1, **changes)

    def part_ways(self) -> None:
        """Before devices are at different places: values that each has of its own.

        A cotangent of what they share would be summed over them there, by jax; devices would wait for each other.
        """
        for _ in range(2):
            v = self.float()
            self.keep(f"vary({v.name}, {self.order(self.manual)!r})", v.shape, "f", self.manual)

    def target(self, start: frozenset[str], apart: bool = False) -> frozenset[str]:
        """The axes along which something shall vary, at most."""
        if apart or self.apart or self.rng.random() < 0.3:
            return frozenset(self.manual)
        return start | {name for name in self.manual if self.rng.random() < 0.3}

    def started(self, init: Value, varying: frozenset[str]) -> str:
        return f"vary({init.name}, {self.order(varying)!r})"

    def divisible(self, v: Value, axis: int, size: int) -> Value:
        """A value whose axis is a multiple of the size."""
        if v.shape[axis] % size == 0:
            return v
        shape = (*v.shape[:axis], v.shape[axis] * size, *v.shape[axis + 1:])
        return self.keep(f"lax.concatenate([{v.name}] * {size}, {axis})", shape, v.kind, v.varying)

    def given(self, v: Value, names: Names) -> str:
        """The operand of a collective: libraries differ about those that vary along some of the axes only."""
        return self.started(v, v.varying.union(self.of_mesh(names))) if v.varying.intersection(names) else v.name

    def of_mesh(self, names: Names) -> frozenset[str]:
        return frozenset(names).intersection(self.manual)
